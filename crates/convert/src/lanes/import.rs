//! Arrays become lanes: what lane an array is, and the copy, a slab at a time.

use super::export::datatype as native;
use crate::BLOCK;
use crate::npy::NpyFile;
use half::f16;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::format::datatype::{ByteOrder, Class, Datatype};
use tensilo_hdf5::read::Dataset;
use tensilo_lanes::{FlatWriter, LaneKind, LaneSpec, LaneType, StoreWriter};

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

pub(crate) use with_type;

fn lane(name: &str, dtype: LaneType, shape: &[u64]) -> Result<LaneSpec> {
    let (slabs, inner) = match shape {
        [] => return Err(Error::invalid("a single value is no lane").in_object(name)),
        [len] => return Ok(LaneSpec::flat(name, dtype, *len)),
        [slabs, inner @ ..] => (slabs, inner),
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
    lane(name, LaneType::from_numpy(npy.descr())?, npy.shape())
}

/// The lane that an HDF5 dataset becomes; either byte order, as the values are converted.
///
/// # Errors
/// `Unsupported` for a type no lane has; `InvalidArgument` for a scalar.
pub fn lane_of_dataset(name: &str, dataset: &Dataset) -> Result<LaneSpec> {
    lane(name, lane_type(dataset.datatype()).map_err(|e| e.in_object(name))?, dataset.shape())
}

pub(crate) fn lane_type(t: &Datatype) -> Result<LaneType> {
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
        (Class::Enum { .. }, 1) if *t == Datatype::boolean() => LaneType::Bool,
        _ => return Err(unsupported()),
    })
}

/// Copies an `.npy` file into the lane made by [`lane_of_npy`], a slab or a block of a flat lane at a time.
///
/// # Errors
/// As reading and writing; the monitor's.
pub fn npy_to_lane(npy: &NpyFile, writer: &StoreWriter, name: &str, monitor: &dyn Monitor) -> Result<()> {
    let spec = lane_of_npy(name, npy)?;
    fill(writer, &spec, monitor, |piece, bytes| npy.read_at(piece.first, bytes))
}

/// Copies an HDF5 dataset into the lane made by [`lane_of_dataset`], a slab or a block of a flat lane at a time.
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
    let native = *dataset.datatype() == native(spec.dtype);
    fill(writer, &spec, monitor, |piece, bytes| {
        let mut start = vec![0; dataset.shape().len()];
        let mut count = dataset.shape().to_vec();
        (start[0], count[0]) = (piece.row, piece.rows);
        let rows = Selection::Hyperslab(Hyperslab::new(start, count));
        if native {
            return dataset.read_bytes_into_with(&rows, bytes, monitor);
        }
        with_type!(spec.dtype, T => dataset.read_into_with::<T>(&rows, bytemuck::cast_slice_mut(bytes), monitor))
    })
}

/// Elements that are copied together: some rows of the first axis.
struct Piece {
    row: u64,
    rows: u64,
    /// The first of them in C order.
    first: u64,
}

/// Fills a lane piece by piece; `read` is called with each piece and room for its bytes.
fn fill(
    writer: &StoreWriter,
    spec: &LaneSpec,
    monitor: &dyn Monitor,
    mut read: impl FnMut(&Piece, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let size = spec.dtype.size();
    let (rows, step, elems) = match spec.kind {
        LaneKind::Flat { len } => (len, (BLOCK / size).min(len), 1),
        LaneKind::Slab { elems } => (spec.slab_count(0), 1, elems),
    };
    let mut room = buffer(step.checked_mul(elems).and_then(|n| n.checked_mul(size)))?;
    let mut flat = match spec.kind {
        LaneKind::Flat { .. } => Some(writer.flat_writer(&spec.name)?),
        LaneKind::Slab { .. } => None,
    };
    let mut row = 0;
    while row < rows {
        monitor.poll(&Progress { stage: "copying", done: row, total: rows })?;
        let n = step.min(rows - row);
        // No more than the buffer's length, which is a `usize`.
        let room = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut room)[..(n * elems * size) as usize];
        read(&Piece { row, rows: n, first: row * elems }, room)?;
        check_bools(spec, room)?;
        match &mut flat {
            Some(flat) => flat.write(room)?,
            None => writer.write_bytes(&spec.name, Some(row), room)?,
        }
        row += n;
    }
    flat.map_or(Ok(()), FlatWriter::finish)
}

/// Room for this many bytes, aligned for every type.
fn buffer(bytes: Option<u64>) -> Result<Vec<u64>> {
    let words = bytes
        .and_then(|n| usize::try_from(n.div_ceil(8)).ok())
        .ok_or_else(|| Error::limit("a slab does not fit in memory"))?;
    let mut room = Vec::new();
    room.try_reserve_exact(words)
        .map_err(|_| Error::limit(format!("no memory for a slab of {words} × 8 bytes")))?;
    room.resize(words, 0);
    Ok(room)
}

/// A byte of a lane of booleans is 0 or 1; another one is no boolean anywhere.
fn check_bools(spec: &LaneSpec, bytes: &[u8]) -> Result<()> {
    match bytes.iter().find(|b| **b > 1) {
        Some(b) if spec.dtype == LaneType::Bool => {
            Err(Error::corrupt(format!("the byte {b} is no boolean")).in_object(&spec.name))
        }
        _ => Ok(()),
    }
}
