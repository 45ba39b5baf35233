//! Thirty-two scans of all pixels from a shard, as verifying hashes them: working and raw frames.

use crate::profile::Flavour;
use crate::read::{Pack, Shard, whole_group};
use crate::strip::{self, STRIP, TILE};
use tensilo_core::{Error, Result};

/// Scans that are unpacked together.
pub(crate) const UNIT: usize = TILE;

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
pub(crate) fn raw_values(pack: &Pack) -> Result<Excluded<'_>> {
    if pack.flavour() == Flavour::Lz4 || pack.excluded().is_empty() {
        return Ok(Excluded::Raw(&[]));
    }
    match &pack.manifest().excluded_values {
        Some(values) => Ok(Excluded::Raw(values)),
        None => Err(Error::unsupported("the manifest does not state the values of the excluded pixels")),
    }
}

/// Unpacks uint8 frames, excluded pixels 0, and the raw ones where the values of excluded pixels are given.
pub(crate) fn frames_u8(
    shard: &Shard,
    unit: usize,
    pixels: usize,
    excluded: Option<(&[u32], &[u16])>,
    working: &mut [u8],
    raw: &mut [u16],
) {
    for at in (0..pixels).step_by(STRIP) {
        let n = STRIP.min(pixels - at);
        let rows = shard.strip(at, n, unit);
        strip::place(&rows, pixels, at, n, working);
        if excluded.is_some() {
            for (frame, row) in raw.chunks_exact_mut(pixels).zip(&rows) {
                frame[at..at + n].iter_mut().zip(row).for_each(|(to, v)| *to = u16::from(*v));
            }
        }
    }
    let Some((excluded, values)) = excluded else { return };
    for frame in raw.chunks_exact_mut(pixels) {
        excluded.iter().zip(values).for_each(|(p, v)| frame[*p as usize] = *v);
    }
}

/// Unpacks uint16 frames of any flavour, excluded pixels as told.
pub(crate) fn frames_u16(
    pack: &Pack,
    shard: &Shard,
    unit: usize,
    excluded: Excluded<'_>,
    frames: &mut [u16],
) {
    let pixels = pack.geometry().pixels() as usize;
    whole_group(shard, unit, pixels, frames);
    for frame in frames.chunks_exact_mut(pixels) {
        match excluded {
            Excluded::Zero => pack.excluded().iter().for_each(|p| frame[*p as usize] = 0),
            Excluded::Raw(values) => {
                pack.excluded().iter().zip(values).for_each(|(p, v)| frame[*p as usize] = *v);
            }
        }
    }
}
