//! Products by name: the images that a program or a script asks for, made in one pass.

use super::{BandSums, Bands, Counts, DpcFrame, Products, Request, Ring, middle};
use crate::read::Pack;
use tensilo_core::{Error, Monitor, Result};

/// Images of the detector's shape.
pub const DETECTOR_IMAGES: [&str; 3] = ["diffraction_sum", "diffraction_max", "diffraction_mean"];
/// Images of the scan's shape that need nothing else.
pub const SCAN_IMAGES: [&str; 8] = [
    "total_per_scan",
    "detector_row_moment_per_scan",
    "detector_column_moment_per_scan",
    "com_row",
    "com_column",
    "dpc_row",
    "dpc_column",
    "idpc",
];
/// Images of the scan's shape that need a ring each.
pub const BAND_IMAGES: [&str; 3] = ["bf", "abf", "adf"];

/// Which images are wanted.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Names; everything that can be made when empty.
    pub only: Vec<String>,
    /// Inner and outer radius, in pixels, of bright field, annular bright field and dark field.
    pub rings: [Option<(f64, f64)>; 3],
    /// Centre of the rings: row and column in pixels. What the pack states, or the detector's middle, when absent.
    pub center: Option<[f64; 2]>,
}

/// Values of an image, exact.
#[derive(Debug, Clone, PartialEq)]
pub enum ImageValues {
    /// Sums whose bound fits 32 bits.
    U32(Vec<u32>),
    /// Sums.
    U64(Vec<u64>),
    /// Sums of signed counts.
    I64(Vec<i64>),
    /// Quotients and what follows from them.
    F64(Vec<f64>),
}

impl ImageValues {
    /// The values as little-endian bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::U32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::U64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::I64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::F64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }

    /// The values as 64-bit floats, for pictures.
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::U32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::U64(v) => v.iter().map(|x| *x as f64).collect(),
            Self::I64(v) => v.iter().map(|x| *x as f64).collect(),
            Self::F64(v) => v.clone(),
        }
    }

    /// The type in NumPy's notation.
    pub fn descr(&self) -> &'static str {
        match self {
            Self::U32(_) => "<u4",
            Self::U64(_) => "<u8",
            Self::I64(_) => "<i8",
            Self::F64(_) => "<f8",
        }
    }
}

/// A named image.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Its name, one of the constants of this module.
    pub name: &'static str,
    /// Rows and columns.
    pub shape: [u32; 2],
    /// The values, row by row.
    pub values: ImageValues,
}

/// Images, and what they were made with.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    /// The images that were wanted.
    pub images: Vec<Image>,
    /// Centre that the rings had.
    pub center: [f64; 2],
    /// Counts of the whole dataset, where a sum of all was made.
    pub counts: Option<Counts>,
}

impl Choice {
    /// Every name is known, and every named band has its ring.
    pub(crate) fn check(&self) -> Result<()> {
        for name in &self.only {
            let mut all = DETECTOR_IMAGES.iter().chain(&SCAN_IMAGES).chain(&BAND_IMAGES);
            if !all.any(|n| n == name) {
                let all: Vec<&str> =
                    DETECTOR_IMAGES.into_iter().chain(SCAN_IMAGES).chain(BAND_IMAGES).collect();
                return Err(Error::invalid(format!("no product {name:?}; there are {}", all.join(", "))));
            }
            if let Some(k) = BAND_IMAGES.iter().position(|n| n == name)
                && self.rings[k].is_none()
            {
                return Err(Error::invalid(format!("{name} needs its ring")));
            }
        }
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|n| n == name)
    }

    pub(crate) fn any(&self, names: &[&str]) -> bool {
        names.iter().any(|n| self.has(n))
    }

    pub(crate) fn ring(&self, k: usize) -> Option<(f64, f64)> {
        self.rings[k].filter(|_| self.has(BAND_IMAGES[k]))
    }

    fn bands(&self, pack: &Pack, center: [f64; 2]) -> Result<Option<Bands>> {
        let mut membership = vec![0_u8; pack.geometry().pixels() as usize];
        for k in 0..3 {
            let Some((inner, outer)) = self.ring(k) else { continue };
            let of_ring = Bands::rings(pack.geometry(), &[Ring { center, inner, outer }])?;
            membership.iter_mut().zip(of_ring.membership()).for_each(|(to, m)| *to |= m << k);
        }
        let any = (0..3).any(|k| self.ring(k).is_some());
        if any { Bands::new(pack.geometry(), membership).map(Some) } else { Ok(None) }
    }
}

impl Pack {
    /// Makes images by name in one pass over the packed tiles.
    ///
    /// DPC follows the pack's detector calibration, where it states one; else the mean centre of mass is no deflection.
    ///
    /// ```no_run
    /// use tensilo_core::Quiet;
    /// use tensilo_pack::products::Choice;
    /// let pack = tensilo_pack::read::Pack::open("scan.h5")?;
    /// let choice = Choice { rings: [Some((0.0, 12.0)), None, Some((15.0, 40.0))], ..Choice::default() };
    /// for image in pack.images(&choice, &Quiet)?.images {
    ///     println!("{} {:?}", image.name, image.shape);
    /// }
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name, a band without its ring or a ring that is none; as
    /// [`products`](Self::products).
    pub fn images(&self, choice: &Choice, monitor: &dyn Monitor) -> Result<Images> {
        choice.check()?;
        let stated = self.manifest().detector_calibration.as_ref();
        let center = choice.center.or(stated.map(|c| c.center_px)).unwrap_or_else(|| middle(self.geometry()));
        let request = Request {
            diffraction: choice.any(&DETECTOR_IMAGES),
            moments: choice.any(&SCAN_IMAGES),
            bands: choice.bands(self, center)?,
        };
        let products = self.products(&request, monitor)?;
        let counts = products.counts();
        let mut images = self.all_images(choice, products)?;
        images.retain(|i| choice.has(i.name));
        Ok(Images { images, center, counts })
    }

    fn all_images(&self, choice: &Choice, p: Products) -> Result<Vec<Image>> {
        let [scan_rows, scan_columns, rows, columns] = self.shape();
        let detector = |name, values| Image { name, shape: [rows, columns], values };
        let scan = |name, values| Image { name, shape: [scan_rows, scan_columns], values };
        let mut images = Vec::new();
        let mean = p.diffraction_mean();
        let integers = [p.diffraction_sum, p.diffraction_max].map(|v| v.map(ImageValues::U64));
        let values = integers.into_iter().chain([mean.map(ImageValues::F64)]);
        images.extend(DETECTOR_IMAGES.into_iter().zip(values).filter_map(|(n, v)| Some(detector(n, v?))));
        if let Some(m) = p.moments {
            if choice.any(&SCAN_IMAGES[5..]) {
                let stated = self.manifest().detector_calibration.as_ref();
                let dpc = m.dpc(self.geometry(), &stated.map(DpcFrame::calibrated).unwrap_or_default())?;
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
        for (k, sums) in p.bands.into_iter().flatten().enumerate() {
            if choice.ring(k).is_some() {
                let values = match sums {
                    BandSums::U32(v) => ImageValues::U32(v),
                    BandSums::U64(v) => ImageValues::U64(v),
                };
                images.push(scan(BAND_IMAGES[k], values));
            }
        }
        Ok(images)
    }
}
