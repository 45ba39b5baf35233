//! `tensilo pack inspect`: which files, what shape, which identity.

use super::info::InfoArguments;
use super::{SourceArguments, format2, is_2, note_leftovers, object};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use std::path::PathBuf;
use tensilo::core::io::SystemDisk;
use tensilo::pack::leftovers;
use tensilo::pack::source::inspect::inspect;

/// Arguments of `pack inspect`.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// The source.
    #[command(flatten)]
    pub source: SourceArguments,

    /// Also look for what dead runs left of this pack, or of the packs in this folder.
    #[arg(long, value_name = "PATH")]
    pub destination: Option<PathBuf>,

    /// Remove what dead runs left there.
    #[arg(long, requires = "destination")]
    pub clear_leftovers: bool,
}

/// Inspects.
pub fn run(a: &InspectArguments, out: &mut Output) -> Outcome {
    if is_2(&a.source.source) {
        return format2::info(&InfoArguments { pack: a.source.source.clone() }, out);
    }
    a.source.by_format(out, |out| run_1(a, out), |out| run_2(a, out))
}

fn run_2(a: &InspectArguments, out: &mut Output) -> Outcome {
    let i = format2::inspected(&a.source, a.destination.as_deref(), out)?;
    handle_leftovers(a, &i.leftovers, out)?;
    format2::inspect(&i, out)
}

fn handle_leftovers(a: &InspectArguments, left: &leftovers::Leftovers, out: &Output) -> tensilo::Result<()> {
    if !a.clear_leftovers {
        note_leftovers(left, out);
        return Ok(());
    }
    for path in leftovers::clear(left, &SystemDisk)? {
        out.note(format_args!("removed {}", human::name(&path.display().to_string())));
    }
    Ok(())
}

fn run_1(a: &InspectArguments, out: &mut Output) -> Outcome {
    let i = inspect(&a.source.source, &a.source.options(a.destination.clone()), &out.monitor())?;
    handle_leftovers(a, &i.leftovers, out)?;
    if out.is_json() {
        out.json("tensilo.pack.inspect/1", &object(i.to_json())?)?;
        return Ok(Answer::Yes);
    }
    let [rows, columns, detector_rows, detector_columns] = i.geometry.shape();
    out.line(format_args!("dataset     {}", human::name(&i.dataset)))?;
    out.line(format_args!(
        "shape       {rows} × {columns} scans of {detector_rows} × {detector_columns} pixels"
    ))?;
    out.line(format_args!("dtype       {}", i.source_dtype))?;
    out.line(format_args!("excluded    {} pixels", i.excluded.len()))?;
    out.line(format_args!("identity    {}", i.source_identity))?;
    let rows: Vec<Vec<String>> = i
        .members
        .iter()
        .map(|m| {
            let path = human::name(&m.path.display().to_string());
            vec![m.role.name().to_owned(), human::bytes(m.bytes), m.sha256.to_string(), path]
        })
        .collect();
    for line in human::columns(&rows) {
        out.line(line)?;
    }
    Ok(Answer::Yes)
}
