//! `tensilo convert`: `.npy` files and raw bytes into HDF5 datasets and back, a window at a time.

use super::repack::words::{self, FilterWord};
use super::{OpenArguments, refuse_existing};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::convert::hdf5::{StoredArray, dataset_to_file};
use tensilo::convert::npy::NpyFile;
use tensilo::core::io::{FileSource, SystemDisk};
use tensilo::core::threads::Threads;
use tensilo::hdf5::Dataset;
use tensilo::hdf5::write::{Bound, FileWriter, Filters, WriteOptions};
use tensilo::numpy::{NumpyType, npy_header};
use tensilo::{Error, Result};

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArguments {
    /// A .npy file, an HDF5 file, or with --dtype and --shape any file of raw elements in C order.
    pub input: PathBuf,

    /// The file to write: HDF5 from .npy and raw files; .npy or raw bytes, by its name, from HDF5.
    pub output: PathBuf,

    /// The dataset in the HDF5 file.
    #[arg(long, short, value_name = "PATH", default_value = "data")]
    pub dataset: String,

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

/// Converts.
pub fn run(a: &ConvertArguments, out: &mut Output) -> Outcome {
    refuse_existing(&a.output, a.force)?;
    let is = |path: &Path, kind: &str| path.extension().is_some_and(|e| e == kind);
    let bytes = if let (Some(dtype), Some(Extents(shape))) = (&a.dtype, &a.shape) {
        let datatype = NumpyType::Plain(dtype.clone()).datatype()?;
        let source = Arc::new(FileSource::open(&a.input)?);
        let array = StoredArray::new(source, 0, datatype, shape.clone());
        into_hdf5(a, &array.map_err(|e| e.in_file(&a.input))?, out)?
    } else if is(&a.input, "npy") {
        let npy = NpyFile::open(&a.input)?;
        let datatype =
            NumpyType::Plain(npy.descr().to_owned()).datatype().map_err(|e| e.in_file(&a.input))?;
        into_hdf5(a, &npy.stored(datatype)?, out)?
    } else {
        let dataset = a.open.open(&a.input)?.dataset(&a.dataset)?;
        let (dtype, shape) = elements(&dataset).map_err(|e| e.in_object(&a.dataset).in_file(&a.input))?;
        let head = if is(&a.output, "npy") { npy_header(&dtype, &shape) } else { Vec::new() };
        dataset_to_file(&dataset, &head, SystemDisk::shared(), &a.output, a.force, &out.monitor())?
    };
    out.note(format_args!("wrote {} to {}", human::bytes(bytes), a.output.display()));
    Ok(Answer::Yes)
}

/// How NumPy sees a dataset.
fn elements(dataset: &Dataset) -> Result<(NumpyType, Vec<u64>)> {
    let (dtype, inner) = NumpyType::of(dataset.datatype())?;
    Ok((dtype, dataset.shape().iter().copied().chain(inner).collect()))
}

fn into_hdf5(a: &ConvertArguments, array: &StoredArray, out: &Output) -> Result<u64> {
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
    let mut w = FileWriter::create(SystemDisk::shared(), &a.output, options)?;
    let chunk = a.chunk.as_ref().map(|c| c.0.as_slice());
    array.write(w.dataset(&a.dataset).filters(filters), chunk)?;
    let finished = if a.force { w.finish_replacing()? } else { w.finish()? };
    Ok(finished.bytes)
}
