//! Frames of the source, decoded through the prepared indexes by positioned reads.

use crate::source::prepare::Prepared;
use crate::source::qh5_index::BLOCK_BYTES;
use std::path::Path;
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::{Error, Result};
use tensilo_filters::{bitshuffle, lz4};

/// Room that lets the LZ4 decoder run at full speed to a block's end.
const SLACK: usize = 64;

/// All frames of a family, one behind the other.
pub(crate) struct Frames {
    members: Vec<Prepared>,
    /// First frame of each member.
    firsts: Vec<u64>,
    /// Compressed bytes that one worker may hold; at least the largest block.
    read_bytes: usize,
}

/// What one worker keeps: the open member, compressed bytes, one shuffled block.
pub(crate) struct Reader {
    open: Option<(usize, FileSource)>,
    compressed: Vec<u8>,
    block: Vec<u8>,
}

impl Frames {
    pub fn new(members: Vec<Prepared>, read_bytes: u64) -> Self {
        let mut first = 0;
        let firsts = members
            .iter()
            .map(|m| {
                let here = first;
                first += m.index.shape().frames;
                here
            })
            .collect();
        Self { members, firsts, read_bytes: usize::try_from(read_bytes).unwrap_or(usize::MAX) }
    }

    pub fn reader(&self) -> Reader {
        Reader { open: None, compressed: Vec::new(), block: vec![0; BLOCK_BYTES as usize + SLACK] }
    }

    /// Bytes that a reader may hold.
    pub fn reader_bytes(&self) -> u64 {
        self.read_bytes as u64 + u64::from(BLOCK_BYTES)
    }

    /// The file that holds a frame, and the frame's number in it.
    pub fn member_of(&self, frame: u64) -> Option<(&Path, u64)> {
        let m = self.firsts.partition_point(|first| *first <= frame).checked_sub(1)?;
        Some((&self.members[m].path, frame - self.firsts[m]))
    }

    fn member(&self, frame: u64) -> usize {
        self.firsts.partition_point(|first| *first <= frame) - 1
    }

    /// Decodes one frame of uint16 values.
    ///
    /// # Errors
    /// `Corrupt`, naming file and frame, when a block does not decode to its length; `SourceChanged`, `Io`.
    pub fn decode(&self, reader: &mut Reader, frame: u64, values: &mut [u16]) -> Result<()> {
        let m = self.member(frame);
        let member = &self.members[m];
        let local = frame - self.firsts[m];
        let located = |e: Error| e.context(format_args!("frame {local}")).in_file(&member.path);
        let Reader { open, compressed, block } = reader;
        let source = match open {
            Some((opened, source)) if *opened == m => source,
            _ => {
                let source = FileSource::open(&member.path)?;
                if source.fingerprint()? != member.now {
                    return Err(
                        Error::source_changed("the file changed before it was packed").in_file(&member.path)
                    );
                }
                &open.insert((m, source)).1
            }
        };
        decode_frame(member, source, local, self.read_bytes, compressed, block, values).map_err(located)?;
        if cfg!(target_endian = "big") {
            values.iter_mut().for_each(|v| *v = u16::from_le(*v));
        }
        Ok(())
    }
}

fn decode_frame(
    member: &Prepared,
    source: &FileSource,
    frame: u64,
    read_bytes: usize,
    compressed: &mut Vec<u8>,
    block: &mut [u8],
    values: &mut [u16],
) -> Result<()> {
    let index = &member.index;
    let shape = index.shape();
    let bytes = bytemuck::cast_slice_mut::<u16, u8>(values);
    let (blocks, tail) = (shape.blocks(), shape.tail_bytes() as usize);
    // The blocks of a frame lie one behind the other; as many are read at once as may be held.
    let (mut held_from, mut held_to) = (0, 0);
    let mut to = 0;
    for b in 0..blocks {
        let (offset, length) = index.block(frame, b);
        let end = offset + u64::from(length);
        if held_to < end || offset < held_from {
            let mut last = end;
            for next in b + 1..blocks {
                let (at, n) = index.block(frame, next);
                let next_end = at + u64::from(n);
                if next_end - offset > read_bytes as u64 {
                    break;
                }
                last = next_end;
            }
            let n = (last - offset) as usize;
            if compressed.len() < n {
                compressed.resize(n, 0);
            }
            source.read_at(offset, &mut compressed[..n])?;
            (held_from, held_to) = (offset, last);
        }
        let at = (offset - held_from) as usize;
        let stored = &compressed[at..at + length as usize];
        let want = 2 * shape.values_of(b) as usize;
        let n = lz4::decode_block(stored, &mut block[..want + SLACK])
            .map_err(|e| e.context(format_args!("LZ4 block {b}")).at(offset))?;
        if n != want {
            return Err(Error::corrupt(format!("LZ4 block {b} decodes to {n} bytes, not {want}")).at(offset));
        }
        bitshuffle::unshuffle_block(&block[..want], &mut bytes[to..to + want], 2);
        to += want;
    }
    if tail > 0 {
        source.read_at(index.tail_offset(frame), &mut bytes[to..to + tail])?;
    }
    Ok(())
}
