//! Virtual datasets: put together from parts of other datasets when they are read.
//!
//! A [`Mapping`](crate::format::virtual_block::Mapping) pairs elements of a source with elements of the virtual
//! dataset, in the order of both selections. Where both are regular and pair dimension by dimension, a read asks the
//! source for the outer product of what is needed along each dimension ([`Pairing`]); sources are opened when they are
//! first needed. Elements without a source, or whose source does not exist, are the fill value.

use super::convert::Conversion;
use super::dataset::DatasetInner;
use super::element::Kind;
use super::pairing::{Dimension, Pairing};
use super::plan::{ReadPlan, SourcePlan};
use super::{Dataset, File};
use crate::format::Address;
use crate::format::datatype::{Class, Datatype};
use crate::format::selection::StoredSelection;
use crate::format::virtual_block::{self, Mapping};
use std::collections::HashMap;
use std::sync::Mutex;
use tensilo_core::array::{Axis, Selection};
use tensilo_core::{Error, ErrorKind, Monitor, Result};

/// File and path of a source.
type SourceName = (Vec<u8>, Vec<u8>);

/// The mappings of a virtual dataset.
#[derive(Debug)]
pub(super) struct Virtual {
    mappings: Vec<Mapping>,
    /// Sources that were opened, by file and path.
    opened: Mutex<HashMap<SourceName, Dataset>>,
}

/// One mapping bound to a source: printf-like names filled in, unlimited counts made finite.
struct Bound {
    source: Dataset,
    pairing: Pairing,
}

impl Virtual {
    /// Reads the mappings.
    ///
    /// # Errors
    /// `Corrupt` when the block is damaged.
    pub(super) fn load(file: &File, heap: Option<Address>, index: u32) -> Result<Self> {
        let space = file.space();
        let mappings = match heap {
            None => Vec::new(),
            Some(heap) => {
                let object = space.global_heap_object(heap, index)?;
                virtual_block::parse(&object, object.offset(), space.sizes())?
            }
        };
        Ok(Self { mappings, opened: Mutex::default() })
    }

    /// Current extents: the stored ones, but along unlimited dimensions as far as the sources reach.
    ///
    /// # Errors
    /// As opening the sources, except that missing ones are none.
    pub(super) fn extents(&self, file: &File, stored: &[u64], max: &[Option<u64>]) -> Result<Vec<u64>> {
        let mut extents = stored.to_vec();
        let growing = |m: &Mapping| unlimited(&m.target).is_some();
        if !self.mappings.iter().any(growing) {
            return Ok(extents);
        }
        for (extent, max) in extents.iter_mut().zip(max) {
            if max.is_none() {
                *extent = 0;
            }
        }
        for mapping in &self.mappings {
            let reach = match (&mapping.target, unlimited(&mapping.target)) {
                (StoredSelection::Regular(dimensions), None) => {
                    dimensions.iter().map(|d| Dimension::new(d, None).end()).collect()
                }
                (StoredSelection::Regular(dimensions), Some(axis)) => {
                    let d = &dimensions[axis];
                    let mut ends: Vec<u64> =
                        dimensions.iter().map(|d| Dimension::new(d, Some(0)).end()).collect();
                    ends[axis] = match unlimited(&mapping.source) {
                        Some(from) => match self.open(file, mapping, None)? {
                            Some(source) => {
                                Dimension::new(d, Some(reach_of(&mapping.source, from, &source)?)).end()
                            }
                            None => 0,
                        },
                        None => {
                            let mut blocks = 0;
                            while self.open(file, mapping, Some(blocks))?.is_some() {
                                blocks += 1;
                                file.space().budget().items(blocks, "sources of a virtual dataset")?;
                            }
                            let block = d.block.unwrap_or(1);
                            if blocks == 0 {
                                0
                            } else {
                                (blocks - 1)
                                    .saturating_mul(d.stride)
                                    .saturating_add(d.start)
                                    .saturating_add(block)
                            }
                        }
                    };
                    ends
                }
                _ => continue,
            };
            for ((extent, end), max) in extents.iter_mut().zip(&reach).zip(max) {
                if max.is_none() {
                    *extent = (*extent).max(*end);
                }
            }
        }
        Ok(extents)
    }

    /// Opens the source of a mapping; block number for names with `%b`. `None` when it does not exist.
    fn open(&self, file: &File, mapping: &Mapping, block: Option<u64>) -> Result<Option<Dataset>> {
        let name = |text: &[u8]| match block {
            Some(b) => fill_in(text, b),
            None => text.to_vec(),
        };
        let key = (name(&mapping.file), name(&mapping.dataset));
        if let Some(known) = self.opened.lock().unwrap_or_else(|p| p.into_inner()).get(&key) {
            return Ok(Some(known.clone()));
        }
        let target = if key.0 == b"." { Ok(file.clone()) } else { file.named(&key.0) };
        match target.and_then(|f| f.dataset(&key.1)) {
            Ok(dataset) => {
                self.opened.lock().unwrap_or_else(|p| p.into_inner()).insert(key, dataset.clone());
                Ok(Some(dataset))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.context("a source of the virtual dataset")),
        }
    }

    /// The sources of all mappings.
    ///
    /// # Errors
    /// `NotFound` where one does not exist; as opening them.
    pub(super) fn sources(&self, data: &DatasetInner) -> Result<Vec<Dataset>> {
        let mut sources = Vec::new();
        for mapping in &self.mappings {
            let axis = unlimited(&mapping.target).filter(|_| unlimited(&mapping.source).is_none());
            let numbers = match (axis, &mapping.target) {
                (Some(axis), StoredSelection::Regular(d)) => {
                    let rest = data.shape[axis].saturating_sub(d[axis].start);
                    (0..rest.div_ceil(d[axis].stride.max(1))).map(Some).collect()
                }
                (_, StoredSelection::None) => continue,
                _ => vec![None],
            };
            for number in numbers {
                let Some(source) = self.open(&data.file, mapping, number)? else {
                    let name = String::from_utf8_lossy(&mapping.file).into_owned();
                    return Err(Error::not_found(format!(
                        "a source of the virtual dataset, in the file {name:?}, does not exist"
                    )));
                };
                data.file.space().budget().items(sources.len() as u64, "sources of a virtual dataset")?;
                sources.push(source);
            }
        }
        Ok(sources)
    }

    /// The mappings that touch a box of the virtual dataset (first and last position along each dimension), bound
    /// to their sources.
    fn bound(&self, data: &DatasetInner, low: &[u64], high: &[u64]) -> Result<Vec<Bound>> {
        let mut bound = Vec::new();
        for mapping in &self.mappings {
            let printf = unlimited(&mapping.target).filter(|_| unlimited(&mapping.source).is_none());
            let blocks = match (printf, &mapping.target) {
                (Some(axis), StoredSelection::Regular(d)) => {
                    // Only the blocks that lie between the ends.
                    let first = low[axis].saturating_sub(d[axis].start) / d[axis].stride.max(1);
                    let last = high[axis].saturating_sub(d[axis].start) / d[axis].stride.max(1);
                    first..last.saturating_add(1)
                }
                _ => 0..1,
            };
            data.file.space().budget().items(blocks.end - blocks.start, "sources of a virtual dataset")?;
            for block in blocks {
                let number = printf.map(|_| block);
                if printf.is_none() && !touches(mapping, low, high) {
                    continue;
                }
                let Some(source) = self.open(&data.file, mapping, number)? else { continue };
                let pairing = Pairing::new(
                    &mapping.source,
                    source.shape(),
                    &mapping.target,
                    &data.shape,
                    printf.map(|axis| (axis, block)),
                )?;
                bound.push(Bound { source, pairing });
            }
        }
        Ok(bound)
    }
}

/// Does a mapping's target reach into a box? Only what is surely outside is left out.
fn touches(mapping: &Mapping, low: &[u64], high: &[u64]) -> bool {
    match &mapping.target {
        StoredSelection::None => false,
        StoredSelection::Regular(dimensions) => {
            dimensions.iter().zip(low.iter().zip(high)).all(|(d, (low, high))| {
                let end = match (d.count, d.block) {
                    (Some(_), Some(_)) => Dimension::new(d, None).end(),
                    _ => u64::MAX,
                };
                d.start <= *high && end > *low
            })
        }
        _ => true,
    }
}

/// The dimension along which a selection is unlimited.
fn unlimited(selection: &StoredSelection) -> Option<usize> {
    match selection {
        StoredSelection::Regular(d) => d.iter().position(|d| d.count.is_none() || d.block.is_none()),
        _ => None,
    }
}

/// Positions of a source's unlimited selection along dimension `axis`, up to its current extent.
fn reach_of(selection: &StoredSelection, axis: usize, source: &Dataset) -> Result<u64> {
    let StoredSelection::Regular(dimensions) = selection else { return Ok(0) };
    let (Some(d), Some(extent)) = (dimensions.get(axis), source.shape().get(axis)) else {
        return Err(Error::corrupt("a virtual dataset's source has another rank than its mapping"));
    };
    Ok(Dimension::new(d, None).up_to(*extent))
}

/// `%b` becomes the block number, `%%` a percent sign.
fn fill_in(text: &[u8], block: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        match (byte, rest.as_slice().first()) {
            (b'%', Some(b'b')) => out.extend_from_slice(block.to_string().as_bytes()),
            (b'%', Some(b'%')) => out.push(b'%'),
            _ => {
                out.push(*byte);
                continue;
            }
        }
        rest.next();
    }
    out
}

/// Reads a selection of a virtual dataset.
pub(super) fn run(
    data: &DatasetInner,
    parts: &Virtual,
    selection: &Selection,
    conversion: Option<&Conversion>,
    destination: &mut [u8],
    level: u64,
    monitor: &dyn Monitor,
) -> Result<()> {
    let budget = data.file.space().budget();
    budget.depth(level, "a virtual dataset made of virtual datasets")?;
    let conversion = conversion.filter(|c| !c.is_copy());
    let width = conversion.map_or(data.width, Conversion::width);
    let wanted = Wanted::new(data, selection)?;
    if wanted.elements.checked_mul(width as u64) != Some(destination.len() as u64) {
        return Err(Error::invalid("the buffer does not have the size of the selection"));
    }
    fill(data, conversion, width, destination)?;
    if destination.is_empty() {
        return Ok(());
    }
    for bound in parts.bound(data, &wanted.low, &wanted.high)? {
        let between = between(data, bound.source.datatype())?;
        let Some(piece) = wanted.piece(data, &bound.pairing)? else { continue };
        // One conversion is done by the source's own read; two in a row need a buffer between them.
        let (first, second) = match (&between, conversion) {
            (None, c) => (c, None),
            (Some(b), c) => (Some(b), c),
        };
        if let (None, Some(range)) = (second, piece.run_of(width)?) {
            bound.source.run_at(&piece.source, first, &mut destination[range], false, level + 1, monitor)?;
            continue;
        }
        let n = piece.elements();
        let held = n.saturating_mul((data.width.max(width) + width) as u64);
        let _charge = budget.bytes(held, "a part of a virtual dataset")?;
        let each = if second.is_some() { data.width } else { width };
        let mut bytes = tensilo_core::buffer::zeroed_vec::<u8>(to_usize(n)? * each)?;
        bound.source.run_at(&piece.source, first, &mut bytes, true, level + 1, monitor)?;
        if let Some(c) = second {
            let mut converted = tensilo_core::buffer::zeroed_vec::<u8>(to_usize(n)? * width)?;
            c.convert(&bytes, &mut converted)?;
            bytes = converted;
        }
        piece.scatter(&bytes, width, destination)?;
    }
    Ok(())
}

/// What [`run`] will ask of each source.
pub(super) fn plan(
    data: &DatasetInner,
    parts: &Virtual,
    selection: &Selection,
    level: u64,
) -> Result<Vec<SourcePlan>> {
    data.file.space().budget().depth(level, "a virtual dataset made of virtual datasets")?;
    let wanted = Wanted::new(data, selection)?;
    let mut plans = Vec::new();
    if wanted.elements == 0 {
        return Ok(plans);
    }
    for Bound { source, pairing } in parts.bound(data, &wanted.low, &wanted.high)? {
        between(data, source.datatype())?;
        let Some(piece) = wanted.piece(data, &pairing)? else { continue };
        plans.push(SourcePlan {
            file: source.file().path().map(Into::into),
            path: source.path().to_vec(),
            plan: source.located(|| ReadPlan::at_level(&source.0, &piece.source, level + 1))?,
        });
    }
    Ok(plans)
}

fn to_usize(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::limit(format!("{n} elements do not fit in memory")))
}

fn fill(
    data: &DatasetInner,
    conversion: Option<&Conversion>,
    width: usize,
    destination: &mut [u8],
) -> Result<()> {
    let stored = data.fill_element();
    let element = match conversion {
        None => stored,
        Some(c) => {
            let mut element = vec![0; width];
            c.convert(&stored, &mut element).map_err(|e| e.context("the fill value"))?;
            element
        }
    };
    if element.iter().all(|b| *b == 0) {
        destination.fill(0);
    } else {
        destination.chunks_exact_mut(width).for_each(|d| d.copy_from_slice(&element));
    }
    Ok(())
}

/// How elements of a source become elements of the virtual dataset; `None` where they are the same.
fn between(data: &DatasetInner, source: &Datatype) -> Result<Option<Conversion>> {
    let target = &data.datatype;
    if source == target {
        return if fixed(target) {
            Ok(None)
        } else {
            Err(Error::unsupported("a virtual dataset of variable-length elements or references"))
        };
    }
    let kind = match &target.class {
        Class::Integer { signed: true, .. } => Kind::Signed(target.size as u8),
        Class::Integer { .. } => Kind::Unsigned(target.size as u8),
        Class::Float { .. } => Kind::Float(target.size as u8),
        _ => return Err(different(source, target)),
    };
    // Only where the virtual type is a plain number of this machine: then it is what a conversion makes.
    match Conversion::new(target, kind) {
        Ok(same) if same.is_copy() => Conversion::new(source, kind).map(Some),
        _ => Err(different(source, target)),
    }
}

fn different(source: &Datatype, target: &Datatype) -> Error {
    Error::unsupported(format!("a virtual dataset of type {target} with a source of type {source}"))
}

/// Does every element lie where it is, without references to other places of its file?
fn fixed(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::VarLen { .. } | Class::VarString { .. } | Class::Reference(_) => false,
        Class::Array { base, .. } => fixed(base),
        Class::Compound { members } => members.iter().all(|m| fixed(&m.datatype)),
        _ => true,
    }
}

/// What is wanted of a virtual dataset.
struct Wanted {
    /// Positions along each dimension, where the selection is a product.
    axes: Option<Vec<Vec<u64>>>,
    /// Row-major element numbers otherwise.
    numbers: Vec<u64>,
    shape: Vec<u64>,
    elements: u64,
    low: Vec<u64>,
    high: Vec<u64>,
}

/// Elements of one source and where they belong.
struct Piece {
    source: Selection,
    /// Positions in the result along each of its dimensions.
    targets: Vec<Vec<u64>>,
    /// Extents of the result.
    shape: Vec<u64>,
}

impl Wanted {
    fn new(data: &DatasetInner, selection: &Selection) -> Result<Self> {
        let shape = selection.shape(&data.shape)?;
        let elements = tensilo_core::array::elements(&shape)?;
        let budget = data.file.space().budget();
        let positions = |axis: &Axis| -> Result<Vec<u64>> {
            let n = axis.count()?;
            budget.bytes(n.saturating_mul(8), "positions of a selection").map(drop)?;
            Ok(axis.positions().collect())
        };
        let rank = data.shape.len();
        let mut new = Self {
            axes: None,
            numbers: Vec::new(),
            shape,
            elements,
            low: vec![0; rank],
            high: vec![0; rank],
        };
        if elements == 0 {
            return Ok(new);
        }
        match selection.axes(&data.shape)? {
            Some(axes) => {
                let axes = axes.iter().map(positions).collect::<Result<Vec<_>>>()?;
                new.low = axes.iter().map(|a| a.iter().copied().min().unwrap_or(0)).collect();
                new.high = axes.iter().map(|a| a.iter().copied().max().unwrap_or(0)).collect();
                new.axes = Some(axes);
            }
            None => {
                budget.bytes(elements.saturating_mul(8), "positions of a selection").map(drop)?;
                let _list = budget.bytes(selection.run_bytes(&data.shape), "the list of selected runs")?;
                let runs = selection.runs(&data.shape)?;
                new.numbers = runs.into_iter().flatten().collect();
                new.high = data.shape.iter().map(|n| n.saturating_sub(1)).collect();
            }
        }
        Ok(new)
    }

    /// What one mapping contributes.
    fn piece(&self, data: &DatasetInner, pairing: &Pairing) -> Result<Option<Piece>> {
        if let (Some(axes), Some(dimensions)) = (&self.axes, pairing.by_dimension()) {
            let mut targets = Vec::new();
            let mut source: Vec<Vec<u64>> = pairing.fixed_source();
            let mut repeats = false;
            for ((positions, target), from) in axes.iter().zip(dimensions.targets).zip(dimensions.sources) {
                let found = positions.iter().enumerate();
                let found = found.filter_map(|(out, at)| Some((out as u64, target.ordinal(*at)?)));
                let (outs, ins): (Vec<u64>, Vec<u64>) = found.unzip();
                if outs.is_empty() {
                    return Ok(None);
                }
                match from {
                    Some((axis, dimension)) => {
                        source[*axis] = ins.iter().map(|i| dimension.position(*i)).collect();
                    }
                    // The only position, wanted more than once.
                    None => repeats |= outs.len() > 1,
                }
                targets.push(outs);
            }
            if !repeats {
                let source = Selection::Axes(source.into_iter().map(as_axis).collect());
                return Ok(Some(Piece { source, targets, shape: self.shape.clone() }));
            }
        }
        // Element by element.
        let numbers: Vec<u64> = match &self.axes {
            None => self.numbers.clone(),
            Some(_) => {
                let budget = data.file.space().budget();
                budget.bytes(self.elements.saturating_mul(8), "positions of a selection").map(drop)?;
                self.all_numbers(&data.shape)?
            }
        };
        let mut outs = Vec::new();
        let mut coords = Vec::new();
        for (out, number) in numbers.iter().enumerate() {
            if pairing.source_of(*number, &mut coords) {
                outs.push(out as u64);
            }
        }
        if outs.is_empty() {
            return Ok(None);
        }
        let source = match pairing.source_rank() {
            0 => Selection::All,
            rank => Selection::Points(tensilo_core::array::Points::new(rank, coords)?),
        };
        Ok(Some(Piece { source, targets: vec![outs], shape: vec![self.elements] }))
    }

    /// Row-major element numbers of a product of axes.
    fn all_numbers(&self, shape: &[u64]) -> Result<Vec<u64>> {
        let steps = tensilo_core::array::strides(shape)?;
        let axes = self.axes.as_deref().unwrap_or(&[]);
        Ok(axes.iter().zip(&steps).fold(vec![0], |base, (axis, step)| {
            base.iter().flat_map(|b: &u64| axis.iter().map(move |i| b + i * step)).collect()
        }))
    }
}

/// The plainest axis with these positions.
fn as_axis(at: Vec<u64>) -> Axis {
    match at.as_slice() {
        [start, rest @ ..] => {
            let step = rest.first().map_or(1, |second| second.wrapping_sub(*start) as i64);
            let regular = step != 0 && at.windows(2).all(|p| p[1].wrapping_sub(p[0]) as i64 == step);
            if regular {
                return Axis::Regular { start: *start, stride: step, count: at.len() as u64, block: 1 };
            }
            Axis::List(at)
        }
        [] => Axis::List(at),
    }
}

impl Piece {
    fn elements(&self) -> u64 {
        self.targets.iter().map(|t| t.len() as u64).product()
    }

    /// The bytes of the result that the piece fills, where they are one run.
    fn run_of(&self, width: usize) -> Result<Option<std::ops::Range<usize>>> {
        let steps = tensilo_core::array::strides(&self.shape)?;
        let mut whole = true;
        for (outs, extent) in self.targets.iter().zip(&self.shape).rev() {
            let neighbours = outs.windows(2).all(|p| p[1] == p[0] + 1);
            if !neighbours || (outs.len() > 1 && !whole) {
                return Ok(None);
            }
            whole = whole && outs.len() as u64 == *extent;
        }
        let start: u64 =
            self.targets.iter().zip(&steps).map(|(outs, s)| outs.first().copied().unwrap_or(0) * s).sum();
        let (start, n) = (to_usize(start)? * width, to_usize(self.elements())? * width);
        Ok(Some(start..start + n))
    }

    /// Copies the elements, which are in the order of the targets, to where they belong.
    fn scatter(&self, bytes: &[u8], width: usize, destination: &mut [u8]) -> Result<()> {
        let steps = tensilo_core::array::strides(&self.shape)?;
        let steps: Vec<usize> = steps.iter().map(|s| *s as usize * width).collect();
        let mut src = bytes;
        place(&self.targets, &steps, width, 0, &mut src, destination)
            .ok_or_else(|| Error::corrupt("a part of a virtual dataset has the wrong size"))
    }
}

fn place(
    targets: &[Vec<u64>],
    steps: &[usize],
    width: usize,
    base: usize,
    src: &mut &[u8],
    dst: &mut [u8],
) -> Option<()> {
    let (Some((outs, inner)), Some((step, inner_steps))) = (targets.split_first(), steps.split_first())
    else {
        let (now, later) = src.split_at_checked(width)?;
        dst.get_mut(base..base + width)?.copy_from_slice(now);
        *src = later;
        return Some(());
    };
    if !inner.is_empty() {
        for out in outs {
            place(inner, inner_steps, width, base + *out as usize * step, src, dst)?;
        }
        return Some(());
    }
    // Neighbours along the last dimension are copied as one.
    let mut i = 0;
    while i < outs.len() {
        let mut n = 1;
        while i + n < outs.len() && outs[i + n] == outs[i] + n as u64 {
            n += 1;
        }
        let (now, later) = src.split_at_checked(n * width)?;
        let at = base + outs[i] as usize * step;
        dst.get_mut(at..at + n * width)?.copy_from_slice(now);
        *src = later;
        i += n;
    }
    Some(())
}
