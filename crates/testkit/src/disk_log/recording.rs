//! The recorder: a disk that keeps the log of all that is done to it.

use super::model_disk::{ModelDisk, load_folder};
use super::{DiskLog, Image, Op};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tensilo_core::io::{Disk, DiskFile, Fingerprint, LockKind, SystemDisk};
use tensilo_core::{Error, Result};

/// A disk that records every change: a model disk, or a folder of the real one with a model kept equal to it.
///
/// Clones are handles to the same disk and log.
#[derive(Debug, Clone)]
pub struct RecordingDisk {
    model: ModelDisk,
    initial: Arc<Image>,
    /// The real folder that stands for the model's root.
    root: Option<PathBuf>,
    /// Held while an operation runs, so that the log's order is the true one.
    turn: Arc<Mutex<()>>,
}

impl Default for RecordingDisk {
    fn default() -> Self {
        Self::over_model(ModelDisk::new())
    }
}

impl RecordingDisk {
    /// An empty model disk, recorded.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records what is done to a model disk from now on; all it holds counts as durable.
    pub fn over_model(model: ModelDisk) -> Self {
        let initial = {
            let mut state = model.lock();
            state.log = Some(Vec::new());
            Arc::new(state.image.clone())
        };
        Self { model, initial, root: None, turn: Arc::default() }
    }

    /// Records what is done to a real folder from now on; all it holds counts as durable.
    ///
    /// Readers may open its files by their paths. Changes that do not come through this disk are not seen.
    ///
    /// # Panics
    /// When the folder cannot be read.
    pub fn over_folder(root: impl AsRef<Path>) -> Self {
        let root = std::path::absolute(root.as_ref()).expect("an absolute path");
        let image = load_folder(&root).expect("a readable folder");
        Self { root: Some(root), ..Self::over_model(ModelDisk::from_image(image)) }
    }

    /// The model: all of it for a recorded model disk, an equal of the real folder otherwise.
    pub fn model(&self) -> &ModelDisk {
        &self.model
    }

    /// Notes in the log that the program under test reached a point; [`passed`](super::CrashState::passed) asks
    /// for it.
    pub fn mark(&self, what: impl Into<String>) {
        self.model.lock().record(Op::Mark(what.into()));
    }

    /// What was recorded so far.
    pub fn log(&self) -> DiskLog {
        DiskLog {
            initial: (*self.initial).clone(),
            ops: self.model.lock().log.clone().unwrap_or_default(),
            root: self.root.clone().unwrap_or_default(),
        }
    }

    fn inside(&self, path: &Path) -> Result<PathBuf> {
        let Some(root) = &self.root else { return Ok(path.to_path_buf()) };
        let absolute = std::path::absolute(path)
            .map_err(|e| Error::io("cannot make the path absolute", e).in_file(path))?;
        absolute.strip_prefix(root).map(Path::to_path_buf).map_err(|_| {
            Error::invalid(format!("the recorded folder is {}, which this is outside of", root.display()))
                .in_file(path)
        })
    }

    /// Does it on the real disk, if there is one, and then on the model, which must agree.
    fn both<T>(
        &self,
        real: impl FnOnce() -> Result<T>,
        model: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Option<T>)> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.root.is_none() {
            return Ok((model()?, None));
        }
        let real = real()?;
        match model() {
            Ok(model) => Ok((model, Some(real))),
            Err(e) => panic!("the system did what the model refuses: {e:?}"),
        }
    }

    fn file(
        &self,
        path: &Path,
        (model, real): (Box<dyn DiskFile>, Option<Box<dyn DiskFile>>),
    ) -> Box<dyn DiskFile> {
        Box::new(RecordedFile { disk: self.clone(), model, real, path: path.to_path_buf() })
    }

    fn two(&self, from: &Path, to: &Path, act: impl Fn(&dyn Disk, &Path, &Path) -> Result<()>) -> Result<()> {
        let (f, t) = (self.inside(from)?, self.inside(to)?);
        self.both(|| act(&SystemDisk, from, to), || act(&self.model, &f, &t)).map(drop)
    }

    fn one(&self, path: &Path, act: impl Fn(&dyn Disk, &Path) -> Result<()>) -> Result<()> {
        let inside = self.inside(path)?;
        self.both(|| act(&SystemDisk, path), || act(&self.model, &inside)).map(drop)
    }
}

impl Disk for RecordingDisk {
    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let inside = self.inside(path)?;
        let files = self.both(|| SystemDisk.create_new(path), || self.model.create_new(&inside))?;
        Ok(self.file(path, files))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let inside = self.inside(path)?;
        let files = self.both(|| SystemDisk.open(path), || self.model.open(&inside))?;
        Ok(self.file(path, files))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.one(path, |d, p| d.create_dir(p))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.two(from, to, |d, f, t| d.link(f, t))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.two(from, to, |d, f, t| d.rename(f, t))
    }

    fn rename_no_replace(&self, from: &Path, to: &Path) -> Result<()> {
        self.two(from, to, |d, f, t| d.rename_no_replace(f, t))
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        self.one(path, |d, p| d.unlink(p))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.one(path, |d, p| d.remove_dir(p))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        // The real disk need not be durable: the crash is the model's.
        let inside = self.inside(path)?;
        self.both(|| SystemDisk.list(path).map(drop), || self.model.sync_dir(&inside)).map(drop)
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>> {
        match self.root {
            Some(_) => SystemDisk.list(path),
            None => self.model.list(path),
        }
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        match self.root {
            Some(_) => SystemDisk.free_space(path),
            None => self.model.free_space(path),
        }
    }
}

#[derive(Debug)]
struct RecordedFile {
    disk: RecordingDisk,
    model: Box<dyn DiskFile>,
    real: Option<Box<dyn DiskFile>>,
    path: PathBuf,
}

impl RecordedFile {
    fn do_both(&self, act: impl Fn(&dyn DiskFile) -> Result<()>) -> Result<()> {
        let real = || self.real.as_deref().map_or(Ok(()), &act);
        self.disk.both(real, || act(&*self.model)).map(drop).map_err(|e| e.in_file(&self.path))
    }

    /// The one that answers questions.
    fn answers(&self) -> &dyn DiskFile {
        self.real.as_deref().unwrap_or(&*self.model)
    }
}

impl DiskFile for RecordedFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.do_both(|f| f.write_at(offset, data))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.answers().read_at(offset, buf)
    }

    fn len(&self) -> Result<u64> {
        self.answers().len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.do_both(|f| f.set_len(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.do_both(|f| f.allocate(offset, len))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.do_both(|f| f.punch(offset, len))
    }

    fn sync(&self) -> Result<()> {
        // The real disk need not be durable: the crash is the model's.
        self.disk.both(|| Ok(()), || self.model.sync()).map(drop)
    }

    fn try_lock(&self, kind: LockKind) -> Result<()> {
        self.answers().try_lock(kind)
    }

    fn unlock(&self) -> Result<()> {
        self.answers().unlock()
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        self.answers().fingerprint()
    }
}
