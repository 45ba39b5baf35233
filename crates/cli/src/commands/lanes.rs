//! `tensilo lanes`: lane stores described, checked, made from arrays, turned into arrays, rewritten.
//!
//! JSON schemas: `tensilo.lanes/1`, `tensilo.lanes.verify/1`, `tensilo.lanes.written/1`.

use super::refuse_existing;
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tensilo::convert::lanes as convert;
use tensilo::convert::npy::NpyFile;
use tensilo::core::io::SystemDisk;
use tensilo::hdf5::File;
use tensilo::lanes::{
    FormatVersion, LaneKind, LaneSpec, OpenOptions, Store, StoreSchema, StoreWriter, WriterOptions,
};
use tensilo::{Error, Result};

/// Arguments of `lanes`.
#[derive(Debug, Args)]
pub struct LanesArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: LanesCommand,
}

/// The commands on lane stores.
#[derive(Debug, Subcommand)]
pub enum LanesCommand {
    /// Describe a store: format, lanes, application data.
    Info(StoreArguments),
    /// Compare every slab with its checksum; exit code 1 names what is damaged.
    Verify(StoreArguments),
    /// Write a whole lane to an .npy file.
    Dump(DumpArguments),
    /// Write lanes to an HDF5 file, a dataset each.
    Export(ExportArguments),
    /// Write some slabs of a lane to an .npy file.
    Window(WindowArguments),
    /// Make a store from .npy files and HDF5 datasets, one lane each.
    Create(CreateArguments),
    /// Rewrite a store in the other format, or in order.
    Convert(ConvertArguments),
}

/// The store, and how it is opened.
#[derive(Debug, Args)]
pub struct StoreArguments {
    /// The lane store.
    pub store: PathBuf,

    /// Accept what petektools accepts although it is questionable.
    #[arg(long)]
    pub lenient: bool,
}

impl StoreArguments {
    fn open(&self) -> Result<Store> {
        Store::open_with(&self.store, OpenOptions { lenient: self.lenient, ..OpenOptions::default() })
    }
}

/// Where an array goes.
#[derive(Debug, Args)]
pub struct OutputArguments {
    /// The file to write.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,

    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `lanes dump`.
#[derive(Debug, Args)]
pub struct DumpArguments {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,

    /// The lane.
    pub lane: String,

    /// Where it goes.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Arguments of `lanes export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,

    /// The lanes; without any, all of them.
    pub lanes: Vec<String>,

    /// Where they go.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Arguments of `lanes window`.
#[derive(Debug, Args)]
pub struct WindowArguments {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,

    /// The lane.
    pub lane: String,

    /// The slabs, such as 3:7.
    #[arg(value_parser = range)]
    pub slabs: Range<u64>,

    /// Where they go.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Arguments of `lanes create`.
#[derive(Debug, Args)]
pub struct CreateArguments {
    /// The store to make.
    pub store: PathBuf,

    /// A lane as NAME=FILE.npy or NAME=FILE.h5:/path/of/dataset; the first axis becomes the slabs, an array of one axis
    /// a flat lane.
    #[arg(required = true, value_name = "NAME=SOURCE", value_parser = lane_source)]
    pub lanes: Vec<LaneSource>,

    /// The application's JSON to keep in the store.
    #[arg(long, value_name = "JSON")]
    pub app: Option<String>,

    /// On-disk format.
    #[arg(long, value_enum, default_value_t = Format::Two)]
    pub format: Format,

    /// Replace the store if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `lanes convert`.
#[derive(Debug, Args)]
pub struct ConvertArguments {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,

    /// The store to make.
    pub destination: PathBuf,

    /// On-disk format.
    #[arg(long, value_enum, default_value_t = Format::Two)]
    pub format: Format,

    /// Replace the destination if it exists.
    #[arg(long)]
    pub force: bool,
}

/// On-disk format on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// petektools' format, byte for byte.
    #[value(name = "1")]
    One,
    /// Checksums, more types, growth.
    #[value(name = "2")]
    Two,
}

impl From<Format> for FormatVersion {
    fn from(f: Format) -> Self {
        match f {
            Format::One => Self::V1,
            Format::Two => Self::V2,
        }
    }
}

/// Where a lane comes from.
#[derive(Debug, Clone)]
pub struct LaneSource {
    name: String,
    file: PathBuf,
    dataset: Option<String>,
}

fn lane_source(text: &str) -> std::result::Result<LaneSource, String> {
    let (name, source) = text.split_once('=').ok_or("NAME=SOURCE is wanted, such as PORO=poro.npy")?;
    let (file, dataset) = match source.rsplit_once(":/") {
        Some((file, path)) => (file, Some(format!("/{path}"))),
        None => (source, None),
    };
    if dataset.is_none() && !file.ends_with(".npy") {
        return Err("the source is FILE.npy or FILE.h5:/path".into());
    }
    Ok(LaneSource { name: name.into(), file: file.into(), dataset })
}

fn range(text: &str) -> std::result::Result<Range<u64>, String> {
    let wanted = || format!("slabs are START:END, such as 3:7, not {text:?}");
    let (start, end) = text.split_once(':').ok_or_else(wanted)?;
    let (start, end) = (start.parse().map_err(|_| wanted())?, end.parse().map_err(|_| wanted())?);
    if start > end { Err(wanted()) } else { Ok(start..end) }
}

#[derive(Serialize)]
struct StoreView<'a> {
    file: String,
    format: u8,
    nslabs: u64,
    lanes: Vec<LaneView<'a>>,
    app: &'a serde_json::Value,
}

#[derive(Serialize)]
struct LaneView<'a> {
    name: &'a str,
    dtype: &'static str,
    kind: &'static str,
    elems: u64,
    slabs: u64,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    shape: &'a [u64],
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    chunk: &'a [u64],
    written: u64,
}

#[derive(Serialize)]
struct DamageView {
    lane: Option<String>,
    offset: Option<u64>,
    message: String,
}

#[derive(Serialize)]
struct VerifyView {
    file: String,
    checksums: bool,
    damaged: Vec<DamageView>,
}

#[derive(Serialize)]
struct WrittenView<'a> {
    file: String,
    bytes: u64,
    lanes: Vec<&'a str>,
}

/// Runs one of them.
pub fn run(a: &LanesArguments, out: &mut Output) -> Outcome {
    match &a.command {
        LanesCommand::Info(a) => info(a, out),
        LanesCommand::Verify(a) => verify(a, out),
        LanesCommand::Dump(a) => {
            let store = a.store.open()?;
            let all = 0..store.slab_count(&a.lane).map_err(|e| e.in_file(&a.store.store))?;
            save(&store, &a.lane, all, &a.output, out)
        }
        LanesCommand::Export(a) => export(a, out),
        LanesCommand::Window(a) => save(&a.store.open()?, &a.lane, a.slabs.clone(), &a.output, out),
        LanesCommand::Create(a) => create(a, out),
        LanesCommand::Convert(a) => {
            let store = a.store.open()?;
            refuse_existing(&a.destination, a.force)?;
            let options =
                WriterOptions { version: a.format.into(), replace: a.force, ..WriterOptions::default() };
            convert::rewrite(&store, &a.destination, options, &out.monitor())?;
            wrote(&a.destination, store.lanes().map(|l| l.name.as_str()).collect(), out)
        }
    }
}

/// Refuses before anything is read, not after everything was copied.
/// Says what was written, and where.
fn wrote(path: &Path, lanes: Vec<&str>, out: &mut Output) -> Outcome {
    let bytes = path.metadata().map_err(|e| Error::io("cannot examine", e).in_file(path))?.len();
    if out.is_json() {
        out.json("tensilo.lanes.written/1", &WrittenView { file: path.display().to_string(), bytes, lanes })?;
    } else {
        out.note(format_args!(
            "wrote {} to {}",
            human::bytes(bytes),
            human::name(&path.display().to_string())
        ));
    }
    Ok(Answer::Yes)
}

fn info(a: &StoreArguments, out: &mut Output) -> Outcome {
    let store = a.open()?;
    let lanes = store.lanes().map(|l| lane_view(&store, l)).collect::<Result<Vec<_>>>()?;
    let format = if store.version() == FormatVersion::V1 { 1 } else { 2 };
    if out.is_json() {
        let file = a.store.display().to_string();
        let view = StoreView { file, format, nslabs: store.nslabs(), lanes, app: store.app() };
        out.json("tensilo.lanes/1", &view)?;
        return Ok(Answer::Yes);
    }
    out.line(format_args!("format  {format}"))?;
    out.line(format_args!("slabs   {}", store.nslabs()))?;
    let mut rows =
        vec![["lane", "dtype", "slabs", "written", "elements", "stored as"].map(String::from).to_vec()];
    for l in &lanes {
        let stored = match (l.kind, l.shape, l.chunk) {
            ("flat", ..) => "flat".into(),
            (_, [], _) => "slabs".into(),
            (_, shape, []) => human::shape(shape),
            (_, shape, chunk) => format!("{} in chunks of {}", human::shape(shape), human::shape(chunk)),
        };
        let counts = [l.slabs, l.written, l.elems].map(|n| n.to_string());
        rows.push([&[human::name(l.name), l.dtype.into()][..], &counts, &[stored]].concat());
    }
    for line in human::columns(&rows) {
        out.line(line)?;
    }
    if !store.app().is_null() {
        out.line(format_args!("app     {}", human::name(&store.app().to_string())))?;
    }
    Ok(Answer::Yes)
}

fn lane_view<'a>(store: &Store, l: &'a LaneSpec) -> Result<LaneView<'a>> {
    let slabs = store.slab_count(&l.name)?;
    let mut written = 0;
    for k in 0..slabs {
        written += u64::from(store.is_written(&l.name, k)?);
    }
    let kind = if matches!(l.kind, LaneKind::Flat { .. }) { "flat" } else { "slab" };
    let (dtype, elems) = (l.dtype.name(), l.elems());
    Ok(LaneView { name: &l.name, dtype, kind, elems, slabs, shape: &l.shape, chunk: &l.chunk, written })
}

fn verify(a: &StoreArguments, out: &mut Output) -> Outcome {
    let store = a.open()?;
    let damaged = store.verify_with(&out.monitor())?;
    let checksums = store.version() != FormatVersion::V1;
    let answer = if damaged.is_empty() { Answer::Yes } else { Answer::No };
    if out.is_json() {
        let damaged = damaged
            .iter()
            .map(|e| DamageView {
                lane: e.object().map(str::to_owned),
                offset: e.offset(),
                message: e.message().to_owned(),
            })
            .collect();
        out.json(
            "tensilo.lanes.verify/1",
            &VerifyView { file: a.store.display().to_string(), checksums, damaged },
        )?;
        return Ok(answer);
    }
    for e in &damaged {
        out.line(e)?;
    }
    if !checksums {
        out.note("header and seal agree; format 1 has no checksums, so a changed value cannot be seen");
    }
    let all = if damaged.is_empty() { "no damage found" } else { "damaged" };
    out.line(format_args!("{}: {all}", human::name(&a.store.display().to_string())))?;
    Ok(answer)
}

fn save(store: &Store, lane: &str, slabs: Range<u64>, to: &OutputArguments, out: &mut Output) -> Outcome {
    refuse_existing(&to.output, to.force)?;
    convert::lane_to_npy(store, lane, slabs, SystemDisk::shared(), &to.output, to.force, &out.monitor())?;
    wrote(&to.output, vec![lane], out)
}

fn export(a: &ExportArguments, out: &mut Output) -> Outcome {
    let store = a.store.open()?;
    let lanes: Vec<&str> = match a.lanes.as_slice() {
        [] => store.lanes().map(|l| l.name.as_str()).collect(),
        some => some.iter().map(String::as_str).collect(),
    };
    refuse_existing(&a.output.output, a.output.force)?;
    let (path, force) = (&a.output.output, a.output.force);
    convert::lanes_to_hdf5(&store, &lanes, SystemDisk::shared(), path, force, &out.monitor())?;
    wrote(path, lanes, out)
}

enum Source {
    Npy(NpyFile),
    Dataset(tensilo::hdf5::Dataset),
}

fn create(a: &CreateArguments, out: &mut Output) -> Outcome {
    refuse_existing(&a.store, a.force)?;
    let app = match &a.app {
        Some(text) => {
            serde_json::from_str(text).map_err(|e| Error::invalid(format!("--app is no JSON: {e}")))?
        }
        None => serde_json::Value::Null,
    };
    let (mut sources, mut lanes) = (Vec::new(), Vec::new());
    for s in &a.lanes {
        let (source, lane) = match &s.dataset {
            None => {
                let npy = NpyFile::open(&s.file)?;
                let lane = convert::lane_of_npy(&s.name, &npy).map_err(|e| e.in_file(&s.file))?;
                (Source::Npy(npy), lane)
            }
            Some(path) => {
                let dataset = File::open(&s.file)?.dataset(path)?;
                let lane = convert::lane_of_dataset(&s.name, &dataset).map_err(|e| e.in_file(&s.file))?;
                (Source::Dataset(dataset), lane)
            }
        };
        sources.push(source);
        lanes.push(lane);
    }
    let nslabs = lanes.iter().filter_map(|l| l.slabs).max().unwrap_or(1);
    for l in &mut lanes {
        if l.slabs == Some(nslabs) {
            l.slabs = None;
        }
        if a.format == Format::One {
            l.shape.clear();
        }
    }
    let schema = StoreSchema::new(nslabs, lanes).with_app(app);
    let options = WriterOptions { version: a.format.into(), replace: a.force, ..WriterOptions::default() };
    let writer = StoreWriter::create_with(&a.store, schema, options)?;
    let monitor = out.monitor();
    for (s, source) in a.lanes.iter().zip(&sources) {
        match source {
            Source::Npy(npy) => convert::npy_to_lane(npy, &writer, &s.name, &monitor),
            Source::Dataset(d) => convert::dataset_to_lane(d, &writer, &s.name, &monitor),
        }
        .map_err(|e| e.in_file(&s.file))?;
    }
    writer.finish()?;
    wrote(&a.store, a.lanes.iter().map(|l| l.name.as_str()).collect(), out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_sources_and_ranges_are_read() {
        let s = lane_source("PORO=a/b.h5:/grid/poro").unwrap();
        assert_eq!(
            (s.name.as_str(), s.file.to_str(), s.dataset.as_deref()),
            ("PORO", Some("a/b.h5"), Some("/grid/poro"))
        );
        assert!(lane_source("x=y.npy").unwrap().dataset.is_none());
        assert!(lane_source("y.npy").is_err() && lane_source("x=y.h5").is_err());
        assert_eq!(range("3:7"), Ok(3..7));
        assert!(range("7:3").is_err() && range("3").is_err());
    }
}
