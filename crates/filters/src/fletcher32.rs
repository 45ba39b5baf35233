//! Filter 3, fletcher32: four checksum bytes, little-endian, behind the data.
//!
//! libhdf5 before 1.6.3 stored the two bytes of each half swapped on little-endian machines; like libhdf5, both
//! forms are accepted.

use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
use tensilo_core::wire::fletcher32_be_words;
use tensilo_core::{Error, Result};

/// The checksum filter.
#[derive(Debug)]
pub struct Fletcher32;

impl Filter for Fletcher32 {
    fn id(&self) -> u16 {
        id::FLETCHER32
    }

    fn name(&self) -> &str {
        "fletcher32"
    }

    fn compresses(&self, _values: &[u32]) -> bool {
        false
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw.saturating_add(4)
    }

    fn decode(&self, _values: &[u32], _codecs: &mut Codecs, src: &[u8], _dst: &mut [u8]) -> Result<Decoded> {
        let Some((data, stored)) = src.split_last_chunk::<4>() else {
            return Err(Error::corrupt(format!("{} bytes hold no fletcher32 checksum", src.len())));
        };
        let stored = u32::from_le_bytes(*stored);
        let computed = fletcher32_be_words(data);
        let halves_swapped = ((computed & 0x00ff_00ff) << 8) | ((computed >> 8) & 0x00ff_00ff);
        if stored != computed && stored != halves_swapped {
            return Err(Error::corrupt(format!(
                "fletcher32 checksum is {stored:#010x}, the data's is {computed:#010x}"
            )));
        }
        Ok(Decoded::Prefix(data.len()))
    }

    fn encode(
        &self,
        _values: &[u32],
        _info: &ChunkInfo,
        _codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        dst.reserve_exact(src.len() + 4);
        dst.extend_from_slice(src);
        dst.extend_from_slice(&fletcher32_be_words(src).to_le_bytes());
        Ok(Encoded::Written)
    }
}
