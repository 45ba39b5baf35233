//! `tensilo copy`: an object of one file into another file.

use super::{OpenArguments, refuse_existing};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::hdf5::repack::{RepackOptions, copy_object, repack};
use tensilo::hdf5::write::{Bound, FileWriter, WriteOptions};
use tensilo::{Error, ErrorKind, Result};

/// Arguments of `copy`.
#[derive(Debug, Args)]
pub struct CopyArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// The object in it; a group comes with everything beneath.
    pub path: String,

    /// The file to write.
    pub output: PathBuf,

    /// The object's path in the new file, if not the same.
    #[arg(long = "as", value_name = "PATH")]
    pub name: Option<String>,

    /// Add to the file if it exists: it is written again as a whole, and replaced when all is done.
    #[arg(long)]
    pub into: bool,

    /// The oldest libhdf5 that must open the file: earliest, v18, v110, v112, v114 or v200.
    #[arg(long, value_name = "BOUND", value_parser = super::repack::words::bound, default_value = "earliest")]
    pub bound: Bound,

    /// Replace an existing file.
    #[arg(long, conflicts_with = "into")]
    pub force: bool,

    /// How the files are opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

#[derive(Serialize)]
struct CopyView {
    file: String,
    bound: &'static str,
    groups: u64,
    datasets: u64,
    datatypes: u64,
    dangling_references: u64,
}

/// Copies.
pub fn run(a: &CopyArguments, out: &mut Output) -> Outcome {
    refuse_existing(&a.output, a.force || a.into).map_err(|e| {
        if e.hint_text().is_some() { e.hint("--into adds to it, --force replaces it") } else { e }
    })?;
    let done = copied(a, out).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists | ErrorKind::InvalidArgument
            if a.name.is_none() && e.hint_text().is_none() =>
        {
            e.hint("--as gives the copy another path")
        }
        _ => e,
    })?;
    if out.is_json() {
        let view = CopyView {
            file: a.output.display().to_string(),
            bound: a.bound.name(),
            groups: done.groups,
            datasets: done.datasets,
            datatypes: done.datatypes,
            dangling_references: done.dangling,
        };
        out.json("tensilo.copy/1", &view)?;
    }
    out.note(format_args!(
        "{}, {}, {}",
        human::count(done.groups, "group"),
        human::count(done.datasets, "dataset"),
        human::count(done.datatypes, "datatype")
    ));
    if done.dangling > 0 {
        out.note(format_args!("{} references lead to what was not copied and are null now", done.dangling));
    }
    Ok(Answer::Yes)
}

fn copied(a: &CopyArguments, out: &Output) -> Result<tensilo::hdf5::repack::Repacked> {
    let source = a.open.open(&a.file)?;
    let exists = a.output.symlink_metadata().is_ok();
    let old = if a.into && exists { Some(a.open.open(&a.output)?) } else { None };
    let write = WriteOptions {
        bound: a.bound,
        user_block: old.as_ref().map_or(0, |f| f.space().user_block()),
        threads: Threads::new(a.open.threads),
        monitor: Arc::new(out.shared_monitor()),
        ..WriteOptions::default()
    };
    let mut w = FileWriter::create(SystemDisk::shared(), &a.output, write)?;
    if let Some(old) = &old {
        super::repack::copy_user_block(old, old.space().user_block(), &mut w)?;
        repack(old, &mut w, &RepackOptions::default()).map_err(|e| e.in_file(&a.output))?;
    }
    let name = a.name.as_deref().unwrap_or(&a.path);
    let done =
        copy_object(&source, &a.path, &mut w, name, &RepackOptions::default()).map_err(|e: Error| {
            let own = e.file().is_none();
            if own { e.in_file(&a.file) } else { e }
        })?;
    if a.force || a.into {
        w.finish_replacing()?
    } else {
        w.finish()?
    };
    Ok(done)
}
