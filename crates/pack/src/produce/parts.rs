//! Packing alone, without source, hashes or file: for measurements of what each part of producing costs.

use super::decode::Frames;
use super::gather::{Described, StagedTile, gather_piece};
use super::kernel::Kernel;
use crate::format::header::HeaderBuilder;
use crate::geometry::Cut;
use crate::profile::Profile;
use tensilo_core::{Error, Result};

/// Packs shards of `exact-uint8-bitpacked`, one tile after another.
#[derive(Debug)]
pub struct Packing {
    cut: Cut,
    pixels: usize,
    excluded: Vec<u32>,
    constants: Vec<u16>,
    tiles: Vec<StagedTile>,
}

impl Packing {
    /// For shards of so many tiles of so many pixels, of which some are excluded and always have these values.
    pub fn new(pixels: usize, tiles: u32, excluded: Vec<u32>, constants: Vec<u16>) -> Self {
        let tile = Profile::ExactUint8BitPacked.tile();
        let cut = Cut { scans_per_shard: tile * tiles, shards: 1, tile };
        Self { cut, pixels, excluded, constants, tiles: Vec::new() }
    }

    fn with_kernel<T>(&mut self, work: impl FnOnce(&Kernel<'_>, &Cut, &mut Vec<StagedTile>) -> T) -> T {
        let frames = Frames::new(Vec::new(), 0);
        let kernel = Kernel {
            profile: Profile::ExactUint8BitPacked,
            frames: &frames,
            pixels: self.pixels,
            columns: self.pixels,
            excluded: &self.excluded,
            constants: &self.constants,
        };
        work(&kernel, &self.cut, &mut self.tiles)
    }

    /// Packs 32 raw frames; `working` takes the frames with exclusions cleared.
    ///
    /// # Errors
    /// `InvalidArgument` for another number of values; `Unsupported` for one that does not fit.
    pub fn tile(&mut self, raw: &[u16], working: &mut [u8]) -> Result<()> {
        self.with_kernel(|kernel, _, tiles| {
            let values = kernel.tile() * kernel.pixels;
            if raw.len() != values || working.len() != values {
                return Err(Error::invalid(format!("{} values for a tile of {values}", raw.len())));
            }
            let mut tile = StagedTile::new(kernel.pixels, kernel.pieces());
            let (widths, pieces) = tile.parts();
            let mut push = |_: usize, bytes: &[u8]| StagedTile::push(pieces, bytes);
            kernel.process(tiles.len(), raw, Some(working), widths, Some(&mut push))?;
            tiles.push(tile);
            Ok(())
        })
    }

    /// Puts the tiles into pixel order and hands over the payload piece by piece; returns the compact headers.
    ///
    /// # Errors
    /// `InvalidArgument` when a tile is missing.
    pub fn shard(&mut self, payload: &mut dyn FnMut(&[u8])) -> Result<Vec<u32>> {
        self.with_kernel(|kernel, cut, tiles| {
            if tiles.len() != cut.tiles() as usize {
                return Err(Error::invalid(format!("{} of {} tiles", tiles.len(), cut.tiles())));
            }
            let mut header = vec![0; kernel.pixels * cut.header_words() as usize];
            let mut described = Described::Compact(&mut header, HeaderBuilder::new(cut));
            let (mut widths, mut out) = (Vec::new(), Vec::new());
            for piece in 0..kernel.pieces() {
                gather_piece(kernel, cut, tiles, piece, &mut described, &mut widths, &mut out)?;
                payload(&out);
            }
            tiles.clear();
            Ok(header)
        })
    }
}
