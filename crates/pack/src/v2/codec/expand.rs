//! From symbols to counts in a cube.

#![expect(unsafe_code, reason = "calling functions compiled for AVX2, after asking for it")]

use super::count::Count;
use super::decode::{Escape, Symbols};
use super::level::{Bits, Level, Plain};
use super::placement::{GROUP, Kind, Run};
use super::tuples::Tuple;
use std::ops::Range;

/// Writes the counts of `scans`, the first of them at the beginning of `out`. Group `g` of a scan begins `starts[g]`
/// counts behind the scan's beginning; the last group's counts behind the last pixel are left out.
pub(super) fn expand<T: Count>(
    symbols: &Symbols<'_>,
    scans: Range<usize>,
    out: &mut [T],
    scan_stride: usize,
    starts: &[usize],
    level: Level,
) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx512 => unsafe { expand_avx512(symbols, scans.clone(), out, scan_stride, starts) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 => unsafe { expand_avx2(symbols, scans.clone(), out, scan_stride, starts) },
        _ => with::<T, Plain>(symbols, scans.clone(), out, scan_stride, starts),
    }
    patch(symbols, scans, out, scan_stride, starts);
}

/// # Safety
/// AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn expand_avx2<T: Count>(
    s: &Symbols<'_>,
    scans: Range<usize>,
    out: &mut [T],
    scan_stride: usize,
    starts: &[usize],
) {
    with::<T, super::level::Bmi2>(s, scans, out, scan_stride, starts);
}

/// # Safety
/// AVX-512 F, BW, DQ and VL, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn expand_avx512<T: Count>(
    s: &Symbols<'_>,
    scans: Range<usize>,
    out: &mut [T],
    scan_stride: usize,
    starts: &[usize],
) {
    with::<T, super::level::Bmi2>(s, scans, out, scan_stride, starts);
}

#[inline(always)]
fn with<T: Count, B: Bits>(
    symbols: &Symbols<'_>,
    scans: Range<usize>,
    out: &mut [T],
    scan_stride: usize,
    starts: &[usize],
) {
    let Symbols { placement, shape, .. } = symbols;
    // Groups of eight pixels that all exist.
    let whole = shape.pixels / GROUP;
    for (s, segment) in placement.segments.iter().enumerate() {
        let bases = &symbols.bases[s * placement.groups..][..placement.groups];
        for scan in segment.first.max(scans.start)..segment.end.min(scans.end) {
            let out = &mut out[(scan - scans.start) * scan_stride..];
            for run in placement.runs(segment) {
                let n = run.groups.min(whole.saturating_sub(run.group));
                let codes = codes(symbols, run, scan - segment.first);
                let bases = &bases[run.group..];
                groups::<T, B>(run.kind, codes, &bases[..n], &starts[run.group..][..n], out);
                if n < run.groups {
                    let per = run.kind.tuple.symbols();
                    let codes =
                        (&codes.0[n * per..], codes.1.get(n * run.kind.shift as usize..).unwrap_or_default());
                    let mut last = [T::default(); GROUP];
                    groups::<T, B>(run.kind, codes, &bases[n..=n], &[0], &mut last);
                    let pixels = shape.pixels - whole * GROUP;
                    out[starts[whole]..][..pixels].copy_from_slice(&last[..pixels]);
                }
            }
        }
    }
}

/// The symbols of a run in one scan, and its raw bits with whatever follows.
#[inline(always)]
pub(super) fn codes<'a>(symbols: &Symbols<'a>, run: &Run, within: usize) -> (&'a [u8], &'a [u8]) {
    let first = run.symbols + within * run.symbols_step;
    let raw = if run.kind.shift > 0 { &symbols.raw[run.raw + within * run.raw_step..] } else { &[] };
    (&symbols.symbols[first..][..run.groups * run.kind.tuple.symbols()], raw)
}

/// Writes some whole groups.
#[inline(always)]
fn groups<T: Count, B: Bits>(
    kind: Kind,
    codes: (&[u8], &[u8]),
    bases: &[u32],
    starts: &[usize],
    out: &mut [T],
) {
    let tuples = &kind.tuple.alphabet().tuples;
    if kind.based {
        let mut raw = codes.1;
        for ((codes, start), base) in codes.0.chunks_exact(4).zip(starts).zip(bases) {
            let high = pairs::<B>(codes);
            out[*start..][..GROUP].copy_from_slice(&dense::<T, B>(high, kind.shift, &mut raw, *base));
        }
        return;
    }
    match kind.tuple {
        Tuple::Eight => {
            for (code, start) in codes.0.iter().zip(starts) {
                out[*start..][..GROUP].copy_from_slice(&T::spread(tuples[usize::from(*code)]));
            }
        }
        Tuple::Four => {
            for (codes, start) in codes.0.chunks_exact(2).zip(starts) {
                out[*start..][..GROUP].copy_from_slice(&T::spread(fours(tuples, codes)));
            }
        }
        Tuple::Two => {
            for (codes, start) in codes.0.chunks_exact(4).zip(starts) {
                out[*start..][..GROUP].copy_from_slice(&T::spread(pairs::<B>(codes)));
            }
        }
    }
}

/// Eight counts as bytes, of two symbols.
#[inline(always)]
pub(super) fn fours(tuples: &[u64; 256], codes: &[u8]) -> u64 {
    tuples[usize::from(codes[0])] | tuples[usize::from(codes[1])] << 32
}

/// Eight counts as bytes, of four symbols.
#[inline(always)]
pub(super) fn pairs<B: Bits>(codes: &[u8]) -> u64 {
    B::spread(u64::from(u32::from_le_bytes([codes[0], codes[1], codes[2], codes[3]])), 4)
}

/// Eight bytes from the front; zeros behind the end.
#[inline(always)]
fn eight(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(b) => u64::from_le_bytes(*b),
        None => bytes.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b)),
    }
}

/// Eight counts from their high bits as bytes, their raw bits, and the base. What overflows wraps around.
#[inline(always)]
pub(super) fn dense<T: Count, B: Bits>(high: u64, shift: u32, raw: &mut &[u8], base: u32) -> [T; GROUP] {
    let high = high.to_le_bytes();
    let mut counts: [u32; GROUP] = std::array::from_fn(|i| base.wrapping_add(u32::from(high[i]) << shift));
    let mut left = shift;
    while left > 0 {
        let bits = left.min(8);
        let low = B::spread(eight(raw), bits).to_le_bytes();
        for i in 0..GROUP {
            counts[i] = counts[i].wrapping_add(u32::from(low[i]) << (shift - left));
        }
        *raw = raw.get(bits as usize..).unwrap_or_default();
        left -= bits;
    }
    counts.map(T::narrow)
}

/// Where a tuple that is listed begins in its group, and its counts.
#[inline(always)]
pub(super) fn listed<'a>(
    symbols: &Symbols<'a>,
    escape: &Escape,
) -> (super::placement::Place, usize, &'a [u32]) {
    let place = symbols.placement.place(symbols.kinds, escape.class, escape.symbol);
    let n = symbols.kinds[escape.class].tuple.counts();
    (place, place.index * n, &symbols.escaped[escape.counts..][..n])
}

/// Writes the counts that are listed, over what their symbols stood for.
fn patch<T: Count>(
    symbols: &Symbols<'_>,
    scans: Range<usize>,
    out: &mut [T],
    scan_stride: usize,
    starts: &[usize],
) {
    for escape in symbols.escapes {
        let (place, first, counts) = listed(symbols, escape);
        if !scans.contains(&place.scan) {
            continue;
        }
        let start = (place.scan - scans.start) * scan_stride + starts[place.group] + first;
        let real = symbols.shape.pixels.saturating_sub(place.group * GROUP + first);
        for (i, v) in counts.iter().take(real).enumerate() {
            out[start + i] = T::narrow(*v);
        }
    }
}
