//! Regular selections: start, stride, count and block along each dimension.

use crate::error::{Error, Result};

/// A regular selection: along each dimension `count` blocks of `block` elements, `stride` apart from `start` on.
///
/// A stride may be negative where the block is 1: elements are then wanted in descending order, as with NumPy's
/// negative steps.
///
/// ```
/// use tensilo_core::array::Hyperslab;
/// let rows_2_to_5_of_three_columns = Hyperslab::new(vec![2, 0], vec![3, 3]);
/// assert_eq!(rows_2_to_5_of_three_columns.shape()?, [3, 3]);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hyperslab {
    /// First element along each dimension.
    pub start: Vec<u64>,
    /// Distance from the start of one block to the next.
    pub stride: Vec<i64>,
    /// Number of blocks.
    pub count: Vec<u64>,
    /// Elements in a block.
    pub block: Vec<u64>,
}

impl Hyperslab {
    /// `count` elements from `start` on, without gaps.
    pub fn new(start: Vec<u64>, count: Vec<u64>) -> Self {
        let rank = start.len();
        Self { start, stride: vec![1; rank], count, block: vec![1; rank] }
    }

    /// With this stride.
    #[must_use]
    pub fn with_stride(mut self, stride: Vec<i64>) -> Self {
        self.stride = stride;
        self
    }

    /// With blocks of this extent.
    #[must_use]
    pub fn with_block(mut self, block: Vec<u64>) -> Self {
        self.block = block;
        self
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.start.len()
    }

    /// Shape of what is selected: count × block along each dimension.
    ///
    /// # Errors
    /// `InvalidArgument` when an extent does not fit in 63 bits.
    pub fn shape(&self) -> Result<Vec<u64>> {
        self.count
            .iter()
            .zip(&self.block)
            .map(|(c, b)| {
                c.checked_mul(*b)
                    .filter(|n| *n <= i64::MAX as u64)
                    .ok_or_else(|| Error::invalid(format!("{c} blocks of {b} elements are too many")))
            })
            .collect()
    }

    /// Checks that all parts have the same rank as `shape` and that every element lies inside it.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the dimension.
    pub fn check(&self, shape: &[u64]) -> Result<()> {
        let rank = shape.len();
        if [self.start.len(), self.stride.len(), self.count.len(), self.block.len()] != [rank; 4] {
            return Err(Error::invalid(format!(
                "a selection of {} dimensions does not fit an array of {rank}",
                self.start.len()
            )));
        }
        self.shape()?;
        for (i, extent) in shape.iter().enumerate() {
            self.check_axis(i, *extent).map_err(|e| e.context(format_args!("dimension {i}")))?;
        }
        Ok(())
    }

    fn check_axis(&self, i: usize, extent: u64) -> Result<()> {
        let (start, stride, count, block) = (self.start[i], self.stride[i], self.count[i], self.block[i]);
        if count == 0 || block == 0 {
            return Ok(());
        }
        if count > 1 && (stride == 0 || (stride > 0 && stride.unsigned_abs() < block)) {
            return Err(Error::invalid(format!("blocks of {block} elements overlap at stride {stride}")));
        }
        if count > 1 && stride < 0 && block != 1 {
            return Err(Error::invalid("a negative stride needs blocks of one element"));
        }
        let reach = (count - 1).checked_mul(stride.unsigned_abs());
        let inside = if stride >= 0 || count == 1 {
            reach
                .filter(|_| count > 1)
                .or((count == 1).then_some(0))
                .and_then(|r| r.checked_add(start))
                .and_then(|last| last.checked_add(block))
                .is_some_and(|end| end <= extent)
        } else {
            start < extent && reach.is_some_and(|r| r <= start)
        };
        if inside {
            Ok(())
        } else {
            Err(Error::invalid(format!(
                "start {start}, stride {stride}, count {count}, block {block} passes the extent of {extent}"
            )))
        }
    }
}
