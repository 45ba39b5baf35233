//! Where raw cells lie that were compared with their checksums, in little memory: one offset and a bit for each cell
//! for every 128 records, whose cells of one field lie one behind the other in all but odd cases.
//!
//! A batch of small records then finds them in a few kilobytes that stay in the processor, and reads neither the table
//! nor its entries.

use super::state::LEAF;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tensilo_core::Budget;
use tensilo_core::limits::Charge;

/// Runs that are allocated at once.
const GROUP: u64 = 64;
/// Most groups, 1 MiB of them: half a billion records. Larger stores look their cells up in the table.
const MOST_GROUPS: u64 = 1 << 16;

/// One field of 128 records.
#[derive(Debug, Default)]
struct Run {
    /// Where the first cell lies or would lie; set once, before any bit.
    first: AtomicU64,
    /// A bit for each cell that lies where the run says and was compared.
    compared: [AtomicU64; 2],
}

#[derive(Debug)]
struct Group {
    runs: Box<[Run]>,
    _held: Charge,
}

/// The runs of one snapshot.
#[derive(Debug)]
pub(crate) struct Runs {
    fields: usize,
    groups: Box<[OnceLock<Group>]>,
    budget: Budget,
}

impl Runs {
    /// For so many records; nothing is noted of a store that is too large or whose limits are too low.
    pub fn new(records: u64, fields: usize, budget: Budget) -> Self {
        let groups = records.div_ceil(LEAF * GROUP);
        let groups = if groups > MOST_GROUPS { 0 } else { groups };
        Self { fields, groups: (0..groups).map(|_| OnceLock::new()).collect(), budget }
    }

    /// Where a raw cell of `len` bytes lies, if it was noted.
    #[inline(always)]
    pub fn find(&self, id: u64, field: usize, len: u64) -> Option<u64> {
        let (run, within) = (id / LEAF, id % LEAF);
        let group = self.groups.get((run / GROUP) as usize)?.get()?;
        let run = group.runs.get((run % GROUP) as usize * self.fields + field)?;
        let word = run.compared[(within / 64) as usize].load(Ordering::Acquire);
        let there = word >> (within % 64) & 1 != 0;
        there.then(|| run.first.load(Ordering::Relaxed).wrapping_add(within.wrapping_mul(len)))
    }

    /// Notes a raw cell of `len` bytes that was compared with its checksum; `len` is the same for all of a field.
    pub fn note(&self, id: u64, field: usize, len: u64, offset: u64) {
        let (run, within) = (id / LEAF, id % LEAF);
        let Some(first) = within.checked_mul(len).and_then(|before| offset.checked_sub(before)) else {
            return;
        };
        let Some(slot) = self.groups.get((run / GROUP) as usize).filter(|_| first != 0) else { return };
        // Made before it is kept, as pages of the table are.
        if slot.get().is_none() {
            let runs = GROUP as usize * self.fields;
            let bytes = (runs * size_of::<Run>()) as u64;
            let Ok(_held) = self.budget.bytes(bytes, "the record table") else { return };
            let _ = slot.set(Group { runs: (0..runs).map(|_| Run::default()).collect(), _held });
        }
        let at = (run % GROUP) as usize * self.fields + field;
        let Some(run) = slot.get().and_then(|group| group.runs.get(at)) else { return };
        let known = run.first.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed);
        if known.is_ok() || known == Err(first) {
            run.compared[(within / 64) as usize].fetch_or(1 << (within % 64), Ordering::Release);
        }
    }
}

const _: () = assert!(LEAF == 128, "a run has two words of bits");

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_core::Limits;

    #[test]
    fn a_cell_is_found_where_it_was_noted_and_no_other_is() {
        let records = 3 * LEAF * GROUP + 5;
        let lens = [784, 1, u64::MAX >> 30];
        let runs = Runs::new(records, lens.len(), Budget::default());
        let place = |id: u64, field: usize| 512 + (1 << 50) * field as u64 + id * lens[field];
        let noted = |id: u64, field: usize| (id * 7 + field as u64).is_multiple_of(3);
        for id in 0..records {
            for (field, len) in lens.iter().enumerate().filter(|(field, _)| noted(id, *field)) {
                runs.note(id, field, *len, place(id, field));
            }
        }
        for id in 0..records + 200 {
            for (field, len) in lens.iter().enumerate() {
                let wanted = (id < records && noted(id, field)).then(|| place(id, field));
                assert_eq!(runs.find(id, field, *len), wanted, "{id} {field}");
            }
        }
    }

    #[test]
    fn a_cell_elsewhere_than_its_run_says_is_never_found() {
        let runs = Runs::new(200, 1, Budget::default());
        runs.note(3, 0, 100, 10_300);
        runs.note(4, 0, 100, 10_401);
        runs.note(5, 0, 100, 10_500);
        // Before the file begins, and where nothing is known of a run.
        runs.note(130, 0, 100, 199);
        runs.note(131, 0, 100, 300);
        let found: Vec<_> = (0..200).filter_map(|id| Some((id, runs.find(id, 0, 100)?))).collect();
        assert_eq!(found, [(3, 10_300), (5, 10_500)]);
    }

    #[test]
    fn nothing_is_noted_beyond_the_limits() {
        let tight = Budget::new(Limits::default().with_bytes(100));
        let runs = Runs::new(1000, 1, tight.clone());
        runs.note(3, 0, 100, 10_300);
        assert_eq!((runs.find(3, 0, 100), tight.used()), (None, 0));
        let huge = Runs::new(u64::MAX, 1, Budget::default());
        huge.note(3, 0, 100, 10_300);
        assert!(huge.groups.is_empty() && huge.find(3, 0, 100).is_none());
    }
}
