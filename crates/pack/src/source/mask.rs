//! The detector's pixel mask: which pixels are excluded (contract, 4 and 5.1).
//!
//! Codes are bit flags, 0 is a good pixel; the complete mask is hashed with its codes.

use crate::digest::Sha256Sum;
use crate::geometry::Geometry;
use crate::identity::{self, MaskOrigin};
use crate::source::member;
use tensilo_core::{Error, Result};
use tensilo_hdf5::read::File;

const PIXEL_MASK: &str = "/entry/instrument/detector/detectorSpecific/pixel_mask";

/// A mask.
pub(crate) struct Mask {
    /// Flat pixels whose code is not zero, ascending.
    pub excluded: Vec<u32>,
    pub sha256: Sha256Sum,
    pub origin: MaskOrigin,
}

/// Reads the mask of a detector; no mask admits all pixels.
///
/// # Errors
/// `InvalidArgument` when its shape is another, its codes do not fit 32 bits, or it excludes every pixel.
pub(crate) fn read(file: &File, geometry: &Geometry) -> Result<Mask> {
    let (mask, _) = read_codes(file, geometry)?;
    if mask.excluded.len() as u64 == geometry.pixels() {
        return Err(Error::invalid("pixel_mask excludes the complete detector").in_object(PIXEL_MASK));
    }
    Ok(mask)
}

/// As [`read`], with the codes of every pixel where there is a mask; they may exclude every pixel.
///
/// # Errors
/// `InvalidArgument` when its shape is another, or its codes do not fit 32 bits.
pub(crate) fn read_codes(file: &File, geometry: &Geometry) -> Result<(Mask, Option<Vec<u32>>)> {
    let pixels = geometry.pixels();
    let Some(dataset) = member::find(file, PIXEL_MASK)? else {
        let sha256 = identity::implicit_mask_sha256(pixels);
        return Ok((Mask { excluded: Vec::new(), sha256, origin: MaskOrigin::Implicit }, None));
    };
    let [rows, columns] = [geometry.detector_rows(), geometry.detector_columns()];
    if dataset.shape() != [u64::from(rows), u64::from(columns)] {
        return Err(Error::invalid(format!(
            "pixel_mask has shape {:?}, the detector {rows} x {columns}",
            dataset.shape()
        ))
        .in_object(PIXEL_MASK));
    }
    let codes: Vec<u32> = dataset.read()?;
    let excluded: Vec<u32> = (0..).zip(&codes).filter(|(_, code)| **code != 0).map(|(p, _)| p).collect();
    let sha256 = Sha256Sum::of_u32(&codes);
    Ok((Mask { excluded, sha256, origin: MaskOrigin::Source }, Some(codes)))
}
