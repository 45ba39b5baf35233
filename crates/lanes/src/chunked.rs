//! Slabs that are stored chunk by chunk, so that a small region of a large slab touches few pages.
//!
//! The chunks of a slab follow one another in C order of the chunk grid; every chunk is whole, and what it has
//! outside the slab is zero. There is no index: a chunk's place follows from its coordinates.

use crate::schema::LaneSpec;
use std::ops::Range;
use tensilo_core::{Error, Result};

/// Calls `visit(chunk number, offset in the chunk, offset in the region, elements)` for every run of elements of
/// `region` that lies together in both.
fn runs(spec: &LaneSpec, region: &[Range<u64>], mut visit: impl FnMut(u64, u64, u64, u64)) {
    let rank = spec.shape.len();
    if region.iter().any(Range::is_empty) || rank == 0 {
        return;
    }
    let grid: Vec<u64> = spec.shape.iter().zip(&spec.chunk).map(|(s, c)| s.div_ceil(*c)).collect();
    let mut at: Vec<u64> = region.iter().map(|r| r.start).collect();
    loop {
        // One row of the region, cut at chunk borders.
        let (mut chunk_row, mut inner_row, mut out) = (0, 0, 0);
        for d in 0..rank - 1 {
            chunk_row = (chunk_row + at[d] / spec.chunk[d]) * grid[d + 1];
            inner_row = (inner_row + at[d] % spec.chunk[d]) * spec.chunk[d + 1];
            out = (out + at[d] - region[d].start) * (region[d + 1].end - region[d + 1].start);
        }
        let last = rank - 1;
        let mut x = region[last].start;
        while x < region[last].end {
            let inner = x % spec.chunk[last];
            let n = (spec.chunk[last] - inner).min(region[last].end - x);
            visit(chunk_row + x / spec.chunk[last], inner_row + inner, out + x - region[last].start, n);
            x += n;
        }
        let mut d = last;
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            at[d] += 1;
            if at[d] < region[d].end {
                break;
            }
            at[d] = region[d].start;
        }
    }
}

fn chunk_elems(spec: &LaneSpec) -> u64 {
    spec.chunk.iter().product()
}

/// Puts a slab in C order into chunk order.
pub(crate) fn to_stored<T: Copy + Default>(spec: &LaneSpec, slab: &[T]) -> Result<Vec<T>> {
    let n =
        usize::try_from(spec.stored_elems()?).map_err(|_| Error::limit("slab too large for this machine"))?;
    let mut stored = vec![T::default(); n];
    let whole: Vec<_> = spec.shape.iter().map(|s| 0..*s).collect();
    let per_chunk = chunk_elems(spec);
    runs(spec, &whole, |chunk, inner, out, n| {
        let to = (chunk * per_chunk + inner) as usize;
        stored[to..to + n as usize].copy_from_slice(&slab[out as usize..(out + n) as usize]);
    });
    Ok(stored)
}

/// Copies a region of a stored slab into `out`, in C order; a lane without chunks is one chunk.
pub(crate) fn read_region<T: Copy>(
    spec: &LaneSpec,
    stored: &[T],
    region: &[Range<u64>],
    out: &mut [T],
) -> Result<()> {
    if region.len() != spec.shape.len()
        || region.iter().zip(&spec.shape).any(|(r, s)| r.start > r.end || r.end > *s)
    {
        return Err(Error::invalid(format!(
            "region {region:?} does not fit a slab of shape {:?}",
            spec.shape
        ))
        .in_object(&spec.name));
    }
    let wanted = region.iter().map(|r| r.end - r.start).product::<u64>();
    if out.len() as u64 != wanted {
        return Err(Error::invalid(format!(
            "a region of {wanted} values does not fill a buffer of {}",
            out.len()
        )));
    }
    let unchunked;
    let spec = if spec.chunk.is_empty() {
        unchunked = spec.clone().with_chunk(&spec.shape);
        &unchunked
    } else {
        spec
    };
    let per_chunk = chunk_elems(spec);
    runs(spec, region, |chunk, inner, to, n| {
        let from = (chunk * per_chunk + inner) as usize;
        out[to as usize..(to + n) as usize].copy_from_slice(&stored[from..from + n as usize]);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane_type::LaneType;

    #[test]
    fn every_region_of_a_chunked_slab_reads_as_from_c_order() {
        let spec =
            LaneSpec::slab("a", LaneType::U16, 5 * 7 * 3).with_shape(&[5, 7, 3]).with_chunk(&[2, 3, 2]);
        let slab: Vec<u16> = (0..105).collect();
        let stored = to_stored(&spec, &slab).unwrap();
        assert_eq!(stored.len(), 6 * 9 * 4);
        for (a, b, c) in [(0..5, 0..7, 0..3), (1..2, 2..6, 1..3), (4..5, 6..7, 2..3), (2..2, 0..7, 0..3)] {
            let mut expected = Vec::new();
            for i in a.clone() {
                for j in b.clone() {
                    for k in c.clone() {
                        expected.push(slab[((i * 7 + j) * 3 + k) as usize]);
                    }
                }
            }
            let mut found = vec![0; expected.len()];
            read_region(&spec, &stored, &[a, b, c], &mut found).unwrap();
            assert_eq!(found, expected);
        }
    }
}
