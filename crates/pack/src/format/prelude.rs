//! The first 24 bytes of a pack (contract, section 2.2).
//!
//! | offset | type | value |
//! |---|---|---|
//! | 0 | 8 bytes | `QGPUH5\0\x01` |
//! | 8 | u32 | bytes of the JSON manifest, which starts at byte 24; more than 0 |
//! | 12 | u32 | CRC-32 (zlib) of the manifest |
//! | 16 | u32 | offset of the binary index |
//! | 20 | u32 | bytes of the binary index |

use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, Result};

/// First bytes of every pack.
pub const MAGIC: [u8; 8] = *b"QGPUH5\0\x01";
/// Bytes of the prelude; the manifest follows.
pub const PRELUDE_BYTES: u64 = 24;
/// Least bytes of a binary index: an LZ4 index of no exclusion and no shard.
const LEAST_INDEX_BYTES: u32 = 72;

/// The prelude, checked against the length of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prelude {
    /// Bytes of the manifest.
    pub manifest_bytes: u32,
    /// CRC-32 of the manifest.
    pub manifest_crc: u32,
    /// Offset of the binary index.
    pub index_offset: u32,
    /// Bytes of the binary index.
    pub index_bytes: u32,
}

impl Prelude {
    /// Places manifest and index in a user block: the index is aligned to 8 bytes.
    pub fn for_parts(manifest: &[u8], index_bytes: usize) -> Result<Self> {
        let fit =
            |n: usize| u32::try_from(n).map_err(|_| Error::invalid("manifest or index of 4 GiB or more"));
        let end = PRELUDE_BYTES as usize + manifest.len();
        Ok(Self {
            manifest_bytes: fit(manifest.len())?,
            manifest_crc: crc32fast::hash(manifest),
            index_offset: fit(end.next_multiple_of(8))?,
            index_bytes: fit(index_bytes)?,
        })
    }

    /// Parses the first 24 bytes of a file of `file_bytes` bytes.
    ///
    /// # Errors
    /// `Corrupt` when the magic or a range is wrong.
    pub fn parse(bytes: &[u8], file_bytes: u64) -> Result<Self> {
        let mut r = FieldReader::new(bytes, 0, "pack prelude");
        let magic: [u8; 8] = r.array()?;
        if magic != MAGIC {
            return Err(Error::corrupt(format!(
                "pack prelude: magic {} expected, {} found",
                MAGIC.escape_ascii(),
                magic.escape_ascii()
            ))
            .at(0));
        }
        let p = Self {
            manifest_bytes: r.u32()?,
            manifest_crc: r.u32()?,
            index_offset: r.u32()?,
            index_bytes: r.u32()?,
        };
        let room = u64::from(p.index_offset).saturating_sub(PRELUDE_BYTES);
        if p.manifest_bytes == 0 || u64::from(p.manifest_bytes) > room {
            return Err(Error::corrupt(format!(
                "pack prelude: a manifest of {} bytes before the index at byte {}",
                p.manifest_bytes, p.index_offset
            ))
            .at(8));
        }
        if p.index_bytes < LEAST_INDEX_BYTES {
            return Err(Error::corrupt(format!("pack prelude: an index of {} bytes", p.index_bytes)).at(20));
        }
        if p.end() > file_bytes {
            return Err(Error::corrupt(format!(
                "pack prelude: the index ends at byte {}, the file has {file_bytes}",
                p.end()
            ))
            .at(16));
        }
        Ok(p)
    }

    /// Where the index ends.
    pub fn end(&self) -> u64 {
        u64::from(self.index_offset) + u64::from(self.index_bytes)
    }

    /// The 24 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(&MAGIC);
        w.u32(self.manifest_bytes).u32(self.manifest_crc).u32(self.index_offset).u32(self.index_bytes);
        w.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prelude_survives_the_round_trip() {
        let p = Prelude::for_parts(b"{\"a\":1}", 176).unwrap();
        assert_eq!((p.manifest_bytes, p.index_offset), (7, 32));
        assert_eq!(Prelude::parse(&p.encode(), 300).unwrap(), p);
        assert!(Prelude::parse(&p.encode(), 207).is_err(), "the index must lie in the file");
        assert!(Prelude::parse(&p.encode()[..23], 300).is_err());
    }

    #[test]
    fn every_wrong_field_is_refused() {
        let good = Prelude { manifest_bytes: 8, manifest_crc: 0, index_offset: 32, index_bytes: 176 };
        for bad in [
            Prelude { manifest_bytes: 0, ..good },
            Prelude { manifest_bytes: 9, ..good },
            Prelude { index_offset: 0, ..good },
            Prelude { index_bytes: 71, ..good },
            Prelude { index_bytes: u32::MAX, ..good },
        ] {
            assert!(Prelude::parse(&bad.encode(), 1000).is_err(), "{bad:?}");
        }
    }
}
