//! `tensilo read`: a dataset, or a selection of it, as text, `.npy` or raw bytes.

use super::OpenArguments;
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use tensilo::core::io::{Staged, SystemDisk};
use tensilo::core::{Monitor, Progress};
use tensilo::hdf5::{Dataset, NumpyIndex, Resolved};
use tensilo::numpy::{NumpyType, npy_header};
use tensilo::value::decode;
use tensilo::view::FileHeap;
use tensilo::{Error, Result};

/// Arguments of `read`.
#[derive(Debug, Args)]
pub struct ReadArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// The dataset.
    pub path: String,

    /// What to read, as NumPy writes it: "0:10, ..., -1, ::-2", lists "[1, 5]" of integers or True and False, None;
    /// without it everything.
    #[arg(long, short, value_name = "SELECTION", allow_hyphen_values = true)]
    pub select: Option<String>,

    /// Write to this file instead of stdout; "-" is stdout.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// How to write: npy for files whose name ends in .npy, else text on stdout and raw bytes in files.
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// Replace an existing file.
    #[arg(long)]
    pub force: bool,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// How elements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A NumPy file.
    Npy,
    /// The stored bytes of the elements in C order, in the byte order of the file.
    Raw,
    /// One line for each element, or for each row of the last dimension.
    Text,
}

/// Reads and writes.
pub fn run(a: &ReadArguments, out: &mut Output) -> Outcome {
    let file = a.open.open(&a.file)?;
    let dataset = file.dataset(&a.path)?;
    let located = |e: Error| e.in_object(&a.path).in_file(&a.file);
    let index: NumpyIndex = a.select.as_deref().unwrap_or("").parse().map_err(located)?;
    let wanted = index.resolve(dataset.shape()).map_err(located)?;
    let to_file = a.output.as_deref().filter(|p| *p != Path::new("-"));
    let format = a.format.unwrap_or(match to_file {
        Some(p) if p.extension().is_some_and(|e| e == "npy") => Format::Npy,
        Some(_) => Format::Raw,
        None => Format::Text,
    });
    let head = match format {
        Format::Npy => header(&dataset, &wanted).map_err(located)?,
        Format::Raw | Format::Text => Vec::new(),
    };
    if let Some(path) = to_file {
        // An existing file is refused before anything is read.
        if !a.force && path.exists() {
            return Err(Error::already_exists("the file exists")
                .in_file(path)
                .hint("--force replaces it")
                .into());
        }
    }
    let bytes = read(&dataset, &wanted, &out.monitor())?;
    let Some(path) = to_file else {
        if format == Format::Text {
            text(&dataset, &wanted, &bytes, out)?;
        } else {
            out.raw().write_all(&head)?;
            out.raw().write_all(&bytes)?;
        }
        return Ok(Answer::Yes);
    };
    let staged = Staged::create(SystemDisk::shared(), path)?;
    if format == Format::Text {
        let mut at = 0;
        lines(&dataset, &wanted, &bytes, out.cancel(), &mut |line| {
            let line = format!("{line}\n");
            staged.write_at(at, line.as_bytes())?;
            at += line.len() as u64;
            Ok(())
        })?;
    } else {
        staged.write_at(0, &head)?;
        staged.write_at(head.len() as u64, &bytes)?;
    }
    if a.force {
        staged.publish_replace()?
    } else {
        staged.publish_no_replace()?
    };
    out.note(format_args!("wrote {} to {}", human::bytes((head.len() + bytes.len()) as u64), path.display()));
    Ok(Answer::Yes)
}

fn header(dataset: &Dataset, wanted: &Resolved) -> Result<Vec<u8>> {
    let (dtype, inner) = NumpyType::of(dataset.datatype())?;
    let shape: Vec<u64> = wanted.shape.iter().copied().chain(inner).collect();
    Ok(npy_header(&dtype, &shape))
}

/// The stored bytes of what is wanted, in C order.
fn read(dataset: &Dataset, wanted: &Resolved, monitor: &dyn Monitor) -> Result<Vec<u8>> {
    let elements = if dataset.elements() == 0 { 0 } else { wanted.selection.elements(dataset.shape())? };
    let bytes = elements.checked_mul(u64::from(dataset.datatype().size));
    let budget = dataset.file().space().budget();
    let bytes = bytes.ok_or_else(|| Error::limit("the result does not fit in 64 bits"))?;
    let (mut buffer, _charge) = budget.buffer(bytes, "the result")?;
    dataset.read_bytes_into_with(&wanted.selection, &mut buffer, monitor)?;
    Ok(buffer)
}

fn text(dataset: &Dataset, wanted: &Resolved, bytes: &[u8], out: &mut Output) -> Outcome<()> {
    let cancel = out.cancel().clone();
    let json = out.is_json();
    let mut stop = None;
    let mut each = |line: &str| match out.line(line) {
        Ok(()) => Ok(()),
        Err(e) => {
            stop = Some(e);
            Err(Error::cancelled())
        }
    };
    let result = if json {
        elements_as_json(dataset, wanted, bytes, &cancel, &mut each)
    } else {
        lines(dataset, wanted, bytes, &cancel, &mut each)
    };
    match stop {
        Some(stop) => Err(stop),
        None => Ok(result?),
    }
}

/// Elements as text: the last dimension goes along a line.
fn lines(
    dataset: &Dataset,
    wanted: &Resolved,
    bytes: &[u8],
    monitor: &dyn Monitor,
    each: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    let heap = FileHeap(dataset.file());
    let size = (dataset.datatype().size as usize).max(1);
    let row = match wanted.shape.as_slice() {
        [_, .., last] => usize::try_from(*last).unwrap_or(1).max(1),
        _ => 1,
    };
    for row in bytes.chunks(row.saturating_mul(size)) {
        monitor.poll(&Progress::default())?;
        let mut line = String::new();
        for element in row.chunks_exact(size) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&human::name(&decode(dataset.datatype(), element, &heap)?.to_string()));
        }
        each(&line)?;
    }
    Ok(())
}

/// One JSON line: shape, and all elements as a flat list.
fn elements_as_json(
    dataset: &Dataset,
    wanted: &Resolved,
    bytes: &[u8],
    monitor: &dyn Monitor,
    each: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    #[derive(serde::Serialize)]
    struct ReadView<'a> {
        path: &'a str,
        dtype: String,
        shape: &'a [u64],
        values: Vec<tensilo::value::Value>,
    }
    let heap = FileHeap(dataset.file());
    let size = (dataset.datatype().size as usize).max(1);
    let mut values = Vec::new();
    for element in bytes.chunks_exact(size) {
        monitor.poll(&Progress::default())?;
        values.push(decode(dataset.datatype(), element, &heap)?);
    }
    let view = ReadView {
        path: &String::from_utf8_lossy(dataset.path()),
        dtype: tensilo::digest::type_name(dataset.datatype()),
        shape: &wanted.shape,
        values,
    };
    each(&crate::output::json::line("tensilo.read/1", &view)?)
}
