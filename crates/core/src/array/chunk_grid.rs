//! The rule that maps elements to chunks.

use super::hyperslab::Hyperslab;
use super::shape::elements;
use crate::error::{Error, Result};

/// An array of a shape cut into chunks of one shape; the last ones along each dimension may be partial.
///
/// ```
/// use tensilo_core::array::ChunkGrid;
/// let grid = ChunkGrid::new(&[10, 7], &[4, 4])?;
/// assert_eq!(grid.counts(), [3, 2]);
/// assert_eq!(grid.extent(&[2, 1]), [2, 3]);
/// assert_eq!(grid.linear(&[2, 1]), 5);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkGrid {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    counts: Vec<u64>,
}

impl ChunkGrid {
    /// Cuts `shape` into chunks of shape `chunk`.
    ///
    /// # Errors
    /// `InvalidArgument` when the ranks differ or a chunk extent is 0; `Limit` when array or chunk have more
    /// elements than fit in 63 bits.
    pub fn new(shape: &[u64], chunk: &[u64]) -> Result<Self> {
        if shape.len() != chunk.len() {
            return Err(Error::invalid(format!(
                "chunk rank {} does not match array rank {}",
                chunk.len(),
                shape.len()
            )));
        }
        if chunk.contains(&0) {
            return Err(Error::invalid(format!("chunk shape {chunk:?} has an extent of 0")));
        }
        elements(shape)?;
        elements(chunk)?;
        let counts = shape.iter().zip(chunk).map(|(s, c)| s.div_ceil(*c)).collect();
        Ok(Self { shape: shape.to_vec(), chunk: chunk.to_vec(), counts })
    }

    /// Shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Shape of a chunk.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// Number of chunks along each dimension.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of chunks.
    pub fn len(&self) -> u64 {
        // Never more than the number of elements, which was checked.
        self.counts.iter().product()
    }

    /// Is the array without elements?
    pub fn is_empty(&self) -> bool {
        self.counts.contains(&0)
    }

    /// Elements of a whole chunk.
    pub fn chunk_elements(&self) -> u64 {
        self.chunk.iter().product()
    }

    /// Do these chunk coordinates lie in the grid?
    pub fn contains(&self, coords: &[u64]) -> bool {
        coords.len() == self.counts.len() && coords.iter().zip(&self.counts).all(|(c, n)| c < n)
    }

    /// Number of a chunk in row-major order; coordinates must lie in the grid.
    pub fn linear(&self, coords: &[u64]) -> u64 {
        coords.iter().zip(&self.counts).fold(0, |n, (c, count)| n * count + c)
    }

    /// Coordinates of a chunk from its number in row-major order.
    pub fn coords(&self, mut linear: u64) -> Vec<u64> {
        let mut out = vec![0; self.counts.len()];
        for (c, n) in out.iter_mut().zip(&self.counts).rev() {
            if *n > 0 {
                *c = linear % n;
                linear /= n;
            }
        }
        out
    }

    /// Extents of the part of a chunk that lies inside the array.
    pub fn extent(&self, coords: &[u64]) -> Vec<u64> {
        self.shape
            .iter()
            .zip(&self.chunk)
            .zip(coords)
            .map(|((s, c), k)| s.saturating_sub(k.saturating_mul(*c)).min(*c))
            .collect()
    }

    /// The part of a chunk that lies inside the array, as a selection.
    pub fn selection(&self, coords: &[u64]) -> Hyperslab {
        let start = coords.iter().zip(&self.chunk).map(|(k, c)| k.saturating_mul(*c)).collect();
        Hyperslab::new(start, self.extent(coords))
    }

    /// Does this chunk pass the edge of the array?
    pub fn is_partial(&self, coords: &[u64]) -> bool {
        self.shape
            .iter()
            .zip(&self.chunk)
            .zip(coords)
            .any(|((s, c), k)| s.saturating_sub(k.saturating_mul(*c)) < *c)
    }
}
