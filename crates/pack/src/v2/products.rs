//! Exact products of a pack of format 2, from its blocks: sums, moments, virtual detectors; no cube is built.
//!
//! Blocks hold excluded pixels as 0. Sums over a mask or over scans are the codec's own; moments and maxima need the
//! counts of a block, which are decoded once for all of them. Names and types are format 1's; scan images have the scan's
//! shape, detector images the detector's. For a detector of more than two axes a row is all axes but the last together.

use super::codec::{self, BlockShape, DecodeScratch};
use super::counts::{Sample, with_sample};
use super::layout::Rect;
use super::read::{BlockScratch, Pack};
use crate::geometry::Geometry;
use crate::products::{
    BAND_IMAGES, Bands, Choice, Counts, DETECTOR_IMAGES, DpcFrame, ImageValues, Moments, Ring, SCAN_IMAGES,
};
use std::sync::{Mutex, PoisonError};
use tensilo_core::limits::Charge;
use tensilo_core::{Error, Monitor, Result};

/// Which integer products are wanted.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The sum of every pixel over all scans.
    pub diffraction_sum: bool,
    /// The largest value of every pixel.
    pub diffraction_max: bool,
    /// Total, row moment and column moment of every scan.
    pub moments: bool,
    /// Sums of every scan over masks: one byte for each flat pixel, not 0 where it counts.
    pub masks: Vec<Vec<u8>>,
}

/// The integer products of one pass; what was not asked for is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Products {
    /// Sum of every flat pixel over all scans.
    pub diffraction_sum: Option<Vec<u64>>,
    /// Largest value of every flat pixel.
    pub diffraction_max: Option<Vec<u64>>,
    /// Moments of every scan.
    pub moments: Option<Moments>,
    /// Sums of every scan, one list for each mask.
    pub masks: Vec<Vec<u64>>,
}

/// A named image.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Its name, as for format 1.
    pub name: &'static str,
    /// The scan's shape or the detector's.
    pub shape: Vec<u64>,
    /// The values, row-major.
    pub values: ImageValues,
}

/// Images, and what they were made with.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    /// The images that were wanted.
    pub images: Vec<Image>,
    /// Centre that the rings had: row and column in pixels.
    pub center: [f64; 2],
    /// Counts of the whole stack, where a sum of all was made.
    pub counts: Option<Counts>,
}

impl Pack {
    /// Makes integer products in one pass over the blocks that matter, on all threads of the pack.
    ///
    /// # Errors
    /// `Unsupported` for signed counts; `InvalidArgument` for a mask of another length; `Limit` when a sum could overflow or
    /// memory is not allowed; errors of reading, the monitor's.
    pub fn products(&self, request: &Request, monitor: &dyn Monitor) -> Result<Products> {
        let l = self.layout();
        if l.counts().is_signed() {
            return Err(self.in_file(Error::unsupported("products of signed counts")));
        }
        if let Some(mask) = request.masks.iter().find(|m| m.len() as u64 != l.pixels()) {
            return Err(Error::invalid(format!("a mask of {} bytes for {} pixels", mask.len(), l.pixels())));
        }
        let most = u128::from(u32::MAX >> (32 - 8 * l.counts().bytes()));
        let side = u128::from(l.rows().max(l.columns()));
        let moment = if request.moments { most * u128::from(l.pixels()) * side } else { 0 };
        let sum = if request.diffraction_sum { most * u128::from(l.scans()) } else { 0 };
        if moment.max(sum) > u128::from(u64::MAX) {
            return Err(Error::limit("a sum could pass 64 bits"));
        }
        with_sample!(l.counts(), T => Pass::<T>::new(self, request)?.run(monitor))
    }

    /// Sums of every scan over the pixels whose byte in `mask` is not 0: the image of a virtual detector.
    ///
    /// ```no_run
    /// use tensilo_core::Quiet;
    /// let pack = tensilo_pack::v2::read::Pack::open("scan.h5")?;
    /// let mask = vec![1; pack.layout().pixels() as usize];
    /// let image = pack.virtual_image(&mask, &Quiet)?;
    /// assert_eq!(image.len() as u64, pack.layout().scans());
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`products`](Self::products).
    pub fn virtual_image(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<Vec<u64>> {
        let request = Request { masks: vec![mask.to_vec()], ..Request::default() };
        Ok(self.products(&request, monitor)?.masks.pop().unwrap_or_default())
    }

    /// A virtual detector that can be moved: its image follows from the pixels that come and go.
    ///
    /// # Errors
    /// As [`virtual_image`](Self::virtual_image).
    pub fn virtual_detector(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<VirtualDetector> {
        let image = self.virtual_image(mask, monitor)?;
        Ok(VirtualDetector { pack: self.clone(), mask: mask.to_vec(), image })
    }

    /// Makes images by name, as for format 1.
    ///
    /// Rings need a centre: the detector's middle when none is given. DPC needs a scan of two axes and counts the mean
    /// centre of mass as no deflection; it is left out of a list of everything where the scan has another rank.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name, a band without its ring, a ring that is none, or DPC of a scan that has not two
    /// axes; as [`products`](Self::products).
    pub fn images(&self, choice: &Choice, monitor: &dyn Monitor) -> Result<Images> {
        choice.check()?;
        let l = self.layout();
        let middle = [l.rows(), l.columns()].map(|n| (n - 1) as f64 / 2.0);
        let center = choice.center.unwrap_or(middle);
        let geometry = match *l.scan_shape() {
            [rows, columns] => Some(Geometry::new([rows, columns, l.rows(), l.columns()])?),
            _ => None,
        };
        if geometry.is_none() && choice.only.iter().any(|n| SCAN_IMAGES[5..].contains(&&**n)) {
            return Err(Error::invalid(format!(
                "DPC of a scan of {:?}; two axes are needed",
                l.scan_shape()
            )));
        }
        let _charge = self.budget().bytes(l.pixels().saturating_mul(5), "masks of rings")?;
        let rings: Vec<usize> = (0..3).filter(|k| choice.ring(*k).is_some()).collect();
        let mut masks = Vec::new();
        for k in &rings {
            let (inner, outer) = choice.ring(*k).unwrap_or_default();
            let of_detector = Geometry::new([1, 1, l.rows(), l.columns()])?;
            let ring = Bands::rings(&of_detector, &[Ring { center, inner, outer }])?;
            masks.push(ring.membership().to_vec());
        }
        let request = Request {
            diffraction_sum: choice.has(DETECTOR_IMAGES[0]) || choice.has(DETECTOR_IMAGES[2]),
            diffraction_max: choice.has(DETECTOR_IMAGES[1]),
            moments: choice.any(&SCAN_IMAGES),
            masks,
        };
        let p = self.products(&request, monitor)?;
        let counts = self.counts_of(&p);
        let mut images = self.named(choice, geometry.as_ref(), p, &rings)?;
        images.retain(|i| choice.has(i.name));
        Ok(Images { images, center, counts })
    }

    fn counts_of(&self, p: &Products) -> Option<Counts> {
        let sums = p.diffraction_sum.as_ref().or(p.moments.as_ref().map(|m| &m.total))?;
        let total: u64 = sums.iter().sum();
        Some(Counts { total, mean_per_pattern: total as f64 / self.layout().scans() as f64 })
    }

    fn named(
        &self,
        choice: &Choice,
        geometry: Option<&Geometry>,
        p: Products,
        rings: &[usize],
    ) -> Result<Vec<Image>> {
        let l = self.layout();
        let detector = |name, values| Image { name, shape: l.detector_shape().to_vec(), values };
        let scan = |name, values| Image { name, shape: l.scan_shape().to_vec(), values };
        let mean = p
            .diffraction_sum
            .as_ref()
            .map(|sum| ImageValues::F64(sum.iter().map(|d| *d as f64 / l.scans() as f64).collect()));
        let sums = [p.diffraction_sum, p.diffraction_max].map(|v| v.map(ImageValues::U64));
        let values = sums.into_iter().chain([mean]);
        let mut images: Vec<Image> =
            DETECTOR_IMAGES.into_iter().zip(values).filter_map(|(n, v)| Some(detector(n, v?))).collect();
        if let Some(m) = p.moments {
            if let Some(geometry) = geometry.filter(|_| choice.any(&SCAN_IMAGES[5..])) {
                let dpc = m.dpc(geometry, &DpcFrame::default())?;
                if choice.has(SCAN_IMAGES[7]) {
                    images.push(scan(SCAN_IMAGES[7], ImageValues::F64(dpc.integrate())));
                }
                images.push(scan(SCAN_IMAGES[5], ImageValues::F64(dpc.row)));
                images.push(scan(SCAN_IMAGES[6], ImageValues::F64(dpc.column)));
            }
            let [com_row, com_column] = m.center_of_mass();
            images.push(scan(SCAN_IMAGES[3], ImageValues::F64(com_row)));
            images.push(scan(SCAN_IMAGES[4], ImageValues::F64(com_column)));
            for (name, values) in SCAN_IMAGES.into_iter().zip([m.total, m.row, m.column]) {
                images.push(scan(name, ImageValues::U64(values)));
            }
        }
        for (k, sums) in rings.iter().zip(p.masks) {
            let narrow: Option<Vec<u32>> = sums.iter().map(|s| u32::try_from(*s).ok()).collect();
            let values = narrow.map_or(ImageValues::U64(sums), ImageValues::U32);
            images.push(scan(BAND_IMAGES[*k], values));
        }
        Ok(images)
    }
}

/// A virtual detector and its image.
#[derive(Debug, Clone)]
pub struct VirtualDetector {
    pack: Pack,
    mask: Vec<u8>,
    image: Vec<u64>,
}

impl VirtualDetector {
    /// The sum of every scan over the mask.
    pub fn image(&self) -> &[u64] {
        &self.image
    }

    /// The mask.
    pub fn mask(&self) -> &[u8] {
        &self.mask
    }

    /// Moves the detector to another mask: pixels that come are added, those that go are subtracted, and only blocks with
    /// such pixels are read. Where more pixels change than the new mask has, it is summed afresh.
    ///
    /// # Errors
    /// As [`Pack::virtual_image`]; the detector is then where it was.
    pub fn move_to(&mut self, mask: &[u8], monitor: &dyn Monitor) -> Result<()> {
        if mask.len() != self.mask.len() {
            return Err(Error::invalid(format!(
                "a mask of {} bytes for {} pixels",
                mask.len(),
                self.mask.len()
            )));
        }
        let pairs = || mask.iter().zip(&self.mask).map(|(new, old)| (*new != 0, *old != 0));
        let changed = pairs().filter(|(new, old)| new != old).count();
        if changed >= mask.iter().filter(|m| **m != 0).count() {
            self.image = self.pack.virtual_image(mask, monitor)?;
        } else if changed > 0 {
            let which = |f: fn((bool, bool)) -> bool| pairs().map(|p| u8::from(f(p))).collect::<Vec<u8>>();
            let masks = vec![which(|(new, old)| new && !old), which(|(new, old)| old && !new)];
            let sums = self.pack.products(&Request { masks, ..Request::default() }, monitor)?.masks;
            for (to, (come, gone)) in self.image.iter_mut().zip(sums[0].iter().zip(&sums[1])) {
                *to = *to + come - gone;
            }
        }
        self.mask = mask.to_vec();
        Ok(())
    }
}

/// A rectangle that matters: its number, where it is, and its part of every mask that has pixels in it.
type Touched = (u64, Rect, Vec<Option<Vec<u8>>>);

/// One pass over the blocks.
struct Pass<'a, T> {
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
    element: std::marker::PhantomData<T>,
}

/// What a worker re-uses.
struct Scratch<T> {
    block: BlockScratch,
    values: Vec<T>,
    sums: Vec<Vec<u64>>,
    pixels: [Vec<u64>; 2],
}

impl<'a, T: Sample> Pass<'a, T> {
    fn new(pack: &'a Pack, request: &'a Request) -> Result<Self> {
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
            .map(|(_, rect, _)| Mutex::new(wanted.map(|w| vec![0; if w { rect.pixels() } else { 0 }])))
            .collect();
        let scans = (0..l.tiles())
            .map(|tile| {
                let scans = l.tile(tile);
                Mutex::new(vec![vec![0; (scans.end - scans.start) as usize]; lists])
            })
            .collect();
        Ok(Self {
            pack,
            request,
            rects,
            pixels,
            scans,
            lists,
            _charge: charge,
            element: std::marker::PhantomData,
        })
    }

    fn run(self, monitor: &dyn Monitor) -> Result<Products> {
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
        for at in rects {
            self.block(tile as u64, at, &mut sums, scratch)?;
        }
        let mut to = self.scans[tile].lock().unwrap_or_else(PoisonError::into_inner);
        for (to, from) in to.iter_mut().zip(&sums) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        drop(to);
        scratch.sums = sums;
        Ok(())
    }

    fn block(&self, tile: u64, at: usize, sums: &mut [Vec<u64>], scratch: &mut Scratch<T>) -> Result<()> {
        let (number, rect, masks) = &self.rects[at];
        let shape = self.pack.block_shape(tile, rect);
        let Scratch { block, values, pixels, .. } = scratch;
        let decode = self.request.moments || self.request.diffraction_max;
        self.pack.with_block(tile, *number, block, |bytes, codec| {
            let of_masks = if self.request.moments { 3 } else { 0 };
            for (mask, sums) in masks.iter().zip(&mut sums[of_masks..]) {
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
                self.decoded(bytes, shape, rect, values, pixels, sums, codec)?;
            }
            Ok(())
        })?;
        let mut to = self.pixels[at].lock().unwrap_or_else(PoisonError::into_inner);
        let [sum, most] = &mut *to;
        sum.iter_mut().zip(&pixels[0]).for_each(|(to, v)| *to += v);
        most.iter_mut().zip(&pixels[1]).for_each(|(to, v)| *to = (*to).max(*v));
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one worker's scratch")]
    fn decoded(
        &self,
        bytes: &[u8],
        shape: BlockShape,
        rect: &Rect,
        values: &mut [T],
        pixels: &mut [Vec<u64>; 2],
        sums: &mut [Vec<u64>],
        codec: &mut DecodeScratch,
    ) -> Result<()> {
        codec::decode(bytes, shape, values, codec::Layout::flat(shape), codec)?;
        for (wanted, of) in
            [self.request.diffraction_sum, self.request.diffraction_max].into_iter().zip(&mut *pixels)
        {
            of.clear();
            of.resize(if wanted { shape.pixels } else { 0 }, 0);
        }
        let [sum, most] = pixels;
        for (scan, frame) in values.chunks_exact(shape.pixels).enumerate() {
            sum.iter_mut().zip(frame).for_each(|(to, v)| *to += u64::from(v.widen()));
            most.iter_mut().zip(frame).for_each(|(to, v)| *to = (*to).max(u64::from(v.widen())));
            if let [total, row_moment, column_moment, ..] = sums
                && self.request.moments
            {
                for (row, line) in rect.rows.clone().zip(frame.chunks_exact(rect.width())) {
                    let (mut counts, mut weighted) = (0, 0);
                    for (column, v) in rect.columns.clone().zip(line) {
                        counts += u64::from(v.widen());
                        weighted += column * u64::from(v.widen());
                    }
                    total[scan] += counts;
                    row_moment[scan] += row * counts;
                    column_moment[scan] += weighted;
                }
            }
        }
        Ok(())
    }

    fn gathered(self) -> Products {
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
            (Some(total), Some(row), Some(column)) => Some(Moments { total, row, column }),
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
            diffraction_sum: wanted[0].then_some(sum),
            diffraction_max: wanted[1].then_some(most),
            moments,
            masks,
        }
    }
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
