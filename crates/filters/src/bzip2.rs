//! Filter 307, bzip2: one stream per chunk. Client value 0 is the block size in units of 100 kB, 1 to 9.

use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
use bzip2::{Action, Compress, Compression, Decompress, Status};
use tensilo_core::{Error, Result};

/// The bzip2 filter.
#[derive(Debug)]
pub struct Bzip2;

impl Filter for Bzip2 {
    fn id(&self) -> u16 {
        id::BZIP2
    }

    fn name(&self) -> &str {
        "bzip2"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw.saturating_add(raw / 64).saturating_add(600)
    }

    fn decode(&self, _values: &[u32], _codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let mut state = Decompress::new(false);
        loop {
            let (before_in, before_out) = (state.total_in() as usize, state.total_out() as usize);
            let status = state
                .decompress(&src[before_in..], &mut dst[before_out..])
                .map_err(|e| Error::corrupt(format!("damaged bzip2 stream: {e}")).with_source(e))?;
            let (read, written) = (state.total_in() as usize, state.total_out() as usize);
            match status {
                Status::StreamEnd => return Ok(Decoded::Written(written)),
                _ if read > before_in || written > before_out => {}
                _ if written == dst.len() => {
                    return Err(Error::corrupt(format!(
                        "bzip2 yields more than the {written} bytes expected"
                    )));
                }
                _ => {
                    return Err(Error::corrupt(format!(
                        "the bzip2 stream ends early, after {written} bytes"
                    )));
                }
            }
        }
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        _codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let level = values.first().copied().unwrap_or(9);
        if !(1..=9).contains(&level) {
            return Err(Error::invalid(format!("bzip2 block size {level} is not between 1 and 9")));
        }
        dst.resize(self.most_encoded(values, src.len()), 0);
        let mut state = Compress::new(Compression::new(level), 0);
        loop {
            let (read, written) = (state.total_in() as usize, state.total_out() as usize);
            let status = state
                .compress(&src[read..], &mut dst[written..], Action::Finish)
                .map_err(|e| Error::invalid(format!("bzip2: {e}")).with_source(e))?;
            if status == Status::StreamEnd {
                break;
            }
            if state.total_out() as usize == dst.len() {
                return Err(Error::limit("bzip2 grew the chunk beyond its own bound"));
            }
        }
        dst.truncate(state.total_out() as usize);
        Ok(Encoded::Written)
    }
}
