//! Symbols of eight and of four neighbouring small counts to 16-bit counts: from a table, wherever a group's place is.

use super::lines::Stretch;
use super::placement::GROUP;
use super::tuples::Tuple;

/// Writes a stretch's counts where its symbols stand for four or eight, and have no base.
#[inline(always)]
pub(super) fn write(tuple: Tuple, s: &Stretch<'_>, out: &mut [u16], scan_stride: usize) {
    let (alphabet, per) = (tuple.alphabet(), tuple.symbols());
    for scan in 0..s.scans {
        let codes = &s.symbols[s.first + scan * s.step..][..per * s.starts.len()];
        let out = &mut out[scan * scan_stride..];
        match tuple {
            Tuple::Eight => eights(&alphabet.eights, codes, s.starts, out),
            _ => fours(&alphabet.wide, codes, s.starts, out),
        }
    }
}

/// Writes the counts of groups whose symbols stand for eight each, in one scan.
#[inline(always)]
pub(super) fn eights(table: &[[u16; 8]; 256], codes: &[u8], starts: &[u32], out: &mut [u16]) {
    for (code, start) in codes.iter().zip(starts) {
        let start = *start as usize;
        out[start..start + GROUP].copy_from_slice(&table[usize::from(*code)]);
    }
}

/// Writes the counts of groups whose symbols stand for four each, in one scan.
#[inline(always)]
pub(super) fn fours(table: &[[u16; 4]; 256], codes: &[u8], starts: &[u32], out: &mut [u16]) {
    for (codes, start) in codes.as_chunks::<2>().0.iter().zip(starts) {
        let start = *start as usize;
        let (low, high) = out[start..start + GROUP].split_at_mut(GROUP / 2);
        low.copy_from_slice(&table[usize::from(codes[0])]);
        high.copy_from_slice(&table[usize::from(codes[1])]);
    }
}
