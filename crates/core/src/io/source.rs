//! Byte sources: the first step of every read. Nothing above knows whether it is a file, memory or a map.
//!
//! A source may answer [`Missing`](crate::ErrorKind::Missing): every read above is free of side effects before
//! it succeeds, so whoever holds the bytes fetches them and calls again.

use crate::error::{Error, Result};
use std::fmt::Debug;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a source was when it was examined; a different value means a different or changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fingerprint {
    /// Device number, 0 for sources that are no files.
    pub device: u64,
    /// Inode number, or a number of the source's own.
    pub inode: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of last change in nanoseconds since 1970.
    pub mtime_ns: i128,
}

/// Random access to bytes that do not change while they are read.
pub trait ByteSource: Send + Sync + Debug {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Is there nothing?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` from `offset` on.
    ///
    /// # Errors
    /// `Corrupt` when the range passes the end (the file is truncated), `Missing`, or `Io`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Fills several buffers; sources that can fetch ranges together override this.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); `Missing` names all ranges that are missing.
    fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<()> {
        let mut missing = Vec::new();
        for (offset, buf) in ranges {
            match self.read_at(*offset, buf) {
                Err(e) if e.kind() == crate::ErrorKind::Missing => {
                    missing.extend_from_slice(e.missing_ranges())
                }
                other => other?,
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(Error::missing(missing)) }
    }

    /// The bytes themselves, without a copy, where the source has them in memory.
    fn borrow(&self, _range: Range<u64>) -> Option<&[u8]> {
        None
    }

    /// What the source is now.
    ///
    /// # Errors
    /// `Io` when the system does not tell.
    fn fingerprint(&self) -> Result<Fingerprint>;

    /// The path, where there is one; used in messages and to resolve names relative to the file.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// Checks that `len` bytes at `offset` lie inside a source of `total` bytes.
///
/// # Errors
/// `Corrupt`, with the offset.
pub(crate) fn check_range(offset: u64, len: usize, total: u64) -> Result<()> {
    if offset.checked_add(len as u64).is_none_or(|end| end > total) {
        return Err(
            Error::corrupt(format!("{len} bytes reach past the end of the file of {total} bytes")).at(offset)
        );
    }
    Ok(())
}

/// A file read by position (`pread`); handles may be shared between threads.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    path: PathBuf,
    len: u64,
}

impl FileSource {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for a folder, or `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| Error::io("cannot open", e).in_file(path))?;
        let meta = file.metadata().map_err(|e| Error::io("cannot examine", e).in_file(path))?;
        if !meta.is_file() {
            return Err(Error::invalid("not a regular file").in_file(path));
        }
        Ok(Self { file, path: path.to_path_buf(), len: meta.len() })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// The fingerprint of file metadata.
#[cfg(unix)]
pub(crate) fn fingerprint_of(meta: &std::fs::Metadata) -> Fingerprint {
    use std::os::unix::fs::MetadataExt;
    Fingerprint {
        device: meta.dev(),
        inode: meta.ino(),
        bytes: meta.len(),
        mtime_ns: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
    }
}

impl Fingerprint {
    /// The fingerprint of a path, symlinks not followed.
    ///
    /// # Errors
    /// `NotFound` or `Io`.
    pub fn of_path(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let meta =
            std::fs::symlink_metadata(path).map_err(|e| Error::io("cannot examine", e).in_file(path))?;
        Ok(fingerprint_of(&meta))
    }
}

impl ByteSource for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        use std::os::unix::fs::FileExt;
        check_range(offset, buf.len(), self.len).map_err(|e| e.in_file(&self.path))?;
        self.file.read_exact_at(buf, offset).map_err(|e| {
            if e.kind() == std::io::ErrorKind::UnexpectedEof {
                Error::source_changed("the file became shorter while it was read")
                    .at(offset)
                    .in_file(&self.path)
            } else {
                Error::io(format_args!("cannot read {} bytes", buf.len()), e).at(offset).in_file(&self.path)
            }
        })
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        let meta = self.file.metadata().map_err(|e| Error::io("cannot examine", e).in_file(&self.path))?;
        Ok(fingerprint_of(&meta))
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// Bytes in memory.
#[derive(Debug, Clone)]
pub struct MemorySource(Arc<[u8]>);

impl MemorySource {
    /// Takes the bytes.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }
}

impl ByteSource for MemorySource {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.len())?;
        let start = offset as usize;
        buf.copy_from_slice(&self.0[start..start + buf.len()]);
        Ok(())
    }

    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        self.0.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        Ok(Fingerprint { inode: self.0.as_ptr() as u64, bytes: self.len(), ..Fingerprint::default() })
    }
}
