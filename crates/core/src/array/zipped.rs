//! Index lists that are walked together, as NumPy does with several of them, beside independent axes.

use super::selection::{Axis, Run};
use super::shape::{elements, strides};
use crate::error::{Error, Result};

/// Along some dimensions lists of positions that are walked together (element `i` of each makes tuple `i`), along
/// the others an axis each. The tuples are one dimension of the result.
///
/// ```
/// use tensilo_core::array::{Axis, Selection, Zipped};
/// // What NumPy writes as array[[0, 3], :, [1, 1]]: elements (0, :, 1) and (3, :, 1).
/// let lists = vec![(0, vec![0, 3]), (2, vec![1, 1])];
/// let zipped = Zipped::new(2, lists, vec![(1, Axis::all(5))], 0)?;
/// assert_eq!(Selection::from(zipped).shape(&[4, 5, 2])?, [2, 5]);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zipped {
    len: u64,
    lists: Vec<(usize, Vec<u64>)>,
    axes: Vec<(usize, Axis)>,
    place: usize,
}

/// One dimension of the result.
#[derive(Clone, Copy)]
enum Along<'a> {
    Tuples(&'a [u64]),
    Axis { axis: &'a Axis, step: u64, last: bool },
}

impl Zipped {
    /// `len` tuples; `lists` and `axes` name every dimension of the array once, each in ascending order. The tuples
    /// become dimension `place` of the result.
    ///
    /// # Errors
    /// `InvalidArgument` when lists have another length, dimensions are missing or named twice, or there is no
    /// such place.
    pub fn new(
        len: u64,
        lists: Vec<(usize, Vec<u64>)>,
        axes: Vec<(usize, Axis)>,
        place: usize,
    ) -> Result<Self> {
        let mut named: Vec<usize> = lists.iter().map(|l| l.0).chain(axes.iter().map(|a| a.0)).collect();
        named.sort_unstable();
        let ascending = lists.is_sorted_by_key(|l| l.0) && axes.is_sorted_by_key(|a| a.0);
        if !ascending || !named.iter().copied().eq(0..named.len()) || place > axes.len() {
            return Err(Error::invalid("lists and axes must name each dimension once, in order"));
        }
        if lists.iter().any(|l| l.1.len() as u64 != len) {
            return Err(Error::invalid("index lists that are walked together must have one length"));
        }
        if lists.is_empty() && len > 1 {
            return Err(Error::invalid("tuples of no lists"));
        }
        Ok(Self { len, lists, axes, place })
    }

    /// The lists that are walked together, each with its dimension of the array.
    pub fn lists(&self) -> &[(usize, Vec<u64>)] {
        &self.lists
    }

    /// The independent axes, each with its dimension of the array.
    pub fn axes(&self) -> &[(usize, Axis)] {
        &self.axes
    }

    /// The dimension of the result that the tuples are.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Checks every position against an array's shape.
    pub(super) fn check(&self, of: &[u64]) -> Result<()> {
        let rank = self.lists.len() + self.axes.len();
        if rank != of.len() {
            return Err(Error::invalid(format!(
                "a selection of {rank} dimensions does not fit an array of {}",
                of.len()
            )));
        }
        elements(of)?;
        for (dimension, list) in &self.lists {
            let extent = of.get(*dimension).copied().unwrap_or(0);
            if let Some(i) = list.iter().find(|i| **i >= extent) {
                return Err(Error::invalid(format!(
                    "axis {dimension}: index {i} is out of bounds for extent {extent}"
                )));
            }
        }
        let extent = |dimension: usize| of.get(dimension).copied().unwrap_or(0);
        self.axes.iter().try_for_each(|(dimension, axis)| axis.check(*dimension, extent(*dimension)))
    }

    /// Shape of the result; the selection must have been checked.
    pub(super) fn shape(&self) -> Result<Vec<u64>> {
        let mut shape = self.axes.iter().map(|(_, axis)| axis.count()).collect::<Result<Vec<_>>>()?;
        shape.insert(self.place, self.len);
        Ok(shape)
    }

    /// No list of its runs is longer.
    pub(super) fn most_runs(&self, of: &[u64]) -> u64 {
        let last = of.len().wrapping_sub(1);
        let in_axis = |(dimension, axis): &(usize, Axis)| match axis {
            Axis::Regular { stride: 1, block: 1, .. }
                if *dimension == last && self.place < self.axes.len() =>
            {
                1
            }
            axis => axis.count().unwrap_or(u64::MAX),
        };
        self.axes.iter().map(in_axis).fold(self.len, u64::saturating_mul)
    }

    /// The runs in the order of the result; the selection must have been checked.
    pub(super) fn runs(&self, of: &[u64]) -> Result<Vec<Run>> {
        if self.shape()?.contains(&0) {
            return Ok(Vec::new());
        }
        let steps = strides(of)?;
        let last = of.len().wrapping_sub(1);
        let mut tuples = vec![0_u64; self.len as usize];
        for (dimension, list) in &self.lists {
            tuples.iter_mut().zip(list).for_each(|(sum, i)| *sum += i * steps[*dimension]);
        }
        let mut order: Vec<Along<'_>> = self
            .axes
            .iter()
            .map(|(d, axis)| Along::Axis { axis, step: steps[*d], last: *d == last })
            .collect();
        order.insert(self.place, Along::Tuples(&tuples));
        let mut runs = Runs { list: Vec::new(), width: of.last().copied().unwrap_or(1).max(1) };
        walk(&order, 0, &mut runs);
        Ok(runs.list)
    }
}

fn walk(order: &[Along<'_>], base: u64, runs: &mut Runs) {
    let Some((first, rest)) = order.split_first() else { return runs.push(base, 1) };
    match first {
        Along::Axis { axis: Axis::Regular { start, stride: 1, count, block: 1 }, last: true, .. }
            if rest.is_empty() =>
        {
            runs.push(base + start, *count);
        }
        Along::Axis { axis, step, .. } => axis.positions().for_each(|i| walk(rest, base + i * step, runs)),
        Along::Tuples(sums) => sums.iter().for_each(|sum| walk(rest, base + sum, runs)),
    }
}

/// Runs under construction; neighbours in one row become one.
struct Runs {
    list: Vec<Run>,
    width: u64,
}

impl Runs {
    fn push(&mut self, start: u64, len: u64) {
        match self.list.last_mut() {
            Some(last) if last.start + last.len == start && !start.is_multiple_of(self.width) => {
                last.len += len
            }
            _ => self.list.push(Run { start, len }),
        }
    }
}
