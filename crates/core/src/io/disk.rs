//! The only way anything changes a disk: the trait [`Disk`].
//!
//! Clippy bans the `std::fs` functions that write, everywhere but in [`SystemDisk`](super::SystemDisk). Tests pass a
//! disk that records every call, and replay what a crash, a full disk or a failing device would have left.

use super::source::Fingerprint;
use crate::error::Result;
use std::ffi::OsString;
use std::fmt::Debug;
use std::path::Path;

/// How a file is locked against other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Many readers.
    Shared,
    /// One writer.
    Exclusive,
}

/// Everything that changes names or reserves space on a disk.
///
/// No method overwrites an existing name except [`rename`](Disk::rename). Nothing is durable before the file's
/// `sync` and, for names, [`sync_dir`](Disk::sync_dir) of the folder.
pub trait Disk: Send + Sync + Debug {
    /// Creates a new, empty file for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists`, `InsufficientDisk`, `Io`; so for all below, with `NotFound`.
    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>>;

    /// Creates one folder.
    fn create_dir(&self, path: &Path) -> Result<()>;

    /// Gives a file a second name; fails when the name exists.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Renames a file or folder, replacing a file (or an empty folder) of that name.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Renames a file or folder; fails when the new name exists.
    fn rename_no_replace(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file's name.
    fn unlink(&self, path: &Path) -> Result<()>;

    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// The names in a folder, sorted.
    fn list(&self, path: &Path) -> Result<Vec<OsString>>;

    /// Bytes that a file in this folder (or in its nearest existing ancestor) could take.
    fn free_space(&self, path: &Path) -> Result<u64>;
}

/// A file open for reading and writing by position.
pub trait DiskFile: Send + Sync + Debug {
    /// Writes all of `data` at `offset`, growing the file when needed.
    ///
    /// # Errors
    /// `InsufficientDisk`, `Io`; so for all below.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// Fills `buf` from `offset` on.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Length in bytes.
    fn len(&self) -> Result<u64>;

    /// Is the file empty?
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Reserves space so that later writes inside it cannot find the disk full; extends the file.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Gives the blocks of a range back; it reads as zeros afterwards and the length stays.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;

    /// Makes data and length durable.
    fn sync(&self) -> Result<()>;

    /// A hint: start writing this range to the disk, and drop from memory what is there already.
    ///
    /// Nothing becomes durable by it and nothing is lost; a disk without a cache ignores it.
    fn drop_cached(&self, _offset: u64, _len: u64) {}

    /// A hint: start writing this range to the disk, so that a later [`sync`](Self::sync) has less to wait for.
    ///
    /// Nothing becomes durable by it; a disk without a cache ignores it.
    fn write_out(&self, _offset: u64, _len: u64) {}

    /// Takes a lock without waiting.
    ///
    /// # Errors
    /// `Locked` when another holds it.
    fn try_lock(&self, kind: LockKind) -> Result<()>;

    /// Gives the lock back.
    fn unlock(&self) -> Result<()>;

    /// What the file is now.
    fn fingerprint(&self) -> Result<Fingerprint>;
}
