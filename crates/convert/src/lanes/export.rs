//! Lanes become arrays: `.npy` files, and datasets of HDF5 files.

use crate::BLOCK;
use crate::npy::NpyWriter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::Disk;
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::format::datatype::Datatype;
use tensilo_hdf5::write::{Element, FileWriter, WriteOptions};
use tensilo_lanes::{Advice, LaneKind, LaneSpec, LaneType, Store};

/// A lane with more bytes than this is dropped from memory behind the copy.
pub(super) const LARGE: u64 = 4 * BLOCK;

/// Writes slabs `start..end` of a lane (a flat lane is slab 0) to an `.npy` file of shape `[slabs, …]`, or `[len]` for
/// a flat one.
///
/// # Errors
/// `NotFound`, `InvalidArgument`, `Corrupt`; `AlreadyExists` unless `replace`; the monitor's.
pub fn lane_to_npy(
    store: &Store,
    name: &str,
    range: Range<u64>,
    disk: Arc<dyn Disk>,
    path: impl AsRef<Path>,
    replace: bool,
    monitor: &dyn Monitor,
) -> Result<()> {
    let spec = store.lane(name)?;
    let shape = shape(store, spec, &range)?;
    let mut out = NpyWriter::create(disk, path, spec.dtype.numpy(), &shape)?;
    copy_out(store, spec, range, monitor, &mut |block| out.write(block))?;
    out.finish(replace)
}

/// Writes slabs `start..end` of a lane to a new contiguous dataset of shape `[slabs, …]`, or `[len]` for a flat lane;
/// booleans become the enumeration that h5py reads as `bool`.
///
/// # Errors
/// As [`lane_to_npy`]; `AlreadyExists` when the file has something at `path`.
pub fn lane_to_dataset(
    store: &Store,
    name: &str,
    range: Range<u64>,
    file: &mut FileWriter<'_>,
    path: &str,
    monitor: &dyn Monitor,
) -> Result<()> {
    let spec = store.lane(name)?;
    let shape = shape(store, spec, &range)?;
    let mut out = file.dataset(path).datatype(datatype(spec.dtype)).shape(&shape).contiguous_writer()?;
    copy_out(store, spec, range, monitor, &mut |block| out.write(block))?;
    out.finish().map(|_| ())
}

/// Writes lanes to a new HDF5 file, each whole, as datasets of their names.
///
/// # Errors
/// As [`lane_to_dataset`]; `AlreadyExists` unless `replace`. After an error there is no file.
pub fn lanes_to_hdf5(
    store: &Store,
    names: &[&str],
    disk: Arc<dyn Disk>,
    path: impl AsRef<Path>,
    replace: bool,
    monitor: &dyn Monitor,
) -> Result<()> {
    let mut file = FileWriter::create(disk, path, WriteOptions::default())?;
    for name in names {
        lane_to_dataset(store, name, 0..store.slab_count(name)?, &mut file, name, monitor)?;
    }
    if replace { file.finish_replacing() } else { file.finish() }.map(|_| ())
}

/// The HDF5 type of a lane's elements, as they lie in the file.
pub(super) fn datatype(t: LaneType) -> Datatype {
    match t {
        LaneType::F16 => half::f16::datatype(),
        LaneType::F32 => f32::datatype(),
        LaneType::F64 => f64::datatype(),
        LaneType::I8 => i8::datatype(),
        LaneType::I16 => i16::datatype(),
        LaneType::I32 => i32::datatype(),
        LaneType::I64 => i64::datatype(),
        LaneType::U8 => u8::datatype(),
        LaneType::U16 => u16::datatype(),
        LaneType::U32 => u32::datatype(),
        LaneType::U64 => u64::datatype(),
        LaneType::Bool => bool::datatype(),
    }
}

/// Extents of the array that slabs `range` are.
fn shape(store: &Store, spec: &LaneSpec, range: &Range<u64>) -> Result<Vec<u64>> {
    let slabs = store.slab_count(&spec.name)?;
    if range.start > range.end || range.end > slabs {
        return Err(Error::invalid(format!(
            "slabs {}:{} are out of range: the lane has {slabs}",
            range.start, range.end
        ))
        .in_object(&spec.name));
    }
    Ok(match spec.kind {
        LaneKind::Flat { len } => vec![len],
        LaneKind::Slab { elems } => {
            let inner = if spec.shape.is_empty() { vec![elems] } else { spec.shape.clone() };
            [vec![range.end - range.start], inner].concat()
        }
    })
}

/// Hands the bytes of slabs to `sink`, checked, in C order, block by block.
fn copy_out(
    store: &Store,
    spec: &LaneSpec,
    range: Range<u64>,
    monitor: &dyn Monitor,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let name = spec.name.as_str();
    let slab_bytes = spec.slab_bytes()?;
    let total = (range.end - range.start).saturating_mul(slab_bytes);
    let large = total > LARGE;
    let mut done = 0;
    let mut ordered = Vec::new();
    // The first slab that may still be in memory.
    let mut held = range.start;
    for k in range {
        let bytes = slab(store, spec, k, &mut ordered)?;
        for block in bytes.chunks(BLOCK as usize) {
            monitor.poll(&Progress { stage: "copying", done, total })?;
            sink(block)?;
            done += block.len() as u64;
        }
        if large && (k + 1 - held).saturating_mul(slab_bytes) >= BLOCK {
            store.advise_slabs(name, held..k + 1, Advice::DropCached)?;
            held = k + 1;
        }
    }
    Ok(())
}

/// The bytes of a slab, checked, in C order: as they lie in the file, or reordered into `ordered` when they are stored
/// in chunks.
pub(super) fn slab<'a>(
    store: &'a Store,
    spec: &LaneSpec,
    k: u64,
    ordered: &'a mut Vec<u8>,
) -> Result<&'a [u8]> {
    if spec.chunk.is_empty() {
        store.check_slabs(&spec.name, k..k + 1)?;
        return store.raw_bytes(&spec.name, k..k + 1);
    }
    reorder(store, spec, k, ordered)?;
    Ok(ordered)
}

fn reorder(store: &Store, spec: &LaneSpec, k: u64, out: &mut Vec<u8>) -> Result<()> {
    if out.is_empty() {
        let bytes = spec.elems().checked_mul(spec.dtype.size()).and_then(|n| usize::try_from(n).ok());
        let bytes = bytes.ok_or_else(|| Error::limit("the slab does not fit in memory"))?;
        out.try_reserve_exact(bytes)
            .map_err(|_| Error::limit(format!("no memory for a slab of {bytes} bytes")))?;
        out.resize(bytes, 0);
    }
    store.read_bytes(&spec.name, k..k + 1, out)
}
