//! Looks several places of a source up in a hash table at once, for an encoder that found nothing for a while.
//!
//! The encoder is compiled once for each set of instructions, around one kind of [`Lookup`] and [`Join`]; all do the
//! same.
#![expect(
    unsafe_code,
    reason = "gathers and scatters; measured 1.2 times the whole encoder with the safe twin"
)]

use super::Level;
use super::literals::Join;

/// Places that are looked at together.
pub(crate) const SEVERAL: usize = 16;

/// How words of eight bytes are hashed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hashing {
    /// Takes away the bytes of a word that are not hashed.
    pub(crate) word_shift: u32,
    /// Takes away the bits of a product that are no hash.
    pub(crate) hash_shift: u32,
}

impl Hashing {
    #[inline(always)]
    pub(crate) fn of<const N: usize>(self, word: u64) -> usize {
        let product = (word << (self.word_shift & 63)).wrapping_mul(FACTOR);
        (product >> (self.hash_shift & 63)) as usize & (N - 1)
    }
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Several places of a source, in equal steps.
pub(crate) struct Places<'a> {
    src: &'a [u8],
    at: usize,
    stride: usize,
    farthest: usize,
}

impl<'a> Places<'a> {
    /// `None` where they are not all inside the source, with eight bytes each, and where that has 2 GiB or more.
    #[inline(always)]
    pub(crate) fn new(src: &'a [u8], at: usize, stride: usize, farthest: usize) -> Option<Self> {
        let last = at.checked_add((SEVERAL - 1).checked_mul(stride)?)?;
        let inside = src.len().checked_sub(8).is_some_and(|most| last <= most);
        (inside && last < i32::MAX as usize).then_some(Self { src, at, stride, farthest })
    }
}

/// A way of looking places up.
pub(crate) trait Lookup {
    /// The first of the places whose four bytes also stand where the table says that their hash was last met: its number
    /// and how far back that is, at most the farthest that was allowed. The table has places counted on from `base`, and
    /// afterwards these.
    fn several<const N: usize>(
        &self,
        places: &Places<'_>,
        heads: &mut [u32; N],
        hashing: Hashing,
        base: u32,
    ) -> Option<(usize, usize)>;
}

/// What is compiled once for each set of instructions; mark `run` as always inlined.
pub(crate) trait Work {
    fn run(self, kernels: impl Lookup + Join);
}

/// Runs with the widest instructions there are.
pub(crate) fn with_lookup(level: Level, work: impl Work) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected, or is below a detected one.
        Level::Avx512 => unsafe { x86::run_avx512(work) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the same.
        Level::Avx2 => unsafe { x86::run_avx2(work) },
        _ => work.run(Plain),
    }
}

/// One place after the other, in safe code.
pub(crate) struct Plain;

impl Lookup for Plain {
    #[inline(always)]
    fn several<const N: usize>(
        &self,
        places: &Places<'_>,
        heads: &mut [u32; N],
        hashing: Hashing,
        base: u32,
    ) -> Option<(usize, usize)> {
        let Places { src, at, stride, farthest } = *places;
        let eight =
            |at: usize| src.get(at..).and_then(|s| s.first_chunk().copied()).map_or(0, u64::from_le_bytes);
        let four =
            |at: usize| src.get(at..).and_then(|s| s.first_chunk().copied()).map_or(0, u32::from_le_bytes);
        let at_of = |nth: usize| at + nth * stride;
        let words: [u64; SEVERAL] = std::array::from_fn(|nth| eight(at_of(nth)));
        let hashes = words.map(|word| hashing.of::<N>(word));
        let olds = hashes.map(|hash| heads[hash]);
        for (nth, hash) in hashes.into_iter().enumerate() {
            heads[hash] = base.wrapping_add(at_of(nth) as u32);
        }
        let (words, olds) = (words.into_iter(), olds.into_iter());
        words.zip(olds).enumerate().find_map(|(nth, (word, old))| {
            let back = base.wrapping_add(at_of(nth) as u32).wrapping_sub(old) as usize;
            let near = back > 0 && back <= farthest.min(at_of(nth));
            (near && four(at_of(nth) - back) == word as u32).then_some((nth, back))
        })
    }
}

#[cfg(target_arch = "x86_64")]
pub(in crate::simd) mod x86 {
    use super::{FACTOR, Hashing, Lookup, Places, Plain, SEVERAL, Work};
    use std::arch::x86_64::*;

    /// # Safety
    /// AVX2 and BMI2 must be present.
    #[target_feature(enable = "avx2,bmi2")]
    pub(super) unsafe fn run_avx2(work: impl Work) {
        work.run(Plain);
    }

    /// # Safety
    /// AVX2, BMI2 and AVX-512 F, BW, DQ, VL and VBMI must be present.
    #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    pub(super) unsafe fn run_avx512(work: impl Work) {
        work.run(Together(()));
    }

    /// All places at once; made only where AVX-512 F, BW, DQ, VL and VBMI are present.
    pub(in crate::simd) struct Together(());

    impl Lookup for Together {
        #[inline(always)]
        fn several<const N: usize>(
            &self,
            places: &Places<'_>,
            heads: &mut [u32; N],
            hashing: Hashing,
            base: u32,
        ) -> Option<(usize, usize)> {
            // SAFETY: whoever made this promised the instructions.
            let (found, backs) = unsafe { several(places, heads, hashing, base) };
            // Next to never, where this is worth its while.
            if found == 0 {
                return None;
            }
            let nth = found.trailing_zeros() as usize;
            backs.get(nth).map(|back| (nth, *back as usize))
        }
    }

    /// Half of the places.
    #[derive(Clone, Copy)]
    struct Half {
        at: __m256i,
        /// The words there, and their hashes.
        words: __m512i,
        hashes: __m256i,
        /// As the table counts.
        places: __m256i,
        /// How far back those of the table are.
        backs: __m256i,
    }

    /// Which of the places have a copy, one bit each, and how far back all are from those of the table.
    #[inline]
    #[target_feature(enable = "avx2,avx512f,avx512dq,avx512vl")]
    fn several<const N: usize>(
        places: &Places<'_>,
        heads: &mut [u32; N],
        hashing: Hashing,
        base: u32,
    ) -> (u32, [u32; SEVERAL]) {
        const { assert!(N.is_power_of_two() && N <= 1 << 30 && SEVERAL == 16) };
        // No closures here: they might become calls.
        let second = places.at as i32 + 8 * places.stride as i32;
        let halves = [
            half(places, places.at as i32, heads, hashing, base),
            half(places, second, heads, hashing, base),
        ];
        let mut backs = [0; SEVERAL];
        let mut found = 0;
        for (i, half) in halves.into_iter().enumerate() {
            // SAFETY: hashes are below N. Of equal ones the last is left in the table, as by the twin.
            unsafe { _mm256_i32scatter_epi32::<4>(heads.as_mut_ptr().cast(), half.hashes, half.places) };
            let farthest = _mm256_set1_epi32(places.farthest.min(1 << 30) as i32);
            let farthest = _mm256_min_epu32(half.at, farthest);
            let near = _mm256_cmple_epu32_mask(half.backs, farthest)
                & _mm256_test_epi32_mask(half.backs, half.backs);
            // SAFETY: those that are near are read no farther back than the source begins, and before their place,
            // where eight bytes are inside; others are not read.
            let there = unsafe {
                let from = places.src.as_ptr().cast();
                let at = _mm256_sub_epi32(half.at, half.backs);
                _mm256_mmask_i32gather_epi32::<1>(_mm256_setzero_si256(), near, at, from)
            };
            let equal = _mm256_mask_cmpeq_epi32_mask(near, there, _mm512_cvtepi64_epi32(half.words));
            found |= u32::from(equal) << (8 * i);
            // SAFETY: the array has twice 32 bytes.
            unsafe { _mm256_storeu_si256(backs.as_mut_ptr().add(8 * i).cast(), half.backs) };
        }
        (found, backs)
    }

    /// Looks half of the places up, of which the first is `at`; these are not yet remembered.
    #[inline]
    #[target_feature(enable = "avx2,avx512f,avx512dq,avx512vl")]
    fn half<const N: usize>(
        places: &Places<'_>,
        at: i32,
        heads: &[u32; N],
        hashing: Hashing,
        base: u32,
    ) -> Half {
        let steps = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let steps = _mm256_mullo_epi32(steps, _mm256_set1_epi32(places.stride as i32));
        let at = _mm256_add_epi32(_mm256_set1_epi32(at), steps);
        // SAFETY: eight bytes from each place are inside the source, and places fit an i32: `Places::new`.
        let words = unsafe { _mm512_i32gather_epi64::<1>(at, places.src.as_ptr().cast()) };
        let hashed = _mm512_sllv_epi64(words, _mm512_set1_epi64(i64::from(hashing.word_shift & 63)));
        let product = _mm512_mullo_epi64(hashed, _mm512_set1_epi64(FACTOR as i64));
        let shifted = _mm512_srlv_epi64(product, _mm512_set1_epi64(i64::from(hashing.hash_shift & 63)));
        let hashes = _mm256_and_si256(_mm512_cvtepi64_epi32(shifted), _mm256_set1_epi32(N as i32 - 1));
        let places = _mm256_add_epi32(at, _mm256_set1_epi32(base as i32));
        // SAFETY: hashes are below N.
        let olds = unsafe { _mm256_i32gather_epi32::<4>(heads.as_ptr().cast(), hashes) };
        Half { at, words, hashes, places, backs: _mm256_sub_epi32(places, olds) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Rng;
    use crate::simd::levels;

    /// Looks places up at one level and says what was found.
    struct Case<'a> {
        src: &'a [u8],
        steps: &'a [(usize, usize)],
        heads: &'a mut [u32; 256],
        base: u32,
        found: &'a mut Vec<Option<(usize, usize)>>,
    }

    impl Work for Case<'_> {
        #[inline(always)]
        fn run(self, lookup: impl Lookup + Join) {
            for (at, stride) in self.steps {
                let Some(places) = Places::new(self.src, *at, *stride, 500) else { continue };
                let hashing = Hashing { word_shift: 8 * (*at as u32 % 5), hash_shift: 56 };
                self.found.push(lookup.several(&places, self.heads, hashing, self.base));
            }
        }
    }

    #[test]
    fn every_level_finds_the_same_places_and_remembers_them_alike() {
        let mut rng = Rng(5);
        let mut random = |n| rng.below(n);
        let mut hits = 0;
        for round in 0..60 {
            let n = 24 + random(3000);
            let values = 1 + random(if round % 2 == 0 { 3 } else { 200 });
            let src: Vec<u8> = (0..n).map(|_| random(values) as u8).collect();
            // Also places that reach the end, and those that do not fit.
            let steps: Vec<_> = (0..300).map(|_| (random(n), random(30))).collect();
            let table: [u32; 256] = std::array::from_fn(|_| random(1 << 30) as u32);
            let base = [0, 501, u32::MAX - 1000][round % 3];
            let outcomes = levels().into_iter().map(|level| {
                let (mut heads, mut found) = (table, Vec::new());
                with_lookup(
                    level,
                    Case { src: &src, steps: &steps, heads: &mut heads, base, found: &mut found },
                );
                (heads, found)
            });
            let outcomes: Vec<_> = outcomes.collect();
            assert!(outcomes.windows(2).all(|w| w[0] == w[1]), "round {round}");
            for (nth, back) in outcomes[0].1.iter().flatten() {
                assert!(*nth < SEVERAL && (1..=500).contains(back));
                hits += 1;
            }
        }
        assert!(hits > 1000, "{hits} hits say little");
    }

    #[test]
    fn places_beyond_the_source_are_none() {
        let src = [0; 100];
        assert!(Places::new(&src, 92 - 15, 1, 9).is_some());
        assert!(Places::new(&src, 92 - 14, 1, 9).is_none());
        assert!(Places::new(&src, 1, usize::MAX / 4, 9).is_none());
        assert!(Places::new(&src, usize::MAX, 0, 9).is_none());
        assert!(Places::new(&src[..7], 0, 0, 9).is_none());
    }
}
