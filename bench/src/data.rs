//! Data that resembles what users have, the same in every run.

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A Poisson count of small mean.
    pub fn count(&mut self, mean: f64) -> u16 {
        let (mut n, mut left) = (0, self.unit());
        let least = (-mean).exp();
        while left > least {
            left *= self.unit();
            n += 1;
        }
        n
    }
}

/// One detector frame of counts: a bright disc on a faint background.
pub fn detector_counts(rows: usize, columns: usize) -> Vec<u8> {
    let mut random = Random(1);
    let (middle, radius) = (rows as f64 / 2.0, rows as f64 / 6.0);
    let mut out = Vec::with_capacity(rows * columns * 2);
    for row in 0..rows {
        for column in 0..columns {
            let r = (row as f64 - middle).hypot(column as f64 - columns as f64 / 2.0);
            let mean = if r < radius { 9.0 } else { 0.4 * (-r / middle).exp() };
            out.extend(random.count(mean).to_le_bytes());
        }
    }
    out
}

/// A smooth float field with noise in its last bits.
pub fn float_field(n: usize) -> Vec<u8> {
    let mut random = Random(2);
    (0..n).flat_map(|i| (((i as f64 / 311.0).sin() + random.unit() * 1e-3) as f32).to_le_bytes()).collect()
}
