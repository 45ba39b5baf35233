//! Blocks: found through a shard's table, read by position, checked, decoded.

use super::Pack;
use crate::v2::codec::{self, BlockShape, DecodeScratch};
use crate::v2::counts::Sample;
use crate::v2::format::shard_table::{BlockRecord, Kept, ShardTable, blocks_per_tile, kept_group};
use crate::v2::layout::Rect;
use crate::v2::produce::rect_of;
use std::ops::Range;
use tensilo_core::{Error, Result};

/// Most blocks that are read and decoded at once.
const BESIDE: usize = 12;

/// What a worker re-uses while it reads blocks.
#[derive(Debug, Default)]
pub(crate) struct BlockScratch {
    pub codec: DecodeScratch,
    stored: Vec<u8>,
}

/// Where the scans of a block go, and which they are.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Scans, counted from the tile's first.
    pub scans: Range<usize>,
    /// Where they go; the first of them lies at scan 0.
    pub place: codec::Layout,
    /// Are excluded pixels restored?
    pub restore: bool,
}

impl Pack {
    /// The table of a shard; read once.
    pub(crate) fn table(&self, ordinal: u64) -> Result<&ShardTable> {
        let slot = self.0.tables.get(ordinal as usize);
        let slot = slot.ok_or_else(|| Error::invalid(format!("there is no shard {ordinal}")))?;
        if let Some(table) = slot.get() {
            return Ok(table);
        }
        let table = self.read_table(ordinal).map_err(|e| self.in_file(e))?;
        Ok(slot.get_or_init(|| table))
    }

    fn read_table(&self, ordinal: u64) -> Result<ShardTable> {
        let inner = &self.0;
        let record = &inner.index.shards[ordinal as usize];
        let at = inner.preamble.payload.offset + record.offset + record.blocks_bytes;
        let (mut bytes, _charge) = inner.budget.buffer(record.table_bytes, "a shard's table")?;
        inner.source.read_at(at, &mut bytes)?;
        if crc32c::crc32c(&bytes) != record.table_crc {
            return Err(
                Error::corrupt(format!("the table of shard {ordinal} does not match its CRC32C")).at(at)
            );
        }
        let (layout, excluded) = (&inner.index.layout, inner.index.excluded.len());
        ShardTable::parse(&bytes, at, layout, ordinal, excluded, record.blocks_bytes, &inner.budget)
    }

    /// Where a block of a tile lies in the file, its length and its checksum.
    fn found(&self, tile: u64, slot: u64) -> Result<(u64, BlockRecord)> {
        let inner = &self.0;
        let (ordinal, in_shard) = self.layout().place_of(tile);
        let table = self.table(ordinal)?;
        let number = (in_shard * blocks_per_tile(self.layout(), self.excluded().len()) + slot) as usize;
        let found = table.blocks.get(number).zip(table.offsets.get(number));
        let (record, offset) =
            found.ok_or_else(|| Error::invalid(format!("tile {tile} has no block {slot}")))?;
        let at = inner.preamble.payload.offset + inner.index.shards[ordinal as usize].offset + offset;
        Ok((at, *record))
    }

    /// Calls `with` with the checked bytes of a block of a tile and the codec's scratch.
    pub(crate) fn with_block<R>(
        &self,
        tile: u64,
        slot: u64,
        scratch: &mut BlockScratch,
        with: impl FnOnce(&[u8], &mut DecodeScratch) -> Result<R>,
    ) -> Result<R> {
        let one = |blocks: &[&[u8]], codec: &mut DecodeScratch| with(blocks[0], codec).map_err(|e| (0, e));
        self.with_blocks(tile, &[slot], scratch, one)
    }

    /// Calls `with` with the checked bytes of some blocks of a tile; an error of it names the block by its place among them.
    pub(crate) fn with_blocks<R>(
        &self,
        tile: u64,
        slots: &[u64],
        scratch: &mut BlockScratch,
        with: impl FnOnce(&[&[u8]], &mut DecodeScratch) -> Result<R, (usize, Error)>,
    ) -> Result<R> {
        let inner = &self.0;
        let found = slots.iter().map(|slot| self.found(tile, *slot)).collect::<Result<Vec<_>>>()?;
        // Neighbours stand one behind the other.
        let mut runs: Vec<Range<u64>> = Vec::with_capacity(1);
        for (at, record) in &found {
            let end = at + u64::from(record.bytes);
            match runs.last_mut().filter(|run| run.end == *at) {
                Some(run) => run.end = end,
                None => runs.push(*at..end),
            }
        }
        let BlockScratch { codec, stored } = scratch;
        let borrowed: Option<Vec<&[u8]>> = runs.iter().map(|run| inner.source.borrow(run.clone())).collect();
        // Blocks are never much longer than their counts.
        let mut _charge = None;
        let parts = match borrowed {
            Some(parts) => parts,
            None => {
                let bytes = runs.iter().map(|run| run.end - run.start).sum::<u64>();
                _charge = Some(inner.budget.bytes(bytes, "blocks")?);
                stored.resize(bytes as usize, 0);
                let (mut rest, mut parts) = (&mut stored[..], Vec::with_capacity(runs.len()));
                for run in &runs {
                    let (part, later) = rest.split_at_mut((run.end - run.start) as usize);
                    inner.source.read_at(run.start, part).map_err(|e| self.in_file(e))?;
                    parts.push(&*part);
                    rest = later;
                }
                parts
            }
        };
        let mut blocks = Vec::with_capacity(found.len());
        let (mut parts, mut rest): (_, &[u8]) = (parts.into_iter(), &[]);
        for ((at, record), slot) in found.iter().zip(slots) {
            if rest.is_empty() {
                rest = parts.next().unwrap_or_default();
            }
            let (block, later) = rest.split_at(record.bytes as usize);
            rest = later;
            if crc32c::crc32c(block) != record.crc {
                let e =
                    Error::corrupt(format!("block {slot} of tile {tile} does not match its CRC32C")).at(*at);
                return Err(self.in_file(e));
            }
            blocks.push(block);
        }
        with(&blocks, codec).map_err(|(i, e)| {
            let slot = slots.get(i).copied().unwrap_or_default();
            let located = e.context(format!("block {slot} of tile {tile}"));
            let at = found.get(i).map_or(0, |(at, _)| *at);
            if located.offset().is_some() { self.in_file(located) } else { self.in_file(located.at(at)) }
        })
    }

    /// Shape of a block: a rectangle in a tile.
    pub(crate) fn block_shape(&self, tile: u64, rect: &Rect) -> BlockShape {
        let scans = self.layout().tile(tile);
        BlockShape { pixels: rect.pixels(), scans: (scans.end - scans.start) as usize }
    }

    /// Decodes some scans of a block as the source has them.
    pub(crate) fn decode_block<T: Sample>(
        &self,
        tile: u64,
        number: u64,
        wanted: &Wanted,
        out: &mut [T],
        scratch: &mut BlockScratch,
    ) -> Result<()> {
        let shape = self.block_shape(tile, &self.layout().rect(number));
        let Wanted { scans, place, .. } = wanted;
        self.with_block(tile, number, scratch, |bytes, codec| {
            codec::decode_scans(bytes, shape, scans.clone(), out, *place, codec)
        })?;
        self.as_in_source(tile, number, wanted, out, scratch)
    }

    /// Decodes some scans of all blocks beside each other, as the source has them. `down` counts the blocks' rows, and
    /// `wanted` places the whole width of the detector.
    pub(crate) fn decode_band<T: Sample>(
        &self,
        tile: u64,
        down: u64,
        wanted: &Wanted,
        out: &mut [T],
        scratch: &mut BlockScratch,
    ) -> Result<()> {
        let l = self.layout();
        let (first, end) = (down * l.across(), (down + 1) * l.across());
        for first in (first..end).step_by(BESIDE) {
            let numbers: Vec<u64> = (first..end.min(first + BESIDE as u64)).collect();
            let rects: Vec<Rect> = numbers.iter().map(|n| l.rect(*n)).collect();
            let (height, of_scans) = (rects[0].height(), self.block_shape(tile, &rects[0]).scans);
            let place = codec::Layout { columns: rects.iter().map(Rect::width).sum(), ..wanted.place };
            let out = &mut out[rects[0].columns.start as usize..];
            self.with_blocks(tile, &numbers, scratch, |blocks, codec| {
                let beside = blocks.iter().zip(&rects);
                let blocks: Vec<_> =
                    beside.map(|(bytes, rect)| codec::Beside { bytes, columns: rect.width() }).collect();
                codec::decode_beside(&blocks, height, of_scans, wanted.scans.clone(), out, place, codec)
            })?;
            let mut column = 0;
            for (number, rect) in numbers.into_iter().zip(&rects) {
                self.as_in_source(tile, number, wanted, &mut out[column..], scratch)?;
                column += rect.width();
            }
        }
        Ok(())
    }

    /// Turns a block's decoded counts, the first of them at the beginning of `out`, into what the source has.
    fn as_in_source<T: Sample>(
        &self,
        tile: u64,
        number: u64,
        wanted: &Wanted,
        out: &mut [T],
        scratch: &mut BlockScratch,
    ) -> Result<()> {
        let Wanted { scans, place, restore } = wanted;
        if *restore && let Ok(at) = self.0.in_rects.binary_search_by_key(&number, |(rect, _)| *rect) {
            self.restore(tile, number, &self.0.in_rects[at].1, wanted, out, scratch)?;
        }
        if self.layout().counts().is_signed() {
            let rect = self.layout().rect(number);
            for scan in 0..scans.len() {
                for row in 0..rect.height() {
                    let at = scan * place.scan_stride + row * place.row_stride;
                    out[at..at + rect.width()].iter_mut().for_each(|v| *v = v.unzigzag());
                }
            }
        }
        Ok(())
    }

    /// Puts references, or kept values, at the excluded pixels of a block.
    fn restore<T: Sample>(
        &self,
        tile: u64,
        number: u64,
        places: &[u32],
        wanted: &Wanted,
        out: &mut [T],
        scratch: &mut BlockScratch,
    ) -> Result<()> {
        let (layout, excluded) = (self.layout(), self.excluded());
        let table = self.table(layout.place_of(tile).0)?;
        let (rect, columns) = (layout.rect(number), layout.columns());
        let (scans, place) = (&wanted.scans, &wanted.place);
        let at = |scan: usize, place_in_rect: u32| {
            let (row, column) =
                (place_in_rect as usize / rect.width(), place_in_rect as usize % rect.width());
            scan * place.scan_stride + row * place.row_stride + column
        };
        for pixel in places {
            let flat = (rect.rows.start + u64::from(*pixel) / rect.width() as u64) * columns
                + rect.columns.start
                + u64::from(*pixel) % rect.width() as u64;
            let known = excluded.binary_search(&(flat as u32)).ok().and_then(|i| table.references.get(i));
            let value =
                T::narrow(*known.ok_or_else(|| Error::corrupt("an excluded pixel without reference"))?);
            for scan in 0..scans.len() {
                out[at(scan, *pixel)] = value;
            }
        }
        self.each_kept::<T>(tile, scratch, |pixel, values| {
            let (in_rect, place) = rect_of(layout, pixel);
            if in_rect == number {
                for scan in 0..scans.len() {
                    out[at(scan, place)] = values(scans.start + scan);
                }
            }
        })
    }

    /// Calls `each` with every kept pixel of a tile and its values, by scan of the tile.
    pub(crate) fn each_kept<T: Sample>(
        &self,
        tile: u64,
        scratch: &mut BlockScratch,
        mut each: impl FnMut(u32, &dyn Fn(usize) -> T),
    ) -> Result<()> {
        let (layout, excluded) = (self.layout(), self.excluded());
        let scans = layout.tile(tile);
        let scans = (scans.end - scans.start) as usize;
        self.with_block(tile, layout.rects(), scratch, |bytes, codec| {
            let kept = Kept::parse(bytes, layout, excluded.len())?;
            let size = kept_group(layout);
            for (group, bytes) in kept.places.chunks(size).zip(&kept.groups) {
                let shape = BlockShape { pixels: group.len(), scans };
                let _charge = self.0.budget.bytes((shape.counts() * T::BYTES) as u64, "kept pixels")?;
                let mut values = tensilo_core::buffer::zeroed_vec::<T>(shape.counts())?;
                codec::decode(bytes, shape, &mut values, codec::Layout::flat(shape), codec)?;
                for (i, place) in group.iter().enumerate() {
                    each(excluded[*place as usize], &|scan| values[scan * shape.pixels + i]);
                }
            }
            Ok(())
        })
    }
}
