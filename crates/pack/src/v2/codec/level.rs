//! Which instructions kernels may use, and the two bit moves that one of them does in one step.
//!
//! The variable `TENSILO_PACK_LEVEL` (`safe` or `avx2`) caps what is detected, so that a fast machine can measure what
//! slower ones do. Results never depend on the level.

#![expect(unsafe_code, reason = "pext and pdep, after asking for them")]

use std::sync::OnceLock;

/// The best instruction set that this machine offers and that kernels exist for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Safe code only.
    Safe,
    /// x86-64 with AVX2, BMI1 and BMI2.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL besides.
    Avx512,
}

/// The level of this process; asked once.
pub(crate) fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let cap = match std::env::var("TENSILO_PACK_LEVEL").as_deref() {
            Ok("safe") => Level::Safe,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        detected().min(cap)
    })
}

fn detected() -> Level {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            return Level::Avx512;
        }
        return Level::Avx2;
    }
    Level::Safe
}

/// Every level that this machine can run, for tests that compare them.
#[cfg(test)]
pub(crate) fn levels() -> Vec<Level> {
    [Level::Safe, Level::Avx2, Level::Avx512].into_iter().filter(|l| *l <= detected()).collect()
}

/// Moves between eight bytes below 2^w and the same at `w` bits each, the first lowest; `w` from 0 to 8.
pub(super) trait Bits: Copy {
    /// Eight bytes, all below 2^w, to 8 w bits.
    fn squeeze(x: u64, w: u32) -> u64;
    /// Undoes [`squeeze`](Bits::squeeze); bits of `x` above 8 w are ignored.
    fn spread(x: u64, w: u32) -> u64;
}

/// By masks and shifts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

impl Bits for Plain {
    #[inline(always)]
    fn squeeze(x: u64, w: u32) -> u64 {
        const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
        const PAIRS: u64 = 0x0000_ffff_0000_ffff;
        const FOURS: u64 = 0x0000_0000_ffff_ffff;
        let x = (x & BYTES) | ((x & !BYTES) >> (8 - w));
        let x = (x & PAIRS) | ((x & !PAIRS) >> (16 - 2 * w));
        (x & FOURS) | ((x >> 32) << (4 * w))
    }

    #[inline(always)]
    fn spread(x: u64, w: u32) -> u64 {
        let low = |bits: u32| (1_u64 << bits) - 1;
        let (four, two, one) = (low(4 * w), low(2 * w), low(w));
        let two = two | two << 32;
        let one = one | one << 16;
        let one = one | one << 32;
        let x = (x & four) | ((x >> (4 * w)) & four) << 32;
        let x = (x & two) | ((x >> (2 * w)) & two) << 16;
        (x & one) | ((x >> w) & one) << 8
    }
}

/// By the instructions `pext` and `pdep`; only code that was compiled for BMI2, and called after asking, names it.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Bmi2;

#[cfg(target_arch = "x86_64")]
impl Bits for Bmi2 {
    #[inline(always)]
    fn squeeze(x: u64, w: u32) -> u64 {
        // SAFETY: the callers are compiled for BMI2 and run at `Level::Avx2` or above only, which was detected.
        unsafe { std::arch::x86_64::_pext_u64(x, bytes_below(w)) }
    }

    #[inline(always)]
    fn spread(x: u64, w: u32) -> u64 {
        // SAFETY: as in `squeeze`.
        unsafe { std::arch::x86_64::_pdep_u64(x, bytes_below(w)) }
    }
}

/// The low `w` bits of each byte.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bytes_below(w: u32) -> u64 {
    0x0101_0101_0101_0101 * ((1 << w) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_moves_equal_their_definition_and_each_other() {
        let mut x = 1_u64;
        for round in 0..2000 {
            x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ round;
            for w in 0..=8 {
                let bytes: u64 = (0..8).map(|i| (x >> (8 * i) & ((1 << w) - 1)) << (8 * i)).sum();
                let narrow = (0..8)
                    .fold(0_u128, |n, i| n | u128::from(bytes >> (8 * i) & 255) << (u64::from(w) * i))
                    as u64;
                assert_eq!(Plain::squeeze(bytes, w), narrow, "{bytes:x} at {w}");
                let kept = if w == 8 { x } else { x & ((1 << (8 * w)) - 1) };
                let wide: u64 =
                    (0..8).map(|i| (kept >> (u64::from(w) * i) & ((1 << w) - 1)) << (8 * i)).sum();
                assert_eq!(Plain::spread(x, w), wide, "{x:x} at {w}");
                #[cfg(target_arch = "x86_64")]
                if detected() >= Level::Avx2 {
                    assert_eq!(Bmi2::squeeze(bytes, w), narrow);
                    assert_eq!(Bmi2::spread(x, w), wide);
                }
            }
        }
    }
}
