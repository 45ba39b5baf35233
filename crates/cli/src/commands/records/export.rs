//! `records export`.

use crate::commands::refuse_existing;
use crate::exit::{Answer, Outcome};
use crate::output::Output;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::Error;
use tensilo::convert::records as convert;
use tensilo::core::gather::Gather;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;

/// Arguments of `records export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The store.
    pub store: PathBuf,

    /// The field; the only one if not given.
    #[arg(long, value_name = "NAME")]
    pub field: Option<String>,

    /// The .npy file to write: one row for each record, of a ragged field all rows one after the other.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,

    /// The .npy file for the number of rows of each record; needed for a ragged field.
    #[arg(long, value_name = "FILE")]
    pub lengths: Option<PathBuf>,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,

    /// Replace the files if they exist.
    #[arg(long)]
    pub force: bool,
}

#[derive(Serialize)]
struct ExportView {
    store: String,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<String>,
    field: String,
    records: u64,
}

/// Do both paths name one file, existing or not?
fn same_name(a: &Path, b: &Path) -> bool {
    let folder = |p: &Path| match p.parent() {
        Some(f) if !f.as_os_str().is_empty() => f.canonicalize().ok(),
        _ => Path::new(".").canonicalize().ok(),
    };
    a.file_name() == b.file_name() && folder(a) == folder(b)
}

/// Writes a field of all records.
pub fn run(a: &ExportArguments, out: &mut Output) -> Outcome {
    let store = super::open(&a.store)?;
    let fields = store.schema().fields();
    let field = match &a.field {
        Some(name) => store.schema().position(name)?,
        None if fields.len() == 1 => 0,
        None => {
            let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
            return Err(Error::invalid(format!("which field? There are: {}", names.join(", ")))
                .hint("name one with --field")
                .into());
        }
    };
    let ragged = fields[field].is_ragged();
    if ragged != a.lengths.is_some() {
        let message = if ragged { "a ragged field needs --lengths" } else { "a fixed field has no lengths" };
        return Err(Error::invalid(message).into());
    }
    for path in a.lengths.iter().chain([&a.output]) {
        refuse_existing(path, a.force)?;
    }
    if a.lengths.as_ref().is_some_and(|lengths| same_name(lengths, &a.output)) {
        return Err(Error::invalid("values and lengths would go to the same file").in_file(&a.output).into());
    }
    let disk = Arc::new(SystemDisk);
    if let Some(lengths) = &a.lengths {
        convert::lengths_to_npy(&store, field, disk.clone(), lengths, a.force)?;
    }
    let threads = Threads::new(a.threads);
    convert::field_to_npy(&store, field, disk, &a.output, a.force, threads, &out.monitor())?;
    if out.is_json() {
        let view = ExportView {
            store: a.store.display().to_string(),
            file: a.output.display().to_string(),
            lengths: a.lengths.as_ref().map(|path| path.display().to_string()),
            field: fields[field].name.clone(),
            records: store.len(),
        };
        out.json("tensilo.records.export/1", &view)?;
    }
    Ok(Answer::Yes)
}
