//! Several stores as one.

use super::{FieldBuffer, Gather, Locality, Places, Schema, StoreFingerprint, check_buffers, check_lengths};
use crate::error::{Error, Result};
use crate::progress::Monitor;
use crate::threads::Threads;
use std::sync::Arc;

/// The records of several stores, one store after the other.
#[derive(Debug, Clone)]
pub struct Concat {
    stores: Vec<Arc<dyn Gather>>,
    /// Where each store's ids end.
    ends: Vec<u64>,
}

impl Concat {
    /// Joins stores of one schema.
    ///
    /// # Errors
    /// `InvalidArgument` without a store, or when schemas differ; `Limit` when there are 2^64 records.
    pub fn new(stores: Vec<Arc<dyn Gather>>) -> Result<Self> {
        let Some(first) = stores.first() else { return Err(Error::invalid("no store to join")) };
        if let Some(i) = stores.iter().position(|s| s.schema() != first.schema()) {
            return Err(Error::invalid(format!("store {i} has other fields than store 0")));
        }
        let mut ends = Vec::with_capacity(stores.len());
        let mut end = 0_u64;
        for store in &stores {
            end = end.checked_add(store.len()).ok_or_else(|| Error::limit("more than 2^64 records"))?;
            ends.push(end);
        }
        Ok(Self { stores, ends })
    }

    /// The store of an id that exists, and the id there.
    fn locate(&self, id: u64) -> (usize, u64) {
        let store = self.ends.partition_point(|end| *end <= id);
        (store, id - store.checked_sub(1).map_or(0, |before| self.ends[before]))
    }

    /// Calls `each` per store with ids there and their positions in the list; the ids were checked.
    fn split(
        &self,
        ids: &[u64],
        mut each: impl FnMut(&dyn Gather, &[u64], &[usize]) -> Result<()>,
    ) -> Result<()> {
        let mut parts: Vec<(Vec<u64>, Vec<usize>)> = vec![Default::default(); self.stores.len()];
        for (i, id) in ids.iter().enumerate() {
            let (store, local) = self.locate(*id);
            parts[store].0.push(local);
            parts[store].1.push(i);
        }
        for (store, (local, positions)) in self.stores.iter().zip(&parts) {
            if !local.is_empty() {
                each(&**store, local, positions)?;
            }
        }
        Ok(())
    }
}

impl Gather for Concat {
    fn schema(&self) -> &Schema {
        self.stores[0].schema()
    }

    fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        self.stores
            .iter()
            .try_fold(StoreFingerprint::new("concat"), |f, s| Ok(f.with_store(s.fingerprint()?)))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        check_lengths(self, field, ids, steps)?;
        self.split(ids, |store, local, positions| {
            let mut part = vec![0; local.len()];
            store.lengths(field, local, &mut part)?;
            for (position, n) in positions.iter().zip(part) {
                steps[*position] = n;
            }
            Ok(())
        })
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        // As a whole first: places of different stores must not overlap either.
        check_buffers(self, ids, into)?;
        self.split(ids, |store, local, positions| {
            let starts: Vec<Vec<u64>> = into
                .iter()
                .map(|buffer| positions.iter().map(|i| Ok(buffer.range(*i, 0)?.start as u64)).collect())
                .collect::<Result<_>>()?;
            let mut part: Vec<FieldBuffer<'_>> = into
                .iter_mut()
                .zip(&starts)
                .map(|(b, s)| FieldBuffer { field: b.field, bytes: b.bytes, places: Places::Starts(s) })
                .collect();
            store.gather_into(local, &mut part, threads, monitor)
        })
    }

    /// The largest block of the stores, if all begin at a multiple of their own.
    fn locality(&self) -> Locality {
        let blocks = || self.stores.iter().map(|s| s.locality().block.max(1));
        let largest = blocks().max().unwrap_or(1);
        let aligned = blocks().all(|b| largest % b == 0)
            && self.ends.iter().rev().skip(1).all(|end| end % largest == 0);
        if aligned { Locality { block: largest } } else { Locality::ANY }
    }
}
