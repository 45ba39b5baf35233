//! `tensilo plan`: what reading a dataset, or a selection of it, would touch: chunks, byte ranges, bytes.

use super::OpenArguments;
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use tensilo::Error;
use tensilo::hdf5::{NumpyIndex, ReadPlan, Source};

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// The dataset.
    pub path: String,

    /// What would be read, as NumPy writes it: "0:10, ..., -1, [1, 5]"; without it everything.
    #[arg(long, short, value_name = "SELECTION", allow_hyphen_values = true)]
    pub select: Option<String>,

    /// Print the sums only.
    #[arg(long)]
    pub summary: bool,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// The plan as data: `tensilo.plan/1`.
#[derive(Debug, Serialize)]
struct PlanView<'a> {
    path: &'a str,
    /// Shape of the result.
    shape: &'a [u64],
    /// Bytes of the result.
    result_bytes: u64,
    /// Chunks that are touched.
    chunks: usize,
    /// Of them, those that hold nothing but the fill value.
    unwritten: usize,
    /// Bytes that are asked for.
    fetched_bytes: u64,
    /// What is asked for, first byte and end, in this order.
    ranges: Vec<(u64, u64)>,
    /// One for each chunk, in the order of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepView>>,
}

#[derive(Debug, Serialize)]
struct StepView {
    /// Coordinates in the chunk grid.
    chunk: Vec<u64>,
    /// `filtered`, `plain`, `header` or `fill`.
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<u32>,
}

impl StepView {
    fn new(chunk: Vec<u64>, source: Source) -> Self {
        let of = |source, offset, size, mask| Self { chunk, source, offset, size, mask };
        match source {
            Source::Filtered { offset, size, mask } => of("filtered", Some(offset), Some(size), Some(mask)),
            Source::Plain { offset } => of("plain", Some(offset), None, None),
            Source::Header => of("header", None, None, None),
            Source::Fill => of("fill", None, None, None),
        }
    }
}

/// Plans and prints.
pub fn run(a: &PlanArguments, out: &mut Output) -> Outcome {
    let file = a.open.open(&a.file)?;
    let dataset = file.dataset(&a.path)?;
    let located = |e: Error| e.in_object(&a.path).in_file(&a.file);
    let index: NumpyIndex = a.select.as_deref().unwrap_or("").parse().map_err(located)?;
    let wanted = index.resolve(dataset.shape()).map_err(located)?;
    let plan = dataset.plan(&wanted.selection)?;
    let steps: Vec<(Vec<u64>, Source)> = plan.steps().collect();
    let ranges = plan.ranges();
    let view = PlanView {
        path: &a.path,
        shape: &wanted.shape,
        result_bytes: plan.result_bytes(),
        chunks: steps.len(),
        unwritten: steps.iter().filter(|(_, s)| *s == Source::Fill).count(),
        fetched_bytes: plan.fetched_bytes(),
        ranges: ranges.iter().map(|r| (r.start, r.end)).collect(),
        steps: match a.summary {
            true => None,
            false => Some(steps.into_iter().map(|(chunk, source)| StepView::new(chunk, source)).collect()),
        },
    };
    if out.is_json() {
        out.json("tensilo.plan/1", &view)?;
    } else {
        text(&view, &plan, out)?;
    }
    Ok(Answer::Yes)
}

fn text(view: &PlanView<'_>, plan: &ReadPlan, out: &mut Output) -> Outcome<()> {
    out.line(format_args!(
        "result     {}  {} ({} bytes)",
        human::shape(view.shape),
        human::bytes(view.result_bytes),
        view.result_bytes
    ))?;
    out.line(format_args!("chunks     {} touched, {} of them unwritten", view.chunks, view.unwritten))?;
    out.line(format_args!(
        "file       {} ({} bytes), requests: {}",
        human::bytes(view.fetched_bytes),
        view.fetched_bytes,
        view.ranges.len()
    ))?;
    if view.steps.is_none() {
        return Ok(());
    }
    for (chunk, source) in plan.steps() {
        out.line(format_args!("{chunk:?}  {source}"))?;
    }
    Ok(())
}
