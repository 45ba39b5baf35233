//! The index: shape, cut, identities, excluded pixels and where each shard is.
//!
//! | at | type | value |
//! |---|---|---|
//! | 0 | 8 bytes | `TPK2INDX` |
//! | 8 | u8 | bytes of a count: 1, 2 or 4 |
//! | 9 | u8 | mapping: 0 none, 1 zigzag of signed values |
//! | 10 | u16 | codec of the blocks, 1 |
//! | 12 | u16, u16 | axes of the scan r and of the detector d, 1 to 16 |
//! | 16 | u32, u32, u32 | rows, columns and scans of a block |
//! | 28 | u32 | where the mask came from: 0 none, 1 the source |
//! | 32 | u64 | scans of a shard |
//! | 40 | u64 | number of shards K |
//! | 48 | u64 | number of excluded pixels E |
//! | 56 | u64 | 0 |
//! | 64 | 32 bytes | source identity |
//! | 96 | 32 bytes | SHA-256 of all counts as the source has them, little-endian, in scan order |
//! | 128 | 32 bytes | SHA-256 of the mask's codes as u32 |
//! | 160 | 32 bytes | SHA-256 of the calibration |
//! | 192 | (r + d) x u64 | shape |
//! | … | E x u32 | excluded pixels, ascending; then zeros up to a multiple of 8 |
//! | … | K x 64 bytes | shards |
//!
//! A shard: u64 offset in the payload, u64 bytes of its blocks, u64 bytes of its table, u32 CRC32C of the table, u32 0, 32
//! bytes SHA-256 of blocks and table. Shards follow each other without gaps and fill the payload.

use super::preamble::zero;
use crate::digest::Sha256Sum;
use crate::identity::MaskOrigin;
use crate::v2::counts::CountType;
use crate::v2::layout::{BlockSize, Layout, MOST_AXES};
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Budget, Error, ErrorKind, Result};

const MAGIC: [u8; 8] = *b"TPK2INDX";
/// The codec of `docs/formats/pack-v2-codec.md`.
pub const CODEC: u16 = 1;

/// Where a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardRecord {
    /// First byte, counted from the payload's.
    pub offset: u64,
    /// Bytes of its blocks, which come first.
    pub blocks_bytes: u64,
    /// Bytes of its table, which follows.
    pub table_bytes: u64,
    /// CRC32C of the table.
    pub table_crc: u32,
    /// SHA-256 of blocks and table.
    pub sha256: Sha256Sum,
}

impl ShardRecord {
    /// All bytes of the shard.
    pub fn bytes(&self) -> u64 {
        self.blocks_bytes.saturating_add(self.table_bytes)
    }
}

/// What an index says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackIndex {
    /// Shape and cut.
    pub layout: Layout,
    /// Where the mask came from.
    pub mask_origin: MaskOrigin,
    /// Excluded flat pixels, ascending.
    pub excluded: Vec<u32>,
    /// Identity of the source.
    pub source_identity: Sha256Sum,
    /// SHA-256 of all counts as the source has them.
    pub raw_sha256: Sha256Sum,
    /// SHA-256 of the mask's codes.
    pub mask_sha256: Sha256Sum,
    /// SHA-256 of the calibration.
    pub calibration_sha256: Sha256Sum,
    /// The shards, in order.
    pub shards: Vec<ShardRecord>,
}

impl PackIndex {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let l = &self.layout;
        let (counts, block) = (l.counts(), l.block());
        let mut w = FieldWriter::new();
        w.bytes(&MAGIC).u8(counts.bytes() as u8).u8(counts.is_signed().into()).u16(CODEC);
        w.u16(l.scan_shape().len() as u16).u16(l.detector_shape().len() as u16);
        w.u32(block.rows).u32(block.columns).u32(block.scans);
        w.u32((self.mask_origin == MaskOrigin::Source).into());
        w.u64(l.shard_scans()).u64(self.shards.len() as u64).u64(self.excluded.len() as u64).u64(0);
        for sum in [self.source_identity, self.raw_sha256, self.mask_sha256, self.calibration_sha256] {
            w.bytes(&sum.0);
        }
        for side in l.shape() {
            w.u64(side);
        }
        for pixel in &self.excluded {
            w.u32(*pixel);
        }
        w.align(8);
        for s in &self.shards {
            w.u64(s.offset).u64(s.blocks_bytes).u64(s.table_bytes).u32(s.table_crc).u32(0).bytes(&s.sha256.0);
        }
        w.finish()
    }

    /// Reads and checks an index that stands at `at` of a file whose payload has `payload_bytes`.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported` for another codec or element type, `Limit` when it needs more than the budget has.
    pub fn parse(bytes: &[u8], at: u64, payload_bytes: u64, budget: &Budget) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "pack index");
        r.signature(&MAGIC)?;
        let (width, mapping, codec) = (r.u8()?, r.u8()?, r.u16()?);
        if codec != CODEC {
            return Err(r.unsupported(format!("codec {codec}; {CODEC} is known")));
        }
        let signed = match mapping {
            0 => false,
            1 => true,
            _ => return Err(r.unsupported(format!("mapping {mapping} of values"))),
        };
        let counts = CountType::new(width.into(), signed).map_err(|e| r.unsupported(e.message()))?;
        let axes = [usize::from(r.u16()?), usize::from(r.u16()?)];
        if axes.iter().any(|n| *n == 0 || *n > MOST_AXES) {
            return Err(r.corrupt(format!("a scan of {} and a detector of {} axes", axes[0], axes[1])));
        }
        let block = BlockSize { rows: r.u32()?, columns: r.u32()?, scans: r.u32()? };
        let mask_origin = match r.u32()? {
            0 => MaskOrigin::Implicit,
            1 => MaskOrigin::Source,
            other => return Err(r.corrupt(format!("{other} as the origin of the mask"))),
        };
        let (shard_scans, shards, excluded) = (r.u64()?, r.u64()?, r.u64()?);
        zero(&mut r, 8)?;
        let mut sum = || -> Result<Sha256Sum> { Ok(Sha256Sum(r.array()?)) };
        let [source_identity, raw_sha256, mask_sha256, calibration_sha256] = [sum()?, sum()?, sum()?, sum()?];
        let mut shape =
            |n: usize| -> Result<Vec<u64>> { (0..n).map(|_| r.u64()).collect::<Result<Vec<u64>>>() };
        let (scan, detector) = (shape(axes[0])?, shape(axes[1])?);
        let layout =
            Layout::new(&scan, &detector, counts, block, shard_scans).map_err(|e| r.corrupt(e.message()))?;
        if layout.shards() != shards {
            return Err(r.corrupt(format!("{shards} shards where the cut makes {}", layout.shards())));
        }
        let excluded = parse_excluded(&mut r, excluded, layout.pixels(), budget)?;
        let shards = parse_shards(&mut r, shards, payload_bytes, budget)?;
        if r.remaining() != 0 {
            return Err(r.corrupt(format!("{} bytes behind the last shard", r.remaining())));
        }
        Ok(Self {
            layout,
            mask_origin,
            excluded,
            source_identity,
            raw_sha256,
            mask_sha256,
            calibration_sha256,
            shards,
        })
    }
}

fn parse_excluded(r: &mut FieldReader<'_>, n: u64, pixels: u64, budget: &Budget) -> Result<Vec<u32>> {
    let bytes = n.checked_mul(4).filter(|b| *b <= r.remaining() as u64 && n <= pixels);
    let Some(bytes) = bytes else {
        return Err(r.corrupt(format!("{n} excluded pixels of {pixels}")));
    };
    drop(budget.bytes(bytes, "excluded pixels")?);
    let mut excluded: Vec<u32> = Vec::with_capacity(n as usize);
    for _ in 0..n {
        let pixel = r.u32()?;
        if u64::from(pixel) >= pixels || excluded.last().is_some_and(|last| *last >= pixel) {
            return Err(r.corrupt("excluded pixels are not ascending in the detector"));
        }
        excluded.push(pixel);
    }
    if !n.is_multiple_of(2) {
        zero(r, 4)?;
    }
    Ok(excluded)
}

fn parse_shards(
    r: &mut FieldReader<'_>,
    n: u64,
    payload_bytes: u64,
    budget: &Budget,
) -> Result<Vec<ShardRecord>> {
    if n.checked_mul(64) != Some(r.remaining() as u64) {
        return Err(r.corrupt(format!("{} bytes for {n} shards", r.remaining())));
    }
    drop(budget.bytes(n.saturating_mul(size_of::<ShardRecord>() as u64), "shard records")?);
    let mut shards = Vec::with_capacity(n as usize);
    let mut next = 0_u64;
    for _ in 0..n {
        let record = ShardRecord {
            offset: r.u64()?,
            blocks_bytes: r.u64()?,
            table_bytes: r.u64()?,
            table_crc: r.u32()?,
            sha256: {
                zero(r, 4)?;
                Sha256Sum(r.array()?)
            },
        };
        let end = record
            .blocks_bytes
            .checked_add(record.table_bytes)
            .and_then(|b| record.offset.checked_add(b))
            .filter(|end| record.offset == next && *end <= payload_bytes);
        next = end.ok_or_else(|| r.corrupt("shards do not follow each other in the payload"))?;
        shards.push(record);
    }
    if next != payload_bytes {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!("shards take {next} of {payload_bytes} bytes of the payload"),
        ));
    }
    Ok(shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sample() -> PackIndex {
        let counts = CountType::new(2, true).unwrap();
        let block = BlockSize { rows: 2, columns: 3, scans: 4 };
        let layout = Layout::new(&[3, 5], &[4, 7], counts, block, 8).unwrap();
        let record = |offset, blocks_bytes| ShardRecord {
            offset,
            blocks_bytes,
            table_bytes: 20,
            table_crc: 5,
            sha256: Sha256Sum([3; 32]),
        };
        PackIndex {
            layout,
            mask_origin: MaskOrigin::Source,
            excluded: vec![0, 9, 27],
            source_identity: Sha256Sum([1; 32]),
            raw_sha256: Sha256Sum([2; 32]),
            mask_sha256: Sha256Sum([4; 32]),
            calibration_sha256: Sha256Sum([5; 32]),
            shards: vec![record(0, 100), record(120, 60)],
        }
    }

    #[test]
    fn an_index_comes_back_and_no_byte_of_it_is_free() {
        let bytes = sample().encode();
        let budget = Budget::default();
        assert_eq!(PackIndex::parse(&bytes, 0, 200, &budget).unwrap(), sample());
        for n in 0..bytes.len() {
            assert!(PackIndex::parse(&bytes[..n], 0, 200, &budget).is_err(), "{n} bytes");
        }
        for i in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[i / 8] ^= 1 << (i % 8);
            // What is read is never the same; whether it is refused is for checksums to decide.
            assert_ne!(PackIndex::parse(&bad, 0, 200, &budget).ok(), Some(sample()), "bit {i}");
        }
    }

    #[test]
    fn an_index_whose_numbers_contradict_each_other_is_refused() {
        let budget = Budget::default();
        let refused = |i: PackIndex| PackIndex::parse(&i.encode(), 0, 200, &budget).unwrap_err();
        assert!(refused(PackIndex { excluded: vec![9, 9], ..sample() }).message().contains("ascending"));
        assert!(refused(PackIndex { excluded: vec![28], ..sample() }).message().contains("ascending"));
        let mut gap = sample();
        gap.shards[1].offset += 1;
        assert!(refused(gap).message().contains("follow"));
        let mut short = sample();
        short.shards[1].blocks_bytes -= 1;
        assert!(refused(short).message().contains("199 of 200"));
        let mut few = sample();
        few.shards.pop();
        assert!(refused(few).message().contains("the cut makes"));
        let tight = Budget::new(tensilo_core::Limits::default().with_bytes(16));
        let e = PackIndex::parse(&sample().encode(), 0, 200, &tight).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Limit);
    }
}
