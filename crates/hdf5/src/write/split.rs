//! Split: the grid of chunks over a shape, and the bytes of one chunk cut out of a row-major array.

use tensilo_core::{Error, Result};

/// Number of elements of a shape.
///
/// # Errors
/// `InvalidArgument` when it does not fit in 63 bits.
pub(crate) fn product(shape: &[u64]) -> Result<u64> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let all = shape.iter().try_fold(1_u64, |n, d| n.checked_mul(*d)).filter(|n| *n <= i64::MAX as u64);
    all.ok_or_else(|| Error::invalid(format!("shape {shape:?} has more elements than fit in 63 bits")))
}

/// A row-major array cut into chunks.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk: Vec<u64>,
    pub(crate) element_size: usize,
    /// Number of chunks along each dimension.
    pub(crate) counts: Vec<u64>,
}

impl Grid {
    pub(crate) fn new(shape: &[u64], chunk: &[u64], element_size: usize) -> Self {
        let counts = shape.iter().zip(chunk).map(|(s, c)| s.div_ceil(*c)).collect();
        Self { shape: shape.to_vec(), chunk: chunk.to_vec(), element_size, counts }
    }

    /// Number of chunks.
    pub(crate) fn chunks(&self) -> Result<u64> {
        product(&self.counts)
    }

    /// Coordinates of a chunk by its row-major number.
    pub(crate) fn coords(&self, mut number: u64) -> Vec<u64> {
        let mut coords = vec![0; self.counts.len()];
        for (c, n) in coords.iter_mut().zip(&self.counts).rev() {
            *c = number % n;
            number /= n;
        }
        coords
    }

    /// Does the chunk reach over the end of the array?
    pub(crate) fn is_edge(&self, coords: &[u64]) -> bool {
        coords.iter().zip(&self.chunk).zip(&self.shape).any(|((at, c), s)| (at + 1) * c > *s)
    }

    /// The bytes of one chunk of `array`: a part of it where they lie together, else gathered in `scratch`, with
    /// `fill` where the chunk reaches over the end.
    pub(crate) fn cut<'a>(
        &self,
        array: &'a [u8],
        coords: &[u64],
        fill: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let rank = self.shape.len();
        let start: Vec<u64> = coords.iter().zip(&self.chunk).map(|(at, c)| at * c).collect();
        let extent: Vec<u64> =
            (0..rank).map(|d| self.chunk[d].min(self.shape[d].saturating_sub(start[d]))).collect();
        // Behind dimension `split` the chunk covers the array, so that elements of both lie in the same order.
        let covers = |d: usize| extent[d] == self.shape[d] && extent[d] == self.chunk[d];
        let split = (0..rank).rev().find(|d| !covers(*d)).unwrap_or(0);
        let inner: u64 = self.shape[split + 1..].iter().product::<u64>() * self.element_size as u64;
        let run = (extent[split] * inner) as usize;
        let at = |dims: &[u64], index: &dyn Fn(usize) -> u64| -> usize {
            let lead = (0..=split).fold(0, |n, d| n * dims[d] + index(d));
            (lead * inner) as usize
        };
        let edge = extent != self.chunk;
        if !edge && extent[..split].iter().all(|e| *e == 1) {
            let from = at(&self.shape, &|d| start[d]);
            return &array[from..from + run];
        }
        let size = self.chunk.iter().product::<u64>() as usize * self.element_size;
        scratch.clear();
        if edge {
            fill_with(scratch, fill, size);
        } else {
            scratch.resize(size, 0);
        }
        let mut index = vec![0; split];
        loop {
            let here = |d: usize| index.get(d).copied().unwrap_or(0);
            let from = at(&self.shape, &|d| start[d] + here(d));
            let to = at(&self.chunk, &here);
            scratch[to..to + run].copy_from_slice(&array[from..from + run]);
            let Some(d) = (0..split).rev().find(|d| index[*d] + 1 < extent[*d]) else { break };
            index[d] += 1;
            index[d + 1..].fill(0);
        }
        scratch
    }
}

/// Fills a buffer with repetitions of one element.
pub(crate) fn fill_with(buffer: &mut Vec<u8>, element: &[u8], size: usize) {
    if element.iter().all(|b| *b == 0) {
        buffer.resize(size, 0);
        return;
    }
    buffer.extend_from_slice(&element[..element.len().min(size)]);
    while buffer.len() < size {
        let more = buffer.len().min(size - buffer.len());
        buffer.extend_from_within(..more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element by element, with no thought of speed.
    fn slow(grid: &Grid, array: &[u8], coords: &[u64], fill: u8) -> Vec<u8> {
        let rank = grid.shape.len();
        let n = product(&grid.chunk).unwrap();
        (0..n)
            .map(|mut k| {
                let mut inside = vec![0; rank];
                for d in (0..rank).rev() {
                    inside[d] = k % grid.chunk[d] + coords[d] * grid.chunk[d];
                    k /= grid.chunk[d];
                }
                if inside.iter().zip(&grid.shape).any(|(i, s)| i >= s) {
                    return fill;
                }
                array[(0..rank).fold(0, |at, d| at * grid.shape[d] + inside[d]) as usize]
            })
            .collect()
    }

    #[test]
    fn chunks_are_cut_as_element_by_element() {
        let shapes: [(&[u64], &[u64]); 8] = [
            (&[7], &[3]),
            (&[6], &[3]),
            (&[4, 5], &[2, 5]),
            (&[4, 5], &[4, 2]),
            (&[5, 4, 3], &[2, 4, 3]),
            (&[5, 4, 3], &[1, 2, 3]),
            (&[3, 1, 4, 2], &[2, 1, 3, 2]),
            (&[2, 2, 2], &[3, 3, 3]),
        ];
        for (shape, chunk) in shapes {
            let grid = Grid::new(shape, chunk, 1);
            let array: Vec<u8> = (1..=product(shape).unwrap() as u8).collect();
            let mut scratch = vec![99; 5];
            for number in 0..grid.chunks().unwrap() {
                let coords = grid.coords(number);
                let expected = slow(&grid, &array, &coords, 0xee);
                assert_eq!(
                    grid.cut(&array, &coords, &[0xee], &mut scratch),
                    expected,
                    "{shape:?} {chunk:?} {coords:?}"
                );
            }
        }
    }

    #[test]
    fn whole_rows_are_not_copied() {
        let grid = Grid::new(&[4, 3, 2], &[2, 3, 2], 2);
        let array: Vec<u8> = (0..48).collect();
        let mut scratch = Vec::new();
        let cut = grid.cut(&array, &[1, 0, 0], &[0, 0], &mut scratch);
        assert_eq!(cut.as_ptr(), array[24..].as_ptr());
    }

    #[test]
    fn filling_repeats_the_element() {
        let mut buffer = Vec::new();
        fill_with(&mut buffer, &[1, 2, 3], 12);
        assert_eq!(buffer, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]);
    }
}
