//! Which planes of bytes are noise: bytes of all values equally often that repeat nothing. An encoder would look for
//! repetitions in vain and then store them.
//!
//! Both questions are put to samples. Values are counted in a part of each segment. For repetitions all places are looked
//! at where one certain byte stands, so that both copies of a repetition are seen wherever they lie: the share of such
//! places whose next bytes came before is about the share of bytes that could be copied.

use crate::simd::{self, places};

/// Shorter planes say too little, of longer ones too much would have to be remembered.
const LENGTHS: std::ops::RangeInclusive<usize> = (8 << 10)..=(1 << 20);
/// Values are counted in each segment of this many bytes,
const SEGMENT: usize = 32 << 10;
/// in so many lines of 64 bytes.
const LINES: usize = 16;
const SAMPLES: usize = 64 * LINES;
/// What the squares of 256 equally likely values' counts add up to, on average.
const EVEN: usize = SAMPLES * SAMPLES / 256 + SAMPLES;
/// So much more stands for 0.08 bits a byte less than 8, and is five times what chance makes of noise.
const UNEVEN: usize = SAMPLES * SAMPLES / 2300;
/// The byte that is looked for.
const SOUGHT: u8 = 0xa7;
/// Places of which the next bytes are remembered, as a power of two.
const REMEMBERED: u32 = 12;
/// One place in so many may repeat an earlier one.
const REPEATED: usize = 100;

/// What the search for repetitions remembers.
#[derive(Default)]
pub(crate) struct Noise {
    places: Vec<u32>,
    seen: Vec<u32>,
}

impl Noise {
    /// Bytes that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        4 * (self.places.capacity() + self.seen.capacity())
    }

    /// How many planes are noise in front of the first that is not, and behind the last.
    pub(crate) fn around(&mut self, src: &[u8], plane: usize) -> (usize, usize) {
        let front = src.chunks(plane).take_while(|p| self.is_noise(p)).count();
        let rest = src.get(front * plane..).unwrap_or(&[]);
        if rest.len() < plane {
            return (front, 0);
        }
        // What is left over behind whole elements belongs to the last plane.
        let whole = rest.len() / plane * plane;
        let back = rest[..whole].rchunks(plane).take_while(|p| self.is_noise(p)).count();
        (front, if whole == rest.len() { back } else { 0 })
    }

    fn is_noise(&mut self, plane: &[u8]) -> bool {
        LENGTHS.contains(&plane.len()) && plane.chunks(SEGMENT).all(is_even) && self.repeats_nothing(plane)
    }

    fn repeats_nothing(&mut self, plane: &[u8]) -> bool {
        self.places.clear();
        places::find(simd::level(), plane, SOUGHT, &mut self.places);
        self.seen.clear();
        self.seen.resize(1 << REMEMBERED, 0);
        let mut repeated = 0;
        for &at in &self.places {
            let Some(next) = plane.get(at as usize + 1..).and_then(|p| p.first_chunk::<4>()) else { break };
            // With the one sought five bytes: what the encoder would copy at the least.
            let hash = u64::from(u32::from_le_bytes(*next)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let slot = &mut self.seen[(hash >> (64 - REMEMBERED)) as usize];
            // Zero stands for nothing.
            let tag = (hash >> 16) as u32 | 1;
            repeated += usize::from(*slot == tag);
            *slot = tag;
        }
        repeated * REPEATED <= self.places.len()
    }
}

/// Are all values about equally frequent?
fn is_even(segment: &[u8]) -> bool {
    let stride = segment.len() / LINES;
    if stride < 64 {
        // A short end of a plane: its other segments speak for it.
        return true;
    }
    let mut counts = [0_u16; 256];
    for line in segment.chunks_exact(stride).take(LINES) {
        for byte in &line[..64] {
            counts[usize::from(*byte)] += 1;
        }
    }
    let squares: usize = counts.iter().map(|c| usize::from(*c) * usize::from(*c)).sum();
    squares <= EVEN + UNEVEN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64, one byte at a time.
    fn random(n: usize, mut state: u64) -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) as u8
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn random_bytes_are_noise() {
        let mut noise = Noise::default();
        for seed in 0..200 {
            for n in [8 << 10, 10_000, 32 << 10, 33_000, 128 << 10] {
                assert!(noise.is_noise(&random(n, seed)), "seed {seed}, {n} bytes");
            }
        }
    }

    #[test]
    fn bytes_that_an_encoder_makes_shorter_are_not_noise() {
        let n = 128 << 10;
        let mut noise = Noise::default();
        let bytes = random(n, 7);
        let row = 3000;
        let kinds: [(&str, Vec<u8>); 7] = [
            ("a short plane", bytes[..4096].to_vec()),
            ("a row in fifty comes twice", {
                let mut b = bytes.clone();
                b.copy_within(row..2 * row, 31 * row);
                b
            }),
            ("the same twice", [&bytes[..n / 2], &bytes[..n / 2]].concat()),
            ("each value eight times", bytes.iter().take(n / 8).flat_map(|b| [*b; 8]).collect()),
            ("zeros at the end", [&bytes[..n - SEGMENT], &[0; SEGMENT][..]].concat()),
            ("one value in eight is 0", bytes.iter().map(|b| if b % 8 == 1 { 0 } else { *b }).collect()),
            ("slow change", (0..n).map(|i| (i / 300) as u8).collect()),
        ];
        for (what, plane) in kinds {
            assert!(!noise.is_noise(&plane), "{what}");
        }
    }

    #[test]
    fn planes_of_noise_are_counted_from_both_ends() {
        let plane = 16 << 10;
        let (a, b, flat) = (random(plane, 1), random(plane, 2), vec![5; plane]);
        let mut noise = Noise::default();
        let mut count = |parts: &[&[u8]]| noise.around(&parts.concat(), plane);
        assert_eq!(count(&[&a, &b, &flat]), (2, 0));
        assert_eq!(count(&[&flat, &a, &b]), (0, 2));
        assert_eq!(count(&[&a, &flat, &b]), (1, 1));
        assert_eq!(count(&[&flat, &a, &flat]), (0, 0));
        assert_eq!(count(&[&a, &b]), (2, 0));
        assert_eq!(count(&[&flat, &a, &[1, 2, 3]]), (0, 0));
        assert_eq!(count(&[&a, &flat, &[1, 2, 3]]), (1, 0));
        assert_eq!(count(&[]), (0, 0));
    }
}
