//! Global heap collections, kept after they were read: neighbouring elements point into the same collection.

use super::FileSpace;
use crate::format::Address;
use crate::format::heap::global::{self, HeapObject};
use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, PoisonError};
use tensilo_core::limits::Charge;
use tensilo_core::{Error, Result};

/// Collections are dropped once more bytes than this are kept.
const KEPT: usize = 32 << 20;

/// The collections kept for one file.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    collections: HashMap<u64, Arc<Collection>>,
    bytes: usize,
}

#[derive(Debug)]
struct Collection {
    bytes: Vec<u8>,
    objects: HashMap<u16, Range<usize>>,
    at: u64,
    _charge: Charge,
}

/// One object of the global heap.
#[derive(Debug, Clone)]
pub struct GlobalHeapObject {
    collection: Arc<Collection>,
    range: Range<usize>,
}

impl GlobalHeapObject {
    /// Absolute offset of the first byte.
    pub fn offset(&self) -> u64 {
        self.collection.at.saturating_add(self.range.start as u64)
    }
}

impl Deref for GlobalHeapObject {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.collection.bytes.get(self.range.clone()).unwrap_or(&[])
    }
}

impl FileSpace {
    /// Reads object `index` of the global heap collection at `address`; a collection is read once while it is kept.
    ///
    /// # Errors
    /// `Corrupt` when the collection is damaged or has no such object.
    pub fn global_heap_object(&self, address: Address, index: u32) -> Result<GlobalHeapObject> {
        let collection = self.collection(address)?;
        let range = u16::try_from(index).ok().and_then(|i| collection.objects.get(&i).cloned());
        let range = range.ok_or_else(|| {
            self.locate(
                Error::corrupt(format!("global heap collection: no object {index}")).at(collection.at),
            )
        })?;
        Ok(GlobalHeapObject { collection, range })
    }

    /// Lists the objects of the global heap collection at `address`, and its length in bytes.
    ///
    /// # Errors
    /// `Corrupt` when the collection is damaged.
    pub fn global_heap_objects(&self, address: Address) -> Result<(u64, Vec<HeapObject>)> {
        let bytes = self.collection_bytes(address)?;
        let objects = global::objects(&bytes, bytes.offset(), self.sizes()).map_err(|e| self.locate(e))?;
        Ok((bytes.len() as u64, objects))
    }

    fn collection_bytes(&self, address: Address) -> Result<super::Bytes<'_>> {
        const WHAT: &str = "global heap collection";
        let sizes = self.sizes();
        let head = self.read(address, global::head_len(sizes), WHAT)?;
        let len = global::collection_len(&head, head.offset(), sizes).map_err(|e| self.locate(e))?;
        self.read(address, len, WHAT)
    }

    fn collection(&self, address: Address) -> Result<Arc<Collection>> {
        let cache = &self.inner.global_heap.0;
        if let Some(c) = cache.lock().unwrap_or_else(PoisonError::into_inner).collections.get(&address.0) {
            return Ok(c.clone());
        }
        // Read without the lock: two threads may read the same collection, which harms nobody.
        let bytes = self.collection_bytes(address)?;
        let at = bytes.offset();
        let objects = global::objects(&bytes, at, self.sizes()).map_err(|e| self.locate(e))?;
        let charge = self.budget().bytes(bytes.len() as u64, "global heap collection")?;
        let collection = Arc::new(Collection {
            bytes: bytes.to_vec(),
            objects: objects.into_iter().map(|o| (o.index, o.data)).collect(),
            at,
            _charge: charge,
        });
        let mut kept = cache.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes > KEPT {
            kept.collections.clear();
            kept.bytes = 0;
        }
        kept.bytes = kept.bytes.saturating_add(collection.bytes.len());
        kept.collections.insert(address.0, collection.clone());
        Ok(collection)
    }
}
