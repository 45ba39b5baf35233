//! Element types of a source, and how signed ones become the unsigned counts that blocks hold.
//!
//! | source | stored as | mapping |
//! |---|---|---|
//! | uint8, uint16, uint32 | the same width | none |
//! | int8, int16, int32 | the same width, unsigned | zigzag: `u = 2v` for `v >= 0`, `u = -2v - 1` below 0 |
//!
//! Zigzag is a bijection of each width, so that nothing can overflow, and small values stay small whatever their sign.

use super::codec::Count;
use std::fmt;
use tensilo_core::{Error, Result};
use tensilo_hdf5::format::datatype::{ByteOrder, Class, Datatype};

/// The element type of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CountType {
    bytes: u8,
    signed: bool,
}

impl CountType {
    /// A type of 1, 2 or 4 bytes.
    ///
    /// # Errors
    /// `Unsupported` for another width.
    pub fn new(bytes: u32, signed: bool) -> Result<Self> {
        match bytes {
            1 | 2 | 4 => Ok(Self { bytes: bytes as u8, signed }),
            _ => Err(Error::unsupported(format!("counts of {bytes} bytes; 1, 2 and 4 are taken"))),
        }
    }

    /// The type of an HDF5 dataset's elements, whatever their byte order and however many of their bits count.
    ///
    /// # Errors
    /// `Unsupported`, naming the type, for anything but integers of 8, 16 or 32 bits.
    pub(crate) fn of_datatype(datatype: &Datatype) -> Result<Self> {
        match &datatype.class {
            Class::Integer { order: ByteOrder::Little | ByteOrder::Big, signed, .. } => {
                Self::new(datatype.size, *signed)
            }
            Class::Float { .. } => Err(Error::unsupported(format!(
                "values of type float{}; a pack holds integer counts",
                8 * datatype.size
            ))),
            _ => Err(Error::unsupported(format!(
                "values of {} bytes that are no integers; a pack holds integer counts",
                datatype.size
            ))),
        }
    }

    /// Bytes of one value: 1, 2 or 4.
    pub fn bytes(self) -> usize {
        self.bytes.into()
    }

    /// May values be negative?
    pub fn is_signed(self) -> bool {
        self.signed
    }

    /// NumPy's name: `uint16`.
    pub fn name(self) -> &'static str {
        match (self.bytes, self.signed) {
            (1, false) => "uint8",
            (2, false) => "uint16",
            (4, false) => "uint32",
            (1, true) => "int8",
            (2, true) => "int16",
            _ => "int32",
        }
    }

    /// NumPy's type string, little-endian: `<u2`.
    pub fn descr(self) -> &'static str {
        match (self.bytes, self.signed) {
            (1, false) => "|u1",
            (2, false) => "<u2",
            (4, false) => "<u4",
            (1, true) => "|i1",
            (2, true) => "<i2",
            _ => "<i4",
        }
    }
}

impl fmt::Display for CountType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unsigned type that blocks hold: `u8`, `u16` or `u32`.
pub trait Sample: Count {
    /// The zigzag code of the signed value with these bits.
    fn zigzag(self) -> Self;
    /// The bits of the signed value that this is the zigzag code of.
    fn unzigzag(self) -> Self;
    /// The signed value with these bits.
    fn signed(self) -> i64;
}

macro_rules! samples {
    ($($unsigned:ty, $signed:ty;)*) => {$(
        impl Sample for $unsigned {
            #[inline(always)]
            fn zigzag(self) -> Self {
                ((self << 1) as $signed ^ (self as $signed >> (<$signed>::BITS - 1))) as Self
            }

            #[inline(always)]
            fn unzigzag(self) -> Self {
                (self >> 1) ^ (0 as Self).wrapping_sub(self & 1)
            }

            #[inline(always)]
            fn signed(self) -> i64 {
                i64::from(self as $signed)
            }
        }
    )*};
}

samples! {
    u8, i8;
    u16, i16;
    u32, i32;
}

/// Calls generic code with the sample type of a [`CountType`].
macro_rules! with_sample {
    ($counts:expr, $t:ident => $body:expr) => {
        match $counts.bytes() {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            _ => {
                type $t = u32;
                $body
            }
        }
    };
}
pub(crate) use with_sample;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zigzag_is_exact_for_every_value_of_8_and_16_bits_and_the_ends_of_32() {
        for v in i8::MIN..=i8::MAX {
            let code = if v >= 0 { 2 * i16::from(v) } else { -2 * i16::from(v) - 1 };
            assert_eq!(i16::from((v as u8).zigzag()), code);
            assert_eq!((v as u8).zigzag().unzigzag() as i8, v);
        }
        for v in i16::MIN..=i16::MAX {
            let code = if v >= 0 { 2 * i32::from(v) } else { -2 * i32::from(v) - 1 };
            assert_eq!(i32::from((v as u16).zigzag()), code);
            assert_eq!((v as u16).zigzag().unzigzag() as i16, v);
        }
        for v in [i32::MIN, -2, -1, 0, 1, i32::MAX] {
            assert_eq!((v as u32).zigzag().unzigzag() as i32, v);
        }
    }
}
