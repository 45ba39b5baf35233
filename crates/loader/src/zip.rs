//! Several stores side by side: record `i` has the fields of every store's record `i`.

use std::sync::Arc;
use tensilo_core::gather::{FieldBuffer, FieldSchema, Gather, Locality, Schema, StoreFingerprint};
use tensilo_core::progress::Monitor;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Result};

/// Stores of one length side by side, such as data and labels.
#[derive(Debug, Clone)]
pub struct Zip {
    stores: Vec<Arc<dyn Gather>>,
    schema: Schema,
    /// Per field its store and its position there.
    places: Vec<(usize, usize)>,
}

impl Zip {
    /// Joins stores; for each, a name that its only field takes. Fields of a store without a name keep theirs.
    ///
    /// # Errors
    /// `InvalidArgument` for stores of different lengths, fields of one name, or a name for a store of several fields.
    pub fn new(named: Vec<(Option<String>, Arc<dyn Gather>)>) -> Result<Self> {
        let (mut fields, mut places, mut stores) = (Vec::new(), Vec::new(), Vec::<Arc<dyn Gather>>::new());
        for (i, (name, store)) in named.into_iter().enumerate() {
            if let Some(first) = stores.first()
                && first.len() != store.len()
            {
                let (a, b) = (first.len(), store.len());
                return Err(Error::invalid(format!("store 0 has {a} records, store {i} has {b}")));
            }
            let own = store.schema().fields();
            if name.is_some() && own.len() != 1 {
                return Err(Error::invalid(format!("one name for the {} fields of store {i}", own.len())));
            }
            for (position, field) in own.iter().enumerate() {
                let name = name.clone().unwrap_or_else(|| field.name.clone());
                fields.push(FieldSchema { name, ..field.clone() });
                places.push((i, position));
            }
            stores.push(store);
        }
        Ok(Self { stores, schema: Schema::new(fields)?, places })
    }

    fn place(&self, field: usize) -> Result<(usize, usize)> {
        self.schema.field(field)?;
        Ok(self.places[field])
    }
}

impl Gather for Zip {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len(&self) -> u64 {
        self.stores.first().map_or(0, |s| s.len())
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        let start = StoreFingerprint::new("zip");
        self.stores.iter().try_fold(start, |f, s| Ok(f.with_store(s.fingerprint()?)))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        let (store, position) = self.place(field)?;
        self.stores[store].lengths(position, ids, steps)
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        tensilo_core::gather::check_buffers(self, ids, into)?;
        for (i, store) in self.stores.iter().enumerate() {
            let mut part = Vec::with_capacity(into.len());
            for buffer in into.iter_mut() {
                let (of, field) = self.place(buffer.field)?;
                if of == i {
                    part.push(FieldBuffer { field, bytes: buffer.bytes, places: buffer.places });
                }
            }
            if !part.is_empty() {
                store.gather_into(ids, &mut part, threads, monitor)?;
            }
        }
        Ok(())
    }

    /// The largest block of the stores, where the others divide it.
    fn locality(&self) -> Locality {
        let blocks = || self.stores.iter().map(|s| s.locality().block.max(1));
        let largest = blocks().max().unwrap_or(1);
        if blocks().all(|b| largest % b == 0) { Locality { block: largest } } else { Locality::ANY }
    }
}
