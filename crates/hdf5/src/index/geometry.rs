//! How array-like indexes number the chunks of a dataset: by maximum extents, not by current ones.

use tensilo_core::array::ChunkGrid;

/// Chunk grid and numbering of one dataset.
#[derive(Debug, Clone)]
pub(super) struct Geometry {
    /// Grid of the current extents.
    pub(super) grid: ChunkGrid,
    /// Chunks along each dimension at the maximum extents; `None` where unlimited.
    max: Vec<Option<u64>>,
}

impl Geometry {
    pub(super) fn new(grid: ChunkGrid, max: &[Option<u64>]) -> Self {
        let max = (0..grid.shape().len()).map(|i| {
            let extent = max.get(i).copied().unwrap_or(Some(grid.shape()[i]));
            extent.map(|m| m.div_ceil(grid.chunk()[i]).max(grid.counts()[i]))
        });
        Self { max: max.collect(), grid }
    }

    /// Dimensions from slowest to fastest in the numbering: the unlimited one comes first.
    fn order(&self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        let first = self.max.iter().position(Option::is_none).filter(|_| self.unlimited() == 1);
        first.into_iter().chain((0..self.max.len()).filter(move |i| Some(*i) != first))
    }

    /// Number of unlimited dimensions.
    fn unlimited(&self) -> usize {
        self.max.iter().filter(|m| m.is_none()).count()
    }

    /// Number of a chunk.
    pub(super) fn number(&self, coords: &[u64]) -> Option<u64> {
        let mut number = 0_u64;
        for (place, i) in self.order().enumerate() {
            let count = if place == 0 { 0 } else { self.max[i]? };
            number = number.checked_mul(count)?.checked_add(coords[i])?;
        }
        Some(number)
    }

    /// Coordinates of a chunk from its number; false when no chunk has this number.
    pub(super) fn coords(&self, mut number: u64, coords: &mut [u64]) -> bool {
        let mut order = self.order();
        let Some(first) = order.next() else { return false };
        for i in order.rev() {
            let Some(count) = self.max[i].filter(|n| *n > 0) else { return false };
            coords[i] = number % count;
            number /= count;
        }
        coords[first] = number;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unlimited_dimension_is_the_slowest() {
        let grid = ChunkGrid::new(&[6, 10, 4], &[2, 5, 2]).unwrap();
        let geometry = Geometry::new(grid, &[Some(8), None, Some(4)]);
        // 4 chunks along the first dimension at most, 2 along the last.
        assert_eq!(geometry.number(&[1, 3, 1]), Some(3 * 8 + 2 + 1));
        let mut coords = [0; 3];
        for number in 0..100 {
            assert!(geometry.coords(number, &mut coords));
            assert_eq!(geometry.number(&coords), Some(number));
        }
    }

    #[test]
    fn maximum_extents_count_where_they_are_larger() {
        let grid = ChunkGrid::new(&[4, 4], &[2, 2]).unwrap();
        let geometry = Geometry::new(grid, &[Some(4), Some(20)]);
        assert_eq!(geometry.number(&[1, 1]), Some(11));
    }
}
