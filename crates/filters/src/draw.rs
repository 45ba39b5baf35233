//! Numbers that look random and are the same in every run, for tests.

/// A linear congruential generator; the seed is its state.
pub(crate) struct Rng(pub u64);

impl Rng {
    /// A number below `n`, or 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    /// So many bytes below `values`.
    pub fn bytes(&mut self, n: usize, values: usize) -> Vec<u8> {
        (0..n).map(|_| self.below(values) as u8).collect()
    }
}
