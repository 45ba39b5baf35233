//! A shuffle without memory: a keyed permutation of 0..N, for any N up to 2^64, whose every place can be asked alone.
//!
//! The smallest power of two that holds N is split into two halves of bits, and a Feistel network exchanges them;
//! a result outside of 0..N is put in again until it falls inside (cycle walking, fewer than two turns on average).
//! A Fisher-Yates shuffle, which was rejected, needs N words and is not to be resumed without them.
//!
//! Half-words of few bits mix slowly, so small N get more rounds. `tests/fixtures/permutation.py` says the same in
//! Python, and wrote the golden vectors.

/// The odd number that SplitMix64 counts by.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Rounds for N from 2^16 on.
const ROUNDS: usize = 8;
/// Rounds below.
const SMALL_ROUNDS: usize = 24;

/// SplitMix64's finaliser: every bit of the result depends on every bit of `x`.
#[inline]
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a permutation depends on besides N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// A key for a seed and three numbers that tell permutations of one seed apart: purpose, epoch, index.
    pub fn new(seed: u64, purpose: u64, epoch: u64, index: u64) -> Self {
        let start = mix(seed.wrapping_add(GOLDEN));
        Self([purpose, epoch, index].iter().fold(start, |h, word| mix((h ^ word).wrapping_add(GOLDEN))))
    }

    fn round(self, i: usize) -> u64 {
        mix(self.0.wrapping_add(GOLDEN.wrapping_mul(i as u64 + 1)))
    }
}

/// A permutation of `0..=last`.
///
/// ```
/// use tensilo_loader::{Key, Permutation};
/// let shuffled = Permutation::new(9, Key::new(42, 0, 0, 0));
/// let mut all: Vec<u64> = (0..10).map(|i| shuffled.at(i)).collect();
/// assert_eq!(shuffled.place_of(all[3]), 3);
/// all.sort_unstable();
/// assert_eq!(all, (0..10).collect::<Vec<_>>());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    last: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    rounds: usize,
    keys: [u64; SMALL_ROUNDS],
}

impl Permutation {
    /// The permutation of `0..=last` under a key; N is `last` + 1.
    pub fn new(last: u64, key: Key) -> Self {
        let bits = u64::BITS - last.leading_zeros();
        let low_bits = bits / 2;
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let rounds = if bits > 16 { ROUNDS } else { SMALL_ROUNDS };
        let mut keys = [0; SMALL_ROUNDS];
        for (i, k) in keys.iter_mut().enumerate().take(rounds) {
            *k = key.round(i);
        }
        Self { last, low_bits, low_mask: mask(low_bits), high_mask: mask(bits - low_bits), rounds, keys }
    }

    /// What is at a place; a place above `last` is a caller's mistake and gives itself.
    #[inline]
    pub fn at(&self, place: u64) -> u64 {
        if place > self.last {
            return place;
        }
        let mut x = place;
        loop {
            let (mut high, mut low) = (x >> self.low_bits, x & self.low_mask);
            for pair in self.keys[..self.rounds].chunks_exact(2) {
                high ^= mix(low ^ pair[0]) & self.high_mask;
                low ^= mix(high ^ pair[1]) & self.low_mask;
            }
            x = high << self.low_bits | low;
            if x <= self.last {
                return x;
            }
        }
    }

    /// Where a value is: the inverse of [`at`](Self::at).
    #[inline]
    pub fn place_of(&self, value: u64) -> u64 {
        if value > self.last {
            return value;
        }
        let mut x = value;
        loop {
            let (mut high, mut low) = (x >> self.low_bits, x & self.low_mask);
            for pair in self.keys[..self.rounds].rchunks_exact(2) {
                low ^= mix(high ^ pair[1]) & self.low_mask;
                high ^= mix(low ^ pair[0]) & self.high_mask;
            }
            x = high << self.low_bits | low;
            if x <= self.last {
                return x;
            }
        }
    }
}
