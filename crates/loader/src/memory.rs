//! Memory for batches, used again: what is given back is handed out before anything new is allocated. When the loader
//! closes its large memory is kept for the next one.

use crate::fork::Home;
use crate::kept;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use tensilo_core::buffer::zeroed_vec;
use tensilo_core::{Budget, Result, limits::Charge};

/// Bytes per unit of allocation, and so the least alignment.
const UNIT: usize = size_of::<u128>();

/// Keeps memory that is not in use.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Mutex<Vec<Vec<u128>>>,
    /// More than so many are not kept.
    most: usize,
    budget: Budget,
    home: Home,
    closed: AtomicBool,
}

/// Bytes for one field of a batch, aligned for every element type; they go back to their pool when dropped.
#[derive(Debug)]
pub struct Memory {
    units: Vec<u128>,
    len: usize,
    pool: Weak<Pool>,
    /// It was not filled since it came from the system: that is cheaper to give back than to keep.
    fresh: bool,
    _charge: Charge,
}

impl Pool {
    pub fn new(most: usize, budget: Budget) -> Arc<Self> {
        Arc::new(Self {
            free: Mutex::default(),
            most,
            budget,
            home: Home::here(),
            closed: AtomicBool::new(false),
        })
    }

    /// Memory of `len` bytes whose contents mean nothing.
    pub fn take(self: &Arc<Self>, len: usize) -> Result<Memory> {
        let charge = self.budget.bytes(len as u64, "a field of a batch")?;
        let needed = len.div_ceil(UNIT);
        let found = {
            let mut free = self.free.lock().unwrap_or_else(|p| p.into_inner());
            // Twice what is needed at most, so that small fields do not hold large memory.
            let fits = |v: &Vec<u128>| v.len() >= needed && v.len() / 2 <= needed;
            free.iter().rposition(fits).map(|i| free.swap_remove(i))
        };
        let (units, fresh) = match found.or_else(|| kept::take(needed)) {
            Some(units) => (units, false),
            None => (zeroed_vec(needed)?, true),
        };
        Ok(Memory { units, len, pool: Arc::downgrade(self), fresh, _charge: charge })
    }

    /// No batch will be made any more: what is there, and what still comes back, is for other loaders.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let free = std::mem::take(&mut *self.free.lock().unwrap_or_else(|p| p.into_inner()));
        free.into_iter().for_each(kept::keep);
    }
}

impl Memory {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.units)[..self.len]
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.units)[..self.len]
    }

    /// All of it was written: it is worth being used again.
    pub(crate) fn filled(&mut self) {
        self.fresh = false;
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.fresh {
            return;
        }
        let units = std::mem::take(&mut self.units);
        let Some(pool) = self.pool.upgrade().filter(|pool| !pool.closed.load(Ordering::Relaxed)) else {
            return kept::keep(units);
        };
        // After a fork a thread that is not here may hold the pool's lock.
        if pool.home.left() {
            return;
        }
        let mut free = pool.free.lock().unwrap_or_else(|p| p.into_inner());
        if free.len() < pool.most {
            free.push(units);
        } else if let Some(smallest) = free.iter_mut().min_by_key(|v| v.len())
            && smallest.len() < units.len()
        {
            *smallest = units;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_given_back_is_used_again_and_no_more_than_allowed_is_kept() {
        let pool = Pool::new(2, Budget::default());
        drop(pool.take(1000).unwrap());
        assert!(pool.free.lock().unwrap().is_empty(), "what was never filled goes back to the system");
        let mut three: Vec<Memory> = (0..3).map(|_| pool.take(1000).unwrap()).collect();
        three.iter_mut().for_each(Memory::filled);
        let addresses: Vec<usize> = three.iter().map(|m| m.bytes().as_ptr().addr()).collect();
        drop(three);
        assert_eq!(pool.free.lock().unwrap().len(), 2);
        let again = pool.take(999).unwrap();
        assert!(addresses.contains(&again.bytes().as_ptr().addr()));
        assert_eq!((again.bytes().len(), again.bytes().as_ptr().addr() % UNIT), (999, 0));
        let small = pool.take(10).unwrap();
        assert!(!addresses.contains(&small.bytes().as_ptr().addr()), "small fields leave large memory alone");
        drop(pool);
        drop(again);
    }
}
