//! Sums over a block's counts, taken from its symbols: no count is put together.

#![expect(unsafe_code, reason = "calling functions compiled for AVX2, after asking for it")]

use super::decode::Symbols;
use super::expand::{codes, dense, fours, listed, pairs};
use super::level::{Bits, Level, Plain};
use super::placement::{GROUP, Kind};
use super::tuples::Tuple;

/// Adds the masked sum of each scan; `mask` has 255 or 0 in a byte for each pixel of each group, one word a group.
pub(super) fn masked(symbols: &Symbols<'_>, mask: &[u64], sums: &mut [u64], level: Level) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx512 if unsafe { super::masks::masked(symbols, mask, sums) } => {}
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 | Level::Avx512 => unsafe { masked_avx2(symbols, mask, sums) },
        _ => masked_with::<Plain>(symbols, mask, sums),
    }
    for escape in symbols.escapes {
        let (place, first, counts) = listed(symbols, escape);
        let chosen = mask[place.group] >> (8 * first);
        let kept = |v: &[u32]| -> u64 {
            let v = v.iter().enumerate();
            v.map(|(i, v)| if chosen >> (8 * i) & 1 == 1 { u64::from(*v) } else { 0 }).sum()
        };
        let stood = stood_for(symbols, escape.class, &place);
        let sum = &mut sums[place.scan];
        *sum = sum.wrapping_add(kept(counts)).wrapping_sub(kept(&stood[first..first + counts.len()]));
    }
}

/// Adds the sum of each pixel over all scans.
pub(super) fn pixels(symbols: &Symbols<'_>, sums: &mut [u64], level: Level) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 | Level::Avx512 => unsafe { pixels_avx2(symbols, sums) },
        _ => pixels_with::<Plain>(symbols, sums),
    }
    for escape in symbols.escapes {
        let (place, first, counts) = listed(symbols, escape);
        let stood = stood_for(symbols, escape.class, &place);
        let sums = sums[place.group * GROUP..].iter_mut().skip(first);
        for ((sum, v), stood) in sums.zip(counts).zip(&stood[first..]) {
            *sum = sum.wrapping_add(u64::from(*v)).wrapping_sub(u64::from(*stood));
        }
    }
}

/// # Safety
/// AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn masked_avx2(symbols: &Symbols<'_>, mask: &[u64], sums: &mut [u64]) {
    masked_with::<super::level::Bmi2>(symbols, mask, sums);
}

/// # Safety
/// AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn pixels_avx2(symbols: &Symbols<'_>, sums: &mut [u64]) {
    pixels_with::<super::level::Bmi2>(symbols, sums);
}

/// The counts that the symbols of a place's group stand for, escapes included.
fn stood_for(symbols: &Symbols<'_>, class: usize, place: &super::placement::Place) -> [u32; GROUP] {
    let segment = &symbols.placement.segments[place.segment];
    let runs = symbols.placement.runs(segment);
    let run = &runs[runs.partition_point(|r| r.group + r.groups <= place.group)];
    let (codes, raw) = codes(symbols, run, place.scan - segment.first);
    let (kind, at) = (symbols.kinds[class], place.group - run.group);
    let codes = &codes[at * kind.tuple.symbols()..];
    let bytes = tuple_bytes::<Plain>(kind.tuple, &kind.tuple.alphabet().tuples, codes);
    let base = symbols.bases[place.segment * symbols.placement.groups + place.group];
    let mut raw = raw.get(at * kind.shift as usize..).unwrap_or_default();
    dense::<u32, Plain>(bytes, kind.shift, &mut raw, base)
}

/// Eight counts, or their high bits, as bytes.
#[inline(always)]
fn tuple_bytes<B: Bits>(tuple: Tuple, tuples: &[u64; 256], codes: &[u8]) -> u64 {
    match tuple {
        Tuple::Eight => tuples[usize::from(codes[0])],
        Tuple::Four => fours(tuples, codes),
        Tuple::Two => pairs::<B>(codes),
    }
}

/// Sum of eight bytes, none above 15.
#[inline(always)]
fn sum_small(bytes: u64) -> u64 {
    bytes.wrapping_mul(0x0101_0101_0101_0101) >> 56
}

#[inline(always)]
fn masked_with<B: Bits>(symbols: &Symbols<'_>, mask: &[u64], sums: &mut [u64]) {
    let placement = symbols.placement;
    for (s, segment) in placement.segments.iter().enumerate() {
        let bases = &symbols.bases[s * placement.groups..][..placement.groups];
        for run in placement.runs(segment) {
            let mask = &mask[run.group..][..run.groups];
            if mask.iter().all(|m| *m == 0) {
                continue;
            }
            for (within, sum) in sums[segment.first..segment.end].iter_mut().enumerate() {
                let codes = codes(symbols, run, within);
                *sum = sum.wrapping_add(masked_run::<B>(run.kind, codes, &bases[run.group..], mask));
            }
        }
    }
}

/// Masked sum of a run in one scan.
#[inline(always)]
fn masked_run<B: Bits>(kind: Kind, (codes, mut raw): (&[u8], &[u8]), bases: &[u32], mask: &[u64]) -> u64 {
    let tuples = &kind.tuple.alphabet().tuples;
    let mut sum = 0_u64;
    if kind.based {
        for ((codes, base), mask) in codes.chunks_exact(4).zip(bases).zip(mask) {
            let counts = dense::<u32, B>(pairs::<B>(codes), kind.shift, &mut raw, *base);
            let mask = mask.to_le_bytes();
            for i in 0..GROUP {
                sum += u64::from(counts[i] & u32::from(mask[i]).wrapping_mul(0x0101_0101));
            }
        }
        return sum;
    }
    match kind.tuple {
        Tuple::Eight => {
            codes.iter().zip(mask).for_each(|(c, m)| sum += sum_small(tuples[usize::from(*c)] & m));
        }
        Tuple::Four => {
            codes.chunks_exact(2).zip(mask).for_each(|(c, m)| sum += sum_small(fours(tuples, c) & m));
        }
        Tuple::Two => {
            codes.chunks_exact(4).zip(mask).for_each(|(c, m)| sum += sum_small(pairs::<B>(c) & m));
        }
    }
    sum
}

#[inline(always)]
fn pixels_with<B: Bits>(symbols: &Symbols<'_>, sums: &mut [u64]) {
    let placement = symbols.placement;
    for (s, segment) in placement.segments.iter().enumerate() {
        let bases = &symbols.bases[s * placement.groups..][..placement.groups];
        for run in placement.runs(segment) {
            let tuples = &run.kind.tuple.alphabet().tuples;
            for at in 0..run.groups {
                let sums = &mut sums[(run.group + at) * GROUP..];
                let base = bases[run.group + at];
                let mut total = [0_u64; GROUP];
                // Bytes of at most 15 are added up to 16 times before they are moved.
                let (mut part, mut added) = (0_u64, 0);
                for within in 0..segment.end - segment.first {
                    let (codes, raw) = codes(symbols, run, within);
                    let codes = &codes[at * run.kind.tuple.symbols()..];
                    if run.kind.based {
                        let mut raw = raw.get(at * run.kind.shift as usize..).unwrap_or_default();
                        let counts = dense::<u32, B>(pairs::<B>(codes), run.kind.shift, &mut raw, base);
                        total.iter_mut().zip(counts).for_each(|(t, v)| *t += u64::from(v));
                        continue;
                    }
                    part += tuple_bytes::<B>(run.kind.tuple, tuples, codes);
                    added += 1;
                    if added == 16 {
                        move_bytes(&mut part, &mut total);
                        added = 0;
                    }
                }
                move_bytes(&mut part, &mut total);
                sums.iter_mut().zip(total).for_each(|(sum, t)| *sum = sum.wrapping_add(t));
            }
        }
    }
}

/// Adds eight bytes to eight sums, and begins again.
#[inline(always)]
fn move_bytes(part: &mut u64, total: &mut [u64; GROUP]) {
    let bytes = std::mem::take(part).to_le_bytes();
    total.iter_mut().zip(bytes).for_each(|(t, b)| *t += u64::from(b));
}
