//! One entry of the record table: where a cell (a field of a record) is, how it is stored, and its checksum.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | u64 | offset of the stored bytes in the file; for an inline cell its bytes, padded with zeros |
//! | 8 | u40 | stored bytes |
//! | 13 | u40 | bytes of the field, at most 2^32 |
//! | 18 | u8 | low half: codec; high half: what was done ahead of it |
//! | 19 | u8 | dictionary, counted from 1; 0 for none |
//! | 20 | u32 | CRC-32C of the stored bytes |

use tensilo_core::{Error, Result};

/// Bytes of an entry.
pub(crate) const ENTRY: usize = 24;
/// Most bytes of one field of one record.
pub const LARGEST_CELL: u64 = 1 << 32;
/// Fields of at most so many bytes are kept in the table itself.
pub(crate) const INLINE: usize = 8;

/// How the bytes of a cell are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stored {
    Raw,
    Deflate,
    Zstd,
    Lz4,
    Inline,
}

/// What is done to a cell's elements before they are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ahead {
    /// Nothing.
    #[default]
    None,
    /// All first bytes of the elements, then all second bytes, and so on.
    Shuffle,
    /// All first bits of the elements, then all second bits, in blocks of 8 KiB.
    Bitshuffle,
}

/// A checked entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub offset: u64,
    pub stored: u64,
    pub raw: u64,
    pub codec: Stored,
    pub ahead: Ahead,
    pub dictionary: u8,
    pub crc: u32,
}

impl Entry {
    /// Reads an entry and checks that it makes sense by itself; whether its bytes lie inside the file is left to
    /// whoever reads them.
    pub fn parse(bytes: &[u8; ENTRY]) -> Result<Self> {
        let bad = |what: String| Error::corrupt(format!("record table: {what}"));
        let (words, _) = bytes.as_chunks::<8>();
        let [offset, lengths, rest] = [0, 1, 2].map(|i| words.get(i).map_or(0, |w| u64::from_le_bytes(*w)));
        let how = (rest >> 16) as u8;
        let codec = match how & 15 {
            0 => Stored::Raw,
            1 => Stored::Deflate,
            2 => Stored::Zstd,
            3 => Stored::Lz4,
            4 => Stored::Inline,
            other => return Err(Error::unsupported(format!("record codec {other} is not known"))),
        };
        let ahead = match how >> 4 {
            0 => Ahead::None,
            1 => Ahead::Shuffle,
            2 => Ahead::Bitshuffle,
            other => return Err(Error::unsupported(format!("record transform {other} is not known"))),
        };
        let entry = Self {
            offset,
            stored: lengths & 0xff_ffff_ffff,
            raw: lengths >> 40 | (rest & 0xffff) << 24,
            codec,
            ahead,
            dictionary: (rest >> 24) as u8,
            crc: (rest >> 32) as u32,
        };
        if entry.raw > LARGEST_CELL || entry.stored > entry.raw {
            return Err(bad(format!("{} stored bytes for a field of {}", entry.stored, entry.raw)));
        }
        let plain = matches!(codec, Stored::Raw | Stored::Inline);
        if plain && (entry.stored != entry.raw || ahead != Ahead::None) {
            return Err(bad(format!("{} raw bytes for a field of {}", entry.stored, entry.raw)));
        }
        if codec == Stored::Inline && entry.raw > INLINE as u64 {
            return Err(bad(format!("{} bytes cannot be inline", entry.raw)));
        }
        if entry.dictionary != 0 && codec != Stored::Zstd {
            return Err(bad("a dictionary without Zstandard".into()));
        }
        Ok(entry)
    }

    /// Where a raw cell of `len` bytes lies; `None` for all other entries.
    #[inline(always)]
    pub fn raw_offset(bytes: &[u8; ENTRY], len: u64) -> Option<u64> {
        let (words, _) = bytes.as_chunks::<8>();
        let &[offset, lengths, rest] = words else { return None };
        let raw = u64::from_le_bytes(lengths) == len | len << 40
            && u64::from_le_bytes(rest) as u32 == (len >> 24) as u32
            && len <= LARGEST_CELL;
        raw.then_some(u64::from_le_bytes(offset))
    }

    /// Where the stored bytes of an entry would lie and how many they are, unchecked; `None` when they are in the entry.
    #[inline(always)]
    pub fn place(bytes: &[u8; ENTRY]) -> Option<(u64, u64)> {
        let (words, _) = bytes.as_chunks::<8>();
        let &[offset, lengths, rest] = words else { return None };
        let inline = u64::from_le_bytes(rest) >> 16 & 15 == 4;
        (!inline).then(|| (u64::from_le_bytes(offset), u64::from_le_bytes(lengths) & 0xff_ffff_ffff))
    }

    /// The entry's bytes.
    pub fn encode(&self) -> [u8; ENTRY] {
        let codec = match self.codec {
            Stored::Raw => 0,
            Stored::Deflate => 1,
            Stored::Zstd => 2,
            Stored::Lz4 => 3,
            Stored::Inline => 4,
        };
        let ahead = match self.ahead {
            Ahead::None => 0,
            Ahead::Shuffle => 1_u8,
            Ahead::Bitshuffle => 2,
        };
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..13].copy_from_slice(&self.stored.to_le_bytes()[..5]);
        bytes[13..18].copy_from_slice(&self.raw.to_le_bytes()[..5]);
        bytes[18] = codec | ahead << 4;
        bytes[19] = self.dictionary;
        bytes[20..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    /// The bytes of an inline cell.
    pub fn inline(&self) -> [u8; INLINE] {
        self.offset.to_le_bytes()
    }

    /// An inline cell.
    pub fn of_inline(bytes: &[u8]) -> Self {
        let mut all = [0; INLINE];
        all[..bytes.len()].copy_from_slice(bytes);
        Self {
            offset: u64::from_le_bytes(all),
            stored: bytes.len() as u64,
            raw: bytes.len() as u64,
            codec: Stored::Inline,
            ahead: Ahead::None,
            dictionary: 0,
            crc: crc32c::crc32c(bytes),
        }
    }

    /// Bytes that it takes outside the table.
    pub fn outside(&self) -> u64 {
        if self.codec == Stored::Inline { 0 } else { self.stored }
    }

    /// What the cell adds to the store's digest: the same wherever its bytes lie.
    pub fn digest(&self, id: u64, field: u64) -> u128 {
        let what = u64::from(self.crc) | self.raw << 32;
        let place = id ^ field << 48;
        let half = |salt: u64| u128::from(mix(mix(place.wrapping_add(salt)) ^ what));
        half(0x9e37_79b9_7f4a_7c15) | half(0xd1b5_4a32_d192_ed03) << 64
    }
}

/// The finaliser of SplitMix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The entries of a record, one after the other.
pub(crate) fn entry_at(record: &[u8], field: usize) -> Result<&[u8; ENTRY]> {
    record
        .get(field * ENTRY..)
        .and_then(|rest| rest.first_chunk())
        .ok_or_else(|| Error::corrupt("the record table ends inside a record"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back_and_lies_are_refused() {
        let entry = Entry {
            offset: 1 << 50,
            stored: 5_000,
            raw: LARGEST_CELL,
            codec: Stored::Zstd,
            ahead: Ahead::Bitshuffle,
            dictionary: 255,
            crc: 0xdead_beef,
        };
        assert_eq!(Entry::parse(&entry.encode()).unwrap(), entry);
        assert_eq!(Entry::raw_offset(&entry.encode(), entry.raw), None);
        assert_eq!(Entry::place(&entry.encode()), Some((entry.offset, entry.stored)));
        for raw in [9, 784, 1 << 24, (1 << 24) + 5, LARGEST_CELL] {
            let plain =
                Entry { codec: Stored::Raw, ahead: Ahead::None, dictionary: 0, raw, stored: raw, ..entry };
            assert_eq!(Entry::raw_offset(&plain.encode(), raw), Some(1 << 50));
            assert_eq!(Entry::raw_offset(&plain.encode(), raw - 1), None);
            for lie in [18, 19] {
                let mut bytes = plain.encode();
                bytes[lie] = 1;
                assert_eq!(Entry::raw_offset(&bytes, raw), None);
            }
        }
        let inline = Entry::of_inline(&[1, 2, 3]);
        assert_eq!(Entry::parse(&inline.encode()).unwrap(), inline);
        assert_eq!(Entry::place(&inline.encode()), None);
        assert_eq!(inline.inline(), [1, 2, 3, 0, 0, 0, 0, 0]);
        for lie in [
            Entry { raw: LARGEST_CELL + 1, ..entry },
            Entry { stored: 9, raw: 8, ..entry },
            Entry { codec: Stored::Raw, dictionary: 0, ..entry },
            Entry { codec: Stored::Lz4, ..entry },
            Entry { stored: 9, raw: 9, ..inline },
        ] {
            assert!(Entry::parse(&lie.encode()).is_err(), "{lie:?}");
        }
        for how in [5, 15, 0x30, 0xf0] {
            let mut bytes = entry.encode();
            bytes[18] = how;
            assert_eq!(Entry::parse(&bytes).unwrap_err().kind(), tensilo_core::ErrorKind::Unsupported);
        }
    }
}
