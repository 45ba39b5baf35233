//! From tiles to a shard: packed words, staged tile by tile, put into pixel order.
//!
//! Each tile is staged in pieces of some hundred neighbouring pixels. A piece of the shard is made from the same piece
//! of all tiles, pixel by pixel, without looking elsewhere.

use super::kernel::Kernel;
use crate::format::header::HeaderBuilder;
use crate::geometry::Cut;
use crate::strip::{self, PAD};
use tensilo_core::Result;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Pixels between two looks ahead in every tile: about what two lines hold.
const AHEAD: usize = 16;

/// One packed tile.
#[derive(Debug, Default)]
pub(crate) struct StagedTile {
    pub widths: Vec<u8>,
    pieces: Vec<Box<[u8]>>,
}

impl StagedTile {
    /// An empty tile of so many pixels.
    pub fn new(pixels: usize, pieces: usize) -> Self {
        Self { widths: vec![0; pixels], pieces: Vec::with_capacity(pieces) }
    }

    /// Appends the next piece.
    pub fn push(pieces: &mut Vec<Box<[u8]>>, bytes: &[u8]) {
        let mut padded = Vec::with_capacity(bytes.len() + PAD);
        padded.extend_from_slice(bytes);
        padded.resize(bytes.len() + PAD, 0);
        pieces.push(padded.into_boxed_slice());
    }

    /// Widths and pieces, to be filled together.
    pub fn parts(&mut self) -> (&mut [u8], &mut Vec<Box<[u8]>>) {
        (&mut self.widths, &mut self.pieces)
    }

    /// Bytes that the tile holds.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|p| p.len() as u64).sum::<u64>() + self.widths.len() as u64
    }
}

/// Payload words of a shard, from its widths.
pub(crate) fn payload_words<'t>(widths: impl Iterator<Item = &'t [u8]>, unit: usize) -> u64 {
    widths.map(|tile| tile.iter().map(|w| u64::from(*w)).sum::<u64>()).sum::<u64>() * unit as u64
}

/// What describes the tiles of a shard beside its payload: compact headers, or width bytes.
pub(crate) enum Described<'h> {
    /// Compact-header words of all pixels.
    Compact(&'h mut [u32], HeaderBuilder),
    /// Width bytes of all pixels.
    Widths(&'h mut [u8]),
}

impl Described<'_> {
    /// Enters the widths of the next pixels, given pixel-major.
    pub fn enter(&mut self, first: usize, widths: &[u8], cut: &Cut) -> Result<()> {
        let tiles = cut.tiles() as usize;
        match self {
            Self::Compact(words, builder) => {
                let per_pixel = cut.header_words() as usize;
                let header = words[first * per_pixel..].chunks_exact_mut(per_pixel);
                for (widths, header) in widths.chunks_exact(tiles).zip(header) {
                    builder.pixel(widths, header)?;
                }
            }
            Self::Widths(bytes) => bytes[first * tiles..][..widths.len()].copy_from_slice(widths),
        }
        Ok(())
    }
}

/// Puts one piece of all tiles into pixel order; `out` is overwritten.
pub(crate) fn gather_piece(
    kernel: &Kernel<'_>,
    cut: &Cut,
    tiles: &[StagedTile],
    piece: usize,
    described: &mut Described<'_>,
    widths: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let first = piece * kernel.piece();
    let n = kernel.piece().min(kernel.pixels - first);
    pixel_major(tiles.iter().map(|t| &t.widths[first..first + n]), n, widths);
    described.enter(first, widths, cut)?;
    let bytes_per_bit = 4 * kernel.unit();
    let total: usize = widths.iter().map(|w| usize::from(*w)).sum::<usize>() * bytes_per_bit;
    if out.len() < total + PAD {
        out.resize(total + PAD, 0);
    }
    let pieces: Vec<&[u8]> = tiles.iter().map(|t| &*t.pieces[piece]).collect();
    if bytes_per_bit == 4 {
        copy_tiles::<32>(&pieces, widths, bytes_per_bit, out);
    } else {
        copy_tiles::<PAD>(&pieces, widths, bytes_per_bit, out);
    }
    out.truncate(total);
    Ok(())
}

/// Copies tile after tile of pixel after pixel; `MOST` bytes each time, of which the width says how many count.
fn copy_tiles<const MOST: usize>(pieces: &[&[u8]], widths: &[u8], bytes_per_bit: usize, out: &mut [u8]) {
    let mut cursors = vec![0_usize; pieces.len()];
    let mut to = 0;
    for (p, of_pixel) in widths.chunks_exact(pieces.len()).enumerate() {
        if p % AHEAD == 0 {
            // More streams than a processor follows by itself.
            for (cursor, piece) in cursors.iter().zip(pieces) {
                strip::prefetch(piece, *cursor + 2 * LINE);
                strip::prefetch(piece, *cursor + 3 * LINE);
            }
        }
        for ((w, cursor), piece) in of_pixel.iter().zip(&mut cursors).zip(pieces) {
            out[to..to + MOST].copy_from_slice(&piece[*cursor..*cursor + MOST]);
            let n = usize::from(*w) * bytes_per_bit;
            *cursor += n;
            to += n;
        }
    }
}

/// Widths of some pixels, from tile-major to pixel-major; eight tiles of eight pixels at a time.
pub(crate) fn pixel_major<'t>(
    tiles: impl ExactSizeIterator<Item = &'t [u8]>,
    pixels: usize,
    out: &mut Vec<u8>,
) {
    let tiles: Vec<&[u8]> = tiles.collect();
    let count = tiles.len();
    out.clear();
    out.resize(pixels * count, 0);
    for (first, eight) in (0..).step_by(8).zip(tiles.chunks(8)) {
        let whole = if eight.len() == 8 { pixels / 8 * 8 } else { 0 };
        for p in (0..whole).step_by(8) {
            let mut square = [0; 8];
            for (row, tile) in square.iter_mut().zip(eight) {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&tile[p..p + 8]);
                *row = u64::from_le_bytes(bytes);
            }
            for (k, column) in strip::transpose(square).into_iter().enumerate() {
                let at: usize = (p + k) * count + first;
                out[at..at + 8].copy_from_slice(&column.to_le_bytes());
            }
        }
        for p in whole..pixels {
            for (k, tile) in eight.iter().enumerate() {
                out[p * count + first + k] = tile[p];
            }
        }
    }
}
