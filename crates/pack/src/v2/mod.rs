//! Pack format 2: any detector, any scan, any count.
//!
//! The steps are those of format 1: [`inspect`](source::inspect::inspect) → [`plan`](plan::plan) →
//! [`produce`](produce::produce) → [`verify`](verify::verify) → [`Pack`](read::Pack). The bytes are described in
//! `docs/formats/pack-v2.md`.

pub mod codec;
pub mod convert;
pub mod counts;
pub mod format;
pub mod layout;
pub mod plan;
pub mod planes;
pub mod produce;
pub mod products;
pub mod read;
pub mod receipt;
pub mod source;
pub mod verify;

use source::inspect::{InspectOptions, SourceKind};
use std::path::Path;
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::{Error, ErrorKind, Result};

/// Does a file begin as a pack of format 2?
///
/// # Errors
/// `NotFound`, `Io`.
pub fn is_format_2(path: &Path) -> Result<bool> {
    let file = FileSource::open(path)?;
    let mut head = [0; 8];
    if file.len() < head.len() as u64 {
        return Ok(false);
    }
    file.read_at(0, &mut head)?;
    Ok(head == format::preamble::MAGIC)
}

/// Adds the hint `--format 2` to a refusal of format 1 where format 2 takes the source.
pub fn hint_format_2(e: Error, source: &Path, options: &InspectOptions) -> Error {
    let refused = matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported | ErrorKind::Limit);
    // What is no HDF5 file of frames looks damaged, or empty, to format 1.
    let foreign = matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotFound);
    match source::inspect::accepts(source, options) {
        Some(_) if refused => e.hint("--format 2"),
        Some(SourceKind::Npy | SourceKind::PackV1) if foreign => e.hint("--format 2"),
        _ => e,
    }
}
