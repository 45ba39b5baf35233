//! Blocks: a rectangle of pixels over consecutive scans, encoded as one self-contained run of bytes.
//!
//! A block is some pixels, in an order that the container chooses, by some scans. Neighbours in that order should be
//! neighbours on the detector, eight at a time in a row: they share one model. [`BLOCK_ROWS`] × [`BLOCK_COLUMNS`]
//! pixels, row by row, over [`BLOCK_SCANS`] scans is what was measured best; at the detector's edges the rectangle is
//! smaller. Where counts lie in memory is a [`Layout`], so that a block is read from, and written to, a whole cube.
//!
//! The bytes are described in `docs/formats/pack-v2-codec.md`. No block depends on another; checksums are the
//! container's task: damaged bytes give an error or wrong counts, never a panic.

mod bits;
mod choose;
mod count;
mod decode;
mod encode;
mod expand;
mod level;
mod model;
mod placement;
mod rans;
mod stored;
mod sums;
mod tuples;
mod wide;

pub use count::Count;
pub use decode::DecodeScratch;
pub use encode::EncodeScratch;

use level::{Level, level};
use std::ops::Range;
use tensilo_core::{Error, Result};

/// Detector rows of a block away from the edges.
pub const BLOCK_ROWS: usize = 8;
/// Detector columns of a block away from the edges.
pub const BLOCK_COLUMNS: usize = 32;
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

/// Calls `each` with the place of every escape.
fn each_escape(symbols: &[u8], mut each: impl FnMut(usize)) {
    let mut chunks = symbols.chunks_exact(32);
    let mut at = 0;
    let found = |chunk: &[u8], at: usize, each: &mut dyn FnMut(usize)| {
        chunk.iter().enumerate().filter(|(_, s)| **s == tuples::ESCAPE).for_each(|(i, _)| each(at + i));
    };
    for chunk in &mut chunks {
        if chunk.iter().fold(false, |any, s| any | (*s == tuples::ESCAPE)) {
            found(chunk, at, &mut each);
        }
        at += chunk.len();
    }
    found(chunks.remainder(), at, &mut each);
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
    encode_at(level(), values, layout, shape, scratch, out)
}

fn encode_at<T: Count>(
    level: Level,
    values: &[T],
    layout: Layout,
    shape: BlockShape,
    scratch: &mut EncodeScratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    shape.check()?;
    layout.check(shape, shape.scans, values.len())?;
    let before = out.len();
    encode::encode(values, layout, shape, scratch, level, out);
    if out.len() - before >= shape.most_bytes::<T>() {
        out.truncate(before);
        stored::encode(values, layout, shape, out);
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

/// Decodes some scans of a block; the first of them lies at scan 0 of `layout`. A few scans cost much less than all.
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
    let (symbols, rows) = decode::symbols(body, shape, 8 * T::BYTES as u32, scratch, level)?;
    let groups = shape.pixels.div_ceil(placement::GROUP);
    if layout.columns.is_multiple_of(placement::GROUP) || layout.columns >= shape.pixels {
        let starts: Vec<usize> = (0..groups).map(|g| layout.at(0, g * placement::GROUP)).collect();
        expand::expand(&symbols, scans, out, layout.scan_stride, &starts, level);
        return Ok(());
    }
    // Rows that are no whole groups: all pixels of a scan one behind the other first.
    let starts: Vec<usize> = (0..groups).map(|g| g * placement::GROUP).collect();
    rows.resize((scans.len() * shape.pixels * T::BYTES).div_ceil(4), 0);
    let flat: &mut [T] = &mut bytemuck::cast_slice_mut(rows)[..scans.len() * shape.pixels];
    let n = scans.len();
    expand::expand(&symbols, scans, flat, shape.pixels, &starts, level);
    for (scan, counts) in flat.chunks_exact(shape.pixels).enumerate().take(n) {
        for (row, counts) in counts.chunks(layout.columns).enumerate() {
            out[layout.at(scan, row * layout.columns)..][..counts.len()].copy_from_slice(counts);
        }
    }
    Ok(())
}

/// Adds to `sums[scan]` the sum of the pixels whose `mask` is not zero.
///
/// `T` is the element that the block was encoded from. Sums beyond 64 bits wrap around.
///
/// # Errors
/// As [`decode`]; `InvalidArgument` for slices of other lengths than the shape's.
pub fn add_masked_sums<T: Count>(
    bytes: &[u8],
    shape: BlockShape,
    mask: &[u8],
    sums: &mut [u64],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    shape.check()?;
    if mask.len() != shape.pixels || sums.len() != shape.scans {
        return Err(Error::invalid("a mask has one byte a pixel, and there is one sum a scan"));
    }
    let Some((&MODELLED, body)) = bytes.split_first() else {
        let mut row = vec![T::default(); shape.pixels];
        for (scan, sum) in sums.iter_mut().enumerate() {
            decode_scans(bytes, shape, scan..scan + 1, &mut row, Layout::flat(shape), scratch)?;
            let chosen = row.iter().zip(mask).filter(|(_, m)| **m != 0);
            *sum = chosen.fold(*sum, |sum, (v, _)| sum.wrapping_add(u64::from(v.widen())));
        }
        return Ok(());
    };
    let words: Vec<u64> = mask
        .chunks(placement::GROUP)
        .map(|m| m.iter().enumerate().map(|(i, m)| if *m == 0 { 0 } else { 255 << (8 * i) }).sum())
        .collect();
    let (symbols, _) = decode::symbols(body, shape, 8 * T::BYTES as u32, scratch, level())?;
    sums::masked(&symbols, &words, sums, level());
    Ok(())
}

/// Adds to `sums[pixel]` the sum over all scans. Sums beyond 64 bits wrap around.
///
/// # Errors
/// As [`add_masked_sums`].
pub fn add_pixel_sums<T: Count>(
    bytes: &[u8],
    shape: BlockShape,
    sums: &mut [u64],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    shape.check()?;
    if sums.len() != shape.pixels {
        return Err(Error::invalid("there is one sum a pixel"));
    }
    let Some((&MODELLED, body)) = bytes.split_first() else {
        let mut row = vec![T::default(); shape.pixels];
        for scan in 0..shape.scans {
            decode_scans(bytes, shape, scan..scan + 1, &mut row, Layout::flat(shape), scratch)?;
            sums.iter_mut().zip(&row).for_each(|(sum, v)| *sum = sum.wrapping_add(u64::from(v.widen())));
        }
        return Ok(());
    };
    let (symbols, _) = decode::symbols(body, shape, 8 * T::BYTES as u32, scratch, level())?;
    sums::pixels(&symbols, sums, level());
    Ok(())
}

#[cfg(test)]
mod tests;
