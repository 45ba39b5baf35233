//! Writes Blosc chunks, versions 1 and 2.

use super::chunk::bit_shuffled;
use super::{Codec, Step, delta_unit};
use crate::scratch::sized;
use crate::simd::{self, bytes};
use crate::{Codecs, bitshuffle};
use tensilo_core::{Error, Result};

/// How a chunk is to be written.
pub(super) struct Options {
    /// 2 for Blosc 1, 5 for Blosc 2.
    pub(super) version: u8,
    pub(super) type_size: usize,
    pub(super) level: u32,
    pub(super) step: Step,
    pub(super) codec: Codec,
}

/// Bytes per block, where the chunk has them.
const BLOCK: usize = 1 << 17;
/// Chunks below this are stored as they are, as Blosc stores them.
const LEAST: usize = 128;

impl Options {
    fn is_second(&self) -> bool {
        self.version >= 3
    }

    fn header_length(&self) -> usize {
        if self.is_second() { 32 } else { 16 }
    }

    fn block(&self, total: usize) -> usize {
        let block = BLOCK.min(total);
        if block > self.type_size { block / self.type_size * self.type_size } else { block }
    }

    /// Streams per whole block: byte planes apart, where that pays.
    fn streams(&self, block: usize) -> usize {
        let least = if self.is_second() { 32 } else { 128 };
        let split = self.codec != Codec::Zstd
            && self.step == Step::Shuffle
            && self.type_size <= 16
            && block.is_multiple_of(self.type_size)
            && block / self.type_size >= least;
        if split { self.type_size } else { 1 }
    }

    fn header(&self, stored: bool, total: usize, block: usize, length: usize) -> Result<Vec<u8>> {
        let word = |n: usize| {
            u32::try_from(n)
                .map(u32::to_le_bytes)
                .map_err(|_| Error::invalid(format!("{n} bytes are too many for Blosc")))
        };
        let mut flags = self.codec.in_header() << 5;
        flags |= if stored { 2 } else { 0 };
        flags |= if self.streams(block) == 1 { 16 } else { 0 };
        flags |= match self.step {
            _ if self.is_second() => 5,
            Step::Shuffle => 1,
            Step::Bitshuffle => 4,
            _ => 0,
        };
        let mut header = vec![self.version, 1, flags, self.type_size as u8];
        header.extend(word(total)?);
        header.extend(word(block)?);
        header.extend(word(length)?);
        if self.is_second() {
            header.extend([0, 0, 0, 0, 0, self.step as u8, self.codec.in_header(), 0]);
            header.extend([0; 8]);
        }
        Ok(header)
    }
}

/// Appends a chunk of all of `src` to `dst`.
pub(super) fn encode(codecs: &mut Codecs, options: &Options, src: &[u8], dst: &mut Vec<u8>) -> Result<()> {
    let at = dst.len();
    let block = options.block(src.len());
    if src.len() >= LEAST && options.level > 0 {
        let count = src.len().div_ceil(block);
        dst.resize(at + options.header_length() + 4 * count, 0);
        let mut spare = std::mem::take(&mut codecs.block);
        for (i, piece) in src.chunks(block).enumerate() {
            let start = (dst.len() - at) as u32;
            let slot = at + options.header_length() + 4 * i;
            dst[slot..slot + 4].copy_from_slice(&start.to_le_bytes());
            let prepared = prepare(options, i * block, piece, src, sized(&mut spare, piece.len()));
            let streams = if piece.len() == block { options.streams(block) } else { 1 };
            for stream in prepared.chunks(piece.len() / streams) {
                write_stream(codecs, options, stream, dst)?;
            }
        }
        codecs.block = spare;
        if dst.len() - at < src.len() + options.header_length() {
            let header = options.header(false, src.len(), block, dst.len() - at)?;
            dst[at..at + header.len()].copy_from_slice(&header);
            return Ok(());
        }
        dst.truncate(at);
    }
    let header = options.header(true, src.len(), block, options.header_length() + src.len())?;
    dst.extend(header);
    dst.extend_from_slice(src);
    Ok(())
}

fn prepare<'a>(options: &Options, at: usize, piece: &'a [u8], all: &[u8], spare: &'a mut [u8]) -> &'a [u8] {
    let size = options.type_size;
    match options.step {
        Step::None | Step::Truncate => return piece,
        Step::Shuffle => {
            let count = piece.len() / size;
            let whole = count * size;
            if size == 1 {
                return piece;
            }
            bytes::deinterleave(simd::level(), &piece[..whole], count, size, &mut spare[..whole], count);
            spare[whole..].copy_from_slice(&piece[whole..]);
        }
        Step::Bitshuffle => {
            let whole = bit_shuffled(options.version, size, piece.len());
            bitshuffle::shuffle_block(&piece[..whole], &mut spare[..whole], size);
            spare[whole..].copy_from_slice(&piece[whole..]);
        }
        Step::Delta => {
            let unit = delta_unit(size);
            let whole = piece.len() / unit * unit;
            spare.copy_from_slice(piece);
            if at == 0 {
                for (b, before) in spare[..whole].iter_mut().skip(unit).zip(piece) {
                    *b ^= before;
                }
            } else {
                for (b, reference) in spare[..whole].iter_mut().zip(all) {
                    *b ^= reference;
                }
            }
        }
    }
    spare
}

/// Writes one stream with its size; what does not shrink is stored as it is.
fn write_stream(codecs: &mut Codecs, options: &Options, stream: &[u8], dst: &mut Vec<u8>) -> Result<()> {
    let at = dst.len();
    if options.is_second()
        && let Some(&value) = stream.first()
        && stream.iter().all(|b| *b == value)
    {
        dst.extend((-i32::from(value)).to_le_bytes());
        if value != 0 {
            dst.push(1);
        }
        return Ok(());
    }
    dst.extend([0; 4]);
    options.codec.encode(codecs, options.level, stream, dst)?;
    if dst.len() - at - 4 >= stream.len() {
        dst.truncate(at + 4);
        dst.extend_from_slice(stream);
    }
    let length = (dst.len() - at - 4) as u32;
    dst[at..at + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}
