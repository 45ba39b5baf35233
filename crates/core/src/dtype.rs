//! The fixed-size element types that all stores share.
//!
//! HDF5 says *datatype* for what is in a file; a [`DType`] is what an array in memory holds, little-endian.

use crate::error::{Error, Result};
use bytemuck::Pod;
use std::fmt;
use std::str::FromStr;

/// Type of an array's elements.
///
/// ```
/// use tensilo_core::dtype::DType;
/// let dtype: DType = "<u2".parse()?;
/// assert_eq!((dtype, dtype.size(), dtype.name()), (DType::U16, 2, "uint16".to_owned()));
/// assert_eq!("float32".parse::<DType>()?.numpy(), "<f4");
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// 16-bit IEEE float.
    F16,
    /// 16-bit float with the exponent of a 32-bit one.
    Bf16,
    /// 32-bit IEEE float.
    F32,
    /// 64-bit IEEE float.
    F64,
    /// Two 32-bit floats: real and imaginary part.
    C64,
    /// Two 64-bit floats: real and imaginary part.
    C128,
    /// So many bytes without a meaning; at least one.
    Bytes(u32),
}

/// Type, NumPy's type string, NumPy's name, size in bytes.
const TABLE: [(DType, &str, &str, u64); 15] = [
    (DType::Bool, "|b1", "bool", 1),
    (DType::I8, "|i1", "int8", 1),
    (DType::I16, "<i2", "int16", 2),
    (DType::I32, "<i4", "int32", 4),
    (DType::I64, "<i8", "int64", 8),
    (DType::U8, "|u1", "uint8", 1),
    (DType::U16, "<u2", "uint16", 2),
    (DType::U32, "<u4", "uint32", 4),
    (DType::U64, "<u8", "uint64", 8),
    (DType::F16, "<f2", "float16", 2),
    (DType::Bf16, "<V2", "bfloat16", 2),
    (DType::F32, "<f4", "float32", 4),
    (DType::F64, "<f8", "float64", 8),
    (DType::C64, "<c8", "complex64", 8),
    (DType::C128, "<c16", "complex128", 16),
];

impl DType {
    /// All types but [`Bytes`](Self::Bytes).
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(dtype, ..)| *dtype)
    }

    fn row(self) -> Option<&'static (DType, &'static str, &'static str, u64)> {
        TABLE.iter().find(|(dtype, ..)| *dtype == self)
    }

    /// Size of an element in bytes.
    pub fn size(self) -> u64 {
        match self {
            Self::Bytes(n) => u64::from(n),
            other => other.row().map_or(0, |(.., size)| *size),
        }
    }

    /// NumPy's type string: `<u2`, `|b1`, `|V12`. NumPy has none for [`Bf16`](Self::Bf16); it gets the `<V2` under
    /// which extensions store it, which reads back as two bytes: to keep the type, store [`name`](Self::name).
    pub fn numpy(self) -> String {
        match self {
            Self::Bytes(n) => format!("|V{n}"),
            other => other.row().map_or(String::new(), |(_, text, ..)| (*text).to_owned()),
        }
    }

    /// NumPy's name: `uint16`, `bool`, `void96` (in bits); it reads back as the same type.
    pub fn name(self) -> String {
        match self {
            Self::Bytes(n) => format!("void{}", u64::from(n) * 8),
            other => other.row().map_or(String::new(), |(_, _, name, _)| (*name).to_owned()),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    /// Reads NumPy's type strings (little-endian; single bytes with any order) and names.
    ///
    /// # Errors
    /// `Unsupported` for types that NumPy has and we have not, big-endian ones too; `InvalidArgument` otherwise.
    fn from_str(text: &str) -> Result<Self> {
        if let Some((dtype, ..)) = TABLE.iter().find(|(_, _, name, _)| *name == text) {
            return Ok(*dtype);
        }
        let bad = || Error::invalid(format!("{text:?} is no element type"));
        let digits = |text: &str| -> Option<u32> {
            (!text.starts_with(['0', '+'])).then(|| text.parse().ok()).flatten()
        };
        if let Some(bits) = text.strip_prefix("void") {
            let bits = digits(bits).filter(|b| b % 8 == 0).ok_or_else(bad)?;
            return Ok(Self::Bytes(bits / 8));
        }
        let (order, code) = match text.chars().next() {
            Some(order @ ('<' | '>' | '|' | '=')) => (order, &text[1..]),
            _ => ('=', text),
        };
        let mut chars = code.chars();
        let kind = chars.next().filter(|k| "biufcSUVmMO".contains(*k)).ok_or_else(bad)?;
        let n = digits(chars.as_str()).ok_or_else(bad)?;
        if kind == 'V' {
            return Ok(Self::Bytes(n));
        }
        let plain = TABLE.iter().find(|(_, text, ..)| &text[1..] == code);
        match plain {
            Some((dtype, _, _, 1)) => Ok(*dtype),
            Some((dtype, ..)) if order != '>' && order != '|' => Ok(*dtype),
            Some(_) if order == '|' => Err(bad()),
            _ => Err(Error::unsupported(format!("element type {text:?} is not supported"))),
        }
    }
}

/// A Rust type that arrays of a [`DType`] hold.
pub trait Element: Pod + Send + Sync {
    /// The type's description.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),*) => { $(impl Element for $rust { const DTYPE: DType = DType::$dtype; })* };
}
elements!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    half::f16 => F16, half::bf16 => Bf16, f32 => F32, f64 => F64, [f32; 2] => C64, [f64; 2] => C128);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn every_type_reads_back_from_its_names() {
        for dtype in DType::all().chain([DType::Bytes(1), DType::Bytes(12), DType::Bytes(u32::MAX / 8)]) {
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
            if dtype != DType::Bf16 {
                assert_eq!(dtype.numpy().parse::<DType>().unwrap(), dtype);
            }
        }
        assert_eq!("<V2".parse::<DType>().unwrap(), DType::Bytes(2));
    }

    #[test]
    fn other_spellings_and_other_types_are_told_apart() {
        for (text, dtype) in [
            ("u2", DType::U16),
            ("=f8", DType::F64),
            (">u1", DType::U8),
            ("b1", DType::Bool),
            ("|V3", DType::Bytes(3)),
        ] {
            assert_eq!(text.parse::<DType>().unwrap(), dtype, "{text}");
        }
        for text in [">u2", "<f16", "|S5", "<U3", "<M8", "|O8", "<i3", ">c8"] {
            assert_eq!(text.parse::<DType>().unwrap_err().kind(), ErrorKind::Unsupported, "{text}");
        }
        for text in ["", "u", "u16x", "|u2", "x4", "<", "u-2", "u+2", "u02", "void", "void7", "V0", "é"] {
            assert_eq!(text.parse::<DType>().unwrap_err().kind(), ErrorKind::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn rust_types_have_the_size_of_their_description() {
        fn check<T: Element>() {
            assert_eq!(size_of::<T>() as u64, T::DTYPE.size());
        }
        check::<i8>();
        check::<i16>();
        check::<i32>();
        check::<i64>();
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
        check::<half::f16>();
        check::<half::bf16>();
        check::<f32>();
        check::<f64>();
        check::<[f32; 2]>();
        check::<[f64; 2]>();
    }
}
