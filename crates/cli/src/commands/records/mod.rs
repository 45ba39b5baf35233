//! `tensilo records`: record stores made, filled, read, cleaned up and proven.

mod change;
mod check;
mod export;
mod get;
mod import;
mod sources;
mod stats;

use crate::exit::Outcome;
use crate::output::Output;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use tensilo::Result;
use tensilo::core::threads::Threads;
use tensilo::records::store::{Encoding, WriterOptions};
use tensilo::records::{Records, RecordsWriter};

/// Arguments of `records`.
#[derive(Debug, Args)]
pub struct RecordsArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: RecordsCommand,
}

/// The commands on record stores.
#[derive(Debug, Subcommand)]
pub enum RecordsCommand {
    /// Make an empty store with the fields given.
    Create(import::CreateArguments),
    /// Append records from .npy files, HDF5 datasets, packs or folders to a store.
    Append(import::AppendArguments),
    /// Make a store from .npy files, HDF5 datasets along their first axis, the frames of packs, or the files of a folder.
    Import(import::ImportArguments),
    /// Write a field of all records to an .npy file.
    Export(export::ExportArguments),
    /// Show records, or write the bytes of a field of one.
    Get(get::GetArguments),
    /// Describe a store: format, fields, sizes.
    Stats(stats::StatsArguments),
    /// Delete records; the last ones take their places.
    Delete(change::DeleteArguments),
    /// Give the space of deleted records back.
    Compact(change::CompactArguments),
    /// Read and decode everything; exit code 1 names what is damaged.
    Verify(check::VerifyArguments),
    /// Copy every record that is whole from a damaged store to a new one.
    Salvage(check::SalvageArguments),
}

/// Runs one of them.
pub fn run(a: &RecordsArguments, out: &mut Output) -> Outcome {
    match &a.command {
        RecordsCommand::Create(a) => import::create(a, out),
        RecordsCommand::Append(a) => import::append(a, out),
        RecordsCommand::Import(a) => import::run(a, out),
        RecordsCommand::Export(a) => export::run(a, out),
        RecordsCommand::Get(a) => get::run(a, out),
        RecordsCommand::Stats(a) => stats::run(a, out),
        RecordsCommand::Delete(a) => change::delete(a, out),
        RecordsCommand::Compact(a) => change::compact(a, out),
        RecordsCommand::Verify(a) => check::verify(a, out),
        RecordsCommand::Salvage(a) => check::salvage(a, out),
    }
}

/// A store that is to be changed.
#[derive(Debug, Args)]
pub struct WriteArguments {
    /// The store.
    pub store: PathBuf,

    /// Seconds to wait for another writer.
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub wait: f64,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,
}

impl WriteArguments {
    fn options(&self) -> WriterOptions {
        WriterOptions {
            wait: Duration::try_from_secs_f64(self.wait).unwrap_or(Duration::MAX),
            threads: Threads::new(self.threads),
            ..WriterOptions::default()
        }
    }

    fn open(&self) -> Result<RecordsWriter> {
        RecordsWriter::open(&self.store, self.options())
    }
}

/// How records are compressed.
#[derive(Debug, Args)]
pub struct CodecArguments {
    /// Codec of all fields: raw, deflate[:LEVEL], zstd[:LEVEL] or lz4, with shuffle+ or bitshuffle+ ahead.
    #[arg(long, value_name = "CODEC")]
    pub codec: Option<Encoding>,

    /// Codec of one field, as NAME=CODEC; may be repeated.
    #[arg(long = "field-codec", value_name = "NAME=CODEC", value_parser = field_codec)]
    pub field_codecs: Vec<(String, Encoding)>,
}

fn field_codec(text: &str) -> std::result::Result<(String, Encoding), String> {
    let (name, codec) = text.split_once('=').ok_or("NAME=CODEC is wanted, such as image=lz4")?;
    Ok((name.to_owned(), codec.parse().map_err(|e: tensilo::records::store::UnknownEncoding| e.to_string())?))
}

fn open(store: &std::path::Path) -> Result<Records> {
    Records::open(store)
}
