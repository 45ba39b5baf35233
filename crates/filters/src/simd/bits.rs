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
            done = x86::planes_from_bytes_avx512(src.as_ptr(), bytes, planes.as_mut_ptr(), stride);
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

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn planes_from_bytes_avx512(
        src: *const u8,
        bytes: usize,
        dst: *mut u8,
        stride: usize,
    ) -> usize {
        let mut i = 0;
        while i + 8 <= bytes {
            // SAFETY: 8 * i + 64 <= 8 * bytes.
            let mut v = unsafe { _mm512_loadu_si512(src.add(8 * i).cast()) };
            for b in (0..8).rev() {
                // SAFETY: i + 8 <= bytes, so the store ends inside plane b.
                unsafe { dst.add(b * stride + i).cast::<u64>().write_unaligned(_mm512_movepi8_mask(v)) };
                v = _mm512_add_epi8(v, v);
            }
            i += 8;
        }
        i
    }

    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    pub(super) unsafe fn bytes_from_planes_gfni(
        src: *const u8,
        stride: usize,
        bytes: usize,
        dst: *mut u8,
    ) -> usize {
        // Byte j of each quadword is 1 << j: the affine product then picks bit j of every matrix row. The
        // instruction takes its rows last first, so the planes are loaded last first.
        let unit = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
        let mut i = 0;
        while i + 64 <= bytes {
            let mut r = [_mm512_setzero_si512(); 8];
            for (b, v) in r.iter_mut().enumerate() {
                // SAFETY: i + 64 <= bytes, so the load ends inside plane 7 - b.
                *v = unsafe { _mm512_loadu_si512(src.add((7 - b) * stride + i).cast()) };
            }
            for _ in 0..3 {
                let s = r;
                for k in 0..4 {
                    r[2 * k] = _mm512_unpacklo_epi8(s[k], s[k + 4]);
                    r[2 * k + 1] = _mm512_unpackhi_epi8(s[k], s[k + 4]);
                }
            }
            for v in &mut r {
                *v = _mm512_gf2p8affine_epi64_epi8::<0>(unit, *v);
            }
            // r[v], lane l: bytes of plane bytes i + 16 l + 2 v, + 1
            for half in 0..2 {
                let [p, q, s, t] = [r[4 * half], r[4 * half + 1], r[4 * half + 2], r[4 * half + 3]];
                let a = _mm512_shuffle_i64x2::<0b01_00_01_00>(p, q);
                let b = _mm512_shuffle_i64x2::<0b11_10_11_10>(p, q);
                let c = _mm512_shuffle_i64x2::<0b01_00_01_00>(s, t);
                let d = _mm512_shuffle_i64x2::<0b11_10_11_10>(s, t);
                let lanes = [
                    _mm512_shuffle_i64x2::<0b10_00_10_00>(a, c),
                    _mm512_shuffle_i64x2::<0b11_01_11_01>(a, c),
                    _mm512_shuffle_i64x2::<0b10_00_10_00>(b, d),
                    _mm512_shuffle_i64x2::<0b11_01_11_01>(b, d),
                ];
                for (l, v) in lanes.into_iter().enumerate() {
                    // SAFETY: plane bytes i .. i + 64 make 512 bytes, written as 8 stores of 64.
                    unsafe { _mm512_storeu_si512(dst.add(8 * i + l * 128 + half * 64).cast(), v) };
                }
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
