//! `records stats`.

use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use tensilo::core::gather::{FieldShape, Gather};
use tensilo::records::Format;

/// Arguments of `records stats`.
#[derive(Debug, Args)]
pub struct StatsArguments {
    /// The store.
    pub store: PathBuf,
}

#[derive(Serialize)]
struct StatsView {
    store: String,
    format: &'static str,
    records: u64,
    generation: u64,
    live_bytes: u64,
    file_bytes: u64,
    reclaimable: u64,
    fingerprint: String,
    fields: Vec<FieldView>,
    metadata: serde_json::Value,
}

#[derive(Serialize)]
struct FieldView {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    ragged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
}

/// Describes a store.
pub fn run(a: &StatsArguments, out: &mut Output) -> Outcome {
    let store = super::open(&a.store)?;
    let stats = store.stats()?;
    let fields = store.schema().fields().iter().enumerate().map(|(i, f)| {
        let (FieldShape::Fixed(shape) | FieldShape::Ragged(shape)) = &f.shape;
        FieldView {
            name: f.name.clone(),
            dtype: f.dtype.name(),
            shape: shape.clone(),
            ragged: f.is_ragged(),
            encoding: store.encodings().get(i).cloned(),
        }
    });
    let metadata = store.metadata()?.map_or(serde_json::Value::Null, |text| {
        serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text))
    });
    let view = StatsView {
        store: a.store.display().to_string(),
        format: store.format().name(),
        records: stats.records,
        generation: stats.generation,
        live_bytes: stats.live_bytes,
        file_bytes: stats.file_bytes,
        reclaimable: stats.reclaimable,
        fingerprint: store.fingerprint()?.to_string(),
        fields: fields.collect(),
        metadata,
    };
    if out.is_json() {
        out.json("tensilo.records.stats/1", &view)?;
        return Ok(Answer::Yes);
    }
    out.line(format_args!("format       {}", view.format))?;
    out.line(format_args!("records      {}", view.records))?;
    out.line(format_args!("commits      {}", view.generation))?;
    let beside =
        if store.format() == Format::Tensilo { ", and cells of up to 8 bytes in the table" } else { "" };
    out.line(format_args!("live         {}{beside}", human::bytes(view.live_bytes)))?;
    out.line(format_args!("file         {}", human::bytes(view.file_bytes)))?;
    out.line(format_args!("reclaimable  {}", human::bytes(view.reclaimable)))?;
    let mut rows = vec![["field", "dtype", "shape", "codec"].map(String::from).to_vec()];
    for f in &view.fields {
        let shape = match (f.ragged, &f.shape[..]) {
            (false, shape) => human::shape(shape),
            (true, []) => "any".into(),
            (true, shape) => format!("any × {}", human::shape(shape)),
        };
        let codec = f.encoding.as_deref().unwrap_or("of each record");
        rows.push(vec![human::name(&f.name), f.dtype.clone(), shape, human::name(codec)]);
    }
    for line in human::columns(&rows) {
        out.line(line)?;
    }
    if !view.metadata.is_null() {
        out.line(format_args!("metadata     {}", human::name(&view.metadata.to_string())))?;
    }
    Ok(Answer::Yes)
}
