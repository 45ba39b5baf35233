//! Opened packs: every value, frame and region, by positioned reads through the index alone.
//!
//! A shard is read whole when something of it is first wanted, checked (payload SHA-256, headers, cover), and kept
//! packed for a while; [`Pack::resident`] keeps all of them. The dense array is never made unless it is asked for.

mod extensions;
mod shard;
mod unpack;
mod values;

pub use extensions::{Extension, PreparedMoments};
pub use shard::Shard;
pub(crate) use values::whole_group;
pub use values::{Region, Values};

use crate::digest::Sha256Sum;
use crate::format::index::PackIndex;
use crate::format::manifest::Manifest;
use crate::format::prelude::{PRELUDE_BYTES, Prelude};
use crate::geometry::Geometry;
use crate::profile::Flavour;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, Limits, Monitor, Result};

/// How a pack is read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Bytes that may be held because the file says so.
    pub limits: Limits,
    /// Threads that products, resident loads and frame ranges use.
    pub threads: Threads,
    /// Bytes of packed shards that are kept for the next read; at least one shard is.
    pub cached_bytes: u64,
}

impl Default for ReadOptions {
    /// The default limits, all cores, 512 MiB of packed shards.
    fn default() -> Self {
        Self { limits: Limits::default(), threads: Threads::default(), cached_bytes: 512 << 20 }
    }
}

/// An opened pack; a cheap clone, usable from any thread.
///
/// ```no_run
/// use tensilo_pack::read::Pack;
/// let pack = Pack::open("scan.h5")?;
/// let [scan_rows, scan_columns, detector_rows, detector_columns] = pack.shape();
/// let middle = pack.scan(scan_rows / 2, scan_columns / 2)?;
/// let frame: Vec<u16> = pack.frame(middle)?;
/// assert_eq!(frame.len(), (detector_rows * detector_columns) as usize);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pack {
    inner: Arc<Inner>,
    /// All shards, once they are resident.
    resident: Option<Arc<[Arc<Shard>]>>,
}

#[derive(Debug)]
struct Inner {
    source: Arc<dyn ByteSource>,
    index: PackIndex,
    manifest: Manifest,
    manifest_sha256: Sha256Sum,
    moments: Option<PreparedMoments>,
    products: Vec<Extension>,
    options: ReadOptions,
    budget: Budget,
    /// Shards used last, the latest in front.
    cache: Mutex<VecDeque<(usize, Arc<Shard>)>>,
}

impl Pack {
    /// Opens a pack file: prelude, manifest and index are read and checked, nothing else.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported` for other revisions, `NotFound`, `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, ReadOptions::default())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: ReadOptions) -> Result<Self> {
        Self::from_source(Arc::new(FileSource::open(path)?), options)
    }

    /// Opens a pack in any byte source.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `Missing`.
    pub fn from_source(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self> {
        let path = source.path().map(Path::to_path_buf);
        Self::begin(source, options).map_err(|e| match path {
            Some(path) => e.in_file(path),
            None => e,
        })
    }

    fn begin(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self> {
        let budget = Budget::new(options.limits.clone());
        let file_bytes = source.len();
        let mut head = [0; PRELUDE_BYTES as usize];
        let n = file_bytes.min(PRELUDE_BYTES) as usize;
        source.read_at(0, &mut head[..n])?;
        let prelude = Prelude::parse(&head[..n], file_bytes)?;
        let (mut text, _text) = budget.buffer(prelude.manifest_bytes.into(), "manifest")?;
        let (mut index, _index) = budget.buffer(prelude.index_bytes.into(), "pack index")?;
        source
            .read_ranges(&mut [(PRELUDE_BYTES, &mut text), (u64::from(prelude.index_offset), &mut index)])?;
        let crc = crc32fast::hash(&text);
        if crc != prelude.manifest_crc {
            return Err(Error::corrupt(format!(
                "the manifest's CRC-32 is {crc:08x}, the prelude states {:08x}",
                prelude.manifest_crc
            ))
            .at(PRELUDE_BYTES));
        }
        let index = PackIndex::parse(&index, prelude.index_offset.into(), file_bytes)?;
        let manifest = Manifest::parse(&text, &index)?;
        let manifest_sha256 = Sha256Sum::of(&text);
        let moments = PreparedMoments::parse(&manifest, &index, file_bytes)?;
        let products = extensions::prepared_products(&manifest, file_bytes)?;
        Ok(Self {
            inner: Arc::new(Inner {
                source,
                index,
                manifest,
                manifest_sha256,
                moments,
                products,
                options,
                budget,
                cache: Mutex::default(),
            }),
            resident: None,
        })
    }

    /// Scan rows, scan columns, detector rows, detector columns.
    pub fn shape(&self) -> [u32; 4] {
        self.inner.index.geometry.shape()
    }

    /// The shape, with its derived numbers.
    pub fn geometry(&self) -> &Geometry {
        &self.inner.index.geometry
    }

    /// Which of the three flavours it is.
    pub fn flavour(&self) -> Flavour {
        self.inner.index.flavour
    }

    /// The binary index.
    pub fn index(&self) -> &PackIndex {
        &self.inner.index
    }

    /// The manifest, checked against the index.
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// SHA-256 of the manifest's text.
    pub fn manifest_sha256(&self) -> Sha256Sum {
        self.inner.manifest_sha256
    }

    /// Length of the pack's file.
    pub fn file_bytes(&self) -> u64 {
        self.inner.source.len()
    }

    /// Excluded flat pixels, ascending.
    pub fn excluded(&self) -> &[u32] {
        &self.inner.index.excluded
    }

    /// Number of the scan at a row and column.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such scan.
    pub fn scan(&self, row: u32, column: u32) -> Result<u64> {
        let [rows, columns, ..] = self.shape();
        if row >= rows || column >= columns {
            return Err(Error::invalid(format!("scan ({row}, {column}) is not in {rows} x {columns}")));
        }
        Ok(u64::from(row) * u64::from(columns) + u64::from(column))
    }

    /// Number of the detector pixel at a row and column.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such pixel.
    pub fn pixel(&self, row: u32, column: u32) -> Result<u64> {
        let [.., rows, columns] = self.shape();
        if row >= rows || column >= columns {
            return Err(Error::invalid(format!("pixel ({row}, {column}) is not in {rows} x {columns}")));
        }
        Ok(u64::from(row) * u64::from(columns) + u64::from(column))
    }

    /// The account that this pack's memory is charged to.
    pub fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// Threads that its operations use.
    pub fn threads(&self) -> Threads {
        self.inner.options.threads
    }

    pub(crate) fn source(&self) -> &dyn ByteSource {
        &*self.inner.source
    }

    /// Adds the pack's path to an error.
    pub(crate) fn in_file(&self, e: Error) -> Error {
        match self.inner.source.path() {
            Some(path) => e.in_file(path),
            None => e,
        }
    }

    /// Are all shards in memory?
    pub fn is_resident(&self) -> bool {
        self.resident.is_some()
    }

    /// Prepared moments that a later step added to the file; read and check them with
    /// [`prepared_moments`](Self::prepared_moments).
    pub fn moments_extension(&self) -> Option<&PreparedMoments> {
        self.inner.moments.as_ref()
    }

    /// Byte ranges that the extension `prepared_detector_products` names.
    pub fn products_extension(&self) -> &[Extension] {
        &self.inner.products
    }

    fn cache(&self) -> MutexGuard<'_, VecDeque<(usize, Arc<Shard>)>> {
        self.inner.cache.lock().unwrap_or_else(|p| p.into_inner())
    }

    /// A shard, from memory or read and checked.
    ///
    /// # Errors
    /// As [`Shard::load`].
    pub fn shard(&self, ordinal: usize) -> Result<Arc<Shard>> {
        if let Some(all) = &self.resident
            && let Some(shard) = all.get(ordinal)
        {
            return Ok(shard.clone());
        }
        {
            let mut cache = self.cache();
            if let Some(at) = cache.iter().position(|(k, _)| *k == ordinal)
                && let Some(entry) = cache.remove(at)
            {
                let shard = entry.1.clone();
                cache.push_front(entry);
                return Ok(shard);
            }
        }
        let shard = Arc::new(self.load_shard(ordinal)?);
        let mut cache = self.cache();
        if cache.iter().all(|(k, _)| *k != ordinal) {
            cache.push_front((ordinal, shard.clone()));
        }
        let mut held = 0_u64;
        let limit = self.inner.options.cached_bytes;
        let keep = cache.iter().take_while(|(_, s)| {
            held += s.bytes();
            held <= limit
        });
        let keep = keep.count().max(1);
        cache.truncate(keep);
        Ok(shard)
    }

    /// Reads and checks a shard; where memory is short, what is cached goes first.
    fn load_shard(&self, ordinal: usize) -> Result<Shard> {
        let load = || Shard::load(self.source(), self.index(), ordinal, self.budget());
        let first = load().or_else(|e| {
            if e.kind() != tensilo_core::ErrorKind::Limit {
                return Err(e);
            }
            self.cache().clear();
            load()
        });
        first.map_err(|e| self.in_file(e))
    }

    /// Reads and checks a shard that nobody else will want; the cache stays as it is.
    pub(crate) fn passing_shard(&self, ordinal: usize) -> Result<Arc<Shard>> {
        if let Some(shard) = self.resident.as_ref().and_then(|all| all.get(ordinal)) {
            return Ok(shard.clone());
        }
        let cached = self.cache().iter().find(|(k, _)| *k == ordinal).map(|(_, s)| s.clone());
        match cached {
            Some(shard) => Ok(shard),
            None => self.load_shard(ordinal).map(Arc::new),
        }
    }

    /// Loads every shard, and returns the pack with all of them in memory.
    ///
    /// Nothing is returned before every shard has passed; when one fails, or the monitor stops the load, all that
    /// was read is given back.
    ///
    /// # Errors
    /// As [`Shard::load`], and the monitor's.
    pub fn resident(&self, monitor: &dyn Monitor) -> Result<Self> {
        if self.is_resident() {
            return Ok(self.clone());
        }
        self.cache().clear();
        let count = self.index().shards.len();
        let slots: Vec<OnceLock<Arc<Shard>>> = (0..count).map(|_| OnceLock::new()).collect();
        let bytes = self.index().shards.iter().map(|s| s.payload.bytes).sum();
        self.threads().for_each(
            count,
            monitor,
            "loading shards",
            bytes,
            || (),
            |(), k, done| {
                let shard = Arc::new(self.load_shard(k)?);
                done.add(self.index().shards[k].payload.bytes);
                // Each index is handed out once.
                let _ = slots[k].set(shard);
                Ok(())
            },
        )?;
        let all: Option<Vec<_>> = slots.into_iter().map(OnceLock::into_inner).collect();
        let all = all.ok_or_else(|| Error::invalid("a shard was not loaded"))?;
        Ok(Self { inner: self.inner.clone(), resident: Some(all.into()) })
    }
}
