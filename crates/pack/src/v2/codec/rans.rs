//! Range coding of symbols (rANS) in many interleaved states.
//!
//! Symbol `i` of a run belongs to state `i % states`. States are 32 bits, never below [`LOW`] between symbols; what
//! grows too large gives up its low 16 bits, which a decoder takes back as soon as a state falls below [`LOW`]. The
//! encoder works from the last symbol to the first, so that the decoder reads forwards: first all states, then words.

use super::level::Level;
use super::model::{SCALE, SCALE_BITS, Slots, Steps};
use super::wide;
use tensilo_core::{Error, Result};

/// States of a large block.
pub(super) const MANY: usize = 32;
/// States of a small one, where those of [`MANY`] would cost too many bytes.
pub(super) const FEW: usize = 4;
/// States before the first symbol that was encoded, and lower bound of all others.
pub(super) const LOW: u32 = 1 << 16;

/// Encodes runs of symbols, the last run first.
#[derive(Debug)]
pub(super) struct Encoder {
    states: [u32; MANY],
    n: usize,
    /// Words are written from the end; those from `at` on are there.
    words: Vec<u16>,
    at: usize,
    level: Level,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { states: [LOW; MANY], n: MANY, words: Vec::new(), at: 0, level: Level::Safe }
    }
}

impl Encoder {
    /// Begins a block with `n` states, [`MANY`] or [`FEW`], of at most `symbols` symbols.
    pub fn begin(&mut self, n: usize, symbols: usize, level: Level) {
        (self.states, self.n, self.level) = ([LOW; MANY], n, level);
        self.words.resize(symbols.max(self.words.len()), 0);
        self.at = self.words.len();
    }

    /// Encodes one run, from its end. Symbols with a frequency of 0 must not occur.
    pub fn run(&mut self, symbols: &[u8], steps: &Steps) {
        let whole = symbols.len() / self.n * self.n;
        for (symbol, state) in symbols[whole..].iter().zip(&mut self.states).rev() {
            *state = step(*state, usize::from(*symbol), steps, &mut self.words, &mut self.at);
        }
        let mut left = &symbols[..whole];
        if self.n == MANY {
            let done = wide::encode(self.level, &mut self.states, steps, left, &mut self.words, &mut self.at);
            left = &left[..left.len() - done];
        }
        for round in left.rchunks_exact(self.n) {
            for (symbol, state) in round.iter().zip(&mut self.states).rev() {
                *state = step(*state, usize::from(*symbol), steps, &mut self.words, &mut self.at);
            }
        }
    }

    /// Appends states and words.
    pub fn finish(&self, out: &mut Vec<u8>) {
        self.states[..self.n].iter().for_each(|s| out.extend_from_slice(&s.to_le_bytes()));
        let words = &self.words[self.at..];
        if cfg!(target_endian = "little") {
            out.extend_from_slice(bytemuck::cast_slice(words));
        } else {
            words.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
        }
    }
}

/// Puts one symbol into a state.
#[inline(always)]
fn step(state: u32, symbol: usize, steps: &Steps, words: &mut [u16], at: &mut usize) -> u32 {
    let (frequency, start) = (steps.ranges[symbol] & 0xffff, steps.ranges[symbol] >> 16);
    let full = state >> 20 >= frequency;
    // Written in any case: cheaper than a branch that nobody can predict. There is a place for each symbol.
    if let Some(word) = words.get_mut(at.wrapping_sub(1)) {
        *word = state as u16;
    }
    *at -= usize::from(full);
    let state = if full { state >> 16 } else { state };
    let quotient = (f64::from(state) * steps.inverses[symbol]) as u32;
    state + quotient * (SCALE - frequency) + start
}

/// Decodes runs of symbols, in order.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    states: [u32; MANY],
    n: usize,
    words: &'a [u8],
    at: usize,
    /// The last words, which are fewer than a round may take, and zeros behind them; once they are what is read from,
    /// how many bytes of words there are.
    tail: [u8; 2 * SLACK],
    in_tail: Option<usize>,
    level: Level,
}

/// Bytes that a round takes at most; kernels look at as many.
pub(super) const SLACK: usize = 2 * MANY;

impl<'a> Decoder<'a> {
    /// Begins with `n` states, [`MANY`] or [`FEW`].
    ///
    /// # Errors
    /// `Corrupt` where the states are missing, or one is too low.
    pub fn new(bytes: &'a [u8], n: usize, level: Level) -> Result<Self> {
        let Some((head, words)) = bytes.split_at_checked(4 * n).filter(|(_, words)| words.len() % 2 == 0)
        else {
            return Err(Error::corrupt("a block ends within its symbols"));
        };
        let mut states = [LOW; MANY];
        for (state, bytes) in states.iter_mut().zip(head.chunks_exact(4)) {
            *state = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            if *state < LOW {
                return Err(Error::corrupt("a state of a block's symbols is too low"));
            }
        }
        Ok(Self { states, n, words, at: 0, tail: [0; 2 * SLACK], in_tail: None, level })
    }

    /// Decodes one run.
    ///
    /// # Errors
    /// `Corrupt` where the words end too early.
    pub fn run(&mut self, slots: &Slots, out: &mut [u8]) -> Result<()> {
        let mut done = self.some(slots, out);
        if done < out.len() && self.in_tail.is_none() {
            let rest = &self.words[self.at..];
            self.tail[..rest.len()].copy_from_slice(rest);
            (self.in_tail, self.at) = (Some(rest.len()), 0);
            done += self.some(slots, &mut out[done..]);
        }
        if done < out.len() || self.in_tail.is_some_and(|n| self.at > n) {
            return Err(Error::corrupt("the symbols of a block end too early"));
        }
        Ok(())
    }

    /// Decodes symbols while there are bytes for another round; tells how many.
    fn some(&mut self, slots: &Slots, out: &mut [u8]) -> usize {
        let Self { states, at, tail, .. } = self;
        let words = self.in_tail.map_or(self.words, |n| &tail[..n + SLACK]);
        if self.n == FEW {
            return run_safely::<FEW>(states, slots, words, at, out);
        }
        let done = wide::rounds(self.level, states, slots, words, at, out);
        done + run_safely::<MANY>(states, slots, words, at, &mut out[done..])
    }

    /// Rounds of 32 symbols of this block, to be decoded together with others'.
    pub fn strand<'s>(&'s mut self, slots: &'s Slots, out: &'s mut [u8]) -> Option<wide::Strand<'s>> {
        let words = self.in_tail.map_or(self.words, |n| &self.tail[..n + SLACK]);
        let strand = wide::Strand { states: &mut self.states, slots, words, at: &mut self.at, out };
        (self.n == MANY).then_some(strand)
    }

    /// Refuses words that are left over and states that are not back where encoding began.
    pub fn finish(self) -> Result<()> {
        let back = self.states[..self.n].iter().all(|s| *s == LOW);
        if self.at != self.in_tail.unwrap_or(self.words.len()) || !back {
            return Err(Error::corrupt("the symbols of a block don't end where they should"));
        }
        Ok(())
    }
}

/// Decodes symbols with the first `N` states, one after the other, while there are bytes for another round; tells how many.
fn run_safely<const N: usize>(
    states: &mut [u32; MANY],
    slots: &Slots,
    words: &[u8],
    at: &mut usize,
    out: &mut [u8],
) -> usize {
    let mut done = 0;
    for symbols in out.chunks_mut(N) {
        let Some(next) = words.get(*at..).and_then(|w| w.first_chunk::<SLACK>()) else { break };
        let mut used = 0;
        for (symbol, state) in symbols.iter_mut().zip(states.iter_mut()) {
            let slot = slots[(*state % SCALE) as usize];
            *symbol = slot as u8;
            let x = (slot >> 20) * (*state >> SCALE_BITS) + (slot >> 8 & 0xfff);
            let low = x < LOW;
            let word = u32::from(u16::from_le_bytes([next[used % SLACK], next[(used + 1) % SLACK]]));
            *state = if low { x << 16 | word } else { x };
            used += 2 * usize::from(low);
        }
        *at += used;
        done += symbols.len();
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::codec::level::levels;
    use crate::v2::codec::model::{counted, fill_slots};

    /// Runs of symbols by several models.
    fn runs() -> Vec<Vec<u8>> {
        let mut x = 7_u64;
        let mut next = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as u32
        };
        let lengths = [5000, 0, 1, 33, 31, 1024, 3000];
        let runs = lengths.iter().enumerate().map(|(kind, n)| {
            let symbol = |r: u32| match kind % 3 {
                0 => (r % 256) as u8,
                1 => (r.trailing_zeros() * 9) as u8,
                _ => u8::from(r.is_multiple_of(3000)),
            };
            (0..*n).map(|_| symbol(next())).collect()
        });
        runs.collect()
    }

    #[test]
    fn quotients_are_whole_at_the_ends_of_every_frequency() {
        let mut f = [0; 256];
        for frequency in 1..SCALE as u16 {
            (f[7], f[9]) = (frequency, SCALE as u16 - frequency);
            let steps = Steps::new(&f);
            let last = (u64::from(frequency) << 20) - 1;
            for quotient in [1, 2, 15, 16, 1 << 10, (1 << 16) - 1, (1 << 20) - 1] {
                for x in [quotient * u64::from(frequency), (quotient + 1) * u64::from(frequency) - 1, last] {
                    let found = (x as f64 * steps.inverses[7]) as u64;
                    assert_eq!(found, x / u64::from(frequency), "{x} / {frequency}");
                }
            }
        }
    }

    #[test]
    fn every_level_encodes_symbols_of_every_frequency_alike() {
        let mut x = 3_u64;
        let mut symbols = vec![0; 15 * MANY];
        for frequency in 1..SCALE as u16 {
            let mut f = [0; 256];
            (f[7], f[9]) = (frequency, SCALE as u16 - frequency);
            for symbol in &mut symbols {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *symbol = if x >> 63 == 0 { 7 } else { 9 };
            }
            let encoded = levels().into_iter().map(|level| {
                let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
                encoder.begin(MANY, symbols.len(), level);
                encoder.run(&symbols, &Steps::new(&f));
                encoder.finish(&mut bytes);
                bytes
            });
            let encoded: Vec<_> = encoded.collect();
            assert!(encoded.iter().all(|bytes| *bytes == encoded[0]), "frequency {frequency}");
        }
    }

    #[test]
    fn every_level_decodes_what_was_encoded_and_only_that() {
        let runs = runs();
        let models: Vec<_> = runs
            .iter()
            .map(|run: &Vec<u8>| {
                let mut histogram = [0; 256];
                histogram[3] = 1;
                histogram[4] = 1;
                run.iter().for_each(|s| histogram[usize::from(*s)] += 1);
                counted(&histogram)
            })
            .collect();
        for n in [MANY, FEW] {
            let encode = |level| {
                let mut encoder = Encoder::default();
                encoder.begin(n, runs.iter().map(Vec::len).sum(), level);
                for (run, model) in runs.iter().zip(&models).rev() {
                    encoder.run(run, &Steps::new(model));
                }
                let mut bytes = Vec::new();
                encoder.finish(&mut bytes);
                bytes
            };
            let bytes = encode(Level::Safe);
            levels().into_iter().for_each(|level| assert_eq!(encode(level), bytes, "{level:?}"));
            let decode = |bytes: &[u8], level| {
                let mut decoder = Decoder::new(bytes, n, level)?;
                let mut all = Vec::new();
                for (run, model) in runs.iter().zip(&models) {
                    let mut slots = [0; SCALE as usize];
                    fill_slots(model, &mut slots);
                    let mut out = vec![0; run.len()];
                    decoder.run(&slots, &mut out)?;
                    all.push(out);
                }
                decoder.finish()?;
                Ok::<_, Error>(all)
            };
            for level in levels() {
                assert_eq!(decode(&bytes, level).unwrap(), runs, "{level:?}");
                for len in 0..bytes.len() {
                    assert!(
                        decode(&bytes[..len], level).is_err(),
                        "{len} of {} bytes, {level:?}",
                        bytes.len()
                    );
                }
            }
            // Damaged words: every level agrees on what they are.
            for at in (4 * n..bytes.len()).step_by(61) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x41;
                let expected = decode(&damaged, Level::Safe).ok();
                for level in levels() {
                    assert_eq!(decode(&damaged, level).ok(), expected, "byte {at}, {level:?}");
                }
            }
        }
    }
}
