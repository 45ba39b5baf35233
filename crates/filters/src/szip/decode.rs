//! Decodes one scanline (a "reference sample interval") of an szip stream.

use super::Coding;
use crate::bitstream::BitReader;
use tensilo_core::{Error, Result};

/// Fills `line`, all blocks of a scanline, with at least `needed` samples; the last scanline of a stream may end
/// early, in whichever block holds the last one.
pub(super) fn scanline(coding: &Coding, bits: &mut BitReader, line: &mut [u32], needed: usize) -> Result<()> {
    let mut at = 0;
    while at < needed {
        let reference = coding.differences && at == 0;
        at += block(coding, bits, line, at, reference)?;
    }
    if coding.differences {
        undo_differences(coding.most(), &mut line[..at]);
    }
    Ok(())
}

/// Decodes one block, or a run of zero blocks, at `at`; returns how many samples it was.
fn block(
    coding: &Coding,
    bits: &mut BitReader,
    line: &mut [u32],
    at: usize,
    reference: bool,
) -> Result<usize> {
    let id = bits.read(coding.id_bits())? as u32;
    if id == coding.raw_id() {
        for sample in &mut line[at..at + coding.block] {
            *sample = bits.read(coding.bits)? as u32;
        }
        return Ok(coding.block);
    }
    if id > 0 {
        let first = take_reference(coding, bits, line, at, reference)?;
        split(bits, id - 1, &mut line[first..at + coding.block])?;
        return Ok(coding.block);
    }
    let pairs = bits.read(1)? == 1;
    let first = take_reference(coding, bits, line, at, reference)?;
    if pairs {
        second_extension(bits, &mut line[at..at + coding.block], reference)?;
        return Ok(coding.block);
    }
    let code = bits.unary()? as usize;
    let here = at / coding.block;
    let left = line.len() / coding.block - here;
    let run = match code {
        0..4 => code + 1,
        // To the end of the segment of 64 blocks, or of the scanline.
        4 => left.min(64 - here % 64),
        _ => code,
    };
    if run > left {
        return Err(Error::corrupt(format!("an szip run of {run} zero blocks passes the scanline's end")));
    }
    let end = at + run * coding.block;
    line[first..end].fill(0);
    Ok(end - at)
}

fn take_reference(
    coding: &Coding,
    bits: &mut BitReader,
    line: &mut [u32],
    at: usize,
    reference: bool,
) -> Result<usize> {
    if reference {
        line[at] = bits.read(coding.bits)? as u32;
    }
    Ok(at + usize::from(reference))
}

/// Samples whose upper bits are coded in unary, all of them first, and whose lower `k` bits follow.
fn split(bits: &mut BitReader, k: u32, samples: &mut [u32]) -> Result<()> {
    for sample in &mut *samples {
        *sample = bits.unary()?;
    }
    if k > 0 {
        for sample in samples {
            *sample = sample.wrapping_shl(k) | bits.read(k)? as u32;
        }
    }
    Ok(())
}

/// The largest sum of a pair that has a code.
const MOST_PAIR: u32 = 12;

/// `PAIRS[code]`: pairs of equal sum follow each other, ordered by their second sample.
static PAIRS: [(u8, u8); 91] = {
    let mut table = [(0, 0); 91];
    let (mut code, mut sum) = (0, 0);
    while sum <= MOST_PAIR as u8 {
        let mut second = 0;
        while second <= sum {
            table[code] = (sum - second, second);
            code += 1;
            second += 1;
        }
        sum += 1;
    }
    table
};

/// Pairs of samples coded as one number.
fn second_extension(bits: &mut BitReader, block: &mut [u32], reference: bool) -> Result<()> {
    let before = block[0];
    for pair in block.chunks_exact_mut(2) {
        let code = bits.unary()? as usize;
        let (first, second) =
            PAIRS.get(code).ok_or_else(|| Error::corrupt("an szip pair is larger than any that is coded"))?;
        pair[0] = u32::from(*first);
        pair[1] = u32::from(*second);
    }
    if reference {
        block[0] = before;
    }
    Ok(())
}

/// Turns mapped differences back into samples; the first one is a sample already.
fn undo_differences(most: u32, line: &mut [u32]) {
    let Some((&mut mut before, rest)) = line.split_first_mut() else { return };
    for sample in rest {
        let coded = *sample;
        // Differences that both signs allow alternate; larger ones go the only way there is.
        let room = before.min(most - before);
        let half = (coded >> 1) + (coded & 1);
        let sign = (coded & 1).wrapping_neg();
        let near = before.wrapping_add((coded >> 1) ^ sign);
        let far = if room == before { coded } else { most.wrapping_sub(coded) };
        let value = if half <= room { near } else { far };
        before = value & most;
        *sample = before;
    }
}
