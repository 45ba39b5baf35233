//! Reading a store: open, check, and lend slabs, windows and lanes as slices of the map.

use crate::examine::examine;
use crate::lane_type::LaneElement;
use crate::place::{LanePlace, Placement};
use crate::schema::{FormatVersion, LaneKind, LaneSpec};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::{ByteSource, Fingerprint, MappedSource};
use tensilo_core::{Error, ErrorKind, Monitor, Progress, Quiet, Result};

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Accept what petektools accepts although it is questionable: version byte 0, bytes behind the seal, no
    /// slabs, equal names (the first one is read), a slab lane that also has a length.
    pub lenient: bool,
    /// Compare every slab with its checksum now (format 2).
    pub verify: bool,
}

/// An open store: a cheap clone, for any number of threads.
///
/// In format 2 a slab is compared with its checksum when a checked accessor touches it first; the accessors
/// with `raw` in their name do not. Format 1 has no checksums: there a flipped bit cannot be seen.
#[derive(Debug, Clone)]
pub struct Store(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub source: Arc<dyn ByteSource>,
    /// The same source, when it is a map.
    pub map: Option<Arc<MappedSource>>,
    pub placement: Placement,
    pub version: FormatVersion,
}

/// Reads a mapped file without touching the map.
#[derive(Debug)]
struct Unmapped<'a>(&'a MappedSource);

impl ByteSource for Unmapped<'_> {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_file_at(offset, buf)
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        self.0.fingerprint()
    }
}

/// Opens a store for reading; the same as [`Store::open`].
///
/// # Errors
/// As [`Store::open`].
pub fn open(path: impl AsRef<Path>) -> Result<Store> {
    Store::open(path)
}

impl Store {
    /// Maps a store and checks its header and seal; takes a shared lock, which keeps our in-place writers out.
    ///
    /// # Errors
    /// `NotFound`; `Locked` while a writer rewrites it; `Corrupt`, with the field and its offset; `Unsupported`
    /// for a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let map = Arc::new(MappedSource::open_locked(path.as_ref())?);
        Self::new(map.clone(), Some(map), options).map_err(|e| e.in_file(path))
    }

    /// Opens a store held by a source that lends its bytes, such as memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(source: Arc<dyn ByteSource>, options: OpenOptions) -> Result<Self> {
        Self::new(source, None, options)
    }

    fn new(
        source: Arc<dyn ByteSource>,
        map: Option<Arc<MappedSource>>,
        options: OpenOptions,
    ) -> Result<Self> {
        let (placement, version, _) = match &map {
            Some(map) => examine(&Unmapped(map), options.lenient)?,
            None => examine(&*source, options.lenient)?,
        };
        let store = Self(Arc::new(Inner { source, map, placement, version }));
        if options.verify
            && let Some(bad) = store.verify()?.into_iter().next()
        {
            return Err(bad);
        }
        Ok(store)
    }

    /// On-disk format.
    pub fn version(&self) -> FormatVersion {
        self.0.version
    }

    /// Steps of the slow axis.
    pub fn nslabs(&self) -> u64 {
        self.0.placement.nslabs
    }

    /// The lanes in file order.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = &LaneSpec> {
        self.0.placement.lanes.iter().map(|l| &l.spec)
    }

    /// One lane's description.
    ///
    /// # Errors
    /// `NotFound`, naming the lanes there are.
    pub fn lane(&self, name: &str) -> Result<&LaneSpec> {
        Ok(&self.0.placement.lane(name)?.spec)
    }

    /// Slabs of a lane now; 1 for a flat lane.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn slab_count(&self, name: &str) -> Result<u64> {
        Ok(self.0.placement.lane(name)?.slabs)
    }

    /// Was a slab ever written? Always true in format 1, which does not know.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`.
    pub fn is_written(&self, name: &str, k: u64) -> Result<bool> {
        let lane = self.0.placement.lane(name)?;
        lane.locate(k)?;
        Ok(lane.table.get(k as usize).is_none_or(|s| s.written))
    }

    /// The application's own JSON.
    pub fn app(&self) -> &serde_json::Value {
        &self.0.placement.app
    }

    /// Compares every slab with its checksum; returns what does not match. Empty in format 1, which has none.
    ///
    /// # Errors
    /// Only when the bytes cannot be read.
    pub fn verify(&self) -> Result<Vec<Error>> {
        self.verify_with(&Quiet)
    }

    /// As [`verify`](Self::verify); the monitor hears of progress in slabs and may stop it.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), and the monitor's.
    pub fn verify_with(&self, monitor: &dyn Monitor) -> Result<Vec<Error>> {
        let lanes = &self.0.placement.lanes;
        let total = lanes.iter().map(|l| l.table.len() as u64).sum();
        let (mut bad, mut done) = (Vec::new(), 0);
        for lane in lanes {
            for k in 0..lane.table.len() as u64 {
                monitor.poll(&Progress { stage: "comparing", done, total })?;
                done += 1;
                if let Err(e) = self.0.check(lane, k) {
                    if e.kind() != ErrorKind::Corrupt {
                        return Err(e);
                    }
                    bad.push(e);
                }
            }
        }
        Ok(bad)
    }

    /// A typed handle on a lane.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` when the lane is of another type.
    pub fn typed<T: LaneElement>(&self, name: &str) -> Result<Lane<T>> {
        self.view::<T>(name)?;
        let index = self.0.placement.index(name)?;
        Ok(Lane::new(self.clone(), index))
    }

    /// Compares slabs `range` with their checksums, those that were not compared yet.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`; `Corrupt`, naming the first slab that does not match.
    pub fn check_slabs(&self, name: &str, range: Range<u64>) -> Result<()> {
        let lane = self.0.placement.lane(name)?;
        for k in range {
            lane.locate(k)?;
            if !lane.checked.all(k..k + 1) {
                self.0.check(lane, k)?;
            }
        }
        Ok(())
    }

    /// Copies slabs `range` (a flat lane is slab 0) into bytes, checked, in C order, wherever they lie.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` also when `out` is of another length; `Corrupt`.
    pub fn read_bytes(&self, name: &str, range: Range<u64>, out: &mut [u8]) -> Result<()> {
        let lane = self.0.placement.lane(name)?;
        let view = LaneView { inner: &self.0, lane };
        match lane.spec.dtype.size() {
            1 => view.copy_bytes::<u8>(range, out),
            2 => view.copy_bytes::<u16>(range, out),
            4 => view.copy_bytes::<u32>(range, out),
            _ => view.copy_bytes::<u64>(range, out),
        }
    }

    pub(crate) fn view<T: LaneElement>(&self, name: &str) -> Result<LaneView<'_>> {
        let lane = self.0.placement.lane(name)?;
        if !T::reads(lane.spec.dtype) {
            let (is, want) = (lane.spec.dtype.name(), T::TYPE.name());
            return Err(Error::invalid(format!("the lane holds {is}, not {want}")).in_object(name));
        }
        Ok(LaneView { inner: &self.0, lane })
    }

    /// The stored bytes of slabs `range`, little-endian, without a look at their checksums.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`; `Unsupported` when the slabs do not lie together.
    pub fn raw_bytes(&self, name: &str, range: Range<u64>) -> Result<&[u8]> {
        self.0.bytes(self.0.placement.lane(name)?, range)
    }
}

impl Inner {
    pub fn bytes(&self, lane: &LanePlace, range: Range<u64>) -> Result<&[u8]> {
        let (offset, n) = lane.window(range.start, range.end)?;
        if n == 0 {
            return Ok(&[]);
        }
        self.source.borrow(offset..offset + n).ok_or_else(|| {
            Error::unsupported("this byte source cannot lend its bytes").in_object(&lane.spec.name)
        })
    }

    pub fn check(&self, lane: &LanePlace, k: u64) -> Result<()> {
        let Some(state) = lane.table.get(k as usize) else { return Ok(()) };
        let bytes = self.bytes(lane, k..k + 1)?;
        let ok =
            if state.written { crc32c::crc32c(bytes) == state.crc } else { bytes.iter().all(|b| *b == 0) };
        if !ok {
            let (offset, _) = lane.locate(k)?;
            return Err(Error::corrupt(format!("slab {k} does not match its checksum"))
                .in_object(&lane.spec.name)
                .at(offset));
        }
        lane.checked.mark(k);
        Ok(())
    }
}

/// A lane of a known element type; a cheap clone.
#[derive(Debug)]
pub struct Lane<T> {
    store: Store,
    index: usize,
    marker: std::marker::PhantomData<T>,
}

impl<T> Clone for Lane<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), index: self.index, marker: std::marker::PhantomData }
    }
}

impl<T: LaneElement> Lane<T> {
    pub(crate) fn new(store: Store, index: usize) -> Self {
        Self { store, index, marker: std::marker::PhantomData }
    }

    pub(crate) fn view(&self) -> LaneView<'_> {
        LaneView { inner: &self.store.0, lane: &self.store.0.placement.lanes[self.index] }
    }

    /// Name, type and sizes.
    pub fn spec(&self) -> &LaneSpec {
        &self.view().lane.spec
    }

    /// Slabs of the lane; 1 for a flat one.
    pub fn slabs(&self) -> u64 {
        self.view().lane.slabs
    }

    /// Slab `k`: `elems` values in storage order (chunk by chunk when the lane is chunked).
    ///
    /// # Errors
    /// `InvalidArgument` out of range or on a flat lane; `Corrupt` when it does not match its checksum.
    pub fn slab(&self, k: u64) -> Result<&[T]> {
        self.view().slab(k)
    }

    /// Slabs `start..end` as one slice; empty when they are equal.
    ///
    /// # Errors
    /// As [`slab`](Self::slab); `Unsupported` when appended slabs lie elsewhere, see
    /// [`read_window`](Self::read_window).
    pub fn window(&self, start: u64, end: u64) -> Result<&[T]> {
        self.view().window(start, end)
    }

    /// Slabs `start..end` without a look at their checksums.
    ///
    /// # Errors
    /// As [`window`](Self::window), but never `Corrupt`.
    pub fn raw_window(&self, start: u64, end: u64) -> Result<&[T]> {
        self.view().raw(start..end)
    }

    /// Copies slabs `start..end`, wherever they lie, into `out`; in C order, also of a chunked lane.
    ///
    /// # Errors
    /// As [`slab`](Self::slab), and `InvalidArgument` when `out` is of another length.
    pub fn read_window(&self, start: u64, end: u64, out: &mut [T]) -> Result<()> {
        self.view().read_window(start, end, out)
    }

    /// Copies a region of slab `k` into `out`, in C order; only the chunks it touches are read.
    ///
    /// # Errors
    /// As [`slab`](Self::slab); `InvalidArgument` when the lane has no shape or the region does not fit it.
    pub fn read_region(&self, k: u64, region: &[Range<u64>], out: &mut [T]) -> Result<()> {
        let slab = self.view().slab(k)?;
        crate::chunked::read_region(self.spec(), slab, region, out)
    }

    /// The whole lane as one slice: all slabs, or the flat run.
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn all(&self) -> Result<&[T]> {
        self.view().all()
    }

    /// The flat run.
    ///
    /// # Errors
    /// `InvalidArgument` when the lane is divided into slabs; `Corrupt`.
    pub fn flat(&self) -> Result<&[T]> {
        self.view().flat()
    }
}

/// A lane seen through a borrowed store: where all reading happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneView<'a> {
    pub inner: &'a Inner,
    pub lane: &'a LanePlace,
}

impl<'a> LaneView<'a> {
    fn need(self, slab: bool) -> Result<()> {
        if matches!(self.lane.spec.kind, LaneKind::Slab { .. }) != slab {
            let message =
                if slab { "the lane is flat; it has no slabs" } else { "the lane is divided into slabs" };
            return Err(Error::invalid(message).in_object(&self.lane.spec.name));
        }
        Ok(())
    }

    /// Slabs `range` as one slice, each compared with its checksum on first touch.
    fn checked<T: LaneElement>(self, range: Range<u64>) -> Result<&'a [T]> {
        let values = self.raw(range.clone())?;
        if !self.lane.checked.all(range.clone()) {
            self.compare(range)?;
        }
        Ok(values)
    }

    /// Compares those slabs that were not compared yet.
    #[cold]
    fn compare(self, range: Range<u64>) -> Result<()> {
        for k in range {
            if !self.lane.checked.all(k..k + 1) {
                self.inner.check(self.lane, k)?;
            }
        }
        Ok(())
    }

    pub fn raw<T: LaneElement>(self, range: Range<u64>) -> Result<&'a [T]> {
        let bytes = self.inner.bytes(self.lane, range)?;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        if cfg!(target_endian = "big") {
            return Err(Error::unsupported("views of little-endian lanes on a big-endian machine")
                .in_object(&self.lane.spec.name));
        }
        bytemuck::try_cast_slice(bytes).map_err(|e| {
            Error::unsupported(format!("the bytes are not aligned for a view: {e}"))
                .in_object(&self.lane.spec.name)
        })
    }

    /// Slabs, or the flat run as slab 0.
    pub fn range<T: LaneElement>(self, start: u64, end: u64) -> Result<&'a [T]> {
        self.checked(start..end)
    }

    pub fn slab<T: LaneElement>(self, k: u64) -> Result<&'a [T]> {
        self.need(true)?;
        self.lane.locate(k)?;
        self.checked(k..k + 1)
    }

    pub fn window<T: LaneElement>(self, start: u64, end: u64) -> Result<&'a [T]> {
        self.need(true)?;
        self.checked(start..end)
    }

    pub fn all<T: LaneElement>(self) -> Result<&'a [T]> {
        self.checked(0..self.lane.slabs)
    }

    pub fn flat<T: LaneElement>(self) -> Result<&'a [T]> {
        self.need(false)?;
        self.all()
    }

    /// Copies slabs as elements of their width, which need not be their type.
    fn copy_bytes<T: LaneElement>(self, range: Range<u64>, out: &mut [u8]) -> Result<()> {
        if let Ok(values) = bytemuck::try_cast_slice_mut::<u8, T>(out) {
            return self.copy_slabs(range.start, range.end, values);
        }
        let mut values = vec![T::default(); out.len() / size_of::<T>()];
        self.copy_slabs(range.start, range.end, &mut values)?;
        match out.len() == size_of_val(values.as_slice()) {
            true => out.copy_from_slice(bytemuck::cast_slice(&values)),
            false => {
                return Err(Error::invalid(format!("{} bytes are no whole number of values", out.len())));
            }
        }
        Ok(())
    }

    pub fn read_window<T: LaneElement>(self, start: u64, end: u64, out: &mut [T]) -> Result<()> {
        self.need(true)?;
        self.copy_slabs(start, end, out)
    }

    fn copy_slabs<T: LaneElement>(self, start: u64, end: u64, out: &mut [T]) -> Result<()> {
        let (spec, slabs) = (&self.lane.spec, self.lane.slabs);
        if start > end || end > slabs {
            return Err(Error::invalid(format!(
                "window {start}..{end} is out of range: the lane has {slabs} slabs"
            ))
            .in_object(&spec.name));
        }
        let elems = spec.elems();
        if (end - start).checked_mul(elems) != Some(out.len() as u64) {
            let n = end - start;
            return Err(Error::invalid(format!(
                "{n} slabs of {elems} values do not fill a buffer of {}",
                out.len()
            ))
            .in_object(&spec.name));
        }
        let whole: Vec<_> = spec.shape.iter().map(|s| 0..*s).collect();
        // A buffer of that length exists, so `elems` fits and is not 0 where there is a slab.
        for (k, slab) in (start..end).zip(out.chunks_exact_mut((elems as usize).max(1))) {
            let stored = self.checked(k..k + 1)?;
            if spec.chunk.is_empty() {
                slab.copy_from_slice(stored);
            } else {
                crate::chunked::read_region(spec, stored, &whole, slab)?;
            }
        }
        Ok(())
    }
}
