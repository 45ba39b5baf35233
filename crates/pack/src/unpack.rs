//! Thirty-two scans of all pixels from a shard: working and raw frames.
//!
//! An LZ4 tile of 128 scans is four runs of 32 with one width, so that every flavour is read in units of 32 scans.

use crate::container::{Container, Shard};
use crate::format::tile;
use crate::profile::Flavour;
use crate::strip::{self, STRIP, TILE};
use tensilo_core::{Error, Result};

/// Scans that are unpacked together.
pub(crate) const UNIT: usize = TILE;

impl Shard {
    /// Words and width of 32 scans of one pixel; `unit` counts units of 32 scans from the shard's first.
    pub(crate) fn unit(&self, pixel: usize, unit: usize, units_per_tile: usize) -> (&[u32], u32) {
        let (words, width) = self.tile(pixel, unit / units_per_tile);
        let at = unit % units_per_tile * width as usize;
        (&words[at..at + width as usize], width)
    }
}

/// Units of 32 scans in one tile.
pub(crate) fn units_per_tile(flavour: Flavour) -> usize {
    flavour.tile() as usize / UNIT
}

/// What excluded pixels read as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Excluded<'a> {
    /// 0.
    Zero,
    /// Their values: from the payload where it keeps them, else these constants.
    Raw(&'a [u16]),
}

/// How excluded pixels are read as their values, if the pack knows them.
///
/// # Errors
/// `Unsupported` when the manifest does not state the constants.
pub(crate) fn raw_values(container: &Container) -> Result<Excluded<'_>> {
    let (index, manifest) = (container.index(), container.manifest());
    if index.flavour == Flavour::Lz4 || index.excluded.is_empty() {
        return Ok(Excluded::Raw(&[]));
    }
    match &manifest.excluded_values {
        Some(values) => Ok(Excluded::Raw(values)),
        None => Err(Error::unsupported("the manifest does not state the values of the excluded pixels")),
    }
}

/// Unpacks uint8 frames: `frames` holds 32 frames of all pixels. Excluded pixels are 0.
pub(crate) fn working_u8(shard: &Shard, unit: usize, pixels: usize, frames: &mut [u8]) {
    for at in (0..pixels).step_by(STRIP) {
        let n = STRIP.min(pixels - at);
        let rows = strip::unpack(n, |p| shard.tile(at + p, unit));
        for (frame, row) in frames.chunks_exact_mut(pixels).zip(&rows) {
            frame[at..at + n].copy_from_slice(&row[..n]);
        }
    }
}

/// Widens uint8 frames to uint16, excluded pixels to their constants.
pub(crate) fn raw_from_u8(working: &[u8], pixels: usize, excluded: &[u32], values: &[u16], raw: &mut [u16]) {
    for (frame, working) in raw.chunks_exact_mut(pixels).zip(working.chunks_exact(pixels)) {
        for (to, v) in frame.iter_mut().zip(working) {
            *to = u16::from(*v);
        }
        for (pixel, value) in excluded.iter().zip(values) {
            frame[*pixel as usize] = *value;
        }
    }
}

/// Unpacks uint16 frames of any flavour, excluded pixels as told.
pub(crate) fn frames_u16(
    container: &Container,
    shard: &Shard,
    unit: usize,
    excluded: Excluded<'_>,
    frames: &mut [u16],
) {
    let index = container.index();
    let (pixels, per_tile) = (index.geometry.pixels() as usize, units_per_tile(index.flavour));
    let mut rows = vec![[0_u16; STRIP]; TILE];
    for at in (0..pixels).step_by(STRIP) {
        let n = STRIP.min(pixels - at);
        for p in 0..n {
            let (words, width) = shard.unit(at + p, unit, per_tile);
            let mut values = [0; TILE];
            tile::unpack(words, width, &mut values);
            for (row, v) in rows.iter_mut().zip(values) {
                row[p] = v;
            }
        }
        for (frame, row) in frames.chunks_exact_mut(pixels).zip(&rows) {
            frame[at..at + n].copy_from_slice(&row[..n]);
        }
    }
    for frame in frames.chunks_exact_mut(pixels) {
        match excluded {
            Excluded::Zero => index.excluded.iter().for_each(|p| frame[*p as usize] = 0),
            Excluded::Raw(values) => {
                for (pixel, value) in index.excluded.iter().zip(values) {
                    frame[*pixel as usize] = *value;
                }
            }
        }
    }
}
