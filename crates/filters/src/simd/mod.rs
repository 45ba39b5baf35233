//! Fast kernels, chosen at run time, each beside the safe code that does the same.
//!
//! All unsafe code of this crate is here: [`bytes`] turns byte planes into elements and back, [`bits`] turns
//! bit planes into bytes and back, [`lz4`] decodes LZ4 blocks, [`copies`] copies for all LZ77 decoders,
//! [`adler`] sums up, [`places`] finds bytes, [`hashes`] finds earlier places, [`literals`] joins codes. The public functions of each file are safe: they check every bound, hand whole tiles to a
//! kernel and finish the rest with the safe twin.

pub(crate) mod adler;
pub(crate) mod bits;
pub(crate) mod bytes;
pub(crate) mod copies;
pub(crate) mod hashes;
pub(crate) mod literals;
pub(crate) mod lz4;
pub(crate) mod places;

/// The best instruction set that this machine offers and that kernels exist for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Safe code only.
    Safe,
    /// x86-64 with AVX2 and BMI2.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL, VBMI, GFNI, AVX2 and BMI2.
    Avx512,
}

/// Detects the level; the standard library caches the answer.
#[inline]
pub(crate) fn level() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi2")
        {
            return Level::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            return Level::Avx2;
        }
    }
    Level::Safe
}

/// Every level that this machine can run, for tests that compare them.
#[cfg(test)]
pub(crate) fn levels() -> Vec<Level> {
    [Level::Safe, Level::Avx2, Level::Avx512].into_iter().filter(|l| *l <= level()).collect()
}
