//! Single values, frames, ranges of frames and regions, masked or raw.

use super::Pack;
use super::shard::{Shard, groups, place};
use super::unpack::GROUP;
use crate::profile::Flavour;
use std::ops::Range;
use std::sync::Mutex;
use tensilo_core::{Error, Monitor, Quiet, Result};

/// Pixels unpacked together, so that whole lines of a frame are written.
const STRIP: usize = 64;

/// Which values are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Values {
    /// Working values: excluded pixels are 0.
    #[default]
    Masked,
    /// The source's values: excluded pixels as they were.
    Raw,
}

/// A half-open region of the four axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Scan rows.
    pub scan_rows: Range<u32>,
    /// Scan columns.
    pub scan_columns: Range<u32>,
    /// Detector rows.
    pub detector_rows: Range<u32>,
    /// Detector columns.
    pub detector_columns: Range<u32>,
}

impl Region {
    /// Everything of an acquisition of this shape.
    pub fn all(shape: [u32; 4]) -> Self {
        let [a, b, c, d] = shape;
        Self { scan_rows: 0..a, scan_columns: 0..b, detector_rows: 0..c, detector_columns: 0..d }
    }

    /// Only these scans.
    #[must_use]
    pub fn scans(mut self, rows: Range<u32>, columns: Range<u32>) -> Self {
        (self.scan_rows, self.scan_columns) = (rows, columns);
        self
    }

    /// Only this part of the detector.
    #[must_use]
    pub fn detector(mut self, rows: Range<u32>, columns: Range<u32>) -> Self {
        (self.detector_rows, self.detector_columns) = (rows, columns);
        self
    }

    fn sides(&self) -> [&Range<u32>; 4] {
        [&self.scan_rows, &self.scan_columns, &self.detector_rows, &self.detector_columns]
    }

    /// Length of each side.
    pub fn shape(&self) -> [u32; 4] {
        self.sides().map(|r| r.end.saturating_sub(r.start))
    }

    /// Number of values.
    pub fn len(&self) -> u128 {
        self.shape().iter().map(|n| u128::from(*n)).product()
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check(&self, shape: [u32; 4]) -> Result<()> {
        for ((range, side), axis) in self.sides().into_iter().zip(shape).zip([
            "scan rows",
            "scan columns",
            "detector rows",
            "detector columns",
        ]) {
            if range.start > range.end || range.end > side {
                return Err(Error::invalid(format!(
                    "{axis} {}..{} do not lie in 0..{side}",
                    range.start, range.end
                )));
            }
        }
        Ok(())
    }
}

/// What becomes of the stored values of excluded pixels.
struct Exclusion<'a> {
    pixels: &'a [u32],
    /// Put in their place; zeros for masked values. `None` leaves what is stored.
    put: Option<&'a [u16]>,
    clear: bool,
}

impl Exclusion<'_> {
    fn apply(&self, frame: &mut [u16]) {
        if self.clear {
            self.pixels.iter().for_each(|p| frame[*p as usize] = 0);
        } else if let Some(values) = self.put {
            self.pixels.iter().zip(values).for_each(|(p, v)| frame[*p as usize] = *v);
        }
    }

    fn of(&self, pixel: u32, stored: u16) -> u16 {
        match self.pixels.binary_search(&pixel) {
            Err(_) => stored,
            Ok(_) if self.clear => 0,
            Ok(at) => self.put.and_then(|values| values.get(at)).copied().unwrap_or(stored),
        }
    }
}

impl Pack {
    /// Can raw values be restored? False when a bit-packed pack does not state its excluded pixels' constants.
    pub fn has_raw(&self) -> bool {
        self.exclusion(Values::Raw).is_ok()
    }

    fn exclusion(&self, values: Values) -> Result<Exclusion<'_>> {
        let pixels = self.excluded();
        let manifest = self.manifest();
        let put = match (values, self.flavour()) {
            _ if pixels.is_empty() => None,
            (Values::Masked, _) | (Values::Raw, Flavour::Lz4) => None,
            (Values::Raw, _) => {
                let proven = manifest.get("masked_detector_pixels_sha256").is_some();
                let constants = manifest.excluded_values.as_deref().filter(|_| proven).ok_or_else(|| {
                    self.in_file(
                        Error::unsupported("the pack does not state the raw values of its excluded pixels")
                            .hint("read masked values instead"),
                    )
                })?;
                Some(constants)
            }
        };
        Ok(Exclusion { pixels, put, clear: values == Values::Masked })
    }

    fn check_scan(&self, scan: u64) -> Result<()> {
        let n = self.geometry().scans();
        if scan >= n {
            return Err(Error::invalid(format!("scan {scan} is not in 0..{n}")));
        }
        Ok(())
    }

    fn place(&self, scan: u64) -> (usize, usize) {
        place(scan, self.index().cut.scans_per_shard)
    }

    /// The working value of a flat detector pixel in a scan; 0 for an excluded pixel.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such scan or pixel, errors of reading.
    pub fn value(&self, scan: u64, pixel: u64) -> Result<u16> {
        self.value_of(scan, pixel, Values::Masked)
    }

    /// The source's value of a flat detector pixel in a scan.
    ///
    /// # Errors
    /// As [`value`](Self::value), and `Unsupported` when excluded pixels cannot be restored.
    pub fn raw_value(&self, scan: u64, pixel: u64) -> Result<u16> {
        self.value_of(scan, pixel, Values::Raw)
    }

    fn value_of(&self, scan: u64, pixel: u64, values: Values) -> Result<u16> {
        self.check_scan(scan)?;
        let p = self.geometry().pixels();
        if pixel >= p {
            return Err(Error::invalid(format!("pixel {pixel} is not in 0..{p}")));
        }
        let exclusion = self.exclusion(values)?;
        let (shard, local) = self.place(scan);
        let stored = self.shard(shard)?.value(pixel as usize, local);
        Ok(exclusion.of(pixel as u32, stored))
    }

    fn pixels(&self) -> Result<usize> {
        usize::try_from(self.geometry().pixels()).map_err(|_| Error::limit("a frame does not fit in memory"))
    }

    /// The working values of a scan, row by row.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such scan, errors of reading.
    pub fn frame(&self, scan: u64) -> Result<Vec<u16>> {
        self.frame_of(scan, Values::Masked)
    }

    /// The source's values of a scan, excluded pixels restored.
    ///
    /// # Errors
    /// As [`frame`](Self::frame), and `Unsupported` when excluded pixels cannot be restored.
    pub fn raw_frame(&self, scan: u64) -> Result<Vec<u16>> {
        self.frame_of(scan, Values::Raw)
    }

    fn frame_of(&self, scan: u64, values: Values) -> Result<Vec<u16>> {
        self.check_scan(scan)?;
        let (_charge, mut frame) = self.array(self.geometry().pixels().into(), "a frame")?;
        self.frame_into(scan, values, &mut frame)?;
        Ok(frame)
    }

    /// As [`frame`](Self::frame) or [`raw_frame`](Self::raw_frame), into the caller's memory.
    ///
    /// # Errors
    /// As those, and `InvalidArgument` when `out` is not one value for each pixel.
    pub fn frame_into(&self, scan: u64, values: Values, out: &mut [u16]) -> Result<()> {
        self.check_scan(scan)?;
        if out.len() != self.pixels()? {
            return Err(Error::invalid(format!("{} values for {} pixels", out.len(), self.pixels()?)));
        }
        let exclusion = self.exclusion(values)?;
        let (shard, local) = self.place(scan);
        self.shard(shard)?.frame_into(local, out);
        exclusion.apply(out);
        Ok(())
    }

    /// Consecutive frames, one behind the other, into the caller's memory, on all threads of the pack.
    ///
    /// # Errors
    /// `InvalidArgument` when the scans are not there or `out` has another length, errors of reading, the monitor's.
    pub fn frames_into(
        &self,
        scans: Range<u64>,
        values: Values,
        out: &mut [u16],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let all = self.geometry().scans();
        let pixels = self.pixels()?;
        if scans.start > scans.end || scans.end > all {
            return Err(Error::invalid(format!(
                "scans {}..{} do not lie in 0..{all}",
                scans.start, scans.end
            )));
        }
        let count = (scans.end - scans.start) as u128;
        if out.len() as u128 != count * pixels as u128 {
            return Err(Error::invalid(format!(
                "{} values for {count} frames of {pixels} pixels",
                out.len()
            )));
        }
        let exclusion = self.exclusion(values)?;
        let per_shard = self.index().cut.scans_per_shard;
        // Cut at every 32nd scan of a shard: what one group of each pixel holds.
        let mut parts = Vec::new();
        let (mut rest, mut scan) = (out, scans.start);
        while scan < scans.end {
            let (_, local) = place(scan, per_shard);
            let n = ((GROUP - local % GROUP) as u64).min(scans.end - scan);
            let (part, after) = rest.split_at_mut(n as usize * pixels);
            parts.push((scan, Mutex::new(Some(part))));
            (rest, scan) = (after, scan + n);
        }
        let bytes = 2 * (count as u64).saturating_mul(pixels as u64);
        self.threads().for_each(
            parts.len(),
            monitor,
            "reading frames",
            bytes,
            || (),
            |(), i, done| {
                let (scan, part) = &parts[i];
                let part = part.lock().unwrap_or_else(|p| p.into_inner()).take();
                let part = part.ok_or_else(|| Error::invalid("a part was handed out twice"))?;
                let (shard, local) = place(*scan, per_shard);
                let shard = self.shard(shard)?;
                group_frames(&shard, local, pixels, part);
                part.chunks_exact_mut(pixels).for_each(|frame| exclusion.apply(frame));
                done.add(2 * part.len() as u64);
                Ok(())
            },
        )
    }

    /// The working values of a region, in C order of scan row, scan column, detector row, detector column.
    ///
    /// # Errors
    /// `InvalidArgument` when the region does not lie in the acquisition, `Limit`, errors of reading.
    pub fn region(&self, region: &Region) -> Result<Vec<u16>> {
        self.region_of(region, Values::Masked)
    }

    /// The source's values of a region, as [`region`](Self::region).
    ///
    /// # Errors
    /// As [`region`](Self::region), and `Unsupported` when excluded pixels cannot be restored.
    pub fn raw_region(&self, region: &Region) -> Result<Vec<u16>> {
        self.region_of(region, Values::Raw)
    }

    fn region_of(&self, region: &Region, values: Values) -> Result<Vec<u16>> {
        region.check(self.shape())?;
        let (_charge, mut out) = self.array(region.len(), "a region")?;
        self.region_into(region, values, &mut out, &Quiet)?;
        Ok(out)
    }

    /// A region into the caller's memory.
    ///
    /// # Errors
    /// As [`region`](Self::region), `InvalidArgument` when `out` has another length, the monitor's.
    pub fn region_into(
        &self,
        region: &Region,
        values: Values,
        out: &mut [u16],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let shape = self.shape();
        region.check(shape)?;
        if out.len() as u128 != region.len() {
            return Err(Error::invalid(format!("{} values for a region of {}", out.len(), region.len())));
        }
        if region.is_empty() {
            return Ok(());
        }
        let [_, scan_columns, _, columns] = shape.map(u64::from);
        let pixels: Vec<u32> = region
            .detector_rows
            .clone()
            .flat_map(|r| region.detector_columns.clone().map(move |c| r * columns as u32 + c))
            .collect();
        let scans: Vec<u64> = region
            .scan_rows
            .clone()
            .flat_map(|r| {
                region.scan_columns.clone().map(move |c| u64::from(r) * scan_columns + u64::from(c))
            })
            .collect();
        self.gather_into(&scans, &pixels, values, out, monitor)
    }

    /// The values of some detector pixels in some scans, each in the order given, scan by scan, into the caller's memory.
    ///
    /// Scans in ascending order are read fastest; each shard is read once then.
    ///
    /// # Errors
    /// `InvalidArgument` when a scan or pixel is not there or `out` has another length; as [`region`](Self::region).
    pub fn gather_into(
        &self,
        scans: &[u64],
        pixels: &[u32],
        values: Values,
        out: &mut [u16],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let (all_scans, all_pixels) = (self.geometry().scans(), self.geometry().pixels());
        if out.len() as u128 != scans.len() as u128 * pixels.len() as u128 {
            return Err(Error::invalid(format!(
                "{} values for {} scans of {} pixels",
                out.len(),
                scans.len(),
                pixels.len()
            )));
        }
        if let Some(scan) = scans.iter().find(|s| **s >= all_scans) {
            return Err(Error::invalid(format!("scan {scan} is not in 0..{all_scans}")));
        }
        if let Some(pixel) = pixels.iter().find(|p| u64::from(**p) >= all_pixels) {
            return Err(Error::invalid(format!("pixel {pixel} is not in 0..{all_pixels}")));
        }
        let (Some(first), false) = (scans.first(), pixels.is_empty()) else { return Ok(()) };
        let whole = pixels.len() as u64 == all_pixels && pixels.iter().zip(0..).all(|(p, k)| *p == k);
        if whole && scans.iter().zip(*first..).all(|(s, k)| *s == k) {
            return self.frames_into(*first..*first + scans.len() as u64, values, out, monitor);
        }
        let exclusion = self.exclusion(values)?;
        let per_shard = self.index().cut.scans_per_shard;
        let mut parts = Vec::new();
        let mut rest = out;
        for (shard, group, at) in groups(scans, per_shard) {
            let (part, after) = rest.split_at_mut(at.len() * pixels.len());
            parts.push((shard, group, at, Mutex::new(Some(part))));
            rest = after;
        }
        self.threads().for_each(
            parts.len(),
            monitor,
            "reading a region",
            0,
            || (),
            |(), i, _| {
                let (shard, group, at, part) = &parts[i];
                let part = part.lock().unwrap_or_else(|p| p.into_inner()).take();
                let part = part.ok_or_else(|| Error::invalid("a part was handed out twice"))?;
                let shard = self.shard(*shard)?;
                let scans = &scans[at.clone()];
                let mut values = [0; GROUP];
                for (k, pixel) in pixels.iter().enumerate() {
                    shard.unpack_group(*pixel as usize, *group, &mut values);
                    for (row, scan) in part.chunks_exact_mut(pixels.len()).zip(scans) {
                        let (_, local) = place(*scan, per_shard);
                        row[k] = exclusion.of(*pixel, values[local % GROUP]);
                    }
                }
                Ok(())
            },
        )
    }

    /// A zeroed array of values, its bytes agreed by the budget first.
    fn array(&self, values: u128, what: &str) -> Result<(tensilo_core::limits::Charge, Vec<u16>)> {
        let bytes = u64::try_from(2 * values)
            .map_err(|_| Error::limit(format!("{what} of {values} values does not fit in memory")))?;
        let charge = self.budget().bytes(bytes, what)?;
        Ok((charge, tensilo_core::buffer::zeroed_vec(values as usize)?))
    }
}

/// Stored values of some frames of one 32-group, beginning with the shard's scan `local`.
fn group_frames(shard: &Shard, local: usize, pixels: usize, out: &mut [u16]) {
    let (first, group) = (local % GROUP, local / GROUP);
    let mut strip = [[0_u16; GROUP]; STRIP];
    for at in (0..pixels).step_by(STRIP) {
        let n = STRIP.min(pixels - at);
        if shard.is_narrow() {
            let rows = shard.strip(at, n, group);
            for (frame, row) in out.chunks_exact_mut(pixels).zip(&rows[first..]) {
                frame[at..at + n].iter_mut().zip(row).for_each(|(to, v)| *to = u16::from(*v));
            }
            continue;
        }
        for (k, values) in strip[..n].iter_mut().enumerate() {
            shard.unpack_group(at + k, group, values);
        }
        for (i, frame) in out.chunks_exact_mut(pixels).enumerate() {
            for (to, values) in frame[at..at + n].iter_mut().zip(&strip) {
                *to = values[first + i];
            }
        }
    }
}

/// Stored values of all 32 frames of a group.
pub(crate) fn whole_group(shard: &Shard, group: usize, pixels: usize, out: &mut [u16]) {
    group_frames(shard, GROUP * group, pixels, out);
}
