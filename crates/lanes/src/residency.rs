//! Which parts of a store are in memory, and the wish that they be or not be.

use crate::store::Store;
use std::ops::Range;
use tensilo_core::{Error, Result};

/// How a store, or a part of it, will be used. Advice changes speed and memory, never a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// From front to back: read ahead far.
    Sequential,
    /// In no order: read no neighbours.
    Random,
    /// Soon: start reading now.
    WillNeed,
    /// Not again soon: give the memory back, in this process and in the page cache.
    DropCached,
}

impl Store {
    /// Gives advice on the whole store; a store that is no map ignores it.
    ///
    /// # Errors
    /// None today; a system that refuses advice may say so.
    pub fn advise(&self, advice: Advice) -> Result<()> {
        if let Some(map) = &self.0.map {
            match advice {
                Advice::Sequential => map.advise_sequential(),
                Advice::Random => map.advise_random(),
                Advice::WillNeed => map.will_need(0..u64::MAX),
                Advice::DropCached => map.drop_cached(0..u64::MAX),
            }
        }
        Ok(())
    }

    /// Gives advice on slabs `range` of a lane; `Sequential` and `Random` count for the whole store.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`.
    pub fn advise_slabs(&self, name: &str, range: Range<u64>, advice: Advice) -> Result<()> {
        let lane = self.0.placement.lane(name)?;
        if range.end > lane.slabs {
            return Err(Error::invalid(format!(
                "slabs {range:?} are out of range: the lane has {}",
                lane.slabs
            ))
            .in_object(name));
        }
        let Some(map) = &self.0.map else { return Ok(()) };
        let mut k = range.start;
        while k < range.end {
            let (offset, run) = lane.locate(k)?;
            let n = run.min(range.end - k);
            let bytes = offset..offset + n * lane.slab_bytes;
            match advice {
                Advice::WillNeed => map.will_need(bytes),
                Advice::DropCached => map.drop_cached(bytes),
                Advice::Sequential | Advice::Random => return self.advise(advice),
            }
            k += n;
        }
        Ok(())
    }

    /// Bytes of a lane that the page cache holds now, in whole pages; all of it for a store in memory.
    ///
    /// # Errors
    /// `NotFound`; `Io` when the system does not tell.
    pub fn resident_bytes(&self, name: &str) -> Result<u64> {
        let lane = self.0.placement.lane(name)?;
        let mut total = 0;
        for e in &lane.extents {
            let range = e.offset..e.offset + e.slabs * lane.slab_bytes;
            total += match &self.0.map {
                Some(map) => map.resident_bytes(range)?,
                None => range.end - range.start,
            };
        }
        Ok(total)
    }
}
