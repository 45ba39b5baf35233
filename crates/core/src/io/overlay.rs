//! Patches laid over another source: a cache image, an open transaction and a refreshed view are all overlays.

use super::source::{ByteSource, Fingerprint, check_range};
use crate::error::Result;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source under patches. A read shows the patches where there are any, and the source below elsewhere.
///
/// ```
/// use std::sync::Arc;
/// use tensilo_core::io::{ByteSource, MemorySource, OverlaySource};
/// let below = Arc::new(MemorySource::new(*b"0123456789"));
/// let mut overlay = OverlaySource::new(below);
/// overlay.insert(3, b"abc");
/// overlay.insert(5, b"X");
/// let mut seen = [0; 10];
/// overlay.read_at(0, &mut seen)?;
/// assert_eq!(&seen, b"012abX6789");
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OverlaySource {
    below: Arc<dyn ByteSource>,
    /// Bytes of the source below that show; the rest was cut off.
    shown: u64,
    len: u64,
    /// Patches by where they start; none is empty, none overlaps another.
    patches: BTreeMap<u64, Arc<[u8]>>,
    /// 0 while nothing was changed, else a number no other overlay in this process has.
    version: u64,
}

impl OverlaySource {
    /// Lays an overlay without patches.
    pub fn new(below: Arc<dyn ByteSource>) -> Self {
        let len = below.len();
        Self { below, shown: len, len, patches: BTreeMap::new(), version: 0 }
    }

    /// The source below.
    pub fn below(&self) -> &Arc<dyn ByteSource> {
        &self.below
    }

    /// Lays a patch, over earlier ones too; one that ends past the end makes the source longer, and what lies between
    /// reads as zeros.
    pub fn insert(&mut self, offset: u64, bytes: &[u8]) {
        let Some(end) = offset.checked_add(bytes.len() as u64).filter(|end| *end > offset) else { return };
        self.clear(offset..end);
        self.patches.insert(offset, bytes.into());
        self.len = self.len.max(end);
        self.touch();
    }

    /// Cuts or extends (with zeros) what is shown.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.clear(len..self.len);
            self.shown = self.shown.min(len);
        }
        self.len = len;
        self.touch();
    }

    /// The patches, in the order of their offsets; none touches the bytes of another.
    pub fn patches(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.patches.iter().map(|(offset, bytes)| (*offset, &**bytes))
    }

    /// Bytes in all patches together.
    pub fn patched_bytes(&self) -> u64 {
        self.patches.values().map(|p| p.len() as u64).sum()
    }

    fn touch(&mut self) {
        static VERSIONS: AtomicU64 = AtomicU64::new(1);
        self.version = VERSIONS.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a range out of all patches.
    fn clear(&mut self, range: Range<u64>) {
        let touched: Vec<u64> = self.touching(range.clone()).map(|(offset, _)| offset).collect();
        for offset in touched {
            let Some(bytes) = self.patches.remove(&offset) else { continue };
            if offset < range.start {
                self.patches.insert(offset, bytes[..(range.start - offset) as usize].into());
            }
            if offset + bytes.len() as u64 > range.end {
                self.patches.insert(range.end, bytes[(range.end - offset) as usize..].into());
            }
        }
    }

    /// The patches with bytes in a range.
    fn touching(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Arc<[u8]>)> {
        let first = self.patches.range(..=range.start).next_back().map_or(range.start, |(offset, _)| *offset);
        self.patches
            .range(first..range.end.max(first))
            .map(|(offset, bytes)| (*offset, bytes))
            .filter(move |(offset, bytes)| offset + bytes.len() as u64 > range.start)
    }

    /// Fills what patches and zeros say of a buffer, and collects the rest, to be read from below.
    fn split<'b>(&self, offset: u64, buf: &'b mut [u8], rest: &mut Vec<(u64, &'b mut [u8])>) {
        let end = offset + buf.len() as u64;
        let mut at = offset;
        let mut left = buf;
        let mut gap = |at: u64, gap: &'b mut [u8]| {
            let from_below = self.shown.saturating_sub(at).min(gap.len() as u64) as usize;
            let (below, zeros) = gap.split_at_mut(from_below);
            zeros.fill(0);
            if !below.is_empty() {
                rest.push((at, below));
            }
        };
        for (start, bytes) in self.touching(offset..end) {
            let (before, from_patch) = left.split_at_mut(start.saturating_sub(at) as usize);
            gap(at, before);
            at = at.max(start);
            let skip = (at - start) as usize;
            let n = (bytes.len() - skip).min(from_patch.len());
            let (patched, after) = from_patch.split_at_mut(n);
            patched.copy_from_slice(&bytes[skip..skip + n]);
            at += n as u64;
            left = after;
        }
        gap(at, left);
    }
}

impl ByteSource for OverlaySource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read_ranges(&mut [(offset, buf)])
    }

    fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<()> {
        for (offset, buf) in &*ranges {
            check_range(*offset, buf.len(), self.len).map_err(|e| match self.path() {
                Some(path) => e.in_file(path),
                None => e,
            })?;
        }
        let mut rest = Vec::new();
        for (offset, buf) in ranges {
            self.split(*offset, buf, &mut rest);
        }
        match &mut rest[..] {
            [] => Ok(()),
            [(offset, buf)] => self.below.read_at(*offset, buf),
            rest => self.below.read_ranges(rest),
        }
    }

    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        if range.start > range.end || range.end > self.len {
            return None;
        }
        match self.touching(range.clone()).next() {
            None if range.end <= self.shown => self.below.borrow(range),
            None => None,
            Some((start, bytes)) => {
                let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
                bytes.get(from..usize::try_from(range.end - start).ok()?)
            }
        }
    }

    /// That of the source below while nothing is changed, one of its own afterwards.
    fn fingerprint(&self) -> Result<Fingerprint> {
        let below = self.below.fingerprint()?;
        if self.version == 0 {
            return Ok(below);
        }
        Ok(Fingerprint {
            bytes: self.len,
            mtime_ns: below.mtime_ns ^ (i128::from(self.version) << 64),
            ..below
        })
    }

    fn path(&self) -> Option<&Path> {
        self.below.path()
    }
}
