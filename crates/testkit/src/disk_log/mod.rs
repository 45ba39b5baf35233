//! The disk log: everything a run did to a disk, and what a crash at any moment of it could have left.
//!
//! A test runs a writer on a [`RecordingDisk`], takes its [`DiskLog`], and has [`enumerate`] (or [`check_all`])
//! show every [`CrashState`]: for every prefix of the log, which of the operations that were not yet synced
//! reached the disk. The model is strict POSIX, stricter than any one file system:
//!
//! - data of a file is durable after its `sync`, a name after `sync_dir` of its folder; neither implies the other;
//! - of the operations that are not durable, any subset may have reached the disk, in any order between files,
//!   folders and sizes; a rename is one operation;
//! - a write may be torn at sectors of 512 bytes (first part, last part, or ends without the middle), or may have
//!   changed the size and not the data, or the data and not the size.
//!
//! [`FaultyDisk`] makes single operations fail, [`every_fault`] each in turn.
//!
//! ```
//! use std::{path::Path, sync::Arc};
//! use tensilo_core::io::{Disk, Staged};
//! use tensilo_testkit::disk_log::{Options, RecordingDisk, check_all};
//!
//! let disk = RecordingDisk::new();
//! let file = Staged::create(Arc::new(disk.clone()), "/a").unwrap();
//! file.write_at(0, &[7; 2000]).unwrap();
//! file.publish_no_replace().unwrap();
//! disk.mark("published");
//! let counts = check_all(&disk.log(), &Options::default(), |state| match state.bytes(Path::new("/a")) {
//!     None if state.passed("published") => Err("published, but gone".into()),
//!     Some(bytes) if bytes != [7; 2000] => Err("torn".into()),
//!     _ => Ok(()),
//! });
//! assert!(counts.states > 10 && counts.skipped == 0);
//! ```

mod faulty;
mod image;
mod model_disk;
mod recording;
mod replay;

pub use faulty::{Fault, FaultKind, FaultyDisk, every_fault};
pub use image::{Image, NodeId};
pub use model_disk::ModelDisk;
pub use recording::RecordingDisk;
pub use replay::{Counts, CrashState, Enumeration, Materialised, Options, check_all, enumerate};

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// One thing that was done to the disk, with files and folders by their identity.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are what the variant's sentence names")]
pub enum Op {
    /// A new file got a name.
    Create { dir: NodeId, name: OsString, node: NodeId },
    /// A new folder got a name.
    Mkdir { dir: NodeId, name: OsString, node: NodeId },
    /// A file got a further name.
    Link { dir: NodeId, name: OsString, node: NodeId },
    /// A file or folder changed its name.
    Rename { from_dir: NodeId, from: OsString, to_dir: NodeId, to: OsString, node: NodeId },
    /// A file lost a name.
    Unlink { dir: NodeId, name: OsString, node: NodeId },
    /// An empty folder was removed.
    Rmdir { dir: NodeId, name: OsString, node: NodeId },
    /// Bytes were written.
    Write { node: NodeId, offset: u64, data: Arc<[u8]> },
    /// A file was cut or extended.
    SetLen { node: NodeId, len: u64 },
    /// Space was reserved.
    Allocate { node: NodeId, offset: u64, len: u64 },
    /// A range was given back and reads as zeros.
    Punch { node: NodeId, offset: u64, len: u64 },
    /// Data and length of a file became durable.
    Sync { node: NodeId },
    /// The names in a folder became durable.
    SyncDir { dir: NodeId },
    /// The test noted that its program reached a point.
    Mark(String),
}

impl Op {
    /// The file whose data this changes.
    pub fn data_node(&self) -> Option<NodeId> {
        match *self {
            Op::Write { node, .. }
            | Op::SetLen { node, .. }
            | Op::Allocate { node, .. }
            | Op::Punch { node, .. } => Some(node),
            _ => None,
        }
    }

    /// The folders whose names this changes.
    pub fn dirs(&self) -> Vec<NodeId> {
        match *self {
            Op::Create { dir, .. }
            | Op::Mkdir { dir, .. }
            | Op::Link { dir, .. }
            | Op::Unlink { dir, .. }
            | Op::Rmdir { dir, .. } => vec![dir],
            Op::Rename { from_dir, to_dir, .. } if from_dir == to_dir => vec![from_dir],
            Op::Rename { from_dir, to_dir, .. } => vec![from_dir, to_dir],
            _ => Vec::new(),
        }
    }
}

/// A disk as it was, all of it durable, and everything done to it since.
#[derive(Debug, Clone)]
pub struct DiskLog {
    /// The disk before the first operation.
    pub initial: Image,
    /// The operations, in the order in which they returned.
    pub ops: Vec<Op>,
    /// The real folder that is the model's root; empty for a disk that is a model only.
    pub root: PathBuf,
}

impl DiskLog {
    /// One line per operation, for a failing test's message.
    pub fn describe(&self) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        for (i, op) in self.ops.iter().enumerate() {
            let _ = match op {
                Op::Write { node, offset, data } => {
                    writeln!(text, "{i}: write node {} at {offset}, {} bytes", node.0, data.len())
                }
                op => writeln!(text, "{i}: {op:?}"),
            };
        }
        text
    }
}
