//! `tensilo pack plan`: what a pack will take.

use super::{BudgetArguments, SourceArguments, format2, is_2, note_leftovers, object};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use std::path::PathBuf;
use tensilo::Error;
use tensilo::core::io::SystemDisk;
use tensilo::pack::plan::plan;
use tensilo::pack::source::inspect::inspect;

/// Arguments of `pack plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The source.
    #[command(flatten)]
    pub source: SourceArguments,

    /// Where the pack would be.
    pub destination: PathBuf,

    /// What may be used.
    #[command(flatten)]
    pub budget: BudgetArguments,
}

/// Plans.
pub fn run(a: &PlanArguments, out: &mut Output) -> Outcome {
    if is_2(&a.source.source) {
        let e = "the source is a pack of format 2; produce makes one of format 1 of it without a plan";
        return Err(Error::unsupported(e).in_file(&a.source.source).into());
    }
    a.source.by_format(out, |out| run_1(a, out), |out| format2::plan(a, out))
}

fn run_1(a: &PlanArguments, out: &mut Output) -> Outcome {
    let options = a.budget.options(a.source.threads)?;
    options.backend.require()?;
    let i = inspect(&a.source.source, &a.source.options(Some(a.destination.clone())), &out.monitor())?;
    note_leftovers(&i.leftovers, out);
    let p = plan(&i, &a.destination, &options, &SystemDisk)?;
    if out.is_json() {
        out.json("tensilo.pack.plan/1", &object(p.to_json())?)?;
        return Ok(Answer::Yes);
    }
    out.line(format_args!("profile     {}", p.profile.name()))?;
    out.line(format_args!("shards      {} of {} scans", p.cut.shards, p.cut.scans_per_shard))?;
    out.line(format_args!(
        "work        {} worker{}, {} pass{}",
        p.workers,
        if p.workers == 1 { "" } else { "s" },
        p.passes,
        if p.passes == 1 { "" } else { "es" }
    ))?;
    out.line(format_args!(
        "memory      {} of {} allowed (at least {})",
        human::bytes(p.planned_peak_transient_bytes),
        human::bytes(p.memory),
        human::bytes(p.predicted_peak_transient_bytes)
    ))?;
    out.line(format_args!(
        "disk        at most {} of {} available",
        human::bytes(p.predicted_output_disk_maximum_bytes),
        human::bytes(p.available_disk)
    ))?;
    Ok(Answer::Yes)
}
