//! Stacks of counts whose entropy is known: every pixel of every scan is a Poisson count of a known rate.

use crate::family::{PIXELS, Random, SIDE};
use tensilo_core::buffer;

/// Kinds of stacks.
pub const KINDS: &[&str] =
    &["sparse 0.05", "sparse 0.5", "disk and halo", "dense 40", "constant", "incompressible"];

/// A stack of frames and what its counts are worth.
pub struct Stack {
    pub counts: Vec<u16>,
    /// Bits of all counts, by the rates that they were drawn with.
    pub entropy: f64,
}

/// Poisson counts of many rates, each an e^(1/200) step from the next, drawn by one table each.
struct Rates {
    /// For each rate: 2^32 times the probability that a count is not larger.
    below: Vec<Vec<u32>>,
    entropy: Vec<f64>,
}

const LEAST: f64 = 0.01;
const STEPS: f64 = 200.0;

impl Rates {
    fn new() -> Self {
        let n = ((100.0 / LEAST).ln() * STEPS) as usize + 2;
        let mut rates = Self { below: Vec::new(), entropy: Vec::new() };
        for i in 0..n {
            let rate = LEAST * (i as f64 / STEPS).exp();
            let (mut p, mut sum, mut entropy, mut below) = ((-rate).exp(), 0.0, 0.0, Vec::new());
            for k in 1.. {
                sum += p;
                entropy -= p * p.log2();
                below.push((sum * 4_294_967_296.0).min(4_294_967_295.0) as u32);
                if sum > 1.0 - 1e-11 || k > 250 {
                    break;
                }
                p *= rate / f64::from(k);
            }
            rates.below.push(below);
            rates.entropy.push(entropy);
        }
        rates
    }

    fn nearest(rate: f64) -> usize {
        ((rate / LEAST).ln() * STEPS).round().max(0.0) as usize
    }

    fn draw(&self, rate: usize, random: u32) -> u16 {
        let below = &self.below[rate];
        if below.len() > 24 {
            return below.partition_point(|b| *b <= random) as u16;
        }
        below.iter().take_while(|b| **b <= random).count() as u16
    }
}

/// Draws a stack of 192 × 192 pixels.
pub fn stack(kind: &str, scans: usize) -> Stack {
    let mut counts: Vec<u16> = buffer::zeroed_vec(scans * PIXELS).expect("memory for a stack");
    let mut random = Random::new(17);
    match kind {
        "constant" => counts.fill(7),
        "incompressible" => counts.iter_mut().for_each(|v| *v = (random.next() >> 48) as u16),
        _ => {
            let rates = Rates::new();
            let mut entropy = 0.0;
            for frame in counts.chunks_exact_mut(PIXELS) {
                let bright = 0.75 + 0.5 * (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
                let of_pixel = |p: usize| match kind {
                    "sparse 0.05" => 0.05,
                    "sparse 0.5" => 0.5,
                    "dense 40" => 40.0,
                    _ => bright * disk_and_halo(p),
                };
                for (p, v) in frame.iter_mut().enumerate() {
                    let rate = Rates::nearest(of_pixel(p));
                    entropy += rates.entropy[rate];
                    *v = rates.draw(rate, (random.next() >> 32) as u32);
                }
            }
            return Stack { counts, entropy };
        }
    }
    let entropy = if kind == "constant" { 0.0 } else { 16.0 * (scans * PIXELS) as f64 };
    Stack { counts, entropy }
}

/// The mean of a pixel in the family of `bench pack`.
fn disk_and_halo(p: usize) -> f64 {
    let (y, x) = ((p / SIDE) as f64 - 95.5, (p % SIDE) as f64 - 95.5);
    let r = y.hypot(x);
    if r < 30.0 { 6.0 } else { 0.15 * (-(r - 30.0) / 60.0).exp() }
}

/// The pixels of a bright-field detector: a tenth of all, in a disk.
pub fn bright_field() -> Vec<u8> {
    let inside = |p: usize| {
        let (y, x) = ((p / SIDE) as f64 - 95.5, (p % SIDE) as f64 - 95.5);
        y.hypot(x) < crate::pack_v2_file::RADIUS
    };
    (0..PIXELS).map(|p| u8::from(inside(p))).collect()
}
