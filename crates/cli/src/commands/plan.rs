//! `tensilo plan`: what reading a dataset, or a selection of it, would touch: chunks, byte ranges, bytes; of a virtual
//! dataset, those of its sources.

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
struct PlanView {
    /// The file of a source of a virtual dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    path: String,
    /// Shape of the result.
    shape: Vec<u64>,
    /// Bytes of the result.
    result_bytes: u64,
    /// Chunks that are touched.
    chunks: usize,
    /// Of them, those that hold nothing but the fill value.
    unwritten: usize,
    /// Bytes that are asked for, sources' included.
    fetched_bytes: u64,
    /// What is asked for, first byte and end, in this order.
    ranges: Vec<(u64, u64)>,
    /// One for each chunk, in the order of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepView>>,
    /// Of a virtual dataset, what is done to each source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<PlanView>,
}

impl PlanView {
    fn new(path: &str, shape: &[u64], plan: &ReadPlan, summary: bool) -> Self {
        let source = |s: &tensilo::hdf5::SourcePlan| Self {
            file: s.file.as_ref().map(|f| f.to_string_lossy().into_owned()),
            ..Self::new(&String::from_utf8_lossy(&s.path), s.plan.shape(), &s.plan, summary)
        };
        let steps = || plan.steps().map(|(chunk, source)| StepView::new(chunk, source)).collect();
        Self {
            file: None,
            path: path.to_owned(),
            shape: shape.to_vec(),
            result_bytes: plan.result_bytes(),
            chunks: plan.steps().count(),
            unwritten: plan.steps().filter(|(_, s)| *s == Source::Fill).count(),
            fetched_bytes: plan.fetched_bytes(),
            ranges: plan.ranges().iter().map(|r| (r.start, r.end)).collect(),
            steps: (!summary).then(steps),
            sources: plan.sources().iter().map(source).collect(),
        }
    }
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
    let view = PlanView::new(&a.path, &wanted.shape, &plan, a.summary);
    if out.is_json() {
        out.json("tensilo.plan/1", &view)?;
    } else {
        text(&view, &plan, out)?;
    }
    Ok(Answer::Yes)
}

fn text(view: &PlanView, plan: &ReadPlan, out: &mut Output) -> Outcome<()> {
    out.line(format_args!(
        "result     {}  {} ({} bytes)",
        human::shape(&view.shape),
        human::bytes(view.result_bytes),
        view.result_bytes
    ))?;
    if view.sources.is_empty() {
        out.line(format_args!("chunks     {} touched, {} of them unwritten", view.chunks, view.unwritten))?;
        out.line(format_args!(
            "file       {} ({} bytes), requests: {}",
            human::bytes(view.fetched_bytes),
            view.fetched_bytes,
            view.ranges.len()
        ))?;
    } else {
        out.line(format_args!(
            "sources    {}, {} ({} bytes)",
            view.sources.len(),
            human::bytes(view.fetched_bytes),
            view.fetched_bytes
        ))?;
    }
    if view.steps.is_some() {
        for (chunk, source) in plan.steps() {
            out.line(format_args!("{chunk:?}  {source}"))?;
        }
    }
    for (source, of) in view.sources.iter().zip(plan.sources()) {
        let file = source.file.as_deref().unwrap_or("");
        out.line(format_args!("\n{} {}", human::name(file), human::name(&source.path)))?;
        text(source, &of.plan, out)?;
    }
    Ok(())
}
