//! Compact headers: where each tile of a shard begins and how wide it is (contract, 2.6 and 2.7).
//!
//! Per pixel, pixel-major: `C = ceil(T/32)` checkpoint words, then `Q = ceil(T/8)` width words.
//!
//! | word | value |
//! |---|---|
//! | 0 | payload word index of the pixel's first tile |
//! | k, 1 <= k < C | sum of the pixel's widths over tiles 0 .. 32k |
//! | C + q | nibble j = width of tile 8q + j; unused nibbles are zero |
//!
//! An LZ4 pack stores one width byte per (pixel, tile) instead. Both become a [`TileMap`].

use crate::geometry::Cut;
use crate::profile::Flavour;
use crate::strip;
use tensilo_core::{Error, Result};

/// Most payload words of a shard.
pub const MOST_WORDS: u64 = 1 << 27;

/// Where each tile of one shard lies in its payload words, proven to cover them exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileMap {
    tiles: usize,
    /// Words per bit of width: scans of a tile / 32.
    unit: u64,
    /// Pixel-major, tile-minor.
    widths: Vec<u8>,
    /// First payload word of each pixel.
    bases: Vec<u32>,
    /// Sums of each pixel's widths before every eighth tile.
    sums: Vec<u32>,
    words: u64,
}

/// Bytes that the map of a shard holds.
pub(crate) fn map_bytes(pixels: u64, tiles: u64) -> u64 {
    pixels.saturating_mul(tiles + 4 * tiles.div_ceil(EIGHT as u64) + 4)
}

/// Tiles between two sums.
const EIGHT: usize = 8;

fn sums(widths: &[u8], tiles: usize) -> Vec<u32> {
    let mut sums = Vec::with_capacity(widths.len() / tiles.max(1) * tiles.div_ceil(EIGHT));
    for of_pixel in widths.chunks_exact(tiles.max(1)) {
        let mut sum = 0;
        for eight in of_pixel.chunks(EIGHT) {
            sums.push(sum);
            sum += eight.iter().map(|w| u32::from(*w)).sum::<u32>();
        }
    }
    sums
}

impl TileMap {
    /// Checks compact-header words of a bit-packed shard: every base and checkpoint recomputed, tail nibbles
    /// zero, widths within the flavour's, excluded pixels empty, the payload covered exactly (an all-zero shard
    /// has one word).
    ///
    /// # Errors
    /// `Corrupt`, naming the pixel.
    pub fn from_compact(
        words: &[u32],
        pixels: u64,
        cut: &Cut,
        flavour: Flavour,
        excluded: &[u32],
        payload_words: u64,
    ) -> Result<Self> {
        let (checkpoints, per_pixel) = (cut.checkpoint_words() as usize, cut.header_words() as usize);
        let tiles = cut.tiles() as usize;
        if words.len() as u64 != pixels * per_pixel as u64 {
            return Err(Error::corrupt(format!(
                "compact header of {} words, {pixels} pixels of {per_pixel} are expected",
                words.len()
            )));
        }
        let mut widths = Vec::with_capacity(words.len() / per_pixel * tiles);
        let mut bases = Vec::with_capacity(words.len() / per_pixel);
        let mut covered = 0_u64;
        let mut excluded = excluded.iter().peekable();
        for (pixel, header) in words.chunks_exact(per_pixel).enumerate() {
            let wrong = |what: String| Error::corrupt(format!("compact header of pixel {pixel}: {what}"));
            if u64::from(header[0]) != covered {
                return Err(wrong(format!("base {} where {covered} is expected", header[0])));
            }
            bases.push(header[0]);
            let is_excluded = excluded.next_if(|e| **e as usize == pixel).is_some();
            let mut sum = 0_u64;
            for (q, word) in header[checkpoints..].iter().enumerate() {
                for j in 0..8 {
                    let (tile, nibble) = (8 * q + j, word >> (4 * j) & 15);
                    if tile >= tiles {
                        if nibble != 0 {
                            return Err(wrong(format!("unused nibble {j} of width word {q} is {nibble}")));
                        }
                        continue;
                    }
                    if tile > 0 && tile.is_multiple_of(32) && u64::from(header[tile / 32]) != sum {
                        return Err(wrong(format!(
                            "checkpoint {} is {} where {sum} is expected",
                            tile / 32,
                            header[tile / 32]
                        )));
                    }
                    let width = if nibble == 15 { 16 } else { nibble };
                    if width > flavour.most_bits() {
                        return Err(wrong(format!("tile {tile} has {nibble} bits")));
                    }
                    if is_excluded && width != 0 {
                        return Err(wrong(format!("an excluded pixel has {width} bits in tile {tile}")));
                    }
                    widths.push(width as u8);
                    sum += u64::from(width);
                }
            }
            covered += sum;
        }
        check_cover(covered, payload_words, covered.max(1))?;
        let sums = sums(&widths, tiles);
        Ok(Self { tiles, unit: 1, widths, bases, sums, words: covered })
    }

    /// Checks the width bytes of an LZ4 shard against its decoded payload.
    ///
    /// # Errors
    /// `Corrupt`, naming the pixel.
    pub fn from_width_bytes(widths: Vec<u8>, pixels: u64, cut: &Cut, payload_words: u64) -> Result<Self> {
        let tiles = cut.tiles() as usize;
        if widths.len() as u64 != pixels * tiles as u64 || tiles == 0 {
            return Err(Error::corrupt(format!(
                "{} width bytes, {pixels} pixels of {tiles} are expected",
                widths.len()
            )));
        }
        let unit = u64::from(cut.tile / 32);
        let mut bases = Vec::with_capacity(widths.len() / tiles);
        let mut covered = 0_u64;
        for (pixel, of_pixel) in widths.chunks_exact(tiles).enumerate() {
            bases.push(u32::try_from(covered).map_err(|_| Error::corrupt("payload of 2^32 words or more"))?);
            for (tile, w) in of_pixel.iter().enumerate() {
                if *w > 16 {
                    return Err(Error::corrupt(format!("width {w} of pixel {pixel}, tile {tile}")));
                }
                covered += u64::from(*w) * unit;
            }
        }
        check_cover(covered, payload_words, covered.max(1))?;
        let sums = sums(&widths, tiles);
        Ok(Self { tiles, unit, widths, bases, sums, words: covered })
    }

    /// Tiles of the shard.
    pub fn tiles(&self) -> usize {
        self.tiles
    }

    /// Widths of one pixel's tiles.
    pub fn widths(&self, pixel: usize) -> &[u8] {
        &self.widths[pixel * self.tiles..(pixel + 1) * self.tiles]
    }

    /// First payload word of a pixel.
    pub fn base(&self, pixel: usize) -> u64 {
        u64::from(self.bases[pixel])
    }

    /// First payload word and width of a tile.
    pub fn tile(&self, pixel: usize, tile: usize) -> (u64, u32) {
        let widths = self.widths(pixel);
        let sum = self.sums[pixel * self.tiles.div_ceil(EIGHT) + tile / EIGHT];
        let rest = &widths[tile / EIGHT * EIGHT..tile];
        let before = u64::from(sum) + rest.iter().map(|w| u64::from(*w)).sum::<u64>();
        (self.base(pixel) + before * self.unit, u32::from(widths[tile]))
    }

    /// Words of a tile of this width.
    pub fn words_of(&self, width: u32) -> u64 {
        u64::from(width) * self.unit
    }

    /// Payload words that the tiles cover; 0 for an all-zero shard.
    pub fn covered_words(&self) -> u64 {
        self.words
    }

    /// The largest width.
    pub fn widest(&self) -> u32 {
        self.widths.iter().copied().max().unwrap_or(0).into()
    }

    /// Widest tile of one pixel.
    pub fn widest_of(&self, pixel: usize) -> u32 {
        self.widths(pixel).iter().copied().max().unwrap_or(0).into()
    }
}

fn check_cover(covered: u64, payload: u64, expected: u64) -> Result<()> {
    if payload != expected {
        return Err(Error::corrupt(format!("the tiles cover {covered} words, the payload has {payload}")));
    }
    if payload > MOST_WORDS {
        return Err(Error::corrupt(format!("a payload of {payload} words is more than 2^27")));
    }
    Ok(())
}

/// Writes the compact header of one pixel after another.
#[derive(Debug, Clone)]
pub struct HeaderBuilder {
    checkpoints: usize,
    next: u64,
}

impl HeaderBuilder {
    /// Begins a shard.
    pub fn new(cut: &Cut) -> Self {
        Self { checkpoints: cut.checkpoint_words() as usize, next: 0 }
    }

    /// Fills the next pixel's header words from its widths; returns the words its tiles take.
    ///
    /// # Errors
    /// `Limit` when payload offsets no longer fit 32 bits.
    pub fn pixel(&mut self, widths: &[u8], header: &mut [u32]) -> Result<u64> {
        header.fill(0);
        header[0] = u32::try_from(self.next)
            .map_err(|_| Error::limit("the payload of a shard has 2^32 words or more"))?;
        let (checkpoints, words) = header.split_at_mut(self.checkpoints);
        let mut sum = 0_u32;
        for ((tile, eight), word) in (0..).step_by(8).zip(widths.chunks(8)).zip(words) {
            if tile > 0_usize && tile.is_multiple_of(32) {
                checkpoints[tile / 32] = sum;
            }
            let mut of_word = [0; 8];
            of_word[..eight.len()].copy_from_slice(eight);
            // 16 bits are nibble 15.
            *word = strip::nibbles(of_word.map(|w| w.min(15)));
            sum += of_word.iter().map(|w| u32::from(*w)).sum::<u32>();
        }
        self.next += u64::from(sum);
        Ok(u64::from(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(tiles: u32) -> Cut {
        Cut { scans_per_shard: 32 * tiles, shards: 1, tile: 32 }
    }

    fn encode(widths: &[u8], tiles: u32) -> Vec<u32> {
        let cut = cut(tiles);
        let per_pixel = cut.header_words() as usize;
        let mut words = vec![0; widths.len() / tiles as usize * per_pixel];
        let mut builder = HeaderBuilder::new(&cut);
        for (w, h) in widths.chunks(tiles as usize).zip(words.chunks_mut(per_pixel)) {
            builder.pixel(w, h).unwrap();
        }
        words
    }

    proptest! {
        #[test]
        fn headers_survive_the_round_trip(tiles in 1_u32..140, pixels in 1_usize..5, seed: u64, uint16: bool) {
            let flavour = if uint16 { Flavour::BitPacked16 } else { Flavour::BitPacked8 };
            let mut x = seed;
            let widths: Vec<u8> = (0..pixels * tiles as usize).map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
                let w = (x >> 50) as u32 % (flavour.most_bits() + 1);
                crate::format::tile::stored_width(w, flavour.most_bits()) as u8
            }).collect();
            let words = encode(&widths, tiles);
            let total: u64 = widths.iter().map(|w| u64::from(*w)).sum();
            let map = TileMap::from_compact(&words, pixels as u64, &cut(tiles), flavour, &[], total.max(1)).unwrap();
            prop_assert_eq!(map.covered_words(), total);
            let mut at = 0;
            for p in 0..pixels {
                for t in 0..tiles as usize {
                    let w = widths[p * tiles as usize + t];
                    prop_assert_eq!(map.tile(p, t), (at, u32::from(w)));
                    at += u64::from(w);
                }
            }
        }

        #[test]
        fn no_changed_bit_goes_unnoticed(tiles in 1_u32..70, seed: u64, bit: u32) {
            let mut x = seed;
            let widths: Vec<u8> = (0..3 * tiles as usize).map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
                ((x >> 50) % 9) as u8
            }).collect();
            let mut words = encode(&widths, tiles);
            let total: u64 = widths.iter().map(|w| u64::from(*w)).sum();
            let bit = bit as usize % (words.len() * 32);
            words[bit / 32] ^= 1 << (bit % 32);
            prop_assert!(
                TileMap::from_compact(&words, 3, &cut(tiles), Flavour::BitPacked8, &[], total.max(1)).is_err()
            );
        }
    }

    #[test]
    fn an_all_zero_shard_has_one_word() {
        let words = encode(&[0; 6], 2);
        let map = |payload| TileMap::from_compact(&words, 3, &cut(2), Flavour::BitPacked8, &[], payload);
        assert_eq!(map(1).unwrap().covered_words(), 0);
        assert!(map(0).is_err() && map(2).is_err());
    }

    #[test]
    fn an_excluded_pixel_is_empty() {
        let words = encode(&[0, 0, 1, 0], 2);
        assert!(TileMap::from_compact(&words, 2, &cut(2), Flavour::BitPacked8, &[1], 1).is_err());
        assert!(TileMap::from_compact(&words, 2, &cut(2), Flavour::BitPacked8, &[0], 1).is_ok());
    }
}
