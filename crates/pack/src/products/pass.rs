//! The pass over all shards that makes every integer product.
//!
//! A shard is cut into blocks of pixels; units of work are (shard, block), so that many cores share few shards, and
//! a few shards are worked on side by side, so that one is read and checked while others are summed.

use super::sums::{Sums, fits_u64};
use super::{BandSums, Moments, Products, Request};
use crate::read::{Pack, Shard};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tensilo_core::limits::Charge;
use tensilo_core::{Error, Monitor, Result};

/// Values that one unit of work unpacks, about.
const UNIT: u64 = 4 << 20;

/// What the pass needs to know, the same for every unit.
struct Plan<'a> {
    pack: &'a Pack,
    request: &'a Request,
    pixels: usize,
    columns: usize,
    scans: usize,
    /// Pixels of a block.
    block: usize,
}

/// A shard that some units still need.
struct Slot {
    shard: Mutex<Option<Arc<Shard>>>,
    left: Mutex<usize>,
}

/// Results under way.
struct Totals {
    sum: Vec<u64>,
    max: Vec<u64>,
    total: Vec<u64>,
    row: Vec<u64>,
    column: Vec<u64>,
    bands: [Vec<u64>; 3],
    /// For each shard, what the widths allow a scan's band sum to be.
    bounds: Vec<[u128; 3]>,
}

/// One worker's memory.
struct Scratch {
    values: Vec<u16>,
    row: Sums,
    column: Sums,
    bands: [Sums; 3],
    /// Sums of one unit, by scan.
    unit: [Vec<u64>; 6],
    pixels: Vec<[u64; 2]>,
}

pub(super) fn run(pack: &Pack, request: &Request, monitor: &dyn Monitor) -> Result<Products> {
    check_bounds(pack, request)?;
    let g = *pack.geometry();
    let fit = |n: u64| usize::try_from(n).map_err(|_| Error::limit("the products do not fit in memory"));
    let (pixels, scans) = (fit(g.pixels())?, pack.index().cut.scans_per_shard as usize);
    let shards = pack.index().shards.len();
    let block = fit((UNIT / scans as u64).clamp(1, g.pixels()))?;
    let blocks = pixels.div_ceil(block);
    let plan = Plan { pack, request, pixels, columns: g.detector_columns() as usize, scans, block };
    let (totals, _charge) = plan.totals()?;
    let totals = Mutex::new(totals);
    let slots: Vec<Slot> =
        (0..shards).map(|_| Slot { shard: Mutex::new(None), left: Mutex::new(blocks) }).collect();
    let units = units(shards, blocks, plan.side_by_side());
    let bytes: u64 = pack.index().shards.iter().map(|s| s.payload.bytes).sum();
    pack.threads().for_each(
        units.len(),
        monitor,
        "summing",
        bytes,
        || plan.scratch(),
        |scratch, i, done| {
            let (k, b) = units[i];
            let shard = slots[k].get(pack, k)?;
            plan.unit(&shard, b, scratch);
            plan.merge(k, b, &shard, scratch, &totals);
            drop(shard);
            if slots[k].is_last() {
                done.add(pack.index().shards[k].payload.bytes);
            }
            Ok(())
        },
    )?;
    Ok(plan.finish(totals.into_inner().unwrap_or_else(|p| p.into_inner())))
}

/// Pairs of shard and block: `width` shards side by side.
fn units(shards: usize, blocks: usize, width: usize) -> Vec<(usize, usize)> {
    let mut units = Vec::with_capacity(shards * blocks);
    for first in (0..shards).step_by(width) {
        let group = first..shards.min(first + width);
        for block in 0..blocks {
            units.extend(group.clone().map(|k| (k, block)));
        }
    }
    units
}

/// Every sum must fit 64 bits whatever the values are.
fn check_bounds(pack: &Pack, request: &Request) -> Result<()> {
    let g = pack.geometry();
    let most = u128::from((1_u32 << pack.flavour().most_bits()) - 1);
    let (rows, columns) = (u128::from(g.detector_rows()), u128::from(g.detector_columns()));
    if request.diffraction {
        fits_u64(most * u128::from(g.scans()), "the diffraction sum")?;
        fits_u64(most * u128::from(g.scans()) * rows * columns, "the count of the dataset")?;
    }
    if request.moments {
        fits_u64(most * rows * columns, "the total of a scan")?;
        fits_u64(most * columns * (rows * (rows - 1) / 2), "the row moment of a scan")?;
        fits_u64(most * rows * (columns * (columns - 1) / 2), "the column moment of a scan")?;
        fits_u64(most * u128::from(g.scans()) * rows * columns, "the count of the dataset")?;
    }
    if let Some(bands) = &request.bands {
        if bands.membership().len() as u64 != g.pixels() {
            return Err(Error::invalid("the bands were made for another detector"));
        }
        fits_u64(most * rows * columns, "a band sum")?;
    }
    Ok(())
}

impl Slot {
    /// The shard; whoever comes first reads it, others wait.
    fn get(&self, pack: &Pack, k: usize) -> Result<Arc<Shard>> {
        let mut shard = self.shard.lock().unwrap_or_else(|p| p.into_inner());
        if let Some(shard) = &*shard {
            return Ok(shard.clone());
        }
        let loaded = pack.passing_shard(k)?;
        *shard = Some(loaded.clone());
        Ok(loaded)
    }

    /// Counts a unit out; the last one lets the shard go.
    fn is_last(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(|p| p.into_inner());
        *left -= 1;
        if *left == 0 {
            *self.shard.lock().unwrap_or_else(|p| p.into_inner()) = None;
        }
        *left == 0
    }
}

impl Plan<'_> {
    /// Shards worked on side by side: one for each thread, as far as the memory allowed holds twice as many.
    fn side_by_side(&self) -> usize {
        let largest = self.pack.index().shards.iter().map(|s| s.decoded_bytes + 2 * s.header.bytes).max();
        let room = self.pack.budget().limits().bytes.saturating_sub(self.pack.budget().used());
        let fit = room / largest.unwrap_or(1).max(1) / 2;
        self.pack.threads().get().min(usize::try_from(fit).unwrap_or(usize::MAX)).max(1)
    }

    fn totals(&self) -> Result<(Totals, Charge)> {
        let scans = self.pack.geometry().scans();
        let (d, m) = (u64::from(self.request.diffraction), u64::from(self.request.moments));
        let b = u64::from(self.request.bands.is_some());
        let bytes = (2 * d * self.pixels as u64).saturating_add((3 * m + 3 * b).saturating_mul(scans));
        let charge = self.pack.budget().bytes(bytes.saturating_mul(8), "products")?;
        let array = |wanted: bool, n: u64| -> Result<Vec<u64>> {
            tensilo_core::buffer::zeroed_vec(if wanted { n as usize } else { 0 })
        };
        let (diffraction, moments) = (self.request.diffraction, self.request.moments);
        let (bands, p) = (self.request.bands.is_some(), self.pixels as u64);
        let totals = Totals {
            sum: array(diffraction, p)?,
            max: array(diffraction, p)?,
            total: array(moments, scans)?,
            row: array(moments, scans)?,
            column: array(moments, scans)?,
            bands: [array(bands, scans)?, array(bands, scans)?, array(bands, scans)?],
            bounds: vec![[0; 3]; self.pack.index().shards.len()],
        };
        Ok((totals, charge))
    }

    fn scratch(&self) -> Scratch {
        let sums = || Sums::new(self.scans);
        Scratch {
            values: vec![0; self.scans],
            row: sums(),
            column: sums(),
            bands: [sums(), sums(), sums()],
            unit: std::array::from_fn(|_| vec![0; self.scans]),
            pixels: Vec::new(),
        }
    }

    fn range(&self, block: usize) -> Range<usize> {
        block * self.block..self.pixels.min((block + 1) * self.block)
    }

    /// Sums one block of pixels of a shard.
    fn unit(&self, shard: &Shard, block: usize, s: &mut Scratch) {
        s.unit.iter_mut().for_each(|u| u.fill(0));
        s.pixels.clear();
        let range = self.range(block);
        let excluded = self.pack.excluded();
        let mut next = excluded.partition_point(|e| (*e as usize) < range.start);
        let membership = self.request.bands.as_ref().map(|b| b.membership());
        let every = self.request.diffraction || self.request.moments;
        let mut row = range.start / self.columns;
        for pixel in range {
            if pixel / self.columns != row {
                s.end_row(row as u64);
                row = pixel / self.columns;
            }
            let member = membership.map_or(0, |m| m[pixel]);
            let most = shard.most_of(pixel);
            let cleared = excluded.get(next).is_some_and(|e| *e as usize == pixel);
            next += usize::from(cleared);
            if cleared || most == 0 || !(every || member != 0) {
                s.pixels.push([0; 2]);
                continue;
            }
            shard.unpack_pixel(pixel, &mut s.values);
            if self.request.diffraction {
                s.pixels.push([sum(&s.values), s.values.iter().copied().max().unwrap_or(0).into()]);
            }
            if self.request.moments {
                s.row.add(&s.values, 1, most);
                s.column.add(&s.values, (pixel % self.columns) as u32, most);
            }
            for (k, band) in s.bands.iter_mut().enumerate() {
                if member & (1 << k) != 0 {
                    band.add(&s.values, 1, most);
                }
            }
        }
        s.end_row(row as u64);
        let [_, _, column, bands @ ..] = &mut s.unit;
        s.column.drain_into(1, column);
        for (sums, to) in s.bands.iter_mut().zip(bands) {
            sums.drain_into(1, to);
        }
    }

    /// Adds a unit's sums to the results.
    fn merge(&self, k: usize, block: usize, shard: &Shard, s: &Scratch, totals: &Mutex<Totals>) {
        let bounds = self.band_bounds(shard, block);
        let mut t = totals.lock().unwrap_or_else(|p| p.into_inner());
        let t = &mut *t;
        if self.request.diffraction {
            let range = self.range(block);
            for ((sum, max), [s, m]) in t.sum[range.clone()].iter_mut().zip(&mut t.max[range]).zip(&s.pixels)
            {
                *sum += s;
                *max = (*max).max(*m);
            }
        }
        let at = k * self.scans..(k + 1) * self.scans;
        let [b0, b1, b2] = &mut t.bands;
        let all = [&mut t.total, &mut t.row, &mut t.column, b0, b1, b2];
        for (to, from) in all.into_iter().zip(&s.unit) {
            if let Some(to) = to.get_mut(at.clone()) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
        }
        for (to, bound) in t.bounds[k].iter_mut().zip(bounds) {
            *to += bound;
        }
    }

    /// What the widths of a block's tiles allow a scan's band sums to be.
    fn band_bounds(&self, shard: &Shard, block: usize) -> [u128; 3] {
        let mut bounds = [0; 3];
        let Some(bands) = &self.request.bands else { return bounds };
        let excluded = self.pack.excluded();
        for pixel in self.range(block) {
            let member = bands.membership()[pixel];
            if member != 0 && excluded.binary_search(&(pixel as u32)).is_err() {
                let most = u128::from(shard.most_of(pixel));
                for (k, bound) in bounds.iter_mut().enumerate() {
                    *bound += if member & (1 << k) != 0 { most } else { 0 };
                }
            }
        }
        bounds
    }

    fn finish(&self, t: Totals) -> Products {
        let bound = |k: usize| t.bounds.iter().map(|b| b[k]).max().unwrap_or(0);
        let bounds = [bound(0), bound(1), bound(2)];
        let [b0, b1, b2] = t.bands;
        let bands = [BandSums::of(b0, bounds[0]), BandSums::of(b1, bounds[1]), BandSums::of(b2, bounds[2])];
        Products {
            geometry: *self.pack.geometry(),
            diffraction_sum: self.request.diffraction.then_some(t.sum),
            diffraction_max: self.request.diffraction.then_some(t.max),
            moments: self.request.moments.then_some(Moments { total: t.total, row: t.row, column: t.column }),
            bands: self.request.bands.as_ref().map(|_| bands),
        }
    }
}

impl Scratch {
    /// Enters the sums of a detector row into totals and row moments.
    fn end_row(&mut self, row: u64) {
        let [total, moment, ..] = &mut self.unit;
        self.row.drain_both(row, total, moment);
    }
}

fn sum(values: &[u16]) -> u64 {
    // 65,536 values of 16 bits fit 32 bits.
    values.chunks(1 << 16).map(|part| u64::from(part.iter().map(|v| u32::from(*v)).sum::<u32>())).sum()
}
