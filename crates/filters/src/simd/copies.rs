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
    #[inline(always)]
    fn back(&self, dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
        match self.back_with_room(dst, at, distance, length) {
            None => crate::lz77::copy_back(dst, at, distance, length),
            done => done,
        }
    }

    /// The same where [`ROOM`] bytes are left behind the copy: `None` also where they are not and a copy needs them.
    /// Vectors are copied without a call, so that a loop keeps its registers.
    fn back_with_room(&self, dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()>;
}

/// How far copies may write past their end.
pub(crate) const ROOM: usize = 32;

/// A decoder that is written once for both kinds of copies, or other work that is compiled once for each set of
/// instructions; mark `decode` as always inlined.
pub(crate) trait Decode {
    fn decode(self, src: &[u8], dst: &mut [u8], copy: impl Copy) -> Result<usize>;
}

/// Runs a decoder with the fastest copies there are.
pub(crate) fn with_copy(level: Level, decoder: impl Decode, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected, or is below a detected one.
        Level::Avx512 => unsafe { x86::run_avx512(decoder, src, dst) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the same.
        Level::Avx2 => unsafe { x86::run(decoder, src, dst) },
        _ => decoder.decode(src, dst, Plain),
    }
}

/// Copies in safe code.
pub(crate) struct Plain;

impl Copy for Plain {
    #[inline]
    fn back_with_room(&self, dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
        crate::lz77::copy_back(dst, at, distance, length)
    }
}

#[cfg(target_arch = "x86_64")]
pub(in crate::simd) mod x86 {
    use super::{Copy, Decode, ROOM};
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

    /// The two halves of 32 bytes that repeat the first `o` bytes of a vector; beginnings of copies where `o` is 16.
    static HALVES: [[[u8; 16]; 2]; 17] = {
        let mut t = [[[0; 16]; 2]; 17];
        let mut o = 1;
        while o < 17 {
            let mut i = 0;
            while i < 32 {
                t[o][i / 16][i % 16] = (i % o) as u8;
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

    /// Runs a decoder with vector copies that can permute all bytes of a vector.
    ///
    /// # Safety
    /// AVX2, BMI2 and AVX-512 F, BW, VL and VBMI must be present.
    #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
    pub(super) unsafe fn run_avx512(decoder: impl Decode, src: &[u8], dst: &mut [u8]) -> Result<usize> {
        decoder.decode(src, dst, Permuted(()))
    }

    /// Whether a copy from inside to inside has [`ROOM`] behind it.
    #[inline(always)]
    fn roomy(dst: &[u8], at: usize, distance: usize, length: usize) -> bool {
        let Some(behind) = dst.len().checked_sub(at) else { return false };
        distance.wrapping_sub(1) < at && behind >= ROOM && length <= behind - ROOM
    }

    /// Copies in vectors; made only where AVX2 is present.
    pub(super) struct Vectors(());

    impl Copy for Vectors {
        #[inline(always)]
        fn back_with_room(&self, dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
            if !roomy(dst, at, distance, length) {
                return None;
            }
            // SAFETY: whoever made this promised AVX2; `distance` bytes lie before `at`, and `length + ROOM` bytes
            // behind it are inside `dst`.
            unsafe { repeat(dst.as_mut_ptr().add(at), distance, length) };
            Some(())
        }
    }

    /// Copies in vectors; made only where AVX2 and AVX-512 VL and VBMI are present.
    pub(super) struct Permuted(());

    impl Copy for Permuted {
        #[inline(always)]
        fn back_with_room(&self, dst: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
            if !roomy(dst, at, distance, length) {
                return None;
            }
            // SAFETY: whoever made this promised the instructions; `distance` bytes lie before `at`, and
            // `length + ROOM` bytes behind it are inside `dst`.
            unsafe {
                let to = dst.as_mut_ptr().add(at);
                if length <= 32 { repeat32(to, distance) } else { repeat(to, distance, length) }
            }
            Some(())
        }
    }

    /// `WIDE[o][i]` is `i % o`.
    static WIDE: [[u8; 32]; 33] = {
        let mut t = [[0; 32]; 33];
        let mut o = 1;
        while o < 33 {
            let mut i = 0;
            while i < 32 {
                t[o][i] = (i % o) as u8;
                i += 1;
            }
            o += 1;
        }
        t
    };

    /// Writes 32 bytes at `to`, each equal to the one `offset` before it, without a branch.
    ///
    /// # Safety
    /// `offset` bytes before `to`, at least one, must be initialised, 32 bytes from `to` writable.
    #[inline]
    #[target_feature(enable = "avx2,avx512vl,avx512vbmi")]
    pub(in crate::simd) unsafe fn repeat32(to: *mut u8, offset: usize) {
        // SAFETY: the loads end before to + 32, and of what they read only what lies before `to` is used.
        unsafe {
            let order = _mm256_loadu_si256(WIDE[offset.min(32)].as_ptr().cast());
            let from = _mm256_loadu_si256(to.sub(offset).cast_const().cast());
            _mm256_storeu_si256(to.cast(), _mm256_permutexvar_epi8(order, from));
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
            if length <= 32 {
                // Nearly all copies, without a branch: halves repeat what lies before them, or are two copies.
                let [first, second] = &HALVES[offset.min(16)];
                let a = _mm_loadu_si128(from.cast());
                let a = _mm_shuffle_epi8(a, _mm_loadu_si128(first.as_ptr().cast()));
                _mm_storeu_si128(to.cast(), a);
                let b = _mm_loadu_si128(from.add(16 * usize::from(offset >= 16)).cast());
                let b = _mm_shuffle_epi8(b, _mm_loadu_si128(second.as_ptr().cast()));
                _mm_storeu_si128(to.add(16).cast(), b);
            } else if offset == 1 {
                // One byte is there sooner than a vector that was stored in pieces.
                let whole = _mm256_set1_epi8(from.cast::<i8>().read());
                let mut done = 0;
                while done < length {
                    _mm256_storeu_si256(to.add(done).cast(), whole);
                    done += 32;
                }
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

    /// Copies once, to 80, by a distance and a length.
    struct One(usize, usize);

    impl Decode for One {
        #[inline(always)]
        fn decode(self, _src: &[u8], dst: &mut [u8], copy: impl Copy) -> Result<usize> {
            copy.back_with_room(dst, 80, self.0, self.1).expect("there is room");
            Ok(80 + self.1)
        }
    }

    #[test]
    fn each_distance_and_length_copies_byte_by_byte() {
        let start: Vec<u8> = (0..80 + 300 + ROOM).map(|i| (i * 37 % 251) as u8).collect();
        for (distance, length) in (1..=80).flat_map(|d| (0..=300).map(move |l| (d, l))) {
            let mut expected = start.clone();
            for at in 80..80 + length {
                expected[at] = expected[at - distance];
            }
            for level in levels() {
                let mut dst = start.clone();
                let end = with_copy(level, One(distance, length), &[], &mut dst).unwrap();
                assert!(dst[..end] == expected[..end], "{length} bytes from {distance} before, {level:?}");
            }
        }
    }
}
