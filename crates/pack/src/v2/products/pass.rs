//! One pass over the blocks that matter.

use super::{Products, Request};
use crate::products::{Moments, Sum};
use crate::v2::codec::{self, Masked};
use crate::v2::counts::Sample;
use crate::v2::layout::Rect;
use crate::v2::read::{BlockScratch, Pack};
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};
use tensilo_core::limits::Charge;
use tensilo_core::{Monitor, Result};

/// Blocks that are read and summed at once.
const AT_ONCE: usize = 8;

/// A rectangle that matters: its number, where it is, and its part of every mask that has pixels in it.
type Touched = (u64, Rect, Vec<Option<Vec<u8>>>);

/// One pass over the blocks. Sums are the bits of `u64`, or of `i64` where counts are signed.
pub(super) struct Pass<'a, T, S> {
    pack: &'a Pack,
    request: &'a Request,
    rects: Vec<Touched>,
    /// Sum and maximum of the pixels of each of them.
    pixels: Vec<Mutex<[Vec<u64>; 2]>>,
    /// Total, row moment, column moment, then one sum for each mask, of the scans of each tile.
    scans: Vec<Mutex<Vec<Vec<u64>>>>,
    /// Sums of every scan that are made.
    lists: usize,
    _charge: Charge,
    types: PhantomData<(T, S)>,
}

/// What a worker re-uses.
struct Scratch<T> {
    block: BlockScratch,
    values: Vec<T>,
    sums: Vec<Vec<u64>>,
    pixels: [Vec<u64>; 2],
}

impl<'a, T: Sample, S: Sum> Pass<'a, T, S> {
    pub fn new(pack: &'a Pack, request: &'a Request) -> Result<Self> {
        let l = pack.layout();
        let lists = 3 * usize::from(request.moments) + request.masks.len();
        // A table that agrees with the file's length bounds the number of rectangles.
        pack.table(0)?;
        let per_rect = (128 + 32 * request.masks.len() as u64).saturating_mul(l.rects());
        let per_scan = l.scans().saturating_mul(16 * lists as u64);
        let per_pixel = l.pixels().saturating_mul(32 + request.masks.len() as u64);
        let all = per_rect.saturating_add(per_scan).saturating_add(per_pixel);
        let all = all.saturating_add(l.tiles().saturating_mul(64));
        let charge = pack.budget().bytes(all, "sums of scans and pixels")?;
        let everything = request.diffraction_sum || request.diffraction_max || request.moments;
        let mut rects = Vec::new();
        for number in 0..l.rects() {
            let rect = l.rect(number);
            let parts: Vec<_> = request.masks.iter().map(|m| part_of(m, &rect, l.columns())).collect();
            if everything || parts.iter().any(Option::is_some) {
                rects.push((number, rect, parts));
            }
        }
        let wanted = [request.diffraction_sum, request.diffraction_max];
        let pixels = rects
            .iter()
            .map(|(_, rect, _)| {
                let room = wanted.map(|w| if w { rect.pixels() } else { 0 });
                Mutex::new([vec![0; room[0]], vec![S::LEAST.bits(); room[1]]])
            })
            .collect();
        let scans = (0..l.tiles())
            .map(|tile| {
                let scans = l.tile(tile);
                Mutex::new(vec![vec![0; (scans.end - scans.start) as usize]; lists])
            })
            .collect();
        Ok(Self { pack, request, rects, pixels, scans, lists, _charge: charge, types: PhantomData })
    }

    pub fn run(self, monitor: &dyn Monitor) -> Result<Products<S>> {
        let (tiles, threads) = (self.scans.len(), self.pack.threads());
        // Few tiles are shared out by rectangles.
        let shares = (4 * threads.get()).div_ceil(tiles.max(1)).clamp(1, self.rects.len().max(1));
        let per_share = self.rects.len().div_ceil(shares);
        let scratch = || Scratch {
            block: BlockScratch::default(),
            values: Vec::<T>::new(),
            sums: Vec::new(),
            pixels: [Vec::new(), Vec::new()],
        };
        let total = (tiles * self.rects.len()) as u64;
        threads.for_each(tiles * shares, monitor, "summing", total, scratch, |scratch, i, done| {
            let (tile, share) = (i / shares, i % shares);
            let rects =
                (share * per_share).min(self.rects.len())..((share + 1) * per_share).min(self.rects.len());
            let n = rects.len() as u64;
            self.tile(tile, rects, scratch)?;
            done.add(n);
            Ok(())
        })?;
        Ok(self.gathered())
    }

    fn tile(&self, tile: usize, rects: std::ops::Range<usize>, scratch: &mut Scratch<T>) -> Result<()> {
        let scans = self.pack.layout().tile(tile as u64);
        let mut sums = std::mem::take(&mut scratch.sums);
        sums.resize_with(self.lists, Vec::new);
        for list in &mut sums {
            list.clear();
            list.resize((scans.end - scans.start) as usize, 0);
        }
        let Request { diffraction_sum, diffraction_max, moments, masks } = self.request;
        if !(*diffraction_sum || *diffraction_max || *moments || S::SIGNED) {
            // Nothing but sums over masks: several blocks at once.
            for (mask, sums) in (0..masks.len()).zip(&mut sums) {
                self.masked(tile as u64, &self.rects[rects.clone()], mask, sums, scratch)?;
            }
        } else {
            for at in rects {
                self.block(tile as u64, at, &mut sums, scratch)?;
            }
        }
        let mut to = self.scans[tile].lock().unwrap_or_else(PoisonError::into_inner);
        for (to, from) in to.iter_mut().zip(&sums) {
            to.iter_mut().zip(from).for_each(|(to, from)| add(to, *from));
        }
        drop(to);
        scratch.sums = sums;
        Ok(())
    }

    /// Adds one mask's sums over some rectangles.
    fn masked(
        &self,
        tile: u64,
        rects: &[Touched],
        mask: usize,
        sums: &mut [u64],
        scratch: &mut Scratch<T>,
    ) -> Result<()> {
        let mut touched =
            rects.iter().filter_map(|(n, rect, parts)| Some((n, rect, parts[mask].as_deref()?)));
        loop {
            let (mut slots, mut parts) = (Vec::new(), Vec::new());
            for (number, rect, mask) in touched.by_ref().take(AT_ONCE) {
                slots.push(*number);
                parts.push((rect.pixels(), mask));
            }
            if slots.is_empty() {
                return Ok(());
            }
            self.pack.with_blocks(tile, &slots, &mut scratch.block, |blocks, codec| {
                let blocks = blocks.iter().zip(&parts);
                let blocks: Vec<_> =
                    blocks.map(|(bytes, (pixels, mask))| Masked { bytes, pixels: *pixels, mask }).collect();
                codec::add_sums_of_all::<T>(&blocks, sums, codec)
            })?;
        }
    }

    fn block(&self, tile: u64, at: usize, sums: &mut [Vec<u64>], scratch: &mut Scratch<T>) -> Result<()> {
        let (number, rect, masks) = &self.rects[at];
        let shape = self.pack.block_shape(tile, rect);
        let Scratch { block, values, pixels, .. } = scratch;
        let decode = S::SIGNED || self.request.moments || self.request.diffraction_max;
        self.pack.with_block(tile, *number, block, |bytes, codec| {
            let of_masks = if self.request.moments { 3 } else { 0 };
            for (mask, sums) in masks.iter().zip(&mut sums[of_masks..]).filter(|_| !S::SIGNED) {
                if let Some(mask) = mask {
                    codec::add_masked_sums::<T>(bytes, shape, mask, sums, codec)?;
                }
            }
            if self.request.diffraction_sum && !decode {
                pixels[0].clear();
                pixels[0].resize(shape.pixels, 0);
                codec::add_pixel_sums::<T>(bytes, shape, &mut pixels[0], codec)?;
            }
            if decode {
                values.clear();
                values.resize(shape.counts(), T::default());
                codec::decode(bytes, shape, values, codec::Layout::flat(shape), codec)?;
                self.decoded(&self.rects[at], values, pixels, sums);
            }
            Ok(())
        })?;
        let mut to = self.pixels[at].lock().unwrap_or_else(PoisonError::into_inner);
        let [sum, most] = &mut *to;
        sum.iter_mut().zip(&pixels[0]).for_each(|(to, v)| add(to, *v));
        most.iter_mut().zip(&pixels[1]).for_each(|(to, v)| *to = larger::<S>(*to, *v));
        Ok(())
    }

    fn decoded(&self, of: &Touched, values: &[T], pixels: &mut [Vec<u64>; 2], sums: &mut [Vec<u64>]) {
        let (_, rect, masks) = of;
        let [sum, most] = pixels;
        sum.clear();
        sum.resize(if self.request.diffraction_sum { rect.pixels() } else { 0 }, 0);
        most.clear();
        most.resize(if self.request.diffraction_max { rect.pixels() } else { 0 }, S::LEAST.bits());
        let of_masks = if self.request.moments { 3 } else { 0 };
        for (scan, frame) in values.chunks_exact(rect.pixels()).enumerate() {
            sum.iter_mut().zip(frame).for_each(|(to, v)| add(to, wide::<T, S>(*v)));
            most.iter_mut().zip(frame).for_each(|(to, v)| *to = larger::<S>(*to, wide::<T, S>(*v)));
            if let [total, row_moment, column_moment, ..] = sums
                && self.request.moments
            {
                for (row, line) in rect.rows.clone().zip(frame.chunks_exact(rect.width())) {
                    let (mut counts, mut weighted) = (0, 0);
                    for (column, v) in rect.columns.clone().zip(line) {
                        let v = wide::<T, S>(*v);
                        add(&mut counts, v);
                        add(&mut weighted, column.wrapping_mul(v));
                    }
                    add(&mut total[scan], counts);
                    add(&mut row_moment[scan], row.wrapping_mul(counts));
                    add(&mut column_moment[scan], weighted);
                }
            }
            // The codec sums unsigned counts itself.
            for (mask, sums) in masks.iter().zip(&mut sums[of_masks..]).filter(|_| S::SIGNED) {
                for (v, _) in frame.iter().zip(mask.iter().flatten()).filter(|(_, m)| **m != 0) {
                    add(&mut sums[scan], wide::<T, S>(*v));
                }
            }
        }
    }

    fn gathered(self) -> Products<S> {
        let l = self.pack.layout();
        let mut lists: Vec<Vec<u64>> =
            vec![Vec::new(); 3 * usize::from(self.request.moments) + self.request.masks.len()];
        for tile in self.scans {
            let of_tile = tile.into_inner().unwrap_or_else(PoisonError::into_inner);
            lists.iter_mut().zip(of_tile).for_each(|(to, from)| to.extend(from));
        }
        let masks = lists.split_off(if self.request.moments { 3 } else { 0 });
        let mut lists = lists.into_iter();
        let moments = match (lists.next(), lists.next(), lists.next()) {
            (Some(total), Some(row), Some(column)) => {
                let [total, row, column] = [total, row, column].map(S::of_all_bits);
                Some(Moments { total, row, column })
            }
            _ => None,
        };
        let wanted = [self.request.diffraction_sum, self.request.diffraction_max];
        let mut detector = wanted.map(|w| vec![0; if w { l.pixels() as usize } else { 0 }]);
        for ((_, rect, _), pixels) in self.rects.iter().zip(self.pixels) {
            let of_rect = pixels.into_inner().unwrap_or_else(PoisonError::into_inner);
            for (to, from) in detector.iter_mut().zip(of_rect) {
                for (row, line) in rect.rows.clone().zip(from.chunks_exact(rect.width())) {
                    let at = (row * l.columns() + rect.columns.start) as usize;
                    to[at..at + line.len()].copy_from_slice(line);
                }
            }
        }
        let [sum, most] = detector;
        Products {
            diffraction_sum: wanted[0].then(|| S::of_all_bits(sum)),
            diffraction_max: wanted[1].then(|| S::of_all_bits(most)),
            moments,
            masks: masks.into_iter().map(S::of_all_bits).collect(),
        }
    }
}

/// The bits of a count, as wide as sums are.
#[inline(always)]
fn wide<T: Sample, S: Sum>(v: T) -> u64 {
    let code = v.widen();
    if S::SIGNED { (i64::from(code >> 1) ^ -i64::from(code & 1)) as u64 } else { code.into() }
}

/// Adds bits of sums that fit, whatever their sign.
#[inline(always)]
fn add(to: &mut u64, v: u64) {
    *to = to.wrapping_add(v);
}

#[inline(always)]
fn larger<S: Sum>(a: u64, b: u64) -> u64 {
    S::of_bits(a).max(S::of_bits(b)).bits()
}

/// The part of a mask that lies in a rectangle, if any of it counts.
fn part_of(mask: &[u8], rect: &Rect, columns: u64) -> Option<Vec<u8>> {
    let mut part = Vec::with_capacity(rect.pixels());
    for row in rect.rows.clone() {
        let at = (row * columns + rect.columns.start) as usize;
        part.extend_from_slice(&mask[at..at + rect.width()]);
    }
    part.iter().any(|m| *m != 0).then_some(part)
}
