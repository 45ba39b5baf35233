//! Filter 32026, Blosc 2: one contiguous frame. Client values: 0 the filter's version, 1 a block size, 2 the element
//! size, 3 the chunk's size, 4 the level, 5 the block filter, 6 the compressor, then for chunks of several
//! dimensions their number and the chunk's shape.
//!
//! Frames of several dimensions are read; one-dimensional ones, which every reader takes, are written.

use super::encode::Options;
use super::{Codec, Step, frame};
use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
use tensilo_core::{Error, Result};

/// The Blosc 2 filter.
#[derive(Debug)]
pub struct Blosc2;

impl Filter for Blosc2 {
    fn id(&self) -> u16 {
        id::BLOSC2
    }

    fn name(&self) -> &str {
        "Blosc2"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        // Frames of several dimensions are padded to whole blocks in each, less than twice the data in all but
        // tiny chunks; compressed padding is small, stored padding is not.
        raw.saturating_mul(2).saturating_add(4096)
    }

    fn decode(&self, _values: &[u32], codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        frame::decode(codecs, src, dst).map(Decoded::Written)
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
        if step == Step::Truncate {
            return Err(Error::unsupported("Blosc 2 precision truncation, which loses data"));
        }
        let codec = Codec::from_value(values.get(6).copied().unwrap_or(0))?;
        if codec == Codec::Snappy {
            return Err(Error::unsupported("Snappy in Blosc 2"));
        }
        let options = Options {
            version: 5,
            type_size: if (1..=255).contains(&type_size) { type_size } else { 1 },
            level: values.get(4).copied().unwrap_or(5),
            step,
            codec,
        };
        frame::encode(codecs, &options, src, dst)?;
        Ok(Encoded::Written)
    }
}
