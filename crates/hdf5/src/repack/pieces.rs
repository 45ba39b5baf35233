//! Arrays in pieces: runs of whole rows, and chunks that reach over the end.

use tensilo_core::array::Hyperslab;

/// Goes on to the next coordinates, the last dimension fastest; false behind the last ones.
pub(super) fn next(coords: &mut [u64], grid: &[u64]) -> bool {
    for (c, n) in coords.iter_mut().zip(grid).rev() {
        *c += 1;
        if *c < *n {
            return true;
        }
        *c = 0;
    }
    false
}

/// The array in order, in pieces that lie in one run each, of about `most` bytes or one element.
pub(super) fn runs(shape: &[u64], element: u64, most: u64) -> Vec<Hyperslab> {
    if shape.contains(&0) {
        return Vec::new();
    }
    // Dimensions behind `split` are taken whole.
    let mut inner = element.max(1);
    let mut split = shape.len();
    while split > 0 && inner.saturating_mul(shape[split - 1]) <= most {
        inner *= shape[split - 1];
        split -= 1;
    }
    let Some(last) = split.checked_sub(1) else {
        return vec![Hyperslab::new(vec![0; shape.len()], shape.to_vec())];
    };
    let step = (most / inner).max(1);
    let grid: Vec<u64> =
        (0..split).map(|i| if i == last { shape[i].div_ceil(step) } else { shape[i] }).collect();
    let mut coords = vec![0; split];
    let mut all = Vec::new();
    loop {
        let (mut start, mut count) = (vec![0; shape.len()], shape.to_vec());
        for (i, c) in coords.iter().enumerate() {
            (start[i], count[i]) = (*c, 1);
        }
        start[last] = coords[last] * step;
        count[last] = step.min(shape[last] - start[last]);
        all.push(Hyperslab::new(start, count));
        if !next(&mut coords, &grid) {
            return all;
        }
    }
}

/// A whole chunk of extents `dims`: `part`, of extents `extent`, and padding behind it.
pub(super) fn fill_in(part: &[u8], extent: &[u64], dims: &[u64], padding: &[u8]) -> Vec<u8> {
    let size = padding.len();
    let elements = dims.iter().product::<u64>() as usize;
    let mut whole: Vec<u8> = padding.iter().copied().cycle().take(elements * size).collect();
    // Rows along the last dimension lie together in both.
    let row = extent.last().map_or(1, |n| *n as usize) * size;
    let outer = extent.get(..extent.len().saturating_sub(1)).unwrap_or_default();
    for (number, from) in part.chunks_exact(row.max(1)).enumerate() {
        let (mut rest, mut at, mut step) = (number as u64, 0, dims.last().copied().unwrap_or(1));
        for (n, along) in outer.iter().zip(dims).rev() {
            at += rest % n * step;
            rest /= n;
            step *= along;
        }
        let at = at as usize * size;
        whole[at..at + row].copy_from_slice(from);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_each_other_and_cover_the_array() {
        for (shape, most) in
            [(vec![3, 4, 5], 7), (vec![3, 4, 5], 12), (vec![7], 1), (vec![2, 2], 100), (vec![], 1)]
        {
            let mut at = 0;
            for run in runs(&shape, 1, most) {
                let flat = run.start.iter().zip(&shape).fold(0, |n, (s, d)| n * d + s);
                assert_eq!(flat, at, "{shape:?}");
                at += run.count.iter().product::<u64>();
            }
            assert_eq!(at, shape.iter().product::<u64>(), "{shape:?}");
        }
        assert!(runs(&[3, 0], 1, 9).is_empty());
    }

    #[test]
    fn edge_chunks_are_padded_behind_their_rows() {
        assert_eq!(fill_in(&[1, 2, 3, 4], &[2, 2], &[3, 3], &[9]), [1, 2, 9, 3, 4, 9, 9, 9, 9]);
    }
}
