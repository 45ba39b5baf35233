//! `tensilo pack verify`: the proof, by decoding everything.

use super::{format2, is_2, object};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use std::path::PathBuf;
use tensilo::Error;
use tensilo::core::threads::Threads;
use tensilo::pack::verify::{VerifyOptions, verify};

/// Arguments of `pack verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// The pack.
    pub pack: PathBuf,

    /// Do not look for a receipt: prove the pack's contents alone.
    #[arg(long, conflicts_with = "receipt")]
    pub no_receipt: bool,

    /// The receipt, if it is not beside the pack.
    #[arg(long, value_name = "FILE")]
    pub receipt: Option<PathBuf>,

    /// Also hash this source again and compare.
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<PathBuf>,

    /// Which dataset of the source, where it has several.
    #[arg(long, value_name = "NAME", requires = "source")]
    pub dataset: Option<String>,

    /// Only this shard of a pack of format 2; the others are not read.
    #[arg(long, value_name = "N", conflicts_with = "deep")]
    pub shard: Option<u64>,

    /// Decode everything and compare the hash of the counts with the source's; a pack of format 1 always is.
    #[arg(long)]
    pub deep: bool,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,
}

/// Verifies.
pub fn run(a: &VerifyArguments, out: &mut Output) -> Outcome {
    if is_2(&a.pack) {
        return format2::verify(a, out);
    }
    if a.shard.is_some() {
        return Err(Error::unsupported("one shard of a pack of format 1").in_file(&a.pack).into());
    }
    let options = VerifyOptions {
        receipt: !a.no_receipt,
        receipt_path: a.receipt.clone(),
        source: a.source.clone(),
        dataset: a.dataset.clone(),
        threads: Threads::new(a.threads),
        ..VerifyOptions::default()
    };
    let v = verify(&a.pack, &options, &out.monitor())?;
    let answer = if v.is_proven() { Answer::Yes } else { Answer::No };
    if out.is_json() {
        out.json("tensilo.pack.verify/1", &object(v.to_json())?)?;
        return Ok(answer);
    }
    for f in &v.findings {
        out.line(format_args!("{:11} {}", f.subject, human::name(&f.message)))?;
    }
    if let Some(sum) = &v.raw_sha256 {
        out.line(format_args!("raw         {sum}"))?;
    }
    if let Some(sum) = &v.working_sha256 {
        out.line(format_args!("working     {sum}"))?;
    }
    if !v.receipt_checked {
        out.note(
            "without its receipt a pack is not published: header bytes and the file's hash are not proven",
        );
    }
    let name = human::name(&a.pack.display().to_string());
    out.line(format_args!("{name}: {}", if v.is_proven() { "proven" } else { "NOT proven" }))?;
    Ok(answer)
}
