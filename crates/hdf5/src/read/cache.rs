//! Decoded chunks that are likely to be wanted again: those of which a read needed only a part.
//!
//! One cache for each file, with a budget in bytes; the chunk that was not used for longest goes first. The lock is
//! held for a look-up or an insertion, never while anything is read or decoded.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Dataset (address of its header) and number of a chunk in its grid.
type Key = (u64, u64);

/// The decoded chunks of one file.
#[derive(Debug)]
pub(super) struct ChunkCache {
    budget: usize,
    state: Mutex<State>,
    /// Was anything ever kept?
    used: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    chunks: HashMap<Key, (Arc<[u8]>, u64)>,
    /// Keys by last use.
    order: BTreeMap<u64, Key>,
    clock: u64,
    bytes: usize,
}

impl ChunkCache {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, state: Mutex::default(), used: AtomicBool::new(false) }
    }

    /// Is a chunk of this many bytes worth keeping?
    pub(super) fn takes(&self, bytes: usize) -> bool {
        bytes > 0 && bytes <= self.budget / 2
    }

    /// Is nothing kept, as far as this thread knows? Costs no lock.
    pub(super) fn is_empty(&self) -> bool {
        !self.used.load(Ordering::Relaxed)
    }

    pub(super) fn get(&self, dataset: u64, chunk: u64) -> Option<Arc<[u8]>> {
        let mut state = self.lock();
        let State { chunks, order, clock, .. } = &mut *state;
        let (bytes, used) = chunks.get_mut(&(dataset, chunk))?;
        *clock += 1;
        order.remove(used);
        order.insert(*clock, (dataset, chunk));
        *used = *clock;
        Some(bytes.clone())
    }

    pub(super) fn insert(&self, dataset: u64, chunk: u64, bytes: &[u8]) {
        if !self.takes(bytes.len()) {
            return;
        }
        let copy: Arc<[u8]> = bytes.into();
        self.used.store(true, Ordering::Relaxed);
        let mut state = self.lock();
        let State { chunks, order, clock, bytes: held } = &mut *state;
        *clock += 1;
        *held += copy.len();
        if let Some((old, used)) = chunks.insert((dataset, chunk), (copy, *clock)) {
            *held -= old.len();
            order.remove(&used);
        }
        order.insert(*clock, (dataset, chunk));
        while *held > self.budget {
            let Some((_, key)) = order.pop_first() else { break };
            if let Some((old, _)) = chunks.remove(&key) {
                *held -= old.len();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunk_unused_for_longest_goes_first_and_the_budget_holds() {
        let cache = ChunkCache::new(10);
        cache.insert(1, 0, &[1; 4]);
        cache.insert(1, 1, &[2; 4]);
        assert_eq!(cache.get(1, 0).as_deref(), Some(&[1; 4][..]));
        cache.insert(1, 2, &[3; 4]); // 12 bytes: number 1 must go
        assert!(cache.get(1, 1).is_none());
        assert!(cache.get(1, 0).is_some() && cache.get(1, 2).is_some());
        cache.insert(1, 3, &[4; 6]); // more than half of the budget: not taken
        assert!(cache.get(1, 3).is_none());
        cache.insert(1, 0, &[5; 5]);
        assert_eq!(cache.get(1, 0).as_deref(), Some(&[5; 5][..]));
        let state = cache.lock();
        assert!(state.bytes <= 10);
        assert_eq!(state.order.len(), state.chunks.len());
    }
}
