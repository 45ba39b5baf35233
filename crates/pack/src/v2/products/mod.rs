//! Exact products of a pack of format 2, from its blocks: sums, moments, virtual detectors, bins; no cube is built.
//!
//! Blocks hold excluded pixels as 0. Sums over a mask or over scans are the codec's own; moments, maxima and everything of
//! signed counts need the counts of a block, which are decoded once for all of them. Names and types are format 1's; scan
//! images have the scan's shape, detector images the detector's. For a detector of more than two axes a row is all axes but
//! the last together.

mod bins;
mod detector;
mod images;
mod pass;

pub use bins::Binned;
pub use detector::VirtualDetector;
pub use images::{Image, Images};

use super::counts::with_sample;
use super::read::Pack;
use crate::products::{Moments, Sum};
use pass::Pass;
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

/// The integer products of one pass, `u64` of unsigned counts and `i64` of signed ones; what was not asked for is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Products<S = u64> {
    /// Sum of every flat pixel over all scans.
    pub diffraction_sum: Option<Vec<S>>,
    /// Largest value of every flat pixel.
    pub diffraction_max: Option<Vec<S>>,
    /// Moments of every scan.
    pub moments: Option<Moments<S>>,
    /// Sums of every scan, one list for each mask.
    pub masks: Vec<Vec<S>>,
}

impl Pack {
    /// Makes integer products in one pass over the blocks that matter, on all threads of the pack.
    ///
    /// # Errors
    /// `InvalidArgument` for signed counts or a mask of another length; `Limit` when a sum could overflow or memory is not
    /// allowed; errors of reading, the monitor's.
    pub fn products(&self, request: &Request, monitor: &dyn Monitor) -> Result<Products> {
        self.products_as(request, monitor)
    }

    /// The same for signed counts.
    ///
    /// # Errors
    /// As [`products`](Self::products), `InvalidArgument` for unsigned counts.
    pub fn signed_products(&self, request: &Request, monitor: &dyn Monitor) -> Result<Products<i64>> {
        self.products_as(request, monitor)
    }

    pub(crate) fn products_as<S: Sum>(
        &self,
        request: &Request,
        monitor: &dyn Monitor,
    ) -> Result<Products<S>> {
        let l = self.layout();
        self.check_sums::<S>()?;
        if let Some(mask) = request.masks.iter().find(|m| m.len() as u64 != l.pixels()) {
            return Err(Error::invalid(format!("a mask of {} bytes for {} pixels", mask.len(), l.pixels())));
        }
        // No count is farther from 0 than this.
        let most = 1_u128 << (8 * l.counts().bytes() - usize::from(S::SIGNED));
        let side = u128::from(l.rows().max(l.columns()));
        let moment = if request.moments { most * u128::from(l.pixels()) * side } else { 0 };
        let sum = if request.diffraction_sum { most * u128::from(l.scans()) } else { 0 };
        if moment.max(sum) > S::MOST {
            return Err(Error::limit("a sum could pass 64 bits"));
        }
        with_sample!(l.counts(), T => Pass::<T, S>::new(self, request)?.run(monitor))
    }

    /// Sums are of the counts' kind.
    pub(crate) fn check_sums<S: Sum>(&self) -> Result<()> {
        let counts = self.layout().counts();
        if S::SIGNED == counts.is_signed() {
            return Ok(());
        }
        let sums = if S::SIGNED { "signed" } else { "unsigned" };
        Err(self.in_file(Error::invalid(format!("{sums} sums of counts of type {counts}"))))
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
        self.virtual_image_as(mask, monitor)
    }

    /// The same for signed counts.
    ///
    /// # Errors
    /// As [`signed_products`](Self::signed_products).
    pub fn signed_virtual_image(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<Vec<i64>> {
        self.virtual_image_as(mask, monitor)
    }

    pub(crate) fn virtual_image_as<S: Sum>(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<Vec<S>> {
        let request = Request { masks: vec![mask.to_vec()], ..Request::default() };
        Ok(self.products_as(&request, monitor)?.masks.pop().unwrap_or_default())
    }

    /// A virtual detector that can be moved: its image follows from the pixels that come and go.
    ///
    /// # Errors
    /// As [`virtual_image`](Self::virtual_image).
    pub fn virtual_detector(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<VirtualDetector> {
        VirtualDetector::new(self.clone(), mask, monitor)
    }

    /// The same for signed counts.
    ///
    /// # Errors
    /// As [`signed_virtual_image`](Self::signed_virtual_image).
    pub fn signed_virtual_detector(
        &self,
        mask: &[u8],
        monitor: &dyn Monitor,
    ) -> Result<VirtualDetector<i64>> {
        VirtualDetector::new(self.clone(), mask, monitor)
    }
}
