//! One data file of a family: its stack of frames, and how they are stored.

use crate::source::qh5_index::{FrameChunk, FrameShape};
use std::path::Path;
use tensilo_core::{Error, ErrorKind, Limits, Result};
use tensilo_filters::{FilterSpec, id};
use tensilo_hdf5::format::datatype::{ByteOrder, Class, Datatype};
use tensilo_hdf5::read::{Dataset, File, Group, OpenOptions};

/// Opens a file of a family.
pub(crate) fn open(path: &Path, limits: &Limits) -> Result<File> {
    File::open_with(path, OpenOptions { limits: limits.clone(), ..OpenOptions::default() })
}

/// The object at a path, if there is one.
pub(crate) fn find(file: &File, path: &str) -> Result<Option<Dataset>> {
    match file.object(path) {
        Ok(object) => match object.into_dataset() {
            Ok(dataset) => Ok(Some(dataset)),
            Err(_) => Ok(None),
        },
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// A stack of frames and where each lies.
#[derive(Debug)]
pub(crate) struct Stack {
    pub shape: FrameShape,
    pub chunks: Vec<FrameChunk>,
}

/// Finds the stack of a data file and checks that it is one that packing takes.
///
/// # Errors
/// `NotFound` without a stack; `Unsupported`, saying what is expected, for another type, chunking or filter.
pub(crate) fn stack(file: &File, path: &Path) -> Result<Stack> {
    let dataset = find_stack(file)?;
    if dataset.file().path() != file.path() {
        return Err(Error::unsupported("the stack of frames is a link to another file").in_file(path));
    }
    let name = String::from_utf8_lossy(dataset.path()).into_owned();
    check(&dataset).map_err(|e| e.in_object(name).in_file(path))
}

/// `/entry/data/data`, then `/data`, else the first dataset of rank 3 by name, depth first.
pub(crate) fn find_stack(file: &File) -> Result<Dataset> {
    for path in ["/entry/data/data", "/data"] {
        if let Some(dataset) = find(file, path)? {
            return Ok(dataset);
        }
    }
    let limits = &file.options().limits;
    let mut waiting = vec![(file.root()?, 0)];
    let mut seen = std::collections::HashSet::new();
    while let Some((group, depth)) = waiting.pop() {
        if depth > limits.depth || !seen.insert(group.address()) {
            continue;
        }
        let mut links = group.links()?;
        links.sort_by(|a, b| a.name().cmp(b.name()));
        let mut below: Vec<Group> = Vec::new();
        for link in &links {
            if !matches!(link.target(), tensilo_hdf5::object::LinkTarget::Hard(_)) {
                continue;
            }
            match group.open_link(link)? {
                tensilo_hdf5::read::Object::Dataset(d) if d.shape().len() == 3 => return Ok(d),
                tensilo_hdf5::read::Object::Group(g) => below.push(g),
                _ => {}
            }
        }
        waiting.extend(below.into_iter().rev().map(|g| (g, depth + 1)));
    }
    Err(Error::not_found("no stack of frames: no /entry/data/data, no /data, no dataset of rank 3"))
}

fn check(dataset: &Dataset) -> Result<Stack> {
    let [frames, rows, columns] = *dataset.shape() else {
        return Err(Error::unsupported(format!("shape {:?}, a stack of frames has rank 3", dataset.shape())));
    };
    let value_bytes = value_bytes(dataset.datatype())?;
    let side = |n: u64| u32::try_from(n).ok().filter(|n| *n > 0);
    let (Some(rows32), Some(columns32)) = (side(rows), side(columns)) else {
        return Err(Error::unsupported(format!("frames of {rows} x {columns} values")));
    };
    if rows32.checked_mul(columns32).is_none() || frames == 0 {
        return Err(Error::unsupported(format!("{frames} frames of {rows} x {columns} values")));
    }
    match dataset.chunk_shape() {
        Some(chunk) if chunk == [1, rows, columns] => {}
        Some(chunk) => {
            return Err(Error::unsupported(format!("chunks of {chunk:?}, one frame per chunk is expected")));
        }
        None => {
            return Err(Error::unsupported(
                "frames are not chunked; bitshuffle/LZ4, one frame per chunk, is expected",
            ));
        }
    }
    check_filters(dataset.filters(), value_bytes)?;
    let shape = FrameShape { detector: [rows32, columns32], frames, value_bytes };
    let entries = dataset.chunks()?;
    let mut chunks = Vec::with_capacity(entries.len());
    for (frame, entry) in entries.iter().enumerate() {
        if entry.coords.first() != Some(&(frame as u64)) {
            return Err(Error::unsupported(format!("frame {frame} is not stored")));
        }
        if entry.mask != 0 {
            return Err(Error::unsupported(format!("frame {frame} is stored without bitshuffle/LZ4")));
        }
        chunks.push(FrameChunk { offset: dataset.file_offset(entry)?, bytes: entry.size });
    }
    if chunks.len() as u64 != frames {
        return Err(Error::unsupported(format!("{} of {frames} frames are stored", chunks.len())));
    }
    Ok(Stack { shape, chunks })
}

fn value_bytes(datatype: &Datatype) -> Result<u32> {
    match &datatype.class {
        Class::Integer { order, signed: false, bits }
            if matches!(datatype.size, 1 | 2)
                && bits.offset == 0
                && u32::from(bits.precision) == 8 * datatype.size
                && (*order == ByteOrder::Little || datatype.size == 1) =>
        {
            Ok(datatype.size)
        }
        _ => Err(Error::unsupported(format!(
            "values of type {}; little-endian uint16 is expected",
            name_of(datatype)
        ))),
    }
}

/// NumPy's name of a type.
fn name_of(datatype: &Datatype) -> String {
    let bits = 8 * datatype.size;
    let order = |o: &ByteOrder| if *o == ByteOrder::Big && bits > 8 { "big-endian " } else { "" };
    match &datatype.class {
        Class::Integer { order: o, signed, .. } => {
            format!("{}{}{bits}", order(o), if *signed { "int" } else { "uint" })
        }
        Class::Float { order: o, .. } => format!("{}float{bits}", order(o)),
        _ => format!("no number, of {} bytes", datatype.size),
    }
}

/// Exactly one filter: bitshuffle with LZ4.
fn check_filters(filters: &[FilterSpec], value_bytes: u32) -> Result<()> {
    if let [only] = filters
        && only.id == id::BITSHUFFLE
        && only.values.get(4) == Some(&2)
        && only.values.get(2) == Some(&value_bytes)
    {
        return Ok(());
    }
    let names: Vec<String> = filters.iter().map(|f| f.id.to_string()).collect();
    Err(Error::unsupported(format!(
        "filters [{}]: not bitshuffle/LZ4 (filter 32008, compressor 2)",
        names.join(", ")
    )))
}
