//! Units of one job that two threads take: its owner from the front, a helper from the back. So each of them writes to
//! the same part of a result that is filled again and again, and finds it in its own cache.
//!
//! Nothing here waits. The number of the job and the units that nobody took stand in one word: who is late, and looked
//! at an older job, finds the word changed and gets nothing.

use super::sync::{AtomicU64, Ordering};

/// Bits of a number of units.
const BITS: u32 = 12;
/// Most units of a job.
pub(super) const MOST: usize = (1 << BITS) - 1;

/// A number on lines of its own: the helper looks at the word all the time, and would take the lines of all beside it
/// from the owner.
#[derive(Debug)]
#[repr(align(128))]
struct Line(AtomicU64);

/// One job at a time.
#[derive(Debug)]
pub(super) struct Claims {
    /// The job's number, the first unit that nobody took, and the one behind the last.
    word: Line,
    /// Units that the helper finished since the job was opened.
    finished: Line,
}

fn word(job: u64, front: u64, end: u64) -> u64 {
    job << (2 * BITS) | front << BITS | end
}

fn parts(word: u64) -> (u64, u64, u64) {
    (word >> (2 * BITS), word >> BITS & MOST as u64, word & MOST as u64)
}

impl Claims {
    pub fn new() -> Self {
        Self { word: Line(AtomicU64::new(0)), finished: Line(AtomicU64::new(0)) }
    }

    /// Opens a job of at most [`MOST`] units: who takes one sees all that was written before. For the owner, when
    /// the helper finished what it took of the job before.
    pub fn open(&self, units: usize) {
        let (job, ..) = parts(self.word.0.load(Ordering::Relaxed));
        self.finished.0.store(0, Ordering::Relaxed);
        self.word.0.store(word(job.wrapping_add(1), 0, units.min(MOST) as u64), Ordering::Release);
    }

    /// Changes the word unless all units were taken; the one before.
    fn take(&self, left: impl Fn(u64, u64, u64) -> u64) -> Option<(u64, u64)> {
        let mut seen = self.word.0.load(Ordering::Relaxed);
        loop {
            let (job, front, end) = parts(seen);
            if front >= end {
                return None;
            }
            let left = left(job, front, end);
            match self.word.0.compare_exchange_weak(seen, left, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some((front, end)),
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the first unit, for the owner.
    pub fn first(&self) -> Option<usize> {
        self.take(|job, front, end| word(job, front + 1, end)).map(|(front, _)| front as usize)
    }

    /// Takes the last unit, for the helper.
    pub fn last(&self) -> Option<usize> {
        self.take(|job, front, end| word(job, front, end - 1)).map(|(_, end)| end as usize - 1)
    }

    /// Lets nobody take a further unit; the one behind the last that the helper did not take. For the owner.
    pub fn close(&self) -> usize {
        // What is there when all were taken stays, but for the owner.
        self.take(|job, _, end| word(job, end, end));
        parts(self.word.0.load(Ordering::Relaxed)).2 as usize
    }

    /// The helper is done with a unit, and touches nothing of the job any more.
    pub fn finish(&self) {
        self.finished.0.fetch_add(1, Ordering::Release);
    }

    /// Has the helper finished so many? All that it wrote is then seen.
    pub fn has_finished(&self, units: usize) -> bool {
        self.finished.0.load(Ordering::Acquire) >= units as u64
    }
}
