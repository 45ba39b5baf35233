//! Several sources mixed by weight, in an order that is known at every place.
//!
//! Of every `W` places in a row, `W` being the sum of the weights, each source gets exactly as many as its weight, in
//! a shuffled arrangement. Each source runs through its own epochs, so none of its records comes again before all
//! others came (but for those that stand in the same `W` places).

use crate::permutation::{Key, Permutation};
use crate::shuffle::{EpochOrder, Shuffle};
use tensilo_core::{Error, Result};

const ARRANGEMENT: u64 = 4;
const PART: u64 = 5;

/// Lengths and weights of the sources. Ids count through all of them, one source after the other, as in
/// [`Concat`](tensilo_core::gather::Concat).
///
/// ```
/// use tensilo_loader::Mixture;
/// let mixture = Mixture::new(vec![(1000, 3), (50, 1)])?;
/// assert_eq!(mixture.len(), 1050);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mixture {
    parts: Vec<(u64, u32)>,
    len: u64,
    weights: u64,
}

impl Mixture {
    /// Takes for every source its number of records and its weight; weights are reduced to their smallest numbers.
    ///
    /// # Errors
    /// `InvalidArgument` without a source, or when one is empty or has no weight; `Limit` from 2^64 records on.
    pub fn new(mut parts: Vec<(u64, u32)>) -> Result<Self> {
        if parts.is_empty() {
            return Err(Error::invalid("no source to mix"));
        }
        if let Some(i) = parts.iter().position(|(len, weight)| *len == 0 || *weight == 0) {
            let (len, weight) = parts[i];
            return Err(Error::invalid(format!("source {i} has {len} records and weight {weight}")));
        }
        let divisor = parts.iter().fold(0, |g, (_, weight)| common_divisor(g, *weight));
        parts.iter_mut().for_each(|(_, weight)| *weight /= divisor);
        let len = parts.iter().try_fold(0_u64, |sum, (len, _)| sum.checked_add(*len));
        let len = len.ok_or_else(|| Error::limit("more than 2^64 records"))?;
        let weights = parts.iter().map(|(_, weight)| u64::from(*weight)).sum();
        Ok(Self { parts, len, weights })
    }

    /// Records of all sources together.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never: a source has records.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lengths and weights, as they were reduced.
    pub fn parts(&self) -> &[(u64, u32)] {
        &self.parts
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The order of a mixture.
#[derive(Debug, Clone)]
pub struct MixtureOrder {
    mixture: Mixture,
    seed: u64,
    arrangement: (u64, Permutation),
    epochs: Vec<EpochOrder>,
}

impl MixtureOrder {
    /// The order of a mixture under a seed.
    pub fn new(mixture: Mixture, seed: u64) -> Self {
        let arrangement = (0, Self::arrangement(&mixture, seed, 0));
        let epochs = (0..).zip(&mixture.parts).map(|(i, (len, _))| Self::epoch(*len, seed, i, 0)).collect();
        Self { mixture, seed, arrangement, epochs }
    }

    fn arrangement(mixture: &Mixture, seed: u64, turn: u64) -> Permutation {
        Permutation::new(mixture.weights - 1, Key::new(seed, ARRANGEMENT, turn, 0))
    }

    /// Each source is shuffled with a seed of its own.
    fn epoch(len: u64, seed: u64, part: u64, epoch: u64) -> EpochOrder {
        let own = Permutation::new(u64::MAX, Key::new(seed, PART, 0, 0)).at(part);
        EpochOrder::new(len, own, epoch, Shuffle::Full)
    }

    /// The record at a place; there is one at every place.
    pub fn at(&mut self, place: u64) -> u64 {
        let (turn, within) = (place / self.mixture.weights, place % self.mixture.weights);
        if self.arrangement.0 != turn {
            self.arrangement = (turn, Self::arrangement(&self.mixture, self.seed, turn));
        }
        let mut slot = self.arrangement.1.at(within);
        let mut base = 0;
        let mut found = 0;
        for (i, (len, weight)) in self.mixture.parts.iter().enumerate() {
            if slot < u64::from(*weight) {
                found = i;
                break;
            }
            slot -= u64::from(*weight);
            base += len;
        }
        let (len, weight) = self.mixture.parts[found];
        let local = turn * u64::from(weight) + slot;
        let epoch = local / len;
        let order = &mut self.epochs[found];
        if order.epoch() != epoch {
            *order = Self::epoch(len, self.seed, found as u64, epoch);
        }
        base + order.at(local % len)
    }
}
