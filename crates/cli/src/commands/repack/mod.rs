//! `tensilo repack`: a file written again, without its garbage, for another libhdf5, with other filters or layouts.

mod space;
pub mod words;

use super::{OpenArguments, refuse_existing};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use space::SpaceArguments;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::hdf5::File;
use tensilo::hdf5::repack::{RepackOptions, repack};
use tensilo::hdf5::write::{Bound, FileWriter, WriteOptions};
use tensilo::{Error, Result};
use words::{FilterWord, LayoutWord, SizeWord};

/// Bytes of the user block that are copied at one time.
const PIECE: u64 = 1 << 20;

/// Arguments of `repack`; the words are those of h5repack.
#[derive(Debug, Args)]
pub struct RepackArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// The file to write.
    pub output: PathBuf,

    /// A filter, as h5repack says it: GZIP=6, SHUF, FLET, SZIP=16,NN, NBIT, SOFF=3,DS, UD=32015,0,1,3, NONE; also
    /// ZSTD=3, LZ4, LZF and BSHUF (with LZ4). "/a,/b:GZIP=6" is for these datasets only. Several make a pipeline.
    #[arg(long = "filter", short = 'f', value_name = "[PATHS:]FILTER")]
    pub filters: Vec<FilterWord>,

    /// A layout, as h5repack says it: CHUNK=64x128, CONTI or COMPA; "/a,/b:CONTI" is for these datasets only.
    #[arg(long = "layout", short = 'l', value_name = "[PATHS:]LAYOUT")]
    pub layouts: Vec<LayoutWord>,

    /// The oldest libhdf5 that must open the file: earliest, v18, v110, v112, v114 or v200, or 0 to 5.
    #[arg(long, visible_alias = "bound", short = 'j', value_name = "BOUND", value_parser = words::bound, default_value = "earliest")]
    pub low: Bound,

    /// The newest libhdf5 whose structures may be used; --low must not be newer.
    #[arg(long, short = 'k', value_name = "BOUND", value_parser = words::bound, default_value = "v200")]
    pub high: Bound,

    /// The file's space and shared messages.
    #[command(flatten)]
    pub space: SpaceArguments,

    /// Leave datasets of fewer bytes as they are.
    #[arg(long, short, value_name = "SIZE", default_value = "0")]
    pub minimum: SizeWord,

    /// Replace an existing file.
    #[arg(long)]
    pub force: bool,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// What was done, for JSON.
#[derive(serde::Serialize)]
struct RepackView {
    file: String,
    bound: &'static str,
    bytes: u64,
    source_bytes: u64,
    groups: u64,
    datasets: u64,
    datatypes: u64,
    chunks_copied: u64,
    chunks_encoded: u64,
    dangling_references: u64,
}

/// Repacks.
pub fn run(a: &RepackArguments, out: &mut Output) -> Outcome {
    refuse_existing(&a.output, a.force)?;
    if a.low > a.high {
        let text = format!("the bound {} is newer than {}", a.low.name(), a.high.name());
        return Err(Error::invalid(text).into());
    }
    let options = options(a)?;
    let source = a.open.open(&a.file)?;
    let user_block = source.space().user_block();
    let write = WriteOptions {
        bound: a.low,
        threads: Threads::new(a.open.threads),
        monitor: Arc::new(out.shared_monitor()),
        ..WriteOptions::default()
    };
    let write = a.space.apply(&source, write)?;
    let mut w = FileWriter::create(SystemDisk::shared(), &a.output, write)?;
    copy_user_block(&source, user_block, &mut w)?;
    let done = repack(&source, &mut w, &options).map_err(|e| hinted(e, a))?;
    let finished = if a.force { w.finish_replacing() } else { w.finish() };
    let bytes = finished.map_err(|e| hinted(e, a))?.bytes;
    let source_bytes = user_block + source.space().source().len().saturating_sub(user_block);
    if out.is_json() {
        let view = RepackView {
            file: a.output.display().to_string(),
            bound: a.low.name(),
            bytes,
            source_bytes,
            groups: done.groups,
            datasets: done.datasets,
            datatypes: done.datatypes,
            chunks_copied: done.chunks_copied,
            chunks_encoded: done.chunks_encoded,
            dangling_references: done.dangling,
        };
        out.json("tensilo.repack/1", &view)?;
    } else {
        let (name, from, to) = (
            human::name(&a.output.display().to_string()).to_string(),
            human::bytes(source_bytes),
            human::bytes(bytes),
        );
        out.line(format_args!(
            "{name}: {}, {}, {from} -> {to}; {} copied, {} encoded",
            human::count(done.groups, "group"),
            human::count(done.datasets, "dataset"),
            human::count(done.chunks_copied, "chunk"),
            done.chunks_encoded
        ))?;
    }
    if done.dangling > 0 {
        out.note(format_args!("{} references led nowhere and are null now", done.dangling));
    }
    Ok(Answer::Yes)
}

fn options(a: &RepackArguments) -> Result<RepackOptions> {
    let mut options = RepackOptions { minimum: a.minimum.0, ..RepackOptions::default() };
    for word in &a.filters {
        word.apply(&mut options);
    }
    for word in &a.layouts {
        word.apply(&mut options)?;
    }
    Ok(options)
}

/// Copies the bytes in front of the superblock.
///
/// # Errors
/// Errors of source and disk.
pub fn copy_user_block(source: &File, bytes: u64, w: &mut FileWriter<'_>) -> Result<()> {
    let mut at = 0;
    let mut piece = Vec::new();
    while at < bytes {
        piece.resize(PIECE.min(bytes - at) as usize, 0);
        source.space().source().read_at(at, &mut piece)?;
        w.write_user_block(at, &piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Says what helps where the bound is too old.
fn hinted(e: Error, a: &RepackArguments) -> Error {
    if e.kind() == tensilo::ErrorKind::Unsupported && e.hint_text().is_none() && a.low < Bound::V200 {
        return e.hint("a newer bound may hold it, such as --low v200");
    }
    e
}
