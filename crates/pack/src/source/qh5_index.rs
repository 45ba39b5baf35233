//! Prepared indexes: where each LZ4 block of a data file is, kept beside the user's other caches (contract, 5.1).
//!
//! | bytes | value |
//! |---|---|
//! | 8 | `QH5IDX01` |
//! | 4 | u32, bytes of the JSON |
//! | 4 | u32, number of words |
//! | … | JSON: the file it belongs to, its shape, its windows; zeros up to a multiple of 4 |
//! | … | per block two u32: offset of the LZ4 data from its window's start, compressed length |
//!
//! A window is as many frames as make 2^30 bytes when decoded. The index is bound to path, length and time of last
//! change; whatever does not fit the data file's own chunk table is rebuilt, so a damaged one does no harm.

use serde_json::{Value, json};
use std::path::Path;
use tensilo_core::io::{ByteSource, Fingerprint};
use tensilo_core::{Budget, Error, Monitor, Progress, Result};

const MAGIC: [u8; 8] = *b"QH5IDX01";
/// Decoded bytes of a window.
const WINDOW: u64 = 1 << 30;
/// Bytes in front of a chunk's first block: decoded size (u64) and block bytes (u32), big-endian.
const CHUNK_HEAD: u64 = 12;
/// Bytes in front of each block: its compressed length (u32), big-endian.
const BLOCK_HEAD: u64 = 4;
/// The block size that the format takes, in bytes of values.
pub const BLOCK_BYTES: u32 = 8192;

/// How the frames of a data file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameShape {
    /// Detector rows and columns.
    pub detector: [u32; 2],
    /// Number of frames.
    pub frames: u64,
    /// Bytes of one value: 1 or 2.
    pub value_bytes: u32,
}

impl FrameShape {
    /// Values of a frame.
    pub fn pixels(&self) -> u64 {
        u64::from(self.detector[0]) * u64::from(self.detector[1])
    }

    /// Bytes of a decoded frame.
    pub fn frame_bytes(&self) -> u64 {
        self.pixels() * u64::from(self.value_bytes)
    }

    /// Values of a full block.
    pub fn block_values(&self) -> u64 {
        u64::from(BLOCK_BYTES / self.value_bytes)
    }

    /// Blocks of a frame; the last may be short.
    pub fn blocks(&self) -> u64 {
        (self.pixels() / 8 * 8).div_ceil(self.block_values())
    }

    /// Bytes behind the last block that are stored as they are: values that do not fill eight.
    pub fn tail_bytes(&self) -> u64 {
        self.pixels() % 8 * u64::from(self.value_bytes)
    }

    /// Values of one block of a frame.
    pub fn values_of(&self, block: u64) -> u64 {
        (self.pixels() / 8 * 8).saturating_sub(block * self.block_values()).min(self.block_values())
    }

    fn dtype(&self) -> &'static str {
        if self.value_bytes == 1 { "uint8" } else { "uint16" }
    }

    fn frames_per_window(&self) -> u64 {
        (WINDOW / self.frame_bytes().max(1)).max(1)
    }
}

/// Where a frame's chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameChunk {
    /// First byte of the chunk in the file.
    pub offset: u64,
    /// Stored bytes.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    start_frame: u64,
    frames: u64,
    range_start: u64,
    range_end: u64,
    first_word: u64,
    words: u64,
}

/// The prepared index of one data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedIndex {
    shape: FrameShape,
    windows: Vec<Window>,
    words: Vec<u32>,
    /// Where the raw values of each frame are, for frames too small to have a block.
    tails: Vec<u64>,
}

/// The file an index belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// Absolute path.
    pub path: &'a Path,
    /// What the file is now.
    pub now: Fingerprint,
}

impl PreparedIndex {
    /// Shape of the frames.
    pub fn shape(&self) -> FrameShape {
        self.shape
    }

    /// The words: two per block.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Offset in the file and compressed length of a block.
    pub fn block(&self, frame: u64, block: u64) -> (u64, u32) {
        let window = &self.windows[(frame / self.shape.frames_per_window()) as usize];
        let at = 2 * (frame * self.shape.blocks() + block) as usize;
        (window.range_start + u64::from(self.words[at]), self.words[at + 1])
    }

    /// Where the values behind a frame's last block are.
    pub(crate) fn tail_offset(&self, frame: u64) -> u64 {
        match self.shape.blocks() {
            // A frame of fewer than eight values has no block; its window begins with its chunk.
            0 => self.tails.get(frame as usize).copied().unwrap_or(0),
            n => {
                let (offset, length) = self.block(frame, n - 1);
                offset + u64::from(length)
            }
        }
    }

    /// Compressed length of the largest block.
    pub fn largest_block(&self) -> u32 {
        self.words.iter().skip(1).step_by(2).copied().max().unwrap_or(0)
    }

    /// Walks the blocks of all frames.
    ///
    /// # Errors
    /// `Unsupported` when the frames are not in increasing file order or have other blocks than 8192 bytes;
    /// `Corrupt`, naming the frame, when a chunk's lengths do not add up; `Io`.
    pub fn build(
        source: &dyn ByteSource,
        shape: FrameShape,
        chunks: &[FrameChunk],
        budget: &Budget,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let words = 2 * shape.frames * shape.blocks();
        let _charge = budget.bytes(4 * words, "the prepared index")?;
        let mut index = Self {
            shape,
            windows: windows(shape, chunks)?,
            words: Vec::with_capacity(words as usize),
            tails: tails(shape, chunks),
        };
        let mut reader = Reader { source, start: 0, held: Vec::new() };
        let mut before = 0;
        for (frame, chunk) in chunks.iter().enumerate() {
            let frame = frame as u64;
            if frame.is_multiple_of(1024) {
                monitor.poll(&Progress { stage: "indexing source", done: frame, total: shape.frames })?;
            }
            if chunk.offset < before {
                return Err(Error::unsupported(format!("frame {frame} lies before the frame before it"))
                    .at(chunk.offset));
            }
            index
                .walk(&mut reader, frame, chunk)
                .map_err(|e| e.context(format_args!("frame {frame}")).at(chunk.offset))?;
            before = chunk.offset + chunk.bytes;
        }
        Ok(index)
    }

    fn walk(&mut self, reader: &mut Reader<'_>, frame: u64, chunk: &FrameChunk) -> Result<()> {
        let (shape, end) = (self.shape, chunk.offset.saturating_add(chunk.bytes));
        let short = || Error::corrupt(format!("a chunk of {} bytes ends before its blocks", chunk.bytes));
        if chunk.bytes < CHUNK_HEAD {
            return Err(short());
        }
        let head = reader.bytes(chunk.offset, CHUNK_HEAD as usize)?;
        let (decoded, block) = head.split_at(8);
        let (decoded, block) = (be(decoded), be(block));
        if decoded != shape.frame_bytes() {
            return Err(Error::corrupt(format!(
                "a chunk of {decoded} decoded bytes, a frame has {}",
                shape.frame_bytes()
            )));
        }
        if block != u64::from(BLOCK_BYTES) {
            return Err(Error::unsupported(format!(
                "bitshuffle blocks of {block} bytes, {BLOCK_BYTES} is expected"
            )));
        }
        let range_start = self.windows[(frame / shape.frames_per_window()) as usize].range_start;
        let mut at = chunk.offset + CHUNK_HEAD;
        for _ in 0..shape.blocks() {
            if end - at < BLOCK_HEAD {
                return Err(short());
            }
            let length = be(reader.bytes(at, BLOCK_HEAD as usize)?);
            at += BLOCK_HEAD;
            if length == 0 || length > end - at {
                return Err(Error::corrupt(format!("an LZ4 block of {length} bytes, {} are left", end - at)));
            }
            // Checked when the windows were made: the range fits 32 bits.
            self.words.extend([(at - range_start) as u32, length as u32]);
            at += length;
        }
        if at + shape.tail_bytes() != end {
            return Err(Error::corrupt(format!("{} bytes behind the last LZ4 block", end - at)));
        }
        Ok(())
    }

    /// Writes the index.
    pub fn encode(&self, bound: &Bound<'_>) -> Vec<u8> {
        let windows: Vec<Value> = self
            .windows
            .iter()
            .map(|w| {
                json!({
                    "startFrame": w.start_frame,
                    "nFrames": w.frames,
                    "rangeStart": w.range_start,
                    "rangeEnd": w.range_end,
                    "metaOffsetWords": w.first_word,
                    "metaWords": w.words,
                })
            })
            .collect();
        let json = json!({
            "sourcePath": bound.path,
            "sourceBytes": bound.now.bytes,
            "sourceMtimeNs": bound.now.mtime_ns as i64,
            "detRows": self.shape.detector[0],
            "detCols": self.shape.detector[1],
            "nFrames": self.shape.frames,
            "srcDtype": self.shape.dtype(),
            "blockElems": self.shape.block_values(),
            "nBlocksPerFrame": self.shape.blocks(),
            "chunks": windows,
        })
        .to_string();
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&(json.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.words.len() as u32).to_le_bytes());
        out.extend_from_slice(json.as_bytes());
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(self.words.iter().flat_map(|w| w.to_le_bytes()));
        out
    }

    /// Reads an index; `None` when it is stale, damaged, or does not fit the file's own chunks.
    pub fn decode(bytes: &[u8], bound: &Bound<'_>, shape: FrameShape, chunks: &[FrameChunk]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (head, rest) = rest.split_at_checked(8)?;
        let json_bytes = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
        let count = u32::from_le_bytes(head[4..].try_into().ok()?) as usize;
        let (json, _) = rest.split_at_checked(json_bytes)?;
        let words = rest.get(json_bytes.next_multiple_of(4)..)?;
        if words.len() != count.checked_mul(4)? || count as u64 != 2 * shape.frames * shape.blocks() {
            return None;
        }
        let json: Value = serde_json::from_slice(json).ok()?;
        let is = |key: &str, value: Value| json.get(key) == Some(&value);
        let same_file = is("sourcePath", json!(bound.path))
            && is("sourceBytes", json!(bound.now.bytes))
            && is("sourceMtimeNs", json!(bound.now.mtime_ns as i64));
        let same_shape = is("detRows", json!(shape.detector[0]))
            && is("detCols", json!(shape.detector[1]))
            && is("nFrames", json!(shape.frames))
            && is("srcDtype", json!(shape.dtype()))
            && is("blockElems", json!(shape.block_values()))
            && is("nBlocksPerFrame", json!(shape.blocks()));
        let expected = windows(shape, chunks).ok()?;
        let stated = json.get("chunks")?.as_array()?;
        let same_windows = stated.len() == expected.len()
            && stated.iter().zip(&expected).all(|(s, w)| {
                let is = |key: &str, value: u64| s.get(key).and_then(Value::as_u64) == Some(value);
                is("startFrame", w.start_frame)
                    && is("nFrames", w.frames)
                    && is("rangeStart", w.range_start)
                    && is("rangeEnd", w.range_end)
                    && is("metaOffsetWords", w.first_word)
                    && is("metaWords", w.words)
            });
        if !(same_file && same_shape && same_windows) {
            return None;
        }
        let words = words.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        let index = Self { shape, windows: expected, words, tails: tails(shape, chunks) };
        index.fits(chunks).then_some(index)
    }

    /// Do the blocks fill every chunk exactly?
    fn fits(&self, chunks: &[FrameChunk]) -> bool {
        let shape = self.shape;
        chunks.iter().enumerate().all(|(frame, chunk)| {
            let mut at = chunk.offset + CHUNK_HEAD;
            for block in 0..shape.blocks() {
                let (offset, length) = self.block(frame as u64, block);
                if length == 0 || offset != at + BLOCK_HEAD {
                    return false;
                }
                at = offset + u64::from(length);
            }
            at + shape.tail_bytes() == chunk.offset + chunk.bytes
        })
    }
}

fn tails(shape: FrameShape, chunks: &[FrameChunk]) -> Vec<u64> {
    if shape.blocks() > 0 {
        return Vec::new();
    }
    chunks.iter().map(|c| c.offset + CHUNK_HEAD).collect()
}

fn windows(shape: FrameShape, chunks: &[FrameChunk]) -> Result<Vec<Window>> {
    let (mut windows, mut first_word, mut start_frame) = (Vec::new(), 0, 0);
    for frames in chunks.chunks(shape.frames_per_window() as usize) {
        let (first, last) = (frames[0], frames[frames.len() - 1]);
        let range_end = last.offset.saturating_add(last.bytes);
        if range_end.checked_sub(first.offset).is_none_or(|n| n > u64::from(u32::MAX)) {
            return Err(Error::unsupported("the frames of a window are out of order, or spread over 4 GiB")
                .at(first.offset));
        }
        let (frames, words) = (frames.len() as u64, 2 * frames.len() as u64 * shape.blocks());
        windows.push(Window { start_frame, frames, range_start: first.offset, range_end, first_word, words });
        first_word += words;
        start_frame += frames;
    }
    Ok(windows)
}

fn be(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Reads small fields in increasing order through a window.
struct Reader<'a> {
    source: &'a dyn ByteSource,
    start: u64,
    held: Vec<u8>,
}

impl Reader<'_> {
    const HOLD: usize = 128 << 10;

    fn bytes(&mut self, offset: u64, n: usize) -> Result<&[u8]> {
        let inside = offset.checked_sub(self.start).is_some_and(|at| at + n as u64 <= self.held.len() as u64);
        if !inside {
            let left = self.source.len().saturating_sub(offset);
            let hold = (Self::HOLD as u64).min(left).max(n as u64) as usize;
            self.held.resize(hold, 0);
            self.source.read_at(offset, &mut self.held)?;
            self.start = offset;
        }
        let at = (offset - self.start) as usize;
        Ok(&self.held[at..at + n])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_core::Quiet;
    use tensilo_core::io::MemorySource;

    /// Two frames of `pixels` 16-bit values, with blocks of made-up lengths.
    fn file(rows: u32, cols: u32) -> (Vec<u8>, FrameShape, Vec<FrameChunk>) {
        let shape = FrameShape { detector: [rows, cols], frames: 2, value_bytes: 2 };
        let (mut bytes, mut chunks) = (vec![9; 100], Vec::new());
        for frame in 0..2_u32 {
            let offset = bytes.len() as u64;
            bytes.extend_from_slice(&shape.frame_bytes().to_be_bytes());
            bytes.extend_from_slice(&BLOCK_BYTES.to_be_bytes());
            for block in 0..shape.blocks() as u32 {
                let n = 10 + 3 * block + frame;
                bytes.extend_from_slice(&n.to_be_bytes());
                bytes.resize(bytes.len() + n as usize, 7);
            }
            bytes.resize(bytes.len() + shape.tail_bytes() as usize, 8);
            chunks.push(FrameChunk { offset, bytes: bytes.len() as u64 - offset });
            bytes.extend_from_slice(&[9; 5]);
        }
        (bytes, shape, chunks)
    }

    fn build(bytes: &[u8], shape: FrameShape, chunks: &[FrameChunk]) -> Result<PreparedIndex> {
        PreparedIndex::build(&MemorySource::new(bytes), shape, chunks, &Budget::default(), &Quiet)
    }

    #[test]
    fn blocks_are_found_with_partial_blocks_and_raw_tails() {
        for (rows, cols, blocks, tail) in
            [(64, 64, 1, 0), (96, 96, 3, 0), (5, 5, 1, 2), (2, 3, 0, 12), (64, 65, 2, 0)]
        {
            let (bytes, shape, chunks) = file(rows, cols);
            assert_eq!((shape.blocks(), shape.tail_bytes()), (blocks, tail));
            let index = build(&bytes, shape, &chunks).unwrap();
            let mut at = chunks[1].offset + 12;
            for b in 0..blocks {
                assert_eq!(index.block(1, b), (at + 4, 11 + 3 * b as u32));
                at += 4 + 11 + 3 * b;
            }
        }
    }

    #[test]
    fn an_index_survives_the_round_trip_and_only_for_its_file() {
        let (bytes, shape, chunks) = file(96, 96);
        let index = build(&bytes, shape, &chunks).unwrap();
        let now = Fingerprint { device: 1, inode: 2, bytes: 3, mtime_ns: 4 };
        let bound = Bound { path: Path::new("/a/b.h5"), now };
        let stored = index.encode(&bound);
        assert_eq!(PreparedIndex::decode(&stored, &bound, shape, &chunks), Some(index));
        let stale = Bound { now: Fingerprint { mtime_ns: 5, ..now }, ..bound };
        assert_eq!(PreparedIndex::decode(&stored, &stale, shape, &chunks), None);
        let moved = Bound { path: Path::new("/a/c.h5"), ..bound };
        assert_eq!(PreparedIndex::decode(&stored, &moved, shape, &chunks), None);
    }

    #[test]
    fn no_damaged_index_is_believed() {
        let (bytes, shape, chunks) = file(96, 96);
        let index = build(&bytes, shape, &chunks).unwrap();
        let bound = Bound { path: Path::new("/a/b.h5"), now: Fingerprint::default() };
        let stored = index.encode(&bound);
        for at in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[at] ^= 1;
            let read = PreparedIndex::decode(&damaged, &bound, shape, &chunks);
            assert!(read.is_none_or(|r| r == index), "byte {at}");
            assert!(PreparedIndex::decode(&stored[..at], &bound, shape, &chunks).is_none());
        }
    }

    #[test]
    fn wrong_chunks_are_named() {
        let (mut bytes, shape, chunks) = file(64, 64);
        let swapped = [chunks[1], chunks[0]];
        assert_eq!(build(&bytes, shape, &swapped).unwrap_err().kind(), tensilo_core::ErrorKind::Unsupported);
        let at = chunks[1].offset as usize;
        bytes[at + 15] = 200;
        let e = build(&bytes, shape, &chunks).unwrap_err();
        assert!(e.message().contains("frame 1") && e.kind() == tensilo_core::ErrorKind::Corrupt, "{e}");
        bytes[at + 11] = 1;
        let e = build(&bytes, shape, &chunks).unwrap_err();
        assert!(e.message().contains("blocks of 8193 bytes"), "{e}");
    }
}
