//! Commit record of format 2: 64 bytes that name the newest complete header.
//!
//! | at | type | field |
//! |---|---|---|
//! | 0 | 4 bytes | `PTS\x02` |
//! | 4 | u32 | state: 1 sealed, 2 being rewritten in place |
//! | 8 | u64 | generation, from 1 |
//! | 16 | u64 | header offset |
//! | 24 | u64 | header bytes |
//! | 32 | u32 | CRC-32C of the header |
//! | 36 | u32 | 0 |
//! | 40 | u64 | file length at this commit; anything behind it is not part of the store |
//! | 48 | 12 bytes | 0 |
//! | 60 | u32 | CRC-32C of bytes 0..60 |

use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, Result};

pub(crate) const MAGIC: [u8; 4] = *b"PTS\x02";
pub(crate) const LEN: usize = 64;
/// Both records lie in the first bytes, in different sectors.
pub(crate) const SLOTS: [u64; 2] = [0, 512];
/// Lanes begin here.
pub(crate) const DATA_BASE: u64 = 4096;

/// What a commit record says the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Complete.
    Sealed,
    /// A writer is, or was, overwriting slabs in place.
    Rewriting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitRecord {
    pub state: State,
    pub generation: u64,
    pub header_offset: u64,
    pub header_bytes: u64,
    pub header_crc: u32,
    pub file_bytes: u64,
}

impl CommitRecord {
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        let state = match self.state {
            State::Sealed => 1,
            State::Rewriting => 2,
        };
        w.bytes(&MAGIC).u32(state).u64(self.generation).u64(self.header_offset).u64(self.header_bytes);
        w.u32(self.header_crc).u32(0).u64(self.file_bytes).zeros(12);
        let crc = crc32c::crc32c(w.as_slice());
        w.u32(crc);
        w.finish()
    }

    /// Parses one record at `at`.
    pub fn parse(bytes: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "commit record");
        r.signature(&MAGIC)?;
        let state = r.u32()?;
        let generation = r.u64()?;
        let (header_offset, header_bytes, header_crc) = (r.u64()?, r.u64()?, r.u32()?);
        let zero = r.u32()?;
        let file_bytes = r.u64()?;
        let zeros = r.bytes(12)?;
        let crc = r.u32()?;
        if bytes.get(..60).map(crc32c::crc32c) != Some(crc) {
            return Err(Error::corrupt("commit record: checksum does not match").at(at));
        }
        let state = match state {
            1 => State::Sealed,
            2 => State::Rewriting,
            s => return Err(Error::unsupported(format!("commit record: state {s}")).at(at)),
        };
        if zero != 0 || zeros.iter().any(|b| *b != 0) {
            return Err(Error::unsupported("commit record: reserved bytes are not zero").at(at));
        }
        Ok(Self { state, generation, header_offset, header_bytes, header_crc, file_bytes })
    }

    /// The newest valid record of the two, and the slot it stands in.
    pub fn newest(a: &[u8], b: &[u8]) -> Result<(Self, usize)> {
        match (Self::parse(a, SLOTS[0]), Self::parse(b, SLOTS[1])) {
            (Ok(a), Ok(b)) if b.generation > a.generation => Ok((b, 1)),
            (Ok(a), _) => Ok((a, 0)),
            (Err(_), Ok(b)) => Ok((b, 1)),
            (Err(e), Err(_)) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_every_flipped_bit_is_seen() {
        let record = CommitRecord {
            state: State::Sealed,
            generation: 7,
            header_offset: 5000,
            header_bytes: 90,
            header_crc: 3,
            file_bytes: 5090,
        };
        let bytes = record.encode();
        assert_eq!(bytes.len(), LEN);
        assert_eq!(CommitRecord::parse(&bytes, 0).unwrap(), record);
        for bit in 0..8 * LEN {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(CommitRecord::parse(&flipped, 0).is_err(), "bit {bit}");
        }
    }
}
