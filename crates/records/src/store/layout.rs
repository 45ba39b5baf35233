//! The fixed parts of the file: the two commit records at its front, and references to blocks behind them.
//!
//! Commit record, 64 bytes, at 0 and again at 4096:
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | 8 bytes | `89 54 52 45 43 0D 0A 1A` (`\x89TREC\r\n\x1a`) |
//! | 8 | u32 | format version: 1 |
//! | 12 | u32 | features that a reader must know: 0 |
//! | 16 | u64 | generation, 1 for a new store |
//! | 24 | u64 | offset of the state block |
//! | 32 | u64 | bytes of the state block |
//! | 40 | u32 | CRC-32C of the state block without its last four bytes, which repeat it |
//! | 44 | 16 bytes | 0 |
//! | 60 | u32 | CRC-32C of bytes 0 to 59 |

use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, ErrorKind, Result};

/// The first bytes of a store.
pub const MAGIC: [u8; 8] = *b"\x89TREC\r\n\x1a";
/// The format's version.
pub const VERSION: u32 = 1;
/// Bytes of a commit record.
pub(crate) const RECORD: usize = 64;
/// Where the two commit records are.
pub(crate) const COPIES: [u64; 2] = [0, 4096];
/// Where everything else begins.
pub(crate) const FRONT: u64 = 8192;
/// Most bytes of a state block.
pub(crate) const LARGEST_STATE: u64 = 64 << 20;

/// A valid commit record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitRecord {
    pub generation: u64,
    pub state: Block,
}

/// Bytes in the file, with their checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub offset: u64,
    pub bytes: u64,
    pub crc: u32,
}

impl Block {
    /// Where it ends.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }

    /// Checks that it lies between the commit records and `end`.
    pub fn check(&self, end: u64, what: &str) -> Result<()> {
        if self.offset < FRONT || self.end().is_none_or(|e| e > end) {
            return Err(Error::corrupt(format!(
                "{what}: {} bytes do not lie inside the committed {end}",
                self.bytes
            ))
            .at(self.offset));
        }
        Ok(())
    }
}

impl CommitRecord {
    /// Reads a record; `None` when its magic or checksum is wrong.
    ///
    /// # Errors
    /// `Unsupported` for a version or a feature of later times; `Corrupt` for a record that contradicts itself.
    pub fn parse(bytes: &[u8], at: u64) -> Result<Option<Self>> {
        let mut r = FieldReader::new(bytes, at, "commit record");
        let body = r.bytes(RECORD - 4)?;
        let crc = r.u32()?;
        if !body.starts_with(&MAGIC) || crc != crc32c::crc32c(body) {
            return Ok(None);
        }
        let mut r = FieldReader::new(body, at, "commit record");
        r.skip(MAGIC.len())?;
        let version = r.u32()?;
        if version != VERSION {
            return Err(r.unsupported(format_args!("record store format {version} is not supported")));
        }
        let features = r.u32()?;
        if features != 0 {
            return Err(r.unsupported(format_args!("features {features:#x} are not supported")));
        }
        let generation = r.u64()?;
        let (offset, bytes, crc) = (r.u64()?, r.u64()?, r.u32()?);
        if r.rest().iter().any(|b| *b != 0) {
            return Err(r.unsupported("reserved bytes are in use"));
        }
        if generation == 0 || bytes > LARGEST_STATE {
            return Err(r.corrupt(format_args!("generation {generation}, a state block of {bytes} bytes")));
        }
        let state = Block { offset, bytes, crc };
        state.check(u64::MAX, "state block")?;
        Ok(Some(Self { generation, state }))
    }

    /// The record's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(&MAGIC).u32(VERSION).u32(0).u64(self.generation);
        w.u64(self.state.offset).u64(self.state.bytes).u32(self.state.crc).zeros(16);
        let crc = crc32c::crc32c(w.as_slice());
        w.u32(crc);
        w.finish()
    }
}

/// What the two commit records say.
#[derive(Debug)]
pub(crate) struct Front {
    /// What is at the two places; `None` for a damaged record.
    pub copies: [Option<CommitRecord>; 2],
}

impl Front {
    /// Reads both from the first bytes of a file.
    ///
    /// # Errors
    /// `Corrupt` when neither is valid, or the file is no record store; `Unsupported`.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let copies = COPIES.map(|at| match bytes.get(at as usize..at as usize + RECORD) {
            Some(record) => CommitRecord::parse(record, at),
            None => Ok(None),
        });
        let [a, b] = copies;
        // A record that is whole and says something of later times is believed, whatever the other says.
        let front = Self { copies: [a?, b?] };
        front.newest().map(|_| front)
    }

    /// The record that counts.
    pub fn newest(&self) -> Result<CommitRecord> {
        let [a, b] = self.copies;
        a.into_iter().chain(b).max_by_key(|r| r.generation).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "neither commit record of the record store is valid").at(0)
        })
    }
}

/// Does a file begin like a record store? Also one whose first commit record is damaged, if the second is whole.
pub(crate) fn sniff(front: &[u8]) -> bool {
    front.starts_with(&MAGIC) || front.get(4096..).is_some_and(|b| b.starts_with(&MAGIC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_record_reads_back_and_no_flipped_bit_passes() {
        let record =
            CommitRecord { generation: 7, state: Block { offset: 9000, bytes: 500, crc: 0x1234_5678 } };
        let bytes = record.encode();
        assert_eq!(bytes.len(), RECORD);
        assert_eq!(CommitRecord::parse(&bytes, 0).unwrap(), Some(record));
        for bit in 0..RECORD * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(CommitRecord::parse(&bad, 0).unwrap(), None, "bit {bit}");
        }
    }

    #[test]
    fn later_versions_and_features_are_refused_by_name() {
        let sealed = |at: usize, value: u8| {
            let mut bytes =
                CommitRecord { generation: 1, state: Block { offset: 8192, bytes: 9, crc: 0 } }.encode();
            bytes[at] = value;
            let crc = crc32c::crc32c(&bytes[..60]);
            bytes[60..].copy_from_slice(&crc.to_le_bytes());
            CommitRecord::parse(&bytes, 0).map_err(|e| e.kind())
        };
        for (at, value) in [(8, 2), (12, 1), (50, 1)] {
            assert_eq!(sealed(at, value), Err(ErrorKind::Unsupported), "byte {at}");
        }
        assert_eq!(sealed(16, 0), Err(ErrorKind::Corrupt), "generation 0");
        assert_eq!(sealed(25, 0), Err(ErrorKind::Corrupt), "a state block over the commit records");
        assert_eq!(sealed(36, 1), Err(ErrorKind::Corrupt), "an endless state block");
    }
}
