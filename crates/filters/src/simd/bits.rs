//! Bit planes to bytes and back: the other half of bitshuffle.
//!
//! Eight planes hold the eight bits of `8 * bytes` bytes; plane `b` starts `b * stride` bytes into the plane
//! buffer, and bit `j` of its byte `i` is bit `b` of byte `8 * i + j`.
#![expect(unsafe_code, reason = "SIMD kernels; measured 8 to 30 times the safe twin")]

use super::Level;

/// Bytes from planes: fills `dst[..8 * bytes]`.
///
/// # Panics
/// When a slice is too short.
pub(crate) fn bytes_from_planes(level: Level, planes: &[u8], stride: usize, bytes: usize, dst: &mut [u8]) {
    assert!(fits(planes.len(), stride, bytes) && bytes.checked_mul(8).is_some_and(|n| n <= dst.len()));
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the level was detected, or is below a detected one; the assertion above bounds all accesses.
    unsafe {
        if level == Level::Avx512 {
            done = x86::bytes_from_planes_gfni(planes.as_ptr(), stride, bytes, dst.as_mut_ptr());
        }
        if level >= Level::Avx2 {
            done = x86::bytes_from_planes_avx2(planes.as_ptr(), stride, done, bytes, dst.as_mut_ptr());
        }
    }
    let _ = level;
    for i in done..bytes {
        let mut rows = [0; 8];
        for (b, row) in rows.iter_mut().enumerate() {
            *row = planes[b * stride + i];
        }
        dst[8 * i..8 * i + 8].copy_from_slice(&transpose(u64::from_le_bytes(rows)).to_le_bytes());
    }
}

/// Planes from bytes: reads `src[..8 * bytes]`.
///
/// # Panics
/// When a slice is too short.
pub(crate) fn planes_from_bytes(level: Level, src: &[u8], bytes: usize, planes: &mut [u8], stride: usize) {
    assert!(fits(planes.len(), stride, bytes) && bytes.checked_mul(8).is_some_and(|n| n <= src.len()));
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the level was detected, or is below a detected one; the assertion above bounds all accesses.
    unsafe {
        if level == Level::Avx512 {
            done = x86::planes_from_bytes_gfni(src.as_ptr(), bytes, planes.as_mut_ptr(), stride);
        }
        if level >= Level::Avx2 {
            done = x86::planes_from_bytes_avx2(src.as_ptr(), done, bytes, planes.as_mut_ptr(), stride);
        }
    }
    let _ = level;
    for i in done..bytes {
        let mut group = [0; 8];
        group.copy_from_slice(&src[8 * i..8 * i + 8]);
        for (b, row) in transpose(u64::from_le_bytes(group)).to_le_bytes().into_iter().enumerate() {
            planes[b * stride + i] = row;
        }
    }
}

fn fits(len: usize, stride: usize, bytes: usize) -> bool {
    bytes == 0 || stride.checked_mul(7).and_then(|n| n.checked_add(bytes)).is_some_and(|n| n <= len)
}

/// Transposes an 8 x 8 bit matrix: bit `8 * i + j` goes to `8 * j + i`.
#[inline]
fn transpose(mut x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    x ^= t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    x ^= t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Each function starts at plane byte `from` (or 0), handles whole tiles and says where it stopped.
    //! Contract of all: planes are readable or writable for `7 * stride + bytes` bytes, bytes for `8 * bytes`,
    //! the two do not overlap, and the named instruction sets are present.
    use crate::simd::bytes::x86::{table, turn8};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2")]
    fn transpose(mut x: __m256i) -> __m256i {
        macro_rules! step {
            ($shift:literal, $mask:literal) => {
                let t = _mm256_and_si256(
                    _mm256_xor_si256(x, _mm256_srli_epi64::<$shift>(x)),
                    _mm256_set1_epi64x($mask),
                );
                x = _mm256_xor_si256(_mm256_xor_si256(x, t), _mm256_slli_epi64::<$shift>(t));
            };
        }
        step!(7, 0x00aa_00aa_00aa_00aa);
        step!(14, 0x0000_cccc_0000_cccc);
        step!(28, 0x0000_0000_f0f0_f0f0);
        x
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn riffle(r: [__m256i; 8]) -> [__m256i; 8] {
        let mut out = r;
        for i in 0..4 {
            out[2 * i] = _mm256_unpacklo_epi8(r[i], r[i + 4]);
            out[2 * i + 1] = _mm256_unpackhi_epi8(r[i], r[i + 4]);
        }
        out
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn bytes_from_planes_avx2(
        src: *const u8,
        stride: usize,
        from: usize,
        bytes: usize,
        dst: *mut u8,
    ) -> usize {
        let mut i = from;
        while i + 32 <= bytes {
            let mut r = [_mm256_setzero_si256(); 8];
            for (b, v) in r.iter_mut().enumerate() {
                // SAFETY: i + 32 <= bytes, so the load ends inside plane b.
                *v = unsafe { _mm256_loadu_si256(src.add(b * stride + i).cast()) };
            }
            r = riffle(riffle(riffle(r)));
            for v in 0..4 {
                let (a, b) = (transpose(r[2 * v]), transpose(r[2 * v + 1]));
                // SAFETY: plane bytes i .. i + 32 make 256 bytes, written as 8 stores of 32.
                unsafe {
                    let o = dst.add(8 * i + v * 32);
                    _mm256_storeu_si256(o.cast(), _mm256_permute2x128_si256::<0x20>(a, b));
                    _mm256_storeu_si256(o.add(128).cast(), _mm256_permute2x128_si256::<0x31>(a, b));
                }
            }
            i += 32;
        }
        i
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn planes_from_bytes_avx2(
        src: *const u8,
        from: usize,
        bytes: usize,
        dst: *mut u8,
        stride: usize,
    ) -> usize {
        let mut i = from;
        while i + 4 <= bytes {
            // SAFETY: 8 * i + 32 <= 8 * bytes.
            let mut v = unsafe { _mm256_loadu_si256(src.add(8 * i).cast()) };
            for b in (0..8).rev() {
                // SAFETY: i + 4 <= bytes, so the store ends inside plane b.
                unsafe { dst.add(b * stride + i).cast::<i32>().write_unaligned(_mm256_movemask_epi8(v)) };
                v = _mm256_add_epi8(v, v);
            }
            i += 4;
        }
        i
    }

    /// Byte `8 * i + j` comes from byte `8 * j + i`, for all 64 bytes of a vector.
    static TURNED: [u8; 64] = turned(0);
    /// The same with the eight bytes of each quadword in reverse.
    static TURNED_REVERSED: [u8; 64] = turned(7);

    const fn turned(flip: usize) -> [u8; 64] {
        let mut t = [0; 64];
        let mut p = 0;
        while p < 64 {
            t[p] = (((p % 8) ^ flip) * 8 + p / 8) as u8;
            p += 1;
        }
        t
    }

    /// Byte `j` of each quadword is `1 << j`: as the vector of an affine product it picks bit `j` of every matrix row,
    /// the first row as the highest bit; as its matrix it reverses the bits of each byte.
    const UNIT: i64 = 0x8040_2010_0804_0201_u64 as i64;

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
    pub(super) unsafe fn planes_from_bytes_gfni(
        src: *const u8,
        bytes: usize,
        dst: *mut u8,
        stride: usize,
    ) -> usize {
        let unit = _mm512_set1_epi64(UNIT);
        let order = table(&TURNED);
        let mut i = 0;
        while i + 64 <= bytes {
            let mut r = [_mm512_setzero_si512(); 8];
            for (k, v) in r.iter_mut().enumerate() {
                // SAFETY: 8 * i + 512 <= 8 * bytes.
                let bytes = unsafe { _mm512_loadu_si512(src.add(8 * i + 64 * k).cast()) };
                // Quadword q, byte b: bit b of bytes 8 q .. 8 q + 8, the first of them highest, then lowest.
                let bits = _mm512_gf2p8affine_epi64_epi8::<0>(unit, bytes);
                let bits = _mm512_gf2p8affine_epi64_epi8::<0>(bits, unit);
                *v = _mm512_permutexvar_epi8(order, bits);
            }
            for (b, v) in turn8(r).into_iter().enumerate() {
                // SAFETY: i + 64 <= bytes, so the store ends inside plane b.
                unsafe { _mm512_storeu_si512(dst.add(b * stride + i).cast(), v) };
            }
            i += 64;
        }
        i
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
    pub(super) unsafe fn bytes_from_planes_gfni(
        src: *const u8,
        stride: usize,
        bytes: usize,
        dst: *mut u8,
    ) -> usize {
        let unit = _mm512_set1_epi64(UNIT);
        let order = table(&TURNED_REVERSED);
        let mut i = 0;
        while i + 64 <= bytes {
            let mut r = [_mm512_setzero_si512(); 8];
            for (b, v) in r.iter_mut().enumerate() {
                // SAFETY: i + 64 <= bytes, so the load ends inside plane b.
                *v = unsafe { _mm512_loadu_si512(src.add(b * stride + i).cast()) };
            }
            for (k, v) in turn8(r).into_iter().enumerate() {
                // Quadword q: byte 8 k + q of all planes, the last plane first, as the product takes its rows.
                let rows = _mm512_permutexvar_epi8(order, v);
                let bytes = _mm512_gf2p8affine_epi64_epi8::<0>(unit, rows);
                // SAFETY: plane bytes i .. i + 64 make 512 bytes, written as 8 stores of 64.
                unsafe { _mm512_storeu_si512(dst.add(8 * i + 64 * k).cast(), bytes) };
            }
            i += 64;
        }
        i
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::levels;

    #[test]
    fn every_level_equals_the_definition() {
        for level in levels() {
            for bytes in [0, 1, 3, 4, 7, 8, 31, 32, 33, 63, 64, 65, 100, 128, 200, 512] {
                let src: Vec<u8> =
                    (0..8 * bytes as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 23) as u8).collect();
                let stride = bytes + 2;
                let mut planes = vec![0xEE; 8 * stride];
                planes_from_bytes(level, &src, bytes, &mut planes, stride);
                for b in 0..8 {
                    for i in 0..bytes {
                        for j in 0..8 {
                            let bit = planes[b * stride + i] >> j & 1;
                            assert_eq!(bit, src[8 * i + j] >> b & 1, "{level:?} {bytes}");
                        }
                    }
                    assert_eq!(planes[b * stride + bytes..(b + 1) * stride], [0xEE; 2]);
                }
                let mut back = vec![0xEE; 8 * bytes + 3];
                bytes_from_planes(level, &planes, stride, bytes, &mut back);
                assert_eq!(back[..8 * bytes], src, "{level:?} {bytes}");
                assert_eq!(back[8 * bytes..], [0xEE; 3]);
            }
        }
    }
}
