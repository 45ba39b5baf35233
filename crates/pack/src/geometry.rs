//! The shape of an acquisition, and how a profile cuts it into shards and tiles.

use crate::profile::Profile;
use std::fmt;
use tensilo_core::{Error, Result};

/// Shape of an acquisition: scan rows, scan columns, detector rows, detector columns; all at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Geometry {
    shape: [u32; 4],
}

impl Geometry {
    /// Checks a shape.
    ///
    /// # Errors
    /// `InvalidArgument` when a side is 0 or does not fit 32 bits, or the detector or the scan has 2^32 or more
    /// elements.
    pub fn new(shape: [u64; 4]) -> Result<Self> {
        let bad = || Error::invalid(format!("shape {shape:?} is not a 4D acquisition of 32-bit sides"));
        let mut sides = [0; 4];
        for (to, side) in sides.iter_mut().zip(shape) {
            *to = u32::try_from(side).ok().filter(|s| *s > 0).ok_or_else(bad)?;
        }
        for pair in [&sides[..2], &sides[2..]] {
            pair[0].checked_mul(pair[1]).ok_or_else(bad)?;
        }
        Ok(Self { shape: sides })
    }

    /// Scan rows, scan columns, detector rows, detector columns.
    pub fn shape(&self) -> [u32; 4] {
        self.shape
    }

    /// Number of scans N.
    pub fn scans(&self) -> u64 {
        u64::from(self.shape[0]) * u64::from(self.shape[1])
    }

    /// Number of detector pixels P.
    pub fn pixels(&self) -> u64 {
        u64::from(self.shape[2]) * u64::from(self.shape[3])
    }

    /// Detector rows.
    pub fn detector_rows(&self) -> u32 {
        self.shape[2]
    }

    /// Detector columns.
    pub fn detector_columns(&self) -> u32 {
        self.shape[3]
    }

    /// Bytes of the raw uint16 values, 2NP.
    pub fn logical_bytes(&self) -> u128 {
        2 * u128::from(self.scans()) * u128::from(self.pixels())
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.shape;
        write!(f, "{a} x {b} x {c} x {d}")
    }
}

/// How an acquisition is cut: K shards of S scans, each of T tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Scans of one shard, S; a multiple of the tile.
    pub scans_per_shard: u32,
    /// Number of shards, K.
    pub shards: u32,
    /// Scans of one tile.
    pub tile: u32,
}

impl Cut {
    /// The contract's rule: the largest divisor of N that is a multiple of the tile and at most 4096.
    ///
    /// # Errors
    /// `InvalidArgument` when N is not a multiple of the tile.
    pub fn of(geometry: &Geometry, profile: Profile) -> Result<Self> {
        let (n, tile) = (geometry.scans(), profile.tile());
        let scans = (1..=4096 / tile)
            .rev()
            .map(|tiles| tiles * tile)
            .find(|s| n.is_multiple_of(u64::from(*s)))
            .ok_or_else(|| {
                let [rows, cols, ..] = geometry.shape();
                Error::invalid(format!(
                    "{n} scans ({rows} x {cols}) is not a multiple of {tile}, the scan tile of {profile}"
                ))
            })?;
        Self::with_scans_per_shard(geometry, profile, scans)
    }

    pub(crate) fn with_scans_per_shard(geometry: &Geometry, profile: Profile, scans: u32) -> Result<Self> {
        let shards = u32::try_from(geometry.scans() / u64::from(scans.max(1)))
            .map_err(|_| Error::invalid("more than 2^32 shards"))?;
        Ok(Self { scans_per_shard: scans, shards, tile: profile.tile() })
    }

    /// Tiles of one shard, T.
    pub fn tiles(&self) -> u32 {
        self.scans_per_shard / self.tile
    }

    /// Checkpoint words of one pixel, ceil(T/32); 0 where the profile has none.
    pub fn checkpoint_words(&self) -> u32 {
        self.tiles().div_ceil(32)
    }

    /// Width words of one pixel, ceil(T/8).
    pub fn width_words(&self) -> u32 {
        self.tiles().div_ceil(8)
    }

    /// Compact-header words of one pixel.
    pub fn header_words(&self) -> u32 {
        self.checkpoint_words() + self.width_words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(rows: u64, cols: u64) -> Result<Cut> {
        Cut::of(&Geometry::new([rows, cols, 192, 192])?, Profile::ExactUint8BitPacked)
    }

    #[test]
    fn shards_follow_the_contract() {
        // The contract's examples, section 5.2.
        for (side, scans, shards) in [
            (512, 4096, 64),
            (1024, 4096, 256),
            (200, 4000, 10),
            (600, 4000, 90),
            (1000, 4000, 250),
            (2048, 4096, 1024),
        ] {
            let c = cut(side, side).unwrap();
            assert_eq!((c.scans_per_shard, c.shards), (scans, shards), "{side}");
        }
        for side in [100, 300, 500, 1500] {
            let e = cut(side, side).unwrap_err();
            assert!(e.message().contains("is not a multiple of 32"), "{e}");
        }
        let prime = cut(32, 131).unwrap();
        assert_eq!((prime.scans_per_shard, prime.shards), (32, 131));
    }

    #[test]
    fn header_words_follow_the_contract() {
        let c = Cut { scans_per_shard: 4096, shards: 1, tile: 32 };
        assert_eq!((c.checkpoint_words(), c.width_words(), c.header_words()), (4, 16, 20));
        let c = Cut { scans_per_shard: 32, shards: 1, tile: 32 };
        assert_eq!(c.header_words(), 2);
        let c = Cut { scans_per_shard: 2112, shards: 2, tile: 32 };
        assert_eq!((c.checkpoint_words(), c.width_words()), (3, 9));
    }

    #[test]
    fn senseless_shapes_are_refused() {
        for shape in [[0, 1, 1, 1], [1, 1, 1, 1 << 32], [1 << 16, 1 << 16, 1, 1]] {
            assert!(Geometry::new(shape).is_err());
        }
    }
}
