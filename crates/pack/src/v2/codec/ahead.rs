//! Counts copied to rows of bytes, and measured, a few at a time.
//!
//! Counts above 254 become 255; whoever needs more looks them up. A block's rows lie far apart in a cube that is in no
//! cache: copying them while the block before is coded hides some of the way. Fetching all of a block beforehand does not
//! help: frames whose size is a multiple of a large power of two share the same few places of a cache.

#![expect(
    unsafe_code,
    reason = "prefetching, and calling functions compiled for vectors, after asking for them"
)]

use super::choose::{self, Extent};
use super::count::Count;
use super::level::Level;
use super::placement::GROUP;
use super::{BlockShape, Layout};

/// Counts of a line: four groups.
const LINE: usize = 4 * GROUP;
/// Scans whose counts, as bytes, add up to 16 bits.
const MOST_SCANS: usize = 256;
/// Scans that are copied at once, and that are fetched into the cache before.
const SCANS: usize = 4;
/// What stands for all counts that a byte does not hold, and for itself.
pub(super) const SATURATED: u8 = u8::MAX;

/// Memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub rows: Vec<u8>,
    found: Vec<Found>,
    starts: Vec<usize>,
}

/// Sums and extremes of each pixel of a line, as bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Found {
    sum: [u16; LINE],
    most: [u8; LINE],
    least: [u8; LINE],
}

/// Something that can be done bit by bit while a block is coded.
pub(super) trait Ahead {
    /// Lines that are left.
    fn left(&self) -> usize;

    /// Copies the next lines, or all that are left.
    fn copy(&mut self, lines: usize);
}

impl<T: Count> Ahead for Option<Loader<'_, T>> {
    fn left(&self) -> usize {
        self.as_ref().map_or(0, Loader::left)
    }

    fn copy(&mut self, lines: usize) {
        if let Some(loader) = self {
            loader.copy(lines);
        }
    }
}

/// A block on its way to rows.
#[derive(Debug)]
pub(super) struct Loader<'a, T> {
    counts: &'a [T],
    scan_stride: usize,
    scans: usize,
    room: Room,
    /// The next scans, and the next line of theirs.
    scan: usize,
    line: usize,
    level: Level,
}

impl<'a, T: Count> Loader<'a, T> {
    /// Begins with a block whose layout was checked; the room comes back where its rows are no whole lines or its scans
    /// too many.
    pub fn new(
        counts: &'a [T],
        layout: Layout,
        shape: BlockShape,
        mut room: Room,
        level: Level,
    ) -> Result<Self, Room> {
        let BlockShape { pixels, scans } = shape;
        let columns = layout.columns.min(pixels);
        if !pixels.is_multiple_of(LINE) || !columns.is_multiple_of(LINE) || scans > MOST_SCANS {
            return Err(room);
        }
        room.rows.resize(shape.counts(), 0);
        room.starts.clear();
        room.starts.extend((0..pixels).step_by(LINE).map(|p| layout.at(0, p)));
        room.found.clear();
        let none = Found { sum: [0; LINE], most: [0; LINE], least: [u8::MAX; LINE] };
        room.found.resize(pixels / LINE, none);
        Ok(Self { counts, scan_stride: layout.scan_stride, scans, room, scan: 0, line: 0, level })
    }

    fn left(&self) -> usize {
        (self.scans - self.scan) * self.room.starts.len() - self.line * SCANS.min(self.scans - self.scan)
    }

    fn copy(&mut self, lines: usize) {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected.
            Level::Avx512 => unsafe { copy_avx512(self, lines) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected.
            Level::Avx2 => unsafe { copy_avx2(self, lines) },
            _ => self.with(lines),
        }
    }

    #[inline(always)]
    fn with(&mut self, mut lines: usize) {
        let per_scan = self.room.starts.len();
        while lines > 0 && self.scan < self.scans {
            let from = &self.counts[self.scan * self.scan_stride..];
            let rows = &mut self.room.rows[self.scan * per_scan * LINE..];
            let (start, found) = (self.room.starts[self.line], &mut self.room.found[self.line]);
            let to = self.line * LINE;
            let n = SCANS.min(self.scans - self.scan);
            match n {
                SCANS => {
                    (0..SCANS).for_each(|s| prefetch(from, start + (SCANS + s) * self.scan_stride));
                    copy::<T, SCANS>(
                        &from[start..],
                        self.scan_stride,
                        &mut rows[to..],
                        per_scan * LINE,
                        found,
                    );
                }
                _ => (0..n).for_each(|s| {
                    let (from, rows) =
                        (&from[start + s * self.scan_stride..], &mut rows[to + s * per_scan * LINE..]);
                    copy::<T, 1>(from, 0, rows, 0, found);
                }),
            }
            lines = lines.saturating_sub(n);
            self.line += 1;
            if self.line == per_scan {
                (self.scan, self.line) = (self.scan + n, 0);
            }
        }
    }

    /// Copies what is left, and finds the extents of all groups.
    pub fn finish(mut self, extents: &mut Vec<Extent>) -> Room {
        self.copy(usize::MAX);
        extents.clear();
        for (found, start) in self.room.found.iter().zip(&self.room.starts) {
            let small = found.most.iter().all(|v| *v < SATURATED);
            extents.extend((0..LINE).step_by(GROUP).map(|at| match small {
                true => Extent {
                    sums: std::array::from_fn(|i| found.sum[at + i].into()),
                    most: std::array::from_fn(|i| found.most[at + i].into()),
                    least: found.least[at..at + GROUP].iter().min().copied().unwrap_or(0).into(),
                },
                false => choose::extent(
                    (0..self.scans).map(|s| &self.counts[start + at + s * self.scan_stride..]),
                    GROUP,
                ),
            }));
        }
        self.room
    }
}

/// Copies the same line of some scans.
#[inline(always)]
fn copy<T: Count, const N: usize>(
    from: &[T],
    scan_stride: usize,
    to: &mut [u8],
    stride: usize,
    found: &mut Found,
) {
    let mut now = *found;
    for scan in 0..N {
        let counts: &[T; LINE] = from[scan * scan_stride..].first_chunk().expect("a line of the block");
        let to: &mut [u8; LINE] = to[scan * stride..].first_chunk_mut().expect("a line of a row");
        for i in 0..LINE {
            let v = counts[i].widen().min(SATURATED.into()) as u8;
            to[i] = v;
            now.sum[i] = now.sum[i].wrapping_add(v.into());
            now.most[i] = now.most[i].max(v);
            now.least[i] = now.least[i].min(v);
        }
    }
    *found = now;
}

/// # Safety
/// AVX2 was detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn copy_avx2<T: Count>(loader: &mut Loader<'_, T>, lines: usize) {
    loader.with(lines);
}

/// # Safety
/// AVX-512 F, BW and VL were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2")]
fn copy_avx512<T: Count>(loader: &mut Loader<'_, T>, lines: usize) {
    loader.with(lines);
}

/// Fetches the line of a count, if there is one.
#[inline(always)]
fn prefetch<T>(counts: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(first) = counts.get(at) {
        // SAFETY: fetching changes nothing, whatever the address; this one is inside the slice.
        unsafe { std::arch::x86_64::_mm_prefetch::<3>(std::ptr::from_ref(first).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (counts, at);
}
