//! The guard of every walk over linked structures: each place once, and no more bytes than the file has.
//!
//! Trees and chains in a valid file never share or overlap their nodes. A walk that meets a node a second time, or
//! whose nodes together are longer than the file, is in a cycle or in a file made to keep us busy.

use std::collections::HashSet;
use tensilo_core::{Budget, Error, Result};

/// What one walk has visited.
#[derive(Debug)]
pub struct Visits {
    seen: HashSet<u64>,
    bytes: u64,
    file_len: u64,
    budget: Budget,
}

impl Visits {
    pub(super) fn new(file_len: u64, budget: Budget) -> Self {
        Self { seen: HashSet::new(), bytes: 0, file_len, budget }
    }

    /// Notes that `len` bytes at the absolute offset `at` are visited now.
    ///
    /// # Errors
    /// `Corrupt` when they were visited before, or all visits together are longer than the file; `Limit` when there
    /// are more visits than the budget allows items.
    pub fn enter(&mut self, at: u64, len: u64, what: &str) -> Result<()> {
        if !self.seen.insert(at) {
            return Err(
                Error::corrupt(format!("{what}: reached a second time, the structure is a cycle")).at(at)
            );
        }
        self.bytes = self.bytes.saturating_add(len);
        if self.bytes > self.file_len {
            return Err(
                Error::corrupt(format!("{what}: its parts overlap, they are longer than the file")).at(at)
            );
        }
        self.budget.items(self.seen.len() as u64, what)
    }
}
