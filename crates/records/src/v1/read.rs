//! Gathering: checks first, then decodes each record straight to its place, on several threads when it is worth it.

use super::chunks::{ChunkReader, Chunks};
use super::codec::{Codec, Pool, Scratch};
use super::fault::Fault;
use super::format::Extent;
use super::place::Frontier;
use super::table::Table;
use std::sync::{Mutex, PoisonError};
use tensilo_core::gather::Places;
use tensilo_core::progress::{Monitor, Progress};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Result};
use tensilo_filters::deflate::Inflate;

/// Work worth a thread of its own; a byte that is copied counts 1.
const PER_THREAD: u64 = 1 << 20;
/// Work of a byte that is inflated.
const INFLATED: u64 = 16;
/// Records between two looks at the monitor.
const BETWEEN_POLLS: usize = 1024;

/// What a gather reads from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub table: &'a Table,
    pub chunks: &'a Chunks,
    pub pool: &'a Pool,
    /// Records that exist.
    pub len: u64,
    /// Bytes that each record must have, when all must have the same.
    pub exactly: Option<u64>,
}

impl Source<'_> {
    pub fn gather(
        &self,
        ids: &[u64],
        dst: &mut [u8],
        places: Places<'_>,
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.table.check_ids(ids, self.len)?;
        let frontier = self.table.frontier();
        let (work, in_order) = self.check(ids, dst, places, frontier)?;
        let workers = (threads.get() as u64).min(work / PER_THREAD).min(ids.len() as u64) as usize;
        if workers <= 1 || !in_order {
            let mut lent = self.pool.take();
            let mut reader = self.chunks.reader(dst.len());
            return self.run(ids, 0, dst, 0, places, frontier, &mut reader, lent.scratch(), monitor);
        }
        self.gather_parts(ids, dst, places, frontier, workers, threads, monitor)
    }

    /// Checks all entries and places; says how much work it is, and whether the places ascend.
    fn check(&self, ids: &[u64], dst: &[u8], places: Places<'_>, frontier: Frontier) -> Result<(u64, bool)> {
        let room = dst.len() as u64;
        let mut work = 0_u64;
        let mut in_order = true;
        let mut last_end = 0;
        for (i, id) in ids.iter().enumerate() {
            let extent = self.table.extent(*id, frontier)?;
            let len = u64::from(extent.len);
            if self.exactly.is_some_and(|n| n != len) {
                return Err(Error::corrupt(format!(
                    "it has {len} bytes, the schema says {:?}",
                    self.exactly
                ))
                .in_record(*id)
                .with_source(Fault::Decode));
            }
            let start = start_of(places, i)?;
            let end = start.checked_add(len).filter(|e| *e <= room).ok_or_else(|| no_room(i, len, room))?;
            in_order &= start >= last_end;
            last_end = end;
            work += if extent.codec == Codec::Raw { len } else { len * INFLATED };
        }
        if !in_order {
            self.check_apart(ids, places, frontier)?;
        }
        Ok((work, in_order))
    }

    /// Checks that places that do not ascend do not overlap either.
    fn check_apart(&self, ids: &[u64], places: Places<'_>, frontier: Frontier) -> Result<()> {
        if let Places::Stride(stride) = places {
            return Err(Error::invalid(format!("a record is longer than the stride of {stride} bytes"))
                .with_source(Fault::Buffer));
        }
        let mut lens = Vec::with_capacity(ids.len());
        for id in ids {
            lens.push(u64::from(self.table.extent(*id, frontier)?.len));
        }
        let ends =
            (0..ids.len()).map(|i| start_of(places, i).map(|s| s + lens[i])).collect::<Result<Vec<_>>>()?;
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|i| ends[*i] - lens[*i]);
        match order.windows(2).find(|w| ends[w[0]] > ends[w[1]] - lens[w[1]]) {
            Some(w) => Err(Error::invalid(format!("records {} and {} of the list overlap", w[0], w[1]))
                .with_source(Fault::Buffer)),
            None => Ok(()),
        }
    }

    /// Decodes records one after the other; `dst` begins at byte `base` of the whole, `ids` at position `first`.
    #[expect(clippy::too_many_arguments, reason = "one part of a split operation")]
    fn run(
        &self,
        ids: &[u64],
        first: usize,
        dst: &mut [u8],
        base: u64,
        places: Places<'_>,
        frontier: Frontier,
        reader: &mut ChunkReader<'_>,
        scratch: &mut Scratch,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let total = ids.len() as u64;
        let mut two = false;
        for (i, id) in ids.iter().enumerate() {
            if i % BETWEEN_POLLS == 0 {
                monitor.poll(&Progress { stage: "gathering", done: i as u64, total })?;
            }
            if std::mem::take(&mut two) {
                continue;
            }
            let extent = self.table.extent(*id, frontier)?;
            if worth_two(&extent)
                && let Some(next) = ids.get(i + 1)
                && let Ok(behind) = self.table.extent(*next, frontier)
                && worth_two(&behind)
                && let (Some(a), Some(b)) = (reader.lent(&extent), reader.lent(&behind))
                && let places = [(i, &extent), (i + 1, &behind)].map(|(i, extent)| {
                    let start = start_of(places, first + i).ok()?.checked_sub(base)? as usize;
                    Some(start..start.checked_add(extent.len as usize)?)
                })
                && let [Some(place), Some(place_behind)] = places
                && let Ok([to_a, to_b]) = dst.get_disjoint_mut([place, place_behind])
            {
                let [of_a, of_b] = scratch.inflate_two((a, to_a), (b, to_b));
                of_a.map_err(|e| e.in_record(*id))?;
                of_b.map_err(|e| e.in_record(*next))?;
                two = true;
                continue;
            }
            let start = start_of(places, first + i)? - base;
            let len = u64::from(extent.len);
            let room = dst.len() as u64;
            let place = dst
                .get_mut(start as usize..(start + len) as usize)
                .ok_or_else(|| no_room(first + i, len, room))?;
            decode(reader, scratch, &extent, frontier, place).map_err(|e| e.in_record(*id))?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one part of a split operation")]
    fn gather_parts(
        &self,
        ids: &[u64],
        dst: &mut [u8],
        places: Places<'_>,
        frontier: Frontier,
        workers: usize,
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let units = (workers * 4).min(ids.len());
        let cut = |unit: usize| ids.len() * unit / units;
        let mut parts = Vec::with_capacity(units);
        let whole = dst.len();
        let mut rest = dst;
        let mut base = 0;
        for unit in 0..units {
            let range = cut(unit)..cut(unit + 1);
            let end = if unit + 1 == units { base + rest.len() as u64 } else { start_of(places, range.end)? };
            let (mine, others) = std::mem::take(&mut rest).split_at_mut((end - base) as usize);
            parts.push(Mutex::new((range, base, mine)));
            (rest, base) = (others, end);
        }
        let workers = Threads::new(workers.min(threads.get()));
        let total = ids.len() as u64;
        let scratch = || (self.pool.take(), self.chunks.reader(whole));
        workers.for_each(units, monitor, "gathering", total, scratch, |(lent, reader), unit, done| {
            let Some(part) = parts.get(unit) else { return Ok(()) };
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let (range, base, mine) = &mut *part;
            let mine_ids = ids.get(range.clone()).unwrap_or_default();
            let quiet = &tensilo_core::Quiet;
            self.run(mine_ids, range.start, mine, *base, places, frontier, reader, lent.scratch(), quiet)?;
            done.add(mine_ids.len() as u64);
            Ok(())
        })
    }
}

/// Whether a record is worth decoding together with another one.
fn worth_two(extent: &Extent) -> bool {
    extent.codec == Codec::Flate && u64::from(extent.len) >= Inflate::WORTH_TWO
}

/// Decodes one record to its place.
pub(super) fn decode(
    reader: &mut ChunkReader<'_>,
    scratch: &mut Scratch,
    extent: &Extent,
    frontier: Frontier,
    place: &mut [u8],
) -> Result<()> {
    match extent.codec {
        Codec::Raw => reader.copy(extent, frontier, place),
        Codec::Flate => {
            let mut room = std::mem::take(&mut scratch.stored);
            let result =
                reader.stored(extent, frontier, &mut room).and_then(|stored| scratch.inflate(stored, place));
            scratch.stored = room;
            result
        }
    }
}

fn start_of(places: Places<'_>, i: usize) -> Result<u64> {
    match places {
        Places::Stride(stride) => stride.checked_mul(i as u64),
        Places::Starts(starts) => starts.get(i).copied(),
    }
    .ok_or_else(|| Error::invalid(format!("record {i} of the list has no place")).with_source(Fault::Buffer))
}

fn no_room(i: usize, len: u64, room: u64) -> Error {
    Error::invalid(format!("record {i} of the list has no place of {len} bytes in the buffer of {room}"))
        .with_source(Fault::Buffer)
}
