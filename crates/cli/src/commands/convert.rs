//! `tensilo convert`: `.npy` and `.npz` files and raw bytes into HDF5 datasets and back, a window at a time.

use super::repack::words::{self, FilterWord};
use super::{OpenArguments, refuse_existing};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::convert::hdf5::{StoredArray, dataset_to_file, datasets};
use tensilo::convert::npy::NpyFile;
use tensilo::convert::npz::{NpzFile, NpzWriter};
use tensilo::core::io::{FileSource, SystemDisk};
use tensilo::core::threads::Threads;
use tensilo::core::{Budget, Limits};
use tensilo::hdf5::write::{Bound, FileWriter, Filters, WriteOptions};
use tensilo::hdf5::{Dataset, Dataspace};
use tensilo::numpy::{NumpyType, npy_header};
use tensilo::{Error, ErrorKind, Result};

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArguments {
    /// A .npy or .npz file, an HDF5 file, or with --dtype and --shape any file of raw elements in C order.
    pub input: PathBuf,

    /// The file to write: HDF5 from .npy, .npz and raw files; .npy, .npz or raw bytes, by its name, from HDF5.
    pub output: PathBuf,

    /// The dataset in the HDF5 file: "data" without this option, or all arrays where one of the files is a .npz.
    #[arg(long, short, value_name = "PATH")]
    pub dataset: Option<String>,

    /// Deflate the members of a .npz file; they are stored without.
    #[arg(long)]
    pub deflate: bool,

    /// NumPy type of raw elements, such as "<f4".
    #[arg(long, value_name = "DTYPE", requires = "shape")]
    pub dtype: Option<String>,

    /// Extents of raw elements, such as 10x512x512.
    #[arg(long, value_name = "NxN", value_parser = extents, requires = "dtype")]
    pub shape: Option<Extents>,

    /// Extents of a chunk, such as 1x512x512; in one piece without.
    #[arg(long, value_name = "NxN", value_parser = extents)]
    pub chunk: Option<Extents>,

    /// A filter, as `repack` takes it; needs --chunk.
    #[arg(long = "filter", short = 'f', value_name = "FILTER", requires = "chunk")]
    pub filters: Vec<FilterWord>,

    /// The oldest libhdf5 that must open the file: earliest, v18, v110, v112, v114 or v200.
    #[arg(long, value_name = "BOUND", value_parser = words::bound, default_value = "earliest")]
    pub bound: Bound,

    /// Replace an existing file.
    #[arg(long)]
    pub force: bool,

    /// How the HDF5 file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// Extents on the command line.
#[derive(Debug, Clone)]
pub struct Extents(Vec<u64>);

fn extents(text: &str) -> std::result::Result<Extents, String> {
    let one = |n: &str| n.parse().map_err(|_| format!("extents are numbers with x between, not {text:?}"));
    text.split('x').map(one).collect::<std::result::Result<_, _>>().map(Extents)
}

#[derive(Serialize)]
struct ConvertView {
    file: String,
    bytes: u64,
}

/// Converts.
pub fn run(a: &ConvertArguments, out: &mut Output) -> Outcome {
    refuse_existing(&a.output, a.force)?;
    let is = |path: &Path, kind: &str| path.extension().is_some_and(|e| e == kind);
    if a.deflate && !is(&a.output, "npz") {
        return Err(Error::invalid("--deflate is for .npz files; --filter compresses datasets").into());
    }
    let name = a.dataset.as_deref().unwrap_or("data");
    let bytes = if let (Some(dtype), Some(Extents(shape))) = (&a.dtype, &a.shape) {
        let datatype = NumpyType::Plain(dtype.clone()).datatype()?;
        let source = Arc::new(FileSource::open(&a.input)?);
        let array = StoredArray::new(source, 0, datatype, shape.clone());
        into_hdf5(a, &array.map_err(|e| e.in_file(&a.input))?, out)?
    } else if is(&a.input, "npy") {
        let npy = NpyFile::open(&a.input)?;
        let datatype =
            NumpyType::from_descr(npy.descr()).and_then(|t| t.datatype()).map_err(|e| e.in_file(&a.input))?;
        into_hdf5(a, &npy.stored(datatype)?, out)?
    } else if is(&a.input, "npz") {
        from_npz(a, out)?
    } else if is(&a.output, "npz") {
        into_npz(a, out)?
    } else {
        let file = a.open.open(&a.input).map_err(|e| match e.kind() {
            ErrorKind::Corrupt => e.hint("--dtype and --shape say what raw elements are"),
            _ => e,
        })?;
        let dataset = file.dataset(name).map_err(|e| match (&a.dataset, e.kind()) {
            (None, ErrorKind::NotFound) => e.hint("--dataset names one; `tensilo ls` lists them"),
            _ => e,
        })?;
        let (dtype, shape) = elements(&dataset).map_err(|e| e.in_object(name).in_file(&a.input))?;
        let head = if is(&a.output, "npy") { npy_header(&dtype, &shape) } else { Vec::new() };
        dataset_to_file(&dataset, &head, SystemDisk::shared(), &a.output, a.force, &out.monitor())?
    };
    if out.is_json() {
        out.json("tensilo.convert/1", &ConvertView { file: a.output.display().to_string(), bytes })?;
    }
    out.note(format_args!("wrote {} to {}", human::bytes(bytes), a.output.display()));
    Ok(Answer::Yes)
}

/// How NumPy sees a dataset.
fn elements(dataset: &Dataset) -> Result<(NumpyType, Vec<u64>)> {
    if matches!(dataset.dataspace(), Dataspace::Null) {
        return Err(Error::unsupported("a null dataspace, which is no array, not even one of no elements"));
    }
    let (dtype, inner) = NumpyType::of(dataset.datatype())?;
    Ok((dtype, dataset.shape().iter().copied().chain(inner).collect()))
}

fn into_hdf5(a: &ConvertArguments, array: &StoredArray, out: &Output) -> Result<u64> {
    let (mut w, filters) = writer(a, out)?;
    let chunk = a.chunk.as_ref().map(|c| c.0.as_slice());
    array.write(w.dataset(a.dataset.as_deref().unwrap_or("data")).filters(filters), chunk)?;
    let finished = if a.force { w.finish_replacing()? } else { w.finish()? };
    Ok(finished.bytes)
}

/// Every array of an archive, or the one that is named.
fn from_npz(a: &ConvertArguments, out: &Output) -> Result<u64> {
    let mut npz = NpzFile::open(&a.input)?;
    let names: Vec<String> = npz.names().to_vec();
    if let Some(wanted) = &a.dataset
        && !names.contains(wanted)
    {
        return Err(Error::not_found(format!("no array is called {wanted:?}")).in_file(&a.input));
    }
    let (mut w, filters) = writer(a, out)?;
    let budget = Budget::new(Limits::default());
    for (i, name) in names.iter().enumerate() {
        if a.dataset.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let array = npz.array(i).map_err(|e| e.in_file(&a.input))?;
        let datatype = NumpyType::from_descr(array.descr()).and_then(|t| t.datatype());
        let datatype = datatype.map_err(|e| e.in_object(name).in_file(&a.input))?;
        let chunk = a.chunk.as_ref().map(|c| c.0.as_slice());
        // Arrays of no axes cannot be chunked, and stay as they are.
        let filters = if array.shape().is_empty() { Filters::new() } else { filters.clone() };
        let dataset = w.dataset(name).filters(filters);
        array.write(dataset, datatype, chunk, &budget).map_err(|e| e.in_file(&a.input))?;
    }
    let finished = if a.force { w.finish_replacing()? } else { w.finish()? };
    Ok(finished.bytes)
}

/// Every dataset of a file, or the one that is named; what NumPy cannot hold is refused.
fn into_npz(a: &ConvertArguments, out: &Output) -> Result<u64> {
    let file = a.open.open(&a.input)?;
    let datasets = match &a.dataset {
        Some(name) => vec![(name.clone(), file.dataset(name)?)],
        None => datasets(&file)?,
    };
    let mut npz = NpzWriter::create(SystemDisk::shared(), &a.output, a.deflate)?;
    for (name, dataset) in &datasets {
        let (dtype, shape) = elements(dataset).map_err(|e| e.in_object(name).in_file(&a.input))?;
        npz.add(name, &npy_header(&dtype, &shape), dataset, &out.monitor())?;
    }
    npz.finish(a.force)
}

fn writer(a: &ConvertArguments, out: &Output) -> Result<(FileWriter<'static>, Filters)> {
    let options = WriteOptions {
        bound: a.bound,
        threads: Threads::new(a.open.threads),
        monitor: Arc::new(out.shared_monitor()),
        ..WriteOptions::default()
    };
    let mut filters = Filters::new();
    for word in &a.filters {
        filters =
            word.behind(filters).ok_or_else(|| Error::invalid("there is only one dataset to filter"))?;
    }
    Ok((FileWriter::create(SystemDisk::shared(), &a.output, options)?, filters))
}
