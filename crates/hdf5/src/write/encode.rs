//! Encode: every chunk through the filter pipeline exactly once, on all threads, and out in order.
//!
//! Workers take chunks in order. Who has encoded the next chunk in line hands it to the disk, with those that wait behind
//! it, while the others go on encoding: bytes reach the disk in the same order whatever the number of threads, and
//! nobody waits for a write. A worker that is too far ahead waits: not more than the window's worth of chunks is held,
//! in buffers that are used again.

use super::workers::{Kept, Worker};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use tensilo_core::threads::{Done, Threads};
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_filters::{ChunkInfo, Pipeline};

/// Bytes that a worker hands to the disk in one go: the monitor is polled between.
const TURN: usize = 16 << 20;
const STAGE: &str = "writing chunks";

/// Where raw chunks come from.
pub(crate) trait Source: Sync {
    /// The bytes of chunk `i`, perhaps gathered in `scratch`.
    fn raw<'a>(&'a self, i: usize, scratch: &'a mut Vec<u8>) -> &'a [u8];

    /// Is chunk `i` stored without filters?
    fn is_plain(&self, i: usize) -> bool;
}

/// Takes encoded chunks in order: number, bytes, filter mask.
pub(crate) type Sink<'s> = dyn FnMut(usize, &[u8], u32) -> Result<()> + Send + 's;

/// How chunks are encoded, which every worker knows.
#[derive(Clone, Copy)]
pub(crate) struct Encoder<'e> {
    pub(crate) pipeline: &'e Pipeline,
    pub(crate) info: &'e ChunkInfo,
    /// Chunks that may be held at one time.
    pub(crate) ahead: usize,
}

/// An encoded chunk and the mask of the filters that were skipped.
type Encoded = (Vec<u8>, u32);

/// Chunks that wait for their turn.
#[derive(Default)]
struct Line {
    /// The first chunk that is not written.
    next: usize,
    waiting: BTreeMap<usize, Encoded>,
    /// Is a worker handing a chunk to the disk?
    writing: bool,
    /// Workers that are too far ahead.
    ahead: usize,
    /// Buffers to be used again.
    free: Vec<Vec<u8>>,
    /// The lowest chunk that failed; those behind it are not run, those before it are.
    failed: Option<usize>,
    /// What the disk said. All chunks in front of that one were encoded well, so it comes before what a filter said.
    refused: Option<Error>,
}

impl Line {
    fn fail(&mut self, i: usize) {
        self.failed = Some(self.failed.map_or(i, |f| f.min(i)));
    }

    fn is_behind_failure(&self, i: usize) -> bool {
        self.failed.is_some_and(|f| f < i)
    }

    /// The chunk whose turn it is, unless somebody else is writing.
    fn turn(&mut self) -> Option<Encoded> {
        if self.writing || self.failed.is_some_and(|f| f <= self.next) {
            return None;
        }
        let encoded = self.waiting.remove(&self.next);
        self.writing = encoded.is_some();
        encoded
    }
}

/// One write of chunks, as all its workers see it.
struct Work<'e, 's> {
    encoder: Encoder<'e>,
    source: &'e dyn Source,
    line: Mutex<Line>,
    moved: Condvar,
    /// Taken by whoever writes.
    sink: Mutex<&'e mut Sink<'s>>,
}

impl Encoder<'_> {
    /// Encodes chunks `0..count` and gives each to `sink`, in order, with its filter mask.
    pub(crate) fn run(
        self,
        threads: Threads,
        monitor: &dyn Monitor,
        count: usize,
        source: &dyn Source,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let chunk_bytes = self.info.chunk_dims.iter().product::<u64>() * self.info.element_size as u64;
        let total = chunk_bytes.saturating_mul(count as u64);
        let sink = Mutex::new(sink);
        if self.pipeline.is_empty() {
            // There is nothing to compute, and copying is not faster on more threads.
            return Threads::ONE.for_each(
                count,
                monitor,
                STAGE,
                total,
                Vec::new,
                |gathered, i, done: &Done| {
                    lock(&sink)(i, source.raw(i, gathered), 0)?;
                    done.add(chunk_bytes);
                    Ok(())
                },
            );
        }
        let work = Work { encoder: self, source, line: Mutex::default(), moved: Condvar::new(), sink };
        let encoded =
            threads.for_each(count, monitor, STAGE, total, Worker::take, |worker, i, done: &Done| {
                let guard = FailOnUnwind { i, work: &work };
                let result = work.one(i, worker);
                std::mem::forget(guard);
                if result.is_err() {
                    lock(&work.line).fail(i);
                    work.moved.notify_all();
                }
                done.add(chunk_bytes);
                result
            });
        work.finish(encoded, monitor, total)
    }
}

impl Work<'_, '_> {
    /// Encodes one chunk and writes what can be written then.
    fn one(&self, i: usize, worker: &mut Worker) -> Result<()> {
        let mut line = lock(&self.line);
        loop {
            if line.is_behind_failure(i) {
                return Err(not_run());
            }
            if i < line.next.saturating_add(self.encoder.ahead) {
                break;
            }
            let wrote;
            (line, wrote) = self.write(line, worker);
            if !wrote {
                line.ahead += 1;
                line = self.moved.wait(line).unwrap_or_else(|p| p.into_inner());
                line.ahead -= 1;
            }
        }
        let mut stored = line.free.pop().unwrap_or_else(|| std::mem::take(&mut worker.spare));
        drop(line);
        let Kept { scratch, gathered, .. } = &mut **worker;
        let raw = self.source.raw(i, gathered);
        let mask = if self.source.is_plain(i) {
            stored.clear();
            stored.extend_from_slice(raw);
            0
        } else {
            let Encoder { pipeline, info, .. } = self.encoder;
            pipeline.encode_into(scratch, raw, info, &mut stored)?
        };
        let mut line = lock(&self.line);
        if line.is_behind_failure(i) {
            return Err(not_run());
        }
        line.waiting.insert(i, (stored, mask));
        let _ = self.write(line, worker);
        Ok(())
    }

    /// Hands chunks whose turn it is to the disk, the line being free meanwhile, and says whether there were any.
    fn write<'l>(
        &'l self,
        mut line: MutexGuard<'l, Line>,
        worker: &mut Worker,
    ) -> (MutexGuard<'l, Line>, bool) {
        let (mut wrote, mut bytes) = (false, 0);
        while bytes < TURN
            && let Some((stored, mask)) = line.turn()
        {
            let i = line.next;
            drop(line);
            let guard = FailOnUnwind { i, work: self };
            let written = lock(&self.sink)(i, &stored, mask);
            std::mem::forget(guard);
            (wrote, bytes) = (true, bytes + stored.len());
            line = lock(&self.line);
            line.writing = false;
            match written {
                Ok(()) => line.next += 1,
                Err(e) => {
                    line.fail(i);
                    line.refused.get_or_insert(e);
                }
            }
            if worker.spare.capacity() == 0 {
                worker.spare = stored;
            } else {
                line.free.push(stored);
            }
            if line.ahead > 0 {
                self.moved.notify_all();
            }
        }
        (line, wrote)
    }

    /// Writes what is left once all is encoded.
    fn finish(self, encoded: Result<()>, monitor: &dyn Monitor, total: u64) -> Result<()> {
        let mut line = lock(&self.line);
        if let Some(refused) = line.refused.take() {
            return Err(refused);
        }
        encoded?;
        let mut worker = Worker::default();
        let mut wrote = true;
        while wrote {
            (line, wrote) = self.write(line, &mut worker);
            if let Some(refused) = line.refused.take() {
                return Err(refused);
            }
            if wrote {
                monitor.poll(&Progress { stage: STAGE, done: total, total })?;
            }
        }
        Ok(())
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|p| p.into_inner())
}

/// For chunks behind a failed one; `Threads` reports the lowest failure, which is the real one.
fn not_run() -> Error {
    Error::invalid("an earlier chunk failed")
}

/// Wakes waiting workers when a filter panics, so that the panic reaches the caller.
struct FailOnUnwind<'a, 'e, 's> {
    i: usize,
    work: &'a Work<'e, 's>,
}

impl Drop for FailOnUnwind<'_, '_, '_> {
    fn drop(&mut self) {
        lock(&self.work.line).fail(self.i);
        self.work.moved.notify_all();
    }
}
