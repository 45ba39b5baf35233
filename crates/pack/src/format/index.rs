//! The binary index: geometry, exclusions, source identity and one record per shard (contract, 2.3 and 3).
//!
//! | revision 3 | revision 1 (LZ4) | type | value |
//! |---|---|---|---|
//! | 0 | 0 | 8 bytes | `QGIX\0\0\0` and the revision |
//! | 8 | 8 | u32 | shard count K |
//! | 12 | – | u32 | 0 |
//! | – | 12 | u32 | payload chunk bytes, 128 |
//! | 16 | 16 | u32 x 4 | scan rows, scan columns, detector rows, detector columns |
//! | 32 | 32 | u32 | scans per shard S |
//! | 36 | – | u32 | scan tile, 32 |
//! | 40 | – | u32 | header encoding, 1 or 2 |
//! | 44 | 36 | u32 | excluded pixels E |
//! | 48 | 40 | u32 x E | excluded flat pixels, ascending |
//! | 48+4E | 40+4E | 32 bytes | source identity |
//! | 80+4E | 72+4E | 96 x K | records |
//!
//! Record: payload offset and bytes, lengths offset and bytes, header (or width) offset and bytes, decoded bytes
//! (u64 each), header words (or descriptors) and chunk count (u32 each), SHA-256 of the decoded payload.

use super::header::MOST_WORDS;
use crate::digest::Sha256Sum;
use crate::geometry::{Cut, Geometry};
use crate::profile::Flavour;
use std::ops::Range;
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, Result};

const MAGIC: [u8; 7] = *b"QGIX\0\0\0";
const RECORD_BYTES: usize = 96;
/// Bytes of decoded payload in one LZ4 block.
pub const LZ4_BLOCK: u64 = 128;

/// A range of bytes of the file; offsets count from the file's first byte, user block included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Extent {
    /// The range; its end was checked when the index was parsed.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.bytes)
    }
}

/// One shard's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardRecord {
    /// Payload words, or LZ4 blocks.
    pub payload: Extent,
    /// One length byte per LZ4 block; empty in revision 3.
    pub lengths: Extent,
    /// Compact headers, or width bytes.
    pub header: Extent,
    /// Bytes of the payload words.
    pub decoded_bytes: u64,
    /// Header words, or width bytes.
    pub header_items: u32,
    /// LZ4 blocks; 0 in revision 3.
    pub chunks: u32,
    /// SHA-256 of the payload words.
    pub payload_sha256: Sha256Sum,
}

/// The binary index of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackIndex {
    /// Which of the three flavours it is.
    pub flavour: Flavour,
    /// Shape of the acquisition.
    pub geometry: Geometry,
    /// Shards and tiles.
    pub cut: Cut,
    /// Excluded flat pixels, ascending.
    pub excluded: Vec<u32>,
    /// Identity of the source files.
    pub source_identity: Sha256Sum,
    /// One record per shard.
    pub shards: Vec<ShardRecord>,
}

/// Bytes of an index.
pub fn index_bytes(flavour: Flavour, excluded: u64, shards: u64) -> u128 {
    let head = if flavour == Flavour::Lz4 { 72 } else { 80 };
    head + 4 * u128::from(excluded) + RECORD_BYTES as u128 * u128::from(shards)
}

impl PackIndex {
    /// Parses an index that begins at file offset `base` of a file of `file_bytes` bytes, and checks that every
    /// range lies behind it, in the file, and apart from the others.
    ///
    /// # Errors
    /// `Corrupt`, or `Unsupported` for other revisions and header encodings.
    pub fn parse(bytes: &[u8], base: u64, file_bytes: u64) -> Result<Self> {
        let mut r = FieldReader::new(bytes, base, "pack index");
        r.signature(&MAGIC)?;
        let lz4 = match r.u8()? {
            1 => true,
            3 => false,
            other => return Err(r.unsupported(format_args!("revision {other}; revisions 1 and 3 exist"))),
        };
        let shards = r.u32()?;
        match (lz4, r.u32()?) {
            (true, 128) | (false, 0) => {}
            (true, n) => return Err(r.unsupported(format_args!("LZ4 blocks of {n} bytes, 128 is expected"))),
            (false, n) => return Err(r.corrupt(format_args!("reserved field is {n}, 0 is expected"))),
        }
        let shape = [r.u32()?, r.u32()?, r.u32()?, r.u32()?].map(u64::from);
        let geometry = Geometry::new(shape).map_err(|e| r.corrupt(e.message()))?;
        let scans_per_shard = r.u32()?;
        let flavour = if lz4 { Flavour::Lz4 } else { Self::parse_encoding(&mut r)? };
        let cut = Cut { scans_per_shard, shards, tile: flavour.tile() };
        if scans_per_shard == 0 || !scans_per_shard.is_multiple_of(cut.tile) {
            return Err(r.corrupt(format_args!(
                "{scans_per_shard} scans per shard is not a multiple of {}",
                cut.tile
            )));
        }
        if u64::from(shards) * u64::from(scans_per_shard) != geometry.scans() {
            return Err(r.corrupt(format_args!(
                "{shards} shards of {scans_per_shard} scans do not make {} scans",
                geometry.scans()
            )));
        }
        let excluded_count = r.u32()?;
        if u128::from(r.position() as u64 + r.remaining() as u64)
            != index_bytes(flavour, excluded_count.into(), shards.into())
        {
            return Err(r.corrupt(format_args!(
                "{} bytes for {excluded_count} exclusions and {shards} shards",
                bytes.len()
            )));
        }
        let excluded = Self::parse_excluded(&mut r, excluded_count, &geometry)?;
        let source_identity = Sha256Sum(r.array()?);
        let mut records = Vec::with_capacity(r.remaining() / RECORD_BYTES);
        for _ in 0..shards {
            records.push(ShardRecord::parse(&mut r, flavour, &geometry, &cut)?);
        }
        let index = Self { flavour, geometry, cut, excluded, source_identity, shards: records };
        index.check_ranges(base + bytes.len() as u64, file_bytes)?;
        Ok(index)
    }

    fn parse_encoding(r: &mut FieldReader<'_>) -> Result<Flavour> {
        match r.u32()? {
            32 => {}
            n => return Err(r.unsupported(format_args!("scan tile {n}, 32 is expected"))),
        }
        match r.u32()? {
            1 => Ok(Flavour::BitPacked8),
            2 => Ok(Flavour::BitPacked16),
            n => Err(r.unsupported(format_args!("header encoding {n}; encodings 1 and 2 exist"))),
        }
    }

    fn parse_excluded(r: &mut FieldReader<'_>, count: u32, geometry: &Geometry) -> Result<Vec<u32>> {
        let mut excluded = Vec::with_capacity(r.remaining().min(4 * count as usize) / 4);
        for _ in 0..count {
            let pixel = r.u32()?;
            if u64::from(pixel) >= geometry.pixels() || excluded.last().is_some_and(|last| *last >= pixel) {
                return Err(r.corrupt(format_args!("excluded pixel {pixel} is out of order or range")));
            }
            excluded.push(pixel);
        }
        Ok(excluded)
    }

    /// Every range behind the index, inside the file, apart from the others.
    fn check_ranges(&self, index_end: u64, file_bytes: u64) -> Result<()> {
        let mut ranges: Vec<(Extent, usize)> = self
            .shards
            .iter()
            .enumerate()
            .flat_map(|(k, s)| [s.payload, s.lengths, s.header].map(|e| (e, k)))
            .filter(|(e, _)| e.bytes > 0)
            .collect();
        ranges.sort_by_key(|(e, _)| e.offset);
        let mut end = index_end;
        for (e, k) in ranges {
            if e.offset < end {
                return Err(
                    Error::corrupt(format!("a range of shard {k} overlaps what is before it")).at(e.offset)
                );
            }
            end = e.offset.checked_add(e.bytes).filter(|end| *end <= file_bytes).ok_or_else(|| {
                Error::corrupt(format!(
                    "{} bytes of shard {k} reach past the end of the file of {file_bytes} bytes",
                    e.bytes
                ))
                .at(e.offset)
            })?;
        }
        Ok(())
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        let lz4 = self.flavour == Flavour::Lz4;
        w.bytes(&MAGIC).u8(if lz4 { 1 } else { 3 });
        w.u32(self.cut.shards).u32(if lz4 { LZ4_BLOCK as u32 } else { 0 });
        for side in self.geometry.shape() {
            w.u32(side);
        }
        w.u32(self.cut.scans_per_shard);
        match self.flavour {
            Flavour::BitPacked8 => _ = w.u32(32).u32(1),
            Flavour::BitPacked16 => _ = w.u32(32).u32(2),
            Flavour::Lz4 => {}
        }
        w.u32(self.excluded.len() as u32);
        for e in &self.excluded {
            w.u32(*e);
        }
        w.bytes(&self.source_identity.0);
        for s in &self.shards {
            s.encode(&mut w);
        }
        w.finish()
    }
}

impl ShardRecord {
    fn parse(r: &mut FieldReader<'_>, flavour: Flavour, geometry: &Geometry, cut: &Cut) -> Result<Self> {
        let mut extent = || -> Result<Extent> { Ok(Extent { offset: r.u64()?, bytes: r.u64()? }) };
        let (payload, lengths, header) = (extent()?, extent()?, extent()?);
        let s = Self {
            payload,
            lengths,
            header,
            decoded_bytes: r.u64()?,
            header_items: r.u32()?,
            chunks: r.u32()?,
            payload_sha256: Sha256Sum(r.array()?),
        };
        let fail = |what: &str| Err(r.corrupt(format_args!("shard record: {what}")));
        if s.payload.bytes == 0 || s.decoded_bytes == 0 || !s.decoded_bytes.is_multiple_of(4) {
            return fail("an empty payload, or one that is not of whole words");
        }
        if s.decoded_bytes / 4 > MOST_WORDS {
            return fail("a payload of more than 2^27 words");
        }
        if flavour == Flavour::Lz4 {
            let descriptors = geometry.pixels() * u64::from(cut.tiles());
            let chunks = s.decoded_bytes.div_ceil(LZ4_BLOCK);
            if u64::from(s.header_items) != descriptors || s.header.bytes != descriptors {
                return fail("the number of width bytes");
            }
            if u64::from(s.chunks) != chunks || s.lengths.bytes != chunks {
                return fail("the number of LZ4 blocks");
            }
            if s.payload.bytes < chunks || s.payload.bytes > 256 * chunks {
                return fail("the compressed bytes");
            }
        } else {
            let words = geometry.pixels() * u64::from(cut.header_words());
            if u64::from(s.header_items) != words || s.header.bytes != 4 * words {
                return fail("the number of compact-header words");
            }
            if s.decoded_bytes != s.payload.bytes || s.lengths != Extent::default() || s.chunks != 0 {
                return fail("fields of the LZ4 profile are not as revision 3 demands");
            }
        }
        Ok(s)
    }

    fn encode(&self, w: &mut FieldWriter) {
        for e in [self.payload, self.lengths, self.header] {
            w.u64(e.offset).u64(e.bytes);
        }
        w.u64(self.decoded_bytes).u32(self.header_items).u32(self.chunks).bytes(&self.payload_sha256.0);
    }
}
