//! The preamble: the first 512 bytes, HDF5's user block, from which everything is found without HDF5.
//!
//! | at | type | value |
//! |---|---|---|
//! | 0 | 8 bytes | `89 54 50 4B 32 0D 0A 1A` |
//! | 8 | u16 | major version, 2: another one cannot be read |
//! | 10 | u16 | minor version, 0: a greater one can |
//! | 12 | u32 | `01020304` in hexadecimal: the byte order |
//! | 16 | u64 | features that a reader must know, one bit each; none is defined |
//! | 24 | u64 | length of the file |
//! | 32 | u64, u64 | offset and length of the index |
//! | 48 | u32 | CRC32C of the index |
//! | 52 | u32 | 0 |
//! | 56 | u64, u64 | offset and length of the payload |
//! | 72 | 32 bytes | SHA-256 of the frame: every byte behind the preamble that is no payload |
//! | 104 | 404 bytes | zeros |
//! | 508 | u32 | CRC32C of bytes 0 to 507 |

use crate::digest::Sha256Sum;
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, Result};

/// Length of the preamble.
pub const PREAMBLE: u64 = 512;
/// What a file of format 2 begins with.
pub const MAGIC: [u8; 8] = *b"\x89TPK2\r\n\x1a";
/// The version that is written.
pub const MAJOR: u16 = 2;
const BYTE_ORDER: u32 = 0x0102_0304;
const CHECKED: usize = 508;
const RESERVED: usize = 404;

/// A range of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

impl Extent {
    /// The byte behind it, where that is a number.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }
}

/// Where index and payload are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// Length of the file.
    pub file_bytes: u64,
    /// The index.
    pub index: Extent,
    /// CRC32C of the index.
    pub index_crc: u32,
    /// The payload.
    pub payload: Extent,
    /// SHA-256 of every byte behind the preamble that is no payload.
    pub frame_sha256: Sha256Sum,
}

impl Preamble {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(&MAGIC).u16(MAJOR).u16(0).u32(BYTE_ORDER).u64(0).u64(self.file_bytes);
        w.u64(self.index.offset).u64(self.index.bytes).u32(self.index_crc).u32(0);
        w.u64(self.payload.offset).u64(self.payload.bytes).bytes(&self.frame_sha256.0).zeros(RESERVED);
        let crc = crc32c::crc32c(w.as_slice());
        w.u32(crc);
        w.finish()
    }

    /// Reads and checks the preamble of a file of `file_bytes`.
    ///
    /// # Errors
    /// `Corrupt`, or `Unsupported` for another version or an unknown feature.
    pub fn parse(bytes: &[u8], file_bytes: u64) -> Result<Self> {
        let mut r = FieldReader::new(bytes, 0, "pack preamble");
        r.signature(&MAGIC)?;
        let (major, _minor) = (r.u16()?, r.u16()?);
        let summed = bytes.get(..CHECKED).ok_or_else(|| Error::corrupt("the preamble is cut off"))?;
        let mut tail = FieldReader::new(bytes.get(CHECKED..).unwrap_or(&[]), CHECKED as u64, "pack preamble");
        if tail.u32()? != crc32c::crc32c(summed) {
            return Err(Error::corrupt("the preamble does not match its CRC32C").at(0));
        }
        if major != MAJOR {
            return Err(r.unsupported(format!("pack version {major}; version {MAJOR} is read")));
        }
        if r.u32()? != BYTE_ORDER {
            return Err(r.unsupported("the byte order is not little-endian"));
        }
        let features = r.u64()?;
        if features != 0 {
            return Err(r.unsupported(format!("the pack needs features {features:#x} that are not known")));
        }
        let preamble = Self {
            file_bytes: r.u64()?,
            index: Extent { offset: r.u64()?, bytes: r.u64()? },
            index_crc: r.u32()?,
            payload: {
                zero(&mut r, 4)?;
                Extent { offset: r.u64()?, bytes: r.u64()? }
            },
            frame_sha256: Sha256Sum(r.array()?),
        };
        zero(&mut r, RESERVED)?;
        if preamble.file_bytes != file_bytes {
            return Err(Error::corrupt(format!(
                "the file has {file_bytes} bytes, its preamble states {}",
                preamble.file_bytes
            )));
        }
        for (what, e) in [("index", preamble.index), ("payload", preamble.payload)] {
            if e.offset < PREAMBLE || e.end().is_none_or(|end| end > file_bytes) {
                return Err(Error::corrupt(format!(
                    "{what} of {} bytes at {} in a file of {file_bytes} bytes",
                    e.bytes, e.offset
                )));
            }
        }
        let (i, p) = (preamble.index, preamble.payload);
        if i.end() > Some(p.offset) && p.end() > Some(i.offset) {
            return Err(Error::corrupt("index and payload overlap"));
        }
        Ok(preamble)
    }
}

/// Reads bytes that must be 0.
pub(super) fn zero(r: &mut FieldReader<'_>, n: usize) -> Result<()> {
    let at = r.offset();
    if r.bytes(n)?.iter().any(|b| *b != 0) {
        return Err(Error::corrupt("reserved bytes are not zero").at(at));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_core::ErrorKind;

    fn sample() -> Preamble {
        Preamble {
            file_bytes: 5000,
            index: Extent { offset: 4000, bytes: 500 },
            index_crc: 7,
            payload: Extent { offset: 800, bytes: 3000 },
            frame_sha256: Sha256Sum([9; 32]),
        }
    }

    #[test]
    fn a_preamble_comes_back_and_every_changed_bit_is_noticed() {
        let bytes = sample().encode();
        assert_eq!(bytes.len() as u64, PREAMBLE);
        assert_eq!(Preamble::parse(&bytes, 5000).unwrap(), sample());
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Preamble::parse(&bad, 5000).is_err(), "bit {bit}");
        }
        for n in 0..bytes.len() {
            assert!(Preamble::parse(&bytes[..n], 5000).is_err(), "{n} bytes");
        }
    }

    #[test]
    fn ranges_outside_the_file_another_version_and_unknown_features_are_refused() {
        let refused = |p: Preamble| Preamble::parse(&p.encode(), 5000).unwrap_err().kind();
        let index = |offset, bytes| Preamble { index: Extent { offset, bytes }, ..sample() };
        assert_eq!(refused(Preamble { file_bytes: 4999, ..sample() }), ErrorKind::Corrupt);
        assert_eq!(refused(index(u64::MAX, 2)), ErrorKind::Corrupt);
        assert_eq!(refused(index(0, 2)), ErrorKind::Corrupt);
        assert_eq!(refused(index(3799, 2)), ErrorKind::Corrupt, "overlap");
        for at in [8, 16] {
            let mut bytes = sample().encode();
            bytes[at] = 9;
            let crc = crc32c::crc32c(&bytes[..CHECKED]);
            bytes[CHECKED..].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(Preamble::parse(&bytes, 5000).unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
}
