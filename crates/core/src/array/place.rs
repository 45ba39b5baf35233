//! Copies between decoded chunks and the destination; every worker writes its own part of the destination.
//!
//! Why this may be done without locks: a [`Canvas`] is made from a [`Split`], which has proven that its parts
//! are disjoint, and hands each part out once. All address arithmetic is in [`Moves`], shared by the fast
//! copies here and by their safe twins ([`Split::gather`], and `place_safely` in the tests).
#![expect(unsafe_code, reason = "several workers write disjoint parts of one buffer")]

use super::shape::strides;
use super::split::{AxisRun, Split};
use crate::error::{Error, Result};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// `n` copies of `bytes` bytes each, at equal distances on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    dst: usize,
    src: usize,
    n: usize,
    dst_step: usize,
    src_step: isize,
    bytes: usize,
}

/// How bytes of one side are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The whole result.
    Result,
    /// The whole chunk.
    Chunk,
    /// The elements of the part only, in the order of the result.
    Part,
}

/// One loop level: runs of positions, each with its place on both sides.
#[derive(Debug)]
struct Level {
    runs: Vec<Move>,
}

/// All copies of one part, from one side to another.
#[derive(Debug)]
struct Moves {
    levels: Vec<Level>,
    /// Base offsets and bytes that are copied as one where there is no level left.
    base: Move,
}

impl Moves {
    /// Works out the copies of `part` for elements of `width` bytes.
    fn new(split: &Split, part: usize, width: usize, dst: Side, src: Side) -> Self {
        let axes: Vec<(u64, &[AxisRun])> =
            split.axis_runs(part).map(|(axis, runs)| (axis.len, runs)).collect();
        let lens: Vec<u64> = axes.iter().map(|(_, runs)| runs.iter().map(|r| r.len).sum()).collect();
        let steps = |side| match side {
            // Neither can fail: both were checked when the split was made.
            Side::Result => strides(split.shape()).unwrap_or_default(),
            Side::Chunk => strides(split.grid().chunk()).unwrap_or_default(),
            Side::Part => strides(&lens).unwrap_or_default(),
        };
        if axes.is_empty() {
            return Self::from_segments(split, part, width, dst, src);
        }
        let (dst_steps, src_steps) = (steps(dst), steps(src));
        let mut base = Move { dst: 0, src: 0, n: 1, dst_step: 0, src_step: 0, bytes: width };
        let mut levels: Vec<Level> = Vec::new();
        for (axis, (_, runs)) in axes.iter().enumerate().rev() {
            let (ds, ss) = (dst_steps[axis] as usize * width, src_steps[axis] as usize * width);
            let mut before = 0;
            let moves: Vec<Move> = runs
                .iter()
                .map(|run| {
                    let at = |side, step: usize| match side {
                        Side::Result => run.out as usize * step,
                        Side::Chunk => run.inside as usize * step,
                        Side::Part => before as usize * step,
                    };
                    let step = if src == Side::Chunk { run.step as isize } else { 1 };
                    let (d, s) = (at(dst, ds), at(src, ss));
                    before += run.len;
                    Move {
                        dst: d,
                        src: s,
                        n: run.len as usize,
                        dst_step: ds,
                        src_step: step * ss as isize,
                        bytes: 0,
                    }
                })
                .collect();
            match moves.as_slice() {
                [m] if m.n == 1
                    || (levels.is_empty()
                        && m.dst_step == base.bytes
                        && m.src_step == base.bytes as isize) =>
                {
                    base.dst += m.dst;
                    base.src += m.src;
                    if m.n > 1 {
                        base.bytes *= m.n;
                    }
                }
                _ => levels.push(Level { runs: moves }),
            }
        }
        levels.reverse();
        Self { levels, base }
    }

    fn from_segments(split: &Split, part: usize, width: usize, dst: Side, src: Side) -> Self {
        let mut before = 0;
        let runs: Vec<Move> = split
            .segments(part)
            .iter()
            .map(|s| {
                let at = |side| match side {
                    Side::Result => s.out as usize * width,
                    Side::Chunk => s.inside as usize * width,
                    Side::Part => before as usize * width,
                };
                let (dst, src) = (at(dst), at(src));
                before += s.len;
                Move { dst, src, n: 1, dst_step: 0, src_step: 0, bytes: s.len as usize * width }
            })
            .collect();
        let base = Move { dst: 0, src: 0, n: 1, dst_step: 0, src_step: 0, bytes: width };
        // A product of no axes (a scalar) has no segments: its one element is the base move alone.
        if runs.is_empty() {
            Self { levels: Vec::new(), base }
        } else {
            Self { levels: vec![Level { runs }], base }
        }
    }

    /// The only copy, where one is enough.
    fn single(&self) -> Option<Move> {
        match self.levels.as_slice() {
            [] => Some(self.base),
            [Level { runs }] => match runs.as_slice() {
                [m] if m.n == 1 && m.bytes > 0 => Some(*m),
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls `f` with every copy.
    fn each(&self, f: &mut impl FnMut(Move)) {
        self.descend(&self.levels, self.base.dst, self.base.src, f);
    }

    fn descend(&self, levels: &[Level], dst: usize, src: usize, f: &mut impl FnMut(Move)) {
        let Some((level, inner)) = levels.split_first() else {
            return f(Move { dst, src, ..self.base });
        };
        for run in &level.runs {
            if inner.is_empty() {
                let bytes = if run.bytes > 0 { run.bytes } else { self.base.bytes };
                f(Move { dst: dst + run.dst, src: src + run.src, bytes, ..*run });
                continue;
            }
            let mut s = (src + run.src) as isize;
            for i in 0..run.n {
                self.descend(inner, dst + run.dst + i * run.dst_step, s as usize, f);
                s += run.src_step;
            }
        }
    }
}

impl Move {
    /// Start of copy `i` on the source side.
    fn src_at(&self, i: usize) -> usize {
        (self.src as isize + i as isize * self.src_step) as usize
    }

    /// The same move where the source begins at byte `from`; `None` when the move begins before that.
    fn from(self, from: usize) -> Option<Self> {
        Some(Self { src: self.src.checked_sub(from)?, ..self })
    }

    /// Does the move stay inside both sides? Proven once per part, in constant time per move.
    fn fits(&self, dst_len: usize, src_len: usize) -> bool {
        let last = self.n.saturating_sub(1);
        let dst_end =
            last.checked_mul(self.dst_step).and_then(|d| d.checked_add(self.dst)?.checked_add(self.bytes));
        let first = self.src as isize;
        let Some(far) = (last as isize).checked_mul(self.src_step).and_then(|s| s.checked_add(first)) else {
            return false;
        };
        let high = (far.max(first) as usize).checked_add(self.bytes);
        far.min(first) >= 0 && dst_end.is_some_and(|e| e <= dst_len) && high.is_some_and(|e| e <= src_len)
    }
}

impl Split {
    /// Does a part consist of all elements of its chunk in the chunk's order, as one run of the result?
    pub fn is_whole(&self, part: usize, width: usize) -> bool {
        self.run_in_chunk(part, width)
            .is_some_and(|r| (r.len() / width.max(1)) as u64 == self.grid().chunk_elements())
    }

    /// The bytes of the chunk that make up a part, where they are one run in both chunk and result.
    pub fn run_in_chunk(&self, part: usize, width: usize) -> Option<Range<usize>> {
        let m = Moves::new(self, part, width, Side::Result, Side::Chunk).single()?;
        Some(m.src..m.src + m.bytes)
    }

    /// The byte ranges of a chunk that a part needs, ascending; ranges no more than `gap` bytes apart are one.
    pub fn ranges_in_chunk(&self, part: usize, width: usize, gap: usize) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let add = |ranges: &mut Vec<Range<usize>>, start: usize, end: usize| match ranges.last_mut() {
            Some(r) if start >= r.start && start <= r.end.saturating_add(gap) => r.end = r.end.max(end),
            _ => ranges.push(start..end),
        };
        Moves::new(self, part, width, Side::Result, Side::Chunk).each(&mut |m| {
            let dense = m.src_step.unsigned_abs() <= m.bytes.saturating_add(gap);
            let (a, b) = (m.src, m.src_at(m.n.saturating_sub(1)));
            if dense {
                add(&mut ranges, a.min(b), a.max(b) + m.bytes);
            } else {
                (0..m.n).for_each(|i| add(&mut ranges, m.src_at(i), m.src_at(i) + m.bytes));
            }
        });
        if !ranges.is_sorted_by_key(|r| r.start) {
            ranges.sort_unstable_by_key(|r| r.start);
        }
        let mut merged: Vec<Range<usize>> = Vec::new();
        for r in ranges {
            add(&mut merged, r.start, r.end);
        }
        merged
    }

    /// Copies the elements of a part out of its decoded chunk, in the order of the result. `chunk` begins at byte
    /// `from` of the chunk and must hold all that the part needs.
    ///
    /// # Errors
    /// `InvalidArgument` when a buffer is too short.
    pub fn gather(&self, part: usize, width: usize, chunk: &[u8], from: usize, out: &mut [u8]) -> Result<()> {
        let mut fine = true;
        Moves::new(self, part, width, Side::Part, Side::Chunk).each(&mut |m| {
            let m = m.from(from).filter(|m| fine && m.fits(out.len(), chunk.len()));
            match m {
                Some(m) => copy_safely(&m, chunk, out),
                None => fine = false,
            }
        });
        if fine { Ok(()) } else { Err(too_short()) }
    }
}

fn too_short() -> Error {
    Error::invalid("a buffer is shorter than the part of the selection that it should hold")
}

/// The safe twin of [`copy_raw`].
fn copy_safely(m: &Move, src: &[u8], dst: &mut [u8]) {
    for i in 0..m.n {
        let (d, s) = (m.dst + i * m.dst_step, m.src_at(i));
        dst[d..d + m.bytes].copy_from_slice(&src[s..s + m.bytes]);
    }
}

/// A destination whose parts are handed out, each to at most one worker.
///
/// ```
/// use tensilo_core::Budget;
/// use tensilo_core::array::{Canvas, ChunkGrid, Selection, Split};
/// let grid = ChunkGrid::new(&[4], &[2])?;
/// let split = Split::new(&Selection::All, &grid, &Budget::default())?;
/// let mut result = [0; 4];
/// let canvas = Canvas::new(&split, &mut result, 1)?;
/// canvas.tile(1).unwrap().place(&[7, 8], 0)?;
/// assert!(canvas.tile(1).is_none()); // already taken
/// drop(canvas);
/// assert_eq!(result, [0, 0, 7, 8]);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Canvas<'a> {
    split: &'a Split,
    start: *mut u8,
    len: usize,
    width: usize,
    taken: Vec<AtomicU64>,
    _buffer: PhantomData<&'a mut [u8]>,
}

// SAFETY: the pointer stands for an exclusive borrow of the buffer (`_buffer`), and bytes are plain data. What
// several threads do with it at once goes through tiles, whose bytes are disjoint: `Split::new` proved that each
// position belongs to one part, and `taken` hands every part out once.
unsafe impl Send for Canvas<'_> {}
// SAFETY: as above; `tile` is the only way to the bytes through a shared reference.
unsafe impl Sync for Canvas<'_> {}

impl<'a> Canvas<'a> {
    /// Spreads a split over a destination of elements of `width` bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when the destination does not have exactly the size of the result.
    pub fn new(split: &'a Split, destination: &'a mut [u8], width: usize) -> Result<Self> {
        let expected = split.elements().checked_mul(width as u64);
        if width == 0 || expected != Some(destination.len() as u64) {
            return Err(Error::invalid(format!(
                "a result of {} elements of {width} bytes does not fit a buffer of {} bytes",
                split.elements(),
                destination.len()
            )));
        }
        let taken = (0..split.parts().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self {
            split,
            start: destination.as_mut_ptr(),
            len: destination.len(),
            width,
            taken,
            _buffer: PhantomData,
        })
    }

    /// Takes a part; `None` when there is no such part or it was taken before.
    pub fn tile(&self, part: usize) -> Option<Tile<'_>> {
        if part >= self.split.parts() {
            return None;
        }
        let bit = 1_u64 << (part % 64);
        let before = self.taken.get(part / 64)?.fetch_or(bit, Ordering::AcqRel);
        (before & bit == 0).then_some(Tile { canvas: self, part })
    }
}

/// One worker's part of a [`Canvas`].
#[derive(Debug)]
pub struct Tile<'c> {
    canvas: &'c Canvas<'c>,
    part: usize,
}

impl Tile<'_> {
    fn moves(&self, src: Side) -> Moves {
        Moves::new(self.canvas.split, self.part, self.canvas.width, Side::Result, src)
    }

    /// The destination of the part, where it is one run of bytes and the part's elements are in order in it.
    pub fn contiguous(&mut self) -> Option<&mut [u8]> {
        let m = self.moves(Side::Part).single()?;
        if m.dst.checked_add(m.bytes).is_none_or(|end| end > self.canvas.len) {
            return None;
        }
        // SAFETY: the range lies inside the buffer (just checked), which is borrowed for longer than `self`;
        // no other tile covers these bytes, as parts are disjoint and this one was taken once; `&mut self`
        // keeps this tile from lending them twice.
        Some(unsafe { std::slice::from_raw_parts_mut(self.canvas.start.add(m.dst), m.bytes) })
    }

    /// Places the elements of the part from its decoded chunk; `chunk` begins at byte `from` of the chunk and must
    /// hold all that the part needs.
    ///
    /// # Errors
    /// `InvalidArgument` when it does not.
    pub fn place(&mut self, chunk: &[u8], from: usize) -> Result<()> {
        self.copy(self.moves(Side::Chunk), chunk, from)
    }

    /// Places the elements of the part from a buffer that holds only them, in the order of the result.
    ///
    /// # Errors
    /// `InvalidArgument` when `elements` is shorter than the part.
    pub fn place_part(&mut self, elements: &[u8]) -> Result<()> {
        self.copy(self.moves(Side::Part), elements, 0)
    }

    fn copy(&mut self, moves: Moves, src: &[u8], from: usize) -> Result<()> {
        let mut fine = true;
        moves.each(&mut |m| match m.from(from).filter(|m| fine && m.fits(self.canvas.len, src.len())) {
            // SAFETY: `fits` has just checked that every copy of the move stays inside both buffers. The
            // destination bytes belong to this part alone (see `Canvas`), so nobody reads or writes them now, and
            // they cannot overlap `src`, a shared borrow of other memory.
            Some(m) => unsafe { copy_raw(&m, src.as_ptr(), self.canvas.start) },
            None => fine = false,
        });
        if fine { Ok(()) } else { Err(too_short()) }
    }

    /// Fills the part with one element.
    ///
    /// # Errors
    /// `InvalidArgument` when `value` is not one element.
    pub fn fill(&mut self, value: &[u8]) -> Result<()> {
        if value.len() != self.canvas.width {
            return Err(Error::invalid(format!(
                "a fill value of {} bytes for elements of {}",
                value.len(),
                self.canvas.width
            )));
        }
        let same = value.iter().all(|b| *b == value[0]).then_some(value[0]);
        let mut fine = true;
        self.moves(Side::Part).each(&mut |m| {
            fine = fine && m.fits(self.canvas.len, usize::MAX);
            for i in 0..if fine { m.n } else { 0 } {
                // SAFETY: as in `contiguous`: inside the buffer (`fits`), and this part's alone.
                let run = unsafe {
                    std::slice::from_raw_parts_mut(self.canvas.start.add(m.dst + i * m.dst_step), m.bytes)
                };
                match same {
                    Some(byte) => run.fill(byte),
                    None => run.chunks_exact_mut(value.len()).for_each(|e| e.copy_from_slice(value)),
                }
            }
        });
        if fine { Ok(()) } else { Err(too_short()) }
    }
}

/// Copies one move between raw buffers; small elements are moved as integers.
///
/// # Safety
/// Every copy of the move must lie inside both buffers, nobody else may touch the destination bytes, and the
/// two sides must not overlap.
unsafe fn copy_raw(m: &Move, src: *const u8, dst: *mut u8) {
    // SAFETY: the caller promises that all offsets lie inside the buffers; unaligned access has no further need.
    unsafe {
        match m.bytes {
            1 => copy_elements::<u8>(m, src, dst),
            2 => copy_elements::<u16>(m, src, dst),
            4 => copy_elements::<u32>(m, src, dst),
            8 => copy_elements::<u64>(m, src, dst),
            16 => copy_elements::<u128>(m, src, dst),
            _ => {
                for i in 0..m.n {
                    let from = src.add(m.src_at(i));
                    std::ptr::copy_nonoverlapping(from, dst.add(m.dst + i * m.dst_step), m.bytes);
                }
            }
        }
    }
}

/// Copies elements of one integer type at equal distances.
///
/// # Safety
/// As [`copy_raw`], with `m.bytes == size_of::<T>()`.
unsafe fn copy_elements<T: Copy>(m: &Move, src: *const u8, dst: *mut u8) {
    for i in 0..m.n {
        // SAFETY: promised by the caller.
        unsafe {
            let value = src.add(m.src_at(i)).cast::<T>().read_unaligned();
            dst.add(m.dst + i * m.dst_step).cast::<T>().write_unaligned(value);
        }
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
