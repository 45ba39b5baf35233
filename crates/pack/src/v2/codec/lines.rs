//! Symbols to 16-bit counts, a vector of them at a time (AVX-512 with VBMI).
//!
//! A *line* is four groups: 32 counts, one vector. Symbols of four counts are looked up in registers, 64 at a time: a
//! symbol becomes a key of 16 bits, and one shift for each byte of a vector makes counts of it.

#![expect(unsafe_code, reason = "vector instructions, after asking for them")]

use super::groups;
use super::placement::GROUP;
use super::tuples::Tuple;
use std::arch::x86_64::*;
use std::sync::OnceLock;

/// Counts of a line.
pub(super) const LINE: usize = 4 * GROUP;

/// Groups of one class in one segment, their symbols one behind the other: these and raw bits in some scans, and where
/// counts go.
#[derive(Debug)]
pub(super) struct Stretch<'a> {
    /// Symbols of the block; those of the first scan begin at `first`.
    pub symbols: &'a [u8],
    pub first: usize,
    pub step: usize,
    /// Raw bits likewise.
    pub raw: &'a [u8],
    pub raw_first: usize,
    pub raw_step: usize,
    /// Low bits of each count that are raw: at most 8.
    pub shift: u32,
    /// Where each group's counts begin, and each group's base.
    pub starts: &'a [u32],
    pub bases: &'a [[u16; GROUP]],
    pub scans: usize,
}

/// The halves of each symbol's key: counts of fours at four bits each, of eights at two.
#[derive(Debug)]
pub(super) struct Keys([[u8; 256]; 2]);

impl Keys {
    /// Both tables.
    ///
    /// # Safety
    /// AVX-512 F was detected.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub fn vectors(&self) -> [[__m512i; 4]; 2] {
        // SAFETY: each table has 256 bytes.
        std::array::from_fn(|half| {
            std::array::from_fn(|i| unsafe { _mm512_loadu_si512(self.0[half].as_ptr().add(64 * i).cast()) })
        })
    }
}

pub(super) fn keys(tuple: Tuple) -> &'static Keys {
    static KEYS: [OnceLock<Keys>; 2] = [const { OnceLock::new() }; 2];
    let eight = tuple == Tuple::Eight;
    KEYS[usize::from(eight)].get_or_init(|| {
        let bits = if eight { 2 } else { 4 };
        let mut out = [[0; 256]; 2];
        for (symbol, counts) in tuple.alphabet().tuples.iter().enumerate() {
            let counts = counts.to_le_bytes().into_iter().enumerate().take(tuple.counts());
            let key = counts.fold(0_u16, |key, (i, v)| key | u16::from(v) << (bits * i));
            [out[0][symbol], out[1][symbol]] = key.to_le_bytes();
        }
        Keys(out)
    })
}

/// Writes a stretch's counts; scans are `scan_stride` counts apart in `out`.
///
/// # Safety
/// AVX-512 F, BW, DQ, VL and VBMI were detected.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
pub(super) fn write(tuple: Tuple, based: bool, s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    match tuple {
        Tuple::Two if based => dense(s, out, scan_stride),
        Tuple::Two => pairs(s, out, scan_stride),
        Tuple::Four => fours(s, out, scan_stride),
        Tuple::Eight => eights(s, out, scan_stride),
    }
}

/// Up to 64 bytes from a place on, zeros behind them.
///
/// # Safety
/// AVX-512 F and BW were detected.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn load(bytes: &[u8]) -> __m512i {
    let n = bytes.len().min(64);
    // SAFETY: only the first `n` bytes are read.
    unsafe {
        _mm512_maskz_loadu_epi8(u64::MAX.checked_shr(64 - n as u32).unwrap_or(0), bytes.as_ptr().cast())
    }
}

/// Looks up 64 symbols in a table of 256 bytes.
///
/// # Safety
/// AVX-512 VBMI was detected.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
pub(super) fn look_up(symbols: __m512i, table: &[__m512i; 4]) -> __m512i {
    let low = _mm512_permutex2var_epi8(table[0], symbols, table[1]);
    let high = _mm512_permutex2var_epi8(table[2], symbols, table[3]);
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(symbols), low, high)
}

/// Stores four groups of counts, each at its own place.
///
/// # Safety
/// AVX-512 F and VL were detected.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn store(counts: __m512i, starts: &[u32; 4], out: &mut [u16]) {
    if starts[0] + 3 * GROUP as u32 == starts[3] {
        let to = &mut out[starts[0] as usize..][..LINE];
        // SAFETY: the slice has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), counts) };
        return;
    }
    store_some(counts, starts, out);
}

/// Stores up to four groups of counts, each at its own place.
///
/// # Safety
/// AVX-512 F and VL were detected.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn store_some(counts: __m512i, starts: &[u32], out: &mut [u16]) {
    let groups = [
        _mm512_castsi512_si128(counts),
        _mm512_extracti32x4_epi32::<1>(counts),
        _mm512_extracti32x4_epi32::<2>(counts),
        _mm512_extracti32x4_epi32::<3>(counts),
    ];
    for (start, group) in starts.iter().zip(groups) {
        let to = &mut out[*start as usize..][..GROUP];
        // SAFETY: the slice has 16 bytes.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), group) };
    }
}

/// Groups of 64 symbols of four counts.
const EIGHT_LINES: usize = 8 * 4;

/// Symbols of eight counts, from a table: no vector instruction does it in fewer steps.
///
/// # Safety
/// As [`write`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
fn eights(s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    let table = &Tuple::Eight.alphabet().eights;
    let (lines, some) = s.starts.as_chunks::<4>();
    // SAFETY: each entry has 16 bytes.
    let of = |code: u8| unsafe { _mm_loadu_si128(table[usize::from(code)].as_ptr().cast()) };
    for scan in 0..s.scans {
        let (codes, rest) = s.symbols[s.first + scan * s.step..][..s.starts.len()].as_chunks::<4>();
        let out = &mut out[scan * scan_stride..];
        for (codes, starts) in codes.iter().zip(lines) {
            let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(of(codes[0])), of(codes[1]));
            let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(of(codes[2])), of(codes[3]));
            if starts[0] + 3 * GROUP as u32 == starts[3] {
                let (to, to_high) = out[starts[0] as usize..][..LINE].split_at_mut(LINE / 2);
                // SAFETY: both halves have 32 bytes.
                unsafe {
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), low);
                    _mm256_storeu_si256(to_high.as_mut_ptr().cast(), high);
                }
                continue;
            }
            for (code, start) in codes.iter().zip(starts) {
                let to = &mut out[*start as usize..][..GROUP];
                // SAFETY: the slice has 16 bytes.
                unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), of(*code)) };
            }
        }
        groups::eights(table, rest, some, out);
    }
}

/// Symbols of four counts.
///
/// # Safety
/// As [`write`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
fn fours(s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    let tables = keys(Tuple::Four).vectors();
    // For each byte of four counts, which bits of the key it begins at.
    let shifts = _mm512_set1_epi64(0x0c0c_0808_0404_0000);
    let mask = _mm512_set1_epi16(15);
    // Which keys of a vector a line is made of, one for each eight bytes: those of each quarter.
    let quarters: [__m512i; 4] = std::array::from_fn(|i| {
        let key = |k: i64| 8 * i as i64 + k;
        _mm512_setr_epi64(key(0), key(1), key(2), key(3), key(4), key(5), key(6), key(7))
    });
    let counts = |halves: &[__m512i; 2], line: usize| {
        let words = _mm512_permutexvar_epi16(quarters[line / 2], halves[line % 2]);
        _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, words), mask)
    };
    let mut first = s.first;
    for starts in s.starts.chunks(EIGHT_LINES) {
        let (lines, some) = starts.as_chunks::<4>();
        let eight: Option<&[_; 8]> = lines.try_into().ok();
        for scan in 0..s.scans {
            let codes = load(&s.symbols[first + scan * s.step..][..2 * starts.len()]);
            let (low, high) = (look_up(codes, &tables[0]), look_up(codes, &tables[1]));
            // Eight keys in each quarter, of even and of odd lines.
            let halves = [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)];
            let out = &mut out[scan * scan_stride..];
            // A loop of a known length is unrolled.
            if let Some(eight) = eight {
                eight.iter().enumerate().for_each(|(i, starts)| store(counts(&halves, i), starts, out));
                continue;
            }
            lines.iter().enumerate().for_each(|(i, starts)| store(counts(&halves, i), starts, out));
            if !some.is_empty() {
                store_some(counts(&halves, lines.len()), some, out);
            }
        }
        first += 64;
    }
}

/// The nibbles of 16 pairs as counts.
///
/// # Safety
/// AVX-512 F was detected.
#[target_feature(enable = "avx512f")]
#[inline]
fn nibbles(codes: &[u8; 16]) -> __m512i {
    // SAFETY: the array has 16 bytes.
    let pairs = _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(codes.as_ptr().cast()) });
    _mm512_and_si512(_mm512_or_si512(pairs, _mm512_slli_epi32::<12>(pairs)), _mm512_set1_epi32(0x000f_000f))
}

/// As many symbols as there are, at the front of a line's.
#[inline(always)]
fn padded<const N: usize>(from: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| from.get(i).copied().unwrap_or(0))
}

/// Symbols of two counts.
///
/// # Safety
/// As [`write`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
fn pairs(s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    let (lines, some) = s.starts.as_chunks::<4>();
    for scan in 0..s.scans {
        let codes = &s.symbols[s.first + scan * s.step..][..4 * s.starts.len()];
        let out = &mut out[scan * scan_stride..];
        let (whole, rest) = codes.as_chunks::<16>();
        for (codes, starts) in whole.iter().zip(lines) {
            store(nibbles(codes), starts, out);
        }
        if !some.is_empty() {
            store_some(nibbles(&padded(rest)), some, out);
        }
    }
}

/// How raw bits become low parts.
struct Low {
    /// Of the raw bytes of four groups: for each four counts, the eight bytes that their group's bits begin in; at which bit
    /// each count begins; and which bits are its own.
    bytes: __m512i,
    bits: __m512i,
    mask: __m512i,
}

impl Low {
    /// # Safety
    /// AVX-512 F and BW were detected.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(shift: usize) -> Self {
        let bytes: [u8; 64] = std::array::from_fn(|i| (i / 16 * shift + i % 8) as u8);
        // The byte above a count's low one is masked out.
        let bits: [u8; 64] = std::array::from_fn(|i| (i / 2 % 8 * shift) as u8);
        // SAFETY: the arrays have 64 bytes.
        unsafe {
            Self {
                bytes: _mm512_loadu_si512(bytes.as_ptr().cast()),
                bits: _mm512_loadu_si512(bits.as_ptr().cast()),
                mask: _mm512_set1_epi16((1 << shift) - 1),
            }
        }
    }

    /// The low parts of as many groups as `raw`, at most 32 bytes, has.
    ///
    /// # Safety
    /// As [`write`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2")]
    #[inline]
    fn counts(&self, raw: &[u8]) -> __m512i {
        // No more than there may be: a load across the end of a cache's line takes longer.
        let n = raw.len().min(32) as u32;
        let some = u32::MAX.checked_shr(32 - n).unwrap_or(0);
        // SAFETY: only the first `n` bytes are read.
        let raw = unsafe {
            match n {
                0..=16 => _mm512_zextsi128_si512(_mm_maskz_loadu_epi8(some as u16, raw.as_ptr().cast())),
                _ => _mm512_zextsi256_si512(_mm256_maskz_loadu_epi8(some, raw.as_ptr().cast())),
            }
        };
        let raw = _mm512_permutexvar_epi8(self.bytes, raw);
        _mm512_and_si512(_mm512_multishift_epi64_epi8(self.bits, raw), self.mask)
    }
}

/// Symbols of two high parts, with bases and raw low bits.
///
/// # Safety
/// As [`write`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
fn dense(s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    let shift = s.shift.min(8) as usize;
    let low = Low::new(shift);
    let by = _mm_cvtsi32_si128(shift as i32);
    let (lines, some) = s.starts.as_chunks::<4>();
    let (bases, last_bases) = s.bases.as_chunks::<4>();
    let last_bases = std::array::from_fn(|i| last_bases.get(i).copied().unwrap_or_default());
    for scan in 0..s.scans {
        let (codes, last) = s.symbols[s.first + scan * s.step..][..4 * s.starts.len()].as_chunks::<16>();
        let mut raw = match shift {
            0 => &[],
            _ => &s.raw[s.raw_first + scan * s.raw_step..][..shift * s.starts.len()],
        };
        let out = &mut out[scan * scan_stride..];
        let counts = |codes: &[u8; 16], bases: &[[u16; GROUP]; 4], raw: &[u8]| {
            // SAFETY: the array has 64 bytes.
            let bases = unsafe { _mm512_loadu_si512(bases.as_ptr().cast()) };
            let high = _mm512_add_epi16(_mm512_sll_epi16(nibbles(codes), by), bases);
            if shift > 0 { _mm512_add_epi16(high, low.counts(raw)) } else { high }
        };
        for ((codes, starts), bases) in codes.iter().zip(lines).zip(bases) {
            let (now, rest) = raw.split_at(4 * shift);
            store(counts(codes, bases, now), starts, out);
            raw = rest;
        }
        if !some.is_empty() {
            store_some(counts(&padded(last), &last_bases, raw), some, out);
        }
    }
}
