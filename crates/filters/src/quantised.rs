//! Filters 32022 and 32023, BitGroom and Granular BitRound: they round floats on writing, so that compressors behind
//! them find more, and change nothing on reading.
//!
//! They are written as the identity: whoever wants rounding rounds before.

use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
use tensilo_core::Result;

/// A filter that changes nothing.
#[derive(Debug)]
pub struct Quantised {
    id: u16,
    name: &'static str,
}

impl Quantised {
    /// BitGroom.
    pub const BITGROOM: Self = Self { id: id::BITGROOM, name: "BitGroom" };
    /// Granular BitRound.
    pub const GRANULAR_BITROUND: Self = Self { id: id::GRANULAR_BITROUND, name: "Granular BitRound" };
}

impl Filter for Quantised {
    fn id(&self) -> u16 {
        self.id
    }

    fn name(&self) -> &str {
        self.name
    }

    fn compresses(&self, _values: &[u32]) -> bool {
        false
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw
    }

    fn decode(&self, _values: &[u32], _codecs: &mut Codecs, src: &[u8], _dst: &mut [u8]) -> Result<Decoded> {
        Ok(Decoded::Prefix(src.len()))
    }

    fn encode(
        &self,
        _values: &[u32],
        _info: &ChunkInfo,
        _codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        dst.extend_from_slice(src);
        Ok(Encoded::Written)
    }
}
