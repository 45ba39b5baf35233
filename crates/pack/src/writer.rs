//! The low-level writer of a pack's HDF5 body: shards in, one after the other, absolute offsets out.
//!
//! It knows nothing of tiles or manifests; whoever uses it writes the user block. Nothing stands under the path before
//! [`PackWriter::close`].

use crate::format::index::Extent;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::Disk;
use tensilo_core::{Error, Result};
use tensilo_hdf5::write::{FileWriter, WriteOptions};

/// The group of a shard: at least three digits.
pub(crate) fn shard_group(ordinal: usize) -> String {
    format!("/quantem_gpu/shards/{ordinal:03}")
}

/// Where an appended shard lies; offsets count from the file's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The payload words.
    pub payload: Extent,
    /// The compact headers.
    pub header: Extent,
}

/// Writes the body of a pack.
///
/// ```
/// use tensilo_core::io::{Disk, SystemDisk};
/// use tensilo_pack::writer::PackWriter;
/// # let folder = std::env::temp_dir().join(format!("tensilo-pack-doc-{}", std::process::id()));
/// # SystemDisk.create_dir(&folder)?;
/// let path = folder.join("body.h5");
/// let mut writer = PackWriter::create(SystemDisk::shared(), &path, 65_536)?;
/// let at = writer.append_shard(0, &[1, 2, 3], &[0, 3])?;
/// assert!(at.payload.offset >= 65_536 && at.payload.bytes == 12);
/// writer.write_user_block(0, b"anything")?;
/// writer.close()?;
/// # SystemDisk.unlink(&path)?;
/// # SystemDisk.remove_dir(&folder)?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug)]
pub struct PackWriter {
    writer: FileWriter<'static>,
    path: PathBuf,
    next: usize,
}

impl PackWriter {
    /// Begins a file with a user block of 512 bytes or one of its doublings.
    ///
    /// # Errors
    /// `InvalidArgument` for another user block, `AlreadyExists` when something stands at the path, `NotFound` without
    /// its folder, errors of the disk.
    pub fn create(disk: Arc<dyn Disk>, path: &Path, user_block: u64) -> Result<Self> {
        if user_block < 512 {
            return Err(Error::invalid(format!(
                "a user block of {user_block} bytes, at least 512 are needed"
            ))
            .in_file(path));
        }
        if exists(&*disk, path)? {
            return Err(Error::already_exists("something stands at the path").in_file(path));
        }
        let mut writer = FileWriter::create(disk, path, WriteOptions::default().user_block(user_block))?;
        writer.create_group("/quantem_gpu/shards")?;
        Ok(Self { writer, path: path.to_path_buf(), next: 0 })
    }

    /// Appends the next shard.
    ///
    /// # Errors
    /// `InvalidArgument` when the ordinal is not the next one or a part is empty; errors of the disk.
    pub fn append_shard(&mut self, ordinal: usize, payload: &[u32], header: &[u32]) -> Result<Appended> {
        if ordinal != self.next {
            return Err(Error::invalid(format!("shard {ordinal} is appended, {} is the next", self.next))
                .in_file(&self.path));
        }
        if payload.is_empty() || header.is_empty() {
            return Err(
                Error::invalid(format!("shard {ordinal} has no payload or no header")).in_file(&self.path)
            );
        }
        let group = shard_group(ordinal);
        let mut place = |name: &str, words: &[u32]| -> Result<Extent> {
            let dataset = self.writer.dataset(format!("{group}/{name}")).element::<u32>();
            let mut written = dataset.shape(&[words.len() as u64]).contiguous_writer()?;
            let offset = written.offset().unwrap_or(0);
            written.write(&crate::le::bytes_of_u32(words))?;
            written.finish()?;
            Ok(Extent { offset, bytes: 4 * words.len() as u64 })
        };
        let appended = Appended {
            payload: place("payload_u32", payload)?,
            header: place("compact_headers_u32", header)?,
        };
        self.next += 1;
        Ok(appended)
    }

    /// Writes bytes of the user block.
    ///
    /// # Errors
    /// `InvalidArgument` when they pass its end; errors of the disk.
    pub fn write_user_block(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.writer.write_user_block(at, bytes)
    }

    /// Finishes the file, syncs it and gives it its name. After an error there is no file.
    ///
    /// # Errors
    /// `InvalidArgument` without a shard, `AlreadyExists`, errors of the disk.
    pub fn close(self) -> Result<()> {
        if self.next == 0 {
            return Err(Error::invalid("a pack without a shard").in_file(&self.path));
        }
        self.writer.finish().map(|_| ())
    }

    /// Gives up; only what this writer made is removed.
    pub fn abort(self) {}
}

/// Does something stand at a path of a disk?
pub(crate) fn exists(disk: &dyn Disk, path: &Path) -> Result<bool> {
    let name = path.file_name().ok_or_else(|| Error::invalid("the path names no file").in_file(path))?;
    Ok(disk.list(crate::leftovers::folder_of(path))?.iter().any(|entry| entry == name))
}
