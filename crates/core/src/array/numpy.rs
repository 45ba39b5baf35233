//! Selections as NumPy takes them: integers, slices, `...`, new axes, arrays of integers of any shape, and masks, in
//! any mixture. [`numpy_text`](super::numpy_text) reads them from text.
//!
//! NumPy's rules. Without arrays and masks each item stands for itself. With them, all arrays, masks and integers
//! are *advanced*: a mask of rank `k` counts as `k` lists of the positions of its true elements, all are broadcast to
//! one shape, and the dimensions of that shape stand where the first advanced item stood, or in front of everything
//! where other items lie between advanced ones.

use super::hyperslab::Hyperslab;
use super::selection::{Axis, Selection};
use super::shape::elements;
use super::zipped::Zipped;
use crate::error::{Error, Result};

/// An index in NumPy's sense, not yet bound to an array.
///
/// Integers (negative ones count from the end) drop their dimension, slices may be open and have any step, one
/// `...` stands for all dimensions not named, `None` adds a dimension of 1; lists and masks pick positions.
///
/// ```
/// use tensilo_core::array::NumpyIndex;
/// let index: NumpyIndex = "-1, 2:8:2".parse()?;
/// let resolved = index.resolve(&[4, 10, 5])?;
/// assert_eq!(resolved.shape, [3, 5]); // the first dimension is gone, the last one is whole
/// let index: NumpyIndex = "[[0, 1], [2, 3]], :, [True, False, True, True, False]".parse()?;
/// assert!(index.resolve(&[4, 10, 5]).is_err()); // shapes (2, 2) and (3) do not broadcast
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumpyIndex {
    items: Vec<IndexItem>,
}

/// An index bound to an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What is wanted; its elements come in the order of the result.
    pub selection: Selection,
    /// Shape of the result as NumPy has it: without the dimensions that integers drop, with those that are added.
    pub shape: Vec<u64>,
}

/// One part of an index, between commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexItem {
    /// One position; the dimension is dropped.
    Integer(i64),
    /// Positions at equal distances.
    Slice {
        /// First position, or the end that the step begins with.
        start: Option<i64>,
        /// The position before which it ends.
        stop: Option<i64>,
        /// Distance; not 0.
        step: i64,
    },
    /// Positions in an array of any shape, in row-major order.
    Array {
        /// Extents, slowest first; none for a single integer.
        shape: Vec<u64>,
        /// Positions.
        values: Vec<i64>,
    },
    /// An array of truth values over as many dimensions as it has, in row-major order.
    Mask {
        /// Extents, which must be those of the dimensions.
        shape: Vec<u64>,
        /// Is the element wanted?
        values: Vec<bool>,
    },
    /// All dimensions that are not named.
    Ellipsis,
    /// A dimension of 1 in the result.
    NewAxis,
}

impl IndexItem {
    /// Dimensions of the array that it speaks of; an ellipsis takes those that are left.
    fn dimensions(&self) -> usize {
        match self {
            Self::Integer(_) | Self::Slice { .. } | Self::Array { .. } => 1,
            Self::Mask { shape, .. } => shape.len(),
            Self::Ellipsis | Self::NewAxis => 0,
        }
    }

    fn check(&self) -> Result<()> {
        let fits = |shape: &[u64], n: usize| {
            if elements(shape)? == n as u64 {
                return Ok(());
            }
            Err(Error::invalid(format!("an index array of shape {shape:?} with {n} values")))
        };
        match self {
            Self::Slice { step: 0, .. } => Err(Error::invalid("a slice step cannot be zero")),
            Self::Array { shape, values } => fits(shape, values.len()),
            Self::Mask { shape, values } => fits(shape, values.len()),
            _ => Ok(()),
        }
    }
}

impl NumpyIndex {
    /// Takes the parts of an index; none want everything.
    ///
    /// # Errors
    /// `InvalidArgument` for two ellipses, a step of 0, or arrays whose shape and length differ.
    pub fn new(items: Vec<IndexItem>) -> Result<Self> {
        if items.iter().filter(|i| **i == IndexItem::Ellipsis).count() > 1 {
            return Err(Error::invalid("'...' may appear once"));
        }
        items.iter().try_for_each(IndexItem::check)?;
        Ok(Self { items })
    }

    /// The parts.
    pub fn items(&self) -> &[IndexItem] {
        &self.items
    }

    /// Binds the index to an array of this shape, by NumPy's rules: slices are clipped, positions are not.
    ///
    /// # Errors
    /// `InvalidArgument` when a position is out of bounds, a mask has another shape, lists do not broadcast, or
    /// there are more indices than dimensions.
    pub fn resolve(&self, shape: &[u64]) -> Result<Resolved> {
        let named = self.items.iter().map(IndexItem::dimensions).sum::<usize>();
        let open = shape.len().checked_sub(named).ok_or_else(|| {
            Error::invalid(format!("{named} indices for an array of {} dimensions", shape.len()))
        })?;
        let is_list = |i: &IndexItem| matches!(i, IndexItem::Array { .. } | IndexItem::Mask { .. });
        let mut binding = Binding::new(shape, self.items.iter().any(is_list));
        let ellipsis = self.items.contains(&IndexItem::Ellipsis);
        for item in &self.items {
            binding.item(item, open)?;
        }
        if !ellipsis {
            binding.whole(open);
        }
        binding.finish()
    }
}

/// Lists of positions along some dimensions, with the shape they have before they are broadcast.
struct Advanced {
    shape: Vec<u64>,
    lists: Vec<(usize, Vec<u64>)>,
}

/// An index on its way through the dimensions of an array.
struct Binding<'a> {
    of: &'a [u64],
    advances: bool,
    dimension: usize,
    axes: Vec<(usize, Axis)>,
    advanced: Vec<Advanced>,
    /// Extents of the result, without the broadcast ones.
    out: Vec<u64>,
    /// How many axes, and how many extents of the result, come before the first advanced item.
    place: Option<(usize, usize)>,
    /// Did another item follow the advanced ones?
    left: bool,
    /// Did an advanced one follow that?
    apart: bool,
}

impl<'a> Binding<'a> {
    fn new(of: &'a [u64], advances: bool) -> Self {
        Self {
            of,
            advances,
            dimension: 0,
            axes: Vec::new(),
            advanced: Vec::new(),
            out: Vec::new(),
            place: None,
            left: false,
            apart: false,
        }
    }

    fn extent(&self) -> u64 {
        self.of.get(self.dimension).copied().unwrap_or(0)
    }

    fn axis(&mut self, axis: Axis, kept: bool) -> Result<()> {
        if kept {
            self.out.push(axis.count()?);
        }
        self.axes.push((self.dimension, axis));
        self.dimension += 1;
        Ok(())
    }

    fn whole(&mut self, dimensions: usize) {
        for _ in 0..dimensions {
            let extent = self.extent();
            self.axes.push((self.dimension, Axis::all(extent)));
            self.out.push(extent);
            self.dimension += 1;
        }
    }

    fn advance(&mut self, shape: Vec<u64>, lists: Vec<Vec<u64>>) {
        self.place.get_or_insert((self.axes.len(), self.out.len()));
        self.apart |= self.left;
        let lists = lists.into_iter().enumerate().map(|(i, l)| (self.dimension + i, l)).collect::<Vec<_>>();
        self.dimension += lists.len();
        self.advanced.push(Advanced { shape, lists });
    }

    fn item(&mut self, item: &IndexItem, open: usize) -> Result<()> {
        let extent = self.extent();
        match item {
            IndexItem::Integer(i) => {
                let at = position(*i, self.dimension, extent)?;
                if !self.advances {
                    let axis = Axis::Regular { start: at, stride: 1, count: 1, block: 1 };
                    return self.axis(axis, false);
                }
                self.advance(Vec::new(), vec![vec![at]]);
                return Ok(());
            }
            IndexItem::Array { shape, values } => {
                let list =
                    values.iter().map(|i| position(*i, self.dimension, extent)).collect::<Result<_>>()?;
                self.advance(shape.clone(), vec![list]);
                return Ok(());
            }
            IndexItem::Mask { shape, values } => {
                let lists = self.mask(shape, values)?;
                let found = values.iter().filter(|v| **v).count() as u64;
                self.advance(vec![found], lists);
                return Ok(());
            }
            IndexItem::Slice { start, stop, step } => self.axis(slice(*start, *stop, *step, extent), true)?,
            IndexItem::Ellipsis => self.whole(open),
            IndexItem::NewAxis => self.out.push(1),
        }
        self.left |= self.place.is_some();
        Ok(())
    }

    /// The positions of a mask's true elements along each of its dimensions.
    fn mask(&self, shape: &[u64], values: &[bool]) -> Result<Vec<Vec<u64>>> {
        let of = &self.of[self.dimension..self.dimension + shape.len()];
        if shape != of {
            return Err(Error::invalid(format!("a mask of shape {shape:?} for dimensions {of:?}")));
        }
        let mut lists = vec![Vec::new(); shape.len()];
        for (number, _) in values.iter().enumerate().filter(|(_, v)| **v) {
            let mut rest = number as u64;
            for (list, extent) in lists.iter_mut().zip(shape).rev() {
                list.push(rest % extent);
                rest /= extent;
            }
        }
        Ok(lists)
    }

    fn finish(mut self) -> Result<Resolved> {
        let Some(mut place) = self.place else {
            let axes = self.axes.into_iter().map(|(_, axis)| axis).collect();
            return Ok(Resolved { selection: simplest(axes, self.of), shape: self.out });
        };
        if self.apart {
            place = (0, 0);
        }
        let shapes: Vec<&[u64]> = self.advanced.iter().map(|a| a.shape.as_slice()).collect();
        let broadcast = broadcast(&shapes)?;
        let selection = match self.product(place.0, &broadcast) {
            Some(axes) => simplest(axes, self.of),
            None => {
                let len = elements(&broadcast)?;
                let mut lists = Vec::new();
                for Advanced { shape, lists: own } in std::mem::take(&mut self.advanced) {
                    lists.extend(own.into_iter().map(|(d, list)| (d, expand(&list, &shape, &broadcast))));
                }
                Zipped::new(len, lists, self.axes, place.0)?.into()
            }
        };
        self.out.splice(place.1..place.1, broadcast);
        Ok(Resolved { selection, shape: self.out })
    }

    /// The axes of a product that selects the same in the same order: where every advanced item varies along a
    /// dimension of its own, and the order of these is that of the array.
    fn product(&self, place: usize, broadcast: &[u64]) -> Option<Vec<Axis>> {
        let mut varying = Vec::new();
        let mut axes = self.axes.clone();
        for Advanced { shape, lists } in &self.advanced {
            let skipped = broadcast.len() - shape.len();
            let mut along = shape.iter().enumerate().filter(|(_, n)| **n != 1);
            let at = along.next().map(|(i, _)| i + skipped);
            if along.next().is_some() {
                return None;
            }
            match (at, lists.as_slice()) {
                (None, lists) => axes.extend(lists.iter().map(|(d, l)| (*d, Axis::List(l.clone())))),
                (Some(at), [(dimension, list)]) => {
                    varying.push((at, *dimension));
                    axes.push((*dimension, Axis::List(list.clone())));
                }
                _ => return None,
            }
        }
        // Each dimension of the broadcast shape must be some item's own, and in order.
        let ascending = varying.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1);
        if !ascending || varying.len() != broadcast.iter().filter(|n| **n != 1).count() {
            return None;
        }
        let long = |(d, axis): &(usize, Axis)| axis.count().is_ok_and(|n| n != 1).then_some(*d);
        let wanted = self.axes[..place].iter().filter_map(long);
        let wanted =
            wanted.chain(varying.iter().map(|v| v.1)).chain(self.axes[place..].iter().filter_map(long));
        axes.sort_by_key(|a| a.0);
        let natural = axes.iter().filter_map(long);
        wanted.eq(natural).then(|| axes.into_iter().map(|(_, axis)| plainest(axis)).collect())
    }
}

/// A list of one position as a regular axis.
fn plainest(axis: Axis) -> Axis {
    match &axis {
        Axis::List(list) => match list.as_slice() {
            [start] => Axis::Regular { start: *start, stride: 1, count: 1, block: 1 },
            _ => axis,
        },
        Axis::Regular { .. } => axis,
    }
}

/// The shape that all of these broadcast to.
fn broadcast(shapes: &[&[u64]]) -> Result<Vec<u64>> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out = vec![1; rank];
    for shape in shapes {
        for (o, n) in out.iter_mut().rev().zip(shape.iter().rev()) {
            match (*o, *n) {
                (a, b) if a == b || b == 1 => {}
                (1, b) => *o = b,
                _ => {
                    return Err(Error::invalid(format!(
                        "index arrays of shapes {shapes:?} do not broadcast"
                    )));
                }
            }
        }
    }
    elements(&out)?;
    Ok(out)
}

/// A row-major array of `shape`, broadcast to `to`.
fn expand(list: &[u64], shape: &[u64], to: &[u64]) -> Vec<u64> {
    if shape == to {
        return list.to_vec();
    }
    let n = to.iter().product::<u64>() as usize;
    let skipped = to.len() - shape.len();
    let mut out = Vec::with_capacity(n);
    let mut coords = vec![0_u64; to.len()];
    for _ in 0..n {
        let at =
            shape.iter().zip(&coords[skipped..]).fold(0, |at, (n, c)| at * n + if *n == 1 { 0 } else { *c });
        out.push(list[at as usize]);
        for (c, n) in coords.iter_mut().zip(to).rev() {
            *c += 1;
            if *c < *n {
                break;
            }
            *c = 0;
        }
    }
    out
}

fn position(i: i64, dimension: usize, extent: u64) -> Result<u64> {
    let at = if i < 0 { extent.checked_sub(i.unsigned_abs()) } else { Some(i as u64) };
    at.filter(|at| *at < extent).ok_or_else(|| {
        Error::invalid(format!("index {i} is out of bounds for dimension {dimension} of extent {extent}"))
    })
}

/// Python's `slice.indices`.
fn slice(start: Option<i64>, stop: Option<i64>, step: i64, extent: u64) -> Axis {
    let extent = i128::from(extent);
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let clip = |i: Option<i64>, default: i128| match i.map(i128::from) {
        None => default,
        Some(i) if i < 0 => (i + extent).max(low),
        Some(i) => i.min(high),
    };
    let (first, last) =
        if step > 0 { (clip(start, low), clip(stop, high)) } else { (clip(start, high), clip(stop, low)) };
    let distance = if step > 0 { last - first } else { first - last };
    let count = if distance <= 0 { 0 } else { (distance - 1) / i128::from(step).abs() + 1 };
    let start = if count == 0 { 0 } else { first as u64 };
    // The step of a single position, which may be any number, says nothing.
    let stride = if count > 1 { step } else { 1 };
    Axis::Regular { start, stride, count: count as u64, block: 1 }
}

/// The plainest selection that says the same.
fn simplest(axes: Vec<Axis>, shape: &[u64]) -> Selection {
    if axes.iter().zip(shape).all(|(a, n)| *a == Axis::all(*n)) {
        return Selection::All;
    }
    let mut slab = Hyperslab::new(Vec::new(), Vec::new());
    for axis in &axes {
        let Axis::Regular { start, stride, count, block } = axis else { return Selection::Axes(axes) };
        slab.start.push(*start);
        slab.stride.push(*stride);
        slab.count.push(*count);
        slab.block.push(*block);
    }
    Selection::Hyperslab(slab)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(text: &str, shape: &[u64]) -> Result<Vec<u64>> {
        let resolved = text.parse::<NumpyIndex>()?.resolve(shape)?;
        let full = resolved.selection.shape(shape)?;
        assert_eq!(full.iter().product::<u64>(), resolved.shape.iter().product::<u64>());
        Ok(resolved.shape)
    }

    #[test]
    fn shapes_are_those_of_numpy() {
        // Each line was evaluated with numpy.zeros(shape)[text].shape.
        for (text, shape, expected) in [
            ("", vec![3, 4], vec![3, 4]),
            ("...", vec![3, 4], vec![3, 4]),
            ("1", vec![3, 4], vec![4]),
            ("-1, ::2", vec![3, 5], vec![3]),
            ("..., 0", vec![3, 4, 5], vec![3, 4]),
            ("0, ..., 1:3", vec![3, 4, 5], vec![4, 2]),
            ("0:10, :, 3, ::2", vec![20, 2, 4, 5], vec![10, 2, 3]),
            ("5:2", vec![9], vec![0]),
            ("5:2:-1", vec![9], vec![3]),
            ("::-1", vec![9], vec![9]),
            ("100:200", vec![9], vec![0]),
            ("-100:4", vec![9], vec![4]),
            ("-3:", vec![9], vec![3]),
            ("8:-100:-3", vec![9], vec![3]),
            ("[0, 2, 2, -1]", vec![3, 4], vec![4, 4]),
            (":, [1], :", vec![3, 4, 2], vec![3, 1, 2]),
            ("[]", vec![3], vec![0]),
            ("", vec![], vec![]),
            ("...", vec![], vec![]),
            ("None, 1, newaxis", vec![3, 4], vec![1, 1, 4]),
            ("[1], [2]", vec![3, 4], vec![1]),
            ("[1, 0], 0", vec![3, 4], vec![2]),
            ("0, :, [1, 2, 3]", vec![3, 4, 5], vec![3, 4]),
            (":, 0, [1, 2, 3]", vec![3, 4, 5], vec![4 - 1, 3]),
            ("[[0, 1], [2, 0]], ::-1", vec![3, 4], vec![2, 2, 4]),
            ("[True, False, True]", vec![3, 4], vec![2, 4]),
            ("[[True, False], [True, True]]", vec![2, 2, 5], vec![3, 5]),
            ("[[0], [1]], [0, 1, 2]", vec![3, 4], vec![2, 3]),
            ("True", vec![3, 4], vec![1, 3, 4]),
            ("False", vec![3, 4], vec![0, 3, 4]),
            ("[1], None, [2]", vec![3, 4], vec![1, 1]),
        ] {
            assert_eq!(shape_of(text, &shape).unwrap(), expected, "{text:?} of {shape:?}");
        }
    }

    #[test]
    fn independent_lists_stay_a_product() {
        for (text, shape) in [
            ("[[0], [2]], [[1, 3]]", vec![3, 4]),
            ("0, [1, 2]", vec![3, 4]),
            (":, [[0], [1]], [[2, 0]], ::2", vec![3, 4, 5, 6]),
            ("0, :, 0, [1]", vec![2, 1, 3, 4]),
        ] {
            let resolved = text.parse::<NumpyIndex>().unwrap().resolve(&shape).unwrap();
            assert!(resolved.selection.axes(&shape).unwrap().is_some(), "{text}");
        }
        let zipped = "[0, 1], [2, 3]".parse::<NumpyIndex>().unwrap().resolve(&[3, 4]).unwrap();
        assert_eq!(zipped.selection.runs(&[3, 4]).unwrap(), [2..3, 7..8]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "a",
            "1:2:3:4",
            "::0",
            "..., ...",
            "[1",
            "[1] 2",
            "1.5",
            "1:b",
            "[[1], [2, 3]]",
            "[1, True]",
            "]",
            ",",
            "[:]",
        ] {
            assert!(text.parse::<NumpyIndex>().is_err(), "{text:?}");
        }
        for (text, shape) in [
            ("3", vec![3]),
            ("-4", vec![3]),
            ("0, 0", vec![3]),
            ("[3]", vec![3]),
            ("0", vec![]),
            ("[0, 1], [0, 1, 2]", vec![3, 3]),
            ("[True, False]", vec![3]),
            ("[[True, False, True]]", vec![3]),
        ] {
            assert!(shape_of(text, &shape).is_err(), "{text:?} of {shape:?}");
        }
    }
}
