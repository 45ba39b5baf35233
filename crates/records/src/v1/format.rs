//! The bytes of `meta.zr`: a header of 16 bytes, then entries of 16, little-endian.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | magic `ZREC` |
//! | 4 | 2 | version, 1 |
//! | 6 | 2 | last data file (*tail chunk*) |
//! | 8 | 4 | where the next record goes in it (*frontier*) |
//! | 12 | 4 | number of records |
//! | 16 + 16 i | 16 | entry i: u32 offset, u32 stored length, u32 length, u16 chunk, u8 codec, u8 zero |

use super::codec::Codec;
use super::fault::Fault;
use super::place::{Frontier, Geometry, Place};
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, Result};

/// Bytes of the header.
pub(super) const HEADER_LEN: usize = 16;
/// Bytes of an entry.
pub(super) const ENTRY_LEN: usize = 16;
/// Longest record, in bytes; the shortest has one.
pub const MAX_RECORD_LEN: usize = 1 << 20;

const MAGIC: &[u8; 4] = b"ZREC";
const VERSION: u16 = 1;

/// Byte position of an entry in `meta.zr`.
pub(super) fn entry_at(index: u64) -> u64 {
    HEADER_LEN as u64 + index * ENTRY_LEN as u64
}

/// The header: how many records there are and where the next one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub frontier: Frontier,
    pub len: u64,
}

impl Header {
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(MAGIC).u16(VERSION).u16(self.frontier.chunk).u32(self.frontier.offset).u32(self.len as u32);
        w.finish()
    }

    /// Reads a header and checks that its numbers are possible.
    pub fn parse(bytes: &[u8], geometry: &Geometry) -> Result<Self> {
        let foreign = |e: Error| e.with_source(Fault::NotAStore);
        let mut r = FieldReader::new(bytes, 0, "header of a Zrecord store");
        r.signature(MAGIC).map_err(foreign)?;
        let version = r.u16().map_err(foreign)?;
        if version != VERSION {
            return Err(foreign(r.unsupported(format_args!("version {version}, known is {VERSION}"))));
        }
        let frontier = Frontier { chunk: r.u16().map_err(foreign)?, offset: r.u32().map_err(foreign)? };
        let len = u64::from(r.u32().map_err(foreign)?);
        if u64::from(frontier.chunk) >= u64::from(geometry.chunks)
            || u64::from(frontier.offset) >= geometry.chunk_bytes
        {
            let Frontier { chunk, offset } = frontier;
            return Err(foreign(
                r.corrupt(format_args!("its end at byte {offset} of chunk {chunk} is impossible")),
            ));
        }
        if len > u64::from(geometry.records) {
            return Err(foreign(
                r.corrupt(format_args!("{len} records are more than the {} possible", geometry.records)),
            ));
        }
        Ok(Self { frontier, len })
    }
}

/// Where a record lies; not checked against anything yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Entry {
    pub offset: u32,
    /// Bytes that it takes in the data file.
    pub stored: u32,
    /// Bytes of the record.
    pub len: u32,
    pub chunk: u16,
    /// A [`Codec`]'s number, when valid.
    pub codec: u8,
    pub reserved: u8,
}

impl Entry {
    pub fn new(place: Place, stored: u32, len: u32, codec: Codec) -> Self {
        Self { offset: place.offset, stored, len, chunk: place.chunk, codec: codec.number(), reserved: 0 }
    }

    /// The entry as two little-endian words.
    pub fn words(&self) -> [u64; 2] {
        [
            u64::from(self.offset) | u64::from(self.stored) << 32,
            u64::from(self.len)
                | u64::from(self.chunk) << 32
                | u64::from(self.codec) << 48
                | u64::from(self.reserved) << 56,
        ]
    }

    pub fn from_words([a, b]: [u64; 2]) -> Self {
        Self {
            offset: a as u32,
            stored: (a >> 32) as u32,
            len: b as u32,
            chunk: (b >> 32) as u16,
            codec: (b >> 48) as u8,
            reserved: (b >> 56) as u8,
        }
    }

    pub fn encode(&self) -> [u8; ENTRY_LEN] {
        let mut bytes = [0; ENTRY_LEN];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.words()) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn parse(bytes: &[u8; ENTRY_LEN]) -> Self {
        let word = |half: usize| {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(bytes.iter().skip(half * 8)) {
                *to = *from;
            }
            u64::from_le_bytes(word)
        };
        Self::from_words([word(0), word(1)])
    }

    pub fn place(&self) -> Place {
        Place { chunk: self.chunk, offset: self.offset }
    }

    /// What the entry says, when it can be true of a store that ends at the frontier.
    pub fn check(&self, frontier: Frontier, geometry: &Geometry) -> Result<Extent> {
        let Some(codec) = Codec::from_number(self.codec) else {
            return Err(damaged(format!("its codec {} is unknown", self.codec)));
        };
        if self.len == 0 || self.len as usize > MAX_RECORD_LEN {
            return Err(damaged(format!(
                "its length of {} bytes is not between 1 and {MAX_RECORD_LEN}",
                self.len
            )));
        }
        // loaderx ignores the stored length of raw records.
        let stored = if codec == Codec::Raw { self.len } else { self.stored };
        // An encoder may fall back to stored blocks, but to no more than that.
        if stored as usize > 2 * MAX_RECORD_LEN {
            return Err(damaged(format!("{stored} stored bytes for a record of {} are too many", self.len)));
        }
        let end = u64::from(self.offset) + u64::from(stored);
        let limit = match self.chunk.cmp(&frontier.chunk) {
            std::cmp::Ordering::Less => geometry.chunk_bytes,
            std::cmp::Ordering::Equal => u64::from(frontier.offset),
            std::cmp::Ordering::Greater => 0,
        };
        if stored == 0 || end > limit {
            return Err(damaged(format!(
                "its {stored} bytes at byte {} of chunk {} lie outside the store, which ends at byte {} of chunk {}",
                self.offset, self.chunk, frontier.offset, frontier.chunk
            )));
        }
        Ok(Extent { place: self.place(), stored, len: self.len, codec })
    }
}

fn damaged(message: String) -> Error {
    Error::corrupt(message).with_source(Fault::Decode)
}

/// A record's bytes in a data file, checked to lie inside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub place: Place,
    pub stored: u32,
    pub len: u32,
    pub codec: Codec,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_entries_read_back() {
        let geometry = Geometry::default();
        let header = Header { frontier: Frontier { chunk: 3, offset: 77 }, len: 9 };
        assert_eq!(Header::parse(&header.encode(), &geometry).unwrap(), header);
        let entry =
            Entry { offset: 0x0102_0304, stored: 0x0506_0708, len: 9, chunk: 0x0a0b, codec: 1, reserved: 7 };
        assert_eq!(Entry::parse(&entry.encode()), entry);
        assert_eq!(
            entry.encode(),
            [4, 3, 2, 1, 8, 7, 6, 5, 9, 0, 0, 0, 0x0b, 0x0a, 1, 7],
            "the table in the docs"
        );
    }

    #[test]
    fn impossible_headers_are_refused() {
        let geometry = Geometry::default();
        let good = Header { frontier: Frontier { chunk: 0, offset: 0 }, len: 0 }.encode();
        for (at, byte) in [(0, b'X'), (4, 2), (7, 0xff), (15, 0xff)] {
            let mut bad = good.clone();
            bad[at] = byte;
            let e = Header::parse(&bad, &geometry).unwrap_err();
            assert_eq!(super::super::code_of(&e), -8, "{e}");
        }
        for len in 0..good.len() {
            assert!(Header::parse(&good[..len], &geometry).is_err());
        }
    }
}
