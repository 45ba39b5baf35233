//! Filter 32000, LZF: one raw LZF stream per chunk. Client values: 0 the filter's version, 1 the library's
//! version, 2 the chunk's size in bytes.
//!
//! A control byte below 32 announces that many literals plus one. Otherwise its upper 3 bits are the length
//! minus 2 (7: another length byte follows) and its lower 5 bits the upper part of the distance minus 1, whose
//! lower 8 bits follow.

use crate::filter::{Decoded, Encoded, Filter};
use crate::lz77::{self, Reach, Sink};
use crate::{ChunkInfo, Codecs, id, simd};
use tensilo_core::{Error, Result};

/// The LZF filter.
#[derive(Debug)]
pub struct Lzf;

impl Filter for Lzf {
    fn id(&self) -> u16 {
        id::LZF
    }

    fn name(&self) -> &str {
        "LZF"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        raw.saturating_add(raw / 32).saturating_add(64)
    }

    fn decode(&self, _values: &[u32], _codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        decode(src, dst).map(Decoded::Written)
    }

    fn encode(
        &self,
        _values: &[u32],
        _info: &ChunkInfo,
        codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        encode(&mut codecs.positions, src, dst);
        Ok(if dst.len() < src.len() { Encoded::Written } else { Encoded::Declined })
    }
}

#[cold]
fn damaged(what: &str) -> Error {
    Error::corrupt(format!("damaged LZF stream: {what}"))
}

fn decode(src: &[u8], dst: &mut [u8]) -> Result<usize> {
    simd::copies::with_copy(simd::level(), Steps, src, dst)
}

struct Steps;

impl simd::copies::Decode for Steps {
    #[inline(always)]
    fn decode(self, src: &[u8], dst: &mut [u8], copy: impl simd::copies::Copy) -> Result<usize> {
        decode_with(src, dst, copy)
    }
}

#[inline(always)]
fn decode_with(mut src: &[u8], dst: &mut [u8], copy: impl simd::copies::Copy) -> Result<usize> {
    let mut at = 0;
    while let Some((&control, rest)) = src.split_first() {
        src = rest;
        let control = usize::from(control);
        if control < 32 {
            let n = control + 1;
            lz77::copy_literals(&mut src, dst, at, n)
                .ok_or_else(|| damaged("literals from or to outside"))?;
            at += n;
            continue;
        }
        let mut byte = || {
            let (&b, rest) = src.split_first().ok_or_else(|| damaged("a back reference is cut off"))?;
            src = rest;
            Ok(usize::from(b))
        };
        let mut length = control >> 5;
        if length == 7 {
            length += byte()?;
        }
        length += 2;
        let distance = ((control & 31) << 8 | byte()?) + 1;
        copy.back(dst, at, distance, length).ok_or_else(|| damaged("a copy from or to outside"))?;
        at += length;
    }
    Ok(at)
}

/// The longest copies and farthest distances that LZF can say.
const REACH: Reach = Reach { distance: 1 << 13, length: 264, tail: 0 };
const MOST_LITERALS: usize = 32;

/// Appends one LZF stream to `dst`; `positions` is scratch.
fn encode(positions: &mut Vec<u32>, src: &[u8], dst: &mut Vec<u8>) {
    lz77::parse(positions, src, &REACH, &mut Writer(dst));
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Sink for Writer<'_> {
    fn literals(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(MOST_LITERALS) {
            self.0.push(run.len() as u8 - 1);
            self.0.extend_from_slice(run);
        }
    }

    fn copy(&mut self, distance: usize, length: usize) {
        let (distance, code) = (distance - 1, length - 2);
        let high = (distance >> 8) as u8;
        if code < 7 {
            self.0.push((code as u8) << 5 | high);
        } else {
            self.0.extend_from_slice(&[7 << 5 | high, (code - 7) as u8]);
        }
        self.0.push(distance as u8);
    }
}
