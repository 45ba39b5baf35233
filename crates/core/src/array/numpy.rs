//! Selections written as NumPy writes them: `0:10, :, 3, ::-2, ..., [1, 5]`.

use super::hyperslab::Hyperslab;
use super::selection::{Axis, Selection};
use crate::error::{Error, Result};
use std::str::FromStr;

/// An index in NumPy's syntax, not yet bound to an array.
///
/// Integers (negative ones count from the end) drop their dimension, slices may be open and have any step, one
/// `...` stands for all dimensions not named, and one list of integers in brackets picks positions.
///
/// ```
/// use tensilo_core::array::NumpyIndex;
/// let index: NumpyIndex = "-1, 2:8:2".parse()?;
/// let resolved = index.resolve(&[4, 10, 5])?;
/// assert_eq!(resolved.shape, [3, 5]); // the first dimension is gone, the last one is whole
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumpyIndex {
    items: Vec<Item>,
}

/// An index bound to an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What is wanted.
    pub selection: Selection,
    /// Shape of the result without the dimensions that integers drop.
    pub shape: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Integer(i64),
    Slice { start: Option<i64>, stop: Option<i64>, step: i64 },
    List(Vec<i64>),
    Ellipsis,
}

impl FromStr for NumpyIndex {
    type Err = Error;

    /// Parses the text between NumPy's brackets; empty text wants everything.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |why: &str| Error::invalid(format!("selection {text:?}: {why}"));
        let mut items = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (item, after) = if let Some(list) = rest.strip_prefix('[') {
                let (inside, after) = list.split_once(']').ok_or_else(|| bad("'[' is not closed"))?;
                let numbers = inside.split(',').map(str::trim).filter(|n| !n.is_empty());
                let list = numbers.map(|n| number(n).ok_or_else(|| bad("a list holds integers only")));
                let after = after.trim_start();
                (
                    Item::List(list.collect::<Result<_>>()?),
                    after.strip_prefix(',').or(after.is_empty().then_some("")),
                )
            } else {
                let (item, after) = rest.split_once(',').unwrap_or((rest, ""));
                (
                    parse_item(item.trim()).ok_or_else(|| bad("not an integer, slice, list or '...'"))?,
                    Some(after),
                )
            };
            items.push(item);
            rest = after.ok_or_else(|| bad("',' expected behind ']'"))?.trim_start();
        }
        if items.iter().filter(|i| **i == Item::Ellipsis).count() > 1 {
            return Err(bad("'...' may appear once"));
        }
        let lists = items.iter().filter(|i| matches!(i, Item::List(_))).count();
        if lists > 1 || (lists == 1 && items.iter().any(|i| matches!(i, Item::Integer(_)))) {
            return Err(bad(
                "a list cannot be combined with another list or an integer; write n:n+1 instead",
            ));
        }
        if items.iter().any(|i| matches!(i, Item::Slice { step: 0, .. })) {
            return Err(bad("a slice step cannot be zero"));
        }
        Ok(Self { items })
    }
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn parse_item(text: &str) -> Option<Item> {
    if text == "..." {
        return Some(Item::Ellipsis);
    }
    if !text.contains(':') {
        return number(text).map(Item::Integer);
    }
    let mut parts = text.split(':').map(|p| match p.trim() {
        "" => Some(None),
        n => number(n).map(Some),
    });
    let (start, stop, step) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(None))?);
    parts.next().is_none().then_some(Item::Slice { start, stop, step: step.unwrap_or(1) })
}

impl NumpyIndex {
    /// Binds the index to an array of this shape, by NumPy's rules: slices are clipped, integers are not.
    ///
    /// # Errors
    /// `InvalidArgument` when an integer is out of bounds or there are more indices than dimensions.
    pub fn resolve(&self, shape: &[u64]) -> Result<Resolved> {
        let named = self.items.iter().filter(|i| **i != Item::Ellipsis).count();
        let open = shape.len().checked_sub(named).ok_or_else(|| {
            Error::invalid(format!("{named} indices for an array of {} dimensions", shape.len()))
        })?;
        let mut axes = Vec::with_capacity(shape.len());
        let mut kept = Vec::new();
        let mut extents = shape.iter().copied();
        let whole = |axes: &mut Vec<Axis>, kept: &mut Vec<u64>, extents: &mut dyn Iterator<Item = u64>| {
            for extent in extents.take(open) {
                axes.push(Axis::all(extent));
                kept.push(extent);
            }
        };
        for item in &self.items {
            if *item == Item::Ellipsis {
                whole(&mut axes, &mut kept, &mut extents);
                continue;
            }
            let Some(extent) = extents.next() else { break };
            let axis = bind(item, axes.len(), extent)?;
            if !matches!(item, Item::Integer(_)) {
                kept.push(axis.count()?);
            }
            axes.push(axis);
        }
        if !self.items.contains(&Item::Ellipsis) {
            whole(&mut axes, &mut kept, &mut extents);
        }
        Ok(Resolved { selection: simplest(axes, shape), shape: kept })
    }
}

fn bind(item: &Item, dimension: usize, extent: u64) -> Result<Axis> {
    let position = |i: i64| {
        let at = if i < 0 { extent.checked_sub(i.unsigned_abs()) } else { Some(i as u64) };
        at.filter(|at| *at < extent).ok_or_else(|| {
            Error::invalid(format!("index {i} is out of bounds for dimension {dimension} of extent {extent}"))
        })
    };
    Ok(match item {
        Item::Integer(i) => Axis::Regular { start: position(*i)?, stride: 1, count: 1, block: 1 },
        Item::List(list) => Axis::List(list.iter().map(|i| position(*i)).collect::<Result<_>>()?),
        Item::Slice { start, stop, step } => slice(*start, *stop, *step, extent),
        Item::Ellipsis => Axis::all(extent),
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
    Axis::Regular { start, stride: step, count: count as u64, block: 1 }
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
        ] {
            assert_eq!(shape_of(text, &shape).unwrap(), expected, "{text:?} of {shape:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["a", "1:2:3:4", "::0", "..., ...", "[1", "[1] 2", "1.5", "[1], [2]", "[1], 0", "1:b"] {
            assert!(text.parse::<NumpyIndex>().is_err(), "{text:?}");
        }
        for (text, shape) in
            [("3", vec![3]), ("-4", vec![3]), ("0, 0", vec![3]), ("[3]", vec![3]), ("0", vec![])]
        {
            assert!(shape_of(text, &shape).is_err(), "{text:?} of {shape:?}");
        }
    }
}
