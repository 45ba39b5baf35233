//! Checks a whole file: walks all objects, heaps, trees, chunk indexes, shared messages and free-space lists, verifies
//! every checksum, and decodes every chunk. Damage is reported by object and byte, and the walk goes on behind it.
//!
//! What is reported once is not reported again when another way leads to it.
//!
//! ```
//! use std::sync::Arc;
//! use tensilo_core::{Quiet, io::MemorySource};
//! use tensilo_hdf5::check::{CheckOptions, check};
//! let source = Arc::new(MemorySource::new(*b"\x89HDF\r\n\x1a\n\x02\x08\x08\0"));
//! let summary = check(source, &CheckOptions::default(), &Quiet, &mut |finding| {
//!     assert_eq!((finding.object.as_str(), finding.offset), ("(superblock)", Some(12)));
//!     Ok(())
//! })?;
//! assert_eq!(summary.damaged, 1);
//! # Ok::<(), tensilo_core::Error>(())
//! ```

mod data;
mod file_space;
mod groups;
mod heaps;
mod objects;
mod report;
mod trees;
mod values;

use crate::format::Address;
use crate::read::{File, OpenOptions};
use crate::space::{FileSpace, SpaceOptions};
use report::Report;
use std::collections::HashSet;
use std::sync::Arc;
use tensilo_core::io::ByteSource;
use tensilo_core::{Budget, ErrorKind, Monitor, Progress, Result};

/// What is checked.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// How the file is opened; its limits hold for the check.
    pub open: OpenOptions,
    /// Check structures only: decode no chunk and follow no variable-length value.
    pub metadata_only: bool,
    /// The source holds all members of a family, split or multi file.
    pub members_joined: bool,
}

/// What is said about a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is damaged.
    Damaged,
    /// It could not be checked: a filter or version is not known, a limit is too low, or another file is missing.
    Unchecked,
}

impl Verdict {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Unchecked => "unchecked",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is said about it.
    pub verdict: Verdict,
    /// Path of the object; parts of the file that belong to none stand in parentheses.
    pub object: String,
    /// Absolute offset of the structure, or of the byte in it.
    pub offset: Option<u64>,
    /// What is wrong.
    pub message: String,
}

/// What was checked, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Objects.
    pub objects: u64,
    /// Attributes.
    pub attributes: u64,
    /// Blocks of heaps, nodes of trees, indexes and free-space lists.
    pub structures: u64,
    /// Chunks that were decoded.
    pub chunks: u64,
    /// Bytes of raw data in them.
    pub bytes: u64,
    /// Findings of damage.
    pub damaged: u64,
    /// Findings that something could not be checked.
    pub unchecked: u64,
}

/// Checks the file that `source` holds, and calls `each` for everything that is found.
///
/// # Errors
/// `Io` when the source cannot be read, `Unsupported` when the file as a whole is not, whatever `each` or the monitor
/// answer. Damage is no error but a finding.
pub fn check(
    source: Arc<dyn ByteSource>,
    options: &CheckOptions,
    monitor: &dyn Monitor,
    each: &mut dyn FnMut(&Finding) -> Result<()>,
) -> Result<Summary> {
    let mut report = Report::new(each);
    let how = SpaceOptions { ignore_flags: true, members_joined: options.members_joined, salvage: true };
    let budget = Budget::new(options.open.limits.clone());
    let space = match FileSpace::open_with(source, budget, &how) {
        Ok(space) => space,
        Err(e) if e.kind() == ErrorKind::Corrupt => {
            report.enter("(superblock)");
            report.found(&e, 0)?;
            return Ok(report.summary);
        }
        Err(e) => return Err(e),
    };
    let mut readable = true;
    for problem in space.problems() {
        readable &= problem.part != "(cache image)";
        report.enter(problem.part);
        report.found(&problem.error, space.base())?;
    }
    if !readable {
        return Ok(report.summary); // the objects are in the image
    }
    let mut check = Check {
        file: File::from_space(space.clone(), options.open.clone()),
        space,
        metadata_only: options.metadata_only,
        monitor,
        report,
        heaps: HashSet::new(),
        done: 0,
    };
    check.flags()?;
    check.file_parts()?;
    check.objects()?;
    Ok(check.report.summary)
}

/// A check that is running.
struct Check<'a> {
    space: FileSpace,
    file: File,
    metadata_only: bool,
    monitor: &'a dyn Monitor,
    report: Report<'a>,
    /// Heaps and collections that were checked.
    heaps: HashSet<Address>,
    done: u64,
}

impl Check<'_> {
    /// Tells the monitor of progress.
    fn poll(&mut self) -> Result<()> {
        self.done += 1;
        self.monitor.poll(&Progress { stage: "checking", done: self.done, total: 0 })
    }

    /// Notes a structure that was verified, or reports what is wrong with it. `None` is answered for damage.
    fn structure<T>(&mut self, result: Result<T>, at: u64) -> Result<Option<T>> {
        match result {
            Ok(value) => {
                self.report.summary.structures += 1;
                Ok(Some(value))
            }
            Err(e) => self.report.found(&e, at).map(|()| None),
        }
    }

    /// The value, or nothing where it is damaged, which is reported.
    fn sound<T>(&mut self, result: Result<T>, at: u64) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(e) => self.report.found(&e, at).map(|()| None),
        }
    }
}
