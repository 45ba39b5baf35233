//! The table of a shard: which scans it has, how long each block is, and what its excluded pixels are.
//!
//! It stands behind the shard's blocks, as those are written while the source is read.
//!
//! | at | type | value |
//! |---|---|---|
//! | 0 | 8 bytes | `TPK2SHRD` |
//! | 8 | u64 | number of the shard, from 0 |
//! | 16 | u64, u64 | first scan, number of scans |
//! | 32 | u64 | number of blocks B |
//! | 40 | u64 | 0 |
//! | 48 | B x (u32, u32) | length and CRC32C of each block |
//! | … | E x u32 | reference of each excluded pixel: its (mapped) value in the shard's first scan |
//! | … | | zeros up to a multiple of 8 |
//!
//! Blocks stand tile after tile; in a tile, one for each rectangle of the detector, row by row, and behind them, where the
//! pack has excluded pixels, the tile's [`Kept`] part, of length 0 when every excluded pixel has its reference in every
//! scan of the tile.

use super::preamble::zero;
use crate::v2::codec;
use crate::v2::layout::Layout;
use tensilo_core::limits::Charge;
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Budget, Error, Result};

const MAGIC: [u8; 8] = *b"TPK2SHRD";
const FIXED: u64 = 48;

/// Length and checksum of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRecord {
    /// Its bytes.
    pub bytes: u32,
    /// CRC32C of them.
    pub crc: u32,
}

/// What a shard's table says.
#[derive(Debug)]
pub struct ShardTable {
    /// The blocks, as they stand.
    pub blocks: Vec<BlockRecord>,
    /// First byte of each block, counted from the shard's; one more for the end.
    pub offsets: Vec<u64>,
    /// The excluded pixels' references, as mapped.
    pub references: Vec<u32>,
    _charge: Charge,
}

/// Blocks of a tile: its rectangles, and the kept part where there are excluded pixels.
pub fn blocks_per_tile(layout: &Layout, excluded: usize) -> u64 {
    layout.rects().saturating_add(u64::from(excluded > 0))
}

/// The bytes of a shard's table.
pub fn encode(layout: &Layout, ordinal: u64, blocks: &[BlockRecord], references: &[u32]) -> Vec<u8> {
    let scans = layout.shard(ordinal);
    let mut w = FieldWriter::new();
    w.bytes(&MAGIC).u64(ordinal).u64(scans.start).u64(scans.end.saturating_sub(scans.start));
    w.u64(blocks.len() as u64).u64(0);
    for b in blocks {
        w.u32(b.bytes).u32(b.crc);
    }
    for value in references {
        w.u32(*value);
    }
    w.align(8);
    w.finish()
}

impl ShardTable {
    /// Reads and checks the table, at `at` in the file, of a shard whose blocks take `blocks_bytes`.
    ///
    /// # Errors
    /// `Corrupt`, or `Limit` when it needs more than the budget has.
    pub fn parse(
        bytes: &[u8],
        at: u64,
        layout: &Layout,
        ordinal: u64,
        excluded: usize,
        blocks_bytes: u64,
        budget: &Budget,
    ) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "shard table");
        r.signature(&MAGIC)?;
        let scans = layout.shard(ordinal);
        let count = scans.end.saturating_sub(scans.start);
        if (r.u64()?, r.u64()?, r.u64()?) != (ordinal, scans.start, count) {
            return Err(r.corrupt(format!("not the table of shard {ordinal}, scans {scans:?}")));
        }
        let blocks = r.u64()?;
        zero(&mut r, 8)?;
        let expected = layout.tiles_of(ordinal).checked_mul(blocks_per_tile(layout, excluded));
        if Some(blocks) != expected {
            return Err(r.corrupt(format!("{blocks} blocks; the cut makes {}", expected.unwrap_or(u64::MAX))));
        }
        let total = blocks
            .checked_mul(8)
            .and_then(|n| n.checked_add(FIXED)?.checked_add((excluded as u64).checked_mul(4)?))
            .and_then(|n| n.checked_next_multiple_of(8));
        if total != Some(bytes.len() as u64) {
            return Err(r.corrupt(format!("{} bytes for {blocks} blocks", bytes.len())));
        }
        let charge = budget.bytes((bytes.len() as u64).saturating_mul(3), "a shard's table")?;
        let mut records = Vec::with_capacity(blocks as usize);
        let mut offsets = Vec::with_capacity((blocks as usize).saturating_add(1));
        let mut next = 0_u64;
        for _ in 0..blocks {
            let record = BlockRecord { bytes: r.u32()?, crc: r.u32()? };
            offsets.push(next);
            next = next.saturating_add(record.bytes.into());
            records.push(record);
        }
        offsets.push(next);
        if next != blocks_bytes {
            return Err(r.corrupt(format!("blocks take {next} bytes, the index states {blocks_bytes}")));
        }
        let references = (0..excluded).map(|_| r.u32()).collect::<Result<Vec<_>>>()?;
        let most =
            u32::MAX.checked_shr(32_u32.saturating_sub((layout.counts().bytes() as u32).saturating_mul(8)));
        if references.iter().any(|v| Some(*v) > most) {
            return Err(r.corrupt("the reference of an excluded pixel does not fit the counts"));
        }
        let left = r.remaining();
        zero(&mut r, left)?;
        Ok(Self { blocks: records, offsets, references, _charge: charge })
    }
}

/// Which excluded pixels of a tile are not their reference throughout, as places in the list of excluded pixels.
///
/// | at | type | value |
/// |---|---|---|
/// | 0 | u32 | number of pixels q, at least 1 |
/// | 4 | q x u32 | their places in the list of excluded pixels, ascending |
/// | … | groups | for each [`kept_group`] of them (the last may have fewer): u32 length, and one coded block of their values |
#[derive(Debug, PartialEq, Eq)]
pub struct Kept<'a> {
    /// Places in the list of excluded pixels, ascending.
    pub places: Vec<u32>,
    /// The coded blocks.
    pub groups: Vec<&'a [u8]>,
}

/// Pixels of a group of kept pixels: 65536, or fewer where a block of a tile's scans would pass the codec's limit.
pub fn kept_group(layout: &Layout) -> usize {
    let scans = u64::from(layout.block().scans).max(1);
    codec::MOST_PIXELS.min(codec::MOST_COUNTS.checked_div(scans as usize).unwrap_or(1))
}

impl<'a> Kept<'a> {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.u32(self.places.len() as u32);
        for place in &self.places {
            w.u32(*place);
        }
        for group in &self.groups {
            w.u32(group.len() as u32).bytes(group);
        }
        w.finish()
    }

    /// Reads and checks a kept part of a pack with so many excluded pixels.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn parse(bytes: &'a [u8], layout: &Layout, excluded: usize) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Self { places: Vec::new(), groups: Vec::new() });
        }
        let mut r = FieldReader::new(bytes, 0, "kept pixels");
        let n = r.u32()? as usize;
        if n == 0 || n > excluded || n > r.remaining() {
            return Err(r.corrupt(format!("{n} kept of {excluded} excluded pixels")));
        }
        let mut places: Vec<u32> = Vec::with_capacity(n);
        for _ in 0..n {
            let place = r.u32()?;
            if place as usize >= excluded || places.last().is_some_and(|last| *last >= place) {
                return Err(r.corrupt("kept pixels are not ascending"));
            }
            places.push(place);
        }
        let mut groups = Vec::new();
        for _ in 0..n.div_ceil(kept_group(layout)) {
            let bytes = r.u32()? as usize;
            groups.push(r.bytes(bytes)?);
        }
        if r.remaining() > 0 {
            return Err(Error::corrupt("bytes behind the kept pixels"));
        }
        Ok(Self { places, groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::counts::CountType;
    use crate::v2::layout::BlockSize;

    fn layout() -> Layout {
        let counts = CountType::new(1, false).unwrap();
        Layout::new(&[10], &[3, 3], counts, BlockSize { rows: 2, columns: 2, scans: 4 }, 8).unwrap()
    }

    #[test]
    fn a_table_comes_back_and_wrong_ones_are_refused() {
        let l = layout();
        let blocks: Vec<_> = (1..=5).map(|n| BlockRecord { bytes: n, crc: 10 * n }).collect();
        let bytes = encode(&l, 1, &blocks, &[255, 0]);
        let parse = |bytes: &[u8], ordinal, excluded, total| {
            ShardTable::parse(bytes, 0, &l, ordinal, excluded, total, &Budget::default())
        };
        let t = parse(&bytes, 1, 2, 15).unwrap();
        assert_eq!((t.blocks, t.references), (blocks.clone(), vec![255, 0]));
        assert_eq!(t.offsets, [0, 1, 3, 6, 10, 15]);
        assert!(parse(&bytes, 0, 2, 15).is_err(), "another shard");
        assert!(parse(&bytes, 1, 0, 15).is_err(), "without excluded pixels");
        assert!(parse(&bytes, 1, 2, 14).is_err(), "another length");
        for n in 0..bytes.len() {
            assert!(parse(&bytes[..n], 1, 2, 15).is_err(), "{n} bytes");
        }
        assert!(parse(&encode(&l, 1, &blocks, &[256, 0]), 1, 2, 15).is_err(), "256 in 8 bits");
        assert!(parse(&encode(&l, 1, &blocks, &[255]), 1, 1, 15).is_ok());
        let mut padded = encode(&l, 1, &blocks, &[255]);
        *padded.last_mut().unwrap() = 1;
        assert!(parse(&padded, 1, 1, 15).is_err(), "padding");
    }

    #[test]
    fn kept_pixels_come_back_and_wrong_ones_are_refused() {
        let l = layout();
        let kept = Kept { places: vec![1, 4], groups: vec![b"abc"] };
        let bytes = kept.encode();
        assert_eq!(Kept::parse(&bytes, &l, 5).unwrap(), kept);
        assert!(Kept::parse(&bytes, &l, 4).is_err());
        for n in 1..bytes.len() {
            assert!(Kept::parse(&bytes[..n], &l, 5).is_err(), "{n} bytes");
        }
        assert!(Kept::parse(&Kept { places: vec![4, 1], groups: vec![b"abc"] }.encode(), &l, 5).is_err());
        assert_eq!(Kept::parse(&[], &l, 5).unwrap().places, Vec::<u32>::new());
    }
}
