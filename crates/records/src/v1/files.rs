//! The files of a store by name, and the two locks on them.
//!
//! - `0.zr`, the *presence* lock: shared by every open handle; delete and compact take it alone.
//! - `meta.zr`, the *writer* lock: taken alone, by a file opened for the purpose, while the store is changed.
//!
//! Who needs both takes the writer lock first. loaderx takes no locks: it must not write while we are at it.

use super::fault::Fault;
use super::format::Header;
use super::place::Geometry;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tensilo_core::io::{Disk, DiskFile, LockKind};
use tensilo_core::{Error, ErrorKind, Result};

/// The table's file.
pub(super) const META: &str = "meta.zr";
/// The table while a store is being created.
pub(super) const META_NEW: &str = "meta.zr.new";
/// What a delete or compaction that is under way will do to the table.
pub(super) const JOURNAL: &str = "journal.tensilo";

/// Name of a data file.
pub(super) fn chunk_name(chunk: u16) -> String {
    format!("{chunk}.zr")
}

/// Number of a data file.
pub(super) fn chunk_of(name: &str) -> Option<u16> {
    let number: u16 = name.strip_suffix(".zr")?.parse().ok()?;
    (chunk_name(number) == name).then_some(number)
}

/// Does a folder hold a Zrecord v1 store (or one of a later version)?
pub fn is_store(folder: impl AsRef<Path>) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    let read = File::open(folder.as_ref().join(META)).and_then(|mut f| f.read_exact(&mut magic));
    read.is_ok() && &magic == b"ZREC"
}

/// A file of the store: open for writing through the disk, or for reading only.
#[derive(Debug)]
pub(super) enum Handle {
    Disk(Box<dyn DiskFile>),
    ReadOnly(File, PathBuf),
}

impl Handle {
    /// Opens a file that must exist; `read_only` needs no permission to write.
    pub fn open(disk: &dyn Disk, path: &Path, read_only: bool) -> Result<Self> {
        if !read_only {
            return disk.open(path).map(Self::Disk);
        }
        let file = File::open(path).map_err(|e| Error::io("cannot open", e).in_file(path))?;
        Ok(Self::ReadOnly(file, path.to_path_buf()))
    }

    pub fn len(&self) -> Result<u64> {
        match self {
            Self::Disk(file) => file.len(),
            Self::ReadOnly(file, path) => {
                Ok(file.metadata().map_err(|e| Error::io("cannot examine", e).in_file(path))?.len())
            }
        }
    }

    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self {
            Self::Disk(file) => file.read_at(offset, buf),
            Self::ReadOnly(file, path) => std::os::unix::fs::FileExt::read_exact_at(file, buf, offset)
                .map_err(|e| Error::io("cannot read", e).at(offset).in_file(path)),
        }
    }

    /// The file to write to.
    pub fn writable(&self) -> Result<&dyn DiskFile> {
        match self {
            Self::Disk(file) => Ok(&**file),
            Self::ReadOnly(_, path) => {
                Err(Error::invalid("the store is open for reading only").in_file(path))
            }
        }
    }

    fn try_lock(&self, kind: LockKind) -> Result<()> {
        let (file, path) = match self {
            Self::Disk(file) => return file.try_lock(kind),
            Self::ReadOnly(file, path) => (file, path),
        };
        let taken = match kind {
            LockKind::Shared => file.try_lock_shared(),
            LockKind::Exclusive => file.try_lock(),
        };
        taken.map_err(|e| match e {
            std::fs::TryLockError::WouldBlock => {
                Error::new(ErrorKind::Locked, "another process or handle holds a lock").in_file(path)
            }
            std::fs::TryLockError::Error(e) => Error::io("cannot lock", e).in_file(path),
        })
    }

    /// Takes a lock, or changes the one held, and waits so long for others to go.
    pub fn lock(&self, kind: LockKind, wait: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            match self.try_lock(kind) {
                Err(e) if e.kind() == ErrorKind::Locked && begun.elapsed() < wait => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
                other => return other,
            }
        }
    }
}

/// Creates the table under its final name, durable but for that.
pub(super) fn create_meta(disk: &dyn Disk, folder: &Path, header: &Header, geometry: Geometry) -> Result<()> {
    let meta = disk.create_new(&folder.join(META_NEW))?;
    meta.set_len(geometry.meta_bytes())?;
    meta.write_at(0, &header.encode())?;
    meta.sync()?;
    disk.rename_no_replace(&folder.join(META_NEW), &folder.join(META))
}

/// The error for a folder that is no store.
pub(super) fn not_a_store(folder: &Path, why: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("not a zrecord store: {why}"))
        .in_file(folder)
        .with_source(Fault::NotAStore)
}
