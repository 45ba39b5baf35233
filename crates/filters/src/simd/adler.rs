//! Adler-32, the checksum at the end of zlib streams: 32 bytes at a time.
#![expect(unsafe_code, reason = "intrinsics that load vectors; measured 10 times the scalar loop")]

use super::Level;

const MODULUS: u32 = 65521;

/// Bytes after which the sums are reduced: 32-bit sums do not overflow before, and a whole number of vectors.
const PART: usize = 5536;

/// The checksum of no bytes.
pub(crate) const EMPTY: u32 = 1;

/// The checksum of some bytes behind those that have the checksum `before`.
#[inline]
pub(crate) fn adler32(level: Level, before: u32, data: &[u8]) -> u32 {
    let (mut s1, mut s2) = (before & 0xffff, before >> 16);
    for part in data.chunks(PART) {
        (s1, s2) = match level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected, or is below a detected one.
            Level::Avx2 | Level::Avx512 => unsafe { x86::sums(s1, s2, part) },
            _ => sums(s1, s2, part),
        };
    }
    (s2 << 16) | s1
}

/// The safe twin: both sums after at most [`PART`] more bytes.
fn sums(mut s1: u32, mut s2: u32, part: &[u8]) -> (u32, u32) {
    for byte in part {
        s1 += u32::from(*byte);
        s2 += s1;
    }
    (s1 % MODULUS, s2 % MODULUS)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// How often each byte of a vector counts in the second sum.
    static WEIGHTS: [i8; 32] = {
        let mut weights = [0; 32];
        let mut i = 0;
        while i < 32 {
            weights[i] = 32 - i as i8;
            i += 1;
        }
        weights
    };

    /// # Safety
    /// AVX2 must be present.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn sums(s1: u32, s2: u32, part: &[u8]) -> (u32, u32) {
        let (vectors, rest) = part.as_chunks::<32>();
        let zero = _mm256_setzero_si256();
        // SAFETY: WEIGHTS has 32 bytes.
        let weights = unsafe { _mm256_loadu_si256(WEIGHTS.as_ptr().cast()) };
        // Sums of bytes, of those sums before each vector, and of weighted bytes; at most 173 vectors keep them
        // below 2^31.
        let (mut bytes, mut before, mut weighted) = (zero, zero, zero);
        for vector in vectors {
            // SAFETY: the array has 32 bytes.
            let v = unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) };
            before = _mm256_add_epi32(before, bytes);
            bytes = _mm256_add_epi32(bytes, _mm256_sad_epu8(v, zero));
            let pairs = _mm256_maddubs_epi16(v, weights);
            weighted = _mm256_add_epi32(weighted, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        }
        let second =
            s2 + s1 * (32 * vectors.len() as u32) % super::MODULUS + (32 * total(before)) + total(weighted);
        super::sums((s1 + total(bytes)) % super::MODULUS, second % super::MODULUS, rest)
    }

    /// The sum of all eight numbers.
    #[target_feature(enable = "avx2")]
    fn total(v: __m256i) -> u32 {
        let v = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
        let v = _mm_add_epi32(v, _mm_shuffle_epi32::<0b01_00_11_10>(v));
        let v = _mm_add_epi32(v, _mm_shuffle_epi32::<0b00_00_00_01>(v));
        _mm_cvtsi128_si32(v) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::levels;

    #[test]
    fn every_level_equals_the_definition() {
        let mut state = 4_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        for n in [0, 1, 31, 32, 33, 5000, 5535, 5536, 5537, 140_000] {
            for data in [vec![255; n], (0..n).map(|_| next()).collect::<Vec<u8>>()] {
                let (mut a, mut b) = (1_u32, 0_u32);
                for byte in &data {
                    a = (a + u32::from(*byte)) % 65521;
                    b = (b + a) % 65521;
                }
                for level in levels() {
                    assert_eq!(adler32(level, EMPTY, &data), (b << 16) | a, "{n} bytes, {level:?}");
                    let (head, tail) = data.split_at(n / 3);
                    let parts = adler32(level, adler32(level, EMPTY, head), tail);
                    assert_eq!(parts, (b << 16) | a, "{n} bytes in two parts, {level:?}");
                }
            }
        }
    }
}
