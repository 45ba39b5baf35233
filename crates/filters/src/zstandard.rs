//! Filter 32015, Zstandard: one frame per chunk. Client value 0 is the level, 3 when absent.

use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
use tensilo_core::{Error, Result};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::compress_bound;

/// The Zstandard filter.
#[derive(Debug)]
pub struct Zstandard;

impl Filter for Zstandard {
    fn id(&self) -> u16 {
        id::ZSTD
    }

    fn name(&self) -> &str {
        "Zstandard"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw.saturating_add(raw / 128).saturating_add(512)
    }

    fn decode(&self, _values: &[u32], codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        decompress(codecs, src, dst).map(Decoded::Written)
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        compress(codecs, values.first().map_or(3, |level| *level as i32), src, dst)?;
        Ok(Encoded::Written)
    }
}

/// Decodes whole frames into the start of `dst` and says how many bytes they held.
pub(crate) fn decompress(codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    if codecs.unzstd.is_none() {
        codecs.unzstd = Some(Decompressor::new().map_err(|e| Error::io("a Zstandard context", e))?);
    }
    let Some(context) = &mut codecs.unzstd else { return Err(Error::invalid("no Zstandard context")) };
    context
        .decompress_to_buffer(src, dst)
        .map_err(|e| Error::corrupt(format!("damaged Zstandard frame: {e}")).with_source(e))
}

/// Encodes one frame, appended to `dst`, and returns its length.
pub(crate) fn compress(codecs: &mut Codecs, level: i32, src: &[u8], dst: &mut Vec<u8>) -> Result<usize> {
    let failed = |e| Error::invalid(format!("Zstandard level {level}: {e}")).with_source(e);
    if codecs.zstd.as_ref().is_none_or(|(l, _)| *l != level) {
        codecs.zstd = Some((level, Compressor::new(level).map_err(failed)?));
    }
    let Some((_, context)) = &mut codecs.zstd else { return Err(Error::invalid("no Zstandard context")) };
    let at = dst.len();
    dst.resize(at + compress_bound(src.len()), 0);
    let n = context.compress_to_buffer(src, &mut dst[at..]).map_err(failed)?;
    dst.truncate(at + n);
    Ok(n)
}
