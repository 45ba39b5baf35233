//! Arithmetic on shapes that cannot overflow unnoticed.

use crate::error::{Error, Result};

/// Number of elements of an array of this shape; 1 for rank 0.
///
/// # Errors
/// `Limit` when it does not fit in 63 bits.
pub fn elements(shape: &[u64]) -> Result<u64> {
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1_u64, |n, d| n.checked_mul(*d))
        .filter(|n| *n <= i64::MAX as u64)
        .ok_or_else(|| Error::limit(format!("shape {shape:?} has more elements than fit in 63 bits")))
}

/// Distance in elements between neighbours along each dimension of a row-major array.
///
/// ```
/// assert_eq!(tensilo_core::array::strides(&[4, 3, 5])?, [15, 5, 1]);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
///
/// # Errors
/// `Limit` when a distance does not fit in 63 bits.
pub fn strides(shape: &[u64]) -> Result<Vec<u64>> {
    let mut out = vec![1; shape.len()];
    let mut n = 1_u64;
    for (stride, extent) in out.iter_mut().zip(shape).rev() {
        *stride = n;
        n = n
            .checked_mul((*extent).max(1))
            .filter(|n| *n <= i64::MAX as u64)
            .ok_or_else(|| Error::limit(format!("shape {shape:?} does not fit in 63 bits")))?;
    }
    Ok(out)
}
