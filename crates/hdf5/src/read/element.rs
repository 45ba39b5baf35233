//! The Rust types that `read` can return.

use bytemuck::Pod;
use half::f16;
use num_complex::Complex;

/// What a Rust type is, for the choice of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Unsigned integer of this many bytes.
    Unsigned(u8),
    /// Signed integer of this many bytes.
    Signed(u8),
    /// IEEE float of this many bytes.
    Float(u8),
    /// Pair of IEEE floats of this many bytes each.
    Complex(u8),
}

impl Kind {
    /// Bytes of one value.
    pub fn size(self) -> usize {
        usize::from(match self {
            Self::Unsigned(n) | Self::Signed(n) | Self::Float(n) => n,
            Self::Complex(n) => 2 * n,
        })
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unsigned(n) => write!(f, "u{}", 8 * n),
            Self::Signed(n) => write!(f, "i{}", 8 * n),
            Self::Float(n) => write!(f, "f{}", 8 * n),
            Self::Complex(n) => write!(f, "complex of f{}", 8 * n),
        }
    }
}

/// A type that dataset elements can be converted to.
pub trait Element: Pod + Send + Sync + Default {
    /// What it is.
    const KIND: Kind;
}

macro_rules! elements {
    ($($type:ty: $kind:expr;)*) => {$(
        impl Element for $type {
            const KIND: Kind = $kind;
        }
    )*};
}

elements! {
    u8: Kind::Unsigned(1);
    u16: Kind::Unsigned(2);
    u32: Kind::Unsigned(4);
    u64: Kind::Unsigned(8);
    i8: Kind::Signed(1);
    i16: Kind::Signed(2);
    i32: Kind::Signed(4);
    i64: Kind::Signed(8);
    f16: Kind::Float(2);
    f32: Kind::Float(4);
    f64: Kind::Float(8);
    Complex<f32>: Kind::Complex(4);
    Complex<f64>: Kind::Complex(8);
}
