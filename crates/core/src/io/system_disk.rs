//! The operating system's disk: the one place that calls the functions which change it.

#![expect(clippy::disallowed_methods, reason = "this is the one place that may change a disk")]
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "sync_file_range has no safe form"))]

use super::disk::{Disk, DiskFile, LockKind};
use super::source::{Fingerprint, fingerprint_of};
use crate::error::{Error, ErrorKind, Result};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk of the machine this runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDisk;

impl SystemDisk {
    /// The disk as the shared trait object that writers keep.
    pub fn shared() -> Arc<dyn Disk> {
        Arc::new(Self)
    }
}

fn err(doing: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let doing = doing.to_owned();
    let path = path.to_path_buf();
    move |e| Error::io(doing, e).in_file(path)
}

fn errno(doing: &str, path: &Path) -> impl FnOnce(rustix::io::Errno) -> Error {
    let wrap = err(doing, path);
    move |e| wrap(e.into())
}

impl Disk for SystemDisk {
    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(err("cannot create", path))?;
        Ok(Box::new(SystemFile { file, path: path.to_path_buf() }))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(err("cannot open", path))?;
        Ok(Box::new(SystemFile { file, path: path.to_path_buf() }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        std::fs::create_dir(path).map_err(err("cannot create folder", path))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::hard_link(from, to).map_err(err("cannot publish", to))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to).map_err(err("cannot publish", to))
    }

    fn rename_no_replace(&self, from: &Path, to: &Path) -> Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(errno("cannot publish", to))
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(err("cannot remove", path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        std::fs::remove_dir(path).map_err(err("cannot remove folder", path))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        File::open(path).and_then(|d| d.sync_all()).map_err(err("cannot sync folder", path))
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let mut names = std::fs::read_dir(path)
            .and_then(|entries| entries.map(|e| Ok(e?.file_name())).collect::<std::io::Result<Vec<_>>>())
            .map_err(err("cannot list folder", path))?;
        names.sort();
        Ok(names)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let absolute = std::path::absolute(path).map_err(err("cannot examine", path))?;
        for ancestor in absolute.ancestors() {
            match rustix::fs::statvfs(ancestor) {
                Ok(s) => return Ok(s.f_bavail.saturating_mul(s.f_frsize)),
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                Err(e) => return Err(errno("cannot measure free space", ancestor)(e)),
            }
        }
        Err(Error::not_found("no folder to measure free space in").in_file(path))
    }
}

/// A file of [`SystemDisk`]. Its locks are advisory and go with the open file.
#[derive(Debug)]
struct SystemFile {
    file: File,
    path: PathBuf,
}

impl DiskFile for SystemFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.file
            .write_all_at(data, offset)
            .map_err(|e| err(&format!("cannot write {} bytes", data.len()), &self.path)(e).at(offset))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file
            .read_exact_at(buf, offset)
            .map_err(|e| err(&format!("cannot read {} bytes", buf.len()), &self.path)(e).at(offset))
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(err("cannot examine", &self.path))?.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(err("cannot set the length", &self.path))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        if len == 0 {
            return Ok(());
        }
        fallocate(&self.file, FallocateFlags::empty(), offset, len)
            .map_err(errno("cannot reserve space", &self.path))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        if len == 0 {
            return Ok(());
        }
        fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
            .map_err(errno("cannot give space back", &self.path))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(err("cannot sync", &self.path))
    }

    fn drop_cached(&self, offset: u64, len: u64) {
        // The page cache gives back whole folios of up to 2 MiB only: one that begins before the range goes with it.
        let start = offset / (2 << 20) * (2 << 20);
        let len = std::num::NonZeroU64::new(len.saturating_add(offset - start));
        // A hint may fail without harm.
        rustix::fs::fadvise(&self.file, start, len, rustix::fs::Advice::DontNeed).ok();
    }

    #[cfg(target_os = "linux")]
    fn write_out(&self, offset: u64, len: u64) {
        use std::os::fd::AsRawFd;
        let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
        // SAFETY: the descriptor is that of a file which is open as long as `self` lives; no memory is passed. A hint
        // may fail without harm.
        unsafe { libc::sync_file_range(self.file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    }

    fn try_lock(&self, kind: LockKind) -> Result<()> {
        let taken = match kind {
            LockKind::Shared => self.file.try_lock_shared(),
            LockKind::Exclusive => self.file.try_lock(),
        };
        taken.map_err(|e| match e {
            TryLockError::WouldBlock => {
                Error::new(ErrorKind::Locked, "another process or handle holds a lock").in_file(&self.path)
            }
            TryLockError::Error(e) => err("cannot lock", &self.path)(e),
        })
    }

    fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(err("cannot unlock", &self.path))
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        Ok(fingerprint_of(&self.file.metadata().map_err(err("cannot examine", &self.path))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_path_is_the_current_folder() {
        let disk = SystemDisk;
        assert!(disk.free_space(Path::new("")).unwrap() > 0);
        assert_eq!(disk.list(Path::new("")).unwrap(), disk.list(Path::new(".")).unwrap());
        disk.sync_dir(Path::new("")).unwrap();
    }
}
