//! `tensilo dump`: a file, or one object of it, as text in the layout of `h5dump`, or as JSON lines.

use super::OpenArguments;
use crate::exit::{Answer, Outcome, Stop, broken_pipe};
use crate::output::Output;
use clap::Args;
use serde::Serialize;
use std::collections::HashSet;
use std::path::PathBuf;
use tensilo::core::{Monitor, Progress};
use tensilo::dump::{DumpOptions, dump};
use tensilo::hdf5::{Dataset, File, NumpyIndex, Object};
use tensilo::value::{Value, decode};
use tensilo::view::{self, FileHeap, LinkView, ObjectView};
use tensilo::{Error, Result};

/// Arguments of `dump`.
#[derive(Debug, Args)]
pub struct DumpArguments {
    /// The HDF5 file.
    pub file: PathBuf,

    /// The object; without it the whole file.
    pub path: Option<String>,

    /// Print no data.
    #[arg(long, short = 'H')]
    pub header: bool,

    /// Print data of attributes, but not of datasets.
    #[arg(long, short = 'A', conflicts_with = "header")]
    pub attributes: bool,

    /// Which elements of the dataset PATH, as NumPy writes it: "0:10, :, -1, ::2".
    #[arg(long, short, value_name = "SELECTION", allow_hyphen_values = true, requires = "path")]
    pub select: Option<String>,

    /// How the file is opened.
    #[command(flatten)]
    pub open: OpenArguments,
}

/// Prints.
pub fn run(a: &DumpArguments, out: &mut Output) -> Outcome {
    let file = a.open.open(&a.file)?;
    let located = |e: Error| match &a.path {
        Some(path) => e.in_object(path).in_file(&a.file),
        None => e.in_file(&a.file),
    };
    let select = a.select.as_deref().map(str::parse::<NumpyIndex>).transpose().map_err(located)?;
    if out.is_json() {
        return json(a, &file, select.as_ref(), out);
    }
    let options =
        DumpOptions { header_only: a.header, attributes_only: a.attributes, path: a.path.clone(), select };
    let cancel = out.cancel().clone();
    let mut stopped = None;
    let result = dump(&file, &options, &cancel, &mut |line| {
        out.line(line).map_err(|stop| {
            stopped = Some(stop);
            broken_pipe()
        })
    });
    match stopped {
        Some(stop) => Err(stop),
        None => result.map(|()| Answer::Yes).map_err(|e| Stop::from(located(e))),
    }
}

#[derive(Serialize)]
struct ObjectLine {
    #[serde(flatten)]
    object: ObjectView,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// One line for each object, and one for each link that is no object: a walk in the order of names.
fn json(a: &DumpArguments, file: &File, select: Option<&NumpyIndex>, out: &mut Output) -> Outcome {
    let cancel = out.cancel().clone();
    let mut seen = HashSet::new();
    let mut todo = vec![file.object(a.path.as_deref().unwrap_or("/"))?];
    while let Some(object) = todo.pop() {
        cancel.poll(&Progress { stage: "dumping", done: seen.len() as u64, total: 0 })?;
        if !seen.insert(object.address()) {
            continue;
        }
        let mut line = ObjectLine { object: view::object(&object)?, selected: None, data: None, error: None };
        if let Object::Dataset(d) = &object
            && !a.header
            && !a.attributes
        {
            match values(d, select, &cancel) {
                Ok((shape, data)) => {
                    line.selected = select.map(|_| shape);
                    line.data = Some(data);
                }
                Err(e) if e.kind() == tensilo::ErrorKind::Cancelled || select.is_some() => {
                    return Err(e.into());
                }
                Err(e) => line.error = Some(e.message().to_owned()),
            }
        }
        out.json("tensilo.dump/1", &line)?;
        let Object::Group(group) = object else { continue };
        let mut links = group.links()?;
        links.sort_by(|a, b| a.name().cmp(b.name()));
        let mut below = Vec::new();
        for link in &links {
            let shown: LinkView = view::link(&group, link);
            match shown.kind {
                "group" | "dataset" | "datatype" => below.extend(group.open_link(link).ok()),
                _ => out.json("tensilo.ls/1", &shown)?,
            }
        }
        todo.extend(below.into_iter().rev());
    }
    Ok(Answer::Yes)
}

/// Shape and elements, in C order, of what is selected.
fn values(d: &Dataset, select: Option<&NumpyIndex>, monitor: &dyn Monitor) -> Result<(Vec<u64>, Vec<Value>)> {
    let all: NumpyIndex = "".parse()?;
    let wanted = select.unwrap_or(&all).resolve(d.shape())?;
    if d.elements() == 0 {
        return Ok((wanted.shape, Vec::new()));
    }
    let bytes = d.read_bytes(&wanted.selection)?;
    let heap = FileHeap(d.file());
    let mut values = Vec::new();
    for (i, element) in bytes.chunks_exact((d.datatype().size as usize).max(1)).enumerate() {
        if i % 4096 == 0 {
            monitor.poll(&Progress::default())?;
        }
        values.push(decode(d.datatype(), element, &heap)?);
    }
    Ok((wanted.shape, values))
}
