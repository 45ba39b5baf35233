//! Images by name, as of format 1.

use super::{Products, Request};
use crate::geometry::Geometry;
use crate::products::{
    BAND_IMAGES, Bands, Choice, Counts, DETECTOR_IMAGES, DpcFrame, ImageValues, Ring, SCAN_IMAGES, Sum,
};
use crate::v2::read::Pack;
use tensilo_core::{Error, Monitor, Result};

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
    pub counts: Option<Counts<i128>>,
}

impl Pack {
    /// Makes images by name, as for format 1.
    ///
    /// Sums of signed counts are signed. Rings need a centre: the detector's middle when none is given. DPC needs a scan of two axes and counts the mean
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
        let (mut images, counts) = if l.counts().is_signed() {
            let p = self.products_as::<i64>(&request, monitor)?;
            (self.named(choice, geometry.as_ref(), &p, &rings)?, self.counts_of(&p))
        } else {
            let p = self.products_as::<u64>(&request, monitor)?;
            (self.named(choice, geometry.as_ref(), &p, &rings)?, self.counts_of(&p))
        };
        images.retain(|i| choice.has(i.name));
        Ok(Images { images, center, counts })
    }

    fn counts_of<S: Sum>(&self, p: &Products<S>) -> Option<Counts<i128>> {
        let sums = p.diffraction_sum.as_ref().or(p.moments.as_ref().map(|m| &m.total))?;
        let total: i128 = sums.iter().map(|s| s.wide()).sum();
        Some(Counts { total, mean_per_pattern: total as f64 / self.layout().scans() as f64 })
    }

    fn named<S: Sum>(
        &self,
        choice: &Choice,
        geometry: Option<&Geometry>,
        p: &Products<S>,
        rings: &[usize],
    ) -> Result<Vec<Image>> {
        let l = self.layout();
        let detector = |name, values| Image { name, shape: l.detector_shape().to_vec(), values };
        let scan = |name, values| Image { name, shape: l.scan_shape().to_vec(), values };
        let mean = p
            .diffraction_sum
            .as_ref()
            .map(|sum| ImageValues::F64(sum.iter().map(|d| d.to_f64() / l.scans() as f64).collect()));
        let sums = [&p.diffraction_sum, &p.diffraction_max].map(|v| v.as_deref().map(S::image));
        let values = sums.into_iter().chain([mean]);
        let mut images: Vec<Image> =
            DETECTOR_IMAGES.into_iter().zip(values).filter_map(|(n, v)| Some(detector(n, v?))).collect();
        if let Some(m) = &p.moments {
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
            for (name, values) in SCAN_IMAGES.into_iter().zip([&m.total, &m.row, &m.column]) {
                images.push(scan(name, S::image(values)));
            }
        }
        for (k, sums) in rings.iter().zip(&p.masks) {
            images.push(scan(BAND_IMAGES[*k], S::narrow_image(sums)));
        }
        Ok(images)
    }
}
