//! Blosc 2 contiguous frames, as the HDF5 filter uses them: all data of one HDF5 chunk, as one or more Blosc
//! chunks, in one or more dimensions.
//!
//! | byte | field (msgpack, numbers big-endian) |
//! |---|---|
//! | 2 | "b2frame" and a zero |
//! | 11 | header size, 4 bytes |
//! | 16 | frame size, 8 bytes |
//! | 25 | flags: version and offset width, frame type, compressor and level, reserved |
//! | 30, 39 | decoded and stored size of all chunks, 8 bytes each |
//! | 48, 53, 58 | element, block and chunk size, 4 bytes each |
//! | 69 | block filters and their parameters |
//! | 87 | metalayers: their size, a map from name to offset, their contents |
//!
//! Behind the header the chunks, then a chunk of their offsets (8 bytes each, counted from the header's end; a
//! first bit set stands for a chunk of one special value), then a trailer. The metalayer "b2nd" states the
//! shapes of the array, of a chunk and of a block; chunks are then padded to whole blocks.

use super::encode::{self, Options};
use super::{Codec, chunk};
use crate::{Codecs, cut};
use tensilo_core::{Error, Result};

const METALAYERS: usize = 87;
/// Most dimensions of a b2nd array.
const MOST_DIMS: usize = 16;
/// Bytes of the trailer that is written, which is always the same.
const TRAILER: [u8; 35] = [
    0x94, 1, // four entries, version 1
    0x93, 0xcd, 0, 6, 0xde, 0, 0, 0xdc, 0, 0, // no variable-length metalayers
    0xce, 0, 0, 0, 35, // length
    0xd8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // no fingerprint
];

struct Frame<'a> {
    header: &'a [u8],
    /// Chunks, their offsets and the trailer.
    body: &'a [u8],
    /// Bytes of all chunks.
    stored: usize,
    size: usize,
    type_size: usize,
    chunk_size: usize,
}

impl<'a> Frame<'a> {
    fn new(src: &'a [u8]) -> Result<Self> {
        if src.get(2..10) != Some(b"b2frame\0") {
            return Err(Error::corrupt("no Blosc 2 frame"));
        }
        let number = |at: usize, width: usize| -> Result<usize> {
            let bytes = src
                .get(at..at + width)
                .ok_or_else(|| Error::corrupt("the Blosc 2 frame header is cut off"))?;
            let value = bytes.iter().fold(0_u64, |v, b| v << 8 | u64::from(*b));
            usize::try_from(value)
                .map_err(|_| Error::corrupt(format!("a Blosc 2 frame states {value} bytes")))
        };
        let length = number(11, 4)?;
        let (header, body) = src
            .split_at_checked(length)
            .filter(|(h, _)| h.len() >= METALAYERS)
            .ok_or_else(|| Error::corrupt(format!("a Blosc 2 frame header of {length} bytes")))?;
        if number(25, 1)? >> 4 & 3 != 1 {
            return Err(Error::unsupported("Blosc 2 frames with offsets of other than 64 bits"));
        }
        if number(26, 1)? & 15 != 0 {
            return Err(Error::unsupported("Blosc 2 frames that are not contiguous"));
        }
        Ok(Self {
            header,
            body,
            stored: number(39, 8)?,
            size: number(30, 8)?,
            type_size: number(48, 4)?.max(1),
            chunk_size: number(58, 4)?,
        })
    }

    /// The contents of a metalayer.
    fn metalayer(&self, name: &[u8]) -> Result<Option<&'a [u8]>> {
        let mut rest = &self.header[METALAYERS..];
        let [array, kind, _, _] = cut::array(&mut rest, "Blosc 2 metalayers")?;
        let [map, high, low] = cut::array(&mut rest, "Blosc 2 metalayers")?;
        if (array, kind, map) != (0x93, 0xcd, 0xde) {
            return Err(Error::corrupt("damaged Blosc 2 metalayers"));
        }
        for _ in 0..u16::from_be_bytes([high, low]) {
            let [key] = cut::array(&mut rest, "a Blosc 2 metalayer's name")?;
            let key = cut::bytes(&mut rest, usize::from(key & 31), "a Blosc 2 metalayer's name")?;
            let [_, offset @ ..] = cut::array::<5>(&mut rest, "a Blosc 2 metalayer's offset")?;
            if key != name {
                continue;
            }
            let content = self.header.get(u32::from_be_bytes(offset) as usize..);
            let mut content = content.ok_or_else(|| Error::corrupt("a Blosc 2 metalayer lies outside"))?;
            let [_, length @ ..] = cut::array::<5>(&mut content, "a Blosc 2 metalayer")?;
            return cut::bytes(&mut content, u32::from_be_bytes(length) as usize, "a Blosc 2 metalayer")
                .map(Some);
        }
        Ok(None)
    }

    /// Offsets of the chunks, as stored; there may be `most` chunks at most, for `size` bytes of data.
    fn offsets(&self, codecs: &mut Codecs, most: usize, size: usize) -> Result<Vec<i64>> {
        if most > size / 8 + 512 {
            return Err(Error::unsupported(format!("a Blosc 2 frame of {most} chunks for {size} bytes")));
        }
        let index =
            self.body.get(self.stored..).ok_or_else(|| Error::corrupt("the Blosc 2 frame has no index"))?;
        let mut raw = vec![0; most.saturating_mul(8)];
        let n = chunk::decode(codecs, index, &mut raw)?;
        Ok(raw[..n].as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect())
    }

    /// The bytes from a chunk's start on.
    fn chunk_bytes(&self, at: usize) -> Result<&'a [u8]> {
        let chunk = self.body.get(..self.stored).and_then(|b| b.get(at..));
        chunk.ok_or_else(|| Error::corrupt("a Blosc 2 chunk lies outside its frame"))
    }

    /// Fills `dst` with the value that an offset with its first bit set stands for.
    fn special(&self, offset: i64, dst: &mut [u8]) -> Result<()> {
        match ((offset as u64) >> 56 & 0x7f, self.type_size) {
            (1 | 4, _) => dst.fill(0),
            (2, 4) => dst.chunks_exact_mut(4).for_each(|e| e.copy_from_slice(&f32::NAN.to_le_bytes())),
            (2, 8) => dst.chunks_exact_mut(8).for_each(|e| e.copy_from_slice(&f64::NAN.to_le_bytes())),
            (other, _) => {
                return Err(Error::corrupt(format!("a Blosc 2 frame states special value {other}")));
            }
        }
        Ok(())
    }

    /// Decodes the chunk at `offset` into the start of `dst`.
    fn chunk(&self, codecs: &mut Codecs, offset: i64, dst: &mut [u8]) -> Result<usize> {
        match usize::try_from(offset) {
            Ok(at) => chunk::decode(codecs, self.chunk_bytes(at)?, dst),
            Err(_) => {
                let n = self.chunk_size.min(dst.len());
                self.special(offset, &mut dst[..n])?;
                Ok(n)
            }
        }
    }
}

/// Decodes all data of a frame into the start of `dst` and says how many bytes it held.
pub(super) fn decode(codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    let frame = Frame::new(src)?;
    let layer = match frame.metalayer(b"b2nd")? {
        Some(layer) => Some(layer),
        None => frame.metalayer(b"caterva")?,
    };
    if let Some(layer) = layer {
        return Grid::new(layer, frame.type_size)?.decode(codecs, &frame, dst);
    }
    if frame.size > dst.len() {
        return Err(Error::corrupt(format!(
            "a Blosc 2 frame states {} decoded bytes, at most {} are possible",
            frame.size,
            dst.len()
        )));
    }
    if frame.size == 0 {
        return Ok(0);
    }
    let most = if frame.chunk_size == 0 { 1 } else { frame.size.div_ceil(frame.chunk_size) };
    let mut at = 0;
    for offset in frame.offsets(codecs, most, frame.size)? {
        at += frame.chunk(codecs, offset, &mut dst[at..])?;
    }
    Ok(at)
}

/// The shapes of a b2nd array.
struct Grid {
    type_size: usize,
    shape: Vec<usize>,
    chunk: Vec<usize>,
    block: Vec<usize>,
}

impl Grid {
    fn new(mut layer: &[u8], type_size: usize) -> Result<Self> {
        let [_, _, dims] = cut::array(&mut layer, "the b2nd metalayer")?;
        if dims == 0 || usize::from(dims) > MOST_DIMS {
            return Err(Error::unsupported(format!("Blosc 2 arrays of {dims} dimensions")));
        }
        let mut lengths = |width: usize| -> Result<Vec<usize>> {
            cut::bytes(&mut layer, 1, "the b2nd metalayer")?;
            (0..dims)
                .map(|_| {
                    let field = cut::bytes(&mut layer, 1 + width, "the b2nd metalayer")?;
                    let value = field[1..].iter().fold(0_u64, |v, b| v << 8 | u64::from(*b));
                    usize::try_from(value).ok().filter(|v| (1..1 << 48).contains(v)).ok_or_else(|| {
                        Error::corrupt(format!("the b2nd metalayer states a length of {value}"))
                    })
                })
                .collect()
        };
        Ok(Self { type_size, shape: lengths(8)?, chunk: lengths(4)?, block: lengths(4)? })
    }

    fn bytes(&self, lengths: impl Iterator<Item = usize>) -> Result<usize> {
        lengths
            .chain([self.type_size])
            .try_fold(1_usize, usize::checked_mul)
            .ok_or_else(|| Error::corrupt("the b2nd metalayer states a size beyond memory"))
    }

    fn decode(&self, codecs: &mut Codecs, frame: &Frame, dst: &mut [u8]) -> Result<usize> {
        let total = self.bytes(self.shape.iter().copied())?;
        let chunk = self.bytes(self.chunk.iter().copied())?;
        let fits = self.block.iter().zip(&self.chunk).all(|(b, c)| b <= c);
        if total > dst.len() || chunk > dst.len() || !fits {
            return Err(Error::corrupt(format!(
                "a Blosc 2 array of {total} bytes in chunks of {chunk}, at most {} are possible",
                dst.len()
            )));
        }
        let grid: Vec<usize> = self.shape.iter().zip(&self.chunk).map(|(s, c)| s.div_ceil(*c)).collect();
        let offsets = frame.offsets(codecs, grid.iter().product(), total)?;
        if offsets.len() != grid.iter().product::<usize>() {
            return Err(Error::corrupt(format!("a Blosc 2 array with {} chunks", offsets.len())));
        }
        let mut place = vec![0; grid.len()];
        for offset in &offsets {
            let start: Vec<usize> = place.iter().zip(&self.chunk).map(|(p, c)| p * c).collect();
            self.chunk(codecs, frame, *offset, &start, &mut dst[..total])?;
            next(&mut place, &grid);
        }
        Ok(total)
    }

    /// Decodes one chunk, which starts at element `start`, block by block, each to its place in the array.
    fn chunk(
        &self,
        codecs: &mut Codecs,
        frame: &Frame,
        offset: i64,
        start: &[usize],
        dst: &mut [u8],
    ) -> Result<()> {
        let counts: Vec<usize> = self.chunk.iter().zip(&self.block).map(|(c, b)| c.div_ceil(*b)).collect();
        let length = self.bytes(self.block.iter().copied())?;
        let padded = counts.iter().try_fold(length, |n, c| n.checked_mul(*c));
        let padded =
            padded.ok_or_else(|| Error::corrupt("the b2nd metalayer states a size beyond memory"))?;
        let mut block = vec![0; length];
        let mut first = Vec::new();
        let source = match usize::try_from(offset) {
            Err(_) => {
                frame.special(offset, &mut block)?;
                None
            }
            Ok(at) => {
                let chunk = frame.chunk_bytes(at)?;
                let header = chunk::Header::new(chunk, padded)?;
                if header.size != padded || header.block != length {
                    return Err(Error::corrupt(format!(
                        "a Blosc 2 chunk of {} bytes in blocks of {}, not {padded} in blocks of {length}",
                        header.size, header.block
                    )));
                }
                Some((chunk, header))
            }
        };
        let mut place = vec![0; counts.len()];
        for at in (0..padded).step_by(length) {
            if let Some((chunk, header)) = &source {
                chunk::block(codecs, header, chunk, at, &mut block, &first)?;
                if at == 0 {
                    first.clone_from(&block);
                }
            }
            let corner: Vec<usize> =
                start.iter().zip(&place).zip(&self.block).map(|((s, p), b)| s + p * b).collect();
            self.scatter(&block, start, &corner, dst);
            next(&mut place, &counts);
        }
        Ok(())
    }

    /// Copies one block of the chunk at `start`, whose first element is at `corner`, to its place in the array.
    fn scatter(&self, block: &[u8], start: &[usize], corner: &[usize], dst: &mut [u8]) {
        let last = self.shape.len() - 1;
        // What the block has inside the chunk and the array, in each dimension.
        let inside: Vec<usize> = (0..=last)
            .map(|d| {
                let end = self.shape[d].min(start[d] + self.chunk[d]);
                self.block[d].min(end.saturating_sub(corner[d]))
            })
            .collect();
        let bytes = inside[last] * self.type_size;
        let mut row = vec![0; last];
        for source in block.chunks_exact(self.block[last] * self.type_size) {
            if bytes > 0 && row.iter().zip(&inside).all(|(r, n)| r < n) {
                let rows = row.iter().copied().chain([0]);
                let at = corner.iter().zip(rows).zip(&self.shape).fold(0, |at, ((c, r), n)| at * n + c + r);
                dst[at * self.type_size..at * self.type_size + bytes].copy_from_slice(&source[..bytes]);
            }
            next(&mut row, &self.block[..last]);
        }
    }
}

/// Counts up, the last place fastest.
fn next(place: &mut [usize], counts: &[usize]) {
    for (p, n) in place.iter_mut().zip(counts).rev() {
        *p += 1;
        if *p < *n {
            return;
        }
        *p = 0;
    }
}

/// Appends a frame of one chunk, of one dimension, with all of `src`.
pub(super) fn encode(codecs: &mut Codecs, options: &Options, src: &[u8], dst: &mut Vec<u8>) -> Result<()> {
    let start = dst.len();
    let block = src.len() as u32;
    dst.extend([0x9e, 0xa8]);
    dst.extend(b"b2frame\0");
    dst.extend([0xd2, 0, 0, 0, METALAYERS as u8 + 10, 0xcf]);
    let frame_size_at = dst.len();
    dst.extend([0; 8]);
    dst.extend([0xa4, 0x12, 0, (options.level.min(9) as u8) << 4 | options.codec.in_header(), 3, 0xd3]);
    dst.extend((src.len() as u64).to_be_bytes());
    dst.push(0xd3);
    let stored_at = dst.len();
    dst.extend([0; 8]);
    for n in [options.type_size as u32, block, block] {
        dst.push(0xd2);
        dst.extend(n.to_be_bytes());
    }
    dst.extend([0xd1, 0, 0, 0xd1, 0, 1, 0xc2, 0xd8, 6]);
    dst.extend([0, 0, 0, 0, 0, options.step as u8, options.codec.in_header(), 0]);
    dst.extend([0; 8]);
    dst.extend([0x93, 0xcd, 0, 7, 0xde, 0, 0, 0xdc, 0, 0]);
    let chunk_at = dst.len();
    encode::encode(codecs, options, src, dst)?;
    let stored = (dst.len() - chunk_at) as u64;
    dst[stored_at..stored_at + 8].copy_from_slice(&stored.to_be_bytes());
    // One offset, zero, as a stored chunk.
    let index =
        Options { version: 5, type_size: 8, level: 0, step: super::Step::None, codec: Codec::BloscLz };
    encode::encode(codecs, &index, &[0; 8], dst)?;
    dst.extend(TRAILER);
    let length = (dst.len() - start) as u64;
    dst[frame_size_at..frame_size_at + 8].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
