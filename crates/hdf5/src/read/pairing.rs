//! Which element of a source stands for which element of a virtual dataset.

use crate::format::selection::{StoredDimension, StoredSelection};
use tensilo_core::{Error, Result};

/// Positions along one dimension: blocks at equal distances, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dimension {
    start: u64,
    stride: u64,
    block: u64,
    /// Number of positions.
    len: u64,
}

impl Dimension {
    /// A stored dimension; `len` says how many positions an unlimited one has (else it is taken to have no end).
    pub(super) fn new(d: &StoredDimension, len: Option<u64>) -> Self {
        let own = d.count.zip(d.block).map(|(count, block)| count.saturating_mul(block));
        // One block has no next one, so its stride means nothing.
        let block = d.block.filter(|_| d.count != Some(1)).unwrap_or(u64::MAX);
        Self { start: d.start, stride: d.stride.max(1), block, len: own.or(len).unwrap_or(u64::MAX) }
    }

    fn all(extent: u64) -> Self {
        Self { start: 0, stride: 1, block: u64::MAX, len: extent }
    }

    /// The `i`th position.
    pub(super) fn position(&self, i: u64) -> u64 {
        let block = self.block.max(1);
        (i / block).saturating_mul(self.stride).saturating_add(i % block).saturating_add(self.start)
    }

    /// Which position `at` is; `None` when it is none.
    pub(super) fn ordinal(&self, at: u64) -> Option<u64> {
        let distance = at.checked_sub(self.start)?;
        if self.block == u64::MAX {
            return Some(distance).filter(|i| *i < self.len);
        }
        let (nth, inside) = (distance / self.stride, distance % self.stride);
        let i = nth.checked_mul(self.block)?.checked_add(inside)?;
        (inside < self.block && i < self.len).then_some(i)
    }

    /// One past the last position; 0 when there are none.
    pub(super) fn end(&self) -> u64 {
        match self.len {
            0 => 0,
            u64::MAX => u64::MAX,
            n => self.position(n - 1).saturating_add(1),
        }
    }

    /// Number of positions below `extent`.
    pub(super) fn up_to(&self, extent: u64) -> u64 {
        let room = extent.saturating_sub(self.start);
        let whole = if self.block == u64::MAX {
            room
        } else {
            (room / self.stride)
                .saturating_mul(self.block)
                .saturating_add((room % self.stride).min(self.block))
        };
        whole.min(self.len)
    }
}

/// A selection bound to current extents.
#[derive(Debug, Clone)]
enum Side {
    /// Outer product of dimensions.
    Product(Vec<Dimension>),
    /// Row-major runs: first element number, length, and how many elements come before.
    Runs { runs: Vec<(u64, u64, u64)>, shape: Vec<u64> },
}

/// A mapping with both selections bound to current extents.
#[derive(Debug, Clone)]
pub(super) struct Pairing {
    source: Side,
    source_shape: Vec<u64>,
    target: Side,
    target_shape: Vec<u64>,
    /// For each target dimension the source dimension that it pairs with; `None` where they do not pair so.
    pairs: Option<Vec<Option<(usize, Dimension)>>>,
}

/// A pairing dimension by dimension.
pub(super) struct ByDimension<'p> {
    pub(super) targets: &'p [Dimension],
    pub(super) sources: &'p [Option<(usize, Dimension)>],
}

impl Pairing {
    /// Binds a mapping. `block` is the target dimension that counts blocks, and the number of this one.
    ///
    /// # Errors
    /// `Corrupt` when selections and extents do not fit together; `Unsupported` for point selections.
    pub(super) fn new(
        source: &StoredSelection,
        source_shape: &[u64],
        target: &StoredSelection,
        target_shape: &[u64],
        block: Option<(usize, u64)>,
    ) -> Result<Self> {
        let mut source = bind(source, source_shape)?;
        let mut target = bind(target, target_shape)?;
        if let (Some((axis, number)), Side::Product(dimensions)) = (block, &mut target) {
            let d = &mut dimensions[axis];
            d.start = d.start.saturating_add(number.saturating_mul(d.stride));
            d.len = d.block.min(target_shape[axis].saturating_sub(d.start));
        }
        match_lengths(&mut source, &mut target, block.is_some())?;
        let pairs = pair(&source, &target);
        Ok(Self {
            source,
            source_shape: source_shape.to_vec(),
            target,
            target_shape: target_shape.to_vec(),
            pairs,
        })
    }

    /// The pairing by dimensions, where it is one.
    pub(super) fn by_dimension(&self) -> Option<ByDimension<'_>> {
        match (&self.target, &self.pairs) {
            (Side::Product(targets), Some(sources)) => Some(ByDimension { targets, sources }),
            _ => None,
        }
    }

    /// The source's only position along each dimension that no target dimension pairs with.
    pub(super) fn fixed_source(&self) -> Vec<Vec<u64>> {
        match &self.source {
            Side::Product(d) => d.iter().map(|d| vec![d.position(0)]).collect(),
            Side::Runs { .. } => Vec::new(),
        }
    }

    /// Number of dimensions of the source.
    pub(super) fn source_rank(&self) -> usize {
        self.source_shape.len()
    }

    /// Appends the coordinates of the source element that stands for a virtual element, given by its row-major number;
    /// false when none does.
    pub(super) fn source_of(&self, number: u64, coords: &mut Vec<u64>) -> bool {
        let Some(i) = self.target.ordinal(number, &self.target_shape) else { return false };
        self.source.coords(i, &self.source_shape, coords)
    }
}

fn bind(selection: &StoredSelection, shape: &[u64]) -> Result<Side> {
    let rank = |n: usize| {
        if n == shape.len() {
            return Ok(());
        }
        Err(Error::corrupt(format!("a mapping of {n} dimensions for an array of {}", shape.len())))
    };
    match selection {
        StoredSelection::All => Ok(Side::Product(shape.iter().map(|n| Dimension::all(*n)).collect())),
        StoredSelection::None => Ok(Side::Runs { runs: Vec::new(), shape: shape.to_vec() }),
        StoredSelection::Points { .. } => Err(Error::unsupported("a virtual dataset with a point selection")),
        StoredSelection::Regular(dimensions) => {
            rank(dimensions.len())?;
            let bound = dimensions.iter().zip(shape).map(|(d, extent)| {
                let overlap = d.block.is_some_and(|b| b > d.stride) && d.count != Some(1);
                if d.block == Some(0) || d.count == Some(0) || overlap {
                    return Err(Error::corrupt(format!("an impossible selection in a mapping: {d:?}")));
                }
                let free = Dimension::new(d, None);
                let len = if d.count.is_some() && d.block.is_some() { free.len } else { free.up_to(*extent) };
                Ok(Dimension { len, ..free })
            });
            Ok(Side::Product(bound.collect::<Result<_>>()?))
        }
        StoredSelection::Boxes(boxes) => {
            boxes.iter().try_for_each(|(low, high)| rank(low.len()).and(rank(high.len())))?;
            let slabs = boxes.iter().map(|(low, high)| {
                let count =
                    low.iter().zip(high).map(|(l, h)| h.saturating_sub(*l).saturating_add(1)).collect();
                tensilo_core::array::Hyperslab::new(low.clone(), count)
            });
            let union = tensilo_core::array::Selection::Union(slabs.collect());
            let mut before = 0;
            let runs = union.runs(shape).map_err(|e| Error::corrupt(e.message()))?;
            let runs = runs.into_iter().map(|r| {
                let run = (r.start, r.end - r.start, before);
                before += r.end - r.start;
                run
            });
            Ok(Side::Runs { runs: runs.collect(), shape: shape.to_vec() })
        }
    }
}

impl Side {
    fn elements(&self) -> u64 {
        match self {
            Self::Product(d) => d.iter().fold(1, |n, d| n.saturating_mul(d.len)),
            Self::Runs { runs, .. } => runs.last().map_or(0, |r| r.1.saturating_add(r.2)),
        }
    }

    /// The place of an element in the selection's order.
    fn ordinal(&self, number: u64, shape: &[u64]) -> Option<u64> {
        match self {
            Self::Product(dimensions) => {
                let mut rest = number;
                let mut places = Vec::with_capacity(shape.len());
                for (d, extent) in dimensions.iter().zip(shape).rev() {
                    places.push(d.ordinal(rest % (*extent).max(1))?);
                    rest /= (*extent).max(1);
                }
                Some(dimensions.iter().zip(places.iter().rev()).fold(0, |n, (d, i)| n * d.len + i))
            }
            Self::Runs { runs, .. } => {
                let i = runs.partition_point(|r| r.0 <= number).checked_sub(1)?;
                let (start, len, before) = runs[i];
                (number - start < len).then_some(before + (number - start))
            }
        }
    }

    /// Appends the coordinates of the `i`th element; false past the last.
    fn coords(&self, i: u64, shape: &[u64], coords: &mut Vec<u64>) -> bool {
        if i >= self.elements() {
            return false;
        }
        let first = coords.len();
        let mut rest = match self {
            Self::Product(_) => i,
            Self::Runs { runs, .. } => {
                let (start, _, before) = runs[runs.partition_point(|r| r.2 <= i).saturating_sub(1)];
                start + (i - before)
            }
        };
        for axis in (0..shape.len()).rev() {
            let (extent, dimension) = match self {
                Self::Product(d) => (d[axis].len, Some(d[axis])),
                Self::Runs { shape, .. } => (shape[axis], None),
            };
            let at = rest % extent.max(1);
            rest /= extent.max(1);
            coords.push(dimension.map_or(at, |d| d.position(at)));
        }
        coords[first..].reverse();
        true
    }
}

/// Both sides have the same number of elements; an unlimited one is cut to the other.
fn match_lengths(source: &mut Side, target: &mut Side, block: bool) -> Result<()> {
    let (s, t) = (source.elements(), target.elements());
    if s == t {
        return Ok(());
    }
    if let (Side::Product(from), Side::Product(to)) = (source, target) {
        // The longest dimensions may be cut at the end: the source has grown less or more than the target, or a
        // target block passes the virtual extent.
        let (a, b): (Vec<&mut Dimension>, Vec<&mut Dimension>) = (
            from.iter_mut().filter(|d| d.len != 1).collect(),
            to.iter_mut().filter(|d| d.len != 1).collect(),
        );
        if a.len() == b.len() {
            let differ: Vec<usize> = (0..a.len()).filter(|i| a[*i].len != b[*i].len).collect();
            if let ([one], _) = (differ.as_slice(), block) {
                let n = a[*one].len.min(b[*one].len);
                for (i, (d, e)) in a.into_iter().zip(b).enumerate() {
                    if i == *one {
                        d.len = n;
                        e.len = n;
                    }
                }
                return Ok(());
            }
        }
    }
    Err(Error::corrupt(format!("a mapping of {s} source elements to {t} virtual elements")))
}

/// Pairs dimensions of more than one position in order, if they have the same lengths.
fn pair(source: &Side, target: &Side) -> Option<Vec<Option<(usize, Dimension)>>> {
    let (Side::Product(from), Side::Product(to)) = (source, target) else { return None };
    let mut long = from.iter().enumerate().filter(|(_, d)| d.len != 1);
    let mut pairs = Vec::with_capacity(to.len());
    for d in to {
        if d.len == 1 {
            pairs.push(None);
            continue;
        }
        let (axis, dimension) = long.next()?;
        if dimension.len != d.len {
            return None;
        }
        pairs.push(Some((axis, *dimension)));
    }
    long.next().is_none().then_some(pairs)
}
