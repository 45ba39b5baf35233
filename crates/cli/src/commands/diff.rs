//! `tensilo diff`: do two files, or two objects, say the same? Exit 0 for yes, 1 for no, 2 where it cannot be told.

use super::OpenArguments;
use crate::exit::{Answer, Outcome, broken_pipe};
use crate::output::{Output, human};
use clap::Args;
use std::path::PathBuf;
use tensilo::Error;
use tensilo::diff::{Finding, Tolerance, diff_within};

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// The first HDF5 file.
    pub first: PathBuf,

    /// The second HDF5 file.
    pub second: PathBuf,

    /// The object to compare, with everything below it; without it everything.
    pub path: Option<String>,

    /// The object of the second file, if its path is another.
    pub second_path: Option<String>,

    /// Pass over what cannot be compared element by element (other kind, type or shape), as h5diff does; it is
    /// printed, but the answer does not depend on it.
    #[arg(long)]
    pub skip_incomparable: bool,

    /// Integers and floats at most this far apart are the same: |a − b| ≤ DISTANCE.
    #[arg(long, short, value_name = "DISTANCE", value_parser = positive, conflicts_with = "relative")]
    pub delta: Option<f64>,

    /// Integers and floats apart by at most this part of the first are the same: |(b − a) / a| ≤ PART.
    #[arg(long, short = 'p', value_name = "PART", value_parser = positive)]
    pub relative: Option<f64>,

    /// Print nothing; the exit code is the answer.
    #[arg(long, short)]
    pub quiet: bool,

    /// How the files are opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("not a positive number".to_owned()),
    }
}

/// Compares and prints what differs.
pub fn run(a: &DiffArguments, out: &mut Output) -> Outcome {
    let (first, second) = (a.open.open(&a.first)?, a.open.open(&a.second)?);
    let path = a.path.as_deref().unwrap_or("/");
    let first = first.object(path)?;
    let second = second.object(a.second_path.as_deref().unwrap_or(path))?;
    let monitor = out.monitor();
    let tolerance = match (a.delta, a.relative) {
        (Some(most), _) => Tolerance::Absolute(most),
        (None, Some(most)) => Tolerance::Relative(most),
        (None, None) => Tolerance::Exact,
    };
    let mut same = true;
    let mut stop = None;
    let mut each = |found: &Finding| -> Result<(), Error> {
        same &= a.skip_incomparable && found.is_incomparable();
        if a.quiet {
            // The first difference is the answer.
            return if same { Ok(()) } else { Err(Error::cancelled()) };
        }
        let printed = match out.is_json() {
            true => out.json("tensilo.diff/1", found),
            false => out.line(line(found)),
        };
        printed.map_err(|e| {
            stop = Some(e);
            broken_pipe()
        })
    };
    let result = diff_within(&first, &second, tolerance, &monitor, &mut each);
    if let Some(stop) = stop {
        return Err(stop);
    }
    if !a.quiet || same {
        result?;
    }
    Ok(if same { Answer::Yes } else { Answer::No })
}

fn line(f: &Finding) -> String {
    let mut text = human::name(&f.path);
    if let Some(name) = &f.attribute {
        text.push_str(&format!(" @{}", human::name(name)));
    }
    text.push_str(&format!(": {}", f.what));
    if let (Some(elements), Some(of), Some(at)) = (f.elements, f.of, &f.at) {
        text.push_str(&format!(": {elements} of {of} differ, first at {at:?}"));
    }
    if let (Some(first), Some(second)) = (&f.first, &f.second) {
        text.push_str(&format!(": {} ≠ {}", human::name(first), human::name(second)));
    }
    text
}
