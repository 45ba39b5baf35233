//! Encodes one scanline of an szip stream.

use super::Coding;
use crate::bitstream::BitWriter;

/// The largest sum of a pair that the second extension codes here; the codes stay below those readers allow.
const MOST_PAIR: u32 = 12;

/// Writes the samples of `line`, a whole number of blocks.
pub(super) fn scanline(coding: &Coding, line: &[u32], bits: &mut BitWriter) {
    let coded = if coding.differences { differences(coding.most(), line) } else { line.to_vec() };
    let total = coded.len() / coding.block;
    let mut here = 0;
    while here < total {
        let at = here * coding.block;
        let block = &coded[at..at + coding.block];
        let reference = (coding.differences && here == 0).then(|| line[0]);
        let first = usize::from(reference.is_some());
        if block[first..].iter().all(|v| *v == 0) {
            here += zero_blocks(coding, &coded, here, total, reference, bits);
            continue;
        }
        one_block(coding, block, reference, bits);
        here += 1;
    }
}

/// Maps differences to the sample before to numbers without a sign; the first stays 0.
fn differences(most: u32, line: &[u32]) -> Vec<u32> {
    let mut out = vec![0; line.len()];
    for (o, pair) in out[1..].iter_mut().zip(line.windows(2)) {
        let (before, now) = (pair[0], pair[1]);
        let room = before.min(most - before);
        let distance = now.abs_diff(before);
        *o = match (distance <= room, now >= before) {
            (true, true) => 2 * distance,
            (true, false) => 2 * distance - 1,
            (false, _) => room + distance,
        };
    }
    out
}

fn write_reference(coding: &Coding, reference: Option<u32>, bits: &mut BitWriter) {
    if let Some(sample) = reference {
        bits.write(u64::from(sample), coding.bits);
    }
}

/// Writes a run of zero blocks that starts at block `here`; returns its length.
fn zero_blocks(
    coding: &Coding,
    coded: &[u32],
    here: usize,
    total: usize,
    reference: Option<u32>,
    bits: &mut BitWriter,
) -> usize {
    let most = (total - here).min(64 - here % 64);
    let is_zero = |b: usize| coded[b * coding.block..(b + 1) * coding.block].iter().all(|v| *v == 0);
    let run = 1 + (1..most).take_while(|n| is_zero(here + n)).count();
    bits.write(0, coding.id_bits() + 1);
    write_reference(coding, reference, bits);
    bits.unary(match run {
        1..5 => run as u32 - 1,
        _ if run == most => 4,
        _ => run as u32,
    });
    run
}

/// Writes one block in the cheapest way: pairs, split at some bit, or as it is.
fn one_block(coding: &Coding, block: &[u32], reference: Option<u32>, bits: &mut BitWriter) {
    let first = usize::from(reference.is_some());
    let body = &block[first..];
    let kept = if first == 1 { u64::from(coding.bits) } else { 0 };
    let raw_cost = block.len() as u64 * u64::from(coding.bits);
    let (k, split_cost) = cheapest_split(coding, body);
    let pairs_cost = pairs_cost(block).map(|c| c + 1);
    let split_cost = split_cost + kept;
    if pairs_cost.is_some_and(|c| c + kept < split_cost && c + kept < raw_cost) {
        bits.write(1, coding.id_bits() + 1);
        write_reference(coding, reference, bits);
        for pair in block.chunks_exact(2) {
            bits.unary(pair_code(pair));
        }
    } else if split_cost < raw_cost {
        bits.write(u64::from(k) + 1, coding.id_bits());
        write_reference(coding, reference, bits);
        for v in body {
            bits.unary(v >> k);
        }
        if k > 0 {
            for v in body {
                bits.write(u64::from(*v), k);
            }
        }
    } else {
        bits.write(u64::from(coding.raw_id()), coding.id_bits());
        // Differences too stay differences here; only the reference takes its own place.
        write_reference(coding, reference, bits);
        for v in body {
            bits.write(u64::from(*v), coding.bits);
        }
    }
}

/// The split that costs least, and its cost in bits.
fn cheapest_split(coding: &Coding, body: &[u32]) -> (u32, u64) {
    // At most 64 samples of at most 24 bits: sums fit 32 bits. Each split saves at most half of what the one
    // before saved, so costs fall, then rise.
    let count = body.len() as u32;
    let cost = |k: u32| body.iter().map(|v| v >> k).sum::<u32>() + count * (k + 1);
    let last = coding.raw_id() - 2;
    let mean = body.iter().sum::<u32>() / count.max(1);
    let mut best = (32 - mean.leading_zeros()).saturating_sub(1).min(last);
    let mut least = cost(best);
    while best > 0 && cost(best - 1) <= least {
        best -= 1;
        least = cost(best);
    }
    while best < last && cost(best + 1) < least {
        best += 1;
        least = cost(best);
    }
    (best, u64::from(least))
}

fn pair_code(pair: &[u32]) -> u32 {
    let sum = pair[0] + pair[1];
    sum * (sum + 1) / 2 + pair[1]
}

/// What pairs cost in bits, if all of them are small enough.
fn pairs_cost(block: &[u32]) -> Option<u64> {
    let mut cost = 0;
    for pair in block.chunks_exact(2) {
        if pair[0] > MOST_PAIR || pair[1] > MOST_PAIR || pair[0] + pair[1] > MOST_PAIR {
            return None;
        }
        cost += u64::from(pair_code(pair)) + 1;
    }
    Some(cost)
}
