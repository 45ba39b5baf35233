//! Filter 32004, LZ4, and raw LZ4 blocks.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | decoded size, big-endian |
//! | 4 | block size, big-endian |
//! | per block: 4 | stored size, big-endian; equal to the block's decoded size when it is stored raw |
//! | per block: … | the LZ4 block, or its raw bytes |
//!
//! Client value 0 is the block size; 0 or none stands for 1 GiB, cut to the chunk.

use crate::filter::{Decoded, Encoded, Filter};
use crate::scratch::sized;
use crate::simd;
use crate::{ChunkInfo, Codecs, cut, id};
use tensilo_core::{Error, Result};

/// Decodes one raw LZ4 block into the start of `dst` and returns how many bytes it held. Bytes of `dst`
/// behind those may be overwritten; 64 bytes of room behind the expected end make decoding faster.
///
/// ```
/// # use tensilo_filters::lz4;
/// let mut block = Vec::new();
/// lz4::encode_block(&[7; 1000], &mut block);
/// let mut raw = [0; 1000];
/// assert_eq!(lz4::decode_block(&block, &mut raw)?, 1000);
/// assert_eq!(raw, [7; 1000]);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` when the block is damaged or holds more than `dst.len()` bytes.
pub fn decode_block(src: &[u8], dst: &mut [u8]) -> Result<usize> {
    simd::lz4::decode(simd::level(), src, dst)
}

/// Encodes `src` as one raw LZ4 block, appended to `dst`, and returns the block's length.
pub fn encode_block(src: &[u8], dst: &mut Vec<u8>) -> usize {
    let start = dst.len();
    dst.resize(start + lz4_flex::block::get_maximum_output_size(src.len()), 0);
    let n = lz4_flex::block::compress_into(src, &mut dst[start..])
        .expect("the buffer has the size that lz4_flex states as its bound");
    dst.truncate(start + n);
    n
}

/// `src` as one raw LZ4 block, in a buffer that is re-used.
pub(crate) fn encoded<'a>(room: &'a mut Vec<u8>, src: &[u8]) -> &'a [u8] {
    let room = sized(room, lz4_flex::block::get_maximum_output_size(src.len()));
    let n = lz4_flex::block::compress_into(src, room)
        .expect("the buffer has the size that lz4_flex states as its bound");
    &room[..n]
}

const DEFAULT_BLOCK: usize = 1 << 30;
const LARGEST_BLOCK: usize = 0x7E00_0000;

/// The LZ4 filter.
#[derive(Debug)]
pub struct Lz4;

impl Filter for Lz4 {
    fn id(&self) -> u16 {
        id::LZ4
    }

    fn name(&self) -> &str {
        "LZ4"
    }

    fn most_encoded(&self, values: &[u32], raw: usize) -> usize {
        let block = block_size(values, raw);
        raw.saturating_add(12).saturating_add(raw.div_ceil(block).saturating_mul(4))
    }

    fn decode(&self, _values: &[u32], _codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let mut rest = src;
        let total = u64::from_be_bytes(cut::array(&mut rest, "LZ4 decoded size")?);
        let block = u32::from_be_bytes(cut::array(&mut rest, "LZ4 block size")?) as usize;
        let total = usize::try_from(total).ok().filter(|t| *t <= dst.len()).ok_or_else(|| {
            Error::corrupt(format!("LZ4 states {total} decoded bytes, at most {} are possible", dst.len()))
        })?;
        if total > 0 && block == 0 {
            return Err(Error::corrupt("LZ4 states a block size of 0"));
        }
        let mut at = 0;
        while at < total {
            let want = block.min(total - at);
            let stored = u32::from_be_bytes(cut::array(&mut rest, "LZ4 stored size")?) as usize;
            let bytes = cut::bytes(&mut rest, stored, "LZ4 block")?;
            if stored == want {
                dst[at..at + want].copy_from_slice(bytes);
            } else {
                let n = decode_block(bytes, &mut dst[at..total])?;
                if n != want {
                    return Err(Error::corrupt(format!("an LZ4 block decodes to {n} bytes, not {want}")));
                }
            }
            at += want;
        }
        Ok(Decoded::Written(total))
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let block = block_size(values, src.len());
        if block > LARGEST_BLOCK {
            return Err(Error::invalid(format!("LZ4 blocks of {block} bytes exceed {LARGEST_BLOCK}")));
        }
        dst.extend_from_slice(&(src.len() as u64).to_be_bytes());
        dst.extend_from_slice(&(block as u32).to_be_bytes());
        for piece in src.chunks(block) {
            let block = encoded(&mut codecs.block, piece);
            // What does not shrink is stored as it is.
            let stored = if block.len() < piece.len() { block } else { piece };
            dst.extend_from_slice(&(stored.len() as u32).to_be_bytes());
            dst.extend_from_slice(stored);
        }
        Ok(Encoded::Written)
    }
}

fn block_size(values: &[u32], raw: usize) -> usize {
    let stated = values.first().map_or(0, |v| *v as usize);
    (if stated == 0 { DEFAULT_BLOCK } else { stated }).min(raw).max(1)
}
