//! Byte planes to elements and back: the work of shuffle, and one half of bitshuffle.
//!
//! A plane holds one byte of each element; plane `k` starts `k * stride` bytes into the plane buffer. The AVX2
//! kernels see `N` vectors of 16 bytes as one long row: interleaving its two halves rotates every byte's index
//! by one bit, so log2(N) rounds turn planes into elements and 4 rounds turn elements into planes, for every
//! power of two `N`. Other sizes go through 8 or 16 rows with overlapping stores.
#![expect(unsafe_code, reason = "SIMD kernels; measured 4 to 20 times the safe twin")]

use super::Level;

/// Elements from planes: `dst[i * size + k] = planes[k * stride + i]` for `i < count`, `k < size`.
///
/// # Panics
/// When a slice is too short for that.
pub(crate) fn interleave(
    level: Level,
    planes: &[u8],
    stride: usize,
    count: usize,
    size: usize,
    dst: &mut [u8],
) {
    assert!(
        fits(planes.len(), stride, count, size) && count.checked_mul(size).is_some_and(|n| n <= dst.len())
    );
    let done = match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected, or is below a detected one; the assertion above bounds all accesses.
        Level::Avx2 | Level::Avx512 if count >= 32 => unsafe {
            let (src, dst) = (planes.as_ptr(), dst.as_mut_ptr());
            match size {
                2 if level == Level::Avx512 => x86::interleave2_vbmi(src, stride, count, dst),
                4 if level == Level::Avx512 => x86::interleave4_vbmi(src, stride, count, dst),
                8 if level == Level::Avx512 => x86::interleave8_vbmi(src, stride, count, dst),
                2 => x86::interleave_power::<2>(src, stride, count, dst),
                4 => x86::interleave_power::<4>(src, stride, count, dst),
                8 => x86::interleave_power::<8>(src, stride, count, dst),
                16 => x86::interleave_power::<16>(src, stride, count, dst),
                3 | 5..8 => x86::interleave_small(src, stride, count, size, dst),
                9.. => x86::interleave_wide(src, stride, count, size, dst),
                _ => 0,
            }
        },
        _ => 0,
    };
    interleave_safe(planes, stride, done..count, size, dst);
}

/// Planes from elements: `planes[k * stride + i] = src[i * size + k]` for `i < count`, `k < size`.
///
/// # Panics
/// When a slice is too short for that.
pub(crate) fn deinterleave(
    level: Level,
    src: &[u8],
    count: usize,
    size: usize,
    planes: &mut [u8],
    stride: usize,
) {
    assert!(
        fits(planes.len(), stride, count, size) && count.checked_mul(size).is_some_and(|n| n <= src.len())
    );
    // SAFETY: the assertion above bounds all accesses.
    let done = unsafe { deinterleave_tiles(level, src, count, size, planes.as_mut_ptr(), stride) };
    deinterleave_safe(src, done..count, size, planes, stride);
}

/// Appends the planes of all elements of `src`, one behind the other, to `dst`: what [`deinterleave`] writes, without
/// zeroing the room first. Bytes behind the last whole element are left out.
pub(crate) fn append_planes(level: Level, src: &[u8], size: usize, dst: &mut Vec<u8>) {
    let Some(count) = src.len().checked_div(size) else { return };
    let (whole, before) = (count * size, dst.len());
    dst.reserve_exact(whole);
    if level == Level::Safe {
        dst.resize(before + whole, 0);
        return deinterleave_safe(src, 0..count, size, &mut dst[before..], count);
    }
    let spare = &mut dst.spare_capacity_mut()[..whole];
    // SAFETY: `src` holds `count` elements, and the room is as long: `size` planes of `count` bytes.
    let done = unsafe { deinterleave_tiles(level, src, count, size, spare.as_mut_ptr().cast(), count) };
    for (k, plane) in spare.chunks_exact_mut(count.max(1)).enumerate() {
        for (i, byte) in plane.iter_mut().enumerate().skip(done) {
            byte.write(src[i * size + k]);
        }
    }
    // SAFETY: in each plane the tiles have written the first `done` bytes, and the loop the others.
    unsafe { dst.set_len(before + whole) };
}

/// Writes the planes of a leading number of elements, all of them, and returns that number.
///
/// # Safety
/// `level` must be present; `count * size` bytes of `src` and `(size - 1) * stride + count` from `planes` must be inside
/// what is readable and writable.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there are no tiles"))]
unsafe fn deinterleave_tiles(
    level: Level,
    src: &[u8],
    count: usize,
    size: usize,
    planes: *mut u8,
    stride: usize,
) -> usize {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller vouches for it.
        Level::Avx2 | Level::Avx512 if count >= 32 => unsafe {
            let (src, dst) = (src.as_ptr(), planes);
            match size {
                2 if level == Level::Avx512 => x86::deinterleave2_vbmi(src, count, dst, stride),
                4 if level == Level::Avx512 => x86::deinterleave4_vbmi(src, count, dst, stride),
                8 if level == Level::Avx512 => x86::deinterleave8_vbmi(src, count, dst, stride),
                2 => x86::deinterleave_power::<2>(src, count, dst, stride),
                4 => x86::deinterleave_power::<4>(src, count, dst, stride),
                8 => x86::deinterleave_power::<8>(src, count, dst, stride),
                16 => x86::deinterleave_power::<16>(src, count, dst, stride),
                3.. => x86::deinterleave_any(src, count, size, dst, stride),
                _ => 0,
            }
        },
        _ => 0,
    }
}

fn fits(len: usize, stride: usize, count: usize, size: usize) -> bool {
    count == 0
        || size == 0
        || stride.checked_mul(size - 1).and_then(|n| n.checked_add(count)).is_some_and(|n| n <= len)
}

fn interleave_safe(planes: &[u8], stride: usize, range: std::ops::Range<usize>, size: usize, dst: &mut [u8]) {
    if range.is_empty() {
        return;
    }
    for k in 0..size {
        let plane = &planes[k * stride + range.start..k * stride + range.end];
        let elements = dst[range.start * size..range.end * size].chunks_exact_mut(size);
        for (byte, element) in plane.iter().zip(elements) {
            element[k] = *byte;
        }
    }
}

fn deinterleave_safe(
    src: &[u8],
    range: std::ops::Range<usize>,
    size: usize,
    planes: &mut [u8],
    stride: usize,
) {
    if range.is_empty() {
        return;
    }
    for k in 0..size {
        let plane = &mut planes[k * stride + range.start..k * stride + range.end];
        let elements = src[range.start * size..range.end * size].chunks_exact(size);
        for (byte, element) in plane.iter_mut().zip(elements) {
            *byte = element[k];
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(in crate::simd) mod x86 {
    //! Each function handles a leading multiple of its tile and says how many elements that was. Contract of
    //! all: planes are readable or writable for `(size - 1) * stride + count` bytes, elements for
    //! `count * size` bytes, the two do not overlap, and the named instruction sets are present.
    use std::arch::x86_64::*;

    /// One rotation: interleaves the first half of the vectors with the second, lane by lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn riffle<const N: usize>(r: [__m256i; N]) -> [__m256i; N] {
        let mut out = r;
        for i in 0..N / 2 {
            out[2 * i] = _mm256_unpacklo_epi8(r[i], r[i + N / 2]);
            out[2 * i + 1] = _mm256_unpackhi_epi8(r[i], r[i + N / 2]);
        }
        out
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn interleave_power<const N: usize>(
        src: *const u8,
        stride: usize,
        count: usize,
        dst: *mut u8,
    ) -> usize {
        let whole = count / 32 * 32;
        for i in (0..whole).step_by(32) {
            let mut r = [_mm256_setzero_si256(); N];
            for (k, v) in r.iter_mut().enumerate() {
                // SAFETY: i + 32 <= count, so the load ends inside plane k.
                *v = unsafe { _mm256_loadu_si256(src.add(k * stride + i).cast()) };
            }
            for _ in 0..N.trailing_zeros() {
                r = riffle(r);
            }
            for v in 0..N / 2 {
                let (a, b) = (r[2 * v], r[2 * v + 1]);
                // SAFETY: elements i .. i + 32 take N * 32 bytes, written as N stores of 32 bytes.
                unsafe {
                    let o = dst.add(i * N + v * 32);
                    _mm256_storeu_si256(o.cast(), _mm256_permute2x128_si256::<0x20>(a, b));
                    _mm256_storeu_si256(o.add(16 * N).cast(), _mm256_permute2x128_si256::<0x31>(a, b));
                }
            }
        }
        whole
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn deinterleave_power<const N: usize>(
        src: *const u8,
        count: usize,
        dst: *mut u8,
        stride: usize,
    ) -> usize {
        let whole = count / 32 * 32;
        for i in (0..whole).step_by(32) {
            let mut r = [_mm256_setzero_si256(); N];
            for v in 0..N / 2 {
                // SAFETY: elements i .. i + 32 take N * 32 bytes, read as N loads of 32 bytes.
                let (a, b) = unsafe {
                    let s = src.add(i * N + v * 32);
                    (_mm256_loadu_si256(s.cast()), _mm256_loadu_si256(s.add(16 * N).cast()))
                };
                r[2 * v] = _mm256_permute2x128_si256::<0x20>(a, b);
                r[2 * v + 1] = _mm256_permute2x128_si256::<0x31>(a, b);
            }
            for _ in 0..4 {
                r = riffle(r);
            }
            for (k, v) in r.iter().enumerate() {
                // SAFETY: i + 32 <= count, so the store ends inside plane k.
                unsafe { _mm256_storeu_si256(dst.add(k * stride + i).cast(), *v) };
            }
        }
        whole
    }

    /// Sizes below 8: eight rows, the missing ones zero; each element is stored as 8 bytes, the surplus being
    /// overwritten by the next one.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn interleave_small(
        src: *const u8,
        stride: usize,
        count: usize,
        size: usize,
        dst: *mut u8,
    ) -> usize {
        let mut i = 0;
        while i + 32 <= count && (i + 31) * size + 8 <= count * size {
            let mut r = [_mm256_setzero_si256(); 8];
            for (k, v) in r.iter_mut().enumerate().take(size) {
                // SAFETY: i + 32 <= count, so the load ends inside plane k.
                *v = unsafe { _mm256_loadu_si256(src.add(k * stride + i).cast()) };
            }
            r = riffle(riffle(riffle(r)));
            for half in 0..2 {
                for (v, w) in r.iter().enumerate() {
                    let w = if half == 0 {
                        _mm256_castsi256_si128(*w)
                    } else {
                        _mm256_extracti128_si256::<1>(*w)
                    };
                    let element = i + half * 16 + v * 2;
                    // SAFETY: the loop condition keeps the last element's 8 bytes inside dst.
                    unsafe {
                        let o = dst.add(element * size);
                        _mm_storel_epi64(o.cast(), w);
                        _mm_storel_epi64(o.add(size).cast(), _mm_unpackhi_epi64(w, w));
                    }
                }
            }
            i += 32;
        }
        i
    }

    /// Sizes of 9 and more: groups of 16 rows; the last group overlaps the one before it, or, below 16, its
    /// surplus is overwritten by the next element.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn interleave_wide(
        src: *const u8,
        stride: usize,
        count: usize,
        size: usize,
        dst: *mut u8,
    ) -> usize {
        let mut i = 0;
        while i + 32 <= count && (i + 31) * size + 16 <= count * size {
            let mut k0 = 0;
            loop {
                let rows = (size - k0).min(16);
                let mut r = [_mm256_setzero_si256(); 16];
                for (k, v) in r.iter_mut().enumerate().take(rows) {
                    // SAFETY: k0 + k < size and i + 32 <= count, so the load ends inside that plane.
                    *v = unsafe { _mm256_loadu_si256(src.add((k0 + k) * stride + i).cast()) };
                }
                r = riffle(riffle(riffle(riffle(r))));
                // In element order: a store's surplus must come before the next element's store.
                for (v, w) in r.iter().enumerate() {
                    // SAFETY: k0 + 16 <= size, or size < 16 and the loop condition keeps the last store inside.
                    unsafe {
                        _mm_storeu_si128(dst.add((i + v) * size + k0).cast(), _mm256_castsi256_si128(*w));
                    }
                }
                for (v, w) in r.iter().enumerate() {
                    let high = _mm256_extracti128_si256::<1>(*w);
                    // SAFETY: as above.
                    unsafe { _mm_storeu_si128(dst.add((i + 16 + v) * size + k0).cast(), high) };
                }
                if k0 + 16 >= size {
                    break;
                }
                k0 = (k0 + 16).min(size - 16);
            }
            i += 32;
        }
        i
    }

    /// Any size from 3: 16 bytes are read at each of 32 elements, transposed, and the wanted rows stored.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn deinterleave_any(
        src: *const u8,
        count: usize,
        size: usize,
        dst: *mut u8,
        stride: usize,
    ) -> usize {
        let mut i = 0;
        while i + 32 <= count && (i + 31) * size + 16 <= count * size {
            let mut k0 = 0;
            loop {
                let mut r = [_mm256_setzero_si256(); 16];
                for (v, w) in r.iter_mut().enumerate() {
                    // SAFETY: k0 + 16 <= size, or size < 16 and the loop condition keeps the last load inside.
                    *w = unsafe {
                        let s = src.add((i + v) * size + k0);
                        let low = _mm256_castsi128_si256(_mm_loadu_si128(s.cast()));
                        _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(s.add(16 * size).cast()))
                    };
                }
                r = riffle(riffle(riffle(riffle(r))));
                for (k, w) in r.iter().enumerate().take((size - k0).min(16)) {
                    // SAFETY: k0 + k < size and i + 32 <= count, so the store ends inside that plane.
                    unsafe { _mm256_storeu_si256(dst.add((k0 + k) * stride + i).cast(), *w) };
                }
                if k0 + 16 >= size {
                    break;
                }
                k0 = (k0 + 16).min(size - 16);
            }
            i += 32;
        }
        i
    }

    /// Index vectors for `vpermb`: `SPLIT[s][p]` gathers byte `p / (64 / s)` of element `p % (64 / s)`, and
    /// `JOIN[s]` is its inverse, for `s` = 2, 4, 8.
    const fn split(size: usize) -> [u8; 64] {
        let mut t = [0; 64];
        let per = 64 / size;
        let mut p = 0;
        while p < 64 {
            t[p] = ((p % per) * size + p / per) as u8;
            p += 1;
        }
        t
    }
    const fn join(size: usize) -> [u8; 64] {
        let mut t = [0; 64];
        let per = 64 / size;
        let mut p = 0;
        while p < 64 {
            t[p] = ((p % size) * per + p / size) as u8;
            p += 1;
        }
        t
    }
    static SPLIT2: [u8; 64] = split(2);
    static SPLIT4: [u8; 64] = split(4);
    static SPLIT8: [u8; 64] = split(8);
    static JOIN2: [u8; 64] = join(2);
    static JOIN4: [u8; 64] = join(4);
    static JOIN8: [u8; 64] = join(8);

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn table(t: &[u8; 64]) -> __m512i {
        // SAFETY: the array is 64 bytes long.
        unsafe { _mm512_loadu_si512(t.as_ptr().cast()) }
    }

    /// Transposes 8 x 8 quadwords.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn turn8(r: [__m512i; 8]) -> [__m512i; 8] {
        let mut a = r;
        for i in 0..4 {
            a[2 * i] = _mm512_unpacklo_epi64(r[2 * i], r[2 * i + 1]);
            a[2 * i + 1] = _mm512_unpackhi_epi64(r[2 * i], r[2 * i + 1]);
        }
        // a[2i + b], lane l: quadword 2l + b of rows 2i, 2i + 1
        let (lo, hi) = (
            turn4([a[0], a[2], a[4], a[6]]), // lo[l]: quadword 2l of rows 0..8
            turn4([a[1], a[3], a[5], a[7]]),
        );
        [lo[0], hi[0], lo[1], hi[1], lo[2], hi[2], lo[3], hi[3]]
    }

    /// Transposes 4 x 4 lanes of 16 bytes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn turn4(r: [__m512i; 4]) -> [__m512i; 4] {
        let a = _mm512_shuffle_i64x2::<0b01_00_01_00>(r[0], r[1]); // r0.0 r0.1 r1.0 r1.1
        let b = _mm512_shuffle_i64x2::<0b11_10_11_10>(r[0], r[1]);
        let c = _mm512_shuffle_i64x2::<0b01_00_01_00>(r[2], r[3]);
        let d = _mm512_shuffle_i64x2::<0b11_10_11_10>(r[2], r[3]);
        [
            _mm512_shuffle_i64x2::<0b10_00_10_00>(a, c), // r0.0 r1.0 r2.0 r3.0
            _mm512_shuffle_i64x2::<0b11_01_11_01>(a, c),
            _mm512_shuffle_i64x2::<0b10_00_10_00>(b, d),
            _mm512_shuffle_i64x2::<0b11_01_11_01>(b, d),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(p: *const u8) -> __m512i {
        // SAFETY: the caller vouches for 64 readable bytes.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(p: *mut u8, v: __m512i) {
        // SAFETY: the caller vouches for 64 writable bytes.
        unsafe { _mm512_storeu_si512(p.cast(), v) }
    }

    macro_rules! vbmi {
        ($inter:ident, $deinter:ident, $n:literal, $join:ident, $split:ident, $turn:expr) => {
            #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
            pub(super) unsafe fn $inter(src: *const u8, stride: usize, count: usize, dst: *mut u8) -> usize {
                let (whole, order) = (count / 64 * 64, table(&$join));
                for i in (0..whole).step_by(64) {
                    let mut r = [_mm512_setzero_si512(); $n];
                    for (k, v) in r.iter_mut().enumerate() {
                        // SAFETY: i + 64 <= count, so the load ends inside plane k.
                        *v = unsafe { load(src.add(k * stride + i)) };
                    }
                    for (k, v) in $turn(r).into_iter().enumerate() {
                        // SAFETY: elements i .. i + 64 take $n stores of 64 bytes.
                        unsafe { store(dst.add(i * $n + k * 64), _mm512_permutexvar_epi8(order, v)) };
                    }
                }
                whole
            }

            #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
            pub(super) unsafe fn $deinter(
                src: *const u8,
                count: usize,
                dst: *mut u8,
                stride: usize,
            ) -> usize {
                let (whole, order) = (count / 64 * 64, table(&$split));
                for i in (0..whole).step_by(64) {
                    let mut r = [_mm512_setzero_si512(); $n];
                    for (k, v) in r.iter_mut().enumerate() {
                        // SAFETY: elements i .. i + 64 take $n loads of 64 bytes.
                        *v = _mm512_permutexvar_epi8(order, unsafe { load(src.add(i * $n + k * 64)) });
                    }
                    for (k, v) in $turn(r).into_iter().enumerate() {
                        // SAFETY: i + 64 <= count, so the store ends inside plane k.
                        unsafe { store(dst.add(k * stride + i), v) };
                    }
                }
                whole
            }
        };
    }

    /// Transposes 2 x 2 halves of 32 bytes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn turn2(r: [__m512i; 2]) -> [__m512i; 2] {
        [_mm512_shuffle_i64x2::<0b01_00_01_00>(r[0], r[1]), _mm512_shuffle_i64x2::<0b11_10_11_10>(r[0], r[1])]
    }

    vbmi!(interleave2_vbmi, deinterleave2_vbmi, 2, JOIN2, SPLIT2, turn2);
    vbmi!(interleave4_vbmi, deinterleave4_vbmi, 4, JOIN4, SPLIT4, turn4);
    vbmi!(interleave8_vbmi, deinterleave8_vbmi, 8, JOIN8, SPLIT8, turn8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::levels;

    fn noise(n: usize) -> Vec<u8> {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        (0..n)
            .map(|_| {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                (x >> 32) as u8
            })
            .collect()
    }

    #[test]
    fn every_level_equals_the_definition_for_every_size() {
        for level in levels() {
            for size in (1..=40).chain([63, 64, 65, 100, 257]) {
                for count in [0, 1, 15, 31, 32, 33, 63, 64, 65, 97, 128, 200, 1000] {
                    let src = noise(size * count);
                    let stride = count + 3;
                    let mut planes = vec![0xEE; stride * size];
                    deinterleave(level, &src, count, size, &mut planes, stride);
                    for k in 0..size {
                        for i in 0..count {
                            assert_eq!(planes[k * stride + i], src[i * size + k], "{level:?} {size} {count}");
                        }
                        assert_eq!(planes[k * stride + count..(k + 1) * stride], [0xEE; 3]);
                    }
                    let mut appended = vec![0xEE; 7];
                    append_planes(level, &[&src[..], &noise(size - 1)].concat(), size, &mut appended);
                    assert_eq!(appended.len(), 7 + size * count);
                    for (k, plane) in appended[7..].chunks_exact(count.max(1)).enumerate() {
                        assert!(plane == &planes[k * stride..][..count], "{level:?} {size} {count}");
                    }
                    let mut back = vec![0xEE; size * count + 5];
                    interleave(level, &planes, stride, count, size, &mut back);
                    assert!(back[..size * count] == src, "{level:?} {size} {count}");
                    assert_eq!(back[size * count..], [0xEE; 5]);
                }
            }
        }
    }
}
