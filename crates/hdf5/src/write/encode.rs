//! Encode: every chunk through the filter pipeline exactly once, on all threads, and out in order.
//!
//! Workers take chunks in order and hand their results to whoever completes the next one in line, so that bytes
//! reach the disk in the same order whatever the number of threads. A worker that is too far ahead waits: not
//! more than the window's worth of chunks is held.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use tensilo_core::threads::{Done, Threads};
use tensilo_core::{Error, Monitor, Result};
use tensilo_filters::{ChunkInfo, Pipeline, Scratch};

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

/// Results that wait for their turn.
struct Line<'s> {
    next: usize,
    waiting: BTreeMap<usize, (Vec<u8>, u32)>,
    sink: &'s mut Sink<'s>,
    /// The lowest chunk that failed; those behind it are not run, those before it are.
    failed: Option<usize>,
}

impl Line<'_> {
    fn fail(&mut self, i: usize) {
        self.failed = Some(self.failed.map_or(i, |f| f.min(i)));
    }

    fn is_behind_failure(&self, i: usize) -> bool {
        self.failed.is_some_and(|f| f < i)
    }
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
        // Without filters there is nothing to compute, and copying is not faster on more threads.
        let threads = if self.pipeline.is_empty() { Threads::ONE } else { threads };
        let line = Mutex::new(Line { next: 0, waiting: BTreeMap::new(), sink, failed: None });
        let moved = Condvar::new();
        threads.for_each(
            count,
            monitor,
            "writing chunks",
            total,
            || (Scratch::default(), Vec::new()),
            |(scratch, gathered): &mut (Scratch, Vec<u8>), i, done: &Done| {
                let guard = FailOnUnwind { i, line: &line, moved: &moved };
                let result = self.one(i, source, scratch, gathered, &line, &moved);
                std::mem::forget(guard);
                if result.is_err() {
                    lock(&line).fail(i);
                    moved.notify_all();
                }
                done.add(chunk_bytes);
                result
            },
        )
    }

    fn one(
        self,
        i: usize,
        source: &dyn Source,
        scratch: &mut Scratch,
        gathered: &mut Vec<u8>,
        line: &Mutex<Line<'_>>,
        moved: &Condvar,
    ) -> Result<()> {
        let mut held = lock(line);
        while !held.is_behind_failure(i) && i >= held.next.saturating_add(self.ahead) {
            held = moved.wait(held).unwrap_or_else(|p| p.into_inner());
        }
        if held.is_behind_failure(i) {
            return Err(not_run());
        }
        drop(held);
        let raw = source.raw(i, gathered);
        if self.pipeline.is_empty() || source.is_plain(i) {
            return deliver(line, moved, i, Stored::Borrowed(raw), 0);
        }
        let (stored, mask) = self.pipeline.encode(scratch, raw, self.info)?;
        deliver(line, moved, i, Stored::Owned(stored), mask)
    }
}

enum Stored<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
}

/// Gives a result to the sink if its turn has come, with all that waited behind it; else lets it wait.
fn deliver(line: &Mutex<Line<'_>>, moved: &Condvar, i: usize, stored: Stored<'_>, mask: u32) -> Result<()> {
    let mut held = lock(line);
    if held.is_behind_failure(i) {
        return Err(not_run());
    }
    if held.next != i {
        let owned = match stored {
            Stored::Borrowed(b) => b.to_vec(),
            Stored::Owned(v) => v,
        };
        held.waiting.insert(i, (owned, mask));
        return Ok(());
    }
    let line = &mut *held;
    match &stored {
        Stored::Borrowed(b) => (line.sink)(i, b, mask)?,
        Stored::Owned(v) => (line.sink)(i, v, mask)?,
    }
    line.next += 1;
    while let Some((bytes, mask)) = line.waiting.remove(&line.next) {
        (line.sink)(line.next, &bytes, mask)?;
        line.next += 1;
    }
    moved.notify_all();
    Ok(())
}

fn lock<'a, 's>(line: &'a Mutex<Line<'s>>) -> MutexGuard<'a, Line<'s>> {
    line.lock().unwrap_or_else(|p| p.into_inner())
}

/// For chunks behind a failed one; `Threads` reports the lowest failure, which is the real one.
fn not_run() -> Error {
    Error::invalid("an earlier chunk failed")
}

/// Wakes waiting workers when a filter panics, so that the panic reaches the caller.
struct FailOnUnwind<'a, 's> {
    i: usize,
    line: &'a Mutex<Line<'s>>,
    moved: &'a Condvar,
}

impl Drop for FailOnUnwind<'_, '_> {
    fn drop(&mut self) {
        lock(self.line).fail(self.i);
        self.moved.notify_all();
    }
}
