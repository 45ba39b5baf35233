//! `tensilo pack`: a detector family becomes an exact, bit-packed cache with a receipt.

mod info;
mod inspect;
mod plan;
mod produce;
mod products;
mod read;
mod unpack;
mod verify;

use super::bytes;
use crate::exit::Outcome;
use crate::output::{Output, human};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tensilo::core::threads::Threads;
use tensilo::pack::leftovers::Leftovers;
use tensilo::pack::plan::{PlanOptions, default_memory};
use tensilo::pack::source::inspect::InspectOptions;
use tensilo::pack::{Backend, Profile};
use tensilo::{Error, Result};

/// Arguments of `pack`.
#[derive(Debug, Args)]
pub struct PackArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: PackCommand,
}

/// The steps of packing.
#[derive(Debug, Subcommand)]
pub enum PackCommand {
    /// Find the files of a family, hash them, and describe what they hold.
    Inspect(inspect::InspectArguments),
    /// Say what a pack will take; refuse what cannot work before anything is written.
    Plan(plan::PlanArguments),
    /// Make a pack and its receipt.
    Produce(produce::ProduceArguments),
    /// Prove a pack by decoding all of it: exit code 0 proven, 1 not.
    Verify(verify::VerifyArguments),
    /// Read a frame, the diffraction sum or a virtual detector, as .npy or PNG.
    Read(read::ReadArguments),
    /// Describe a pack without decoding it, and say whether its receipt agrees.
    Info(info::InfoArguments),
    /// Make all exact products in one pass: sums, moments, centre of mass, DPC, bands, bins.
    Products(products::ProductsArguments),
    /// Write the exact counts as .npy, or as HDF5 of the source's layout.
    Unpack(unpack::UnpackArguments),
}

/// Runs one of them.
pub fn run(a: &PackArguments, out: &mut Output) -> Outcome {
    match &a.command {
        PackCommand::Inspect(a) => inspect::run(a, out),
        PackCommand::Plan(a) => plan::run(a, out),
        PackCommand::Produce(a) => produce::run(a, out),
        PackCommand::Verify(a) => verify::run(a, out),
        PackCommand::Read(a) => read::run(a, out),
        PackCommand::Info(a) => info::run(a, out),
        PackCommand::Products(a) => products::run(a, out),
        PackCommand::Unpack(a) => unpack::run(a, out),
    }
}

/// The source, the same for all commands that take one.
#[derive(Debug, Args)]
pub struct SourceArguments {
    /// A *_master.h5, a data file, or a folder with one dataset.
    pub source: PathBuf,

    /// Which dataset, where the folder has several.
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,

    /// Where prepared indexes are kept; your cache folder if not given.
    #[arg(long, value_name = "FOLDER")]
    pub index_dir: Option<PathBuf>,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,
}

impl SourceArguments {
    fn options(&self, destination: Option<PathBuf>) -> InspectOptions {
        InspectOptions {
            dataset: self.dataset.clone(),
            index_dir: self.index_dir.clone(),
            destination,
            threads: Threads::new(self.threads),
            ..InspectOptions::default()
        }
    }
}

/// What a plan depends on.
#[derive(Debug, Args)]
pub struct BudgetArguments {
    /// Memory that may be used, such as 512MiB; 1 GiB or a quarter of the machine's if not given.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,

    /// Disk space that may be used; the measured free space if not given.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub available_disk: Option<u64>,

    /// Who does the work; only cpu-reference is there.
    #[arg(long, value_name = "NAME", default_value = "cpu-reference")]
    pub backend: String,

    /// How values are stored.
    #[arg(long, value_name = "NAME", default_value = "exact-uint8-bitpacked")]
    pub profile: String,
}

impl BudgetArguments {
    fn options(&self, threads: usize) -> Result<PlanOptions> {
        Ok(PlanOptions {
            profile: Profile::parse(&self.profile)?,
            backend: Backend::parse(&self.backend)?,
            memory: self.memory.unwrap_or_else(default_memory),
            available_disk: self.available_disk,
            threads: Threads::new(threads),
        })
    }
}

/// Names what dead runs left.
fn note_leftovers(leftovers: &Leftovers, out: &Output) {
    for path in leftovers.partials.iter().chain(&leftovers.orphan_receipts) {
        out.note(format_args!("left by a run that died: {}", human::name(&path.display().to_string())));
    }
    if !leftovers.is_empty() {
        out.note("--clear-leftovers removes it");
    }
}

/// A JSON object as the body of a named line.
fn object(value: serde_json::Value) -> Result<serde_json::Map<String, serde_json::Value>> {
    match value {
        serde_json::Value::Object(map) => Ok(map),
        _ => Err(Error::invalid("the answer is no JSON object")),
    }
}
