//! `tensilo pack produce`: the pack and its receipt.

use super::{BudgetArguments, SourceArguments, format2, is_2, object};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use std::path::{Path, PathBuf};
use tensilo::Error;
use tensilo::core::io::SystemDisk;
use tensilo::pack::plan::plan;
use tensilo::pack::produce::{ProduceOptions, produce};
use tensilo::pack::source::inspect::inspect;
use tensilo::pack::v2;
use tensilo::pack::v2::convert::to_format_1;

/// Arguments of `pack produce`.
#[derive(Debug, Args)]
pub struct ProduceArguments {
    /// The source.
    #[command(flatten)]
    pub source: SourceArguments,

    /// Where the pack goes; it must not exist. The receipt goes beside it.
    pub destination: PathBuf,

    /// What may be used.
    #[command(flatten)]
    pub budget: BudgetArguments,

    /// First remove what dead runs left of this destination: partial files, and a receipt without its pack.
    #[arg(long)]
    pub clear_leftovers: bool,
}

/// Produces.
pub fn run(a: &ProduceArguments, out: &mut Output) -> Outcome {
    a.source.by_format(out, |out| run_1(a, out), |out| format2::produce(a, out))
}

fn run_1(a: &ProduceArguments, out: &mut Output) -> Outcome {
    let options = a.budget.options(a.source.threads)?;
    options.backend.require()?;
    let monitor = out.monitor();
    let produce_options = ProduceOptions {
        index_dir: a.source.index_dir.clone(),
        clear_leftovers: a.clear_leftovers,
        ..ProduceOptions::default()
    };
    let made = if is_2(&a.source.source) {
        let pack = v2::read::Pack::open(&a.source.source)?;
        to_format_1(&pack, &a.destination, &options, &produce_options, &monitor)?
    } else {
        let i = inspect(&a.source.source, &a.source.options(Some(a.destination.clone())), &monitor)?;
        let p = plan(&i, &a.destination, &options, &SystemDisk)?;
        produce(&i, &p, &produce_options, &monitor)?
    };
    drop(monitor);
    for path in &made.cleared {
        out.note(format_args!("removed {}", human::name(&path.display().to_string())));
    }
    let r = &made.receipt;
    if out.is_json() {
        let receipt = serde_json::from_slice(&r.encode())
            .map_err(|e| Error::invalid(format!("the receipt is no JSON: {e}")))?;
        let mut body = serde_json::Map::new();
        body.insert("receiptPath".into(), made.receipt_path.display().to_string().into());
        body.insert("receipt".into(), serde_json::Value::Object(object(receipt)?));
        out.json("tensilo.pack.produce/1", &body)?;
        return Ok(Answer::Yes);
    }
    let logical = r.source_shape.iter().fold(2, |n, side| n * u64::from(*side));
    let seconds = r.timing.total_before_atomic_publication_milliseconds / 1e3;
    report(out, &a.destination, &made.receipt_path, r.output_bytes, logical, seconds)
}

/// What was made, for people.
pub(super) fn report(
    out: &mut Output,
    pack: &Path,
    receipt: &Path,
    bytes: u64,
    logical: u64,
    seconds: f64,
) -> Outcome {
    out.line(format_args!("pack        {}", human::name(&pack.display().to_string())))?;
    out.line(format_args!("receipt     {}", human::name(&receipt.display().to_string())))?;
    out.line(format_args!(
        "size        {} of {} ({:.2} : 1)",
        human::bytes(bytes),
        human::bytes(logical),
        logical as f64 / bytes as f64
    ))?;
    out.line(format_args!(
        "time        {seconds:.2} s, {}/s",
        human::bytes((logical as f64 / seconds) as u64)
    ))?;
    Ok(Answer::Yes)
}
