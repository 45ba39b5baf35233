//! Exact products of a pack, from its packed tiles: sums, moments, bands, counts, and what follows from them.
//!
//! One pass over the shards makes all integer products; each tile is unpacked once, into lanes of one pixel's scans.
//! Excluded pixels are cleared first. Every sum has a bound from the shape (and, for bands, from the widths of the
//! tiles); one that could overflow is refused before anything is summed.
//!
//! | product | element | shape |
//! |---|---|---|
//! | diffraction sum, diffraction maximum | u64 | detector |
//! | total, row moment, column moment | u64 | scan |
//! | bands | u32, or u64 where the bound needs it | scan |
//! | centre of mass, DPC, iDPC, mean | f64 | scan, or detector for the mean |

mod bands;
mod binning;
mod dpc;
mod fft;
mod images;
mod pass;
mod sum;
mod sums;

pub use bands::{Bands, Ring, middle};
pub use binning::Binned;
pub use dpc::{Dpc, DpcFrame};
pub use images::{BAND_IMAGES, Choice, DETECTOR_IMAGES, Image, ImageValues, Images, SCAN_IMAGES};
pub use sum::Sum;

use crate::geometry::Geometry;
use crate::read::Pack;
use tensilo_core::{Monitor, Result};

/// Which integer products are wanted.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The sum and the maximum of every pixel over all scans.
    pub diffraction: bool,
    /// Total, row moment and column moment of every scan.
    pub moments: bool,
    /// Up to three band sums of every scan.
    pub bands: Option<Bands>,
}

impl Request {
    /// Everything, with these bands.
    pub fn all(bands: Bands) -> Self {
        Self { diffraction: true, moments: true, bands: Some(bands) }
    }
}

/// Total, row moment and column moment of every scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moments<S = u64> {
    /// Sum of the counts.
    pub total: Vec<S>,
    /// Sum of count times detector row.
    pub row: Vec<S>,
    /// Sum of count times detector column.
    pub column: Vec<S>,
}

/// The sums of one band.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BandSums {
    /// The bound fits 32 bits.
    U32(Vec<u32>),
    /// It does not.
    U64(Vec<u64>),
}

impl BandSums {
    /// Number of scans.
    pub fn len(&self) -> usize {
        match self {
            Self::U32(v) => v.len(),
            Self::U64(v) => v.len(),
        }
    }

    /// Are there no scans?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sums in 64 bits.
    pub fn to_u64(&self) -> Vec<u64> {
        match self {
            Self::U32(v) => v.iter().map(|x| u64::from(*x)).collect(),
            Self::U64(v) => v.clone(),
        }
    }

    fn of(sums: Vec<u64>, bound: u128) -> Self {
        if bound <= u128::from(u32::MAX) {
            Self::U32(sums.into_iter().map(|s| s as u32).collect())
        } else {
            Self::U64(sums)
        }
    }
}

/// Counts of a whole dataset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts<S = u64> {
    /// Sum of all working values.
    pub total: S,
    /// Mean counts of one pattern.
    pub mean_per_pattern: f64,
}

impl Counts {
    /// The same in 128 bits.
    pub fn wide(self) -> Counts<i128> {
        Counts { total: self.total.into(), mean_per_pattern: self.mean_per_pattern }
    }
}

/// The integer products of one pass; what was not asked for is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Products {
    /// Shape of the acquisition.
    pub geometry: Geometry,
    /// Sum of every pixel over all scans.
    pub diffraction_sum: Option<Vec<u64>>,
    /// Largest value of every pixel.
    pub diffraction_max: Option<Vec<u64>>,
    /// Moments of every scan.
    pub moments: Option<Moments>,
    /// Sums of the three bands.
    pub bands: Option<[BandSums; 3]>,
}

impl Products {
    /// The mean pattern, D / N.
    pub fn diffraction_mean(&self) -> Option<Vec<f64>> {
        let scans = self.geometry.scans() as f64;
        Some(self.diffraction_sum.as_ref()?.iter().map(|d| *d as f64 / scans).collect())
    }

    /// Counts of the whole dataset.
    pub fn counts(&self) -> Option<Counts> {
        let sums = self.diffraction_sum.as_ref().or(self.moments.as_ref().map(|m| &m.total))?;
        let total = sums.iter().sum();
        Some(Counts { total, mean_per_pattern: total as f64 / self.geometry.scans() as f64 })
    }
}

impl<S: Sum> Moments<S> {
    /// Centre of mass of every scan as rows and columns in pixels; NaN where the total is 0.
    pub fn center_of_mass(&self) -> [Vec<f64>; 2] {
        [&self.row, &self.column].map(|moment| {
            let pairs = moment.iter().zip(&self.total);
            pairs.map(|(m, t)| if t.wide() == 0 { f64::NAN } else { m.to_f64() / t.to_f64() }).collect()
        })
    }
}

impl Pack {
    /// Makes integer products in one pass over the packed tiles, on all threads of the pack.
    ///
    /// ```no_run
    /// use tensilo_core::Quiet;
    /// use tensilo_pack::products::{Bands, Request, Ring};
    /// let pack = tensilo_pack::read::Pack::open("scan.h5")?;
    /// let disk = Ring::centered(pack.geometry(), 0.0, 12.8);
    /// let request = Request::all(Bands::rings(pack.geometry(), &[disk])?);
    /// let products = pack.products(&request, &Quiet)?;
    /// println!("{:?}", products.counts());
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Limit` when a sum could overflow or memory is not allowed, errors of reading, the monitor's.
    pub fn products(&self, request: &Request, monitor: &dyn Monitor) -> Result<Products> {
        pass::run(self, request, monitor)
    }
}
