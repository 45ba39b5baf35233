//! A dataset's whole chunk index in memory: one slot for each stored chunk, sorted by chunk number.

use super::{ChunkEntry, Stored};
use crate::format::Address;
use tensilo_core::array::ChunkGrid;
use tensilo_core::limits::Charge;
use tensilo_core::{Budget, Error, Result};

/// One stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Number of the chunk in the grid's row-major order.
    pub number: u64,
    /// Where it is stored.
    pub stored: Stored,
}

/// All stored chunks of a dataset.
#[derive(Debug)]
pub struct ChunkTable {
    slots: Vec<Slot>,
    _charge: Charge,
}

/// Slots charged at a time.
const STEP: usize = 4096;

impl ChunkTable {
    pub(super) fn builder(budget: Budget) -> Builder {
        Builder { slots: Vec::new(), charges: Vec::new(), budget }
    }

    /// All slots, by chunk number.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Finds a chunk by its number; `None` when it was never written.
    pub fn get(&self, number: u64) -> Option<Stored> {
        // Where every chunk is stored, its slot is its number.
        let direct = usize::try_from(number).ok().and_then(|i| self.slots.get(i));
        if let Some(slot) = direct.filter(|s| s.number == number) {
            return Some(slot.stored);
        }
        let at = self.slots.binary_search_by_key(&number, |s| s.number).ok()?;
        Some(self.slots[at].stored)
    }

    /// The chunks with their coordinates.
    pub fn entries(&self, grid: &ChunkGrid) -> Vec<ChunkEntry> {
        let entry = |s: &Slot| ChunkEntry {
            coords: grid.coords(s.number),
            address: s.stored.address,
            size: s.stored.size,
            mask: s.stored.mask,
        };
        self.slots.iter().map(entry).collect()
    }
}

pub(super) struct Builder {
    slots: Vec<Slot>,
    charges: Vec<Charge>,
    budget: Budget,
}

impl Builder {
    pub(super) fn push(&mut self, number: u64, stored: Stored) -> Result<()> {
        if self.slots.len().is_multiple_of(STEP) {
            self.budget.items(self.slots.len() as u64, "chunks")?;
            self.charges.push(self.budget.bytes((STEP * size_of::<Slot>()) as u64, "the chunk table")?);
        }
        self.slots.push(Slot { number, stored });
        Ok(())
    }

    pub(super) fn finish(mut self, grid: &ChunkGrid) -> Result<ChunkTable> {
        if !self.slots.is_sorted_by_key(|s| s.number) {
            self.slots.sort_unstable_by_key(|s| s.number);
        }
        if let Some(pair) = self.slots.windows(2).find(|p| p[0].number == p[1].number) {
            let Address(at) = pair[1].stored.address;
            let coords = grid.coords(pair[0].number);
            return Err(Error::corrupt(format!("chunk {coords:?} is in the index more than once")).at(at));
        }
        self.slots.shrink_to_fit();
        // What was charged in steps is given back for the exact size.
        self.charges.clear();
        let bytes = (self.slots.len() * size_of::<Slot>()) as u64;
        let charge = self.budget.bytes(bytes, "the chunk table")?;
        Ok(ChunkTable { slots: self.slots, _charge: charge })
    }
}
