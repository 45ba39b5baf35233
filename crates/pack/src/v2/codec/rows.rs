//! Rows of counts, as bytes, to symbols and raw bits, 64 counts at a time (AVX-512 with VBMI).

#![expect(unsafe_code, reason = "vector instructions, after asking for them")]

use super::ahead::Ahead;
use super::placement::{GROUP, Kind, Placement, Segment};
use super::tuples::Tuple;
use std::arch::x86_64::*;

/// Groups that are coded at once.
const GROUPS: usize = 8;

/// Up to eight groups of a class in a segment, whose symbols stand one behind the other.
#[derive(Debug, Clone, Copy)]
struct Piece {
    kind: Kind,
    /// Where the groups' counts begin in a row; those behind the last group are the first one's.
    starts: [u64; GROUPS],
    groups: usize,
    /// All eight follow each other.
    together: bool,
    /// First symbols in the segment's first scan, and from one scan to the next; raw bytes likewise.
    symbols: usize,
    symbols_step: usize,
    raw: usize,
    raw_step: usize,
    bases: [[u8; GROUP]; GROUPS],
}

impl Piece {
    fn new(
        kind: Kind,
        groups: impl Iterator<Item = usize> + Clone,
        [symbols, symbols_step]: [usize; 2],
    ) -> Self {
        let first = groups.clone().next().unwrap_or(0);
        let mut starts = [(first * GROUP) as u64; GROUPS];
        let mut n = 0;
        for (start, group) in starts.iter_mut().zip(groups) {
            *start = (group * GROUP) as u64;
            n += 1;
        }
        let together = (0_u64..).zip(starts).all(|(i, start)| start == starts[0] + i * GROUP as u64);
        let bases = [[0; GROUP]; GROUPS];
        Self { kind, starts, groups: n, together, symbols, symbols_step, raw: 0, raw_step: 0, bases }
    }
}

/// Pieces of a segment: memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Pieces(Vec<Piece>);

/// A block's counts and where its symbols and raw bits go.
#[derive(Debug)]
pub(super) struct Coding<'a> {
    pub placement: &'a Placement,
    pub kinds: &'a [Kind],
    pub pieces: &'a mut Pieces,
    pub symbols: &'a mut [u8],
    pub raw: &'a mut [u8],
}

/// Codes all units of a segment. Rows begin with the segment's first scan; bases are those of its groups. Counts with a
/// base are below 255, so that no shift is above 6.
///
/// # Safety
/// AVX-512 F, BW, DQ, VL and VBMI, AVX2, BMI1 and BMI2 were detected.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn symbols(
    rows: &[u8],
    stride: usize,
    (number, segment): (usize, &Segment),
    bases: &[u32],
    coding: Coding<'_>,
    next: &mut dyn Ahead,
) {
    let Coding { placement, kinds, pieces: Pieces(pieces), symbols, raw } = coding;
    pieces.clear();
    for (class, kind) in kinds.iter().enumerate().filter(|(_, kind)| !kind.based) {
        let (members, first) = placement.members(number, class);
        let per = kind.tuple.symbols();
        for (i, groups) in members.chunks(GROUPS).enumerate() {
            let place = [first + i * GROUPS * per, members.len() * per];
            pieces.push(Piece::new(*kind, groups.iter().map(|g| usize::from(*g)), place));
        }
    }
    for run in placement.runs(segment).iter().filter(|run| run.kind.based) {
        for first in (0..run.groups).step_by(GROUPS) {
            let groups = run.group + first..run.group + run.groups.min(first + GROUPS);
            let place = [run.symbols + first * run.kind.tuple.symbols(), run.symbols_step];
            let mut piece = Piece::new(run.kind, groups.clone(), place);
            (piece.raw, piece.raw_step) = (run.raw + first * run.kind.shift as usize, run.raw_step);
            for (to, base) in piece.bases.iter_mut().zip(&bases[groups]) {
                *to = [*base as u8; GROUP];
            }
            pieces.push(piece);
        }
    }
    // Half of what comes next is copied here, the other half while symbols are coded.
    let copied = next.left().div_ceil(2 * (rows.len() / stride).max(1));
    for (scan, row) in rows.chunks_exact(stride).enumerate() {
        next.copy(copied);
        for piece in pieces.iter() {
            let first = piece.symbols + scan * piece.symbols_step;
            let to = &mut symbols[first..][..piece.groups * piece.kind.tuple.symbols()];
            let counts = fetch(row, piece);
            match piece.kind.tuple {
                _ if piece.kind.based => {
                    let n = piece.groups * piece.kind.shift as usize;
                    let raw = &mut raw[piece.raw + scan * piece.raw_step..][..n];
                    dense(counts, piece, to, raw);
                }
                Tuple::Eight => eights(counts, to),
                Tuple::Four => fours(counts, to),
                Tuple::Two => pairs(counts, to),
            }
        }
    }
}

/// The counts of eight groups.
///
/// # Safety
/// AVX-512 F was detected.
#[target_feature(enable = "avx512f")]
#[inline]
fn fetch(row: &[u8], piece: &Piece) -> __m512i {
    if piece.together {
        let counts = &row[piece.starts[0] as usize..][..GROUPS * GROUP];
        // SAFETY: the slice has 64 bytes.
        return unsafe { _mm512_loadu_si512(counts.as_ptr().cast()) };
    }
    let groups = piece.starts.map(|start| {
        let group = row[start as usize..].first_chunk().expect("a row has every group");
        i64::from_le_bytes(*group)
    });
    // SAFETY: the array has 64 bytes.
    unsafe { _mm512_loadu_si512(groups.as_ptr().cast()) }
}

/// Stores the first bytes of a vector, as many as there is room for.
///
/// # Safety
/// AVX-512 F, BW and VL were detected.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn store(bytes: __m256i, to: &mut [u8]) {
    let n = to.len().min(32) as u32;
    // SAFETY: only the first `n` bytes are written.
    unsafe {
        _mm256_mask_storeu_epi8(to.as_mut_ptr().cast(), u32::MAX.checked_shr(32 - n).unwrap_or(0), bytes);
    }
}

/// Looks up 16 keys of 16 bits; symbols of tuples that are `large` are 255.
///
/// # Safety
/// AVX-512 F, BW and VL were detected.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn look_up(keys: __m512i, tuple: Tuple, large: __mmask16) -> __m256i {
    let table = tuple.alphabet().padded().as_ptr().cast();
    let keys = _mm512_maskz_mov_epi32(!large, keys);
    // SAFETY: tuples that are not large have keys below 2^16; the table has as many bytes and three more.
    let found = unsafe { _mm512_i32gather_epi32::<1>(keys, table) };
    let symbols = _mm512_mask_mov_epi32(found, large, _mm512_set1_epi32(255));
    _mm256_castsi128_si256(_mm512_cvtepi32_epi8(symbols))
}

/// Pairs of bytes in 16 bits each: the first, and the second times `by`.
///
/// # Safety
/// AVX-512 BW was detected.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn join(bytes: __m512i, by: u8) -> __m512i {
    // The bytes are those below 128.
    _mm512_maddubs_epi16(_mm512_set1_epi16(i16::from_le_bytes([1, by])), bytes)
}

/// Symbols of four counts.
///
/// # Safety
/// As [`symbols`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
#[inline]
fn fours(counts: __m512i, to: &mut [u8]) {
    let large = _mm512_test_epi32_mask(counts, _mm512_set1_epi8(!15));
    let keys = _mm512_madd_epi16(join(counts, 16), _mm512_set1_epi32(0x0100_0001));
    store(look_up(keys, Tuple::Four, large), to);
}

/// Symbols of eight counts.
///
/// # Safety
/// As [`symbols`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
#[inline]
fn eights(counts: __m512i, to: &mut [u8]) {
    let large = _mm512_test_epi64_mask(counts, _mm512_set1_epi8(!3));
    let fours = _mm512_madd_epi16(join(counts, 4), _mm512_set1_epi32(0x0010_0001));
    let keys = _mm512_or_si512(fours, _mm512_srli_epi64::<24>(fours));
    let keys =
        _mm512_castsi256_si512(_mm512_cvtepi64_epi32(_mm512_and_si512(keys, _mm512_set1_epi64(0xffff))));
    // Keys behind the eighth are nothing.
    store(look_up(keys, Tuple::Eight, u16::from(large) | 0xff00), to);
}

/// Symbols of two counts; those of pairs with one above 15 are 255.
///
/// # Safety
/// As [`symbols`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
#[inline]
fn pairs(counts: __m512i, to: &mut [u8]) {
    let large = _mm512_test_epi16_mask(counts, _mm512_set1_epi8(!15));
    let symbols = _mm512_mask_mov_epi16(join(counts, 16), large, _mm512_set1_epi16(255));
    store(_mm512_cvtepi16_epi8(symbols), to);
}

/// Symbols of two high parts, and raw bits.
///
/// # Safety
/// As [`symbols`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
#[inline]
fn dense(counts: __m512i, piece: &Piece, to: &mut [u8], raw: &mut [u8]) {
    let shift = piece.kind.shift.min(6);
    let low_bits = _mm512_set1_epi8((1 << shift) - 1);
    // SAFETY: the array has 64 bytes.
    let bases = unsafe { _mm512_loadu_si512(piece.bases.as_ptr().cast()) };
    let above = _mm512_andnot_si512(low_bits, _mm512_sub_epi8(counts, bases));
    let high = _mm512_srl_epi16(above, _mm_cvtsi32_si128(shift as i32));
    // Below the base: larger than any symbol has.
    let below = _mm512_cmplt_epu8_mask(counts, bases);
    pairs(_mm512_mask_mov_epi8(high, below, _mm512_set1_epi8(-1)), to);
    if shift == 0 {
        return;
    }
    // Low bits of two counts in 16 bits, of four in 32, of eight in 64.
    let twos = join(_mm512_and_si512(counts, low_bits), 1 << shift);
    let fours = _mm512_madd_epi16(twos, _mm512_set1_epi32(1 | 1 << (16 + 2 * shift)));
    let second = _mm512_sll_epi64(_mm512_srli_epi64::<32>(fours), _mm_cvtsi32_si128(4 * shift as i32));
    let words = _mm512_or_si512(_mm512_and_si512(fours, _mm512_set1_epi64(0xffff_ffff)), second);
    let bytes = _mm512_permutexvar_epi8(CLOSE[shift as usize].vector(), words);
    let n = raw.len().min(64) as u32;
    // SAFETY: only the first `n` bytes are written.
    unsafe {
        _mm512_mask_storeu_epi8(raw.as_mut_ptr().cast(), u64::MAX.checked_shr(64 - n).unwrap_or(0), bytes);
    }
}

/// Replaces each symbol by what a table says.
///
/// # Safety
/// AVX-512 F, BW, VL and VBMI were detected.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn replace(symbols: &mut [u8], plain: &[u8; 256]) {
    // SAFETY: the table has 256 bytes.
    let table: [__m512i; 4] =
        std::array::from_fn(|i| unsafe { _mm512_loadu_si512(plain.as_ptr().add(64 * i).cast()) });
    let (chunks, rest) = symbols.as_chunks_mut::<64>();
    for chunk in chunks {
        // SAFETY: the chunk has 64 bytes.
        unsafe {
            let v = _mm512_loadu_si512(chunk.as_ptr().cast());
            let low = _mm512_permutex2var_epi8(table[0], v, table[1]);
            let high = _mm512_permutex2var_epi8(table[2], v, table[3]);
            let found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high);
            _mm512_storeu_si512(chunk.as_mut_ptr().cast(), found);
        }
    }
    rest.iter_mut().for_each(|s| *s = plain[usize::from(*s)]);
}

#[repr(align(64))]
struct Places([u8; 64]);

impl Places {
    /// # Safety
    /// AVX-512 F was detected.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn vector(&self) -> __m512i {
        // SAFETY: the array has 64 bytes.
        unsafe { _mm512_loadu_si512(self.0.as_ptr().cast()) }
    }
}

/// For each shift: the first bytes, as many as the shift, of each of eight words.
static CLOSE: [Places; 7] = {
    let mut out = [const { Places([0; 64]) }; 7];
    let mut shift = 1;
    while shift < 7 {
        let mut i = 0;
        while i < 8 * shift {
            out[shift].0[i] = (i / shift * 8 + i % shift) as u8;
            i += 1;
        }
        shift += 1;
    }
    out
};
