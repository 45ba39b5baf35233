//! Symbols: eight, four or two neighbouring small counts as one byte.
//!
//! The 255 likeliest tuples of small Poisson counts have a symbol each; [`ESCAPE`] stands for all others. A pair of
//! counts below 16 is its two nibbles. Tuples of four counts below 16 are ranked by 2^s × Πv!, those of eight counts
//! below 4 by 8^s × Πv! (s the sum), which is how Poisson counts of mean 1/2 and 1/8 rank them; ties go to the smaller
//! key.

use super::level::Bits;
use std::sync::OnceLock;

/// The symbol of a tuple that has none of its own; its counts are listed elsewhere.
pub(super) const ESCAPE: u8 = 255;

/// How many counts a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tuple {
    Eight,
    Four,
    Two,
}

impl Tuple {
    /// Counts of one symbol.
    #[inline(always)]
    pub fn counts(self) -> usize {
        match self {
            Self::Eight => 8,
            Self::Four => 4,
            Self::Two => 2,
        }
    }

    /// Symbols of a group of eight counts.
    #[inline(always)]
    pub fn symbols(self) -> usize {
        8 / self.counts()
    }

    /// Bits of each count in the key.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        match self {
            Self::Eight => 2,
            Self::Four | Self::Two => 4,
        }
    }

    pub fn alphabet(self) -> &'static Alphabet {
        static ALPHABETS: OnceLock<[Alphabet; 3]> = OnceLock::new();
        let all = ALPHABETS.get_or_init(|| [Self::Eight, Self::Four, Self::Two].map(Alphabet::new));
        &all[self as usize]
    }
}

/// The tuples of one size.
#[derive(Debug)]
pub(super) struct Alphabet {
    /// The counts of each symbol as bytes, the first lowest. Those of [`ESCAPE`] are zeros, or both 15 in a pair.
    pub tuples: [u64; 256],
    /// The first four counts of each symbol in 16 bits each.
    pub wide: [[u16; 4]; 256],
    /// All eight counts of each symbol in 16 bits each, where it stands for eight.
    pub eights: [[u16; 8]; 256],
    /// The symbol of each key: the counts at [`Tuple::bits`] bits each. Three bytes more, so that four can be read from each.
    symbols: Vec<u8>,
}

impl Alphabet {
    fn new(tuple: Tuple) -> Self {
        let (k, bits) = (tuple.counts(), tuple.bits());
        let counts = |key: u32| (0..k as u32).map(move |i| key >> (bits * i) & ((1 << bits) - 1));
        let bytes = |key: u32| counts(key).enumerate().map(|(i, v)| u64::from(v) << (8 * i)).sum::<u64>();
        let keys = 1_u32 << (bits * k as u32);
        let symbols = vec![ESCAPE; keys as usize + 3];
        let mut alphabet = Self { tuples: [0; 256], wide: [[0; 4]; 256], eights: [[0; 8]; 256], symbols };
        if tuple == Tuple::Two {
            for key in 0..256 {
                alphabet.tuples[key as usize] = bytes(key);
                alphabet.symbols[key as usize] = key as u8;
            }
            return alphabet;
        }
        let base: u64 = if tuple == Tuple::Eight { 8 } else { 2 };
        // No tuple with a larger sum is among the first 255, nor are the products too large for 64 bits.
        let likely = (0..keys).filter(|key| counts(*key).sum::<u32>() <= 8);
        let rank = |key: u32| counts(key).fold(1_u64, |c, v| (1..=v).fold(c, |c, i| c * base * u64::from(i)));
        let mut ranked: Vec<(u64, u32)> = likely.map(|key| (rank(key), key)).collect();
        ranked.sort_unstable();
        for (symbol, (_, key)) in ranked.into_iter().take(usize::from(ESCAPE)).enumerate() {
            alphabet.tuples[symbol] = bytes(key);
            alphabet.wide[symbol] = std::array::from_fn(|i| (bytes(key) >> (8 * i)) as u16 & 255);
            alphabet.eights[symbol] = bytes(key).to_le_bytes().map(u16::from);
            alphabet.symbols[key as usize] = symbol as u8;
        }
        alphabet
    }

    /// The symbol of each key of 16 bits, and three bytes more; the alphabet is not that of pairs.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn padded(&self) -> &[u8; (1 << 16) + 3] {
        self.symbols.first_chunk().expect("as many keys")
    }

    /// The symbol of four counts at four bits each; the alphabet is that of fours.
    #[inline(always)]
    pub fn symbol_of_four(&self, key: u16) -> u8 {
        self.symbols[usize::from(key)]
    }

    /// The symbols of eight counts as bytes, the first lowest in the result; all counts are below 16, or below 4 where
    /// a symbol stands for eight.
    #[inline(always)]
    pub fn symbols<B: Bits>(&self, tuple: Tuple, bytes: u64) -> u32 {
        let key = B::squeeze(bytes, tuple.bits()) as u32;
        let of = |key: u32| u32::from(self.symbols[key as usize & 0xffff]);
        match tuple {
            Tuple::Eight => of(key),
            Tuple::Four => of(key) | of(key >> 16) << 8,
            Tuple::Two => key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::codec::level::Plain;

    #[test]
    fn symbols_and_tuples_are_inverse_and_ranked() {
        for tuple in [Tuple::Eight, Tuple::Four, Tuple::Two] {
            let alphabet = tuple.alphabet();
            let sums: Vec<u32> =
                alphabet.tuples.iter().map(|t| t.to_le_bytes().iter().map(|v| u32::from(*v)).sum()).collect();
            for symbol in 0..ESCAPE {
                let mut bytes = 0;
                for i in 0..tuple.symbols() {
                    bytes |= alphabet.tuples[usize::from(symbol)] << (64 / tuple.symbols() * i);
                }
                let expected = (0..tuple.symbols()).fold(0, |n, i| n | u32::from(symbol) << (8 * i));
                assert_eq!(alphabet.symbols::<Plain>(tuple, bytes), expected, "{tuple:?} {symbol}");
            }
            assert_eq!(sums[0], 0);
        }
        // Sums up to 3 of eight counts: C(11, 3) tuples; up to 6 of four: C(10, 4).
        let sum = |t: &u64| t.to_le_bytes().iter().map(|v| u32::from(*v)).sum::<u32>();
        assert_eq!(Tuple::Eight.alphabet().tuples[..255].iter().filter(|t| sum(t) <= 3).count(), 165);
        assert_eq!(Tuple::Four.alphabet().tuples[..255].iter().filter(|t| sum(t) <= 5).count(), 126);
    }
}
