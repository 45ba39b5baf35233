//! What a second processor is worth while something is measured: on shared machines it may be half of a core that the first
//! one works on, too.

use crate::pack_v2::seconds;
use std::hint::black_box;

/// Rounds of the arithmetic: some milliseconds.
const ROUNDS: u64 = 4_000_000;
/// Chains that do not wait for each other, enough for all of a core's units.
const CHAINS: usize = 8;

/// Additions and multiplications that need no memory.
fn arithmetic() {
    let mut chains: [u64; CHAINS] = std::array::from_fn(|i| black_box(i as u64));
    for _ in 0..ROUNDS {
        for chain in &mut chains {
            *chain = (*chain ^ 0x9e37_79b9).wrapping_mul(5).wrapping_add(*chain >> 7);
        }
    }
    black_box(chains);
}

/// Seconds of the arithmetic by one thread, and by two that do it once each.
pub fn measure() -> [f64; 2] {
    let two = || {
        std::thread::scope(|scope| {
            scope.spawn(arithmetic);
            arithmetic();
        });
    };
    [seconds(1, arithmetic), seconds(1, two)]
}
