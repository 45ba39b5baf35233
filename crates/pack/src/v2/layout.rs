//! How a stack of counts is cut: shards of scans, tiles of scans in them, and rectangles of the detector.
//!
//! A scan of any rank is walked row by row, and so is a detector: its last axis is a *column*, all others together are
//! a *row* (a detector of one axis has one row). A *tile* is some consecutive scans, and a *block* is one rectangle of
//! the detector in one tile: what is coded together. Whatever does not divide evenly leaves smaller blocks at the ends.

use super::codec;
use super::counts::CountType;
use std::ops::Range;
use tensilo_core::{Error, Result};

/// Most pixels of a detector.
pub const MOST_PIXELS: u64 = 1 << 31;
/// Most axes of scan or detector.
pub const MOST_AXES: usize = 16;

/// Extents of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockSize {
    /// Detector rows.
    pub rows: u32,
    /// Detector columns.
    pub columns: u32,
    /// Scans.
    pub scans: u32,
}

/// A rectangle of the detector, in rows and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rect {
    /// Detector rows.
    pub rows: Range<u64>,
    /// Detector columns.
    pub columns: Range<u64>,
}

impl Rect {
    /// Pixels in it.
    pub fn pixels(&self) -> usize {
        self.height() * self.width()
    }

    /// Rows in it.
    pub fn height(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }

    /// Columns in it.
    pub fn width(&self) -> usize {
        (self.columns.end - self.columns.start) as usize
    }
}

/// Shape, element type and cut of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    scan_shape: Vec<u64>,
    detector_shape: Vec<u64>,
    counts: CountType,
    block: BlockSize,
    shard_scans: u64,
    scans: u64,
    rows: u64,
    columns: u64,
}

impl Layout {
    /// Checks shape and cut.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis of 0, more than 16 axes, more than 2^31 pixels, more than 2^62 bytes of counts, a
    /// block that the codec does not take, or shards that are no whole number of blocks.
    pub fn new(
        scan_shape: &[u64],
        detector_shape: &[u64],
        counts: CountType,
        block: BlockSize,
        shard_scans: u64,
    ) -> Result<Self> {
        let fail = |what: String| Err(Error::invalid(what));
        for shape in [scan_shape, detector_shape] {
            if shape.is_empty() || shape.len() > MOST_AXES || shape.contains(&0) {
                return fail(format!("shape {scan_shape:?} of {detector_shape:?} pixels holds no counts"));
            }
        }
        let product = |shape: &[u64]| shape.iter().try_fold(1_u64, |n, d| n.checked_mul(*d));
        let columns = detector_shape.last().copied().unwrap_or(1);
        let (scans, rows) = (product(scan_shape), product(&detector_shape[..detector_shape.len() - 1]));
        let pixels = rows.and_then(|r| r.checked_mul(columns)).filter(|p| *p <= MOST_PIXELS);
        let Some((rows, pixels)) = rows.zip(pixels) else {
            return fail(format!("a detector of {detector_shape:?} has more than 2^31 pixels"));
        };
        let bytes = scans.and_then(|s| s.checked_mul(pixels)?.checked_mul(4)).filter(|b| *b <= 1 << 62);
        let Some((scans, _)) = scans.zip(bytes) else {
            return fail(format!(
                "{scan_shape:?} scans of {detector_shape:?} pixels are more than 2^62 bytes"
            ));
        };
        let block_pixels = u64::from(block.rows) * u64::from(block.columns);
        let block_counts = block_pixels.saturating_mul(block.scans.into());
        let most = [codec::MOST_PIXELS as u64, codec::MOST_COUNTS as u64];
        if block_counts == 0 || block_pixels > most[0] || block_counts > most[1] {
            return fail(format!(
                "blocks of {} x {} pixels x {} scans",
                block.rows, block.columns, block.scans
            ));
        }
        if shard_scans == 0 || shard_scans > 1 << 40 || !shard_scans.is_multiple_of(block.scans.into()) {
            return fail(format!("shards of {shard_scans} scans in blocks of {}", block.scans));
        }
        let (scan_shape, detector_shape) = (scan_shape.to_vec(), detector_shape.to_vec());
        Ok(Self { scan_shape, detector_shape, counts, block, shard_scans, scans, rows, columns })
    }

    /// Shape of the scan.
    pub fn scan_shape(&self) -> &[u64] {
        &self.scan_shape
    }

    /// Shape of the detector.
    pub fn detector_shape(&self) -> &[u64] {
        &self.detector_shape
    }

    /// Shape of the whole: scan axes, then detector axes.
    pub fn shape(&self) -> Vec<u64> {
        [&self.scan_shape[..], &self.detector_shape].concat()
    }

    /// Element type of the source.
    pub fn counts(&self) -> CountType {
        self.counts
    }

    /// Extents of a block.
    pub fn block(&self) -> BlockSize {
        self.block
    }

    /// Scans of a shard; the last may have fewer.
    pub fn shard_scans(&self) -> u64 {
        self.shard_scans
    }

    /// Number of scans.
    pub fn scans(&self) -> u64 {
        self.scans
    }

    /// Number of pixels.
    pub fn pixels(&self) -> u64 {
        self.rows * self.columns
    }

    /// Detector rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Detector columns.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// Bytes of all counts, unpacked.
    pub fn logical_bytes(&self) -> u64 {
        self.scans * self.pixels() * self.counts.bytes() as u64
    }

    /// Bytes of one frame, unpacked.
    pub fn frame_bytes(&self) -> u64 {
        self.pixels() * self.counts.bytes() as u64
    }

    /// Number of shards.
    pub fn shards(&self) -> u64 {
        self.scans.div_ceil(self.shard_scans)
    }

    /// Scans of one shard.
    pub fn shard(&self, ordinal: u64) -> Range<u64> {
        let first = ordinal * self.shard_scans;
        first..(first + self.shard_scans).min(self.scans)
    }

    /// Tiles in a shard.
    pub fn tiles_of(&self, ordinal: u64) -> u64 {
        let scans = self.shard(ordinal);
        (scans.end - scans.start).div_ceil(self.block.scans.into())
    }

    /// Tiles of all shards.
    pub fn tiles(&self) -> u64 {
        self.scans.div_ceil(self.block.scans.into())
    }

    /// Scans of a tile, counted through all shards.
    pub fn tile(&self, tile: u64) -> Range<u64> {
        let first = tile * u64::from(self.block.scans);
        first..(first + u64::from(self.block.scans)).min(self.scans)
    }

    /// Shard of a tile, and the tile's number in it.
    pub fn place_of(&self, tile: u64) -> (u64, u64) {
        let per_shard = self.shard_scans / u64::from(self.block.scans);
        (tile / per_shard, tile % per_shard)
    }

    /// Rectangles along the columns.
    pub fn across(&self) -> u64 {
        self.columns.div_ceil(self.block.columns.into())
    }

    /// Rectangles of the detector.
    pub fn rects(&self) -> u64 {
        self.rows.div_ceil(self.block.rows.into()) * self.across()
    }

    /// The rectangle of this number; they are counted row by row.
    pub fn rect(&self, number: u64) -> Rect {
        let (down, along) = (number / self.across(), number % self.across());
        let row = down * u64::from(self.block.rows);
        let column = along * u64::from(self.block.columns);
        Rect {
            rows: row..(row + u64::from(self.block.rows)).min(self.rows),
            columns: column..(column + u64::from(self.block.columns)).min(self.columns),
        }
    }

    /// Most values of a block.
    pub fn block_values(&self) -> u64 {
        let rows = u64::from(self.block.rows).min(self.rows);
        let columns = u64::from(self.block.columns).min(self.columns);
        rows * columns * u64::from(self.block.scans).min(self.scans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(scan: &[u64], detector: &[u64]) -> Layout {
        let counts = CountType::new(2, false).unwrap();
        Layout::new(scan, detector, counts, BlockSize { rows: 8, columns: 32, scans: 16 }, 64).unwrap()
    }

    #[test]
    fn rectangles_cover_every_pixel_once_and_tiles_every_scan() {
        for detector in [&[5_u64][..], &[9, 33], &[3, 4, 70], &[1, 1]] {
            let l = layout(&[7, 19], detector);
            let mut seen = vec![0; l.pixels() as usize];
            for n in 0..l.rects() {
                let r = l.rect(n);
                assert!(r.pixels() > 0);
                for row in r.rows {
                    for column in r.columns.clone() {
                        seen[(row * l.columns() + column) as usize] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|n| *n == 1));
            let tiles: Vec<_> = (0..l.tiles()).flat_map(|t| l.tile(t)).collect();
            assert!(tiles.into_iter().eq(0..133));
            assert_eq!(l.shards(), 3);
            assert_eq!((0..3).map(|k| l.tiles_of(k)).sum::<u64>(), l.tiles());
            assert_eq!(l.place_of(8), (2, 0));
        }
    }

    #[test]
    fn impossible_cuts_are_refused() {
        let counts = CountType::new(1, false).unwrap();
        let block = BlockSize { rows: 8, columns: 32, scans: 16 };
        for (scan, detector, block, shard) in [
            (&[0_u64][..], &[4_u64][..], block, 16),
            (&[], &[4], block, 16),
            (&[4], &[1 << 16, (1 << 15) + 1], block, 16),
            (&[1 << 40], &[1 << 30], block, 16),
            (&[4], &[4], BlockSize { rows: 0, ..block }, 16),
            (&[4], &[4], BlockSize { rows: 4096, ..block }, 16),
            (&[4], &[4], block, 17),
            (&[4], &[4], block, 0),
        ] {
            assert!(Layout::new(scan, detector, counts, block, shard).is_err(), "{scan:?} {detector:?}");
        }
    }
}
