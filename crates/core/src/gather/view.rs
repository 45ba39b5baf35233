//! Some records of a store, in another order.

use super::{FieldBuffer, Gather, Locality, Schema, StoreFingerprint, check_ids};
use crate::error::Result;
use crate::progress::Monitor;
use crate::threads::Threads;
use std::sync::Arc;

/// The records of a store that a list names, in the list's order; an id of the view is a position in the list.
#[derive(Debug, Clone)]
pub struct View {
    store: Arc<dyn Gather>,
    ids: Arc<[u64]>,
}

impl View {
    /// Shows these records; ids may repeat.
    ///
    /// # Errors
    /// `InvalidArgument` for an id that does not exist.
    pub fn new(store: Arc<dyn Gather>, ids: impl Into<Arc<[u64]>>) -> Result<Self> {
        let ids = ids.into();
        check_ids(&ids, store.len())?;
        Ok(Self { store, ids })
    }

    fn translate(&self, ids: &[u64]) -> Result<Vec<u64>> {
        check_ids(ids, self.len())?;
        Ok(ids.iter().map(|id| self.ids[*id as usize]).collect())
    }
}

impl Gather for View {
    fn schema(&self) -> &Schema {
        self.store.schema()
    }

    fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        let bytes: Vec<u8> = self.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        Ok(StoreFingerprint::new("view").with_store(self.store.fingerprint()?).with(&bytes))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        self.store.lengths(field, &self.translate(ids)?, steps)
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.store.gather_into(&self.translate(ids)?, into, threads, monitor)
    }

    /// That of the store where the list runs through its blocks in order, else none.
    fn locality(&self) -> Locality {
        let block = self.store.locality().block.max(1);
        let aligned = self.ids.iter().enumerate().all(|(i, id)| *id % block == i as u64 % block)
            && self.ids.windows(2).all(|w| w[0] / block == w[1] / block || w[1] % block == 0);
        if aligned { Locality { block } } else { Locality::ANY }
    }
}
