//! A finished store in a file that is removed when it is no longer needed, unless it is kept.

use crate::schema::StoreSchema;
use crate::store::Store;
use crate::writer::{StoreWriter, WriterOptions};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensilo_core::Result;
use tensilo_core::io::Disk;

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A store whose file goes when the last owner does.
#[derive(Debug)]
pub struct TemporaryStore {
    store: Store,
    path: PathBuf,
    disk: Arc<dyn Disk>,
    keep: bool,
}

impl TemporaryStore {
    /// Creates a store under a unique name in `folder`, lets `fill` write it, and opens it.
    ///
    /// # Errors
    /// As [`StoreWriter::create_with`]; what `fill` returns; nothing is left behind.
    pub fn create(
        folder: impl AsRef<Path>,
        schema: StoreSchema,
        options: WriterOptions,
        fill: impl FnOnce(&StoreWriter) -> Result<()>,
    ) -> Result<Self> {
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = folder.as_ref().join(format!("tensilo-{}-{n}.pts", std::process::id()));
        let disk = options.disk.clone();
        let writer = StoreWriter::create_with(&path, schema, options)?;
        fill(&writer)?;
        writer.finish()?;
        match Store::open(&path) {
            Ok(store) => Ok(Self { store, path, disk, keep: false }),
            Err(e) => {
                disk.unlink(&path)?;
                Err(e)
            }
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the file; returns its path.
    pub fn keep(mut self) -> PathBuf {
        self.keep = true;
        self.path.clone()
    }
}

impl Deref for TemporaryStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Drop for TemporaryStore {
    fn drop(&mut self) {
        if !self.keep {
            // Nobody is left to tell; a file that is gone already is what was wanted.
            let _ = self.disk.unlink(&self.path);
        }
    }
}
