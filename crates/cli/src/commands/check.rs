//! `tensilo check`: is anything in a file damaged?

use super::OpenArguments;
use crate::exit::{Answer, Outcome, Stop};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use tensilo::hdf5::check::{CheckOptions, Finding, Summary, check};
use tensilo::hdf5::open_source;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// Check structures only; decode no data.
    #[arg(long)]
    pub metadata_only: bool,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

#[derive(Serialize)]
struct FindingView<'a> {
    verdict: &'static str,
    object: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    message: &'a str,
}

#[derive(Serialize)]
struct SummaryView {
    sound: bool,
    objects: u64,
    attributes: u64,
    structures: u64,
    chunks: u64,
    bytes: u64,
    damaged: u64,
    unchecked: u64,
}

/// Checks: exit 0 when everything is sound, 1 when something is damaged, 2 when something could not be checked.
pub fn run(a: &CheckArguments, out: &mut Output) -> Outcome {
    let open = a.open.options();
    let (source, members_joined) = open_source(&a.file, open.links)?;
    let options = CheckOptions { open, metadata_only: a.metadata_only, members_joined };
    let monitor = out.monitor();
    let mut stopped = None;
    let summary = check(source, &options, &monitor, &mut |finding| {
        show(finding, out).map_err(|stop| {
            stopped = Some(stop);
            crate::exit::broken_pipe()
        })
    });
    if let Some(stop) = stopped {
        return Err(stop);
    }
    drop(monitor);
    let summary = summary.map_err(|e| Stop::from(e.in_file(&a.file)))?;
    conclude(&summary, out)
}

fn show(finding: &Finding, out: &mut Output) -> Outcome<()> {
    let verdict = finding.verdict.name();
    if out.is_json() {
        let Finding { object, offset, message, .. } = finding;
        return out.json("tensilo.finding/1", &FindingView { verdict, object, offset: *offset, message });
    }
    let object = human::name(&finding.object);
    let offset = finding.offset.map_or_else(String::new, |o| format!(" at byte {o}"));
    out.line(format_args!("{verdict}: {object}{offset}: {}", human::name(&finding.message)))
}

fn conclude(s: &Summary, out: &mut Output) -> Outcome {
    let sound = s.damaged == 0 && s.unchecked == 0;
    if out.is_json() {
        let view = SummaryView {
            sound,
            objects: s.objects,
            attributes: s.attributes,
            structures: s.structures,
            chunks: s.chunks,
            bytes: s.bytes,
            damaged: s.damaged,
            unchecked: s.unchecked,
        };
        out.json("tensilo.check/1", &view)?;
    } else {
        out.line(format_args!(
            "{}: {}, {}, {}, {} of {}",
            match (s.damaged, s.unchecked) {
                (0, 0) => "sound".to_owned(),
                (0, n) => format!("no damage found, {n} not checked"),
                (n, 0) => format!("{n} damaged"),
                (n, m) => format!("{n} damaged, {m} not checked"),
            },
            human::count(s.objects, "object"),
            human::count(s.attributes, "attribute"),
            human::count(s.structures, "structure"),
            human::count(s.chunks, "chunk"),
            human::bytes(s.bytes)
        ))?;
    }
    Ok(match (s.damaged, s.unchecked) {
        (0, 0) => Answer::Yes,
        (0, _) => Answer::Unable,
        _ => Answer::No,
    })
}
