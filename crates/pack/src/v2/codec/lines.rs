//! Symbols to 16-bit counts, sixty-four symbols at a time (AVX-512 with VBMI).
//!
//! A *line* is four groups: 32 counts, one vector. Tables of 256 bytes are looked up in registers; a symbol becomes a key
//! of 16 bits, and one shift for each byte of a vector makes counts of it.

#![expect(unsafe_code, reason = "vector instructions, after asking for them")]

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
    pub starts: &'a [usize],
    pub bases: &'a [u32],
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
        Tuple::Four => keyed::<false>(s, out, scan_stride),
        Tuple::Eight => keyed::<true>(s, out, scan_stride),
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

/// Stores up to four groups of counts, each at its own place.
///
/// # Safety
/// AVX-512 F and VL were detected.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn store(counts: __m512i, starts: &[usize], out: &mut [u16]) {
    if let [a, _, _, d] = starts
        && *a + 3 * GROUP == *d
    {
        let to = &mut out[*a..][..LINE];
        // SAFETY: the slice has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), counts) };
        return;
    }
    let groups = [
        _mm512_castsi512_si128(counts),
        _mm512_extracti32x4_epi32::<1>(counts),
        _mm512_extracti32x4_epi32::<2>(counts),
        _mm512_extracti32x4_epi32::<3>(counts),
    ];
    for (start, group) in starts.iter().zip(groups) {
        let to = &mut out[*start..][..GROUP];
        // SAFETY: the slice has 16 bytes.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), group) };
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

/// Symbols of four counts, or of eight.
///
/// # Safety
/// As [`write`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
fn keyed<const EIGHT: bool>(s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    let per = if EIGHT { 1 } else { 2 };
    let keys = keys(if EIGHT { Tuple::Eight } else { Tuple::Four });
    let tables = keys.vectors();
    // For each byte of a group's counts, which bits of the key it begins at: two quarters each of fours, four of eights.
    let shifts = match EIGHT {
        false => _mm512_set1_epi64(0x0c0c_0808_0404_0000),
        true => {
            let (low, high) = (0x0606_0404_0202_0000, 0x0e0e_0c0c_0a0a_0808);
            _mm512_setr_epi64(low, high, low, high, low, high, low, high)
        }
    };
    let mask = _mm512_set1_epi16(if EIGHT { 3 } else { 15 });
    // Which keys of a vector a line is made of, one for each eight bytes.
    let lines: [__m512i; 8] = std::array::from_fn(|i| {
        let first = if EIGHT { 4 * i } else { 8 * (i % 4) } as i64;
        let key = |k: i64| first + if EIGHT { k / 2 } else { k };
        _mm512_setr_epi64(key(0), key(1), key(2), key(3), key(4), key(5), key(6), key(7))
    });
    let mut first = s.first;
    for starts in s.starts.chunks(64 / per) {
        for scan in 0..s.scans {
            let codes = load(&s.symbols[first + scan * s.step..][..starts.len() * per]);
            let (low, high) = (look_up(codes, &tables[0]), look_up(codes, &tables[1]));
            // Eight keys in each quarter, of even and of odd quarters.
            let (even, odd) = (_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high));
            let out = &mut out[scan * scan_stride..];
            let mut starts = starts.chunks(4);
            // Lines of a quarter, one after the other; quarters in turn.
            let quarter = if EIGHT { 2 } else { 1 };
            'all: for i in 0..4 {
                for keys in [even, odd] {
                    for line in &lines[i * quarter..][..quarter] {
                        let Some(starts) = starts.next() else { break 'all };
                        let words = _mm512_permutexvar_epi16(*line, keys);
                        let counts = _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, words), mask);
                        store(counts, starts, out);
                    }
                }
            }
        }
        first += 64;
    }
}

/// The nibbles of up to 16 pairs as counts.
///
/// # Safety
/// AVX-512 F, BW and VL were detected.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn nibbles(codes: &[u8]) -> __m512i {
    let n = codes.len().min(16);
    // SAFETY: only the first `n` bytes are read.
    let codes = unsafe { _mm_maskz_loadu_epi8(((1_u32 << n) - 1) as u16, codes.as_ptr().cast()) };
    let pairs = _mm512_cvtepu8_epi32(codes);
    _mm512_and_si512(_mm512_or_si512(pairs, _mm512_slli_epi32::<12>(pairs)), _mm512_set1_epi32(0x000f_000f))
}

/// Symbols of two counts.
///
/// # Safety
/// As [`write`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
fn pairs(s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    for scan in 0..s.scans {
        let codes = &s.symbols[s.first + scan * s.step..][..4 * s.starts.len()];
        let out = &mut out[scan * scan_stride..];
        for (codes, starts) in codes.chunks(16).zip(s.starts.chunks(4)) {
            store(nibbles(codes), starts, out);
        }
    }
}

/// Symbols of two high parts, with bases and raw low bits.
///
/// # Safety
/// As [`write`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
fn dense(s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    let shift = s.shift.min(8) as usize;
    // Of the raw bytes of four groups: which eight each group's bits begin in, and at which bit each count's begin.
    let mut bytes = [0_u8; 32];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = (i / 8 * shift + i % 8) as u8;
    }
    let bits = (0..8).fold(0_u64, |bits, i| bits | (i * shift as u64) << (8 * i));
    // SAFETY: the array has 32 bytes.
    let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    let (bits, low_bits) = (_mm256_set1_epi64x(bits as i64), _mm256_set1_epi8(((1_u32 << shift) - 1) as i8));
    let by = _mm_cvtsi32_si128(shift as i32);
    for (line, (starts, bases)) in s.starts.chunks(4).zip(s.bases.chunks(4)).enumerate() {
        let mut each = [0_u16; LINE];
        each.as_chunks_mut::<GROUP>()
            .0
            .iter_mut()
            .zip(bases)
            .for_each(|(to, base)| *to = [*base as u16; GROUP]);
        // SAFETY: the array has 64 bytes.
        let bases = unsafe { _mm512_loadu_si512(each.as_ptr().cast()) };
        for scan in 0..s.scans {
            let codes = &s.symbols[s.first + scan * s.step + 16 * line..][..4 * starts.len()];
            let mut counts = _mm512_add_epi16(_mm512_sll_epi16(nibbles(codes), by), bases);
            if shift > 0 {
                let at = s.raw_first + scan * s.raw_step + 4 * shift * line;
                let raw = &s.raw[at..][..shift * starts.len()];
                let n = raw.len() as u32;
                // SAFETY: only the first `n` bytes are read, which are 32 at most.
                let raw = unsafe { _mm256_maskz_loadu_epi8(u32::MAX >> (32 - n), raw.as_ptr().cast()) };
                let eights = _mm256_permutexvar_epi8(bytes, raw);
                let low = _mm256_and_si256(_mm256_multishift_epi64_epi8(bits, eights), low_bits);
                counts = _mm512_add_epi16(counts, _mm512_cvtepu8_epi16(low));
            }
            store(counts, starts, &mut out[scan * scan_stride..]);
        }
    }
}
