//! `records create`, `records append` and `records import`.

use super::sources::{Source, source};
use super::{CodecArguments, WriteArguments};
use crate::commands::refuse_existing;
use crate::exit::{Answer, Outcome};
use crate::output::Output;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use tensilo::convert::records as convert;
use tensilo::core::dtype::DType;
use tensilo::core::gather::{FieldSchema, Gather, Schema};
use tensilo::core::threads::Threads;
use tensilo::records::RecordsWriter;
use tensilo::records::store::WriterOptions;
use tensilo::{Error, Result};

/// Arguments of `records create`.
#[derive(Debug, Args)]
pub struct CreateArguments {
    /// The store to make.
    pub store: PathBuf,

    /// A field as NAME:DTYPE, NAME:DTYPE:28x28, or NAME:DTYPE:*x3 where the first dimension differs between records.
    #[arg(long = "field", required = true, value_name = "FIELD", value_parser = field)]
    pub fields: Vec<FieldSchema>,

    /// How it is compressed.
    #[command(flatten)]
    pub codec: CodecArguments,

    /// JSON to keep in the store.
    #[arg(long, value_name = "JSON")]
    pub metadata: Option<String>,

    /// Replace the store if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `records append`.
#[derive(Debug, Args)]
pub struct AppendArguments {
    /// The store.
    #[command(flatten)]
    pub write: WriteArguments,

    /// One source for each field, as [NAME=]SOURCE: FILE.npy, VALUES.npy,LENGTHS.npy for a ragged field, FILE.h5:/dataset,
    /// a pack, or a folder. The name is data if not given.
    #[arg(required = true, value_name = "[NAME=]SOURCE", value_parser = source)]
    pub sources: Vec<Source>,
}

/// Arguments of `records import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// The store to make.
    pub store: PathBuf,

    /// One source for each field, as [NAME=]SOURCE: FILE.npy, VALUES.npy,LENGTHS.npy for a ragged field, FILE.h5:/dataset,
    /// a pack, or a folder. The name is data if not given.
    #[arg(required = true, value_name = "[NAME=]SOURCE", value_parser = source)]
    pub sources: Vec<Source>,

    /// How it is compressed.
    #[command(flatten)]
    pub codec: CodecArguments,

    /// JSON to keep in the store.
    #[arg(long, value_name = "JSON")]
    pub metadata: Option<String>,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,

    /// Replace the store if it exists.
    #[arg(long)]
    pub force: bool,
}

fn field(text: &str) -> std::result::Result<FieldSchema, String> {
    let wanted = || format!("a field is NAME:DTYPE or NAME:DTYPE:28x28, not {text:?}");
    let mut parts = text.split(':');
    let (name, dtype) = (parts.next().ok_or_else(wanted)?, parts.next().ok_or_else(wanted)?);
    let dtype: DType = dtype.parse().map_err(|e: Error| e.message().to_owned())?;
    let mut dims: Vec<&str> = parts.next().map(|shape| shape.split('x').collect()).unwrap_or_default();
    if parts.next().is_some() || name.is_empty() {
        return Err(wanted());
    }
    let ragged = dims.first() == Some(&"*");
    if ragged {
        dims.remove(0);
    }
    let dims =
        dims.iter().map(|d| d.parse().map_err(|_| wanted())).collect::<std::result::Result<Vec<u64>, _>>()?;
    Ok(if ragged { FieldSchema::ragged(name, dtype, dims) } else { FieldSchema::fixed(name, dtype, dims) })
}

#[derive(Serialize)]
struct FilledView {
    store: String,
    appended: u64,
    records: u64,
}

fn told(store: &std::path::Path, appended: u64, records: u64, out: &mut Output) -> Outcome {
    let view = FilledView { store: store.display().to_string(), appended, records };
    if out.is_json() {
        out.json("tensilo.records.append/1", &view)?;
    } else {
        out.line(format_args!("{appended} records appended, {records} in the store"))?;
    }
    Ok(Answer::Yes)
}

/// Makes an empty store.
pub fn create(a: &CreateArguments, out: &mut Output) -> Outcome {
    let options = WriterOptions {
        encoding: a.codec.codec,
        field_encodings: a.codec.field_codecs.clone(),
        metadata: a.metadata.clone(),
        replace: a.force,
        ..WriterOptions::default()
    };
    refuse_existing(&a.store, a.force)?;
    RecordsWriter::create(&a.store, Schema::new(a.fields.clone())?, options)?;
    if !out.is_json() {
        out.line(format_args!("{} made, without records", a.store.display()))?;
        return Ok(Answer::Yes);
    }
    told(&a.store, 0, 0, out)
}

fn open_all(sources: &[Source]) -> Result<Vec<Box<dyn Gather>>> {
    sources.iter().map(Source::open).collect()
}

/// Appends to a store.
pub fn append(a: &AppendArguments, out: &mut Output) -> Outcome {
    let sources = open_all(&a.sources)?;
    let mut writer = a.write.open()?;
    let sources: Vec<&dyn Gather> = sources.iter().map(|s| &**s).collect();
    let n = convert::import(&sources, &mut writer, Threads::new(a.write.threads), &out.monitor())?;
    told(&a.write.store, n, writer.len(), out)
}

/// Makes a store of what there is.
pub fn run(a: &ImportArguments, out: &mut Output) -> Outcome {
    refuse_existing(&a.store, a.force)?;
    let sources = open_all(&a.sources)?;
    let sources: Vec<&dyn Gather> = sources.iter().map(|s| &**s).collect();
    let threads = Threads::new(a.threads);
    let options = WriterOptions {
        encoding: a.codec.codec,
        field_encodings: a.codec.field_codecs.clone(),
        metadata: a.metadata.clone(),
        replace: a.force,
        whole: true,
        threads,
        ..WriterOptions::default()
    };
    let mut writer = RecordsWriter::create(&a.store, convert::joined_schema(&sources)?, options)?;
    let n = convert::import(&sources, &mut writer, threads, &out.monitor())?;
    told(&a.store, n, writer.len(), out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        assert_eq!(field("a:u2"), Ok(FieldSchema::fixed("a", DType::U16, [])));
        assert_eq!(field("a:float32:28x28"), Ok(FieldSchema::fixed("a", DType::F32, [28, 28])));
        assert_eq!(field("a:uint8:*"), Ok(FieldSchema::ragged("a", DType::U8, [])));
        assert_eq!(field("a:uint8:*x3"), Ok(FieldSchema::ragged("a", DType::U8, [3])));
        for text in ["a", ":u1", "a:u1:3:3", "a:u1:x", "a:u1:3x*", "a:q8"] {
            assert!(field(text).is_err(), "{text}");
        }
    }
}
