//! A disk of which one operation fails: no space, a device error, or a write that stops half way.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tensilo_core::io::{Disk, DiskFile, Fingerprint, LockKind};
use tensilo_core::{Error, Result};

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The disk is full; nothing was done.
    NoSpace,
    /// The device reports an error; nothing was done.
    Io,
    /// The first half of a write was done, then the disk was full. Other operations do not fail this way.
    ShortWrite,
}

/// Which operation fails, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which operation, counted from 0.
    pub at: usize,
    /// How it fails.
    pub kind: FaultKind,
    /// Do all later operations fail too?
    pub lasting: bool,
    /// What the operation is called, once it has been reached.
    pub struck: Option<&'static str>,
}

/// A disk that fails as told; every other call goes to the disk inside.
///
/// Counted are the calls that change something, open, list, read or lock; not `len`, `fingerprint`, `free_space`
/// and `unlock`.
#[derive(Debug, Clone)]
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    fault: Option<Fault>,
    calls: Vec<&'static str>,
}

impl FaultyDisk {
    /// Wraps a disk; without a fault it only counts.
    pub fn new(inner: Arc<dyn Disk>, fault: Option<Fault>) -> Self {
        Self { inner, state: Arc::new(Mutex::new(State { fault, calls: Vec::new() })) }
    }

    /// The counted calls so far, by name.
    pub fn calls(&self) -> Vec<&'static str> {
        self.state().calls.clone()
    }

    /// The fault; its `struck` tells whether it happened.
    pub fn fault(&self) -> Option<Fault> {
        self.state().fault
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; an error when it is to fail, with `Some` number of bytes to write before.
    fn count(&self, call: &'static str, path: &Path, write: Option<usize>) -> Result<(), (usize, Error)> {
        let mut state = self.state();
        let index = state.calls.len();
        state.calls.push(call);
        let Some(fault) = &mut state.fault else { return Ok(()) };
        let reached = index == fault.at || (fault.lasting && index > fault.at);
        let short = fault.kind == FaultKind::ShortWrite;
        if !reached || (short && write.is_none() && fault.struck.is_none()) {
            return Ok(());
        }
        fault.struck.get_or_insert(call);
        let kind = match fault.kind {
            FaultKind::Io => io::Error::from_raw_os_error(5),
            FaultKind::NoSpace | FaultKind::ShortWrite => io::ErrorKind::StorageFull.into(),
        };
        let first = if short { write.unwrap_or(0) / 2 } else { 0 };
        Err((first, Error::io(format_args!("planted fault in {call}"), kind).in_file(path)))
    }

    fn plain(&self, call: &'static str, path: &Path) -> Result<()> {
        self.count(call, path, None).map_err(|(_, e)| e)
    }

    fn file(&self, path: &Path, inner: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultyFile { disk: self.clone(), inner, path: path.to_path_buf() })
    }
}

impl Disk for FaultyDisk {
    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        self.plain("create_new", path)?;
        Ok(self.file(path, self.inner.create_new(path)?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        self.plain("open", path)?;
        Ok(self.file(path, self.inner.open(path)?))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.plain("create_dir", path)?;
        self.inner.create_dir(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.plain("link", to)?;
        self.inner.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.plain("rename", to)?;
        self.inner.rename(from, to)
    }

    fn rename_no_replace(&self, from: &Path, to: &Path) -> Result<()> {
        self.plain("rename_no_replace", to)?;
        self.inner.rename_no_replace(from, to)
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        self.plain("unlink", path)?;
        self.inner.unlink(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.plain("remove_dir", path)?;
        self.inner.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.plain("sync_dir", path)?;
        self.inner.sync_dir(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>> {
        self.plain("list", path)?;
        self.inner.list(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.inner.free_space(path)
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    inner: Box<dyn DiskFile>,
    path: PathBuf,
}

impl DiskFile for FaultyFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if let Err((first, e)) = self.disk.count("write_at", &self.path, Some(data.len())) {
            if first > 0 {
                self.inner.write_at(offset, &data[..first])?;
            }
            return Err(e.at(offset));
        }
        self.inner.write_at(offset, data)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.disk.plain("read_at", &self.path)?;
        self.inner.read_at(offset, buf)
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.disk.plain("set_len", &self.path)?;
        self.inner.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.disk.plain("allocate", &self.path)?;
        self.inner.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.disk.plain("punch", &self.path)?;
        self.inner.punch(offset, len)
    }

    fn sync(&self) -> Result<()> {
        self.disk.plain("sync", &self.path)?;
        self.inner.sync()
    }

    fn try_lock(&self, kind: LockKind) -> Result<()> {
        self.disk.plain("try_lock", &self.path)?;
        self.inner.try_lock(kind)
    }

    fn unlock(&self) -> Result<()> {
        self.inner.unlock()
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        self.inner.fingerprint()
    }
}

/// Runs a program once for every operation it does and every way in which that can fail, for good or once only.
///
/// `make` makes a fresh disk, `run` is the program, `check` looks at the disk and the result afterwards. Returns the
/// number of faults that struck.
///
/// # Panics
/// When the program fails without a fault, or `check` panics.
pub fn every_fault<D: Disk + Clone + 'static, T>(
    make: impl Fn() -> D,
    run: impl Fn(Arc<dyn Disk>) -> Result<T>,
    check: impl Fn(&D, &Fault, Result<T>),
) -> usize {
    if let Err(e) = run(Arc::new(make())) {
        panic!("without a fault the program must succeed: {e:?}");
    }
    let mut struck = 0;
    for kind in [FaultKind::NoSpace, FaultKind::Io, FaultKind::ShortWrite] {
        for lasting in [false, true] {
            for at in 0.. {
                let disk = make();
                let planted = Fault { at, kind, lasting, struck: None };
                let faulty = FaultyDisk::new(Arc::new(disk.clone()), Some(planted));
                let result = run(Arc::new(faulty.clone()));
                if faulty.calls().len() <= at {
                    break;
                }
                let fault = faulty.fault().unwrap_or(planted);
                if fault.struck.is_some() {
                    struck += 1;
                    check(&disk, &fault, result);
                }
            }
        }
    }
    struck
}
