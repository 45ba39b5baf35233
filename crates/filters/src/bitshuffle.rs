//! Filter 32008, bitshuffle: the bits of a block's elements, transposed, alone or with LZ4 or Zstandard.
//!
//! Client values: 0 and 1 the filter's version, 2 the element size, 3 the block size in elements (0: the
//! default), 4 the compressor (0 none, 2 LZ4, 3 Zstandard), 5 the Zstandard level. With a compressor:
//!
//! | bytes | field |
//! |---|---|
//! | 8 | decoded size, big-endian |
//! | 4 | block size in bytes, big-endian |
//! | per block: 4 | compressed size, big-endian |
//! | per block: … | the compressed, shuffled block |
//! | … | the last `elements % 8` elements, raw |
//!
//! Without one the blocks follow each other with no header. The last block is short, a multiple of 8 elements.

use crate::filter::{Decoded, Encoded, Filter};
use crate::scratch::sized;
use crate::simd::{self, bits, bytes};
use crate::{ChunkInfo, Codecs, cut, id, lz4, lz4_small, zstandard};
use tensilo_core::{Error, Result};

/// Room behind a block that lets the LZ4 and Zstandard decoders run at full speed to its end.
const SLACK: usize = 64;

/// The block size in elements that is used when none is stated: 8 KiB worth, a multiple of 8, at least 128.
///
/// ```
/// assert_eq!(tensilo_filters::bitshuffle::default_block(2), 4096);
/// assert_eq!(tensilo_filters::bitshuffle::default_block(100), 128);
/// ```
pub fn default_block(element_size: usize) -> usize {
    (8192 / element_size.max(1) / 8 * 8).max(128)
}

/// Transposes the bits of one block: a multiple of 8 elements of `element_size` bytes.
///
/// # Panics
/// When the lengths differ or are not a multiple of 8 elements.
pub fn shuffle_block(src: &[u8], dst: &mut [u8], element_size: usize) {
    shuffle_block_at(simd::level(), src, dst, element_size, &mut planes(element_size));
}

/// Undoes [`shuffle_block`].
///
/// # Panics
/// When the lengths differ or are not a multiple of 8 elements.
pub fn unshuffle_block(src: &[u8], dst: &mut [u8], element_size: usize) {
    unshuffle_block_at(simd::level(), src, dst, element_size, &mut planes(element_size));
}

/// Elements that pass from bits to bytes to elements together, so that the bytes between stay in the cache.
fn tile(element_size: usize) -> usize {
    (8192 / element_size / 512 * 512).clamp(512, 2048)
}

fn elements(src: &[u8], dst: &[u8], element_size: usize) -> usize {
    assert!(src.len() == dst.len() && element_size > 0 && src.len().is_multiple_of(8 * element_size));
    src.len() / element_size
}

/// Room for one tile of byte planes, which blocks may share; nothing where elements are bytes.
fn planes(element_size: usize) -> Vec<u8> {
    if element_size == 1 { vec![] } else { vec![0; tile(element_size) * element_size] }
}

/// As [`planes`]; nothing where there is no whole block, as the element's size is then only what a file says.
fn planes_for(plan: &Plan, element_size: usize) -> Vec<u8> {
    if plan.shuffled == 0 { vec![] } else { planes(element_size) }
}

fn shuffle_block_at(level: simd::Level, src: &[u8], dst: &mut [u8], size: usize, planes: &mut [u8]) {
    let count = elements(src, dst, size);
    let stride = count / 8;
    if size == 1 {
        return bits::planes_from_bytes(level, src, stride, dst, stride);
    }
    let tile = tile(size);
    for start in (0..count).step_by(tile) {
        let n = tile.min(count - start);
        bytes::deinterleave(level, &src[start * size..], n, size, planes, tile);
        for k in 0..size {
            let bits = &mut dst[8 * k * stride + start / 8..];
            bits::planes_from_bytes(level, &planes[k * tile..], n / 8, bits, stride);
        }
    }
}

fn unshuffle_block_at(level: simd::Level, src: &[u8], dst: &mut [u8], size: usize, planes: &mut [u8]) {
    let count = elements(src, dst, size);
    let stride = count / 8;
    if size == 1 {
        return bits::bytes_from_planes(level, src, stride, stride, dst);
    }
    let tile = tile(size);
    for start in (0..count).step_by(tile) {
        let n = tile.min(count - start);
        for k in 0..size {
            let bits = &src[8 * k * stride + start / 8..];
            bits::bytes_from_planes(level, bits, stride, n / 8, &mut planes[k * tile..]);
        }
        bytes::interleave(level, planes, tile, n, size, &mut dst[start * size..]);
    }
}

/// Transposes a whole chunk in blocks of `block` elements (0: the default), without compression.
///
/// # Errors
/// `InvalidArgument` when `src` is no whole number of elements, its length is not `dst`'s, or the block size is
/// no multiple of 8.
pub fn shuffle(src: &[u8], dst: &mut [u8], element_size: usize, block: usize) -> Result<()> {
    let plan = Plan::new(src.len(), element_size, block).map_err(Error::invalid)?;
    same_length(src, dst)?;
    let (level, mut planes) = (simd::level(), planes_for(&plan, element_size));
    for range in plan.blocks() {
        shuffle_block_at(level, &src[range.clone()], &mut dst[range], element_size, &mut planes);
    }
    dst[plan.shuffled..].copy_from_slice(&src[plan.shuffled..]);
    Ok(())
}

/// Undoes [`shuffle`].
///
/// # Errors
/// `InvalidArgument`, as for [`shuffle`].
pub fn unshuffle(src: &[u8], dst: &mut [u8], element_size: usize, block: usize) -> Result<()> {
    let plan = Plan::new(src.len(), element_size, block).map_err(Error::invalid)?;
    same_length(src, dst)?;
    let (level, mut planes) = (simd::level(), planes_for(&plan, element_size));
    for range in plan.blocks() {
        unshuffle_block_at(level, &src[range.clone()], &mut dst[range], element_size, &mut planes);
    }
    dst[plan.shuffled..].copy_from_slice(&src[plan.shuffled..]);
    Ok(())
}

fn same_length(src: &[u8], dst: &[u8]) -> Result<()> {
    if src.len() != dst.len() {
        return Err(Error::invalid(format!("{} bytes do not unshuffle into {}", src.len(), dst.len())));
    }
    Ok(())
}

/// How a chunk is cut into blocks.
struct Plan {
    /// Bytes per whole block.
    block: usize,
    /// Bytes in blocks; the rest is raw.
    shuffled: usize,
}

impl Plan {
    fn new(total: usize, element_size: usize, block: usize) -> Result<Self, String> {
        if element_size == 0 || !total.is_multiple_of(element_size) {
            return Err(format!("{total} bytes are no whole number of {element_size}-byte elements"));
        }
        let block = if block == 0 { default_block(element_size) } else { block };
        if !block.is_multiple_of(8) {
            return Err(format!("a bitshuffle block of {block} elements is no multiple of 8"));
        }
        let shuffled = total / element_size / 8 * 8 * element_size;
        Ok(Self { block: block.saturating_mul(element_size).min(shuffled.max(1)), shuffled })
    }

    fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let (block, end) = (self.block, self.shuffled);
        (0..end).step_by(block).map(move |at| at..(at + block).min(end))
    }
}

/// The bitshuffle filter.
#[derive(Debug)]
pub struct Bitshuffle;

/// Client values, read.
struct Options {
    element_size: usize,
    block: usize,
    compressor: Compressor,
}

enum Compressor {
    None,
    Lz4,
    Zstd(i32),
}

impl Options {
    fn new(values: &[u32]) -> Result<Self> {
        let &[_, _, element_size, ref more @ ..] = values else {
            return Err(Error::corrupt("bitshuffle states no element size"));
        };
        if element_size == 0 {
            return Err(Error::corrupt("bitshuffle states an element size of 0"));
        }
        let compressor = match more.get(1) {
            None | Some(0) => Compressor::None,
            Some(2) => Compressor::Lz4,
            Some(3) => Compressor::Zstd(more.get(2).map_or(3, |level| *level as i32)),
            Some(other) => return Err(Error::unsupported(format!("bitshuffle compressor {other}"))),
        };
        let block = more.first().map_or(0, |b| *b as usize);
        Ok(Self { element_size: element_size as usize, block, compressor })
    }
}

impl Filter for Bitshuffle {
    fn id(&self) -> u16 {
        id::BITSHUFFLE
    }

    fn name(&self) -> &str {
        "bitshuffle"
    }

    fn compresses(&self, values: &[u32]) -> bool {
        // Without a compressor the result is as long as the source; it is kept, like shuffle's.
        values.get(4).is_some_and(|compressor| *compressor != 0)
    }

    fn most_encoded(&self, values: &[u32], raw: usize) -> usize {
        let Ok(options) = Options::new(values) else { return raw };
        if matches!(options.compressor, Compressor::None) {
            return raw;
        }
        // Blocks may be as small as 8 elements, each with 4 bytes of length and the compressor's own overhead.
        let blocks = raw / (8 * options.element_size) + 1;
        raw.saturating_add(raw / 128).saturating_add(blocks.saturating_mul(32)).saturating_add(512)
    }

    fn decode(&self, values: &[u32], codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let options = Options::new(values)?;
        let size = options.element_size;
        if matches!(options.compressor, Compressor::None) {
            let dst = dst.get_mut(..src.len());
            let dst = dst.ok_or_else(|| Error::corrupt("more bitshuffled bytes than the chunk holds"))?;
            unshuffle(src, dst, size, options.block).map_err(|e| Error::corrupt(e.message()))?;
            return Ok(Decoded::Written(src.len()));
        }
        let mut rest = src;
        let total = u64::from_be_bytes(cut::array(&mut rest, "the bitshuffle header")?);
        let block = u32::from_be_bytes(cut::array(&mut rest, "the bitshuffle header")?) as usize;
        let total = usize::try_from(total).ok().filter(|t| *t <= dst.len()).ok_or_else(|| {
            Error::corrupt(format!(
                "bitshuffle states {total} decoded bytes, at most {} are possible",
                dst.len()
            ))
        })?;
        let plan = Plan::new(total, size, block / size).map_err(Error::corrupt)?;
        let mut spare = std::mem::take(&mut codecs.block);
        let result = decode_blocks(&options, &plan, codecs, &mut spare, rest, &mut dst[..total]);
        codecs.block = spare;
        result.map(|()| Decoded::Written(total))
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let options = Options::new(values).map_err(|e| Error::invalid(e.message()))?;
        let size = options.element_size;
        let plan = Plan::new(src.len(), size, options.block).map_err(Error::invalid)?;
        if matches!(options.compressor, Compressor::None) {
            dst.reserve_exact(src.len());
            let (level, mut planes) = (simd::level(), planes_for(&plan, size));
            for range in plan.blocks() {
                // Through a buffer that stays in the cache: cheaper than zeroing the destination first.
                let block = sized(&mut codecs.block, range.len());
                shuffle_block_at(level, &src[range], block, size, &mut planes);
                dst.extend_from_slice(block);
            }
            dst.extend_from_slice(&src[plan.shuffled..]);
            return Ok(Encoded::Written);
        }
        let stated = if options.block == 0 { default_block(size) } else { options.block } * size;
        let stated = u32::try_from(stated)
            .map_err(|_| Error::invalid(format!("a bitshuffle block of {stated} bytes is too large")))?;
        dst.extend_from_slice(&(src.len() as u64).to_be_bytes());
        dst.extend_from_slice(&stated.to_be_bytes());
        let (simd, mut planes) = (simd::level(), planes_for(&plan, size));
        if matches!(options.compressor, Compressor::Lz4) && plan.block <= lz4_small::WINDOW {
            let encoder = codecs.lz4.get_or_insert_default();
            for range in plan.blocks() {
                let n = range.len();
                shuffle_block_at(simd, &src[range], encoder.window(n), size, &mut planes);
                let at = dst.len();
                dst.extend_from_slice(&[0; 4]);
                let stored = encoder.encode(n, dst);
                dst[at..at + 4].copy_from_slice(&(stored as u32).to_be_bytes());
            }
            dst.extend_from_slice(&src[plan.shuffled..]);
            return Ok(Encoded::Written);
        }
        let mut spare = std::mem::take(&mut codecs.block);
        for range in plan.blocks() {
            let block = sized(&mut spare, range.len());
            shuffle_block_at(simd, &src[range], block, size, &mut planes);
            match options.compressor {
                Compressor::Zstd(level) => {
                    let at = dst.len();
                    dst.extend_from_slice(&[0; 4]);
                    let n = zstandard::compress(codecs, level, block, dst)?;
                    dst[at..at + 4].copy_from_slice(&(n as u32).to_be_bytes());
                }
                _ => {
                    let stored = lz4::encoded(&mut codecs.second, block);
                    dst.extend_from_slice(&(stored.len() as u32).to_be_bytes());
                    dst.extend_from_slice(stored);
                }
            }
        }
        codecs.block = spare;
        dst.extend_from_slice(&src[plan.shuffled..]);
        Ok(Encoded::Written)
    }
}

fn decode_blocks(
    options: &Options,
    plan: &Plan,
    codecs: &mut Codecs,
    spare: &mut Vec<u8>,
    mut rest: &[u8],
    dst: &mut [u8],
) -> Result<()> {
    let room = sized(spare, plan.block + SLACK);
    let (level, mut planes) = (simd::level(), planes_for(plan, options.element_size));
    for range in plan.blocks() {
        let stored = u32::from_be_bytes(cut::array(&mut rest, "a bitshuffle block's size")?) as usize;
        let stored = cut::bytes(&mut rest, stored, "a bitshuffle block")?;
        let n = match options.compressor {
            Compressor::Zstd(_) => zstandard::decompress(codecs, stored, &mut room[..range.len() + SLACK])?,
            _ => lz4::decode_block(stored, &mut room[..range.len() + SLACK])?,
        };
        if n != range.len() {
            return Err(Error::corrupt(format!(
                "a bitshuffle block decodes to {n} bytes, not {}",
                range.len()
            )));
        }
        unshuffle_block_at(level, &room[..n], &mut dst[range], options.element_size, &mut planes);
    }
    let tail = &mut dst[plan.shuffled..];
    tail.copy_from_slice(cut::bytes(&mut rest, tail.len(), "the raw end of a bitshuffled chunk")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::levels;

    #[test]
    fn an_element_size_without_a_whole_block_takes_no_memory() {
        // LZ4: version, minor, element size, block, compressor; no bytes are a whole number of elements of any size.
        let values = [0, 4, u32::MAX, 0, 2];
        let mut src = 0_u64.to_be_bytes().to_vec();
        src.extend_from_slice(&8192_u32.to_be_bytes());
        let decoded = Bitshuffle.decode(&values, &mut Codecs::default(), &src, &mut []).unwrap();
        assert_eq!(decoded, Decoded::Written(0));
    }

    #[test]
    fn every_level_transposes_bits_by_the_definition() {
        for size in [1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 24, 100] {
            for count in [8, 16, 56, 128, 520, 1024, 4096] {
                let src: Vec<u8> =
                    (0..(size * count) as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 21) as u8).collect();
                let mut want = vec![0; src.len()];
                for e in 0..count {
                    for bit in 0..8 * size {
                        let set = src[e * size + bit / 8] >> (bit % 8) & 1;
                        want[bit * count / 8 + e / 8] |= set << (e % 8);
                    }
                }
                for level in levels() {
                    let mut got = vec![0; src.len()];
                    shuffle_block_at(level, &src, &mut got, size, &mut planes(size));
                    assert!(got == want, "{level:?} size {size} count {count}");
                    let mut back = vec![0; src.len()];
                    unshuffle_block_at(level, &got, &mut back, size, &mut planes(size));
                    assert_eq!(back, src, "{level:?} size {size} count {count}");
                }
            }
        }
    }
}
