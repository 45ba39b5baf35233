//! Arrays of two dimensions as PNG pictures: brightness from black over violet and orange to pale yellow.

use std::path::Path;
use std::sync::Arc;
use tensilo::core::io::{Staged, SystemDisk};
use tensilo::{Error, Result};

/// How values become brightness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// In proportion.
    Linear,
    /// By the logarithm of 1 + value - least.
    Logarithmic,
}

/// Stops of the colour map, at equal distances.
const COLORS: [[u8; 3]; 7] =
    [[0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66], [245, 125, 21], [252, 255, 164]];

/// Pictures are enlarged by whole factors up to about this many pixels on the longer side.
const SIDE: u32 = 512;

/// A picture: size and RGB bytes.
#[derive(Debug)]
pub struct Picture {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

fn color(t: f64) -> [u8; 3] {
    let x = t.clamp(0.0, 1.0) * (COLORS.len() - 1) as f64;
    let i = (x as usize).min(COLORS.len() - 2);
    let part = x - i as f64;
    std::array::from_fn(|c| {
        let (a, b) = (f64::from(COLORS[i][c]), f64::from(COLORS[i + 1][c]));
        (a + (b - a) * part).round() as u8
    })
}

impl Picture {
    /// Draws `rows × columns` values; the least is black, the greatest pale yellow.
    pub fn new([rows, columns]: [u32; 2], values: &[f64], scale: Scale) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let bright = |v: f64| match scale {
            Scale::Linear => v - least,
            Scale::Logarithmic => (v - least).ln_1p(),
        };
        let most = values.iter().map(|v| bright(*v)).fold(0.0, f64::max);
        let factor = (SIDE / rows.max(columns).max(1)).max(1);
        let (width, height) = (columns * factor, rows * factor);
        let mut rgb = Vec::with_capacity(3 * width as usize * height as usize);
        for row in values.chunks(columns.max(1) as usize) {
            let line: Vec<u8> = row
                .iter()
                .flat_map(|v| {
                    let c = color(if most > 0.0 { bright(*v) / most } else { 0.0 });
                    std::iter::repeat_n(c, factor as usize).flatten()
                })
                .collect();
            (0..factor).for_each(|_| rgb.extend_from_slice(&line));
        }
        Self { width, height, rgb }
    }

    /// The picture as a PNG file's bytes.
    ///
    /// # Errors
    /// `InvalidArgument` for a picture without pixels.
    pub fn png(&self) -> Result<Vec<u8>> {
        let wrong = |e: png::EncodingError| Error::invalid(format!("no picture can be made: {e}"));
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(wrong)?;
        writer.write_image_data(&self.rgb).map_err(wrong)?;
        writer.finish().map_err(wrong)?;
        Ok(out)
    }

    /// Writes the picture.
    ///
    /// # Errors
    /// `AlreadyExists` unless `replace`; `Io`.
    pub fn save(&self, path: &Path, replace: bool) -> Result<()> {
        let staged = Staged::create(Arc::new(SystemDisk), path)?;
        staged.write_at(0, &self.png()?)?;
        if replace { staged.publish_replace() } else { staged.publish_no_replace() }.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_is_black_and_greatest_is_pale() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let p = Picture::new([1, 2], &[7.0, 900.0], scale);
            assert_eq!((p.width, p.height), (512, 256));
            assert_eq!(p.rgb[..3], COLORS[0]);
            assert_eq!(p.rgb[p.rgb.len() - 3..], COLORS[6]);
        }
        let flat = Picture::new([2, 2], &[5.0; 4], Scale::Linear);
        assert!(flat.rgb.chunks(3).all(|c| c == COLORS[0]));
        assert!(Picture::new([0, 0], &[], Scale::Linear).png().is_err());
    }
}
