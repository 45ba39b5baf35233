//! Carries out a plan: fetch, decode, convert, place; on all threads, straight into the destination.

use super::convert::Conversion;
use super::dataset::{DatasetInner, Storage};
use super::plan::{Batch, ReadPlan, Source, Step};
use crate::format::message::data_layout::DataLayout;
use std::ops::Range;
use std::sync::Mutex;
use tensilo_core::array::{Canvas, Tile};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Monitor, Result};
use tensilo_filters::Scratch;

/// What a monitor hears that is done.
pub(super) const STAGE: &str = "reading";

/// Reads that decode less than this run on the calling thread alone.
const SMALL: u64 = 256 << 10;

/// Reads of no more chunks than this keep those of which they need a part.
const KEEP: usize = 64;

/// One read under way.
struct Work<'a> {
    data: &'a DatasetInner,
    plan: &'a ReadPlan,
    canvas: Canvas<'a>,
    conversion: Option<&'a Conversion>,
    /// One element as it appears in the result.
    fill: Vec<u8>,
    /// Destination bytes are zero already, and so is the fill value.
    skip_fill: bool,
    missing: Mutex<Vec<Range<u64>>>,
}

/// What a worker keeps between batches.
#[derive(Default)]
struct Worker {
    fetched: Vec<u8>,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    chunk: Vec<u8>,
    part: Vec<u8>,
    converted: Vec<u8>,
    scratch: Scratch,
}

/// Runs a plan. `zeroed` says that the destination holds zeros only.
pub(super) fn run(
    data: &DatasetInner,
    plan: &ReadPlan,
    conversion: Option<&Conversion>,
    destination: &mut [u8],
    zeroed: bool,
    threads: Threads,
    monitor: &dyn Monitor,
) -> Result<()> {
    let conversion = conversion.filter(|c| !c.is_copy());
    let stored_fill = data.fill_element();
    let mut fill = stored_fill.clone();
    if let Some(c) = conversion {
        fill = vec![0; c.width()];
        // A fill value that does not fit matters only where it is needed.
        if plan.steps.iter().any(|s| s.source == Source::Fill) {
            c.convert(&stored_fill, &mut fill).map_err(|e| e.context("the fill value"))?;
        }
    }
    let width = conversion.map_or(plan.width, Conversion::width);
    let canvas = Canvas::new(&plan.split, destination, width)?;
    let skip_fill = zeroed && fill.iter().all(|b| *b == 0);
    let work = Work { data, plan, canvas, conversion, fill, skip_fill, missing: Mutex::default() };
    let decoded = (plan.chunk_bytes as u64).saturating_mul(plan.steps.len() as u64);
    let small = decoded.min(plan.result_bytes().saturating_mul(8)) < SMALL;
    let mut threads = if small { Threads::ONE } else { threads };
    let (workspace, fetch) = (work.workspace(), plan.largest_fetch());
    work.check_end(fetch)?;
    let budget = data.file.0.space.budget();
    let charge = |threads: Threads| {
        let workers = threads.get().min(plan.batches.len()).max(1) as u64;
        budget.bytes(workspace.saturating_add(fetch).saturating_mul(workers), "decoding chunks")
    };
    let _charge = match charge(threads) {
        Err(_) if threads.get() > 1 => {
            threads = Threads::ONE;
            charge(threads)?
        }
        other => other?,
    };
    let total = plan.result_bytes();
    threads.for_each(plan.batches.len(), monitor, STAGE, total, Worker::default, |worker, i, done| {
        let batch = &plan.batches[i];
        match work.batch(worker, batch) {
            Err(e) if e.kind() == ErrorKind::Missing => {
                work.missing.lock().unwrap_or_else(|p| p.into_inner()).extend_from_slice(e.missing_ranges());
            }
            other => other?,
        }
        let parts = plan.steps[batch.steps.clone()].iter();
        done.add(parts.map(|s| plan.split.elements_of(s.part)).sum::<u64>() * plan.width as u64);
        Ok(())
    })?;
    let missing = work.missing.into_inner().unwrap_or_else(|p| p.into_inner());
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::missing(missing))
}

impl Work<'_> {
    /// Bytes of buffers that one worker needs beside the fetched ones.
    fn workspace(&self) -> u64 {
        let filtered = self.plan.steps.iter().any(|s| matches!(s.source, Source::Filtered { .. }));
        let chunk = self.plan.chunk_bytes as u64;
        let stages = match &self.data.storage {
            Storage::Chunked(c) if filtered => 1 + (c.pipeline.specs().len() as u64).saturating_sub(1).min(2),
            _ => 0,
        };
        let converted = self
            .conversion
            .map_or(0, |c| chunk.saturating_add(chunk / c.stored.max(1) as u64 * c.width() as u64));
        chunk.saturating_mul(stages).saturating_add(converted)
    }

    /// No buffer is made for bytes that the file does not have.
    fn check_end(&self, fetch: u64) -> Result<()> {
        let len = self.data.source_end()?;
        for batch in &self.plan.batches {
            if let Some(span) = batch.span.as_ref().filter(|s| s.end > len) {
                return Err(self.placed(
                    &self.plan.steps[batch.steps.end - 1],
                    Error::corrupt(format!(
                        "the chunk's bytes {}..{} reach past the end of the file of {len} bytes",
                        span.start, span.end
                    ))
                    .at(span.start),
                ));
            }
        }
        if fetch > len {
            return Err(Error::corrupt(format!("{fetch} bytes to fetch from a file of {len}")));
        }
        Ok(())
    }

    fn batch(&self, worker: &mut Worker, batch: &Batch) -> Result<()> {
        let steps = &self.plan.steps[batch.steps.clone()];
        let source = self.data.source()?;
        if self.deliver_kept(worker, steps)? {
            return Ok(());
        }
        let Some(span) = batch.span.clone() else {
            return steps.iter().try_for_each(|s| self.step_alone(worker, s).map_err(|e| self.placed(s, e)));
        };
        let in_first = |e| self.placed(&steps[0], e);
        let bytes = match source.borrow(span.clone()) {
            Some(bytes) => bytes,
            None => {
                if let [step] = steps
                    && self.straight(step, span.start).map_err(in_first)?
                {
                    return Ok(());
                }
                let buffer = sized(&mut worker.fetched, (span.end - span.start) as usize);
                source.read_at(span.start, buffer).map_err(in_first)?;
                buffer
            }
        };
        for step in steps {
            self.step(&mut worker.buffers, step, bytes, span.start).map_err(|e| self.placed(step, e))?;
        }
        Ok(())
    }

    /// Delivers parts from the cache of decoded chunks; false where one of the chunks is not there.
    fn deliver_kept(&self, worker: &mut Worker, steps: &[Step]) -> Result<bool> {
        let filtered = |s: &Step| matches!(s.source, Source::Filtered { .. });
        let cache = &self.data.file.0.chunks;
        if cache.is_empty() || !steps.iter().all(filtered) {
            return Ok(false);
        }
        let get = |s: &Step| cache.get(self.data.address(), self.plan.split.chunk_number(s.part));
        let Some(kept) = steps.iter().map(get).collect::<Option<Vec<_>>>() else { return Ok(false) };
        for (step, chunk) in steps.iter().zip(kept) {
            self.deliver(&mut worker.buffers, step, &chunk, 0).map_err(|e| self.placed(step, e))?;
        }
        Ok(true)
    }

    /// Keeps a decoded chunk of which only a part was wanted.
    fn keep(&self, step: &Step, chunk: &[u8]) {
        let all = self.plan.split.elements_of(step.part) == self.plan.split.grid().chunk_elements();
        if !all && self.data.file.0.chunks.takes(chunk.len()) {
            let number = self.plan.split.chunk_number(step.part);
            self.data.file.0.chunks.insert(self.data.address(), number, chunk);
        }
    }

    /// Reads a plain part straight to where it belongs; false where it is not one run on both sides.
    fn straight(&self, step: &Step, start: u64) -> Result<bool> {
        let whole_run = self.plan.split.run_in_chunk(step.part, self.plan.width).is_some();
        if self.conversion.is_some() || !matches!(step.source, Source::Plain { .. }) || !whole_run {
            return Ok(false);
        }
        let Some(mut tile) = self.canvas.tile(step.part) else { return Err(taken()) };
        let Some(run) = tile.contiguous() else { return Err(taken()) };
        self.data.source()?.read_at(start, run)?;
        Ok(true)
    }

    /// A step that needs nothing from the file, or several ranges of it.
    fn step_alone(&self, worker: &mut Worker, step: &Step) -> Result<()> {
        match step.source {
            Source::Fill => {
                if !self.skip_fill {
                    self.tile(step)?.fill(&self.fill)?;
                }
                Ok(())
            }
            Source::Header => match &self.data.layout {
                DataLayout::Compact(bytes) => self.deliver(&mut worker.buffers, step, bytes, 0),
                _ => Err(Error::corrupt("no data in the object header")),
            },
            Source::Filtered { .. } => Err(Error::corrupt("a filtered chunk without a place")),
            Source::Plain { offset } => {
                let ranges = self.plan.split.ranges_in_chunk(step.part, self.plan.width, 4096);
                let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(()) };
                let (low, high) = (first.start, last.end);
                let source = self.data.source()?;
                let at = |i: usize| offset.saturating_add(i as u64);
                if at(high) > self.data.source_end()? {
                    return Err(Error::corrupt("the data reaches past the end of the file").at(at(low)));
                }
                if let Some(bytes) = source.borrow(at(low)..at(high)) {
                    return self.deliver(&mut worker.buffers, step, bytes, low);
                }
                let buffer = sized(&mut worker.fetched, high - low);
                let mut rest = &mut *buffer;
                let mut requests = Vec::with_capacity(ranges.len());
                let mut done = low;
                for range in ranges {
                    let (_, tail) = rest.split_at_mut(range.start - done);
                    let (wanted, tail) = tail.split_at_mut(range.len());
                    requests.push((at(range.start), wanted));
                    (rest, done) = (tail, range.end);
                }
                source.read_ranges(&mut requests)?;
                self.deliver(&mut worker.buffers, step, buffer, low)
            }
        }
    }

    /// A step whose bytes are among `bytes`, which begin at byte `start` of the file.
    fn step(&self, buffers: &mut Buffers, step: &Step, bytes: &[u8], start: u64) -> Result<()> {
        let cut = |from: u64, len: u64| {
            let from = from.checked_sub(start).and_then(|f| usize::try_from(f).ok());
            let cut = from.and_then(|f| bytes.get(f..)?.get(..usize::try_from(len).ok()?));
            cut.ok_or_else(|| Error::corrupt("a chunk lies outside what was fetched for it"))
        };
        match step.source {
            Source::Plain { offset } => {
                // Bytes of the chunk before `start` were not needed.
                let (skipped, inside) = (start.saturating_sub(offset), offset.saturating_sub(start));
                let have = (bytes.len() as u64).saturating_sub(inside);
                let have = have.min((self.plan.chunk_bytes as u64).saturating_sub(skipped));
                let bytes = cut(offset + skipped, have)?;
                self.deliver(buffers, step, bytes, skipped as usize)
            }
            Source::Filtered { offset, size, mask } => {
                let stored = cut(offset, size)?;
                let Storage::Chunked(chunks) = &self.data.storage else {
                    return Err(Error::corrupt("filters on a dataset without chunks"));
                };
                let whole = self.conversion.is_none() && self.plan.split.is_whole(step.part, self.plan.width);
                if whole {
                    let mut tile = self.tile(step)?;
                    if let Some(run) = tile.contiguous() {
                        return chunks.pipeline.decode(&mut buffers.scratch, stored, mask, run);
                    }
                }
                let mut chunk = std::mem::take(&mut buffers.chunk);
                let decoded = sized(&mut chunk, self.plan.chunk_bytes);
                let result = chunks
                    .pipeline
                    .decode(&mut buffers.scratch, stored, mask, decoded)
                    .and_then(|()| self.deliver(buffers, step, decoded, 0));
                if result.is_ok() && self.plan.steps.len() <= KEEP {
                    self.keep(step, decoded);
                }
                buffers.chunk = chunk;
                result
            }
            Source::Fill | Source::Header => Err(Error::corrupt("nothing is fetched for this chunk")),
        }
    }

    /// Converts and places a part from decoded bytes, which begin at byte `from` of the chunk.
    fn deliver(&self, buffers: &mut Buffers, step: &Step, bytes: &[u8], from: usize) -> Result<()> {
        let mut tile = self.tile(step)?;
        let Some(conversion) = self.conversion else { return tile.place(bytes, from) };
        let (split, width) = (&self.plan.split, self.plan.width);
        let n = split.elements_of(step.part) as usize;
        let src = match split.run_in_chunk(step.part, width) {
            Some(run) => run
                .start
                .checked_sub(from)
                .and_then(|start| bytes.get(start..start + run.len()))
                .ok_or_else(|| Error::corrupt("a chunk is shorter than its shape needs"))?,
            None => {
                let part = sized(&mut buffers.part, n * width);
                split.gather(step.part, width, bytes, from, part)?;
                part
            }
        };
        if let Some(run) = tile.contiguous() {
            return conversion.convert(src, run);
        }
        let converted = sized(&mut buffers.converted, n * conversion.width());
        conversion.convert(src, converted)?;
        tile.place_part(converted)
    }

    fn tile(&self, step: &Step) -> Result<Tile<'_>> {
        self.canvas.tile(step.part).ok_or_else(taken)
    }

    /// Says which chunk an error is about.
    fn placed(&self, step: &Step, e: Error) -> Error {
        match (step.source, e.kind()) {
            (_, ErrorKind::Missing) => e,
            (Source::Plain { offset } | Source::Filtered { offset, .. }, _) => {
                let e = match self.data.storage {
                    Storage::Chunked(_) => {
                        e.context(format_args!("chunk {:?}", self.plan.split.chunk(step.part)))
                    }
                    _ => e,
                };
                e.at(offset)
            }
            _ => e,
        }
    }
}

#[cold]
fn taken() -> Error {
    Error::invalid("a part of the result was to be written twice")
}

/// The first `len` bytes of a buffer that only ever grows.
fn sized(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}
