//! The command line.

use crate::commands;
use clap::{Parser, Subcommand};

/// Read, write and check HDF5 files; pack detector families exactly; keep lanes and records.
///
/// The answer goes to stdout, progress and notes to stderr.
///
/// Exit codes: 0 done, or the answer is yes; 1 it was checked and the answer is no; 2 it could not be done;
/// 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "tensilo", version, max_term_width = 100)]
pub struct Arguments {
    /// Print JSON lines with a named, versioned schema instead of text.
    #[arg(long, global = true)]
    pub json: bool,

    /// Say more: causes of errors.
    #[arg(long, short, global = true)]
    pub verbose: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List what is in a file.
    Ls(commands::ls::LsArguments),
    /// Describe a file or an object: type, shape, storage, attributes.
    Info(commands::info::InfoArguments),
    /// Read a dataset, or a selection of it, as text, .npy or raw bytes.
    Read(commands::read::ReadArguments),
    /// Say what a read would touch: chunks, byte ranges, bytes.
    Plan(commands::plan::PlanArguments),
    /// List where each stored chunk of a dataset is.
    Chunks(commands::chunks::ChunksArguments),
    /// Compare two files or objects: exit 0 when they say the same, 1 when not.
    Diff(commands::diff::DiffArguments),
    /// Check a whole file: every structure, checksum and chunk.
    Check(commands::check::CheckArguments),
    /// Print a file or an object with its data, as h5dump does.
    Dump(commands::dump::DumpArguments),
    /// Print a digest of what a file says, the same for every implementation.
    Digest(commands::digest::DigestArguments),
    /// Write a file again: smaller, for another libhdf5, with other filters or layouts.
    Repack(commands::repack::RepackArguments),
    /// Copy an object, with all that is beneath it, into another file.
    Copy(commands::copy::CopyArguments),
    /// Turn .npy files and raw bytes into HDF5 datasets, and back.
    Convert(commands::convert::ConvertArguments),
    /// Turn a detector family into an exact, much smaller cache with a receipt; prove it; read it.
    Pack(commands::pack::PackArguments),
    /// Describe, check, make and convert lane stores.
    Lanes(commands::lanes::LanesArguments),
    /// Make, fill, read, clean up, check and save record stores.
    Records(commands::records::RecordsArguments),
    /// Print a completion script for a shell.
    Completions(commands::completions::CompletionsArguments),
    /// Print the manual page.
    Man,
}
