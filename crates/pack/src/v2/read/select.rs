//! Any selection of scan and detector axes: only the blocks it touches are read, on all threads of the pack.

use super::Pack;
use super::blocks::{BlockScratch, Wanted};
use crate::read::Values;
use crate::v2::codec;
use crate::v2::counts::{CountType, Sample, with_sample};
use std::ops::Range;
use std::sync::Mutex;
use tensilo_core::array::{Axis, Canvas, Points, Selection, Split};
use tensilo_core::{Error, Monitor, Quiet, Result};

/// A Rust type that a source's counts have: unsigned or signed, of 8, 16 or 32 bits.
pub trait SourceCount: bytemuck::Pod + Default + Send + Sync {
    /// Is it the Rust type of these counts?
    fn is(counts: CountType) -> bool;
}

macro_rules! source_counts {
    ($($t:ty, $bytes:literal, $signed:literal;)*) => {$(
        impl SourceCount for $t {
            fn is(counts: CountType) -> bool {
                counts.bytes() == $bytes && counts.is_signed() == $signed
            }
        }
    )*};
}

source_counts! {
    u8, 1, false;
    u16, 2, false;
    u32, 4, false;
    i8, 1, true;
    i16, 2, true;
    i32, 4, true;
}

/// Bands of rectangles of one frame that are worth a thread.
const LEAST_BANDS: u64 = 4;

impl Pack {
    /// Reads a selection of the whole shape, row-major.
    ///
    /// # Errors
    /// `InvalidArgument` when `T` is not the source's type or the selection does not fit the shape; `Limit`; errors of
    /// reading.
    pub fn read<T: SourceCount>(&self, selection: &Selection, values: Values) -> Result<Vec<T>> {
        let n = selection.elements(&self.shape())?;
        let _charge = self.0.budget.bytes(n.saturating_mul(size_of::<T>() as u64), "the result of a read")?;
        let n = usize::try_from(n).map_err(|_| Error::limit("a result larger than memory"))?;
        let mut out = tensilo_core::buffer::zeroed_vec(n)?;
        self.read_into(selection, values, &mut out, &Quiet)?;
        Ok(out)
    }

    /// Reads a selection of the whole shape into the caller's buffer, which must have exactly the right length.
    ///
    /// # Errors
    /// As [`read`](Self::read), and the monitor's.
    pub fn read_into<T: SourceCount>(
        &self,
        selection: &Selection,
        values: Values,
        out: &mut [T],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        if !T::is(self.layout().counts()) {
            let e = format!("values of another type; the pack holds {}", self.layout().counts());
            return Err(Error::invalid(e));
        }
        self.read_bytes_into(selection, values, bytemuck::cast_slice_mut(out), monitor)
    }

    /// Reads a selection as bytes, elements in this machine's byte order.
    ///
    /// # Errors
    /// As [`read_into`](Self::read_into).
    pub fn read_bytes_into(
        &self,
        selection: &Selection,
        values: Values,
        out: &mut [u8],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        with_sample!(self.layout().counts(), T => self.selected::<T>(selection, values, out, monitor))
    }

    /// Reads whole frames, one behind the other, as bytes in this machine's byte order.
    ///
    /// # Errors
    /// `InvalidArgument` when the scans are not there or `out` has another length; errors of reading, the monitor's.
    pub fn frames_into(
        &self,
        scans: Range<u64>,
        values: Values,
        out: &mut [u8],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let l = self.layout();
        let expected = scans.end.checked_sub(scans.start).and_then(|n| n.checked_mul(l.frame_bytes()));
        if scans.end > l.scans() || expected != Some(out.len() as u64) {
            let e = format!("scans {scans:?} of {} in a buffer of {} bytes", l.scans(), out.len());
            return Err(Error::invalid(e));
        }
        if out.is_empty() {
            return Ok(());
        }
        with_sample!(l.counts(), T => match bytemuck::try_cast_slice_mut::<u8, T>(out) {
            Ok(counts) => self.whole_frames(scans, values, counts, monitor),
            // A buffer that is not aligned for its counts.
            Err(_) => {
                let one = |range: &Range<u64>| Axis::Regular {
                    start: range.start, stride: 1, count: range.end - range.start, block: 1,
                };
                let all = [scans.clone(), 0..l.rows(), 0..l.columns()];
                let selection = Selection::Axes(all.iter().map(one).collect());
                self.placed::<T>(&selection, values, out, monitor)
            }
        })
    }

    fn whole_frames<T: Sample>(
        &self,
        scans: Range<u64>,
        values: Values,
        out: &mut [T],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let l = self.layout();
        let (tile_scans, pixels) = (u64::from(l.block().scans), l.pixels() as usize);
        let tiles = scans.start / tile_scans..scans.end.div_ceil(tile_scans);
        let downs = l.rects() / l.across();
        let one = scans.end - scans.start == 1;
        if !one && tiles.end - tiles.start < self.threads().get() as u64 {
            let range =
                |r: Range<u64>| Axis::Regular { start: r.start, stride: 1, count: r.end - r.start, block: 1 };
            let axes = vec![range(scans), range(0..l.rows()), range(0..l.columns())];
            return self.placed::<T>(&Selection::Axes(axes), values, bytemuck::cast_slice_mut(out), monitor);
        }
        // Tiles are shared out; of a single frame, bands of rectangles.
        let share = if one { downs.div_ceil(self.threads().get() as u64).max(LEAST_BANDS) } else { downs };
        let row = l.columns() as usize;
        let mut parts = Vec::new();
        let mut rest = out;
        for tile in tiles {
            let of_tile = l.tile(tile);
            let part = of_tile.start.max(scans.start)..of_tile.end.min(scans.end);
            let inside = (part.start - of_tile.start) as usize..(part.end - of_tile.start) as usize;
            for first in (0..downs).step_by(share as usize) {
                let bands = first..downs.min(first + share);
                let rows =
                    (bands.end * u64::from(l.block().rows)).min(l.rows()) - first * u64::from(l.block().rows);
                let (counts, later) = rest.split_at_mut(inside.len() * rows as usize * row);
                rest = later;
                parts.push((tile, inside.clone(), bands, Mutex::new(counts)));
            }
        }
        let restore = self.restores(values);
        let total = parts.iter().map(|(_, _, bands, _)| bands.end - bands.start).sum();
        self.threads().for_each(
            parts.len(),
            monitor,
            "unpacking",
            total,
            BlockScratch::default,
            |scratch, i, done| {
                let (tile, inside, bands, counts) = &parts[i];
                let mut counts = counts.lock().unwrap_or_else(|p| p.into_inner());
                let place = codec::Layout { scan_stride: pixels, columns: row, row_stride: row };
                let wanted = Wanted { scans: inside.clone(), place, restore };
                for down in bands.clone() {
                    let corner = (down - bands.start) as usize * l.block().rows as usize * row;
                    self.decode_band(*tile, down, &wanted, &mut counts[corner..], scratch)?;
                    done.add(1);
                }
                Ok(())
            },
        )
    }

    fn selected<T: Sample>(
        &self,
        selection: &Selection,
        values: Values,
        out: &mut [u8],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let flat = self.flattened(selection)?;
        if let Selection::Axes(axes) = &flat
            && let [Axis::Regular { start, stride: 1, count, block: 1 }, rows, columns] = &axes[..]
            && *rows == Axis::all(self.layout().rows())
            && *columns == Axis::all(self.layout().columns())
            && bytemuck::try_cast_slice_mut::<u8, T>(out).is_ok()
        {
            return self.frames_into(*start..start.saturating_add(*count), values, out, monitor);
        }
        self.placed::<T>(&flat, values, out, monitor)
    }

    /// Reads a selection of scans, detector rows and columns.
    fn placed<T: Sample>(
        &self,
        selection: &Selection,
        values: Values,
        out: &mut [u8],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let l = self.layout();
        let split = Split::new(selection, &self.0.grid, &self.0.budget)?;
        let canvas = Canvas::new(&split, out, T::BYTES)?;
        let block = l.block();
        let (rows, columns) = (block.rows as usize, block.columns as usize);
        let (frame, restore) = (rows * columns, self.restores(values));
        let total = split.parts() as u64;
        let _charge = self.0.budget.bytes(
            (block.scans as usize * frame * T::BYTES * self.threads().get().min(split.parts())) as u64,
            "decoded blocks",
        )?;
        let scratch = || (BlockScratch::default(), Vec::<T>::new());
        self.threads().for_each(
            split.parts(),
            monitor,
            "reading",
            total,
            scratch,
            |(scratch, counts), part, done| {
                let coords = split.chunk(part);
                let [tile, down, along] = coords[..] else {
                    return Err(Error::invalid("a block has three coordinates"));
                };
                let number = down * l.across() + along;
                let rect = l.rect(number);
                let ranges = split.ranges_in_chunk(part, T::BYTES, usize::MAX);
                let (first, last) =
                    (ranges.first().map_or(0, |r| r.start), ranges.last().map_or(0, |r| r.end));
                let scans = first / (frame * T::BYTES)..last.div_ceil(frame * T::BYTES);
                counts.clear();
                counts.resize(scans.len() * frame, T::default());
                let place = codec::Layout { scan_stride: frame, columns: rect.width(), row_stride: columns };
                let from = scans.start * frame * T::BYTES;
                let wanted = Wanted { scans, place, restore };
                self.decode_block(tile, number, &wanted, counts, scratch)?;
                let Some(mut to) = canvas.tile(part) else {
                    return Err(Error::invalid("a part was read twice"));
                };
                to.place(bytemuck::cast_slice(counts), from)?;
                done.add(1);
                Ok(())
            },
        )
    }

    /// A selection of the whole shape as one of scans, detector rows and columns.
    fn flattened(&self, selection: &Selection) -> Result<Selection> {
        let (l, shape) = (self.layout(), self.shape());
        let scan_axes = l.scan_shape().len();
        if let Some(axes) = selection.axes(&shape)? {
            let (scan, detector) = axes.split_at(scan_axes);
            let (rows, columns) = detector.split_at(detector.len() - 1);
            let scan = self.product(scan, l.scan_shape())?;
            let rows = self.product(rows, &l.detector_shape()[..rows.len()])?;
            return Ok(Selection::Axes(vec![scan, rows, columns[0].clone()]));
        }
        // Row-major positions are the same in both shapes.
        let runs = selection.runs(&shape)?;
        let n = runs.iter().map(|r| r.end - r.start).sum::<u64>();
        let _charge = self.0.budget.bytes(n.saturating_mul(24), "selected points")?;
        let mut coords = Vec::with_capacity(n as usize * 3);
        for at in runs.into_iter().flatten() {
            let pixel = at % l.pixels();
            coords.extend([at / l.pixels(), pixel / l.columns(), pixel % l.columns()]);
        }
        Ok(Points::new(3, coords)?.into())
    }

    /// Several axes as one: their outer product, row-major.
    fn product(&self, axes: &[Axis], shape: &[u64]) -> Result<Axis> {
        let regular = |start, count| Axis::Regular { start, stride: 1, count, block: 1 };
        match axes {
            [] => return Ok(regular(0, 1)),
            [one] => return Ok(one.clone()),
            _ if axes.iter().zip(shape).all(|(a, n)| *a == Axis::all(*n)) => {
                return Ok(Axis::all(shape.iter().product()));
            }
            _ => {}
        }
        let counts = axes.iter().map(Axis::count).collect::<Result<Vec<_>>>()?;
        let n = counts.iter().try_fold(1_u64, |n, c| n.checked_mul(*c));
        let n = n.ok_or_else(|| Error::invalid("2^64 positions or more"))?;
        let _charge = self.0.budget.bytes(n.saturating_mul(16), "selected positions")?;
        let mut positions = vec![0_u64];
        for (axis, side) in axes.iter().zip(shape) {
            let here: Vec<u64> = axis.positions().collect();
            positions = positions.iter().flat_map(|p| here.iter().map(move |h| p * side + h)).collect();
        }
        let run = positions.windows(2).all(|w| w[0].checked_add(1) == Some(w[1]));
        Ok(match positions.first() {
            Some(first) if run => regular(*first, positions.len() as u64),
            _ => Axis::List(positions),
        })
    }
}
