//! `tensilo chunks`: the chunk manifest of a dataset: where each stored chunk is.

use super::OpenArguments;
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use tensilo::Error;
use tensilo::core::{Monitor, Progress};

/// Rows that are aligned with each other.
const PAGE: usize = 1000;

/// Arguments of `chunks`.
#[derive(Debug, Args)]
pub struct ChunksArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// The dataset, which must be chunked.
    pub path: String,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// One stored chunk as data: `tensilo.chunk/1`.
#[derive(Debug, Serialize)]
struct ChunkView {
    /// Coordinates in the chunk grid.
    chunk: Vec<u64>,
    /// Coordinates of its first element.
    start: Vec<u64>,
    /// Absolute byte offset in the file.
    offset: u64,
    /// Stored bytes.
    size: u64,
    /// Bit `i` set means that filter `i` was skipped.
    mask: u32,
}

/// Lists the chunks that are stored, in row-major order.
pub fn run(a: &ChunksArguments, out: &mut Output) -> Outcome {
    let file = a.open.open(&a.file)?;
    let dataset = file.dataset(&a.path)?;
    let Some(shape) = dataset.chunk_shape() else {
        let e = Error::invalid("the dataset is not chunked").in_object(&a.path).in_file(&a.file);
        return Err(e.hint(format!("tensilo info {} {}", a.file.display(), a.path)).into());
    };
    let cancel = out.cancel().clone();
    let mut rows = vec![["first element", "offset", "bytes", "mask"].map(str::to_owned).to_vec()];
    for entry in dataset.manifest()? {
        let start = entry.coords.iter().zip(shape).map(|(k, n)| k.saturating_mul(*n)).collect();
        let (offset, size, mask) = (entry.offset, entry.size, entry.mask);
        let view = ChunkView { chunk: entry.coords, start, offset, size, mask };
        if out.is_json() {
            out.json("tensilo.chunk/1", &view)?;
            continue;
        }
        rows.push(vec![
            format!("{:?}", view.start),
            offset.to_string(),
            size.to_string(),
            format!("{mask:#x}"),
        ]);
        if rows.len() == PAGE {
            cancel.poll(&Progress::default())?;
            print(&mut rows, out)?;
        }
    }
    if !out.is_json() {
        print(&mut rows, out)?;
    }
    Ok(Answer::Yes)
}

fn print(rows: &mut Vec<Vec<String>>, out: &mut Output) -> Outcome<()> {
    for line in human::columns(rows) {
        out.line(line)?;
    }
    rows.clear();
    Ok(())
}
