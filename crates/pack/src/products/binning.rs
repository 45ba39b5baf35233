//! Detector bins: exact sums of blocks of pixels, partial ones at the edges kept.

use crate::read::{Pack, Values};
use std::ops::Range;
use std::sync::Mutex;
use tensilo_core::{Error, Monitor, Result};

/// Frames of binned pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binned {
    /// Scans, bin rows, bin columns.
    pub shape: [usize; 3],
    /// The sums, in that order.
    pub values: Vec<u32>,
    /// No sum can be larger.
    pub bound: u32,
}

impl Binned {
    /// The sums in 16 bits.
    ///
    /// # Errors
    /// `Limit` when the bound (not just a value) does not fit.
    pub fn to_u16(&self) -> Result<Vec<u16>> {
        if self.bound > u32::from(u16::MAX) {
            return Err(Error::limit(format!("a bin could reach {}, which 16 bits do not hold", self.bound)));
        }
        Ok(self.values.iter().map(|v| *v as u16).collect())
    }
}

impl Pack {
    /// Sums blocks of `factor` by `factor` detector pixels of some scans; excluded pixels are cleared first, and
    /// blocks that the detector cuts off are kept.
    ///
    /// # Errors
    /// `InvalidArgument` for a factor of 0 or scans that are not there; `Limit` when a sum could pass 32 bits or memory
    /// is not allowed; errors of reading, the monitor's.
    pub fn binned(&self, scans: Range<u64>, factor: u32, monitor: &dyn Monitor) -> Result<Binned> {
        let g = *self.geometry();
        if factor == 0 || scans.start > scans.end || scans.end > g.scans() {
            return Err(Error::invalid(format!(
                "bins of {factor} pixels of scans {}..{}; there are {} scans",
                scans.start,
                scans.end,
                g.scans()
            )));
        }
        let (rows, columns) = (g.detector_rows(), g.detector_columns());
        let most = (1_u64 << self.flavour().most_bits()) - 1;
        let bound = u128::from(factor.min(rows)) * u128::from(factor.min(columns)) * u128::from(most);
        let bound = u32::try_from(bound).map_err(|_| {
            Error::limit(format!("a bin of {factor} x {factor} pixels could reach {bound}, past 32 bits"))
        })?;
        let [rows, columns, factor] = [rows, columns, factor].map(|n| n as usize);
        let (bin_rows, bin_columns) = (rows.div_ceil(factor), columns.div_ceil(factor));
        let count = (scans.end - scans.start) as usize;
        let frame = bin_rows * bin_columns;
        let wanted = (count as u64).saturating_mul(frame as u64).saturating_mul(4);
        let _charge = self.budget().bytes(wanted, "binned frames")?;
        let mut values = tensilo_core::buffer::zeroed_vec::<u32>(count * frame)?;
        let parts: Vec<_> =
            values.chunks_mut(frame).zip(scans.clone()).map(|(to, scan)| (scan, Mutex::new(to))).collect();
        let work = |raw: &mut Vec<u16>, i: usize, done: &tensilo_core::threads::Done| {
            let (scan, to) = &parts[i];
            let mut to = to.lock().unwrap_or_else(|p| p.into_inner());
            raw.resize(rows * columns, 0);
            self.frame_into(*scan, Values::Masked, raw)?;
            for (r, line) in raw.chunks_exact(columns).enumerate() {
                let bins = &mut to[r / factor * bin_columns..][..bin_columns];
                for (bin, pixels) in bins.iter_mut().zip(line.chunks(factor)) {
                    *bin += pixels.iter().map(|p| u32::from(*p)).sum::<u32>();
                }
            }
            done.add(1);
            Ok(())
        };
        self.threads().for_each(parts.len(), monitor, "binning", count as u64, Vec::new, work)?;
        drop(parts);
        Ok(Binned { shape: [count, bin_rows, bin_columns], values, bound })
    }
}
