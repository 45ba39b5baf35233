//! A selection cut along a chunk grid: one part per touched chunk.
//!
//! Cost is linear in the number of touched chunks along each axis plus the number of irregular positions, never
//! in the size of the array. What is built here is also the proof that parts may be written at the same time:
//! [`Split::new`] checks that along every axis (or in the list of runs) each position of the result belongs to
//! exactly one part.

use super::chunk_grid::ChunkGrid;
use super::selection::{Axis, Run, Selection, Wanted};
use super::shape::{elements, strides};
use crate::error::{Error, Result};
use crate::limits::{Budget, Charge};
use std::ops::Range;

/// A selection cut along a chunk grid.
///
/// ```
/// use tensilo_core::Budget;
/// use tensilo_core::array::{ChunkGrid, Hyperslab, Selection, Split};
/// let grid = ChunkGrid::new(&[10, 10], &[4, 4])?;
/// let selection = Selection::from(Hyperslab::new(vec![3, 0], vec![2, 4]));
/// let split = Split::new(&selection, &grid, &Budget::default())?;
/// assert_eq!(split.parts(), 2); // rows 3 and 4 lie in different chunks
/// assert_eq!(split.chunk(1), [1, 0]);
/// assert_eq!(split.elements_of(1), 4);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Split {
    grid: ChunkGrid,
    shape: Vec<u64>,
    pub(super) kind: Kind,
    parts: usize,
    _charge: Charge,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Outer product of axes, each cut on its own.
    Product(Vec<AxisSplit>),
    /// Runs grouped by chunk.
    Runs(RunSplit),
}

/// One axis cut along one dimension of the grid.
#[derive(Debug)]
pub(super) struct AxisSplit {
    /// Chunk coordinate and first run of each part, ascending; then an end mark.
    parts: Vec<(u64, usize)>,
    runs: Vec<AxisRun>,
    /// Positions in the result.
    pub(super) len: u64,
}

/// Neighbouring positions of the result that lie at equal distances inside one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AxisRun {
    pub(super) out: u64,
    pub(super) inside: u64,
    pub(super) len: u64,
    pub(super) step: i64,
}

/// Runs of a point list or union, grouped by chunk.
#[derive(Debug)]
pub(super) struct RunSplit {
    /// Number of the chunk and its first segment, ascending; then an end mark.
    groups: Vec<(u64, usize)>,
    segments: Vec<Segment>,
}

/// Elements that are neighbours in the chunk and in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    chunk: u64,
    pub(super) out: u64,
    pub(super) inside: u64,
    pub(super) len: u64,
}

impl Split {
    /// Cuts a selection of an array along the array's chunk grid.
    ///
    /// # Errors
    /// `InvalidArgument` when the selection does not fit the array; `Limit` when its description needs more
    /// memory than the budget has.
    pub fn new(selection: &Selection, grid: &ChunkGrid, budget: &Budget) -> Result<Self> {
        let _list = budget.bytes(selection.run_bytes(grid.shape()), "the list of selected runs")?;
        let wanted = selection.resolve(grid.shape())?;
        let shape = match &wanted {
            Wanted::Axes(axes) => axes.iter().map(Axis::count).collect::<Result<Vec<_>>>()?,
            Wanted::Runs(runs) => vec![runs.iter().map(|r| r.len).sum()],
        };
        let empty = elements(&shape)? == 0;
        let size = (size_of::<AxisRun>() + size_of::<(u64, usize)>()) as u64;
        let count = match &wanted {
            _ if empty => 0,
            Wanted::Axes(axes) => axes.iter().zip(grid.chunk()).map(|(a, c)| a.most_runs(*c)).sum(),
            Wanted::Runs(runs) => {
                let width = grid.chunk().last().copied().unwrap_or(1);
                runs.iter().map(|r| r.len / width + 2).sum::<u64>()
            }
        };
        let charge = budget.bytes(count.saturating_mul(size), "the list of selected parts")?;
        let kind = match wanted {
            _ if empty => Kind::Runs(RunSplit { groups: vec![(0, 0)], segments: Vec::new() }),
            Wanted::Axes(axes) => Kind::Product(
                axes.iter()
                    .zip(grid.chunk())
                    .map(|(axis, chunk)| AxisSplit::new(axis, *chunk))
                    .collect::<Result<_>>()?,
            ),
            Wanted::Runs(runs) => Kind::Runs(RunSplit::new(&runs, grid)?),
        };
        let parts = match &kind {
            Kind::Product(axes) => axes
                .iter()
                .try_fold(1_usize, |n, a| n.checked_mul(a.parts()))
                .ok_or_else(|| Error::limit("the selection touches too many chunks"))?,
            Kind::Runs(runs) => runs.groups.len() - 1,
        };
        Ok(Self { grid: grid.clone(), shape, kind, parts, _charge: charge })
    }

    /// The chunk grid.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Shape of the result.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Number of elements of the result.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Number of parts, which is the number of touched chunks.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Coordinates of the chunk that holds a part.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn chunk(&self, part: usize) -> Vec<u64> {
        match &self.kind {
            Kind::Product(axes) => {
                let mut rest = part;
                let mut out = vec![0; axes.len()];
                for (c, axis) in out.iter_mut().zip(axes).rev() {
                    *c = axis.parts[rest % axis.parts()].0;
                    rest /= axis.parts();
                }
                assert!(rest == 0, "part {part} of {}", self.parts);
                out
            }
            Kind::Runs(runs) => self.grid.coords(runs.groups[..self.parts][part].0),
        }
    }

    /// Number of the chunk that holds a part, in the grid's row-major order.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn chunk_number(&self, part: usize) -> u64 {
        match &self.kind {
            Kind::Product(_) => self.grid.linear(&self.chunk(part)),
            Kind::Runs(runs) => runs.groups[..self.parts][part].0,
        }
    }

    /// Number of elements of a part.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn elements_of(&self, part: usize) -> u64 {
        match &self.kind {
            Kind::Product(_) => {
                self.axis_runs(part).map(|(_, r)| r.iter().map(|r| r.len).sum::<u64>()).product()
            }
            Kind::Runs(_) => self.segments(part).iter().map(|s| s.len).sum(),
        }
    }

    /// The runs of a part along each axis of a product; empty for runs.
    pub(super) fn axis_runs(&self, part: usize) -> impl Iterator<Item = (&AxisSplit, &[AxisRun])> {
        let axes: &[AxisSplit] = match &self.kind {
            Kind::Product(axes) => axes,
            Kind::Runs(_) => &[],
        };
        let mut after: usize = axes.iter().map(AxisSplit::parts).product();
        let mut rest = part;
        axes.iter().map(move |axis| {
            after /= axis.parts();
            let i = rest / after;
            rest %= after;
            (axis, &axis.runs[axis.range(i)])
        })
    }

    /// The segments of a part of runs; empty for a product.
    pub(super) fn segments(&self, part: usize) -> &[Segment] {
        match &self.kind {
            Kind::Product(_) => &[],
            Kind::Runs(runs) => &runs.segments[runs.groups[part].1..runs.groups[part + 1].1],
        }
    }
}

impl Axis {
    /// No cut of this axis has more runs.
    fn most_runs(&self, chunk: u64) -> u64 {
        match self {
            Self::List(at) => at.len() as u64,
            Self::Regular { stride, count, block, .. } => {
                let reach = stride.unsigned_abs().saturating_mul(*count).saturating_add(*block);
                let chunks = reach / chunk.max(1) + 2;
                if *block == 1 || stride.unsigned_abs() == *block || *count == 1 {
                    chunks.min(count.saturating_mul(*block))
                } else {
                    count.saturating_add(chunks)
                }
            }
        }
    }
}

impl AxisSplit {
    fn parts(&self) -> usize {
        self.parts.len() - 1
    }

    fn range(&self, part: usize) -> Range<usize> {
        self.parts[part].1..self.parts[part + 1].1
    }

    fn new(axis: &Axis, chunk: u64) -> Result<Self> {
        let mut new = Self { parts: Vec::new(), runs: Vec::new(), len: axis.count()? };
        match axis {
            Axis::Regular { start, count, block, stride } => {
                if *count == 1 || stride.unsigned_abs() == *block {
                    if *stride < 0 && *count > 1 {
                        new.push_regular(*start, -1, *count, chunk);
                    } else {
                        new.push_regular(*start, 1, count * block, chunk);
                    }
                } else if *block == 1 {
                    new.push_regular(*start, *stride, *count, chunk);
                } else {
                    new.push_blocks(*start, stride.unsigned_abs(), *count, *block, chunk);
                }
            }
            Axis::List(at) => new.push_list(at, chunk),
        }
        new.parts.push((0, new.runs.len()));
        new.verify(chunk)?;
        Ok(new)
    }

    fn push(&mut self, chunk: u64, run: AxisRun) {
        if self.parts.last().is_none_or(|(c, _)| *c != chunk) {
            self.parts.push((chunk, self.runs.len()));
        }
        self.runs.push(run);
    }

    fn push_regular(&mut self, start: u64, step: i64, count: u64, chunk: u64) {
        let width = step.unsigned_abs();
        let mut out = 0;
        while out < count {
            let at = if step > 0 { start + out * width } else { start - out * width };
            let number = at / chunk;
            let inside = at % chunk;
            let room = if step > 0 { (chunk - 1 - inside) / width } else { inside / width };
            let len = (room + 1).min(count - out);
            self.push(number, AxisRun { out, inside, len, step });
            out += len;
        }
        if step < 0 {
            self.reverse();
        }
    }

    /// Puts parts of one run each into ascending order of chunks.
    fn reverse(&mut self) {
        self.runs.reverse();
        self.parts.reverse();
        for (i, part) in self.parts.iter_mut().enumerate() {
            part.1 = i;
        }
    }

    fn push_blocks(&mut self, start: u64, stride: u64, count: u64, block: u64, chunk: u64) {
        for i in 0..count {
            let mut done = 0;
            while done < block {
                let at = start + i * stride + done;
                let len = (chunk - at % chunk).min(block - done);
                let run = AxisRun { out: i * block + done, inside: at % chunk, len, step: 1 };
                self.push(at / chunk, run);
                done += len;
            }
        }
    }

    fn push_list(&mut self, at: &[u64], chunk: u64) {
        if at.is_sorted_by_key(|i| i / chunk) {
            return at.iter().enumerate().for_each(|(out, i)| self.push_position(out as u64, *i, chunk));
        }
        let mut order: Vec<(u64, u64)> = (0..).zip(at.iter().copied()).collect();
        order.sort_by_key(|(_, i)| i / chunk);
        for (out, i) in order {
            self.push_position(out, i, chunk);
        }
    }

    fn push_position(&mut self, out: u64, at: u64, chunk: u64) {
        let (number, inside) = (at / chunk, at % chunk);
        let same = self.parts.last().is_some_and(|(c, _)| *c == number);
        if let Some(last) = self.runs.last_mut().filter(|_| same) {
            let step = inside as i64 - (last.inside as i64 + last.step * (last.len as i64 - 1));
            let fits = last.len == 1 || step == last.step;
            if fits && step != 0 && last.out + last.len == out {
                last.step = step;
                last.len += 1;
                return;
            }
        }
        self.push(number, AxisRun { out, inside, len: 1, step: 1 });
    }

    /// Proves that every run stays inside its chunk and that each position belongs to exactly one run.
    fn verify(&self, chunk: u64) -> Result<()> {
        for run in &self.runs {
            let reach = run.step.checked_mul(run.len.wrapping_sub(1) as i64);
            let last = reach.and_then(|r| run.inside.checked_add_signed(r));
            if run.len == 0 || run.inside >= chunk || last.is_none_or(|l| l >= chunk) {
                return Err(Error::invalid(format!("run {run:?} leaves its chunk of {chunk}")));
            }
        }
        exact_cover(self.runs.iter().map(|r| (r.out, r.len)), self.len)
    }
}

impl RunSplit {
    fn new(runs: &[Run], grid: &ChunkGrid) -> Result<Self> {
        let steps = strides(grid.shape())?;
        let inner = strides(grid.chunk())?;
        let last = steps.len().saturating_sub(1);
        let mut segments = Vec::with_capacity(runs.len());
        let mut out = 0;
        for run in runs {
            let mut done = 0;
            while done < run.len {
                let mut rest = run.start + done;
                let (mut chunk, mut inside, mut room) = (0, 0, 1);
                for (axis, step) in steps.iter().enumerate() {
                    let (at, extent) = (rest / step, grid.chunk()[axis]);
                    rest %= step;
                    chunk = chunk * grid.counts()[axis] + at / extent;
                    inside += at % extent * inner[axis];
                    if axis == last {
                        room = (extent - at % extent).min(grid.shape()[axis] - at);
                    }
                }
                let len = room.min(run.len - done);
                segments.push(Segment { chunk, out, inside, len });
                out += len;
                done += len;
            }
        }
        if !segments.is_sorted_by_key(|s| s.chunk) {
            segments.sort_by_key(|s| s.chunk);
        }
        let mut groups: Vec<(u64, usize)> = Vec::new();
        for (i, segment) in segments.iter().enumerate() {
            if groups.last().is_none_or(|(c, _)| *c != segment.chunk) {
                groups.push((segment.chunk, i));
            }
        }
        groups.push((0, segments.len()));
        let room = grid.chunk_elements();
        if segments.iter().any(|s| s.inside.checked_add(s.len).is_none_or(|end| end > room)) {
            return Err(Error::invalid("a run leaves its chunk"));
        }
        exact_cover(segments.iter().map(|s| (s.out, s.len)), out)?;
        Ok(Self { groups, segments })
    }
}

/// Proves that ranges (start, length) cover `0..total`, each position once.
fn exact_cover(ranges: impl Iterator<Item = (u64, u64)> + Clone, total: u64) -> Result<()> {
    if in_order(ranges.clone(), total) {
        return Ok(());
    }
    let mut sorted: Vec<(u64, u64)> = ranges.collect();
    sorted.sort_unstable();
    if in_order(sorted.into_iter(), total) {
        return Ok(());
    }
    Err(Error::invalid("the parts of the selection overlap or leave gaps"))
}

fn in_order(mut ranges: impl Iterator<Item = (u64, u64)>, total: u64) -> bool {
    let mut next = 0_u64;
    ranges.all(|(start, len)| {
        let fits = start == next;
        next = next.saturating_add(len);
        fits
    }) && next == total
}
