//! A digest of what an HDF5 file says, the same for every implementation: one JSON line for each link, with the
//! SHA-256 of each dataset's and attribute's canonical bytes.
//!
//! The canonical form is written down in `docs/formats/digest.md`. Two files with the same lines hold the same
//! groups, links, datatypes, shapes and values, however they are stored; with [`DigestOptions::storage`] their
//! layout, filters and fill values are compared too.
//!
//! ```no_run
//! use tensilo::core::Quiet;
//! use tensilo::digest::{DigestOptions, digest};
//! let summary = digest("scan.h5", &DigestOptions::default(), &Quiet, &mut |line| {
//!     println!("{line}");
//!     Ok(())
//! })?;
//! assert_eq!(summary.bad, 0);
//! # Ok::<(), tensilo::Error>(())
//! ```
//!
//! In the order of the data's way: [`traversal`](self) (private) follows the hard links; `element` compiles a
//! datatype; `data` streams the stored bytes through it in slabs; `text` writes the line.

mod data;
mod element;
mod paths;
mod reference;
mod storage;
mod text;
mod traversal;
mod type_name;

pub use type_name::type_name;

use crate::hdf5::{File, OpenOptions};
use std::path::Path;
use tensilo_core::{Error, ErrorKind, Monitor, Result};
use text::Line;

/// Number of the canonical form.
const FORMAT: u64 = 1;

/// How references show the object that they refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refs {
    /// By the address of its header.
    #[default]
    Address,
    /// By the path under which the traversal first describes it, so that a rewritten file keeps its lines.
    Path,
}

/// What a digest describes, and how far it goes.
#[derive(Debug, Clone)]
pub struct DigestOptions {
    /// Describe layout, chunks, filters and fill value of datasets too.
    pub storage: bool,
    /// Datasets of more bytes in memory are not read, and reported as out of scope.
    pub max_bytes: u64,
    /// How references are shown.
    pub refs: Refs,
    /// How the file is opened: limits, threads, which other files it may name.
    pub open: OpenOptions,
}

impl Default for DigestOptions {
    /// No storage, 2^30 bytes, addresses.
    fn default() -> Self {
        Self { storage: false, max_bytes: 1 << 30, refs: Refs::Address, open: OpenOptions::default() }
    }
}

/// How a digest went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestSummary {
    /// Did the file open?
    pub opened: bool,
    /// Lines between the first and the last.
    pub objects: u64,
    /// Those lines and attributes that could not be read or are out of scope.
    pub bad: u64,
}

/// Digests a file: calls `sink` with every line, without its end.
///
/// A file that does not open, and items that cannot be read, are part of the answer. Memory stays within the
/// limits of [`DigestOptions::open`] and a few tens of MiB of slabs.
///
/// # Errors
/// What `monitor` and `sink` return, and `NotFound` or `Io` when there is no such file.
pub fn digest(
    path: impl AsRef<Path>,
    options: &DigestOptions,
    monitor: &dyn Monitor,
    sink: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<DigestSummary> {
    let file = match File::open_with(path, options.open.clone()) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Io | ErrorKind::InvalidArgument) => {
            return Err(e);
        }
        Err(e) => {
            let mut line = Line::new();
            line.string("kind", "file").number("format", FORMAT);
            line.string("status", "error").string("detail", &detail(&e));
            sink(&line.finish())?;
            return Ok(DigestSummary { opened: false, objects: 0, bad: 0 });
        }
    };
    let mut line = Line::new();
    line.string("kind", "file").number("format", FORMAT).number("userblock", file.space().user_block());
    sink(&line.finish())?;
    let (objects, bad) = traversal::run(&file, options, monitor, sink)?;
    let mut line = Line::new();
    line.string("kind", "end").number("objects", objects).number("bad", bad);
    sink(&line.finish())?;
    Ok(DigestSummary { opened: true, objects, bad })
}

/// An error as a detail: its kind, so that what is unsupported can be told from what is damaged, and its text.
fn detail(e: &Error) -> String {
    format!("{}: {e}", e.kind().name())
}

/// Why an item has no digest.
#[derive(Debug)]
enum Trouble {
    /// It cannot be read.
    Error(Error),
    /// It is outside what the canonical form describes.
    Scope(String),
}

impl Trouble {
    /// Ends the whole digest where the user asked for it; else appends the item's status.
    fn report(self, line: &mut Line) -> Result<()> {
        match self {
            Self::Error(e) if e.kind() == ErrorKind::Cancelled => return Err(e),
            Self::Error(e) => line.string("status", "error").string("detail", &detail(&e)),
            Self::Scope(why) => line.string("status", "unsupported").string("detail", &why),
        };
        Ok(())
    }
}

impl From<Error> for Trouble {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}
