//! Blocks: a rectangle of pixels over consecutive scans, encoded as one self-contained run of bytes.
//!
//! A block is some pixels, in an order that the container chooses, by some scans. Neighbours in that order should be
//! neighbours on the detector, eight at a time in a row: they share one model. [`BLOCK_ROWS`] × [`BLOCK_COLUMNS`]
//! pixels, row by row, over [`BLOCK_SCANS`] scans is what was measured best; at the detector's edges the rectangle is
//! smaller. Where counts lie in memory is a [`Layout`], so that a block is read from, and written to, a whole cube.
//!
//! The bytes are described in `docs/formats/pack-v2-codec.md`. No block depends on another; checksums are the
//! container's task: damaged bytes give an error or wrong counts, never a panic.

mod count;
mod stored;

pub use count::Count;

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

/// Memory that encoding re-uses.
#[derive(Debug, Default)]
pub struct EncodeScratch {}

/// Memory that decoding re-uses.
#[derive(Debug, Default)]
pub struct DecodeScratch {}

/// First byte of a block: its counts as they are.
const STORED: u8 = 0;

/// Appends a block to `out`. Equal counts give equal bytes, on any machine.
///
/// # Errors
/// `InvalidArgument` for a shape beyond the limits, or a slice too short for the layout.
pub fn encode<T: Count>(
    values: &[T],
    layout: Layout,
    shape: BlockShape,
    _scratch: &mut EncodeScratch,
    out: &mut Vec<u8>,
) -> Result<()> {
    shape.check()?;
    layout.check(shape, shape.scans, values.len())?;
    stored::encode(values, layout, shape, out);
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
    _scratch: &mut DecodeScratch,
) -> Result<()> {
    shape.check()?;
    if scans.start >= scans.end || scans.end > shape.scans {
        return Err(Error::invalid(format!("scans {scans:?} of a block of {}", shape.scans)));
    }
    layout.check(shape, scans.len(), out.len())?;
    match bytes.split_first() {
        Some((&STORED, body)) => stored::decode(body, shape, scans, out, layout),
        Some((id, _)) => Err(Error::corrupt(format!("no block begins with the byte {id}"))),
        None => Err(Error::corrupt("a block without bytes")),
    }
}

/// Adds to `sums[scan]` the sum of the pixels whose `mask` is not zero.
///
/// `T` is the element that the block was encoded from.
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
    let mut row = vec![T::default(); shape.counts()];
    decode(bytes, shape, &mut row, Layout::flat(shape), scratch)?;
    for (sum, row) in sums.iter_mut().zip(row.chunks_exact(shape.pixels)) {
        *sum +=
            row.iter().zip(mask).filter(|(_, m)| **m != 0).map(|(v, _)| u64::from(v.widen())).sum::<u64>();
    }
    Ok(())
}

/// Adds to `sums[pixel]` the sum over all scans.
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
    let mut rows = vec![T::default(); shape.counts()];
    decode(bytes, shape, &mut rows, Layout::flat(shape), scratch)?;
    for row in rows.chunks_exact(shape.pixels) {
        sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += u64::from(v.widen()));
    }
    Ok(())
}
