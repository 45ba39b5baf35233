//! Detector bins: exact sums of blocks of pixels, partial ones at the edges kept.

use crate::products::{ImageValues, Sum};
use crate::read::Values;
use crate::v2::counts::{Sample, with_sample};
use crate::v2::read::Pack;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tensilo_core::{Error, Monitor, Result};

/// Counts that are unpacked at a time take about this.
const WINDOW: u64 = 64 << 20;

/// Frames of binned pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Binned {
    /// Scans; the detector's axes but the last two; bin rows; bin columns. A detector of one axis has no rows.
    pub shape: Vec<u64>,
    /// The sums, in that order: as 32 bits where no bin of such counts can pass them, as 64 bits elsewhere and where counts
    /// are signed.
    pub values: ImageValues,
}

/// Bins of a detector of rows and columns, all rows of one plane of its last two axes together.
#[derive(Debug, Clone, Copy)]
struct Bins {
    planes: usize,
    rows: usize,
    columns: usize,
    factor: usize,
}

impl Bins {
    fn down(&self) -> usize {
        self.rows.div_ceil(self.factor)
    }

    fn along(&self) -> usize {
        self.columns.div_ceil(self.factor)
    }

    fn frame(&self) -> usize {
        self.planes * self.down() * self.along()
    }
}

impl Pack {
    /// Shape and NumPy type of what [`binned`](Self::binned) makes of all scans: the scan's axes, then the bins'.
    ///
    /// # Errors
    /// `InvalidArgument` for a factor of 0; `Limit` when a sum could pass 64 bits.
    pub fn binned_shape(&self, factor: u32) -> Result<(Vec<u64>, &'static str)> {
        let (l, detector) = (self.layout(), self.bins(factor)?.1);
        let descr = if l.counts().is_signed() {
            "<i8"
        } else if self.bin_bound(factor) <= u128::from(u32::MAX) {
            "<u4"
        } else {
            "<u8"
        };
        Ok(([l.scan_shape(), &detector].concat(), descr))
    }

    /// Sums blocks of `factor` by `factor` pixels, along the detector's last two axes, of some scans. Excluded pixels count as
    /// 0, and blocks that the detector cuts off are kept.
    ///
    /// # Errors
    /// `InvalidArgument` for a factor of 0 or scans that are not there; `Limit` when a sum could pass 64 bits or memory is not
    /// allowed; errors of reading, the monitor's.
    pub fn binned(&self, scans: Range<u64>, factor: u32, monitor: &dyn Monitor) -> Result<Binned> {
        let l = self.layout();
        if scans.start > scans.end || scans.end > l.scans() {
            return Err(Error::invalid(format!("bins of scans {scans:?} of {}", l.scans())));
        }
        let (bins, detector) = self.bins(factor)?;
        let count = scans.end - scans.start;
        let shape = [&[count], &detector[..]].concat();
        let wanted = count.saturating_mul(bins.frame() as u64).saturating_mul(12);
        let _charge = self.budget().bytes(wanted, "binned frames")?;
        let values = if l.counts().is_signed() {
            ImageValues::I64(with_sample!(l.counts(), T => self.sums::<T, i64>(scans, bins, monitor))?)
        } else {
            let sums = with_sample!(l.counts(), T => self.sums::<T, u64>(scans, bins, monitor))?;
            if self.bin_bound(factor) <= u128::from(u32::MAX) {
                ImageValues::U32(sums.into_iter().map(|s| s as u32).collect())
            } else {
                ImageValues::U64(sums)
            }
        };
        Ok(Binned { shape, values })
    }

    /// No bin can be larger.
    fn bin_bound(&self, factor: u32) -> u128 {
        let (l, side) = (self.layout(), u64::from(factor));
        let pixels = u128::from(side.min(l.rows())) * u128::from(side.min(l.columns()));
        let counts = l.counts();
        pixels
            * ((1 << (8 * counts.bytes() - usize::from(counts.is_signed())))
                - u128::from(!counts.is_signed()))
    }

    fn bins(&self, factor: u32) -> Result<(Bins, Vec<u64>)> {
        if factor == 0 {
            return Err(Error::invalid("bins of 0 pixels"));
        }
        if self.bin_bound(factor) > i64::MAX as u128 {
            return Err(Error::limit("a bin could pass 64 bits"));
        }
        let detector = self.layout().detector_shape();
        let (outer, last) = detector.split_at(detector.len().saturating_sub(2));
        let bins = Bins {
            planes: outer.iter().product::<u64>() as usize,
            rows: if last.len() == 2 { last[0] as usize } else { 1 },
            columns: last.last().copied().unwrap_or(1) as usize,
            factor: factor as usize,
        };
        let shape = outer.iter().copied().chain(last.iter().map(|n| n.div_ceil(factor.into()))).collect();
        Ok((bins, shape))
    }

    fn sums<T: Sample, S: Sum>(
        &self,
        scans: Range<u64>,
        bins: Bins,
        monitor: &dyn Monitor,
    ) -> Result<Vec<S>> {
        let l = self.layout();
        let (frame, pixels) = (bins.frame(), l.pixels() as usize);
        let tile = u64::from(l.block().scans);
        let window = (WINDOW / l.frame_bytes().max(1)).max(tile).next_multiple_of(tile);
        let mut out = tensilo_core::buffer::zeroed_vec::<S>((scans.end - scans.start) as usize * frame)?;
        let mut rest = &mut out[..];
        let mut first = scans.start;
        while first < scans.end {
            let last = (first - first % window).saturating_add(window).min(scans.end);
            let n = (last - first) as usize;
            let _charge = self.budget().bytes((n * pixels * T::BYTES) as u64, "unpacked frames")?;
            let mut counts = tensilo_core::buffer::zeroed_vec::<T>(n * pixels)?;
            self.frames_into(first..last, Values::Masked, bytemuck::cast_slice_mut(&mut counts), monitor)?;
            let (now, later) = rest.split_at_mut(n * frame);
            rest = later;
            let parts: Vec<_> = now.chunks_mut(frame).map(Mutex::new).collect();
            self.threads().for_each(
                n,
                monitor,
                "binning",
                n as u64,
                || (),
                |(), i, done| {
                    let mut to = parts[i].lock().unwrap_or_else(PoisonError::into_inner);
                    bin::<T, S>(&counts[i * pixels..][..pixels], bins, &mut to);
                    done.add(1);
                    Ok(())
                },
            )?;
            first = last;
        }
        Ok(out)
    }
}

/// Adds up the counts of one frame, in this machine's byte order and as the source has them.
fn bin<T: Sample, S: Sum>(counts: &[T], bins: Bins, to: &mut [S]) {
    let along = bins.along();
    for (row, line) in counts.chunks_exact(bins.columns).enumerate() {
        let down = row / bins.rows * bins.down() + row % bins.rows / bins.factor;
        for (bin, pixels) in to[down * along..][..along].iter_mut().zip(line.chunks(bins.factor)) {
            let value = |v: &T| if S::SIGNED { v.signed() as u64 } else { v.widen().into() };
            let sum = pixels.iter().fold(bin.bits(), |sum, v| sum.wrapping_add(value(v)));
            *bin = S::of_bits(sum);
        }
    }
}
