//! Which model each class of a block has: a fixed one, or a table of what was counted.

#![expect(unsafe_code, reason = "calling a function compiled for AVX-512, after asking for it")]

use super::level::Level;
use super::model::{self, Frequencies, fixed};
#[cfg(target_arch = "x86_64")]
use super::rows;
use super::tuples::ESCAPE;

/// How the symbols of a class are coded.
#[derive(Debug)]
pub(super) enum Model {
    Fixed(usize),
    Counted(Box<Frequencies>),
    Constant(u8),
}

/// Decides each class's model, escapes what a model lacks, and estimates the bytes of all symbols.
#[inline(always)]
pub(super) fn models(
    models: &mut [Model],
    all: &mut [u8],
    starts: &[usize],
    missing: &mut Vec<u32>,
    level: Level,
) -> u64 {
    let mut bits = 0;
    for (chosen, places) in models.iter_mut().zip(starts.windows(2)) {
        let symbols = &mut all[places[0]..places[1]];
        let Model::Fixed(index) = *chosen else { continue };
        let (model, escape) = (&fixed(index).frequencies, usize::from(ESCAPE));
        let some = symbols.len() >= MANY_SYMBOLS;
        let mut histogram = if some { sample(symbols) } else { histogram(symbols) };
        let seen: u64 = histogram.iter().map(|h| u64::from(*h)).sum();
        let scaled = |bits: u64| bits * symbols.len() as u64 / seen.max(1);
        // What a fixed model lacks becomes escapes.
        let mut escaped = histogram;
        let lacking = (0..escape).filter(|s| model[*s] == 0);
        let lost: u32 = lacking.map(|s| std::mem::take(&mut escaped[s])).sum();
        escaped[escape] += lost;
        let theirs = scaled((model::price(&escaped, model) >> 16) + u64::from(lost) * 16);
        let least = if some { scaled(model::entropy(&histogram)) } else { 0 };
        // A table takes some 400 bits where so many symbols occur, and what a sample promises is not quite kept.
        if least > 0 && theirs < least + WORTH {
            escape_missing(symbols, model, missing, level);
            bits += theirs;
            continue;
        }
        let mut distinct = histogram.iter().enumerate().filter(|(_, h)| **h > 0).map(|(s, _)| s as u8);
        let alone = distinct.next().filter(|_| distinct.next().is_none());
        match alone {
            Some(symbol) if symbol != ESCAPE && (!some || symbols.iter().all(|s| *s == symbol)) => {
                *chosen = Model::Constant(symbol);
                continue;
            }
            Some(ESCAPE) | None if seen == 0 || alone.is_some() => histogram[0] += 1,
            _ => {}
        }
        // What a sample lacks becomes escapes as well.
        histogram[escape] += u32::from(some);
        // A table takes 256 bits at least, and more than that in all but the plainest cases.
        let own = (theirs > 512).then(|| {
            let counted = model::counted(&histogram);
            let bits = scaled(model::price(&histogram, &counted) >> 16) + model::written_bits(&counted);
            (bits, counted)
        });
        match own {
            Some((own, counted)) if own + if some { WORTH } else { 0 } < theirs => {
                escape_missing(symbols, &counted, missing, level);
                *chosen = Model::Counted(Box::new(counted));
                bits += own;
            }
            _ => {
                escape_missing(symbols, model, missing, level);
                bits += theirs;
            }
        }
    }
    bits / 8
}

/// Bits that a table must save where it was made of a sample.
const WORTH: u64 = 1600;

/// A fourth of so many symbols is sample enough. Samples of this many bytes are a prime number of bytes apart, so that all
/// pixels have their turn.
const MANY_SYMBOLS: usize = 2048;
const SAMPLE: usize = 128;
const APART: usize = 509;

/// How often each symbol occurs in a sample.
#[inline(always)]
fn sample(symbols: &[u8]) -> [u32; 256] {
    let mut parts = [[0_u32; 256]; 8];
    symbols.chunks(APART).for_each(|part| count(&part[..SAMPLE.min(part.len())], &mut parts));
    total(&parts)
}

/// Makes escapes of symbols that a model lacks.
#[inline(always)]
fn escape_missing(symbols: &mut [u8], model: &Frequencies, missing: &mut Vec<u32>, level: Level) {
    let Some(first) = model.iter().position(|f| *f == 0).filter(|s| *s < usize::from(ESCAPE)) else { return };
    let table: [u8; 256] = std::array::from_fn(|s| if model[s] == 0 { ESCAPE } else { s as u8 });
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx512 => unsafe { rows::replace(symbols, &table) },
        // Mostly the last ones, which are rare.
        _ if first > 64 => {
            missing.clear();
            super::each_from(first as u8, symbols, |at| missing.push(at as u32));
            missing.iter().for_each(|at| symbols[*at as usize] = table[usize::from(symbols[*at as usize])]);
        }
        _ => symbols.iter_mut().for_each(|s| *s = table[usize::from(*s)]),
    }
}

/// How often each symbol occurs.
#[inline(always)]
fn histogram(symbols: &[u8]) -> [u32; 256] {
    let mut parts = [[0_u32; 256]; 8];
    count(symbols, &mut parts);
    total(&parts)
}

/// Counts symbols in eight lists, so that runs of one symbol don't wait for each other.
#[inline(always)]
fn count(symbols: &[u8], parts: &mut [[u32; 256]; 8]) {
    let (words, rest) = symbols.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        for i in 0..8 {
            parts[i][(word >> (8 * i)) as usize & 255] += 1;
        }
    }
    rest.iter().for_each(|s| parts[0][usize::from(*s)] += 1);
}

#[inline(always)]
fn total(parts: &[[u32; 256]; 8]) -> [u32; 256] {
    std::array::from_fn(|s| parts.iter().map(|p| p[s]).sum())
}
