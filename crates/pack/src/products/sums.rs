//! Sums over pixels for many scans at once, in 32 bits while a bound proves that they fit.

use tensilo_core::{Error, Result};

/// Weighted sums for each scan of a shard; what does not fit 32 bits any more is moved to 64.
#[derive(Debug)]
pub(super) struct Sums {
    narrow: Vec<u32>,
    /// No narrow sum is larger.
    bound: u64,
    wide: Vec<u64>,
    used: bool,
}

impl Sums {
    pub(super) fn new(scans: usize) -> Self {
        Self { narrow: vec![0; scans], bound: 0, wide: vec![0; scans], used: false }
    }

    /// Adds `weight` times each value; no value is larger than `most`.
    #[inline]
    pub(super) fn add(&mut self, values: &[u16], weight: u32, most: u16) {
        let bound = u64::from(weight) * u64::from(most);
        if bound == 0 {
            return;
        }
        self.used = true;
        if bound > u64::from(u32::MAX) {
            for (to, v) in self.wide.iter_mut().zip(values) {
                *to += u64::from(weight) * u64::from(*v);
            }
            return;
        }
        if self.bound + bound > u64::from(u32::MAX) {
            self.widen();
        }
        self.bound += bound;
        if weight == 1 {
            for (to, v) in self.narrow.iter_mut().zip(values) {
                *to += u32::from(*v);
            }
        } else {
            for (to, v) in self.narrow.iter_mut().zip(values) {
                *to += weight * u32::from(*v);
            }
        }
    }

    fn widen(&mut self) {
        for (wide, narrow) in self.wide.iter_mut().zip(&mut self.narrow) {
            *wide += u64::from(std::mem::take(narrow));
        }
        self.bound = 0;
    }

    /// Adds `weight` times every sum to `to`, and begins again.
    pub(super) fn drain_into(&mut self, weight: u64, to: &mut [u64]) {
        if !self.used {
            return;
        }
        self.widen();
        for (to, wide) in to.iter_mut().zip(&mut self.wide) {
            *to += weight * std::mem::take(wide);
        }
        self.used = false;
    }
}

impl Sums {
    /// Adds every sum to `once` and `weight` times it to `weighted`, and begins again.
    pub(super) fn drain_both(&mut self, weight: u64, once: &mut [u64], weighted: &mut [u64]) {
        if !self.used {
            return;
        }
        self.widen();
        for ((once, weighted), wide) in once.iter_mut().zip(weighted).zip(&mut self.wide) {
            let sum = std::mem::take(wide);
            *once += sum;
            *weighted += weight * sum;
        }
        self.used = false;
    }
}

/// Refuses sums that 64 bits might not hold.
pub(super) fn fits_u64(bound: u128, what: &str) -> Result<()> {
    if bound > u128::from(u64::MAX) {
        return Err(Error::limit(format!("{what} could reach {bound}, which 64 bits do not hold")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_however_large_the_weights() {
        let values = [0_u16, 1, 65535, 40000];
        let mut sums = Sums::new(4);
        let mut expected = [0_u128; 4];
        for weight in [1_u32, 2, 65_537, 70_000, 1 << 20, 1, u32::MAX, 3, 65_537, 65_537] {
            sums.add(&values, weight, 65535);
            for (to, v) in expected.iter_mut().zip(values) {
                *to += u128::from(weight) * u128::from(v);
            }
        }
        let mut found = [5_u64; 4];
        sums.drain_into(3, &mut found);
        assert_eq!(found.map(u128::from), expected.map(|e| 3 * e + 5));
        sums.drain_into(1, &mut found);
        assert_eq!(found.map(u128::from), expected.map(|e| 3 * e + 5), "drained sums are gone");
    }
}
