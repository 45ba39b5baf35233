//! A range of row-major positions as few boxes, in order.

/// First corner and extents.
pub(crate) type Corner = (Vec<u64>, Vec<u64>);

/// The boxes, in row-major order, that positions `from..to` of an array of this shape make: at most two for each axis but
/// the last, and one.
pub(crate) fn boxes(shape: &[u64], from: u64, to: u64) -> Vec<Corner> {
    let mut out = Vec::new();
    if shape.is_empty() {
        // A single frame.
        out.extend((from < to).then(|| (Vec::new(), Vec::new())));
    } else if from < to {
        split(shape, from, to, &mut Vec::new(), &mut out);
    }
    out
}

fn split(shape: &[u64], from: u64, to: u64, outer: &mut Vec<u64>, out: &mut Vec<Corner>) {
    let mut whole = |first: u64, count: u64, outer: &[u64]| {
        let mut start = outer.to_vec();
        start.push(first);
        start.resize(outer.len() + shape.len(), 0);
        let mut counts = vec![1; outer.len()];
        counts.push(count);
        counts.extend_from_slice(&shape[1..]);
        out.push((start, counts));
    };
    let inner: u64 = shape[1..].iter().product();
    if inner == 1 {
        return whole(from, to - from, outer);
    }
    let (first, last) = (from / inner, (to - 1) / inner);
    let (head, tail) = (from % inner, to - last * inner);
    if head == 0 && tail == inner {
        return whole(first, last - first + 1, outer);
    }
    if first == last {
        outer.push(first);
        split(&shape[1..], head, tail, outer, out);
        outer.pop();
        return;
    }
    let mut begin = first;
    if head > 0 {
        outer.push(first);
        split(&shape[1..], head, inner, outer, out);
        outer.pop();
        begin += 1;
    }
    let end = if tail < inner { last } else { last + 1 };
    if begin < end {
        let mut start = outer.clone();
        start.push(begin);
        start.resize(outer.len() + shape.len(), 0);
        let mut counts = vec![1; outer.len()];
        counts.push(end - begin);
        counts.extend_from_slice(&shape[1..]);
        out.push((start, counts));
    }
    if tail < inner {
        outer.push(last);
        split(&shape[1..], 0, tail, outer, out);
        outer.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_frame_is_one_box_without_axes() {
        assert_eq!(boxes(&[], 0, 1), [(Vec::new(), Vec::new())]);
        assert_eq!(boxes(&[], 0, 0), []);
    }

    /// Positions of a box, row by row.
    fn positions(shape: &[u64], (start, count): &Corner) -> Vec<u64> {
        let n: u64 = count.iter().product();
        (0..n)
            .map(|mut i| {
                let mut at = vec![0; shape.len()];
                for axis in (0..shape.len()).rev() {
                    at[axis] = start[axis] + i % count[axis];
                    i /= count[axis];
                }
                at.iter().zip(shape).fold(0, |flat, (p, side)| flat * side + p)
            })
            .collect()
    }

    #[test]
    fn boxes_hold_exactly_the_range_in_order() {
        for shape in [&[7_u64][..], &[3, 4], &[2, 3, 4], &[2, 1, 3], &[1, 1, 5], &[3, 2, 1], &[1]] {
            let total: u64 = shape.iter().product();
            for from in 0..=total {
                for to in from..=total {
                    let found: Vec<u64> =
                        boxes(shape, from, to).iter().flat_map(|b| positions(shape, b)).collect();
                    assert!(found.into_iter().eq(from..to), "{shape:?} {from}..{to}");
                    assert!(boxes(shape, from, to).len() < 2 * shape.len());
                }
            }
        }
    }
}
