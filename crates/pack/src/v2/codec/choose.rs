//! Which class each unit of a block belongs to, from its sums and its extremes.

use super::count::Count;
use super::model::{EVEN, MEANS, nearest};
use super::placement::GROUP;

/// What decides about a unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extent {
    pub sums: [u64; GROUP],
    pub most: [u32; GROUP],
    pub least: u32,
}

/// A class by what it is for; classes of a block are ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wanted {
    /// Small counts, as a fixed model of [`MEANS`] expects them.
    Sparse(u8),
    /// Counts above a base, of which `shift` low bits are stored raw; `spread` is twice the logarithm of how far the
    /// rest is spread out.
    Dense { shift: u8, spread: u8 },
}

/// The extents of one unit: the group's counts are the first eight of each row.
#[inline(always)]
pub(super) fn extent<'a, W: Count>(rows: impl Iterator<Item = &'a [W]>, pixels: usize) -> Extent {
    let (mut low, mut high) = ([0_u32; GROUP], [0_u32; GROUP]);
    let (mut most, mut least) = ([W::default(); GROUP], [W::narrow(u32::MAX); GROUP]);
    for row in rows {
        let counts: &[W; GROUP] = row.first_chunk().expect("rows hold whole groups");
        for i in 0..GROUP {
            let v = counts[i];
            low[i] = low[i].wrapping_add(v.widen() & 0xffff);
            high[i] = high[i].wrapping_add(v.widen() >> 16);
            most[i] = most[i].max(v);
            least[i] = least[i].min(v);
        }
    }
    let mut extent = Extent { least: u32::MAX, ..Extent::default() };
    for i in 0..pixels {
        extent.sums[i] = u64::from(low[i]) + (u64::from(high[i]) << 16);
        extent.most[i] = most[i].widen();
        extent.least = extent.least.min(least[i].widen());
    }
    extent
}

/// Counts whose extents are found at once.
const LINE: usize = 4 * GROUP;

/// The extents of all units of a segment, in the order of groups. The last group has fewer pixels where the rows have.
#[inline(always)]
pub(super) fn extents<W: Count>(rows: &[W], stride: usize, pixels: usize, to: &mut Vec<Extent>) {
    to.clear();
    for at in (0..stride).step_by(LINE) {
        if W::BYTES == 2 && at + LINE <= pixels && rows.len() <= 256 * stride {
            let rows: &[u16] = bytemuck::cast_slice(rows);
            if let Some(four) = small_extents(rows, stride, at) {
                to.extend(four);
                continue;
            }
        }
        for at in (at..stride.min(at + LINE)).step_by(GROUP) {
            let rows = rows.chunks_exact(stride).map(|row| &row[at..]);
            to.push(extent(rows, GROUP.min(pixels - at)));
        }
    }
}

/// The extents of four units of at most 256 scans whose counts are below 256, so that sums fit 16 bits.
#[inline(always)]
fn small_extents(rows: &[u16], stride: usize, at: usize) -> Option<[Extent; 4]> {
    let (mut sums, mut most, mut least) = ([0_u16; LINE], [0_u16; LINE], [u16::MAX; LINE]);
    for row in rows.chunks_exact(stride) {
        let counts: &[u16; LINE] = row[at..].first_chunk().expect("rows hold whole groups");
        for i in 0..LINE {
            sums[i] = sums[i].wrapping_add(counts[i]);
            most[i] = most[i].max(counts[i]);
            least[i] = least[i].min(counts[i]);
        }
    }
    let of_group = |g: usize| Extent {
        sums: std::array::from_fn(|i| sums[g * GROUP + i].into()),
        most: std::array::from_fn(|i| most[g * GROUP + i].into()),
        least: least[g * GROUP..][..GROUP].iter().min().copied().unwrap_or(0).into(),
    };
    most.iter().all(|v| *v < 256).then(|| std::array::from_fn(of_group))
}

/// Sum of the squares of the distances from `middle`, of the first `pixels` of a group.
#[inline(always)]
fn squares<W: Count>(rows: &[W], stride: usize, at: usize, pixels: usize, middle: u32, far: bool) -> u128 {
    let mut total = [0_u128; GROUP];
    if far {
        for row in rows.chunks(stride) {
            for (total, v) in total.iter_mut().zip(&row[at..at + pixels]) {
                let d = u128::from(v.widen().abs_diff(middle));
                *total += d * d;
            }
        }
        return total.iter().sum();
    }
    // Distances below 2^12: 256 squares fit 32 bits.
    for rows in rows.chunks(256 * stride) {
        let mut part = [0_u32; GROUP];
        for row in rows.chunks(stride) {
            let counts: &[W; GROUP] = row[at..].first_chunk().expect("rows hold whole groups");
            for i in 0..GROUP {
                let d = counts[i].widen().abs_diff(middle) & 0xfff;
                part[i] += d * d;
            }
        }
        total.iter_mut().zip(part).for_each(|(t, p)| *t += u128::from(p));
    }
    total[..pixels].iter().sum()
}

/// Largest mean of the fixed models, rounded up.
const SPARSE_MEAN: u64 = 7;
/// Counts above this don't fit the symbols of sparse classes.
const SPARSE_MOST: u32 = 15;

/// The class of a unit, and the base where it is dense.
#[inline(always)]
pub(super) fn choose<W: Count>(
    extent: &Extent,
    rows: &[W],
    stride: usize,
    at: usize,
    pixels: usize,
    before: Option<Wanted>,
) -> (Wanted, u32) {
    let scans = (rows.len() / stride) as u64;
    let most = extent.most[..pixels].iter().max().copied().unwrap_or(0);
    let tame = |i: &usize| extent.most[*i] <= SPARSE_MOST;
    let wild = (0..pixels).filter(|i| !tame(i)).count();
    // A few hot pixels shall not decide for their neighbours: their counts are escaped.
    let few = wild == 0 || (most > 40 && wild <= 2 && wild < pixels);
    let (sum, n) = match few {
        true => ((0..pixels).filter(tame).map(|i| extent.sums[i]).sum(), scans * (pixels - wild) as u64),
        false => (extent.sums.iter().sum::<u64>(), scans * pixels as u64),
    };
    let constant = extent.least == most && most > 0;
    if !constant && sum <= SPARSE_MEAN * n && (few || most <= 40) {
        return (Wanted::Sparse(sparse(sum, n, before)), 0);
    }
    let (sum, n) = (extent.sums.iter().sum::<u64>(), scans * pixels as u64);
    let middle = (sum / n) as u32;
    let range = most - extent.least;
    // Every eighth scan of a long unit tells enough.
    let (step, some) = if scans >= 128 { (8 * stride, scans.div_ceil(8)) } else { (stride, scans) };
    let squares = squares(rows, step, at, pixels, middle, range >= 1 << 12);
    // Variance in sixteenths; the middle is rounded down, which matters for none but the narrowest.
    let variance = squares * 16 / u128::from(some * pixels as u64);
    let mut shift = 0;
    while range >= 16 << shift && variance > 64 << (2 * shift) && shift < 28 {
        shift += 1;
    }
    let floor = |v: u32| v >> shift << shift;
    let mut base = floor(extent.least);
    if u64::from(most) >= u64::from(base) + (16_u64 << shift) {
        base = base.max(floor(middle.saturating_sub(8 << shift)));
    }
    let spread = ((variance >> (2 * shift)) as u32).max(1).ilog2() as u8;
    (Wanted::Dense { shift, spread }, base)
}

/// The fixed model for a sum; the one before stays while that costs next to nothing.
fn sparse(sum: u64, n: u64, before: Option<Wanted>) -> u8 {
    if let Some(Wanted::Sparse(index)) = before {
        let expected = u128::from(MEANS[usize::from(index)]) * u128::from(n);
        let off = (u128::from(sum) << 20).abs_diff(expected) >> 10;
        // Three standard deviations: at most seven bits are lost, about what a change of class takes.
        if off * off <= 25 * expected {
            return index;
        }
    }
    nearest(sum, n) as u8
}

/// Merges classes of few units into their neighbours, until at most `most` are left: no table for a handful.
pub(super) fn merge(units: &mut [Wanted], few: usize, most: usize) -> Vec<Wanted> {
    let mut counts = std::collections::BTreeMap::<Wanted, usize>::new();
    units.iter().for_each(|w| *counts.entry(*w).or_default() += 1);
    // Dense classes of few units go to the commonest of the same shift.
    let home = |counts: &std::collections::BTreeMap<Wanted, usize>, shift: u8, all: bool| {
        let same =
            counts.iter().filter(|(w, _)| matches!(w, Wanted::Dense { shift: s, .. } if all || *s == shift));
        same.max_by_key(|(_, n)| **n).map(|(w, _)| *w)
    };
    let all = counts.len() > most;
    let moved = |w: Wanted| match w {
        Wanted::Dense { shift, .. } if all || counts[&w] < few => home(&counts, shift, false).unwrap_or(w),
        _ => w,
    };
    units.iter_mut().for_each(|w| *w = moved(*w));
    let mut classes: Vec<Wanted> = units.to_vec();
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// Classes that the fixed models alone can make, and one for each shift: no block has more after merging.
pub(super) const MOST_CLASSES: usize = EVEN + 29;
