//! Conversions between plain Rust numbers in either byte order: one small loop for each pair of types.

use super::does_not_fit;
use crate::read::element::Kind;
use half::f16;
use tensilo_core::{Error, Result};

/// Converts all numbers of a slice.
pub(super) type Convert = fn(&[u8], &mut [u8]) -> Result<()>;

/// A number that fits in one of three wide types without loss.
#[derive(Clone, Copy)]
pub(super) enum Wide {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl std::fmt::Display for Wide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signed(v) => v.fmt(f),
            Self::Unsigned(v) => v.fmt(f),
            Self::Float(v) => v.fmt(f),
        }
    }
}

trait Source<const N: usize> {
    fn wide(bytes: [u8; N], big: bool) -> Wide;
}

/// A wanted type.
pub(super) trait Target: Copy {
    const KIND: Kind;
    fn from_wide(value: Wide) -> Option<Self>;
    fn put(self, dst: &mut [u8]);
}

macro_rules! source {
    ($($type:ty, $n:literal => $wide:ident as $as:ty;)*) => {$(
        impl Source<$n> for $type {
            #[inline(always)]
            fn wide(bytes: [u8; $n], big: bool) -> Wide {
                let v = if big { <$type>::from_be_bytes(bytes) } else { <$type>::from_le_bytes(bytes) };
                Wide::$wide(<$as>::from(v))
            }
        }
    )*};
}

source! {
    u8, 1 => Unsigned as u64;
    u16, 2 => Unsigned as u64;
    u32, 4 => Unsigned as u64;
    u64, 8 => Unsigned as u64;
    i8, 1 => Signed as i64;
    i16, 2 => Signed as i64;
    i32, 4 => Signed as i64;
    i64, 8 => Signed as i64;
    f16, 2 => Float as f64;
    f32, 4 => Float as f64;
    f64, 8 => Float as f64;
}

macro_rules! integer_target {
    ($($type:ty => $kind:expr;)*) => {$(
        impl Target for $type {
            const KIND: Kind = $kind;

            #[inline(always)]
            fn from_wide(value: Wide) -> Option<Self> {
                match value {
                    Wide::Signed(v) => v.try_into().ok(),
                    Wide::Unsigned(v) => v.try_into().ok(),
                    Wide::Float(v) => {
                        let v = v.trunc();
                        // Both bounds are powers of two (or 0), and so exact.
                        let high = (Self::MAX / 2 + 1) as f64 * 2.0;
                        (v >= Self::MIN as f64 && v < high).then_some(v as Self)
                    }
                }
            }

            #[inline(always)]
            fn put(self, dst: &mut [u8]) {
                dst.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

integer_target! {
    u8 => Kind::Unsigned(1);
    u16 => Kind::Unsigned(2);
    u32 => Kind::Unsigned(4);
    u64 => Kind::Unsigned(8);
    i8 => Kind::Signed(1);
    i16 => Kind::Signed(2);
    i32 => Kind::Signed(4);
    i64 => Kind::Signed(8);
}

macro_rules! float_target {
    ($($type:ty => $kind:expr, $signed:expr, $unsigned:expr, $float:expr;)*) => {$(
        impl Target for $type {
            const KIND: Kind = $kind;

            #[inline(always)]
            fn from_wide(value: Wide) -> Option<Self> {
                let (v, finite): (Self, bool) = match value {
                    Wide::Signed(v) => ($signed(v), true),
                    Wide::Unsigned(v) => ($unsigned(v), true),
                    Wide::Float(v) => ($float(v), v.is_finite()),
                };
                (v.is_finite() || !finite).then_some(v)
            }

            #[inline(always)]
            fn put(self, dst: &mut [u8]) {
                dst.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

float_target! {
    f16 => Kind::Float(2), |v| f16::from_f64(v as f64), |v| f16::from_f64(v as f64), f16::from_f64;
    f32 => Kind::Float(4), |v| v as f32, |v| v as f32, |v| v as f32;
    f64 => Kind::Float(8), |v| v as f64, |v| v as f64, |v| v;
}

fn convert<const N: usize, const BIG: bool, S: Source<N>, D: Target>(
    src: &[u8],
    dst: &mut [u8],
) -> Result<()> {
    let (values, _) = src.as_chunks::<N>();
    for (value, out) in values.iter().zip(dst.chunks_exact_mut(size_of::<D>())) {
        let wide = S::wide(*value, BIG);
        match D::from_wide(wide) {
            Some(v) => v.put(out),
            None => return Err(fail::<D>(wide)),
        }
    }
    Ok(())
}

#[cold]
fn fail<D: Target>(value: Wide) -> Error {
    does_not_fit(value, D::KIND)
}

fn to<const N: usize, const BIG: bool, S: Source<N>>(kind: Kind) -> Convert {
    match kind {
        Kind::Unsigned(1) => convert::<N, BIG, S, u8>,
        Kind::Unsigned(2) => convert::<N, BIG, S, u16>,
        Kind::Unsigned(4) => convert::<N, BIG, S, u32>,
        Kind::Unsigned(_) => convert::<N, BIG, S, u64>,
        Kind::Signed(1) => convert::<N, BIG, S, i8>,
        Kind::Signed(2) => convert::<N, BIG, S, i16>,
        Kind::Signed(4) => convert::<N, BIG, S, i32>,
        Kind::Signed(_) => convert::<N, BIG, S, i64>,
        Kind::Float(2) => convert::<N, BIG, S, f16>,
        Kind::Float(4) | Kind::Complex(4) => convert::<N, BIG, S, f32>,
        Kind::Float(_) | Kind::Complex(_) => convert::<N, BIG, S, f64>,
    }
}

fn from<const BIG: bool>(found: Kind, wanted: Kind) -> Convert {
    match found {
        Kind::Unsigned(1) => to::<1, BIG, u8>(wanted),
        Kind::Unsigned(2) => to::<2, BIG, u16>(wanted),
        Kind::Unsigned(4) => to::<4, BIG, u32>(wanted),
        Kind::Unsigned(_) => to::<8, BIG, u64>(wanted),
        Kind::Signed(1) => to::<1, BIG, i8>(wanted),
        Kind::Signed(2) => to::<2, BIG, i16>(wanted),
        Kind::Signed(4) => to::<4, BIG, i32>(wanted),
        Kind::Signed(_) => to::<8, BIG, i64>(wanted),
        Kind::Float(2) => to::<2, BIG, f16>(wanted),
        Kind::Float(4) | Kind::Complex(4) => to::<4, BIG, f32>(wanted),
        Kind::Float(_) | Kind::Complex(_) => to::<8, BIG, f64>(wanted),
    }
}

/// The loop from stored numbers of kind `found` to numbers of kind `wanted`.
pub(super) fn choose(found: Kind, big: bool, wanted: Kind) -> Convert {
    if big { from::<true>(found, wanted) } else { from::<false>(found, wanted) }
}

/// Writes a wide number as the wanted kind.
pub(super) fn put(value: Wide, kind: Kind, dst: &mut [u8]) -> Result<()> {
    fn one<D: Target>(value: Wide, dst: &mut [u8]) -> Result<()> {
        D::from_wide(value).ok_or_else(|| fail::<D>(value))?.put(dst);
        Ok(())
    }
    match kind {
        Kind::Unsigned(1) => one::<u8>(value, dst),
        Kind::Unsigned(2) => one::<u16>(value, dst),
        Kind::Unsigned(4) => one::<u32>(value, dst),
        Kind::Unsigned(_) => one::<u64>(value, dst),
        Kind::Signed(1) => one::<i8>(value, dst),
        Kind::Signed(2) => one::<i16>(value, dst),
        Kind::Signed(4) => one::<i32>(value, dst),
        Kind::Signed(_) => one::<i64>(value, dst),
        Kind::Float(2) => one::<f16>(value, dst),
        Kind::Float(4) | Kind::Complex(4) => one::<f32>(value, dst),
        Kind::Float(_) | Kind::Complex(_) => one::<f64>(value, dst),
    }
}
