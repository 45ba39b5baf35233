//! Heap blocks kept after they were read, verified and decoded: looking up names one by one meets the same few blocks.

use super::FileSpace;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use tensilo_core::Result;
use tensilo_core::limits::Charge;

/// Blocks are dropped once more bytes than this are kept.
const KEPT: usize = 16 << 20;

/// What a block was verified as: address, length, and two numbers of the structure's own.
pub(crate) type BlockKey = [u64; 4];

/// The blocks kept for one file.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<BlockKey, Arc<Block>>,
    bytes: usize,
}

/// A verified block in memory.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    at: u64,
    _charge: Charge,
}

impl Block {
    pub(crate) fn new(bytes: Vec<u8>, charge: Charge, at: u64) -> Self {
        Self { bytes, at, _charge: charge }
    }

    /// Absolute offset of the first byte, or of what it was decoded from.
    pub(crate) fn offset(&self) -> u64 {
        self.at
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl FileSpace {
    /// The block that was kept under `key`, or what `load` returns, which is kept from now on.
    pub(crate) fn block(&self, key: BlockKey, load: impl FnOnce() -> Result<Block>) -> Result<Arc<Block>> {
        let cache = &self.inner.blocks.0;
        if let Some(block) = cache.lock().unwrap_or_else(PoisonError::into_inner).blocks.get(&key) {
            return Ok(block.clone());
        }
        // Loaded without the lock: two threads may load the same block, which harms nobody.
        let block = Arc::new(load()?);
        let mut kept = cache.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes > KEPT {
            kept.blocks.clear();
            kept.bytes = 0;
        }
        kept.bytes = kept.bytes.saturating_add(block.len());
        kept.blocks.insert(key, block.clone());
        Ok(block)
    }
}
