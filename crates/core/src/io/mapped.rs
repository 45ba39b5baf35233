//! Files mapped into memory: the only place that maps, and so one of the few with `unsafe`.
//!
//! A file that is cut while it is mapped kills the process (SIGBUS), and one that is written changes bytes that Rust
//! takes for constant. [`MappedSource::open_locked`] is safe because it holds a shared lock: everything of ours
//! that changes a published file in place first takes that lock exclusively, and is refused while a map stands.
//! Locks do not bind foreign writers and are not reliable on network file systems: those are refused here, and
//! whoever knows better takes [`MappedSource::open_unchecked`]. The safe twin is [`FileSource`](super::FileSource).

#![expect(unsafe_code, reason = "mapping a file has no safe form")]

use super::source::{ByteSource, Fingerprint, check_range, fingerprint_of};
use crate::error::{Error, ErrorKind, Result};
use memmap2::{Advice, Mmap, MmapOptions, UncheckedAdvice};
use std::fs::{File, Metadata, TryLockError};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Largest unit of the page cache.
const FOLIO: u64 = 2 << 20;

/// A file mapped into memory; [`borrow`](ByteSource::borrow) shows its bytes without a copy.
///
/// ```
/// use tensilo_core::io::{ByteSource, Disk, MappedSource, SystemDisk};
/// # let path = std::env::temp_dir().join(format!("tensilo-mapped-doc-{}", std::process::id()));
/// # SystemDisk.create_new(&path)?.write_at(0, b"some bytes")?;
/// # { // local folders may be of a kind that cannot be mapped safely
/// match MappedSource::open_locked(&path) {
///     Ok(map) => assert_eq!(map.borrow(5..10), Some(&b"bytes"[..])),
///     Err(e) => assert_eq!(e.kind(), tensilo_core::ErrorKind::Unsupported),
/// }
/// # }
/// # SystemDisk.unlink(&path)?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug)]
pub struct MappedSource {
    /// Keeps the lock, if there is one.
    file: File,
    path: PathBuf,
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Mmap>,
    /// Where in the file the map begins.
    start: u64,
}

impl MappedSource {
    /// Maps a file under a shared lock, which in-place writers take exclusively.
    ///
    /// # Errors
    /// `NotFound`; `Locked` while somebody writes in place; `Unsupported` on file systems whose locks or contents
    /// other machines do not respect (read the file through [`FileSource`](super::FileSource) then);
    /// `InvalidArgument` for a folder; `Io`.
    pub fn open_locked(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_locked_prefix(path, u64::MAX)
    }

    /// Maps at most the first so many bytes of a file under a shared lock; what lies behind them may be written.
    ///
    /// # Errors
    /// As [`open_locked`](Self::open_locked).
    pub fn open_locked_prefix(path: impl AsRef<Path>, most: u64) -> Result<Self> {
        let path = path.as_ref();
        let file = open(path)?;
        let refuse = |kind| {
            Error::unsupported(format!("a file on {kind} cannot be mapped safely"))
                .hint("read it without a map")
                .in_file(path)
        };
        file.try_lock_shared().map_err(|e| match (e, remote_kind(&file)) {
            (_, Some(kind)) => refuse(kind),
            (TryLockError::WouldBlock, None) => {
                Error::new(ErrorKind::Locked, "another process or handle writes to it").in_file(path)
            }
            (TryLockError::Error(e), None) => Error::io("cannot lock", e).in_file(path),
        })?;
        // Under the lock, so that the length is that of the file that is mapped.
        let meta = examine(&file, path)?;
        if !on_block_device(&meta)
            && let Some(kind) = remote_kind(&file)
        {
            return Err(refuse(kind));
        }
        // SAFETY: the duty is that nobody changes or cuts the file while it is mapped. The shared lock just taken is
        // held as long as `file` lives, which is as long as the map; writers of ours need it exclusively, but for what
        // lies behind the part that is mapped.
        unsafe { Self::map(file, &meta, path, most) }
    }

    /// Maps a file without a lock.
    ///
    /// # Safety
    /// Until the source is dropped, nobody in any process may write to the file or cut it: a write is undefined
    /// behaviour, a cut kills the process.
    ///
    /// # Errors
    /// As [`open_locked`](Self::open_locked), without `Locked` and `Unsupported`.
    pub unsafe fn open_unchecked(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = open(path)?;
        let meta = examine(&file, path)?;
        // SAFETY: the caller has taken on the duty.
        unsafe { Self::map(file, &meta, path, u64::MAX) }
    }

    /// Maps a committed range of a file to which its writers only ever append; byte 0 of the source is the range's
    /// first. No lock is held: whoever opens it must have found, by the file's own commit record, that the range is
    /// committed, and the file's format must promise that committed bytes stay as they are until the file is gone.
    ///
    /// # Errors
    /// `Unsupported` as for [`open_locked`](Self::open_locked); `Corrupt` when the file ends inside the range; `Io`.
    pub fn open_committed(file: &File, path: impl AsRef<Path>, range: Range<u64>) -> Result<Self> {
        let path = path.as_ref();
        if let Some(kind) = remote_kind(file) {
            return Err(Error::unsupported(format!("a file on {kind} cannot be mapped safely"))
                .hint("read it without a map")
                .in_file(path));
        }
        let examine = |e| Error::io("cannot examine", e).in_file(path);
        let file = file.try_clone().map_err(examine)?;
        let bytes = file.metadata().map_err(examine)?.len();
        if range.start > range.end || range.end > bytes {
            return Err(Error::corrupt(format!("the file has {bytes} bytes, {} were committed", range.end))
                .in_file(path));
        }
        // SAFETY: the duty is that nobody changes or cuts the range while it is mapped. Writers of such a file only
        // write behind what was committed and cut nothing before it; they replace it by renaming, which leaves the
        // mapped file as it is. Foreign writers are excluded as for `open_locked`: by convention.
        unsafe { Self::map_range(file, path, range) }
    }

    /// # Safety
    /// The first `most` bytes of the file must not change while the result lives.
    unsafe fn map(file: File, meta: &Metadata, path: &Path, most: u64) -> Result<Self> {
        // SAFETY: passed on to the caller.
        unsafe { Self::map_range(file, path, 0..meta.len().min(most)) }
    }

    /// # Safety
    /// The range must lie inside the file and must not change while the result lives.
    unsafe fn map_range(file: File, path: &Path, range: Range<u64>) -> Result<Self> {
        let bytes = range.end - range.start;
        let len = usize::try_from(bytes)
            .map_err(|_| Error::limit(format!("{bytes} bytes do not fit in memory")).in_file(path))?;
        let map = if len == 0 {
            None
        } else {
            // SAFETY: passed on to the caller.
            let map = unsafe { MmapOptions::new().offset(range.start).len(len).map(&file) };
            Some(map.map_err(|e| Error::io("cannot map", e).in_file(path))?)
        };
        Ok(Self { file, path: path.to_path_buf(), map, start: range.start })
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }

    /// Reads from the file and not from the map: a few bytes that are needed once cost less than the page fault.
    ///
    /// # Errors
    /// `Corrupt` past the end; `Io`.
    pub fn read_file_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.len()).map_err(|e| e.in_file(&self.path))?;
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_exact_at(&self.file, buf, self.start + offset)
            .map_err(|e| Error::io("cannot read", e).in_file(&self.path).at(offset));
        #[cfg(not(unix))]
        self.read_at(offset, buf)
    }

    /// Tells the system that reads will come in no order, so that it reads no neighbours.
    pub fn advise_random(&self) {
        if let Some(map) = &self.map {
            map.advise(Advice::Random).ok();
        }
    }

    /// Tells the system that a range will be read soon; what lies outside the file is left out.
    pub fn will_need(&self, range: Range<u64>) {
        let end = range.end.min(self.len());
        if let Some(map) = &self.map
            && range.start < end
        {
            map.advise_range(Advice::WillNeed, range.start as usize, (end - range.start) as usize).ok();
        }
    }

    /// Tells the system that reads will go from front to back, so that it reads far ahead.
    pub fn advise_sequential(&self) {
        if let Some(map) = &self.map {
            map.advise(Advice::Sequential).ok();
        }
    }

    /// Gives the memory of a range, and of up to 2 MiB before it, back, in this process and in the page cache; the
    /// next touch reads the file again.
    pub fn drop_cached(&self, range: Range<u64>) {
        let page = rustix::param::page_size() as u64;
        // The page cache gives back whole folios of up to 2 MiB only: one that begins before the range goes with it.
        let (start, end) = (range.start / FOLIO * FOLIO, range.end.min(self.len()));
        let whole = if end == self.len() { end } else { end / page * page };
        if let Some(map) = &self.map
            && start < whole
        {
            let len = whole - start;
            // SAFETY: the pages of this map are read-only and backed by the file, which does not change while it is
            // mapped (the duty of `map`): what is read after the pages were dropped is what was read before.
            unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start as usize, len as usize) }
                .ok();
            rustix::fs::fadvise(
                &self.file,
                self.start + start,
                std::num::NonZeroU64::new(len),
                rustix::fs::Advice::DontNeed,
            )
            .ok();
        }
    }

    /// Bytes of the pages of a range that the page cache holds now (`mincore`).
    ///
    /// # Errors
    /// `InvalidArgument` when the range passes the end; `Io`.
    pub fn resident_bytes(&self, range: Range<u64>) -> Result<u64> {
        let Some(map) = self.map.as_ref().filter(|_| range.start < range.end) else { return Ok(0) };
        if range.end > self.len() {
            return Err(Error::invalid(format!("range {range:?} passes the end")).in_file(&self.path));
        }
        let page = rustix::param::page_size();
        let start = range.start as usize / page * page;
        let len = range.end as usize - start;
        let mut pages = vec![0_u8; len.div_ceil(page)];
        let first = map[start..].as_ptr().cast_mut().cast();
        // SAFETY: `first` is page-aligned (a map starts at a page, `start` is a multiple of one), `len` bytes from it
        // lie inside the map, and `pages` has one byte for each page of them. The memory is not written to.
        if unsafe { libc::mincore(first, len, pages.as_mut_ptr()) } != 0 {
            return Err(Error::io("cannot ask for resident pages", std::io::Error::last_os_error())
                .in_file(&self.path));
        }
        Ok(pages.iter().filter(|p| **p & 1 == 1).count() as u64 * page as u64)
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|e| Error::io("cannot open", e).in_file(path))
}

fn examine(file: &File, path: &Path) -> Result<Metadata> {
    let meta = file.metadata().map_err(|e| Error::io("cannot examine", e).in_file(path))?;
    if meta.is_file() { Ok(meta) } else { Err(Error::invalid("not a regular file").in_file(path)) }
}

/// Is the file system on a block device of this machine? Those of networks have device numbers with major 0, as have
/// some local ones, which are looked at more closely.
#[cfg(target_os = "linux")]
fn on_block_device(meta: &Metadata) -> bool {
    rustix::fs::major(std::os::linux::fs::MetadataExt::st_dev(meta)) != 0
}

#[cfg(not(target_os = "linux"))]
fn on_block_device(_: &Metadata) -> bool {
    false
}

/// The name of the file system, if other machines may change its files behind our locks.
#[cfg(target_os = "linux")]
fn remote_kind(file: &File) -> Option<&'static str> {
    // Numbers from the statfs(2) manual page.
    const KINDS: [(u64, &str); 13] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xfe53_4d42, "SMB2"),
        (0xff53_4d42, "CIFS"),
        (0x564c, "NCP"),
        (0x5346_414f, "AFS"),
        (0x7375_7245, "Coda"),
        (0x6573_5546, "FUSE"),
        (0x0102_1997, "9P"),
        (0x00c3_6400, "Ceph"),
        (0x0bd0_0bd0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x1983_0326, "BeeGFS"),
    ];
    let kind = u64::from(rustix::fs::fstatfs(file).ok()?.f_type as u32);
    KINDS.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn remote_kind(_: &File) -> Option<&'static str> {
    Some("a file system that cannot be told from a network's on this system")
}

impl ByteSource for MappedSource {
    fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.len()).map_err(|e| e.in_file(&self.path))?;
        let start = offset as usize;
        buf.copy_from_slice(&self.bytes()[start..start + buf.len()]);
        Ok(())
    }

    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        self.bytes().get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        let meta = self.file.metadata().map_err(|e| Error::io("cannot examine", e).in_file(&self.path))?;
        Ok(fingerprint_of(&meta))
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}
