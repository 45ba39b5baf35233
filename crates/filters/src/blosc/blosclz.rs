//! BloscLZ streams, Blosc's own small compressor.
//!
//! A control byte below 32 announces that many literals plus one; the upper bits of the first control byte mean
//! nothing. Otherwise its upper 3 bits are the copy's length minus 2 (7: bytes to add follow, up to and with the
//! first that is not 255), its lower 5 bits and the next byte the distance minus 1; all ones there mean that 16
//! more bits, big-endian, are to be added.

use crate::lz77::{self, Reach, Sink};
use crate::simd;
use tensilo_core::{Error, Result};

/// The distance code that announces 16 more bits.
const FAR: usize = 8191;

#[cold]
fn damaged(what: &str) -> Error {
    Error::corrupt(format!("damaged BloscLZ stream: {what}"))
}

/// Decodes a stream into the start of `dst` and says how many bytes it held.
pub(super) fn decode(src: &[u8], dst: &mut [u8]) -> Result<usize> {
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
    let mut first = true;
    while let Some((&control, rest)) = src.split_first() {
        src = rest;
        let control = usize::from(if first { control & 31 } else { control });
        first = false;
        if control < 32 {
            let n = control + 1;
            lz77::copy_literals(&mut src, dst, at, n)
                .ok_or_else(|| damaged("literals from or to outside"))?;
            at += n;
            continue;
        }
        let mut byte = || {
            let (&b, rest) = src.split_first().ok_or_else(|| damaged("a copy is cut off"))?;
            src = rest;
            Ok::<_, Error>(usize::from(b))
        };
        let mut length = (control >> 5) + 2;
        if length == 9 {
            loop {
                let more = byte()?;
                length += more;
                if more != 255 {
                    break;
                }
            }
        }
        let mut distance = (control & 31) << 8 | byte()?;
        if distance == FAR {
            distance += byte()? << 8;
            distance += byte()?;
        }
        copy.back(dst, at, distance + 1, length).ok_or_else(|| damaged("a copy from or to outside"))?;
        at += length;
    }
    Ok(at)
}

/// Distances that need no extra bytes; readers want a literal at the end.
const REACH: Reach = Reach { distance: FAR, length: 1 << 20, tail: 4 };

/// Appends one stream to `dst`.
pub(super) fn encode(positions: &mut Vec<u32>, src: &[u8], dst: &mut Vec<u8>) {
    lz77::parse(positions, src, &REACH, &mut Writer(dst));
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Sink for Writer<'_> {
    fn literals(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(32) {
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
            self.0.push(7 << 5 | high);
            let more = code - 7;
            self.0.extend(std::iter::repeat_n(255, more / 255));
            self.0.push((more % 255) as u8);
        }
        self.0.push(distance as u8);
    }
}
