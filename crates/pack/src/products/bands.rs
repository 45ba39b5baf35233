//! Which pixels a product takes: membership of up to three bands, and how pixels are weighed.

use crate::geometry::Geometry;
use tensilo_core::{Error, Result};

/// Up to three sets of detector pixels, one bit each: 1 bright field, 2 annular bright field, 4 dark field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bands {
    membership: Vec<u8>,
}

/// A ring of detector pixels around a centre; both edges belong to it.
///
/// The rule: `inner² <= d² <= outer²` in 64-bit floats, `d²` the squared distance of the pixel from the centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ring {
    /// Row and column of the centre in pixels; the first pixel's centre is (0, 0).
    pub center: [f64; 2],
    /// Inner radius in pixels; 0 makes a disk.
    pub inner: f64,
    /// Outer radius in pixels.
    pub outer: f64,
}

impl Ring {
    /// A ring around the middle of the detector.
    pub fn centered(geometry: &Geometry, inner: f64, outer: f64) -> Self {
        Self { center: middle(geometry), inner, outer }
    }

    /// Is the pixel in it?
    pub fn contains(&self, row: u32, column: u32) -> bool {
        let (r, c) = (f64::from(row) - self.center[0], f64::from(column) - self.center[1]);
        let d2 = r * r + c * c;
        d2 <= self.outer * self.outer && (self.inner <= 0.0 || d2 >= self.inner * self.inner)
    }
}

/// The middle of the detector: ((rows - 1) / 2, (columns - 1) / 2).
pub fn middle(geometry: &Geometry) -> [f64; 2] {
    [geometry.detector_rows(), geometry.detector_columns()].map(|n| f64::from(n - 1) / 2.0)
}

impl Bands {
    /// From one byte for each pixel, bits 1, 2 and 4.
    ///
    /// # Errors
    /// `InvalidArgument` for another length or other bits.
    pub fn new(geometry: &Geometry, membership: Vec<u8>) -> Result<Self> {
        if membership.len() as u64 != geometry.pixels() {
            return Err(Error::invalid(format!(
                "a membership of {} bytes for {} pixels",
                membership.len(),
                geometry.pixels()
            )));
        }
        if let Some(at) = membership.iter().position(|m| *m > 7) {
            return Err(Error::invalid(format!(
                "membership {} of pixel {at}; bits 1, 2, 4 exist",
                membership[at]
            )));
        }
        Ok(Self { membership })
    }

    /// From up to three rings; they may overlap.
    ///
    /// # Errors
    /// `InvalidArgument` for more than three, or a radius or centre that is no number.
    pub fn rings(geometry: &Geometry, rings: &[Ring]) -> Result<Self> {
        if rings.len() > 3 {
            return Err(Error::invalid(format!("{} bands; three are possible", rings.len())));
        }
        if let Some(r) = rings.iter().find(|r| {
            !(r.center.iter().all(|c| c.is_finite()) && r.inner.is_finite() && r.outer >= r.inner.max(0.0))
        }) {
            return Err(Error::invalid(format!(
                "a ring around {:?} from {} to {} is no ring",
                r.center, r.inner, r.outer
            )));
        }
        let columns = geometry.detector_columns();
        let bits = |row, column| {
            rings.iter().enumerate().map(|(k, ring)| u8::from(ring.contains(row, column)) << k).sum()
        };
        let rows = 0..geometry.detector_rows();
        Ok(Self { membership: rows.flat_map(|r| (0..columns).map(move |c| bits(r, c))).collect() })
    }

    /// One byte for each pixel.
    pub fn membership(&self) -> &[u8] {
        &self.membership
    }

    /// Pixels of each band, before exclusions.
    pub fn selected(&self) -> [u64; 3] {
        [1, 2, 4].map(|bit| self.membership.iter().filter(|m| **m & bit != 0).count() as u64)
    }
}
