//! Which elements of an array are wanted, and in which order.

use super::hyperslab::Hyperslab;
use super::shape::{elements, strides};
use super::zipped::Zipped;
use crate::error::{Error, Result};

/// Which elements of an array are wanted. The result is a row-major array of [`Selection::shape`].
///
/// ```
/// use tensilo_core::array::{Hyperslab, Points, Selection};
/// let every_other = Hyperslab::new(vec![0], vec![5]).with_stride(vec![2]);
/// assert_eq!(Selection::from(every_other).shape(&[10])?, [5]);
/// let points = Points::new(2, vec![0, 0, 3, 4])?; // elements (0, 0) and (3, 4)
/// assert_eq!(Selection::from(points).shape(&[10, 10])?, [2]);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Selection {
    /// Everything.
    #[default]
    All,
    /// A regular selection.
    Hyperslab(Hyperslab),
    /// Along each dimension an independent list of positions: the outer product of all.
    Axes(Vec<Axis>),
    /// Single elements in the order given; the result has one dimension.
    Points(Points),
    /// Index lists that are walked together, and independent axes along the other dimensions.
    Zipped(Zipped),
    /// All elements that lie in any of these, each once, in the array's row-major order; one dimension.
    Union(Vec<Hyperslab>),
}

/// What is wanted along one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Axis {
    /// Blocks at equal distances; see [`Hyperslab`].
    Regular {
        /// First position.
        start: u64,
        /// Distance between blocks; negative only with blocks of 1.
        stride: i64,
        /// Number of blocks.
        count: u64,
        /// Positions in a block.
        block: u64,
    },
    /// These positions in this order; they may repeat.
    List(Vec<u64>),
}

/// Single elements, in any order; they may repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Points {
    rank: usize,
    coords: Vec<u64>,
}

impl Points {
    /// Points of `rank` dimensions; `coords` holds one after the other.
    ///
    /// # Errors
    /// `InvalidArgument` when the number of coordinates is no multiple of a rank above 0.
    pub fn new(rank: usize, coords: Vec<u64>) -> Result<Self> {
        if rank == 0 || !coords.len().is_multiple_of(rank) {
            return Err(Error::invalid(format!(
                "{} coordinates do not make points of {rank} dimensions",
                coords.len()
            )));
        }
        Ok(Self { rank, coords })
    }

    /// The elements where a row-major mask of this shape is true, in row-major order.
    ///
    /// # Errors
    /// `InvalidArgument` when the mask's length does not match the shape, or the shape has rank 0.
    pub fn from_mask(shape: &[u64], mask: &[bool]) -> Result<Self> {
        if elements(shape)? != mask.len() as u64 {
            return Err(Error::invalid(format!("a mask of {} elements for shape {shape:?}", mask.len())));
        }
        let steps = strides(shape)?;
        let mut coords = Vec::new();
        for (i, _) in mask.iter().enumerate().filter(|(_, m)| **m) {
            coords.extend(steps.iter().zip(shape).map(|(s, n)| i as u64 / s % n));
        }
        Self::new(shape.len(), coords)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.coords.len() / self.rank
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.coords.is_empty()
    }

    /// The points.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        self.coords.chunks_exact(self.rank)
    }
}

impl From<Hyperslab> for Selection {
    fn from(slab: Hyperslab) -> Self {
        Self::Hyperslab(slab)
    }
}

impl From<Zipped> for Selection {
    fn from(zipped: Zipped) -> Self {
        Self::Zipped(zipped)
    }
}

impl From<Points> for Selection {
    fn from(points: Points) -> Self {
        Self::Points(points)
    }
}

/// A run of neighbouring elements along the last dimension, by row-major element number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) len: u64,
}

/// A selection after every bound has been checked.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// Outer product of axes.
    Axes(Vec<Axis>),
    /// Runs, in the order of the result.
    Runs(Vec<Run>),
}

impl Axis {
    /// Everything along a dimension of this extent.
    pub fn all(extent: u64) -> Self {
        Self::Regular { start: 0, stride: 1, count: extent, block: 1 }
    }

    /// Number of positions.
    ///
    /// # Errors
    /// `InvalidArgument` when they do not fit in 63 bits.
    pub fn count(&self) -> Result<u64> {
        match self {
            Self::Regular { start, stride, count, block } => Ok(Hyperslab {
                start: vec![*start],
                stride: vec![*stride],
                count: vec![*count],
                block: vec![*block],
            }
            .shape()?[0]),
            Self::List(at) => Ok(at.len() as u64),
        }
    }

    /// The positions in order; the axis must have been checked.
    pub fn positions(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::List(at) => Box::new(at.iter().copied()),
            Self::Regular { start, stride, count, block } => {
                let at = move |i: u64| start.wrapping_add_signed((i as i64).wrapping_mul(*stride));
                Box::new((0..*count).flat_map(move |i| (0..*block).map(move |j| at(i).wrapping_add(j))))
            }
        }
    }

    pub(super) fn check(&self, dimension: usize, extent: u64) -> Result<()> {
        match self {
            Self::Regular { start, stride, count, block } => Hyperslab {
                start: vec![*start],
                stride: vec![*stride],
                count: vec![*count],
                block: vec![*block],
            }
            .check(&[extent])
            .map_err(|e| e.context(format_args!("axis {dimension}"))),
            Self::List(at) => match at.iter().find(|i| **i >= extent) {
                Some(i) => Err(Error::invalid(format!(
                    "axis {dimension}: index {i} is out of bounds for extent {extent}"
                ))),
                None => Ok(()),
            },
        }
    }
}

impl Selection {
    /// Shape of the result for an array of this shape.
    ///
    /// # Errors
    /// `InvalidArgument` when the selection does not fit the array.
    pub fn shape(&self, of: &[u64]) -> Result<Vec<u64>> {
        match self {
            Self::All => Ok(of.to_vec()),
            Self::Hyperslab(slab) => {
                slab.check(of)?;
                slab.shape()
            }
            Self::Axes(axes) => {
                check_axes(axes, of)?;
                axes.iter().map(Axis::count).collect()
            }
            Self::Points(points) => {
                check_points(points, of)?;
                Ok(vec![points.len() as u64])
            }
            Self::Zipped(zipped) => {
                zipped.check(of)?;
                zipped.shape()
            }
            Self::Union(_) => match self.resolve(of)? {
                Wanted::Runs(runs) => Ok(vec![runs.iter().map(|r| r.len).sum()]),
                Wanted::Axes(_) => Err(Error::invalid("a union resolved to axes")),
            },
        }
    }

    /// Number of elements of the result.
    ///
    /// # Errors
    /// As [`shape`](Self::shape), and `Limit` when it does not fit in 63 bits.
    pub fn elements(&self, of: &[u64]) -> Result<u64> {
        elements(&self.shape(of)?)
    }

    /// The axes of a selection that is an outer product; `None` for point lists, unions and zipped lists.
    ///
    /// # Errors
    /// As [`shape`](Self::shape).
    pub fn axes(&self, of: &[u64]) -> Result<Option<Vec<Axis>>> {
        match self {
            Self::Points(_) | Self::Union(_) | Self::Zipped(_) => Ok(None),
            _ => match self.resolve(of)? {
                Wanted::Axes(axes) => Ok(Some(axes)),
                Wanted::Runs(_) => Ok(None),
            },
        }
    }

    /// No list of [`runs`](Self::runs) takes more bytes; of use before one is made. 0 for an outer product.
    pub fn run_bytes(&self, of: &[u64]) -> u64 {
        let runs = match self {
            Self::Points(points) => points.len() as u64,
            Self::Zipped(zipped) => zipped.most_runs(of),
            _ => 0,
        };
        runs.saturating_mul(size_of::<Run>() as u64)
    }

    /// The runs of row-major element numbers of a point list, union or zipped lists, in the order of the result; a run does not pass
    /// the end of a row.
    ///
    /// # Errors
    /// As [`shape`](Self::shape), and `InvalidArgument` for selections that are an outer product.
    pub fn runs(&self, of: &[u64]) -> Result<Vec<std::ops::Range<u64>>> {
        match self.resolve(of)? {
            Wanted::Runs(runs) => Ok(runs.into_iter().map(|r| r.start..r.start + r.len).collect()),
            Wanted::Axes(_) => Err(Error::invalid("this selection is a product of axes, not a list of runs")),
        }
    }

    /// Checks the selection against an array's shape.
    pub(super) fn resolve(&self, of: &[u64]) -> Result<Wanted> {
        Ok(match self {
            Self::All => Wanted::Axes(of.iter().map(|n| Axis::all(*n)).collect()),
            Self::Hyperslab(slab) => {
                slab.check(of)?;
                Wanted::Axes(slab_axes(slab))
            }
            Self::Axes(axes) => {
                check_axes(axes, of)?;
                Wanted::Axes(axes.clone())
            }
            Self::Points(points) => {
                check_points(points, of)?;
                let steps = strides(of)?;
                let number = |p: &[u64]| p.iter().zip(&steps).map(|(c, s)| c * s).sum();
                Wanted::Runs(points.iter().map(|p| Run { start: number(p), len: 1 }).collect())
            }
            Self::Zipped(zipped) => {
                zipped.check(of)?;
                Wanted::Runs(zipped.runs(of)?)
            }
            Self::Union(slabs) => Wanted::Runs(union_runs(slabs, of)?),
        })
    }
}

fn slab_axes(slab: &Hyperslab) -> Vec<Axis> {
    (0..slab.rank())
        .map(|i| Axis::Regular {
            start: slab.start[i],
            stride: slab.stride[i],
            count: slab.count[i],
            block: slab.block[i],
        })
        .collect()
}

fn check_axes(axes: &[Axis], of: &[u64]) -> Result<()> {
    if axes.len() != of.len() {
        return Err(Error::invalid(format!(
            "a selection of {} dimensions does not fit an array of {}",
            axes.len(),
            of.len()
        )));
    }
    axes.iter().zip(of).enumerate().try_for_each(|(i, (axis, n))| axis.check(i, *n))
}

fn check_points(points: &Points, of: &[u64]) -> Result<()> {
    elements(of)?;
    if points.rank != of.len() {
        return Err(Error::invalid(format!(
            "points of {} dimensions do not fit an array of {}",
            points.rank,
            of.len()
        )));
    }
    match points.iter().find(|p| p.iter().zip(of).any(|(c, n)| c >= n)) {
        Some(p) => Err(Error::invalid(format!("point {p:?} is out of bounds for shape {of:?}"))),
        None => Ok(()),
    }
}

/// The runs of a union in row-major order: the runs of every hyperslab, sorted and merged within their rows.
fn union_runs(slabs: &[Hyperslab], of: &[u64]) -> Result<Vec<Run>> {
    let Some(width) = of.last().copied() else {
        return Err(Error::invalid("a union needs an array of at least one dimension"));
    };
    let steps = strides(of)?;
    let mut runs = Vec::new();
    for slab in slabs {
        slab.check(of)?;
        elements(&slab.shape()?)?;
        if slab.stride.iter().any(|s| *s < 0) {
            return Err(Error::invalid("a union takes no negative strides"));
        }
        if !slab.shape()?.contains(&0) {
            push_runs(slab, &steps, 0, 0, &mut runs);
        }
    }
    runs.sort_unstable();
    let mut merged: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match merged.last_mut() {
            Some(last) if last.start + last.len >= run.start && last.start / width == run.start / width => {
                last.len = last.len.max(run.start + run.len - last.start);
            }
            _ => merged.push(run),
        }
    }
    Ok(merged)
}

fn push_runs(slab: &Hyperslab, steps: &[u64], axis: usize, base: u64, runs: &mut Vec<Run>) {
    let (start, stride) = (slab.start[axis], slab.stride[axis].unsigned_abs());
    let (count, block) = (slab.count[axis], slab.block[axis]);
    if axis + 1 == steps.len() {
        if stride == block || count == 1 {
            runs.push(Run { start: base + start, len: count * block });
        } else {
            runs.extend((0..count).map(|i| Run { start: base + start + i * stride, len: block }));
        }
        return;
    }
    for i in 0..count {
        for j in 0..block {
            push_runs(slab, steps, axis + 1, base + (start + i * stride + j) * steps[axis], runs);
        }
    }
}
