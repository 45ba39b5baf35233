//! Reads Blosc chunks, versions 1 and 2.
//!
//! | byte | field |
//! |---|---|
//! | 0 | format version: up to 2 for Blosc 1, from 3 for Blosc 2 |
//! | 1 | version of the compressor's format |
//! | 2 | flags: 1 shuffled, 2 stored, 4 bit-shuffled, 8 delta (2), 16 one stream per block, upper 3 bits the compressor; 1 and 4 together: 16 more header bytes |
//! | 3 | bytes per element |
//! | 4, 8, 12 | decoded size, block size, stored size, 4 bytes each |
//! | 16 | (2) six block filters, compressor, its parameter, six filter parameters, reserved, flags: 1 dictionary, 112 special values |
//!
//! Then the blocks' offsets, 4 bytes each, and the blocks: streams with their sizes in front.

use super::{Codec, Step, delta_unit};
use crate::scratch::sized;
use crate::simd::{self, bytes};
use crate::{Codecs, bitshuffle, cut};
use tensilo_core::{Error, Result};

/// Room behind a block that lets the LZ4 and Zstandard decoders run at full speed to its end.
const SLACK: usize = 64;

/// A chunk's header, checked against its length and the room for its data.
pub(super) struct Header {
    version: u8,
    flags: u8,
    type_size: usize,
    pub(super) size: usize,
    pub(super) block: usize,
    steps: Vec<(Step, u8)>,
    codec: u8,
    special: u8,
    length: usize,
}

impl Header {
    /// Reads a header whose chunk may hold at most `room` bytes.
    pub(super) fn new(chunk: &[u8], room: usize) -> Result<Self> {
        let mut rest = chunk;
        let [version, _, flags, type_size] = cut::array(&mut rest, "the Blosc header")?;
        let size = u32::from_le_bytes(cut::array(&mut rest, "the Blosc header")?) as usize;
        let block = u32::from_le_bytes(cut::array(&mut rest, "the Blosc header")?) as usize;
        let stored = u32::from_le_bytes(cut::array(&mut rest, "the Blosc header")?) as usize;
        let mut header = Self {
            version,
            flags,
            type_size: usize::from(type_size).max(1),
            size,
            block,
            steps: vec![],
            codec: flags >> 5,
            special: 0,
            length: 16,
        };
        if version >= 3 && flags & 5 == 5 {
            header.extend(&mut rest)?;
        } else {
            let named = [(1, Step::Shuffle), (4, Step::Bitshuffle), (8, Step::Delta)];
            header.steps =
                named.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, s)| (s, 0)).collect();
        }
        if size > room {
            return Err(Error::corrupt(format!(
                "Blosc states {size} decoded bytes, at most {room} are possible"
            )));
        }
        if stored > chunk.len() || (stored < header.length && size > 0) {
            return Err(Error::corrupt(format!("a Blosc chunk of {stored} bytes in {}", chunk.len())));
        }
        if size > 0 && block == 0 {
            return Err(Error::corrupt("Blosc states blocks of 0 bytes"));
        }
        Ok(header)
    }

    fn extend(&mut self, rest: &mut &[u8]) -> Result<()> {
        let [codes @ .., codec, _] = cut::array::<8>(rest, "the Blosc 2 header")?;
        let [parameters @ .., _, flags] = cut::array::<8>(rest, "the Blosc 2 header")?;
        for (code, parameter) in codes.into_iter().zip(parameters) {
            let step = Step::new(u32::from(code))?;
            if step != Step::None {
                self.steps.push((step, parameter));
            }
        }
        if flags & 1 != 0 {
            return Err(Error::unsupported("Blosc 2 chunks with a dictionary"));
        }
        if flags & 8 != 0 {
            return Err(Error::corrupt("a lazy Blosc 2 chunk where a whole one belongs"));
        }
        if self.codec == 6 {
            return Err(Error::unsupported(format!("Blosc 2 compressor {codec}, a plugin")));
        }
        self.special = flags >> 4 & 7;
        self.length = 32;
        Ok(())
    }

    fn streams(&self, length: usize) -> usize {
        let one = self.flags & 16 != 0 || length < self.block;
        // Blosc 1 splits only where it pays, and older releases had no flag to say so.
        let too_small = self.version <= 2 && (self.type_size > 16 || self.block / self.type_size < 128);
        if one || too_small { 1 } else { self.type_size }
    }
}

/// Decodes a chunk into the start of `dst` and says how many bytes it held.
pub(super) fn decode(codecs: &mut Codecs, chunk: &[u8], dst: &mut [u8]) -> Result<usize> {
    let header = Header::new(chunk, dst.len())?;
    let dst = &mut dst[..header.size];
    for at in (0..header.size).step_by(header.block.max(1)) {
        let (before, rest) = dst.split_at_mut(at);
        let length = header.block.min(rest.len());
        block(codecs, &header, chunk, at, &mut rest[..length], before)?;
    }
    Ok(header.size)
}

/// Decodes the block that starts at byte `at` of the chunk's data into all of `out`; `before` begins with the
/// decoded first block, unless this is the first.
pub(super) fn block(
    codecs: &mut Codecs,
    header: &Header,
    chunk: &[u8],
    at: usize,
    out: &mut [u8],
    before: &[u8],
) -> Result<()> {
    let body = chunk.get(header.length..).unwrap_or_default();
    if header.special != 0 {
        return special(header, body, at, out);
    }
    if header.flags & 2 != 0 {
        let stored = body.get(at..).and_then(|b| b.get(..out.len()));
        out.copy_from_slice(stored.ok_or_else(|| Error::corrupt("a stored Blosc chunk is cut off"))?);
        return Ok(());
    }
    let start = at / header.block * 4;
    let start = body.get(start..).and_then(|b| b.first_chunk().copied());
    let start = start.ok_or_else(|| Error::corrupt("a Blosc block has no offset"))?;
    let src = chunk.get(u32::from_le_bytes(start) as usize..);
    let src = src.ok_or_else(|| Error::corrupt("a Blosc block starts behind its chunk"))?;
    let (mut first, mut second) = (std::mem::take(&mut codecs.block), std::mem::take(&mut codecs.second));
    let result = Codec::from_header(header.codec).and_then(|codec| {
        let length = out.len();
        let block = sized(&mut first, length + SLACK);
        streams(codecs, header, codec, src, block, length)?;
        undo(header, at, &mut block[..length], sized(&mut second, length), out, before);
        Ok(())
    });
    (codecs.block, codecs.second) = (first, second);
    result
}

/// Part of a chunk of one value.
fn special(header: &Header, mut body: &[u8], at: usize, out: &mut [u8]) -> Result<()> {
    let size = header.type_size;
    let value = match (header.special, size) {
        // Values that were never written have no bytes; they read as zeros.
        (1 | 4, _) => {
            out.fill(0);
            return Ok(());
        }
        (2, 4) => &f32::NAN.to_le_bytes()[..],
        (2, 8) => &f64::NAN.to_le_bytes()[..],
        (3, _) => cut::bytes(&mut body, size, "the value of a Blosc 2 chunk")?,
        (other, _) => {
            return Err(Error::corrupt(format!("Blosc 2 special value {other} of {size}-byte elements")));
        }
    };
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = value[(at + i) % size];
    }
    Ok(())
}

/// Decodes the streams of one block into the first `length` bytes of `block`.
fn streams(
    codecs: &mut Codecs,
    header: &Header,
    codec: Codec,
    mut src: &[u8],
    block: &mut [u8],
    length: usize,
) -> Result<()> {
    let count = header.streams(length);
    let each = length / count;
    if each * count != length {
        return Err(Error::corrupt(format!("a Blosc block of {length} bytes in {count} streams")));
    }
    for stream in 0..count {
        let at = stream * each;
        let size = i32::from_le_bytes(cut::array(&mut src, "a Blosc stream's size")?);
        match usize::try_from(size) {
            Ok(0) if header.version >= 3 => block[at..at + each].fill(0),
            Ok(n) if n == each => {
                block[at..at + each].copy_from_slice(cut::bytes(&mut src, n, "a Blosc stream")?)
            }
            Ok(n) => {
                let stored = cut::bytes(&mut src, n, "a Blosc stream")?;
                // These may write behind the stream's end, where the next stream will be.
                let behind = matches!(codec, Codec::Lz4 | Codec::Zstd);
                let room = if behind { block.len() } else { at + each };
                let got = codec.decode(codecs, stored, &mut block[at..room])?;
                if got != each {
                    return Err(Error::corrupt(format!("a Blosc stream decodes to {got} bytes, not {each}")));
                }
            }
            Err(_) if header.version >= 3 => {
                let [token] = cut::array(&mut src, "a Blosc 2 stream's token")?;
                let value = u8::try_from(-i64::from(size)).ok().filter(|_| token & 1 != 0);
                let value =
                    value.ok_or_else(|| Error::unsupported(format!("Blosc 2 stream token {token}")))?;
                block[at..at + each].fill(value);
            }
            Err(_) => return Err(Error::corrupt(format!("a Blosc stream of {size} bytes"))),
        }
    }
    Ok(())
}

/// Undoes the block filters, last first; the last of them writes to `out`.
fn undo(header: &Header, at: usize, block: &mut [u8], other: &mut [u8], out: &mut [u8], before: &[u8]) {
    let size = header.type_size;
    let (mut from, mut to) = (block, other);
    let steps = header.steps.iter().rev().filter(|(step, _)| *step != Step::Truncate);
    let moves: Vec<Step> = steps
        .flat_map(|(step, parameter)| {
            // Shuffles may be repeated.
            std::iter::repeat_n(*step, if *step == Step::Shuffle { usize::from(*parameter) + 1 } else { 1 })
        })
        .collect();
    let last = moves.iter().rposition(|step| *step != Step::Delta);
    for (i, step) in moves.iter().enumerate() {
        if last.is_none_or(|l| i > l) {
            break;
        }
        let target: &mut [u8] = if last == Some(i) { &mut *out } else { &mut *to };
        match step {
            Step::Delta => {
                undo_delta(delta_unit(size), at, from, before);
                continue;
            }
            Step::Bitshuffle => unbitshuffle(header.version, size, from, target),
            _ => unshuffle(size, from, target),
        }
        std::mem::swap(&mut from, &mut to);
    }
    if last.is_none() {
        out.copy_from_slice(from);
    }
    for _ in moves[last.map_or(0, |l| l + 1)..].iter() {
        undo_delta(delta_unit(size), at, out, before);
    }
}

fn unshuffle(size: usize, from: &[u8], to: &mut [u8]) {
    let count = from.len() / size;
    let whole = count * size;
    if size == 1 {
        return to.copy_from_slice(from);
    }
    bytes::interleave(simd::level(), &from[..whole], count, count, size, &mut to[..whole]);
    to[whole..].copy_from_slice(&from[whole..]);
}

/// Blosc 1 leaves blocks alone that are no multiple of 8 elements; Blosc 2 leaves the last elements alone.
fn unbitshuffle(version: u8, size: usize, from: &[u8], to: &mut [u8]) {
    let whole = bit_shuffled(version, size, from.len());
    bitshuffle::unshuffle_block(&from[..whole], &mut to[..whole], size);
    to[whole..].copy_from_slice(&from[whole..]);
}

/// How many bytes of a block have their bits shuffled.
pub(super) fn bit_shuffled(version: u8, size: usize, length: usize) -> usize {
    let count = length / size;
    if version <= 2 && !count.is_multiple_of(8) { 0 } else { count / 8 * 8 * size }
}

/// The first block holds differences between neighbours, the others to the first block.
fn undo_delta(unit: usize, at: usize, block: &mut [u8], dst: &[u8]) {
    let whole = block.len() / unit * unit;
    if at == 0 {
        for i in unit..whole {
            block[i] ^= block[i - unit];
        }
    } else {
        for (b, reference) in block[..whole].iter_mut().zip(dst) {
            *b ^= reference;
        }
    }
}
