//! Sums over the counts of blocks: of masked pixels for each scan, and of all scans for each pixel.

use super::count::Count;
use super::decode::{self, DecodeScratch};
use super::expand::Expansion;
use super::{BlockShape, CACHED, Layout, Level, MODELLED, decode_scans, level, placement, sums, wide};
use tensilo_core::{Error, Result};

/// Adds to `sums[scan]` the sum of the pixels whose `mask` is not zero.
///
/// `T` is the element that the block was encoded from. Sums beyond 64 bits wrap around.
///
/// # Errors
/// As [`decode`](super::decode()); `InvalidArgument` for slices of other lengths than the shape's.
pub fn add_masked_sums<T: Count>(
    bytes: &[u8],
    shape: BlockShape,
    mask: &[u8],
    sums: &mut [u64],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    masked_at::<T>(level(), Masked { bytes, pixels: shape.pixels, mask }, shape.scans, sums, scratch)
}

/// A block and a mask with one byte for each of its pixels.
#[derive(Debug, Clone, Copy)]
pub struct Masked<'a> {
    /// The block's bytes.
    pub bytes: &'a [u8],
    /// Its pixels.
    pub pixels: usize,
    /// Which of them count.
    pub mask: &'a [u8],
}

/// As [`add_masked_sums`], of some blocks of the same scans: several are decoded at once, which hides the range coder's latency.
///
/// # Errors
/// As [`add_masked_sums`], with the number of the block.
pub fn add_sums_of_all<T: Count>(
    blocks: &[Masked<'_>],
    sums: &mut [u64],
    scratch: &mut DecodeScratch,
) -> Result<(), (usize, Error)> {
    all_at::<T>(level(), blocks, sums, scratch)
}

pub(super) fn all_at<T: Count>(
    level: Level,
    blocks: &[Masked<'_>],
    sums: &mut [u64],
    scratch: &mut DecodeScratch,
) -> Result<(), (usize, Error)> {
    let mut first = 0;
    for blocks in blocks.chunks(wide::STRANDS) {
        if blocks.len() == 1 || sums_together::<T>(level, blocks, sums, scratch).is_err() {
            for (i, block) in blocks.iter().enumerate() {
                masked_at::<T>(level, *block, sums.len(), sums, scratch).map_err(|e| (first + i, e))?;
            }
        }
        first += blocks.len();
    }
    Ok(())
}

/// Sums of a few blocks that are decoded at once.
///
/// # Errors
/// Where one of them is damaged or stored; nothing is added then.
fn sums_together<T: Count>(
    level: Level,
    blocks: &[Masked<'_>],
    sums: &mut [u64],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let DecodeScratch { others, rows, .. } = scratch;
    others.resize_with(wide::STRANDS, DecodeScratch::default);
    let shape = |b: &Masked<'_>| BlockShape { pixels: b.pixels, scans: sums.len() };
    let mut parts = Vec::with_capacity(blocks.len());
    for (block, s) in blocks.iter().zip(others.iter_mut()) {
        shape(block).check()?;
        let body = block.bytes.split_first().filter(|(id, _)| **id == MODELLED).map(|(_, body)| body);
        let body = body.filter(|_| block.mask.len() == block.pixels);
        let body = body.ok_or_else(|| Error::unsupported("a block that is decoded alone"))?;
        parts.push(decode::header(body, shape(block), 8 * T::BYTES as u32, sums.len(), s)?);
    }
    decode::run_together(&parts, &mut others[..blocks.len()], level)?;
    let mut symbols = Vec::with_capacity(blocks.len());
    for ((block, s), parts) in blocks.iter().zip(others.iter_mut()).zip(parts) {
        symbols.push(decode::finish(parts, shape(block), s, level)?);
    }
    for (block, symbols) in blocks.iter().zip(symbols) {
        add_sums::<T>(level, &symbols, block.mask, sums, rows);
    }
    Ok(())
}

pub(super) fn masked_at<T: Count>(
    level: Level,
    Masked { bytes, pixels, mask }: Masked<'_>,
    scans: usize,
    sums: &mut [u64],
    scratch: &mut DecodeScratch,
) -> Result<()> {
    let shape = BlockShape { pixels, scans };
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
    let mut rows = std::mem::take(&mut scratch.rows);
    let done = decode::symbols(body, shape, 8 * T::BYTES as u32, shape.scans, scratch, level);
    let done = done.map(|symbols| add_sums::<T>(level, &symbols, mask, sums, &mut rows));
    scratch.rows = rows;
    done
}

/// Adds a block's masked sums.
fn add_sums<T: Count>(
    level: Level,
    symbols: &decode::Symbols<'_>,
    mask: &[u8],
    sums: &mut [u64],
    rows: &mut Vec<u32>,
) {
    if level < Level::Avx512 && T::BYTES == 2 && symbols.kinds.iter().any(|kind| kind.based) {
        return sum_rows::<T>(level, symbols, mask, sums, rows);
    }
    let words: Vec<u64> = mask
        .chunks(placement::GROUP)
        .map(|m| m.iter().enumerate().map(|(i, m)| if *m == 0 { 0 } else { 255 << (8 * i) }).sum())
        .collect();
    sums::masked(symbols, &words, sums, level);
}

/// Puts the counts of some scans together, which vectors do, and sums them while they are in the nearest cache: of large
/// counts that is faster than a sum from symbols.
fn sum_rows<T: Count>(
    level: Level,
    symbols: &decode::Symbols<'_>,
    mask: &[u8],
    sums: &mut [u64],
    rows: &mut Vec<u32>,
) {
    let pixels = mask.len();
    let starts: Vec<usize> = (0..pixels.div_ceil(placement::GROUP)).map(|g| g * placement::GROUP).collect();
    let expansion = Expansion::new::<T>(symbols, &starts, level);
    let chosen: Vec<u16> = mask.iter().map(|m| if *m == 0 { 0 } else { u16::MAX }).collect();
    let some = (CACHED / pixels).clamp(1, sums.len());
    rows.resize((some * pixels * T::BYTES).div_ceil(4).max(rows.len()), 0);
    let counts: &mut [T] = &mut bytemuck::cast_slice_mut(rows)[..some * pixels];
    let mut first = 0;
    for sums in sums.chunks_mut(some) {
        expansion.write(first..first + sums.len(), counts, pixels, level);
        first += sums.len();
        let rows = bytemuck::cast_slice::<T, u16>(counts).chunks_exact(pixels);
        for (sum, row) in sums.iter_mut().zip(rows) {
            // At most 2^16 counts of 16 bits.
            let of_row: u32 = row.iter().zip(&chosen).map(|(v, m)| u32::from(v & m)).sum();
            *sum = sum.wrapping_add(of_row.into());
        }
    }
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
    let symbols = decode::symbols(body, shape, 8 * T::BYTES as u32, shape.scans, scratch, level())?;
    sums::pixels(&symbols, sums, level());
    Ok(())
}
