//! Slabs and windows as ndarray views, by feature `ndarray`.

#![cfg(feature = "ndarray")]

use crate::lane_type::LaneElement;
use crate::store::Lane;
use ndarray::{ArrayView1, ArrayView2};
use tensilo_core::{Error, Result};

/// Shapes the slice of a window as `[slabs, elems]`.
pub(crate) fn window<T>(values: &[T], start: u64, end: u64) -> Result<ArrayView2<'_, T>> {
    let slabs = (end - start) as usize;
    let elems = values.len().checked_div(slabs).unwrap_or(0);
    ArrayView2::from_shape((slabs, elems), values).map_err(|e| Error::invalid(e.to_string()))
}

impl<T: LaneElement> Lane<T> {
    /// Slab `k` as an array of one dimension.
    ///
    /// # Errors
    /// As [`slab`](Self::slab).
    pub fn slab_view(&self, k: u64) -> Result<ArrayView1<'_, T>> {
        self.slab(k).map(Into::into)
    }

    /// Slabs `start..end` as an array `[slabs, elems]`.
    ///
    /// # Errors
    /// As [`window`](Self::window).
    pub fn window_view(&self, start: u64, end: u64) -> Result<ArrayView2<'_, T>> {
        window(self.window(start, end)?, start, end)
    }
}
