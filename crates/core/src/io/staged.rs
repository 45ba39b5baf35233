//! Staged publishing: a file is written under a temporary name beside its destination, made durable, and only then
//! gets its final name.
//!
//! The temporary name is `.<destination>.<16 hex digits>.partial`. A run holds an exclusive lock on its temporary
//! file, so that [`find_partials`] can tell those of dead runs from those of live ones.
//!
//! What is durable, that is, there after a crash at any later time:
//!
//! | after | data | temporary name | final name |
//! |---|---|---|---|
//! | [`Staged::create`], `write_at` | maybe, in any part and order | maybe | no |
//! | [`Staged::sync`] | yes, if the file can be found | maybe | no |
//! | `publish_*`: file synced, renamed | yes | maybe | maybe, and then with all data |
//! | `publish_*` returned `Ok` | yes | no | yes |
//! | `publish_no_replace` returned an error | – | no, or a dead run's | no, unless taking it back failed too |
//! | `publish_replace` returned an error | old or new, complete | no, or a dead run's | old, new, or either |
//!
//! No step shows a part of a file under its final name.

use super::disk::{Disk, DiskFile, LockKind};
use super::source::Fingerprint;
use crate::error::{Error, ErrorKind, Result};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const SUFFIX: &str = ".partial";
const UNIQUE_DIGITS: usize = 16;
/// Longest file name that common file systems take.
const NAME_MAX: usize = 255;

/// A file that is being made; nothing stands under its final name before it is published.
///
/// Dropped unpublished, it removes its temporary file.
///
/// ```
/// use tensilo_core::io::{FileSource, ByteSource, Staged, SystemDisk};
/// # let folder = std::env::temp_dir().join(format!("tensilo-staged-doc-{}", std::process::id()));
/// # use tensilo_core::io::Disk;
/// # SystemDisk.create_dir(&folder)?;
/// let destination = folder.join("result.bin");
/// let staged = Staged::create(SystemDisk::shared(), &destination)?;
/// staged.write_at(0, b"complete")?;
/// assert!(!destination.exists());
/// staged.publish_no_replace()?;
/// assert_eq!(FileSource::open(&destination)?.len(), 8);
/// # SystemDisk.unlink(&destination)?;
/// # SystemDisk.remove_dir(&folder)?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a staged file that is not published is removed"]
pub struct Staged {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    temporary: PathBuf,
    destination: PathBuf,
    /// Does the temporary name exist?
    named: bool,
    /// May the final name be this file's, now or after a crash?
    placed: bool,
}

impl Staged {
    /// Creates an empty temporary file beside `destination`, locked against [`remove_partial`].
    ///
    /// Whether the destination exists is not looked at here; publishing decides.
    ///
    /// # Errors
    /// `InvalidArgument` when the destination names no file, `NotFound` without its folder, `InsufficientDisk`,
    /// `Io`.
    pub fn create(disk: Arc<dyn Disk>, destination: impl AsRef<Path>) -> Result<Self> {
        let destination = destination.as_ref();
        let name = destination
            .file_name()
            .ok_or_else(|| Error::invalid("the destination names no file").in_file(destination))?;
        for _ in 0..64 {
            let temporary = destination.with_file_name(partial_name(name, unique()));
            let file = match disk.create_new(&temporary) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let staged = Self {
                disk: disk.clone(),
                file,
                temporary,
                destination: destination.to_path_buf(),
                named: true,
                placed: false,
            };
            // Between creating and locking, a run that clears dead partials may have taken this one for dead.
            match staged.file.try_lock(LockKind::Exclusive) {
                Err(e) if e.kind() == ErrorKind::Locked => continue,
                // A file system without locks: find_partials cannot lock either, so nothing takes it for dead.
                Err(_) => return Ok(staged),
                Ok(()) if staged.stands_at(&staged.temporary) != Some(false) => return Ok(staged),
                Ok(()) => {}
            }
        }
        Err(Error::already_exists("found no free temporary name beside it").in_file(destination))
    }

    /// The file itself, for reserving space, punching and reading back.
    pub fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    /// The final name.
    pub fn destination(&self) -> &Path {
        &self.destination
    }

    /// The name it has until it is published.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Writes all of `data` at `offset`, growing the file when needed.
    ///
    /// # Errors
    /// `InsufficientDisk`, `Io`.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.file.write_at(offset, data)
    }

    /// Length in bytes.
    ///
    /// # Errors
    /// `Io`.
    pub fn len(&self) -> Result<u64> {
        self.file.len()
    }

    /// Is nothing written yet?
    ///
    /// # Errors
    /// `Io`.
    pub fn is_empty(&self) -> Result<bool> {
        self.file.is_empty()
    }

    /// Makes data and length durable, without giving the file its name.
    ///
    /// # Errors
    /// `InsufficientDisk`, `Io`; the data written so far must then be taken as lost.
    pub fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    /// Syncs the file and gives it its final name, unless something has that name; durable when this returns.
    ///
    /// # Errors
    /// `AlreadyExists`, `InsufficientDisk`, `Io`. After an error the final name is not ours: it was never given,
    /// or was taken back (if that failed too, the complete file may stand under it).
    pub fn publish_no_replace(mut self) -> Result<Fingerprint> {
        self.sync()?;
        let fingerprint = self.file.fingerprint()?;
        self.name_durably()?;
        Ok(fingerprint)
    }

    /// Syncs the file and gives it its final name, replacing a file of that name; durable when this returns.
    ///
    /// At every moment the name shows the old file or the complete new one.
    ///
    /// # Errors
    /// `InsufficientDisk`, `Io`. When only the last step failed, the new file stands under the name, but might not
    /// after a crash; the message says so.
    pub fn publish_replace(mut self) -> Result<Fingerprint> {
        self.sync()?;
        let fingerprint = self.file.fingerprint()?;
        self.disk.rename(&self.temporary, &self.destination)?;
        self.named = false;
        self.disk.sync_dir(self.folder()).map_err(|e| {
            e.context("the new file is in place, but after a crash the old one might be")
                .in_file(&self.destination)
        })?;
        Ok(fingerprint)
    }

    /// Publishes two files of which the last is the commit marker of both.
    ///
    /// Both are synced, then `first` gets its name durably, then `last`. So at every moment, and after a crash
    /// at any moment, there is neither name, or `first` alone, or both, all complete. When `last` cannot be
    /// published, `first` loses its name again.
    ///
    /// # Errors
    /// As [`publish_no_replace`](Self::publish_no_replace). When the disk refuses even to take the names back,
    /// `first` may be left, never `last` without `first`.
    pub fn publish_pair(mut first: Self, mut last: Self) -> Result<()> {
        first.sync()?;
        last.sync()?;
        first.name_durably()?;
        if let Err(e) = last.name_durably() {
            // A crash could leave `last` alone, were `first` removed before `last` is known to be gone for good.
            if !last.placed {
                first.take_back();
            }
            return Err(e);
        }
        Ok(())
    }

    /// Removes the temporary file; unlike dropping, this reports when that fails.
    ///
    /// # Errors
    /// `Io`.
    pub fn abort(mut self) -> Result<()> {
        self.named = false;
        self.disk.unlink(&self.temporary)
    }

    fn folder(&self) -> &Path {
        self.destination.parent().unwrap_or(Path::new(""))
    }

    /// Gives a synced file its final name and syncs the folder; takes the name back when that fails.
    fn name_durably(&mut self) -> Result<()> {
        match self.disk.rename_no_replace(&self.temporary, &self.destination) {
            Ok(()) => (self.named, self.placed) = (false, true),
            Err(e) if e.kind() == ErrorKind::Io => self.name_by_link().map_err(|link| match link.kind() {
                ErrorKind::Io => e,
                _ => link,
            })?,
            Err(e) => return Err(e),
        }
        self.disk.sync_dir(self.folder()).inspect_err(|_| self.take_back())
    }

    /// The way for file systems that cannot rename without replacing (NFS, some FUSE).
    fn name_by_link(&mut self) -> Result<()> {
        self.disk.link(&self.temporary, &self.destination)?;
        self.placed = true;
        self.disk.unlink(&self.temporary).inspect_err(|_| self.take_back())?;
        self.named = false;
        Ok(())
    }

    /// Removes the final name if it is this file's; the error that led here is the one to report.
    fn take_back(&mut self) {
        let gone = match self.stands_at(&self.destination) {
            Some(true) => self.disk.unlink(&self.destination).is_ok(),
            Some(false) => true,
            None => false,
        };
        if gone && self.disk.sync_dir(self.folder()).is_ok() {
            self.placed = false;
        }
    }

    /// Is this the file of that name? `None` when the disk does not tell.
    fn stands_at(&self, path: &Path) -> Option<bool> {
        let own = self.file.fingerprint().ok()?;
        match self.disk.open(path).and_then(|f| f.fingerprint()) {
            Ok(there) => Some((there.device, there.inode) == (own.device, own.inode)),
            Err(e) if e.kind() == ErrorKind::NotFound => Some(false),
            Err(_) => None,
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.named {
            self.disk.unlink(&self.temporary).ok();
        }
    }
}

/// Names the temporary files that dead runs left for a destination of this name, sorted.
///
/// Those of live runs are locked and not named, nor those that cannot be examined.
///
/// # Errors
/// `NotFound` without the folder, `Io`.
pub fn find_partials(disk: &dyn Disk, folder: &Path, name: impl AsRef<OsStr>) -> Result<Vec<PathBuf>> {
    let mut dead = Vec::new();
    for entry in disk.list(folder)? {
        if is_partial_of(&entry, name.as_ref()) {
            let path = folder.join(entry);
            if lock_dead(disk, &path).is_some() {
                dead.push(path);
            }
        }
    }
    Ok(dead)
}

/// Removes a temporary file that [`find_partials`] named; false when it is gone or in use by now.
///
/// # Errors
/// `Io`.
pub fn remove_partial(disk: &dyn Disk, path: &Path) -> Result<bool> {
    // The lock is held while the name goes, so that a run that has just created this file notices.
    match lock_dead(disk, path) {
        Some(_held) => disk.unlink(path).map(|()| true),
        None => Ok(false),
    }
}

fn lock_dead(disk: &dyn Disk, path: &Path) -> Option<Box<dyn DiskFile>> {
    let file = disk.open(path).ok()?;
    file.try_lock(LockKind::Exclusive).ok()?;
    Some(file)
}

/// The stem that all temporary names for a destination share; cut so that the whole name stays legal.
fn stem(name: &OsStr) -> OsString {
    let room = NAME_MAX - 2 - UNIQUE_DIGITS - SUFFIX.len();
    let mut stem = OsString::from(".");
    match name.to_str() {
        Some(text) => stem.push(&text[..text.floor_char_boundary(room)]),
        None => {
            use std::os::unix::ffi::OsStrExt;
            stem.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(room)]));
        }
    }
    stem.push(".");
    stem
}

fn partial_name(name: &OsStr, unique: u64) -> OsString {
    let mut partial = stem(name);
    partial.push(format!("{unique:0UNIQUE_DIGITS$x}{SUFFIX}"));
    partial
}

fn is_partial_of(entry: &OsStr, name: &OsStr) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let digits = entry
        .as_bytes()
        .strip_prefix(stem(name).as_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    digits
        .is_some_and(|d| d.len() == UNIQUE_DIGITS && d.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// A number that other runs and other calls do not get; it shows in temporary names only.
fn unique() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    let mut x = nanos ^ (u64::from(std::process::id()) << 40) ^ count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_pattern_is_a_partial() {
        let name = OsStr::new("a.h5");
        assert!(is_partial_of(&partial_name(name, 7), name));
        for no in [
            "a.h5",
            ".a.h5.partial",
            ".a.h5.000000000000000g.partial",
            ".a.h5.00000000000000001.partial",
            ".b.h5.0000000000000001.partial",
            ".a.h5.0000000000000001.part",
            ".a.h5.000000000000000A.partial",
        ] {
            assert!(!is_partial_of(OsStr::new(no), name), "{no}");
        }
    }

    #[test]
    fn long_names_stay_legal_and_are_found() {
        for name in ["n".repeat(255), "é".repeat(127)] {
            let partial = partial_name(OsStr::new(&name), u64::MAX);
            assert!(partial.len() <= NAME_MAX && partial.to_str().is_some());
            assert!(is_partial_of(&partial, OsStr::new(&name)));
        }
    }

    #[test]
    fn unique_numbers_differ() {
        let numbers: std::collections::BTreeSet<_> = (0..10_000).map(|_| unique()).collect();
        assert_eq!(numbers.len(), 10_000);
    }
}
