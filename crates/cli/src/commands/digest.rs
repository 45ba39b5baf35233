//! `tensilo digest`: the canonical digest of a file, as JSON lines whether `--json` is given or not.

use super::OpenArguments;
use crate::exit::{Answer, Outcome, Stop, broken_pipe};
use crate::output::Output;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;
use tensilo::Error;
use tensilo::digest::{DigestOptions, Refs, digest};

/// Arguments of `digest`.
#[derive(Debug, Args)]
pub struct DigestArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// Describe layout, chunks, filters and fill values too.
    #[arg(long)]
    pub storage: bool,

    /// Do not read datasets that take more bytes in memory.
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    pub max_bytes: u64,

    /// How references show the object they refer to.
    #[arg(long, value_enum, default_value_t = RefsArgument::Address)]
    pub refs: RefsArgument,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// Value of `--refs`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum RefsArgument {
    /// By its address.
    Address,
    /// By its path.
    Path,
}

/// Digests: exit 0 when every item is, 1 when some item is not, 2 when the file does not open.
pub fn run(a: &DigestArguments, out: &mut Output) -> Outcome {
    let options = DigestOptions {
        storage: a.storage,
        max_bytes: a.max_bytes,
        refs: match a.refs {
            RefsArgument::Address => Refs::Address,
            RefsArgument::Path => Refs::Path,
        },
        open: a.open.options(),
    };
    let monitor = out.monitor();
    let mut broken = false;
    let summary = digest(&a.file, &options, &monitor, &mut |line| {
        writeln!(out.raw(), "{line}").map_err(|e| {
            broken = e.kind() == std::io::ErrorKind::BrokenPipe;
            if broken { broken_pipe() } else { Error::io("cannot write to stdout", e) }
        })
    });
    let summary = match summary {
        Err(_) if broken => return Err(Stop::BrokenPipe),
        other => other?,
    };
    Ok(match (summary.opened, summary.bad) {
        (false, _) => Answer::Unable,
        (true, 0) => Answer::Yes,
        (true, _) => Answer::No,
    })
}
