//! Copies from earlier in the destination, the heart of every LZ77 decoder.
//!
//! Short distances become one shuffled pattern that is stored again and again; all copies are whole vectors and may
//! run past their end, so they are only made where there is room. A decoder is compiled twice, around either kind
//! of [`Copy`]; both check every bound.
#![expect(unsafe_code, reason = "wild copies; measured 2 times the safe twin in LZF and BloscLZ")]

use super::Level;
use tensilo_core::Result;

/// Copies `length` bytes to `at` from `distance` bytes before.
pub(crate) trait Copy {
    /// `None` when either side lies outside `dst`. Bytes behind the copy may be overwritten.
    fn back(&self, dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()>;
}

/// A decoder that is written once for both kinds of copies; mark `decode` as always inlined.
pub(crate) trait Decode {
    fn decode(self, src: &[u8], dst: &mut [u8], copy: impl Copy) -> Result<usize>;
}

/// Runs a decoder with the fastest copies there are.
pub(crate) fn with_copy(level: Level, decoder: impl Decode, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected, or is below a detected one.
        Level::Avx2 | Level::Avx512 => unsafe { x86::run(decoder, src, dst) },
        _ => decoder.decode(src, dst, Plain),
    }
}

/// Copies in safe code.
pub(crate) struct Plain;

impl Copy for Plain {
    #[inline]
    fn back(&self, dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
        crate::lz77::copy_back(dst, at, distance, length)
    }
}

#[cfg(target_arch = "x86_64")]
pub(in crate::simd) mod x86 {
    use super::{Copy, Decode};
    use std::arch::x86_64::*;
    use tensilo_core::Result;

    /// `PATTERN[o][i]` is `i % o`: repeats the first `o` bytes of a vector.
    static PATTERN: [[u8; 16]; 17] = {
        let mut t = [[0; 16]; 17];
        let mut o = 1;
        while o < 17 {
            let mut i = 0;
            while i < 16 {
                t[o][i] = (i % o) as u8;
                i += 1;
            }
            o += 1;
        }
        t
    };

    /// The largest multiple of an offset that fits a vector of 32 bytes made of two equal halves of 16, or of
    /// 16 where the halves would not join.
    static STRIDE: [u8; 17] = {
        let mut t = [0; 17];
        let mut o = 1;
        while o < 17 {
            t[o] = if 16 % o == 0 { 32 } else { (16 - 16 % o) as u8 };
            o += 1;
        }
        t
    };

    /// Runs a decoder with vector copies.
    ///
    /// # Safety
    /// AVX2 and BMI2 must be present.
    #[target_feature(enable = "avx2,bmi2")]
    pub(super) unsafe fn run(decoder: impl Decode, src: &[u8], dst: &mut [u8]) -> Result<usize> {
        decoder.decode(src, dst, Vectors(()))
    }

    /// Copies in vectors; made only where AVX2 is present.
    pub(super) struct Vectors(());

    impl Copy for Vectors {
        #[inline(always)]
        fn back(&self, dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
            let room = dst.len().checked_sub(at)?;
            if distance == 0 || distance > at || length > room {
                return None;
            }
            if room - length < 32 {
                return crate::lz77::copy_back(dst, at, distance, length);
            }
            // SAFETY: whoever made this promised AVX2; `distance` bytes lie before `at`, and `length + 32` bytes
            // behind it are inside `dst`.
            unsafe { repeat(dst.as_mut_ptr().add(at), distance, length) };
            Some(())
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) unsafe fn copy16(from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for 16 bytes on both sides.
        unsafe { _mm_storeu_si128(to.cast(), _mm_loadu_si128(from.cast())) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) unsafe fn copy32(from: *const u8, to: *mut u8) {
        // SAFETY: the caller vouches for 32 bytes on both sides.
        unsafe { _mm256_storeu_si256(to.cast(), _mm256_loadu_si256(from.cast())) }
    }

    /// Writes `length` bytes at `to`, each equal to the one `offset` before it.
    ///
    /// # Safety
    /// `offset` bytes before `to` must be initialised, `length + 32` bytes from `to` writable.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) unsafe fn repeat(to: *mut u8, offset: usize, length: usize) {
        // SAFETY: all stores start before to + length; loads start offset before a store, and what they
        // read past it is never kept: the copy forms need offset >= their width, or >= what is kept.
        unsafe {
            let from = to.sub(offset).cast_const();
            if length <= 32 && offset >= length {
                // Nearly all copies: what is kept of one vector does not overlap its source.
                copy32(from, to);
            } else if offset >= 32 {
                copy32(from, to);
                let mut done = 32;
                while done < length {
                    copy32(from.add(done), to.add(done));
                    done += 32;
                }
            } else if offset > 16 {
                copy16(from, to);
                let mut done = 16;
                while done < length {
                    copy16(from.add(done), to.add(done));
                    done += 16;
                }
            } else {
                let order = _mm_loadu_si128(PATTERN[offset].as_ptr().cast());
                let half = _mm_shuffle_epi8(_mm_loadu_si128(from.cast()), order);
                let whole = _mm256_broadcastsi128_si256(half);
                let stride = usize::from(STRIDE[offset]);
                _mm256_storeu_si256(to.cast(), whole);
                let mut done = stride;
                while done < length {
                    _mm256_storeu_si256(to.add(done).cast(), whole);
                    done += stride;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::levels;

    /// Copies once per pair of source bytes: distance and length.
    struct Script;

    impl Decode for Script {
        #[inline(always)]
        fn decode(self, src: &[u8], dst: &mut [u8], copy: impl Copy) -> Result<usize> {
            let mut at = 40;
            for pair in src.chunks_exact(2) {
                let length = usize::from(pair[1]);
                if copy.back(dst, at, usize::from(pair[0]), length).is_some() {
                    at += length;
                }
            }
            Ok(at)
        }
    }

    #[test]
    fn every_level_copies_alike() {
        let mut x = 5_u64;
        let mut next = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as usize
        };
        for _ in 0..300 {
            let script: Vec<u8> =
                (0..2 * (next() % 40)).map(|i| (next() >> (i % 2 * 3)) as u8 & 63).collect();
            let start: Vec<u8> = (0..40 + next() % 1500).map(|_| next() as u8).collect();
            let mut results = vec![];
            for level in levels() {
                let mut dst = start.clone();
                let n = with_copy(level, Script, &script, &mut dst).unwrap();
                results.push(dst[..n].to_vec());
            }
            assert!(results.windows(2).all(|w| w[0] == w[1]));
        }
    }
}
