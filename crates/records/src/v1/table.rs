//! The records of a store in memory: entries that are only added, read by any number of threads without a lock.
//!
//! Entries lie in segments that double, so that nothing moves when the table grows. The number of records is stored
//! after the entries below it (release) and loaded before them (acquire).

use super::format::{ENTRY_LEN, Entry, Extent};
use super::place::{Frontier, Geometry};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tensilo_core::limits::{Budget, Charge};
use tensilo_core::{Error, Result};

use super::fault::Fault;

/// Entries of the first segment; each further one has as many as all before it.
const FIRST: u64 = 256;
/// Segments for 2^24 records.
const SEGMENTS: usize = 17;

#[derive(Debug, Default)]
struct Slot([AtomicU64; 2]);

/// All entries of a store.
#[derive(Debug)]
pub(super) struct Table {
    geometry: Geometry,
    budget: Budget,
    segments: [OnceLock<Box<[Slot]>>; SEGMENTS],
    charges: Mutex<Vec<Charge>>,
    len: AtomicU64,
    frontier: AtomicU64,
}

/// Segment of an entry, its position there, and the segment's size.
fn locate(index: u64) -> (usize, usize, usize) {
    let block = index / FIRST;
    if block == 0 {
        return (0, index as usize, FIRST as usize);
    }
    let level = block.ilog2();
    let first = FIRST << level;
    (level as usize + 1, (index - first) as usize, first as usize)
}

impl Table {
    pub fn new(geometry: Geometry, budget: Budget) -> Self {
        Self {
            geometry,
            budget,
            segments: Default::default(),
            charges: Mutex::default(),
            len: AtomicU64::new(0),
            frontier: AtomicU64::new(0),
        }
    }

    /// Number of records that are published.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Where the store ends, at least for all records that [`len`](Self::len) counted before.
    pub fn frontier(&self) -> Frontier {
        Frontier::from_word(self.frontier.load(Ordering::Acquire))
    }

    /// Puts an entry in its slot; it shows when [`publish`](Self::publish) counts it. Only one thread writes.
    pub fn set(&self, index: u64, entry: &Entry) -> Result<()> {
        let (segment, at, size) = locate(index);
        let Some(cell) = self.segments.get(segment) else {
            return Err(Error::limit(format!("record {index} is past the end of every store")));
        };
        let slots = match cell.get() {
            Some(slots) => slots,
            None => {
                let charge = self.budget.bytes((size * ENTRY_LEN) as u64, "the record table")?;
                self.charges.lock().unwrap_or_else(PoisonError::into_inner).push(charge);
                cell.get_or_init(|| (0..size).map(|_| Slot::default()).collect())
            }
        };
        if let Some(slot) = slots.get(at) {
            for (half, word) in slot.0.iter().zip(entry.words()) {
                half.store(word, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Makes all entries below `len` visible.
    pub fn publish(&self, len: u64, frontier: Frontier) {
        self.frontier.store(frontier.word(), Ordering::Release);
        self.len.store(len, Ordering::Release);
    }

    /// An entry below a length that was read before.
    pub fn entry(&self, index: u64) -> Entry {
        let (segment, at, _) = locate(index);
        let slot = self.segments.get(segment).and_then(|s| s.get()).and_then(|s| s.get(at));
        slot.map_or(Entry::default(), |slot| {
            let [a, b] = &slot.0;
            Entry::from_words([a.load(Ordering::Relaxed), b.load(Ordering::Relaxed)])
        })
    }

    /// The bytes of a record, checked against the store's end.
    pub fn extent(&self, index: u64, frontier: Frontier) -> Result<Extent> {
        self.entry(index).check(frontier, &self.geometry).map_err(|e| e.in_record(index))
    }

    /// Checks that records exist.
    pub fn check_ids(&self, ids: &[u64], len: u64) -> Result<()> {
        match ids.iter().find(|id| **id >= len) {
            Some(id) => Err(Error::invalid(format!("there are {len} records"))
                .in_record(*id)
                .with_source(Fault::Index)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other_without_gaps() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            let (segment, at, size) = locate(index);
            assert_eq!((segment, at), expected, "{index}");
            expected = if at + 1 == size { (segment + 1, 0) } else { (segment, at + 1) };
        }
        assert_eq!(locate((1 << 24) - 1).0, SEGMENTS - 1);
    }

    #[test]
    fn the_budget_is_asked_before_the_table_grows() {
        use tensilo_core::limits::Limits;
        let budget = Budget::new(Limits::default().with_bytes(8192));
        let table = Table::new(Geometry::default(), budget);
        for index in 0..512 {
            table.set(index, &Entry::default()).unwrap();
        }
        assert_eq!(table.set(512, &Entry::default()).unwrap_err().kind(), tensilo_core::ErrorKind::Limit);
    }
}
