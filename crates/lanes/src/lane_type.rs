//! Element types of a lane, and the Rust types they are read as.

use bytemuck::Pod;
use half::f16;
use tensilo_core::{Error, Result};

/// Element type of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneType {
    /// 16-bit IEEE float (format 2).
    F16,
    /// 32-bit IEEE float.
    F32,
    /// 64-bit IEEE float.
    F64,
    /// 8-bit signed integer (format 2).
    I8,
    /// 16-bit signed integer (format 2).
    I16,
    /// 32-bit signed integer (format 2).
    I32,
    /// 64-bit signed integer (format 2).
    I64,
    /// 8-bit unsigned integer (format 2).
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer (format 2).
    U64,
    /// A byte that is 0 or 1, read as `u8` (format 2).
    Bool,
}

/// All types with name, size in bytes, whether format 1 has them, and NumPy's type string.
const TABLE: [(LaneType, &str, u64, bool, &str); 12] = [
    (LaneType::F16, "f16", 2, false, "<f2"),
    (LaneType::F32, "f32", 4, true, "<f4"),
    (LaneType::F64, "f64", 8, true, "<f8"),
    (LaneType::I8, "i8", 1, false, "|i1"),
    (LaneType::I16, "i16", 2, false, "<i2"),
    (LaneType::I32, "i32", 4, false, "<i4"),
    (LaneType::I64, "i64", 8, false, "<i8"),
    (LaneType::U8, "u8", 1, false, "|u1"),
    (LaneType::U16, "u16", 2, true, "<u2"),
    (LaneType::U32, "u32", 4, true, "<u4"),
    (LaneType::U64, "u64", 8, false, "<u8"),
    (LaneType::Bool, "bool", 1, false, "|b1"),
];

impl LaneType {
    fn row(self) -> &'static (Self, &'static str, u64, bool, &'static str) {
        // Every variant stands in the table (tested), so the first row is never a wrong answer.
        TABLE.iter().find(|r| r.0 == self).unwrap_or(&TABLE[0])
    }

    /// Name in a store's header: `f32`, `u16`, `bool`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Size of one element in bytes.
    pub fn size(self) -> u64 {
        self.row().2
    }

    /// Has format 1 this type?
    pub fn in_v1(self) -> bool {
        self.row().3
    }

    /// NumPy's type string: `<f4`.
    pub fn numpy(self) -> &'static str {
        self.row().4
    }

    /// The type of a name in a store's header.
    ///
    /// # Errors
    /// `InvalidArgument` for any other name.
    pub fn parse(name: &str) -> Result<Self> {
        TABLE.iter().find(|r| r.1 == name).map(|r| r.0).ok_or_else(|| {
            Error::invalid(format!("{name:?} is no lane type"))
                .hint("f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool")
        })
    }

    /// The type of a NumPy type string, little-endian only.
    ///
    /// # Errors
    /// `InvalidArgument` for any other string.
    pub fn from_numpy(text: &str) -> Result<Self> {
        TABLE
            .iter()
            .find(|r| r.4 == text)
            .map(|r| r.0)
            .ok_or_else(|| Error::invalid(format!("NumPy type {text:?} has no lane type")))
    }
}

/// A Rust type that lane elements are read and written as.
pub trait LaneElement: Pod + Default + Send + Sync {
    /// Can a lane of this type be seen as slices of `Self`?
    fn reads(lane: LaneType) -> bool;

    /// The lane type this is written as by default.
    const TYPE: LaneType;

    /// The value as a float, for reductions; 64-bit integers above 2^53 are rounded.
    fn to_f64(self) -> f64;
}

macro_rules! element {
    ($($rust:ty => $($lane:ident)|+, $to:expr;)+) => {$(
        impl LaneElement for $rust {
            fn reads(lane: LaneType) -> bool {
                matches!(lane, $(LaneType::$lane)|+)
            }
            const TYPE: LaneType = element!(@first $($lane)+);
            fn to_f64(self) -> f64 {
                let to: fn($rust) -> f64 = $to;
                to(self)
            }
        }
    )+};
    (@first $lane:ident $($rest:ident)*) => { LaneType::$lane };
}

element! {
    f16 => F16, f64::from;
    f32 => F32, f64::from;
    f64 => F64, |v| v;
    i8 => I8, f64::from;
    i16 => I16, f64::from;
    i32 => I32, f64::from;
    i64 => I64, |v| v as f64;
    u8 => U8 | Bool, f64::from;
    u16 => U16, f64::from;
    u32 => U32, f64::from;
    u64 => U64, |v| v as f64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numpy_strings_lead_back_to_their_type() {
        for (lane, name, size, _, numpy) in TABLE {
            assert_eq!(lane.name(), name);
            assert_eq!(LaneType::parse(name).unwrap(), lane);
            assert_eq!(LaneType::from_numpy(numpy).unwrap(), lane);
            assert_eq!(lane.size(), size);
        }
        assert!(LaneType::parse("f33").is_err());
    }
}
