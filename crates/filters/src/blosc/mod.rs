//! Blosc: filters 32001 (Blosc 1 chunks) and 32026 (Blosc 2 frames), and the parts they share.
//!
//! A Blosc chunk is cut into blocks; each block is shuffled and compressed, in one stream or, byte plane by byte
//! plane, in as many as an element has bytes. [`chunk`] reads and [`encode`] writes chunks of both versions,
//! [`frame`] reads and writes the contiguous frames that the HDF5 filter of Blosc 2 wraps its chunks in.

mod blosclz;
mod chunk;
mod encode;
mod filter1;
mod filter2;
mod frame;

pub use filter1::Blosc;
pub use filter2::Blosc2;

use crate::{Codecs, deflate, lz4, zstandard};
use tensilo_core::{Error, Result};

/// Compressors by the number that chunk headers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

impl Codec {
    fn from_header(number: u8) -> Result<Self> {
        Ok(match number {
            0 => Self::BloscLz,
            1 => Self::Lz4,
            2 => Self::Snappy,
            3 => Self::Zlib,
            4 => Self::Zstd,
            other => return Err(Error::unsupported(format!("Blosc compressor {other}"))),
        })
    }

    /// From a filter's client value, which tells LZ4 and LZ4HC apart.
    fn from_value(number: u32) -> Result<Self> {
        Ok(match number {
            0 => Self::BloscLz,
            1 | 2 => Self::Lz4,
            3 => Self::Snappy,
            4 => Self::Zlib,
            5 => Self::Zstd,
            other => return Err(Error::unsupported(format!("Blosc compressor {other}"))),
        })
    }

    fn in_header(self) -> u8 {
        self as u8
    }

    /// Decodes one stream that must fill `dst`; `dst` may be followed by room that is overwritten.
    fn decode(self, codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<usize> {
        match self {
            Self::BloscLz => blosclz::decode(src, dst),
            Self::Lz4 => lz4::decode_block(src, dst),
            Self::Snappy => snap::raw::Decoder::new()
                .decompress(src, dst)
                .map_err(|e| Error::corrupt(format!("damaged Snappy stream: {e}")).with_source(e)),
            Self::Zlib => deflate::inflate_zlib(codecs, src, dst),
            Self::Zstd => zstandard::decompress(codecs, src, dst),
        }
    }

    /// Encodes one stream, appended to `dst`.
    fn encode(self, codecs: &mut Codecs, level: u32, src: &[u8], dst: &mut Vec<u8>) -> Result<()> {
        let at = dst.len();
        match self {
            Self::BloscLz => {
                let mut positions = std::mem::take(&mut codecs.positions);
                blosclz::encode(&mut positions, src, dst);
                codecs.positions = positions;
            }
            Self::Lz4 => {
                lz4::encode_block(src, dst);
            }
            Self::Snappy => {
                dst.resize(at + snap::raw::max_compress_len(src.len()), 0);
                let n = snap::raw::Encoder::new()
                    .compress(src, &mut dst[at..])
                    .map_err(|e| Error::invalid(format!("Snappy: {e}")).with_source(e))?;
                dst.truncate(at + n);
            }
            Self::Zlib => deflate::deflate_zlib(codecs, level.min(9), src, dst)?,
            Self::Zstd => {
                let level = if level >= 9 { 22 } else { 2 * level as i32 - 1 };
                zstandard::compress(codecs, level, src, dst)?;
            }
        }
        Ok(())
    }
}

/// What is done to a block's bytes before they are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    None,
    Shuffle,
    Bitshuffle,
    Delta,
    /// Lossy on writing, nothing on reading.
    Truncate,
}

impl Step {
    fn new(code: u32) -> Result<Self> {
        Ok(match code {
            0 => Self::None,
            1 => Self::Shuffle,
            2 => Self::Bitshuffle,
            3 => Self::Delta,
            4 => Self::Truncate,
            other => return Err(Error::unsupported(format!("Blosc block filter {other}"))),
        })
    }
}

/// The unit in which delta works on elements of this size.
fn delta_unit(element_size: usize) -> usize {
    match element_size {
        1 | 2 | 4 | 8 => element_size,
        n if n.is_multiple_of(8) => 8,
        _ => 1,
    }
}
