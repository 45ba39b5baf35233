//! Filter 2, shuffle: the first bytes of all elements, then all second bytes, and so on. Client value 0 is the
//! element size; bytes behind the last whole element stay where they are.

use crate::filter::{Decoded, Encoded, Filter};
use crate::simd::{self, bytes};
use crate::{ChunkInfo, Codecs, id};
use tensilo_core::{Error, Result};

/// The byte shuffle filter.
#[derive(Debug)]
pub struct Shuffle;

impl Filter for Shuffle {
    fn id(&self) -> u16 {
        id::SHUFFLE
    }

    fn name(&self) -> &str {
        "shuffle"
    }

    fn compresses(&self, _values: &[u32]) -> bool {
        false
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw
    }

    fn decode(&self, values: &[u32], _codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let size = element_size(values)?;
        if size == 1 {
            return Ok(Decoded::Prefix(src.len()));
        }
        let Some(dst) = dst.get_mut(..src.len()) else {
            return Err(Error::corrupt(format!("{} shuffled bytes, {} expected", src.len(), dst.len())));
        };
        unshuffle(src, dst, size);
        Ok(Decoded::Written(src.len()))
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        _codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let size = element_size(values)?;
        dst.reserve_exact(src.len());
        let whole = if size == 1 { 0 } else { src.len() / size * size };
        bytes::append_planes(simd::level(), &src[..whole], size, dst);
        dst.extend_from_slice(&src[whole..]);
        Ok(Encoded::Written)
    }
}

fn element_size(values: &[u32]) -> Result<usize> {
    match values.first() {
        Some(&n) if n > 0 => Ok(n as usize),
        Some(_) => Err(Error::corrupt("shuffle states an element size of 0")),
        None => Err(Error::corrupt("shuffle states no element size")),
    }
}

/// Splits elements of `size` bytes into byte planes; both slices have the same length.
///
/// # Panics
/// When the lengths differ or `size` is 0.
pub fn shuffle(src: &[u8], dst: &mut [u8], size: usize) {
    assert!(src.len() == dst.len() && size > 0);
    let count = src.len() / size;
    let whole = count * size;
    if size == 1 || count <= 1 {
        return dst.copy_from_slice(src);
    }
    bytes::deinterleave(simd::level(), &src[..whole], count, size, &mut dst[..whole], count);
    dst[whole..].copy_from_slice(&src[whole..]);
}

/// Undoes [`shuffle`].
///
/// # Panics
/// When the lengths differ or `size` is 0.
pub fn unshuffle(src: &[u8], dst: &mut [u8], size: usize) {
    assert!(src.len() == dst.len() && size > 0);
    let count = src.len() / size;
    let whole = count * size;
    if size == 1 || count <= 1 {
        return dst.copy_from_slice(src);
    }
    bytes::interleave(simd::level(), &src[..whole], count, count, size, &mut dst[..whole]);
    dst[whole..].copy_from_slice(&src[whole..]);
}
