//! Which instructions kernels may use, and the moves between bits, bytes and counts that they do in few steps.
//!
//! The variable `TENSILO_PACK_LEVEL` (`safe` or `avx2`) caps what is detected, so that a fast machine can measure what
//! slower ones do. Results never depend on the level.

#![expect(unsafe_code, reason = "BMI2 and AVX2 instructions, after asking for them")]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::sync::OnceLock;

/// The best instruction set that this machine offers and that kernels exist for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Safe code only.
    Safe,
    /// x86-64 with AVX2, BMI1 and BMI2.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL besides.
    Avx512,
}

/// The level of this process; asked once.
pub(crate) fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let cap = match std::env::var("TENSILO_PACK_LEVEL").as_deref() {
            Ok("safe") => Level::Safe,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        detected().min(cap)
    })
}

fn detected() -> Level {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
        {
            return Level::Avx512;
        }
        return Level::Avx2;
    }
    Level::Safe
}

/// Every level that this machine can run, for tests that compare them.
#[cfg(test)]
pub(crate) fn levels() -> Vec<Level> {
    [Level::Safe, Level::Avx2, Level::Avx512].into_iter().filter(|l| *l <= detected()).collect()
}

/// Moves between eight counts, the same as bytes, and bytes below 2^w at `w` bits each, the first lowest; `w` from 0
/// to 8.
pub(super) trait Bits: Copy {
    /// Eight bytes, all below 2^w, to 8 w bits.
    fn squeeze(x: u64, w: u32) -> u64;
    /// Undoes [`squeeze`](Bits::squeeze); bits of `x` above 8 w are ignored.
    fn spread(x: u64, w: u32) -> u64;

    /// Eight counts as bytes, those above 255 as 255.
    #[inline(always)]
    fn clip(counts: &[u16; 8]) -> u64 {
        u64::from_le_bytes(counts.map(|v| v.min(255) as u8))
    }

    /// Eight bytes as counts.
    #[inline(always)]
    fn widen(bytes: u64) -> [u16; 8] {
        bytes.to_le_bytes().map(u16::from)
    }

    /// Eight counts less a base as high parts, those above 255 and below the base as 255, and the low `shift` bits of
    /// the counts; `shift` is at most 8, the base a multiple of 2^shift.
    #[inline(always)]
    fn split(counts: &[u16; 8], base: u16, shift: u32) -> (u64, u64) {
        let high = counts.map(|v| if v < base { 255 } else { ((v - base) >> shift).min(255) as u8 });
        let low = counts.map(|v| (v & ((1 << shift) - 1)) as u8);
        (u64::from_le_bytes(high), u64::from_le_bytes(low))
    }

    /// Sixteen pairs of counts at four bits each, and whether all are below 16; only then the pairs mean anything.
    #[inline(always)]
    fn pairs(counts: &[u16; 32]) -> ([u8; 16], bool) {
        let pair = |i: usize| (counts[2 * i] & 15 | (counts[2 * i + 1] & 15) << 4) as u8;
        (std::array::from_fn(pair), counts.iter().all(|v| *v < 16))
    }

    /// As [`split`](Bits::split) and [`pairs`](Bits::pairs) of four groups, each with its base: pairs of high parts, whether
    /// all are below 16, low parts.
    #[inline(always)]
    fn split_line(counts: &[u16; 32], bases: &[u16; 4], shift: u32) -> ([u8; 16], bool, [u64; 4]) {
        let (mut high, mut low) = ([0_u16; 32], [0; 4]);
        for (g, (counts, high)) in counts.as_chunks::<8>().0.iter().zip(high.as_chunks_mut().0).enumerate() {
            let (above, below) = Self::split(counts, bases[g], shift);
            *high = above.to_le_bytes().map(u16::from);
            low[g] = below;
        }
        let (pairs, small) = Self::pairs(&high);
        (pairs, small, low)
    }

    /// Some bytes from a place on.
    ///
    /// # Safety
    /// There are as many.
    #[inline(always)]
    unsafe fn read<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        *bytes[at..].first_chunk().expect("as many bytes")
    }

    /// Four counts and four more.
    #[inline(always)]
    fn beside(low: &[u16; 4], high: &[u16; 4]) -> [u16; 8] {
        std::array::from_fn(|i| if i < 4 { low[i] } else { high[i - 4] })
    }

    /// Sixteen pairs of nibbles, the low one first.
    #[inline(always)]
    fn nibbles(codes: &[u8; 16]) -> [u16; 32] {
        std::array::from_fn(|i| u16::from(codes[i / 2] >> (4 * (i % 2)) & 15))
    }

    /// As [`join`](Bits::join), of sixteen pairs of high parts and four times eight low ones; every count has its base.
    #[inline(always)]
    fn join_line(codes: &[u8; 16], low: &[u64; 4], bases: &[u16; 32], shift: u32) -> [u16; 32] {
        let high = Self::nibbles(codes);
        let low = |i: usize| (low[i / 8] >> (8 * (i % 8))) as u16 & 255;
        std::array::from_fn(|i| bases[i].wrapping_add(high[i] << shift).wrapping_add(low(i)))
    }

    /// Undoes [`split`](Bits::split); what overflows wraps around.
    #[inline(always)]
    fn join(high: u64, low: u64, base: u16, shift: u32) -> [u16; 8] {
        let (high, low) = (Self::widen(high), Self::widen(low));
        std::array::from_fn(|i| base.wrapping_add(high[i] << shift).wrapping_add(low[i]))
    }
}

/// By masks and shifts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

impl Bits for Plain {
    #[inline(always)]
    fn squeeze(x: u64, w: u32) -> u64 {
        const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
        const PAIRS: u64 = 0x0000_ffff_0000_ffff;
        const FOURS: u64 = 0x0000_0000_ffff_ffff;
        let x = (x & BYTES) | ((x & !BYTES) >> (8 - w));
        let x = (x & PAIRS) | ((x & !PAIRS) >> (16 - 2 * w));
        (x & FOURS) | ((x >> 32) << (4 * w))
    }

    #[inline(always)]
    fn spread(x: u64, w: u32) -> u64 {
        let low = |bits: u32| (1_u64 << bits) - 1;
        let (four, two, one) = (low(4 * w), low(2 * w), low(w));
        let two = two | two << 32;
        let one = one | one << 16;
        let one = one | one << 32;
        let x = (x & four) | ((x >> (4 * w)) & four) << 32;
        let x = (x & two) | ((x >> (2 * w)) & two) << 16;
        (x & one) | ((x >> w) & one) << 8
    }
}

/// By vectors, `pext` and `pdep`; only code that was compiled for AVX2 and BMI2, and called after asking, names it.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Bmi2;

#[cfg(target_arch = "x86_64")]
impl Bits for Bmi2 {
    #[inline(always)]
    fn squeeze(x: u64, w: u32) -> u64 {
        // SAFETY: the callers are compiled for BMI2 and run at `Level::Avx2` or above only, which was detected.
        unsafe { _pext_u64(x, bytes_below(w)) }
    }

    #[inline(always)]
    fn spread(x: u64, w: u32) -> u64 {
        // SAFETY: as in `squeeze`.
        unsafe { _pdep_u64(x, bytes_below(w)) }
    }

    #[inline(always)]
    fn clip(counts: &[u16; 8]) -> u64 {
        // SAFETY: as in `squeeze`; the array has 16 bytes.
        unsafe { low_bytes(_mm_loadu_si128(counts.as_ptr().cast())) }
    }

    #[inline(always)]
    fn widen(bytes: u64) -> [u16; 8] {
        // SAFETY: as in `squeeze`; arrays and vectors of 16 bytes hold any bits.
        unsafe { std::mem::transmute(_mm_cvtepu8_epi16(_mm_cvtsi64_si128(bytes as i64))) }
    }

    #[inline(always)]
    fn split(counts: &[u16; 8], base: u16, shift: u32) -> (u64, u64) {
        // SAFETY: as in `squeeze`; the array has 16 bytes.
        unsafe {
            let v = _mm_loadu_si128(counts.as_ptr().cast());
            let base = _mm_set1_epi16(base as i16);
            let above = _mm_srl_epi16(_mm_sub_epi16(v, base), _mm_cvtsi32_si128(shift as i32));
            let enough = _mm_cmpeq_epi16(_mm_max_epu16(v, base), v);
            let high = _mm_or_si128(above, _mm_xor_si128(enough, _mm_set1_epi16(-1)));
            let low = _mm_and_si128(v, _mm_set1_epi16(((1 << shift) - 1) as i16));
            (low_bytes(high), low_bytes(low))
        }
    }

    #[inline(always)]
    fn pairs(counts: &[u16; 32]) -> ([u8; 16], bool) {
        // SAFETY: as in `squeeze`; the array has 64 bytes.
        unsafe {
            let v: [__m256i; 2] =
                std::array::from_fn(|i| _mm256_loadu_si256(counts.as_ptr().add(16 * i).cast()));
            pairs_of(v)
        }
    }

    #[inline(always)]
    fn split_line(counts: &[u16; 32], bases: &[u16; 4], shift: u32) -> ([u8; 16], bool, [u64; 4]) {
        // SAFETY: as in `squeeze`; the arrays have 64, 8 and 32 bytes.
        unsafe {
            let bases = _mm256_set1_epi64x(i64::from_ne_bytes(bytemuck::cast(*bases)));
            // Each base eight times: within each half, bytes of two of them.
            let spread = |first: i8| {
                let base = |k: i8| {
                    let [low, high] = [first + 2 * k, first + 2 * k + 1];
                    i64::from_le_bytes([low, high, low, high, low, high, low, high].map(|b| b as u8))
                };
                _mm256_setr_epi64x(base(0), base(0), base(1), base(1))
            };
            let by = _mm_cvtsi32_si128(shift as i32);
            let low_bits = _mm256_set1_epi16(((1 << shift) - 1) as i16);
            let mut low = [0_u64; 4];
            let mut high = [_mm256_setzero_si256(); 2];
            for i in 0..2 {
                let v = _mm256_loadu_si256(counts.as_ptr().add(16 * i).cast());
                let base = _mm256_shuffle_epi8(bases, spread(4 * i as i8));
                let above = _mm256_srl_epi16(_mm256_sub_epi16(v, base), by);
                let enough = _mm256_cmpeq_epi16(_mm256_max_epu16(v, base), v);
                high[i] = _mm256_or_si256(above, _mm256_xor_si256(enough, _mm256_set1_epi16(-1)));
                let below = _mm256_and_si256(v, low_bits);
                let packed = _mm256_packus_epi16(below, below);
                low[2 * i] = _mm256_extract_epi64::<0>(packed) as u64;
                low[2 * i + 1] = _mm256_extract_epi64::<2>(packed) as u64;
            }
            let (pairs, small) = pairs_of(high);
            (pairs, small, low)
        }
    }

    #[inline(always)]
    unsafe fn read<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        debug_assert!(at + N <= bytes.len());
        // SAFETY: the caller's promise; byte arrays lie anywhere.
        unsafe { *bytes.as_ptr().add(at).cast() }
    }

    #[inline(always)]
    fn beside(low: &[u16; 4], high: &[u16; 4]) -> [u16; 8] {
        // Two loads: left to itself, the compiler gathers, which takes longer.
        // SAFETY: as in `squeeze`; arrays of eight bytes are read, and vectors of 16 hold any bits.
        unsafe {
            let low = _mm_castsi128_pd(_mm_loadl_epi64(low.as_ptr().cast()));
            std::mem::transmute(_mm_loadh_pd(low, high.as_ptr().cast()))
        }
    }

    #[inline(always)]
    fn nibbles(codes: &[u8; 16]) -> [u16; 32] {
        // SAFETY: as in `squeeze`; arrays and vectors of 64 bytes hold any bits.
        unsafe { std::mem::transmute(nibbles(codes)) }
    }

    #[inline(always)]
    fn join_line(codes: &[u8; 16], low: &[u64; 4], bases: &[u16; 32], shift: u32) -> [u16; 32] {
        // SAFETY: as in `squeeze`; the arrays have 32 and 64 bytes.
        unsafe {
            let shift = _mm_cvtsi32_si128(shift as i32);
            let high = nibbles(codes);
            let out: [__m256i; 2] = std::array::from_fn(|i| {
                let low = _mm256_cvtepu8_epi16(_mm_loadu_si128(low.as_ptr().add(2 * i).cast()));
                let base = _mm256_loadu_si256(bases.as_ptr().add(16 * i).cast());
                _mm256_add_epi16(_mm256_add_epi16(_mm256_sll_epi16(high[i], shift), low), base)
            });
            std::mem::transmute(out)
        }
    }

    #[inline(always)]
    fn join(high: u64, low: u64, base: u16, shift: u32) -> [u16; 8] {
        // SAFETY: as in `squeeze`; arrays and vectors of 16 bytes hold any bits.
        unsafe {
            let high = _mm_sll_epi16(
                _mm_cvtepu8_epi16(_mm_cvtsi64_si128(high as i64)),
                _mm_cvtsi32_si128(shift as i32),
            );
            let low = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(low as i64));
            std::mem::transmute(_mm_add_epi16(_mm_add_epi16(high, low), _mm_set1_epi16(base as i16)))
        }
    }
}

/// Sixteen pairs of nibbles in 16 bits each.
///
/// # Safety
/// AVX2 was detected.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn nibbles(codes: &[u8; 16]) -> [__m256i; 2] {
    // SAFETY: the caller's promise; each half has eight bytes.
    std::array::from_fn(|i| unsafe {
        let pairs = _mm256_cvtepu8_epi32(_mm_loadl_epi64(codes.as_ptr().add(8 * i).cast()));
        _mm256_and_si256(
            _mm256_or_si256(pairs, _mm256_slli_epi32::<12>(pairs)),
            _mm256_set1_epi32(0x000f_000f),
        )
    })
}

/// Thirty-two words below 16 as pairs of four bits each, and whether they are.
///
/// # Safety
/// AVX2 was detected.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn pairs_of(words: [__m256i; 2]) -> ([u8; 16], bool) {
    // SAFETY: the caller's promise; arrays and vectors of 16 bytes hold any bits.
    unsafe {
        let any = _mm256_or_si256(words[0], words[1]);
        let small = _mm256_testz_si256(any, _mm256_set1_epi16(!15)) == 1;
        // Low words of each double word, and high ones at their side; then the low byte of each double word.
        let pairs = words.map(|w| _mm256_or_si256(w, _mm256_srli_epi32::<12>(w)));
        let bytes = pairs.map(|p| _mm256_and_si256(p, _mm256_set1_epi32(0xff)));
        let words = _mm256_packus_epi32(bytes[0], bytes[1]);
        let packed = _mm256_packus_epi16(words, words);
        let ordered = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
        (std::mem::transmute::<__m128i, [u8; 16]>(_mm256_castsi256_si128(ordered)), small)
    }
}

/// Eight words as bytes, those above 255 as 255.
///
/// # Safety
/// AVX2 was detected.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn low_bytes(words: __m128i) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let words = _mm_min_epu16(words, _mm_set1_epi16(255));
        _mm_cvtsi128_si64(_mm_packus_epi16(words, words)) as u64
    }
}

/// The low `w` bits of each byte.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bytes_below(w: u32) -> u64 {
    0x0101_0101_0101_0101 * ((1 << w) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_moves_equal_their_definition_and_each_other() {
        let mut x = 1_u64;
        for round in 0..2000 {
            x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ round;
            for w in 0..=8 {
                let bytes: u64 = (0..8).map(|i| (x >> (8 * i) & ((1 << w) - 1)) << (8 * i)).sum();
                let narrow = (0..8)
                    .fold(0_u128, |n, i| n | u128::from(bytes >> (8 * i) & 255) << (u64::from(w) * i))
                    as u64;
                assert_eq!(Plain::squeeze(bytes, w), narrow, "{bytes:x} at {w}");
                let kept = if w == 8 { x } else { x & ((1 << (8 * w)) - 1) };
                let wide: u64 =
                    (0..8).map(|i| (kept >> (u64::from(w) * i) & ((1 << w) - 1)) << (8 * i)).sum();
                assert_eq!(Plain::spread(x, w), wide, "{x:x} at {w}");
                #[cfg(target_arch = "x86_64")]
                if detected() >= Level::Avx2 {
                    assert_eq!(Bmi2::squeeze(bytes, w), narrow);
                    assert_eq!(Bmi2::spread(x, w), wide);
                }
            }
        }
    }

    #[test]
    fn moves_of_lines_equal_their_definition() {
        let mut x = 5_u64;
        for round in 0..4000_u32 {
            let mut next = || {
                x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ 77;
                x >> 17
            };
            let shift = round % 9;
            let small: [u16; 32] = std::array::from_fn(|_| next() as u16 & 15);
            let mut counts = small;
            if round % 3 == 0 {
                counts[round as usize % 32] = 16 << (round % 12);
            }
            let (pairs, fits) = Plain::pairs(&counts);
            assert_eq!(fits, round % 3 != 0);
            if fits {
                let bytes = small.as_chunks::<2>().0.iter().map(|[a, b]| (a + 16 * b) as u8);
                assert!(bytes.eq(pairs));
            }
            let bases: [u16; 4] = std::array::from_fn(|_| (next() as u16 >> (next() % 16)) >> shift << shift);
            let wide: [u16; 32] = std::array::from_fn(|i| {
                let above = (next() as u16 & 15) << shift | next() as u16 & ((1 << shift) - 1);
                bases[i / 8].wrapping_add(if round % 2 == 0 { above } else { next() as u16 })
            });
            let (high, small, low) = Plain::split_line(&wide, &bases, shift);
            #[cfg(target_arch = "x86_64")]
            if detected() >= Level::Avx2 {
                let (theirs, fit) = Bmi2::pairs(&counts);
                assert!(fit == fits && (!fits || theirs == pairs));
                let (theirs, fit, below) = Bmi2::split_line(&wide, &bases, shift);
                assert_eq!((fit, below), (small, low));
                assert!(!fit || theirs == high);
            }
        }
    }

    #[test]
    fn moves_of_counts_equal_their_definition() {
        let mut x = 9_u64;
        for round in 0..4000_u32 {
            let mut next = || {
                x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ 77;
                x >> 17
            };
            let shift = round % 9;
            let counts: [u16; 8] = std::array::from_fn(|_| next() as u16 >> (round % 16));
            let base = (next() as u16 >> (next() % 16)) >> shift << shift;
            let (high, low) = Plain::split(&counts, base, shift);
            for (i, v) in counts.iter().enumerate() {
                let expected = v.checked_sub(base).map_or(255, |d| (d >> shift).min(255));
                assert_eq!((high >> (8 * i)) as u8, expected as u8);
                assert_eq!(u32::from((low >> (8 * i)) as u8), u32::from(*v) % (1 << shift));
                assert_eq!((Plain::clip(&counts) >> (8 * i)) as u8, (*v).min(255) as u8);
                assert_eq!(Plain::widen(high)[i], u16::from((high >> (8 * i)) as u8));
                if expected < 255 {
                    assert_eq!(Plain::join(high, low, base, shift)[i], *v);
                }
            }
            #[cfg(target_arch = "x86_64")]
            if detected() >= Level::Avx2 {
                assert_eq!(Bmi2::split(&counts, base, shift), (high, low));
                assert_eq!(Bmi2::clip(&counts), Plain::clip(&counts));
                let codes: [u8; 16] = std::array::from_fn(|i| (x >> (3 * i)) as u8);
                assert_eq!(Bmi2::nibbles(&codes), Plain::nibbles(&codes));
                let (lows, bases) = ([low, high, x, !x], std::array::from_fn(|i| base ^ (i as u16 * 771)));
                let line = Plain::join_line(&codes, &lows, &bases, shift);
                assert_eq!(Bmi2::join_line(&codes, &lows, &bases, shift), line);
                let (four, others) = (counts.first_chunk().unwrap(), counts.last_chunk().unwrap());
                assert_eq!((Bmi2::beside(four, others), Plain::beside(four, others)), (counts, counts));
                assert_eq!(Bmi2::widen(high), Plain::widen(high));
                assert_eq!(Bmi2::join(high, low, base, shift), Plain::join(high, low, base, shift));
            }
        }
    }
}
