//! Which slabs were compared with their checksums: one bit each, so that a window is answered by a load or two.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Marks of the slabs of one lane, shared by its clones; a lane without checksums has no marks and is always checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checked(Arc<[AtomicU64]>);

impl Checked {
    /// No slab of `slabs` is marked.
    pub fn new(slabs: usize) -> Self {
        Self((0..slabs.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    pub fn mark(&self, k: u64) {
        if let Some(word) = self.0.get((k / 64) as usize) {
            // The marks guard no other memory: the slab's bytes never change while it is open.
            word.fetch_or(1 << (k % 64), Ordering::Relaxed);
        }
    }

    /// Is every slab of a range marked?
    #[inline]
    pub fn all(&self, range: Range<u64>) -> bool {
        let mut k = range.start;
        while k < range.end {
            let bit = k % 64;
            let n = (64 - bit).min(range.end - k);
            let mask = (u64::MAX >> (64 - n)) << bit;
            match self.0.get((k / 64) as usize) {
                Some(word) if word.load(Ordering::Relaxed) & mask != mask => return false,
                Some(_) => k += n,
                None => return true,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_checked_when_each_of_its_slabs_is() {
        let checked = Checked::new(200);
        let mut slow = [false; 200];
        let mut at = 7_u64;
        for _ in 0..400 {
            at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let k = (at >> 33) % 200;
            checked.mark(k);
            slow[k as usize] = true;
            for start in [0, 1, 63, 64, 65, 127, k] {
                for end in [start, start + 1, start + 8, 128, 200] {
                    let (start, end) = (start.min(end).min(200), end.min(200));
                    let expected = slow[start as usize..end as usize].iter().all(|s| *s);
                    assert_eq!(checked.all(start..end), expected, "{start}..{end}");
                }
            }
        }
    }

    #[test]
    fn a_lane_without_marks_counts_as_checked() {
        let none = Checked::default();
        none.mark(3);
        assert!(none.all(0..1 << 40));
    }
}
