//! Masked sums from symbols, 64 at a time (AVX-512 with VBMI): no count is put together.
//!
//! A symbol's counts are fields of four or two bits in two bytes. A mask keeps some of the fields, and what is left is added up
//! field by field. Raw bits are counted where they stand: those of one weight under one mask.

#![expect(unsafe_code, reason = "vector instructions, after asking for them")]

use super::decode::Symbols;
use super::lines::{keys, load, look_up};
use super::placement::{GROUP, Kind};
use super::tuples::Tuple;
use std::arch::x86_64::*;

/// Symbols that are looked at together.
const SYMBOLS: usize = 64;

/// Symbols of a scan that stand one behind the other, and which of their counts belong to the mask.
#[repr(C, align(64))]
struct Piece {
    masks: [[u8; SYMBOLS]; 2],
    kind: Kind,
    /// In the segment's first scan, and from one scan to the next.
    at: usize,
    step: usize,
    n: usize,
}

/// Eight bytes of raw bits, and which of them belong to the mask and have the weight of a bit.
struct Word {
    at: usize,
    step: usize,
    bit: u32,
    mask: u64,
}

impl Piece {
    /// Symbols of some groups; nothing where no count belongs to the mask, which has a byte for each pixel of a group.
    fn new(kind: Kind, [at, step]: [usize; 2], groups: impl Iterator<Item = u64>) -> Option<Self> {
        let (per, bits) = (kind.tuple.symbols(), kind.tuple.bits());
        let mut piece = Self { masks: [[0; SYMBOLS]; 2], kind, at, step, n: 0 };
        for mask in groups {
            let pixels = mask.to_le_bytes();
            for pixels in pixels.chunks_exact(GROUP / per) {
                let fields = pixels
                    .iter()
                    .enumerate()
                    .map(|(i, m)| (u16::from(*m) & ((1 << bits) - 1)) << (bits * i as u32));
                let [low, high] = fields.fold(0, |all, field| all | field).to_le_bytes();
                (piece.masks[0][piece.n], piece.masks[1][piece.n]) = (low, high);
                piece.n += 1;
            }
        }
        piece.masks.iter().flatten().any(|m| *m != 0).then_some(piece)
    }
}

/// Adds the masked sum of each scan, but for what escapes stand for; `mask` has 255 or 0 in a byte for each pixel of each
/// group. False, with nothing added, where a shift is above 8.
///
/// # Safety
/// AVX-512 F, BW, DQ, VL and VBMI, AVX2, BMI1, BMI2 and POPCNT were detected.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn masked(symbols: &Symbols<'_>, mask: &[u64], sums: &mut [u64]) -> bool {
    let placement = symbols.placement;
    if symbols.kinds.iter().any(|kind| kind.shift > 8) {
        return false;
    }
    let (mut pieces, mut words) = (Vec::new(), Vec::new());
    for (s, segment) in placement.segments.iter().enumerate() {
        pieces.clear();
        words.clear();
        for (class, kind) in symbols.kinds.iter().enumerate().filter(|(_, kind)| !kind.based) {
            let (members, first) = placement.members(s, class);
            let per = kind.tuple.symbols();
            for (i, groups) in members.chunks(SYMBOLS / per).enumerate() {
                let place = [first + i * SYMBOLS, members.len() * per];
                pieces.extend(Piece::new(*kind, place, groups.iter().map(|g| mask[usize::from(*g)])));
            }
        }
        let mut constant = 0_u64;
        for run in placement.runs(segment).iter().filter(|run| run.kind.based) {
            let mask = &mask[run.group..][..run.groups];
            for (i, groups) in mask.chunks(SYMBOLS / 4).enumerate() {
                let place = [run.symbols + i * SYMBOLS, run.symbols_step];
                pieces.extend(Piece::new(run.kind, place, groups.iter().copied()));
            }
            let bases = &symbols.bases[s * placement.groups + run.group..];
            for (base, mask) in bases.iter().zip(mask) {
                constant = constant.wrapping_add(u64::from(*base) * u64::from(mask.count_ones() / 8));
            }
            raw_words(run.kind.shift as usize, mask, [run.raw, run.raw_step], &mut words);
        }
        for (within, sum) in sums[segment.first..segment.end].iter_mut().enumerate() {
            let mut total = constant;
            for word in &words {
                let bits = eight(&symbols.raw[word.at + within * word.step..]) & word.mask;
                total = total.wrapping_add(u64::from(bits.count_ones()) << word.bit);
            }
            *sum = sum.wrapping_add(total).wrapping_add(of_pieces(&pieces, symbols.symbols, within));
        }
    }
    true
}

/// Lists the raw bits of some groups, by weight.
fn raw_words(shift: usize, mask: &[u64], [at, step]: [usize; 2], words: &mut Vec<Word>) {
    for bit in 0..shift {
        // Bit `bit` of pixel `i` stands at `i * shift + bit`.
        let mut planes = vec![0_u64; (mask.len() * shift).div_ceil(8)];
        for (group, mask) in mask.iter().enumerate() {
            for pixel in (0..GROUP).filter(|i| mask >> (8 * i) & 1 == 1) {
                let place = (group * GROUP + pixel) * shift + bit;
                planes[place / 64] |= 1 << (place % 64);
            }
        }
        let planes = planes.into_iter().enumerate().filter(|(_, plane)| *plane != 0);
        words.extend(planes.map(|(i, mask)| Word { at: at + 8 * i, step, bit: bit as u32, mask }));
    }
}

/// Up to eight bytes, the first lowest.
#[inline(always)]
fn eight(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Sum of what the symbols of pieces stand for in one scan, bases and raw bits left out.
///
/// # Safety
/// As [`masked`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2")]
#[inline]
fn of_pieces(pieces: &[Piece], symbols: &[u8], within: usize) -> u64 {
    let mut total = _mm512_setzero_si512();
    for piece in pieces {
        let codes = load(&symbols[piece.at + within * piece.step..][..piece.n]);
        // SAFETY: each mask has 64 bytes.
        let masks: [__m512i; 2] =
            std::array::from_fn(|i| unsafe { _mm512_loadu_si512(piece.masks[i].as_ptr().cast()) });
        let sums = match piece.kind.tuple {
            Tuple::Two => nibbles(_mm512_and_si512(codes, masks[0])),
            tuple => {
                let keys = keys(tuple).vectors();
                let [low, high] =
                    [0, 1].map(|half| _mm512_and_si512(look_up(codes, &keys[half]), masks[half]));
                match tuple {
                    Tuple::Eight => nibbles(_mm512_add_epi8(twos(low), twos(high))),
                    _ => _mm512_add_epi8(nibbles(low), nibbles(high)),
                }
            }
        };
        let eights = _mm512_sad_epu8(sums, _mm512_setzero_si512());
        let by = _mm_cvtsi32_si128(piece.kind.shift as i32);
        total = _mm512_add_epi64(total, _mm512_sll_epi64(eights, by));
    }
    _mm512_reduce_add_epi64(total) as u64
}

/// Neighbouring fields of two bits added up to four bits.
///
/// # Safety
/// AVX-512 F was detected.
#[target_feature(enable = "avx512f")]
#[inline]
fn twos(x: __m512i) -> __m512i {
    let fields = _mm512_set1_epi8(0x33);
    _mm512_add_epi32(_mm512_and_si512(x, fields), _mm512_and_si512(_mm512_srli_epi32::<2>(x), fields))
}

/// Both fields of four bits of each byte added up.
///
/// # Safety
/// AVX-512 F and BW were detected.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn nibbles(x: __m512i) -> __m512i {
    let fields = _mm512_set1_epi8(15);
    _mm512_add_epi8(_mm512_and_si512(x, fields), _mm512_and_si512(_mm512_srli_epi32::<4>(x), fields))
}
