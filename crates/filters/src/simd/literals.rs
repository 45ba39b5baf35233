//! Looks the codes of literals up and joins them, four in a word, for an encoder of deflate.
#![expect(unsafe_code, reason = "tables in vectors; measured 1.2 times the whole encoder with the safe twin")]

/// Literals that are joined at once.
pub(crate) const MANY: usize = 64;
/// Longest code of a literal, in bits.
pub(crate) const LONGEST: u32 = 11;

/// Codes of the 256 literals.
pub(crate) struct Literals {
    /// The bits as they stand in a stream, 11 of them, and above them how many are meant.
    codes: [u16; 256],
    /// The lower and the upper half of each of those.
    halves: [[u8; 256]; 2],
}

impl Literals {
    /// From bits, and how many they are; of more than 11 bits nothing is left.
    pub(crate) fn new(code: impl Fn(usize) -> (u32, u32)) -> Self {
        let codes: [u16; 256] = std::array::from_fn(|literal| {
            let (bits, n) = code(literal);
            if n <= LONGEST { (bits & 0x7ff) as u16 | (n as u16) << LONGEST } else { 0 }
        });
        Self { codes, halves: [codes.map(|c| c as u8), codes.map(|c| (c >> 8) as u8)] }
    }
}

/// Four codes in a word, from the lowest bit on, and how many bits they are: at most 44.
pub(crate) type Joined = ([u64; MANY / 4], [u64; MANY / 4]);

/// A way of joining.
pub(crate) trait Join {
    /// The codes of literals, joined in fours.
    fn join(&self, literals: &[u8; MANY], of: &Literals) -> Joined;
}

impl Join for super::hashes::Plain {
    #[inline(always)]
    fn join(&self, literals: &[u8; MANY], of: &Literals) -> Joined {
        let codes = literals.map(|literal| u32::from(of.codes[usize::from(literal)]));
        let (mut words, mut lengths) = ([0; MANY / 4], [0; MANY / 4]);
        let (mut twos, mut lengths_of_twos) = ([0_u32; MANY / 2], [0_u32; MANY / 2]);
        for (i, [a, b]) in codes.as_chunks::<2>().0.iter().enumerate() {
            twos[i] = a & 0x7ff | (b & 0x7ff) << (a >> LONGEST & 31);
            lengths_of_twos[i] = (a >> LONGEST) + (b >> LONGEST);
        }
        for i in 0..MANY / 4 {
            let length = lengths_of_twos[2 * i];
            words[i] = u64::from(twos[2 * i]) | u64::from(twos[2 * i + 1]) << (length & 31);
            lengths[i] = u64::from(length + lengths_of_twos[2 * i + 1]);
        }
        (words, lengths)
    }
}

#[cfg(target_arch = "x86_64")]
pub(in crate::simd) mod x86 {
    use super::{Join, Joined, Literals, MANY};
    use crate::simd::hashes::x86::Together;
    use std::arch::x86_64::*;

    impl Join for Together {
        #[inline(always)]
        fn join(&self, literals: &[u8; MANY], of: &Literals) -> Joined {
            // SAFETY: whoever made this promised the instructions.
            unsafe { join(literals, of) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn load(bytes: &[u8; 64]) -> __m512i {
        // SAFETY: the array has 64 bytes.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    /// What stands in a table of 256 bytes, for each byte; two masks hold their uppermost bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn look_up(table: &[u8; 256], at: __m512i, (upper, second): (u64, u64)) -> __m512i {
        let quarters: &[[u8; 64]; 4] = table.as_chunks().0.first_chunk().expect("a table has four quarters");
        let [a, b, c, d] = [load(&quarters[0]), load(&quarters[1]), load(&quarters[2]), load(&quarters[3])];
        let found = _mm512_permutexvar_epi8(at, a);
        let found = _mm512_mask_permutexvar_epi8(found, second & !upper, at, b);
        let found = _mm512_mask_permutexvar_epi8(found, upper & !second, at, c);
        _mm512_mask_permutexvar_epi8(found, upper & second, at, d)
    }

    /// Joins codes of 11 bits with 4 bits of length above, in fours.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn fours(codes: __m512i) -> (__m512i, __m512i) {
        let bits = _mm512_set1_epi32(0x7ff);
        let length = _mm512_and_si512(_mm512_srli_epi32::<11>(codes), _mm512_set1_epi32(15));
        let second = _mm512_and_si512(_mm512_srli_epi32::<16>(codes), bits);
        let two = _mm512_or_si512(_mm512_and_si512(codes, bits), _mm512_sllv_epi32(second, length));
        let lengths = _mm512_add_epi32(length, _mm512_srli_epi32::<27>(codes));
        let lower = _mm512_set1_epi64(0xffff_ffff);
        let length = _mm512_and_si512(lengths, lower);
        let upper = _mm512_sllv_epi64(_mm512_srli_epi64::<32>(two), length);
        let four = _mm512_or_si512(_mm512_and_si512(two, lower), upper);
        (four, _mm512_add_epi64(length, _mm512_srli_epi64::<32>(lengths)))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn join(literals: &[u8; MANY], of: &Literals) -> Joined {
        let at = load(literals);
        let masks = (_mm512_movepi8_mask(at), _mm512_movepi8_mask(_mm512_slli_epi16::<1>(at)));
        let (low, high) = (look_up(&of.halves[0], at, masks), look_up(&of.halves[1], at, masks));
        // Eight codes of each lane: the first ones, and those behind them.
        let (words, lengths) = fours(_mm512_unpacklo_epi8(low, high));
        let (words_behind, lengths_behind) = fours(_mm512_unpackhi_epi8(low, high));
        let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        let second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        let mut joined = ([0; MANY / 4], [0; MANY / 4]);
        for (all, a, b) in [(&mut joined.0, words, words_behind), (&mut joined.1, lengths, lengths_behind)] {
            // SAFETY: the array has twice 64 bytes.
            unsafe {
                let to = all.as_mut_ptr();
                _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi64(a, first, b));
                _mm512_storeu_si512(to.add(8).cast(), _mm512_permutex2var_epi64(a, second, b));
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Rng;
    use crate::simd::hashes::{Lookup, Work, with_lookup};
    use crate::simd::levels;

    struct Case<'a>(&'a [u8; MANY], &'a Literals, &'a mut Joined);

    impl Work for Case<'_> {
        #[inline(always)]
        fn run(self, kernels: impl Lookup + Join) {
            *self.2 = kernels.join(self.0, self.1);
        }
    }

    #[test]
    fn every_level_joins_by_the_definition() {
        let mut rng = Rng(7);
        let mut random = |n: u32| rng.below(n as usize) as u32;
        for round in 0..200 {
            // All of the longest, or of any length.
            let codes: Vec<(u32, u32)> = (0..256)
                .map(|_| {
                    let n = if round % 4 == 0 { LONGEST } else { random(LONGEST + 1) };
                    (random(1 << n), n)
                })
                .collect();
            let literals: [u8; MANY] = std::array::from_fn(|_| random(256) as u8);
            let of = Literals::new(|literal| codes[literal]);
            let mut expected = ([0; MANY / 4], [0; MANY / 4]);
            for (i, literal) in literals.iter().enumerate() {
                let (bits, n) = codes[usize::from(*literal)];
                expected.0[i / 4] |= u64::from(bits) << expected.1[i / 4];
                expected.1[i / 4] += u64::from(n);
            }
            for level in levels() {
                let mut joined = ([1; MANY / 4], [1; MANY / 4]);
                with_lookup(level, Case(&literals, &of, &mut joined));
                assert_eq!(joined, expected, "{level:?}, round {round}");
            }
        }
    }
}
