//! Copies to memory that nobody reads soon: around the caches, where there are instructions for it.

#![expect(unsafe_code, reason = "stores around the caches, after asking for AVX2")]

use super::count::Count;
use super::level::Level;

/// Copies counts; `far` says that the destination is too large to stay in a cache. Call [`fence`] behind the last one.
#[inline]
pub(super) fn copy<T: Count>(from: &[T], to: &mut [T], far: bool, level: Level) {
    #[cfg(target_arch = "x86_64")]
    if far && level >= Level::Avx2 {
        let (from, to): (&[u8], &mut [u8]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        // SAFETY: the level was detected.
        match level {
            Level::Avx512 => unsafe { lines_around_caches(from, to) },
            _ => unsafe { around_caches(from, to) },
        }
        return;
    }
    let _ = (far, level);
    to.copy_from_slice(from);
}

/// Makes copies around the caches visible to other threads in the order of the program.
pub(super) fn fence(far: bool) {
    #[cfg(target_arch = "x86_64")]
    if far {
        // SAFETY: SSE belongs to x86-64.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
    let _ = far;
}

/// # Safety
/// AVX2 was detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn around_caches(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256};
    assert_eq!(from.len(), to.len());
    // Up to a whole line, then lines, then the rest.
    let lead = to.as_ptr().align_offset(64).min(to.len());
    let lines = (to.len() - lead) / 64 * 64;
    if lines < to.len() {
        to[..lead].copy_from_slice(&from[..lead]);
        to[lead + lines..].copy_from_slice(&from[lead + lines..]);
    }
    for (from, to) in
        from[lead..lead + lines].chunks_exact(32).zip(to[lead..lead + lines].chunks_exact_mut(32))
    {
        // SAFETY: both chunks have 32 bytes, and `to` is a multiple of 32 bytes from an aligned address.
        unsafe {
            let v = _mm256_loadu_si256(from.as_ptr().cast());
            _mm256_stream_si256(to.as_mut_ptr().cast(), v);
        }
    }
}

/// As [`around_caches`], a line at a time, and without calls for what is left at both ends.
///
/// # Safety
/// AVX-512 F, BW and VL were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2")]
fn lines_around_caches(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{
        _mm512_loadu_si512, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_stream_si512,
    };
    assert_eq!(from.len(), to.len());
    let lead = to.as_ptr().align_offset(64).min(to.len());
    let few = |from: &[u8], to: &mut [u8]| {
        let n = from.len().min(to.len()).min(64) as u32;
        let mask = u64::MAX.checked_shr(64 - n).unwrap_or(0);
        // SAFETY: only the first `n` bytes are read and written.
        unsafe {
            let v = _mm512_maskz_loadu_epi8(mask, from.as_ptr().cast());
            _mm512_mask_storeu_epi8(to.as_mut_ptr().cast(), mask, v);
        }
    };
    let (first, from) = from.split_at(lead);
    let (to_first, to) = to.split_at_mut(lead);
    few(first, to_first);
    let ((lines, rest), (to, to_rest)) = (from.as_chunks::<64>(), to.as_chunks_mut::<64>());
    for (from, to) in lines.iter().zip(to) {
        // SAFETY: both have 64 bytes, and `to` is aligned to as many: `lead` was skipped, or nothing is left.
        unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), _mm512_loadu_si512(from.as_ptr().cast())) };
    }
    few(rest, to_rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::codec::level::levels;

    #[test]
    fn copies_around_the_caches_are_copies() {
        let from: Vec<u16> = (0..700).map(|i| i * 91).collect();
        for level in levels() {
            for first in 0..40 {
                for n in [0, 1, 17, 31, 32, 33, 64, 100, 600] {
                    let mut to = vec![7_u16; 700];
                    copy(&from[5..5 + n], &mut to[first..first + n], true, level);
                    fence(true);
                    assert_eq!(to[first..first + n], from[5..5 + n]);
                    assert!(to[..first].iter().chain(&to[first + n..]).all(|v| *v == 7));
                }
            }
        }
    }
}
