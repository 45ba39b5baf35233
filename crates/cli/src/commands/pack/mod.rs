//! `tensilo pack`: a detector family becomes an exact, bit-packed cache with a receipt.

mod format2;
mod info;
mod inspect;
mod plan;
mod produce;
mod products;
mod read;
mod unpack;
mod verify;

use super::bytes;
use crate::exit::{Outcome, Stop};
use crate::output::{Output, human};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use tensilo::core::threads::Threads;
use tensilo::pack::leftovers::Leftovers;
use tensilo::pack::plan::{PlanOptions, default_memory};
use tensilo::pack::source::inspect::InspectOptions;
use tensilo::pack::v2;
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
    /// A *_master.h5, a data file, or a folder with one dataset; for format 2 also any HDF5 or .npy file of counts, or a pack
    /// of format 1.
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

    /// Format of the pack. 1: uint16 families, read by other programs too. 2: any counts, any shape, smaller. auto: 1
    /// where it takes the source, else 2.
    #[arg(long, value_enum, default_value_t = Format::One)]
    pub format: Format,

    /// Path of the dataset in an HDF5 file, for format 2.
    #[arg(long, value_name = "PATH")]
    pub object: Option<String>,

    /// Shape of the scan, such as 512,512, for format 2; what the source says if not given.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub scan_shape: Option<Vec<u64>>,

    /// How many of the last axes are the detector's, for format 2.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub detector_axes: usize,
}

/// Which format a pack has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Format 1.
    #[value(name = "1")]
    One,
    /// Format 2.
    #[value(name = "2")]
    Two,
    /// Format 1 where it takes the source, else format 2.
    #[value(name = "auto")]
    Auto,
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

    fn options_2(&self, destination: Option<PathBuf>) -> v2::source::inspect::InspectOptions {
        v2::source::inspect::InspectOptions {
            dataset: self.dataset.clone(),
            object: self.object.clone(),
            scan_shape: self.scan_shape.clone(),
            detector_axes: self.detector_axes,
            destination,
            threads: Threads::new(self.threads),
            ..v2::source::inspect::InspectOptions::default()
        }
    }

    /// Does what format 1 does, or what format 2 does; says why where it chooses.
    fn by_format(
        &self,
        out: &mut Output,
        one: impl FnOnce(&mut Output) -> Outcome,
        two: impl FnOnce(&mut Output) -> Outcome,
    ) -> Outcome {
        let for_2 = self.object.is_some() || self.scan_shape.is_some() || self.detector_axes != 2;
        match self.format {
            Format::Two => return two(out),
            Format::One if for_2 => {
                let e = "--object, --scan-shape and --detector-axes are for format 2";
                return Err(Error::invalid(e).hint("--format 2").into());
            }
            Format::Auto if for_2 => {
                out.note("format 2: the source is described by hand");
                return two(out);
            }
            Format::One | Format::Auto => {}
        }
        match one(out) {
            Err(Stop::Error(e)) => {
                let e = v2::hint_format_2(e, &self.source, &self.options_2(None));
                if self.format == Format::Auto && e.hint_text() == Some("--format 2") {
                    out.note(format_args!("format 2, as format 1 refuses: {}", e.message()));
                    return two(out);
                }
                Err(e.into())
            }
            other => {
                if self.format == Format::Auto {
                    out.note("format 1: it takes the source, and other programs read it");
                }
                other
            }
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

/// Is the file a pack of format 2?
fn is_2(path: &std::path::Path) -> bool {
    v2::is_format_2(path).unwrap_or(false)
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
