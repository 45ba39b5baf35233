//! Filter 32001, Blosc 1: one chunk. Client values: 0 the filter's version, 1 the chunk format's version, 2 the
//! element size, 3 the chunk's size, 4 the level, 5 the shuffle (0 none, 1 bytes, 2 bits), 6 the compressor.

use super::encode::Options;
use super::{Codec, Step, chunk, encode};
use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
use tensilo_core::{Error, Result};

/// The Blosc 1 filter.
#[derive(Debug)]
pub struct Blosc;

impl Filter for Blosc {
    fn id(&self) -> u16 {
        id::BLOSC
    }

    fn name(&self) -> &str {
        "Blosc"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw.saturating_add(16)
    }

    fn decode(&self, _values: &[u32], codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        chunk::decode(codecs, src, dst).map(Decoded::Written)
    }

    fn encode(
        &self,
        values: &[u32],
        info: &ChunkInfo,
        codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let type_size = values.get(2).map_or(info.element_size, |v| *v as usize);
        let step = Step::new(values.get(5).copied().unwrap_or(1))?;
        if !matches!(step, Step::None | Step::Shuffle | Step::Bitshuffle) {
            return Err(Error::invalid("Blosc 1 shuffles bytes or bits, or nothing"));
        }
        let options = Options {
            version: 2,
            // An element of more than 255 bytes counts as bytes.
            type_size: if (1..=255).contains(&type_size) { type_size } else { 1 },
            level: values.get(4).copied().unwrap_or(5),
            step,
            codec: Codec::from_value(values.get(6).copied().unwrap_or(0))?,
        };
        encode::encode(codecs, &options, src, dst)?;
        Ok(Encoded::Written)
    }
}
