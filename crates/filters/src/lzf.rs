//! Filter 32000, LZF: one raw LZF stream per chunk. Client values: 0 the filter's version, 1 the library's
//! version, 2 the chunk's size in bytes.
//!
//! A control byte below 32 announces that many literals plus one. Otherwise its upper 3 bits are the length
//! minus 2 (7: another length byte follows) and its lower 5 bits the upper part of the distance minus 1, whose
//! lower 8 bits follow.

use crate::filter::{Decoded, Encoded, Filter};
use crate::{ChunkInfo, Codecs, id};
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

fn decode(mut src: &[u8], dst: &mut [u8]) -> Result<usize> {
    let mut at = 0;
    while let Some((&control, rest)) = src.split_first() {
        src = rest;
        let control = usize::from(control);
        if control < 32 {
            let n = control + 1;
            let (literals, rest) = src.split_at_checked(n).ok_or_else(|| damaged("literals are cut off"))?;
            dst.get_mut(at..at + n)
                .ok_or_else(|| damaged("more data than expected"))?
                .copy_from_slice(literals);
            src = rest;
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
        if distance > at {
            return Err(damaged("a back reference before the start"));
        }
        if length > dst.len() - at {
            return Err(damaged("more data than expected"));
        }
        let mut done = 0;
        while done < length {
            let n = (distance + done).min(length - done);
            dst.copy_within(at - distance..at - distance + n, at + done);
            done += n;
        }
        at += length;
    }
    Ok(at)
}

const HASH_BITS: u32 = 14;
const MOST_LITERALS: usize = 32;
const MOST_DISTANCE: usize = 1 << 13;
const MOST_LENGTH: usize = 264;

fn hash(src: &[u8], at: usize) -> usize {
    let word = u32::from_le_bytes([src[at], src[at + 1], src[at + 2], 0]);
    (word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// Appends one LZF stream to `dst`; `positions` is scratch.
fn encode(positions: &mut Vec<u32>, src: &[u8], dst: &mut Vec<u8>) {
    positions.clear();
    positions.resize(1 << HASH_BITS, u32::MAX);
    let (mut at, mut literal_start) = (0, 0);
    while at + 3 <= src.len() {
        let slot = &mut positions[hash(src, at)];
        let candidate = std::mem::replace(slot, at as u32) as usize;
        let found = candidate < at
            && at - candidate <= MOST_DISTANCE
            && src[candidate..candidate + 3] == src[at..at + 3];
        if !found {
            at += 1;
            continue;
        }
        let most = MOST_LENGTH.min(src.len() - at);
        let same = |n: &usize| src[candidate + n] == src[at + n];
        let length = (3..most).find(|n| !same(n)).unwrap_or(most);
        literals(&src[literal_start..at], dst);
        let (distance, code) = (at - candidate - 1, length - 2);
        let high = (distance >> 8) as u8;
        if code < 7 {
            dst.push((code as u8) << 5 | high);
        } else {
            dst.extend_from_slice(&[7 << 5 | high, (code - 7) as u8]);
        }
        dst.push(distance as u8);
        for skipped in at + 1..(at + length).min(src.len() - 2) {
            positions[hash(src, skipped)] = skipped as u32;
        }
        at += length;
        literal_start = at;
    }
    literals(&src[literal_start..], dst);
}

fn literals(bytes: &[u8], dst: &mut Vec<u8>) {
    for run in bytes.chunks(MOST_LITERALS) {
        dst.push(run.len() as u8 - 1);
        dst.extend_from_slice(run);
    }
}
