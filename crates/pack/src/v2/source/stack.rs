//! An open source: frames by their number, whatever they are stored in.

use super::boxes::boxes;
use super::npy::NpyStack;
use crate::read::{Pack, Values};
use crate::v2::counts::{CountType, Sample};
use std::ops::Range;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::{Error, Monitor, Result};
use tensilo_hdf5::read::Dataset;

/// One piece of a stack: some consecutive frames.
#[derive(Debug)]
pub(crate) enum Piece {
    /// A dataset whose first axes are the scan.
    Hdf5 { dataset: Dataset, scan_axes: usize },
    /// A `.npy` file.
    Npy(NpyStack),
    /// A pack of format 1, excluded pixels restored.
    Packed(Pack),
}

/// Frames of several pieces, one behind the other.
#[derive(Debug)]
pub(crate) struct Frames {
    pub counts: CountType,
    pub pixels: usize,
    /// Frames of each piece.
    pieces: Vec<(u64, Piece)>,
}

impl Frames {
    pub fn new(counts: CountType, pixels: usize, pieces: Vec<(u64, Piece)>) -> Self {
        Self { counts, pixels, pieces }
    }

    /// Reads whole frames as the source has them; signed values as their bits.
    pub fn read<T: Sample>(&self, scans: Range<u64>, out: &mut [T], monitor: &dyn Monitor) -> Result<()> {
        let mut first = 0;
        let mut rest = out;
        for (frames, piece) in &self.pieces {
            let part = scans.start.max(first)..scans.end.min(first + frames);
            if part.start < part.end {
                let here = (part.end - part.start) as usize * self.pixels;
                let (now, later) = rest
                    .split_at_mut_checked(here)
                    .ok_or_else(|| Error::invalid("fewer values than frames asked for"))?;
                self.read_piece(piece, part.start - first..part.end - first, now, monitor)?;
                rest = later;
            }
            first += frames;
        }
        if !rest.is_empty() {
            return Err(Error::invalid(format!("{scans:?} of {first} frames")));
        }
        Ok(())
    }

    fn read_piece<T: Sample>(
        &self,
        piece: &Piece,
        frames: Range<u64>,
        out: &mut [T],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        match piece {
            Piece::Npy(npy) => npy.read_at(frames.start * self.pixels as u64, bytemuck::cast_slice_mut(out)),
            Piece::Packed(pack) => {
                let values = bytemuck::try_cast_slice_mut(out)
                    .map_err(|_| Error::invalid("a pack of format 1 holds uint16"))?;
                pack.frames_into(frames, Values::Raw, values, monitor)
            }
            Piece::Hdf5 { dataset, scan_axes } => {
                let shape = dataset.shape();
                let mut rest = out;
                for (mut start, mut count) in boxes(&shape[..*scan_axes], frames.start, frames.end) {
                    start.resize(shape.len(), 0);
                    count.extend_from_slice(&shape[*scan_axes..]);
                    let n = count.iter().product::<u64>() as usize;
                    let (now, later) = std::mem::take(&mut rest).split_at_mut(n);
                    rest = later;
                    self.read_box(dataset, &Hyperslab::new(start, count).into(), now, monitor)?;
                }
                Ok(())
            }
        }
    }

    fn read_box<T: Sample>(
        &self,
        dataset: &Dataset,
        selection: &Selection,
        out: &mut [T],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        macro_rules! into {
            ($t:ty) => {
                dataset.read_into_with::<$t>(selection, bytemuck::cast_slice_mut(out), monitor)
            };
        }
        match (self.counts.bytes(), self.counts.is_signed()) {
            (1, false) => into!(u8),
            (1, true) => into!(i8),
            (2, false) => into!(u16),
            (2, true) => into!(i16),
            (_, false) => into!(u32),
            (_, true) => into!(i32),
        }
    }
}
