//! `records verify` and `records salvage`.

use super::CodecArguments;
use crate::commands::refuse_existing;
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use tensilo::Error;
use tensilo::core::threads::Threads;
use tensilo::records::Format;
use tensilo::records::store::{Where, WriterOptions, salvage as salvage_store};

/// Arguments of `records verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// The store.
    pub store: PathBuf,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,
}

/// Arguments of `records salvage`.
#[derive(Debug, Args)]
pub struct SalvageArguments {
    /// The damaged store.
    pub store: PathBuf,

    /// The store to make.
    pub destination: PathBuf,

    /// How later appends are compressed; what is salvaged stays as it is stored.
    #[command(flatten)]
    pub codec: CodecArguments,

    /// Replace the destination if it exists.
    #[arg(long)]
    pub force: bool,
}

#[derive(Serialize)]
struct VerifyView {
    store: String,
    good: bool,
    records: u64,
    bad_records: u64,
    bytes: u64,
    problems: u64,
    described: Vec<ProblemView>,
}

#[derive(Serialize)]
struct ProblemView {
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    message: String,
}

#[derive(Serialize)]
struct SalvageView {
    store: String,
    destination: String,
    saved: u64,
    lost: u64,
    generation: u64,
    searched: bool,
    described: Vec<ProblemView>,
}

/// Checks everything.
pub fn verify(a: &VerifyArguments, out: &mut Output) -> Outcome {
    let store = super::open(&a.store)?;
    let verified = store.verify(Threads::new(a.threads), &out.monitor())?;
    let answer = if verified.is_good() { Answer::Yes } else { Answer::No };
    if out.is_json() {
        let described = verified.described.iter().map(|p| {
            let (record, records, field) = match &p.place {
                Where::Record { id, field } => (Some(*id), Some(1), Some(field.clone())),
                Where::Table { first, records } => (Some(*first), Some(*records), None),
                _ => (None, None, None),
            };
            ProblemView { record, records, field, message: p.to_string() }
        });
        let view = VerifyView {
            store: a.store.display().to_string(),
            good: verified.is_good(),
            records: verified.records,
            bad_records: verified.bad_records,
            bytes: verified.bytes,
            problems: verified.problems,
            described: described.collect(),
        };
        out.json("tensilo.records.verify/1", &view)?;
        return Ok(answer);
    }
    for problem in &verified.described {
        out.line(human::name(&problem.to_string()))?;
    }
    if store.format() == Format::Zrecord {
        out.note("a Zrecord store has no checksums, so a changed value cannot be seen");
    }
    let n = verified.problems;
    let shown =
        if verified.described.len() as u64 == n { String::new() } else { " (the first are shown)".into() };
    match n {
        0 => out.line(format_args!(
            "{}, {}: no damage found",
            human::count(verified.records, "record"),
            human::bytes(verified.bytes)
        ))?,
        n => out.line(format_args!(
            "bad: {} of {}; {}{shown}",
            verified.bad_records,
            human::count(verified.records, "record"),
            human::count(n, "problem")
        ))?,
    }
    Ok(answer)
}

/// Copies what is whole.
pub fn salvage(a: &SalvageArguments, out: &mut Output) -> Outcome {
    refuse_existing(&a.destination, a.force)?;
    if a.store.is_dir() {
        return Err(Error::unsupported("a Zrecord store has no checksums to tell which records are whole")
            .in_file(&a.store)
            .hint("`records verify` names those that cannot be read")
            .into());
    }
    let options = WriterOptions {
        encoding: a.codec.codec,
        field_encodings: a.codec.field_codecs.clone(),
        replace: a.force,
        ..WriterOptions::default()
    };
    let answer = salvage_store(&a.store, &a.destination, options, &out.monitor())?;
    let exit = if answer.lost == 0 && !answer.searched { Answer::Yes } else { Answer::No };
    if out.is_json() {
        let described = answer.described.iter().map(|l| ProblemView {
            record: Some(l.first),
            records: Some(l.records),
            field: None,
            message: l.why.clone(),
        });
        let view = SalvageView {
            store: a.store.display().to_string(),
            destination: a.destination.display().to_string(),
            saved: answer.saved,
            lost: answer.lost,
            generation: answer.generation,
            searched: answer.searched,
            described: described.collect(),
        };
        out.json("tensilo.records.salvage/1", &view)?;
        return Ok(exit);
    }
    for lost in &answer.described {
        let last = lost.first + lost.records - 1;
        out.line(format_args!("records {} to {last}: {}", lost.first, human::name(&lost.why)))?;
    }
    if answer.searched {
        out.note("the last commit is not whole; this is the most recent one that is");
    }
    out.line(format_args!(
        "{} saved, {} lost, of commit {}",
        human::count(answer.saved, "record"),
        answer.lost,
        answer.generation
    ))?;
    Ok(exit)
}
