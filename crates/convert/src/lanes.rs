//! Lane stores from and to `.npy` files and HDF5 datasets, and from format 1 to format 2.
//!
//! An array of shape `[n, …]` becomes a lane of `n` slabs, one for each step of its first axis.

use crate::BLOCK;
use crate::npy::{NpyFile, NpyWriter};
use half::f16;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::io::Disk;
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::format::datatype::{ByteOrder, Class, Datatype};
use tensilo_hdf5::read::Dataset;
use tensilo_lanes::{
    LaneElement, LaneKind, LaneSpec, LaneType, Store, StoreSchema, StoreWriter, WriterOptions,
};

/// Calls a generic function with the Rust type of a lane type.
macro_rules! with_type {
    ($dtype:expr, $t:ident => $call:expr) => {
        match $dtype {
            LaneType::F16 => {
                type $t = f16;
                $call
            }
            LaneType::F32 => {
                type $t = f32;
                $call
            }
            LaneType::F64 => {
                type $t = f64;
                $call
            }
            LaneType::I8 => {
                type $t = i8;
                $call
            }
            LaneType::I16 => {
                type $t = i16;
                $call
            }
            LaneType::I32 => {
                type $t = i32;
                $call
            }
            LaneType::I64 => {
                type $t = i64;
                $call
            }
            LaneType::U8 | LaneType::Bool => {
                type $t = u8;
                $call
            }
            LaneType::U16 => {
                type $t = u16;
                $call
            }
            LaneType::U32 => {
                type $t = u32;
                $call
            }
            LaneType::U64 => {
                type $t = u64;
                $call
            }
        }
    };
}

fn slab_lane(name: &str, dtype: LaneType, shape: &[u64]) -> Result<LaneSpec> {
    let [slabs, inner @ ..] = shape else {
        return Err(Error::invalid("a single value has no slabs").in_object(name));
    };
    let elems = inner
        .iter()
        .try_fold(1_u64, |n, d| n.checked_mul(*d))
        .ok_or_else(|| Error::invalid("the shape passes 2^64 elements").in_object(name))?;
    let spec = LaneSpec::slab(name, dtype, elems).with_slabs(*slabs);
    Ok(if inner.len() > 1 { spec.with_shape(inner) } else { spec })
}

/// The lane that an `.npy` file becomes.
///
/// # Errors
/// `InvalidArgument` for a type no lane has, or a single value.
pub fn lane_of_npy(name: &str, npy: &NpyFile) -> Result<LaneSpec> {
    slab_lane(name, LaneType::from_numpy(npy.descr())?, npy.shape())
}

/// The lane that an HDF5 dataset becomes; either byte order, as the values are converted.
///
/// # Errors
/// `Unsupported` for a type no lane has; `InvalidArgument` for a scalar.
pub fn lane_of_dataset(name: &str, dataset: &Dataset) -> Result<LaneSpec> {
    slab_lane(name, lane_type(dataset.datatype()).map_err(|e| e.in_object(name))?, dataset.shape())
}

fn lane_type(t: &Datatype) -> Result<LaneType> {
    let unsupported = || Error::unsupported(format!("datatype {t} as a lane"));
    Ok(match (&t.class, t.size) {
        (Class::Integer { signed: true, .. }, 1) => LaneType::I8,
        (Class::Integer { signed: true, .. }, 2) => LaneType::I16,
        (Class::Integer { signed: true, .. }, 4) => LaneType::I32,
        (Class::Integer { signed: true, .. }, 8) => LaneType::I64,
        (Class::Integer { signed: false, .. }, 1) => LaneType::U8,
        (Class::Integer { signed: false, .. }, 2) => LaneType::U16,
        (Class::Integer { signed: false, .. }, 4) => LaneType::U32,
        (Class::Integer { signed: false, .. }, 8) => LaneType::U64,
        (Class::Float { order: ByteOrder::Vax, .. }, _) => return Err(unsupported()),
        (Class::Float { layout, .. }, 2) if layout.exponent_size == 5 => LaneType::F16,
        (Class::Float { .. }, 4) => LaneType::F32,
        (Class::Float { .. }, 8) => LaneType::F64,
        _ => return Err(unsupported()),
    })
}

/// Copies an `.npy` file into the lane made by [`lane_of_npy`], a slab at a time.
///
/// # Errors
/// As reading and writing; the monitor's.
pub fn npy_to_lane(npy: &NpyFile, writer: &StoreWriter, name: &str, monitor: &dyn Monitor) -> Result<()> {
    let spec = lane_of_npy(name, npy)?;
    with_type!(spec.dtype, T => fill::<T>(writer, name, &spec, monitor, |k, slab| {
        npy.read_at(k * spec.elems(), bytemuck::cast_slice_mut(slab))
    }))
}

/// Copies an HDF5 dataset into the lane made by [`lane_of_dataset`], a slab at a time.
///
/// # Errors
/// As reading and writing; the monitor's.
pub fn dataset_to_lane(
    dataset: &Dataset,
    writer: &StoreWriter,
    name: &str,
    monitor: &dyn Monitor,
) -> Result<()> {
    let spec = lane_of_dataset(name, dataset)?;
    let row = |k| {
        let mut start = vec![0; dataset.shape().len()];
        let mut count = dataset.shape().to_vec();
        (start[0], count[0]) = (k, 1);
        Selection::Hyperslab(Hyperslab::new(start, count))
    };
    with_type!(spec.dtype, T => fill::<T>(writer, name, &spec, monitor, |k, slab| {
        dataset.read_into::<T>(&row(k), slab)
    }))
}

fn fill<T: LaneElement>(
    writer: &StoreWriter,
    name: &str,
    spec: &LaneSpec,
    monitor: &dyn Monitor,
    mut read: impl FnMut(u64, &mut [T]) -> Result<()>,
) -> Result<()> {
    let slabs = spec.slab_count(0);
    let elems = usize::try_from(spec.elems()).map_err(|_| Error::limit("the slab does not fit in memory"))?;
    let mut slab = Vec::new();
    slab.try_reserve_exact(elems)
        .map_err(|_| Error::limit(format!("no memory for a slab of {elems} values")))?;
    slab.resize(elems, T::default());
    for k in 0..slabs {
        monitor.poll(&Progress { stage: "copying", done: k, total: slabs })?;
        read(k, &mut slab)?;
        writer.write_slab(name, k, &slab)?;
    }
    Ok(())
}

/// Writes slabs `start..end` of a lane (a flat lane is slab 0) to an `.npy` file of shape `[slabs, …]`, or `[len]` for a flat one.
///
/// # Errors
/// `NotFound`, `InvalidArgument`, `Corrupt`; `AlreadyExists` unless `replace`; the monitor's.
pub fn lane_to_npy(
    store: &Store,
    name: &str,
    range: std::ops::Range<u64>,
    disk: Arc<dyn Disk>,
    path: impl AsRef<Path>,
    replace: bool,
    monitor: &dyn Monitor,
) -> Result<()> {
    let spec = store.lane(name)?;
    if range.start > range.end || range.end > store.slab_count(name)? {
        return Err(Error::invalid(format!("slabs {range:?} are out of range")).in_object(name));
    }
    let shape = match spec.kind {
        LaneKind::Flat { len } => vec![len],
        LaneKind::Slab { elems } => {
            let mut shape = vec![range.end - range.start];
            if spec.shape.is_empty() {
                shape.push(elems)
            } else {
                shape.extend_from_slice(&spec.shape)
            }
            shape
        }
    };
    let mut out = NpyWriter::create(disk, path, spec.dtype.numpy(), &shape)?;
    with_type!(spec.dtype, T => {
        let lane = store.typed::<T>(name)?;
        match spec.kind {
            LaneKind::Flat { .. } => write_blocks(&mut out, lane.flat()?, monitor)?,
            LaneKind::Slab { elems } => {
                let mut slab = vec![T::default(); elems as usize];
                for k in range.clone() {
                    monitor.poll(&Progress { stage: "copying", done: k - range.start, total: range.end - range.start })?;
                    lane.read_window(k, k + 1, &mut slab)?;
                    out.write(bytemuck::cast_slice(&slab))?;
                }
            }
        }
    });
    out.finish(replace)
}

fn write_blocks<T: LaneElement>(out: &mut NpyWriter, values: &[T], monitor: &dyn Monitor) -> Result<()> {
    let total = size_of_val(values) as u64;
    let per_block = (BLOCK as usize / size_of::<T>()).max(1);
    for (i, block) in values.chunks(per_block).enumerate() {
        monitor.poll(&Progress { stage: "copying", done: i as u64 * BLOCK, total })?;
        out.write(bytemuck::cast_slice(block))?;
    }
    Ok(())
}

/// Rewrites a store: another format, and slabs that were appended elsewhere together again. Slabs never written stay so.
///
/// # Errors
/// `Unsupported` when the new format cannot hold it; `Corrupt`; as [`StoreWriter::create_with`]; the monitor's.
pub fn rewrite(
    store: &Store,
    path: impl AsRef<Path>,
    options: WriterOptions,
    monitor: &dyn Monitor,
) -> Result<()> {
    let mut lanes: Vec<LaneSpec> = store.lanes().cloned().collect();
    for lane in &mut lanes {
        if lane.slabs == Some(store.nslabs()) {
            lane.slabs = None;
        }
    }
    let schema = StoreSchema::new(store.nslabs(), lanes.clone()).with_app(store.app().clone());
    let writer = StoreWriter::create_with(path, schema, options)?;
    for (i, spec) in lanes.iter().enumerate() {
        monitor.poll(&Progress { stage: "lanes", done: i as u64, total: lanes.len() as u64 })?;
        with_type!(spec.dtype, T => copy_lane::<T>(store, &writer, spec, monitor)?);
    }
    writer.finish()
}

fn copy_lane<T: LaneElement>(
    store: &Store,
    writer: &StoreWriter,
    spec: &LaneSpec,
    monitor: &dyn Monitor,
) -> Result<()> {
    let lane = store.typed::<T>(&spec.name)?;
    match spec.kind {
        LaneKind::Flat { .. } => {
            if store.is_written(&spec.name, 0)? {
                writer.write_flat(&spec.name, lane.flat()?)?;
            }
        }
        LaneKind::Slab { elems } => {
            let mut slab = vec![T::default(); elems as usize];
            for k in 0..lane.slabs() {
                monitor.poll(&Progress { stage: "slabs", done: k, total: lane.slabs() })?;
                if store.is_written(&spec.name, k)? {
                    lane.read_window(k, k + 1, &mut slab)?;
                    writer.write_slab(&spec.name, k, &slab)?;
                }
            }
        }
    }
    Ok(())
}
