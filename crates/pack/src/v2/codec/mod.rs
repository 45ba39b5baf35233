//! Blocks: a rectangle of pixels over consecutive scans, encoded as one self-contained run of bytes.
//!
//! A block is some pixels, in an order that the container chooses, by some scans. Neighbours in that order should be
//! neighbours on the detector, eight at a time in a row: they share one model. [`BLOCK_ROWS`] × [`BLOCK_COLUMNS`]
//! pixels, row by row, over [`BLOCK_SCANS`] scans is what was measured best; at the detector's edges the rectangle is
//! smaller. Where counts lie in memory is a [`Layout`], so that a block is read from, and written to, a whole cube.
//!
//! The bytes are described in `docs/formats/pack-v2-codec.md`. No block depends on another; checksums are the
//! container's task: damaged bytes give an error or wrong counts, never a panic.

mod ahead;
mod bits;
mod block_sums;
mod choose;
mod count;
mod decode;
mod encode;
mod expand;
mod fit;
#[cfg(target_arch = "x86_64")]
mod groups;
mod level;
#[cfg(target_arch = "x86_64")]
mod lines;
#[cfg(target_arch = "x86_64")]
mod masks;
mod model;
mod placement;
mod rans;
#[cfg(target_arch = "x86_64")]
mod rows;
mod stored;
mod stream;
mod sums;
mod tuples;
mod wide;

pub use block_sums::{Masked, add_masked_sums, add_pixel_sums, add_sums_of_all};
pub use count::Count;
pub use decode::DecodeScratch;
pub use encode::EncodeScratch;

use expand::Expansion;
pub(crate) use level::{Level, level};
use std::ops::Range;
use tensilo_core::{Error, Result};

/// Detector rows of a block away from the edges.
pub const BLOCK_ROWS: usize = 8;
/// Detector columns of a block away from the edges.
pub const BLOCK_COLUMNS: usize = 96;
/// Pixels of a block away from the edges.
pub const BLOCK_PIXELS: usize = BLOCK_ROWS * BLOCK_COLUMNS;
/// Scans of a block but the last ones.
pub const BLOCK_SCANS: usize = 256;
/// Most pixels of a block.
pub const MOST_PIXELS: usize = 1 << 16;
/// Most counts of a block.
pub const MOST_COUNTS: usize = 1 << 24;

/// Pixels and scans of a block: at least one each, at most [`MOST_PIXELS`] and together [`MOST_COUNTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockShape {
    /// Pixels.
    pub pixels: usize,
    /// Scans.
    pub scans: usize,
}

impl BlockShape {
    /// Counts in the block.
    pub fn counts(self) -> usize {
        self.pixels * self.scans
    }

    /// Most bytes that [`encode`] makes of a block of this shape.
    pub fn most_bytes<T: Count>(self) -> usize {
        1 + self.counts() * T::BYTES
    }

    fn check(self) -> Result<()> {
        let fits = self.pixels >= 1 && self.scans >= 1 && self.pixels <= MOST_PIXELS;
        if !fits || self.pixels.checked_mul(self.scans).is_none_or(|n| n > MOST_COUNTS) {
            return Err(Error::invalid(format!("a block of {} pixels by {} scans", self.pixels, self.scans)));
        }
        Ok(())
    }
}

/// Where the counts of a block lie in a slice: pixel `p` of scan `s` at
/// `s * scan_stride + (p / columns) * row_stride + p % columns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Counts from one scan to the next.
    pub scan_stride: usize,
    /// Pixels of one row of the block.
    pub columns: usize,
    /// Counts from one row to the next.
    pub row_stride: usize,
}

impl Layout {
    /// All pixels of a scan one behind the other.
    pub fn flat(shape: BlockShape) -> Self {
        Self { scan_stride: shape.pixels, columns: shape.pixels, row_stride: shape.pixels }
    }

    /// Where pixel `p` of scan `s` lies.
    #[inline(always)]
    fn at(&self, scan: usize, pixel: usize) -> usize {
        scan * self.scan_stride + (pixel / self.columns) * self.row_stride + pixel % self.columns
    }

    /// Refuses a slice that ends before the last count.
    fn check(&self, shape: BlockShape, scans: usize, len: usize) -> Result<()> {
        let most = |n: usize, stride: usize| n.checked_mul(stride);
        let end = (self.columns > 0 && scans > 0).then(|| {
            let rows = (shape.pixels - 1) / self.columns;
            let columns = self.columns.min(shape.pixels);
            most(scans - 1, self.scan_stride)?.checked_add(most(rows, self.row_stride)?)?.checked_add(columns)
        });
        if end.flatten().is_none_or(|end| end > len) {
            return Err(Error::invalid(format!(
                "a block of {shape:?} as {self:?} in a slice of {len} counts"
            )));
        }
        Ok(())
    }
}

/// First byte of a block: its counts as they are.
const STORED: u8 = 0;
/// First byte of a block: classes of units and their symbols.
const MODELLED: u8 = 1;
/// Second byte of a modelled block: symbols in many states.
const MANY_STATES: u8 = 0x20;
/// Model of a class: counted, and a table says so.
const COUNTED: u8 = 0x80;
/// Model of a class: one symbol only.
const CONSTANT: u8 = 0xc0;
/// Shift of a class: its units have bases.
const BASED: u8 = 0x80;

/// Calls `each` with the place of every symbol that is `least` or more; few are.
#[inline(always)]
fn each_from(least: u8, symbols: &[u8], mut each: impl FnMut(usize)) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x80 * ONES;
    let seven = u64::from(least & 127) * ONES;
    // The highest bit of each byte that is large enough.
    let found = |word: u64| {
        let low = (word | TOPS) - seven;
        if least >= 128 { low & word & TOPS } else { (low | word) & TOPS }
    };
    let (chunks, rest) = symbols.as_chunks::<32>();
    for (i, chunk) in chunks.iter().enumerate() {
        let words: [u64; 4] = std::array::from_fn(|k| {
            u64::from_le_bytes(*chunk[8 * k..].first_chunk().expect("eight of 32 bytes"))
        });
        let words = words.map(found);
        // Most have none, which is seen at once.
        if words[0] | words[1] | words[2] | words[3] == 0 {
            continue;
        }
        for (k, mut word) in words.into_iter().enumerate() {
            while word != 0 {
                each(32 * i + 8 * k + word.trailing_zeros() as usize / 8);
                word &= word - 1;
            }
        }
    }
    let done = symbols.len() - rest.len();
    rest.iter().enumerate().filter(|(_, s)| **s >= least).for_each(|(i, _)| each(done + i));
}

/// Appends a block to `out`. Equal counts give equal bytes, on any machine.
///
/// ```
/// use tensilo_pack::v2::codec::{BlockShape, DecodeScratch, EncodeScratch, Layout, decode, encode};
///
/// let shape = BlockShape { pixels: 256, scans: 64 };
/// let counts: Vec<u16> = (0..shape.counts()).map(|i| u16::from(i % 29 == 0)).collect();
/// let mut block = Vec::new();
/// encode(&counts, Layout::flat(shape), shape, &mut EncodeScratch::default(), &mut block)?;
/// assert!(block.len() < counts.len() / 20);
///
/// let mut decoded = vec![0_u16; shape.counts()];
/// decode(&block, shape, &mut decoded, Layout::flat(shape), &mut DecodeScratch::default())?;
/// assert_eq!(decoded, counts);
/// # Ok::<_, tensilo_core::Error>(())
/// ```
///
/// # Errors
/// `InvalidArgument` for a shape beyond the limits, or a slice too short for the layout.
pub fn encode<T: Count>(
    values: &[T],
    layout: Layout,
    shape: BlockShape,
    scratch: &mut EncodeScratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    let part = Part { first: 0, layout, shape };
    each_at(level(), values, &[part], scratch, out, |_| ())
}

/// A block of a cube: where its first count is, and how all of them lie from there on.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Place of the first count.
    pub first: usize,
    /// Where the others are.
    pub layout: Layout,
    /// Pixels and scans.
    pub shape: BlockShape,
}

/// Appends blocks of one cube to `out`, as [`encode`] does; tells where each ends. The counts of a block are fetched while the
/// one before is coded, so that this is faster than one block after the other.
///
/// # Errors
/// As [`encode`], for any of them; then nothing is appended.
pub fn encode_each<T: Count>(
    values: &[T],
    parts: &[Part],
    scratch: &mut EncodeScratch,
    out: &mut Vec<u8>,
    ends: impl FnMut(usize),
) -> Result<()> {
    each_at(level(), values, parts, scratch, out, ends)
}

fn each_at<T: Count>(
    level: Level,
    values: &[T],
    parts: &[Part],
    scratch: &mut EncodeScratch,
    out: &mut Vec<u8>,
    mut ends: impl FnMut(usize),
) -> Result<()> {
    for part in parts {
        part.shape.check()?;
        part.layout.check(part.shape, part.shape.scans, values.len().saturating_sub(part.first))?;
    }
    let mut ready = None;
    for (i, Part { first, layout, shape }) in parts.iter().copied().enumerate() {
        let counts = &values[first..];
        let loader = ready.take().or_else(|| scratch.loader(counts, layout, shape, level));
        let next = parts.get(i + 1);
        ready = next.and_then(|n| scratch.loader(&values[n.first..], n.layout, n.shape, level));
        let before = out.len();
        encode::encode(counts, layout, shape, loader, &mut ready, scratch, level, out);
        if out.len() - before >= shape.most_bytes::<T>() {
            out.truncate(before);
            stored::encode(counts, layout, shape, out);
        }
        ends(out.len());
    }
    Ok(())
}

/// Decodes a block into `out`.
///
/// # Errors
/// `Corrupt` for bytes that no block of this shape and element has; `InvalidArgument` as [`encode`]. What `out` then
/// holds at the block's places is undefined.
pub fn decode<T: Count>(
    bytes: &[u8],
    shape: BlockShape,
    out: &mut [T],
    layout: Layout,
    scratch: &mut DecodeScratch,
) -> Result<()> {
    decode_scans(bytes, shape, 0..shape.scans, out, layout, scratch)
}

/// Decodes some scans of a block; the first of them lies at scan 0 of `layout`. A few scans cost much less than all, above all
/// the first ones: what is behind the last of them is not looked at, where its place allows that.
///
/// # Errors
/// As [`decode`]; `InvalidArgument` for scans the block does not have.
pub fn decode_scans<T: Count>(
    bytes: &[u8],
    shape: BlockShape,
    scans: Range<usize>,
    out: &mut [T],
    layout: Layout,
    scratch: &mut DecodeScratch,
) -> Result<()> {
    decode_at(level(), bytes, shape, scans, out, layout, scratch)
}

fn decode_at<T: Count>(
    level: Level,
    bytes: &[u8],
    shape: BlockShape,
    scans: Range<usize>,
    out: &mut [T],
    layout: Layout,
    scratch: &mut DecodeScratch,
) -> Result<()> {
    shape.check()?;
    if scans.start >= scans.end || scans.end > shape.scans {
        return Err(Error::invalid(format!("scans {scans:?} of a block of {}", shape.scans)));
    }
    layout.check(shape, scans.len(), out.len())?;
    let body = match bytes.split_first() {
        Some((&STORED, body)) => return stored::decode(body, shape, scans, out, layout),
        Some((&MODELLED, body)) => body,
        Some((id, _)) => return Err(Error::corrupt(format!("no block begins with the byte {id}"))),
        None => return Err(Error::corrupt("a block without bytes")),
    };
    let mut rows = std::mem::take(&mut scratch.rows);
    let symbols = decode::symbols(body, shape, 8 * T::BYTES as u32, scans.end, scratch, level);
    let done = symbols.map(|symbols| place(&symbols, scans, out, layout, &mut rows, level));
    scratch.rows = rows;
    done
}

/// Writes the counts of some scans.
fn place<T: Count>(
    symbols: &decode::Symbols<'_>,
    scans: Range<usize>,
    out: &mut [T],
    layout: Layout,
    rows: &mut Vec<u32>,
    level: Level,
) {
    let shape = symbols.shape;
    let groups = shape.pixels.div_ceil(placement::GROUP);
    if layout.columns.is_multiple_of(placement::GROUP) || layout.columns >= shape.pixels {
        let starts: Vec<usize> = (0..groups).map(|g| layout.at(0, g * placement::GROUP)).collect();
        Expansion::new::<T>(symbols, &starts, level).write(scans, out, layout.scan_stride, level);
        return;
    }
    // Rows that are no whole groups: all pixels of a scan one behind the other first.
    let starts: Vec<usize> = (0..groups).map(|g| g * placement::GROUP).collect();
    rows.resize((scans.len() * shape.pixels * T::BYTES).div_ceil(4), 0);
    let flat: &mut [T] = &mut bytemuck::cast_slice_mut(rows)[..scans.len() * shape.pixels];
    Expansion::new::<T>(symbols, &starts, level).write(scans, flat, shape.pixels, level);
    for (scan, counts) in flat.chunks_exact(shape.pixels).enumerate() {
        for (row, counts) in counts.chunks(layout.columns).enumerate() {
            out[layout.at(scan, row * layout.columns)..][..counts.len()].copy_from_slice(counts);
        }
    }
}

/// A block and its columns, among others beside it.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// The block's bytes.
    pub bytes: &'a [u8],
    /// Pixels of one of its rows.
    pub columns: usize,
}

/// Counts that are put together in the nearest cache before they are copied to a cube.
const CACHED: usize = 1 << 14;
/// Bytes of a cube that is too large to stay in a cache.
const FAR: usize = 8 << 20;

/// Decodes some scans of blocks that lie side by side, all of as many rows and scans, into a cube: several at a time, and
/// whole rows of several blocks, which is about twice as fast as one block after the other.
///
/// `layout.columns` is the sum of all blocks' columns. The first of `scans` lies at scan 0 of the layout.
///
/// # Errors
/// As [`decode_scans`], with the number of the block.
pub fn decode_beside<T: Count>(
    blocks: &[Beside<'_>],
    rows: usize,
    of_scans: usize,
    scans: Range<usize>,
    out: &mut [T],
    layout: Layout,
    scratch: &mut DecodeScratch,
) -> Result<(), (usize, Error)> {
    beside_at(level(), blocks, [rows, of_scans], scans, out, layout, scratch)
}

fn beside_at<T: Count>(
    level: Level,
    blocks: &[Beside<'_>],
    [rows, of_scans]: [usize; 2],
    scans: Range<usize>,
    out: &mut [T],
    layout: Layout,
    scratch: &mut DecodeScratch,
) -> Result<(), (usize, Error)> {
    let columns = blocks.iter().try_fold(0_usize, |n, b| n.checked_add(b.columns));
    let whole =
        columns.and_then(|c| c.checked_mul(rows)).filter(|n| *n > 0 && columns == Some(layout.columns));
    let Some(pixels) = whole.filter(|_| scans.start < scans.end && scans.end <= of_scans) else {
        return Err((0, Error::invalid(format!("{} blocks of {rows} rows as {layout:?}", blocks.len()))));
    };
    layout.check(BlockShape { pixels, scans: of_scans }, scans.len(), out.len()).map_err(|e| (0, e))?;
    let far = size_of_val(out) >= FAR;
    let (mut first, mut column, mut done) = (0, 0, Ok(()));
    for blocks in blocks.chunks(wide::STRANDS) {
        let shape = |b: &Beside<'_>| BlockShape { pixels: b.columns * rows, scans: of_scans };
        let shapes = blocks.iter().enumerate();
        done = { shapes }.try_for_each(|(i, b)| shape(b).check().map_err(|e| (first + i, e)));
        if done.is_err() {
            break;
        }
        let part = &mut out[column..];
        if together(level, blocks, [rows, of_scans], &scans, part, layout, far, scratch).is_err() {
            // Which of several fails, and how, shows when they are decoded one after the other.
            let mut column = 0;
            done = blocks.iter().enumerate().try_for_each(|(i, b)| {
                let (shape, layout, out) =
                    (shape(b), Layout { columns: b.columns, ..layout }, &mut part[column..]);
                column += b.columns;
                decode_at(level, b.bytes, shape, scans.clone(), out, layout, scratch)
                    .map_err(|e| (first + i, e))
            });
            if done.is_err() {
                break;
            }
        }
        first += blocks.len();
        column += blocks.iter().map(|b| b.columns).sum::<usize>();
    }
    stream::fence(far);
    done
}

/// Decodes a few blocks side by side: all symbols at once, then some scans at a time, which lie in the nearest cache when
/// they are copied.
///
/// # Errors
/// Where one of them is damaged, stored, or not of whole groups in each row.
#[expect(clippy::too_many_arguments, reason = "what the caller has checked")]
fn together<T: Count>(
    level: Level,
    blocks: &[Beside<'_>],
    [rows, of_scans]: [usize; 2],
    scans: &Range<usize>,
    out: &mut [T],
    layout: Layout,
    far: bool,
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let width: usize = blocks.iter().map(|b| b.columns).sum();
    let shape = |b: &Beside<'_>| BlockShape { pixels: b.columns * rows, scans: of_scans };
    let other = || Error::unsupported("a block that is decoded alone");
    scratch.others.resize_with(wide::STRANDS, DecodeScratch::default);
    let mut parts = Vec::with_capacity(blocks.len());
    for (block, s) in blocks.iter().zip(&mut scratch.others) {
        let body = block.bytes.split_first().filter(|(id, _)| **id == MODELLED).map(|(_, body)| body);
        let body = body.filter(|_| block.columns.is_multiple_of(placement::GROUP)).ok_or_else(other)?;
        parts.push(decode::header(body, shape(block), 8 * T::BYTES as u32, scans.end, s)?);
    }
    decode::run_together(&parts, &mut scratch.others[..blocks.len()], level)?;
    let mut symbols = Vec::with_capacity(blocks.len());
    for ((block, s), parts) in blocks.iter().zip(&mut scratch.others).zip(parts) {
        symbols.push(decode::finish(parts, shape(block), s, level)?);
    }
    let across = |b: &Beside<'_>| b.columns / placement::GROUP;
    let starts: Vec<Vec<usize>> = blocks
        .iter()
        .scan(0, |column, b| {
            let first = *column;
            *column += b.columns;
            let start = |g| g / across(b) * width + first + g % across(b) * placement::GROUP;
            Some((0..across(b) * rows).map(start).collect())
        })
        .collect();
    let expansions = symbols.iter().zip(&starts).map(|(s, starts)| Expansion::new::<T>(s, starts, level));
    let expansions: Vec<Expansion<'_>> = expansions.collect();
    let frame = rows * width;
    let some = (CACHED / frame).clamp(1, scans.len());
    let buffer = &mut scratch.beside;
    buffer.resize(((some * frame * T::BYTES).div_ceil(4) + 16).max(buffer.len()), 0);
    // Vectors that begin where a line of the cache does are written in one step.
    let first = buffer.as_ptr().align_offset(64).min(16);
    let cached: &mut [T] = &mut bytemuck::cast_slice_mut(&mut buffer[first..])[..some * frame];
    for first in scans.clone().step_by(some) {
        let now = first..scans.end.min(first + some);
        expansions.iter().for_each(|e| e.write(now.clone(), cached, frame, level));
        for (counts, scan) in cached.chunks_exact(frame).zip(now) {
            let out = &mut out[(scan - scans.start) * layout.scan_stride..];
            if width == layout.row_stride {
                stream::copy(counts, &mut out[..frame], far, level);
                continue;
            }
            for (row, counts) in counts.chunks_exact(width).enumerate() {
                stream::copy(counts, &mut out[row * layout.row_stride..][..width], far, level);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
