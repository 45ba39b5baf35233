//! A source that holds only what was fetched so far: the meeting point of our synchronous readers with callers that
//! fetch bytes by themselves (wasm, fsspec, object stores).
//!
//! A read of what is not there answers [`Missing`](crate::ErrorKind::Missing) with the ranges; the caller fetches
//! them, [`insert`](SparseSource::insert)s them and calls again. [`fetch_until_done`] is that loop.

use super::source::{ByteSource, Fingerprint, check_range};
use crate::error::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A source of known length that starts empty and is filled piece by piece, from any thread.
#[derive(Debug)]
pub struct SparseSource {
    len: u64,
    block: u64,
    fingerprint: Fingerprint,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Pieces by where they start; they neither overlap nor touch.
    pieces: BTreeMap<u64, Vec<u8>>,
    rounds: u64,
    fetched: u64,
}

impl SparseSource {
    /// A source of this length with nothing in it.
    pub fn new(len: u64) -> Self {
        let fingerprint = Fingerprint { bytes: len, ..Fingerprint::default() };
        Self { len, block: 1, fingerprint, state: RwLock::default() }
    }

    /// Asks for whole blocks of this many bytes, so that few rounds are needed; the default is 1.
    #[must_use]
    pub fn with_block(mut self, bytes: u64) -> Self {
        self.block = bytes.max(1);
        self
    }

    /// Says what the bytes that will be filled in come from.
    #[must_use]
    pub fn with_fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = fingerprint;
        self
    }

    /// Adds bytes. Bytes that are there already stay as they are; what passes the end is left out.
    pub fn insert(&self, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64).min(self.len);
        if offset >= end {
            return;
        }
        let mut state = self.write();
        state.fetched += bytes.len() as u64;
        // Join with all pieces that overlap or touch.
        let first = state
            .pieces
            .range(..=offset)
            .next_back()
            .map_or(offset, |(s, p)| if s + p.len() as u64 >= offset { *s } else { offset });
        let touched: Vec<u64> = state.pieces.range(first..=end).map(|(s, _)| *s).collect();
        if let [only] = touched[..]
            && state.pieces.get(&only).is_some_and(|p| only <= offset && only + p.len() as u64 >= end)
        {
            return;
        }
        let mut joined = touched
            .first()
            .filter(|s| **s <= offset)
            .and_then(|s| state.pieces.remove(s))
            .unwrap_or_default();
        for next in touched.into_iter().filter(|s| *s > first).chain([u64::MAX]) {
            let upto = next.min(end);
            let at = first + joined.len() as u64;
            if at < upto {
                joined.extend_from_slice(&bytes[(at - offset) as usize..(upto - offset) as usize]);
            }
            if let Some(piece) = state.pieces.remove(&next) {
                joined.extend_from_slice(&piece);
            }
        }
        state.pieces.insert(first, joined);
    }

    /// Copies ranges from another source, as one round.
    ///
    /// # Errors
    /// As the other source's.
    pub fn fetch_from(&self, source: &dyn ByteSource, ranges: &[Range<u64>]) -> Result<()> {
        self.write().rounds += 1;
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let n = (range.end - at).min(4 << 20);
                let mut bytes = vec![0; n as usize];
                source.read_at(at, &mut bytes)?;
                self.insert(at, &bytes);
                at += n;
            }
        }
        Ok(())
    }

    /// Rounds of [`fetch_from`](Self::fetch_from) so far.
    pub fn rounds(&self) -> u64 {
        self.read().rounds
    }

    /// Bytes inserted so far, repeated ones counted again.
    pub fn fetched_bytes(&self) -> u64 {
        self.read().fetched
    }

    /// Bytes that are there.
    pub fn held_bytes(&self) -> u64 {
        self.read().pieces.values().map(|p| p.len() as u64).sum()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of a range that are not there, widened to whole blocks.
    fn lacking(&self, state: &State, range: Range<u64>) -> Vec<Range<u64>> {
        let mut lacking: Vec<Range<u64>> = Vec::new();
        let mut at = range.start;
        let before = state.pieces.range(..=at).next_back();
        let inside = state.pieces.range(at..range.end).filter(|(s, _)| before.is_none_or(|(b, _)| b != *s));
        let mut need = |from: u64, to: u64| {
            if from < to {
                let from = from / self.block * self.block;
                let to = to.div_ceil(self.block).saturating_mul(self.block).min(self.len);
                match lacking.last_mut() {
                    Some(last) if last.end >= from => last.end = to,
                    _ => lacking.push(from..to),
                }
            }
        };
        for (start, piece) in before.into_iter().chain(inside) {
            let end = start + piece.len() as u64;
            need(at, (*start).min(range.end));
            at = at.max(end);
        }
        need(at, range.end);
        lacking
    }
}

impl ByteSource for SparseSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.len)?;
        if buf.is_empty() {
            return Ok(());
        }
        let state = self.read();
        let end = offset + buf.len() as u64;
        // Pieces that touch are joined, so all of the range lies in one piece, or something is missing.
        match state.pieces.range(..=offset).next_back() {
            Some((start, piece)) if start + piece.len() as u64 >= end => {
                let from = (offset - start) as usize;
                buf.copy_from_slice(&piece[from..from + buf.len()]);
                Ok(())
            }
            _ => Err(Error::missing(self.lacking(&state, offset..end))),
        }
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        Ok(self.fingerprint)
    }
}

/// Calls a reader until it no longer misses anything, fetching what it asks for in between; returns its answer.
///
/// ```
/// use tensilo_core::io::{ByteSource, MemorySource, SparseSource, fetch_until_done};
/// let remote = MemorySource::new(*b"a long file");
/// let local = SparseSource::new(remote.len());
/// let word = fetch_until_done(&local, &remote, || {
///     let mut word = [0; 4];
///     local.read_at(2, &mut word)?;
///     Ok(word)
/// })?;
/// assert_eq!((&word, local.rounds(), local.fetched_bytes()), (b"long", 1, 4));
/// # Ok::<(), tensilo_core::Error>(())
/// ```
///
/// # Errors
/// The reader's, the remote source's; `Missing` when a round brought nothing new.
pub fn fetch_until_done<T>(
    local: &SparseSource,
    remote: &dyn ByteSource,
    mut read: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut held = local.held_bytes();
    loop {
        match read() {
            Err(e) if e.kind() == ErrorKind::Missing => {
                local.fetch_from(remote, e.missing_ranges())?;
                let now = local.held_bytes();
                if now == held {
                    return Err(e.context("the same bytes are asked for again"));
                }
                held = now;
            }
            done => return done,
        }
    }
}
