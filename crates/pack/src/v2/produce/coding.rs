//! Counts to blocks: a window of scans is decoded, then coded by all workers while one of them hashes it.

use crate::digest::Sha256Sum;
use crate::sha_pair::Sha256Stream;
use crate::v2::codec::{self, BlockShape, EncodeScratch};
use crate::v2::counts::{Sample, with_sample};
use crate::v2::format::index::ShardRecord;
use crate::v2::format::shard_table::{self, BlockRecord, Kept, blocks_per_tile, kept_group};
use crate::v2::layout::Layout;
use crate::v2::plan::{self, Plan};
use crate::v2::source::inspect::Inspection;
use crate::v2::source::stack::Frames;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, Monitor, Progress, Result};
use tensilo_hdf5::write::ContiguousWriter;

/// Counts that one unit of work codes, in bytes.
const UNIT_BYTES: u64 = 2 << 20;

/// What was packed.
pub(super) struct Packed {
    pub shards: Vec<ShardRecord>,
    pub raw_sha256: Sha256Sum,
}

/// Packs everything; returns what was found and the payload's length.
pub(super) fn pack_all(
    inspection: &Inspection,
    plan: &Plan,
    frames: &Frames,
    account: &Budget,
    to: &mut ContiguousWriter<'_, '_>,
    monitor: &dyn Monitor,
) -> Result<(Packed, u64)> {
    with_sample!(plan.layout.counts(), T => {
        Packing::<T>::new(inspection, plan, frames, account)?.run(to, monitor)
    })
}

/// The values of an array as little-endian bytes.
pub(crate) fn le_bytes<T: Sample>(values: &[T]) -> Cow<'_, [u8]> {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes);
    }
    let mut bytes = bytes.to_vec();
    bytes.chunks_exact_mut(T::BYTES).for_each(<[u8]>::reverse);
    Cow::Owned(bytes)
}

/// Some consecutive blocks of a window and what they became.
#[derive(Default)]
struct Unit {
    blocks: Range<u64>,
    bytes: Vec<u8>,
    records: Vec<BlockRecord>,
}

/// What a worker re-uses.
struct Scratch<T> {
    codec: EncodeScratch,
    values: Vec<T>,
}

struct Packing<'a, T> {
    layout: &'a Layout,
    plan: &'a Plan,
    frames: &'a Frames,
    excluded: &'a [u32],
    /// Excluded pixels of each rectangle that has any, as places in it.
    in_rects: Vec<(u64, Vec<u32>)>,
    account: &'a Budget,
    counts: Vec<T>,
}

impl<'a, T: Sample> Packing<'a, T> {
    fn new(
        inspection: &'a Inspection,
        plan: &'a Plan,
        frames: &'a Frames,
        account: &'a Budget,
    ) -> Result<Self> {
        let layout = &plan.layout;
        if frames.pixels as u64 != layout.pixels() || frames.counts != layout.counts() {
            return Err(Error::invalid("the plan is of another source"));
        }
        let window = plan.window.min(layout.scans()) as usize;
        let counts = tensilo_core::buffer::zeroed_vec(window * frames.pixels)?;
        let excluded = &inspection.excluded;
        Ok(Self { layout, plan, frames, excluded, in_rects: in_rects(layout, excluded), account, counts })
    }

    fn run(mut self, to: &mut ContiguousWriter<'_, '_>, monitor: &dyn Monitor) -> Result<(Packed, u64)> {
        let [window, coded] = plan::window_bytes(self.layout, self.excluded.len() as u64, self.plan.window);
        let workers = plan::worker_bytes(self.layout, self.excluded.len() as u64) * self.plan.workers as u64;
        let shard = plan::shard_bytes(self.layout, self.excluded.len() as u64);
        let _held =
            self.account.bytes(window + coded + workers + shard, "a window of counts and its blocks")?;
        let mut raw = Sha256Stream::new();
        let (mut shards, mut units, mut at) = (Vec::new(), Vec::new(), 0);
        for ordinal in 0..self.layout.shards() {
            let scans = self.layout.shard(ordinal);
            let mut sha = Sha256Stream::new();
            let (mut records, mut references, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
            for first in (scans.start..scans.end).step_by(self.plan.window as usize) {
                let part = first..(first + self.plan.window).min(scans.end);
                self.read(part.clone(), monitor)?;
                if first == scans.start {
                    references = self.references();
                }
                raw = self.code(part, &references, &mut units, raw, monitor)?;
                for unit in &units {
                    to.write(&unit.bytes)?;
                    sha.update(&unit.bytes);
                    bytes += unit.bytes.len() as u64;
                    records.extend_from_slice(&unit.records);
                }
            }
            let values: Vec<u32> = references.iter().map(|v| v.widen()).collect();
            let table = shard_table::encode(self.layout, ordinal, &records, &values);
            to.write(&table)?;
            sha.update(&table);
            let record = ShardRecord {
                offset: at,
                blocks_bytes: bytes,
                table_bytes: table.len() as u64,
                table_crc: crc32c::crc32c(&table),
                sha256: sha.finish(),
            };
            at += record.bytes();
            shards.push(record);
        }
        Ok((Packed { shards, raw_sha256: raw.finish() }, at))
    }

    fn within<'m>(&self, scans: &Range<u64>, coding: bool, whole: &'m dyn Monitor) -> Within<'m> {
        let frame = self.layout.frame_bytes();
        let before = 2 * scans.start * frame + if coding { (scans.end - scans.start) * frame } else { 0 };
        Within { whole, before, total: 2 * self.layout.logical_bytes() }
    }

    fn read(&mut self, scans: Range<u64>, monitor: &dyn Monitor) -> Result<()> {
        let within = self.within(&scans, false, monitor);
        let n = (scans.end - scans.start) as usize * self.frames.pixels;
        let mut counts = std::mem::take(&mut self.counts);
        let part = counts.get_mut(..n).ok_or_else(|| Error::invalid("a window larger than planned"))?;
        let read = self.frames.read(scans, part, &within);
        self.counts = counts;
        read
    }

    /// The count as blocks hold it.
    #[inline(always)]
    fn mapped(&self, value: T) -> T {
        if self.layout.counts().is_signed() { value.zigzag() } else { value }
    }

    /// What the excluded pixels are in the first frame of the window.
    fn references(&self) -> Vec<T> {
        self.excluded.iter().map(|p| self.mapped(self.counts[*p as usize])).collect()
    }

    /// Codes a window; the counts are hashed meanwhile.
    fn code(
        &self,
        scans: Range<u64>,
        references: &[T],
        units: &mut Vec<Unit>,
        raw: Sha256Stream,
        monitor: &dyn Monitor,
    ) -> Result<Sha256Stream> {
        let n = (scans.end - scans.start) as usize;
        let counts = &self.counts[..n * self.frames.pixels];
        let blocks = (n as u64).div_ceil(self.layout.block().scans.into())
            * blocks_per_tile(self.layout, self.excluded.len());
        let per_unit = (UNIT_BYTES / (self.layout.block_values() * T::BYTES as u64)).max(1);
        units.resize_with(blocks.div_ceil(per_unit) as usize, Unit::default);
        for (unit, first) in units.iter_mut().zip((0..blocks).step_by(per_unit as usize)) {
            unit.blocks = first..(first + per_unit).min(blocks);
        }
        let raw = Mutex::new(raw);
        let shared: Vec<Mutex<&mut Unit>> = units.iter_mut().map(Mutex::new).collect();
        let within = self.within(&scans, true, monitor);
        let each = counts.len() as u64 * T::BYTES as u64 / shared.len() as u64;
        Threads::new(self.plan.workers).for_each(
            shared.len() + 1,
            &within,
            "packing",
            each * shared.len() as u64,
            || Scratch { codec: EncodeScratch::default(), values: Vec::new() },
            |scratch, i, done| {
                let Some(unit) = i.checked_sub(1).and_then(|i| shared.get(i)) else {
                    raw.lock().unwrap_or_else(PoisonError::into_inner).update(&le_bytes(counts));
                    return Ok(());
                };
                let mut unit = unit.lock().unwrap_or_else(PoisonError::into_inner);
                unit.bytes.clear();
                unit.records.clear();
                self.unit(counts, n, references, scratch, &mut unit)?;
                done.add(each);
                Ok(())
            },
        )?;
        Ok(raw.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Codes some blocks of a window of `n` scans.
    fn unit(
        &self,
        counts: &[T],
        n: usize,
        references: &[T],
        scratch: &mut Scratch<T>,
        unit: &mut Unit,
    ) -> Result<()> {
        let Unit { blocks, bytes, records } = unit;
        let (mut parts, mut ends) = (Vec::new(), Vec::new());
        let mut block = blocks.start;
        while block < blocks.end {
            // As many as can be coded where they lie.
            parts.clear();
            parts.extend((block..blocks.end).map_while(|b| self.plain(n, b)));
            codec::encode_each(counts, &parts, &mut scratch.codec, bytes, |end| ends.push(end))?;
            block += parts.len() as u64;
            if block < blocks.end {
                self.block(counts, n, block, references, scratch, bytes)?;
                ends.push(bytes.len());
                block += 1;
            }
        }
        let mut before = 0;
        for end in ends {
            let made = &bytes[before..end];
            let bytes = u32::try_from(made.len())
                .map_err(|_| Error::unsupported(format!("a block of {} bytes", made.len())))?;
            records.push(BlockRecord { bytes, crc: crc32c::crc32c(made) });
            before = end;
        }
        Ok(())
    }

    /// First scan of a block in a window of `n` scans, their number, and its rectangle's; the excluded pixels have the
    /// number behind the last.
    fn place(&self, n: usize, block: u64) -> (usize, usize, u64) {
        let per_tile = blocks_per_tile(self.layout, self.excluded.len());
        let tile_scans = self.layout.block().scans as usize;
        let first = (block / per_tile) as usize * tile_scans;
        (first, tile_scans.min(n - first), block % per_tile)
    }

    /// A block whose counts are coded as they lie in the window: they are neither signed nor excluded.
    fn plain(&self, n: usize, block: u64) -> Option<codec::Part> {
        let (first, scans, number) = self.place(n, block);
        let excluded = self.in_rects.binary_search_by_key(&number, |(rect, _)| *rect).is_ok();
        if self.layout.counts().is_signed() || excluded || number == self.layout.rects() {
            return None;
        }
        let rect = self.layout.rect(number);
        let (pixels, columns) = (self.frames.pixels, self.layout.columns() as usize);
        Some(codec::Part {
            first: first * pixels + rect.rows.start as usize * columns + rect.columns.start as usize,
            layout: codec::Layout { scan_stride: pixels, columns: rect.width(), row_stride: columns },
            shape: BlockShape { pixels: rect.pixels(), scans },
        })
    }

    /// Codes one block of a window of `n` scans that has signed counts or excluded pixels.
    fn block(
        &self,
        counts: &[T],
        n: usize,
        block: u64,
        references: &[T],
        scratch: &mut Scratch<T>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (first, scans, number) = self.place(n, block);
        let pixels = self.frames.pixels;
        let tile = &counts[first * pixels..(first + scans) * pixels];
        if number == self.layout.rects() {
            return self.kept(tile, scans, references, scratch, out);
        }
        let rect = self.layout.rect(number);
        let shape = BlockShape { pixels: rect.pixels(), scans };
        let columns = self.layout.columns() as usize;
        let corner = rect.rows.start as usize * columns + rect.columns.start as usize;
        let here = self.in_rects.binary_search_by_key(&number, |(rect, _)| *rect);
        let values = &mut scratch.values;
        values.clear();
        for frame in tile.chunks_exact(pixels) {
            for row in frame[corner..].chunks(columns).take(rect.height()) {
                values.extend(row[..rect.width()].iter().map(|v| self.mapped(*v)));
            }
        }
        if let Ok(at) = here {
            for frame in values.chunks_exact_mut(shape.pixels) {
                self.in_rects[at].1.iter().for_each(|p| frame[*p as usize] = T::default());
            }
        }
        codec::encode(values, codec::Layout::flat(shape), shape, &mut scratch.codec, out)
    }

    /// Codes the excluded pixels of a tile that are not their reference throughout.
    fn kept(
        &self,
        tile: &[T],
        scans: usize,
        references: &[T],
        scratch: &mut Scratch<T>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let frames = || tile.chunks_exact(self.frames.pixels);
        let mut places = Vec::new();
        for (place, (pixel, reference)) in (0_u32..).zip(self.excluded.iter().zip(references)) {
            if frames().any(|frame| self.mapped(frame[*pixel as usize]) != *reference) {
                places.push(place);
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let mut groups = Vec::new();
        for group in places.chunks(kept_group(self.layout)) {
            let values = &mut scratch.values;
            values.clear();
            for frame in frames() {
                let pixels = group.iter().map(|place| self.excluded[*place as usize]);
                values.extend(pixels.map(|p| self.mapped(frame[p as usize])));
            }
            let shape = BlockShape { pixels: group.len(), scans };
            let mut bytes = Vec::new();
            codec::encode(values, codec::Layout::flat(shape), shape, &mut scratch.codec, &mut bytes)?;
            groups.push(bytes);
        }
        let groups = groups.iter().map(Vec::as_slice).collect();
        out.extend_from_slice(&Kept { places, groups }.encode());
        Ok(())
    }
}

/// Which excluded pixels each rectangle has, as places in it; rectangles without any are not listed.
pub(crate) fn in_rects(layout: &Layout, excluded: &[u32]) -> Vec<(u64, Vec<u32>)> {
    let mut found: Vec<(u64, u32)> = excluded.iter().map(|pixel| rect_of(layout, *pixel)).collect();
    found.sort_unstable();
    let mut rects: Vec<(u64, Vec<u32>)> = Vec::new();
    for (number, place) in found {
        match rects.last_mut().filter(|(last, _)| *last == number) {
            Some((_, places)) => places.push(place),
            None => rects.push((number, vec![place])),
        }
    }
    rects
}

/// The rectangle of a flat pixel, and its place in it.
pub(crate) fn rect_of(layout: &Layout, pixel: u32) -> (u64, u32) {
    let block = layout.block();
    let (row, column) = (u64::from(pixel) / layout.columns(), u64::from(pixel) % layout.columns());
    let number = row / u64::from(block.rows) * layout.across() + column / u64::from(block.columns);
    let rect = layout.rect(number);
    let place = (row - rect.rows.start) * rect.width() as u64 + column - rect.columns.start;
    (number, place as u32)
}

/// Progress of a window as progress of the whole.
struct Within<'m> {
    whole: &'m dyn Monitor,
    before: u64,
    total: u64,
}

impl Monitor for Within<'_> {
    fn poll(&self, progress: &Progress) -> Result<()> {
        self.whole.poll(&Progress { stage: "packing", done: self.before + progress.done, total: self.total })
    }
}
