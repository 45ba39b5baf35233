//! How a file is written.

use super::file_space::{FileSpaceOptions, SharedIndexOptions, SharedKind, check_shared};
use crate::format::encode::Bound;
use std::sync::Arc;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Quiet, Result};
use tensilo_filters::Registry;

/// A monitor that may be asked from any thread.
pub type SharedMonitor = Arc<dyn Monitor + Send + Sync>;

/// How a file is written; the default opens in every libhdf5 from 1.8 on.
#[derive(Clone)]
pub struct WriteOptions {
    /// Bytes in front of the superblock that are the user's: 0, or 512 and its doublings.
    pub user_block: u64,
    /// The oldest libhdf5 that must open the file.
    pub bound: Bound,
    /// Threads that encode chunks. The bytes written do not depend on it.
    pub threads: Threads,
    /// Bytes of raw data that may be on their way between the caller and the disk.
    pub window: u64,
    /// Are links and attributes numbered in the order they are made, and can be listed in it?
    pub track_order: bool,
    /// How the space of the file is managed by who changes it later.
    pub file_space: FileSpaceOptions,
    /// Which header messages objects share.
    pub shared: Vec<SharedIndexOptions>,
    /// The filters that chunks are encoded with.
    pub registry: Arc<Registry>,
    /// Is told of progress, and may stop the work.
    pub monitor: SharedMonitor,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            user_block: 0,
            bound: Bound::Earliest,
            threads: Threads::default(),
            window: 32 << 20,
            track_order: false,
            file_space: FileSpaceOptions::default(),
            shared: Vec::new(),
            registry: Arc::new(Registry::default()),
            monitor: Arc::new(Quiet),
        }
    }
}

impl WriteOptions {
    /// Files for this oldest libhdf5.
    #[must_use]
    pub fn bound(mut self, bound: Bound) -> Self {
        self.bound = bound;
        self
    }

    /// With a user block of this many bytes.
    #[must_use]
    pub fn user_block(mut self, bytes: u64) -> Self {
        self.user_block = bytes;
        self
    }

    /// With this many threads.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// With the space of the file managed in this way.
    #[must_use]
    pub fn file_space(mut self, file_space: FileSpaceOptions) -> Self {
        self.file_space = file_space;
        self
    }

    /// With messages of these kinds shared, of at least `min_size` bytes.
    #[must_use]
    pub fn share(mut self, kinds: &[SharedKind], min_size: u32) -> Self {
        self.shared.push(SharedIndexOptions { kinds: kinds.to_vec(), min_size });
        self
    }

    /// Version of the superblock: an extension needs 2.
    pub(crate) fn superblock_version(&self) -> u8 {
        let extended = self.file_space.is_stated() || !self.shared.is_empty();
        self.bound.superblock_version().max(if extended { 2 } else { 0 })
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.file_space.check()?;
        check_shared(&self.shared)?;
        let n = self.user_block;
        if n != 0 && (n < 512 || !n.is_power_of_two()) {
            return Err(Error::invalid(format!(
                "a user block of {n} bytes; 0, 512, 1024, 2048, … are possible"
            )));
        }
        Ok(())
    }
}

impl std::fmt::Debug for WriteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteOptions")
            .field("user_block", &self.user_block)
            .field("bound", &self.bound)
            .field("threads", &self.threads)
            .field("window", &self.window)
            .field("track_order", &self.track_order)
            .field("file_space", &self.file_space)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}
