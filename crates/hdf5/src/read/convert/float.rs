//! Floats of any layout, decoded bit by bit.

use super::Kind;
use crate::format::datatype::{ByteOrder, FloatLayout, Normalization};
use tensilo_core::{Error, Result};

/// A float layout whose fields were checked to lie inside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FloatForm {
    pub(super) size: usize,
    order: ByteOrder,
    layout: FloatLayout,
}

/// Most bytes of a number that can be converted.
pub(super) const MOST_BYTES: usize = 16;

impl FloatForm {
    pub(super) fn new(size: u32, order: ByteOrder, layout: FloatLayout) -> Result<Self> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MOST_BYTES {
            return Err(Error::unsupported(format!("floats of {size} bytes")));
        }
        let bits = 8 * size as u32;
        let end = |position: u8, len: u8| u32::from(position) + u32::from(len);
        if size == 0
            || end(layout.sign_position, 1) > bits
            || end(layout.exponent_position, layout.exponent_size) > bits
            || end(layout.mantissa_position, layout.mantissa_size) > bits
            || layout.exponent_size > 31
            || (order == ByteOrder::Vax && !size.is_multiple_of(2))
        {
            return Err(Error::corrupt(format!("a float layout does not fit in {size} bytes: {layout:?}")));
        }
        // The x87 format stores its highest mantissa bit; libhdf5 2.0 writes that it does not.
        let x87 = (layout.exponent_position, layout.exponent_size, layout.mantissa_size) == (64, 15, 64);
        let normalization = if x87 { Normalization::MsbSet } else { layout.normalization };
        Ok(Self { size, order, layout: FloatLayout { normalization, ..layout } })
    }

    /// Is it an IEEE float that Rust has, and in big-endian order?
    pub(super) fn plain(&self) -> Option<(Kind, bool)> {
        let l = &self.layout;
        let (exponent, mantissa, bias) = match self.size {
            2 => (5, 10, 15),
            4 => (8, 23, 127),
            8 => (11, 52, 1023),
            _ => return None,
        };
        let ieee = l.normalization == Normalization::Implied
            && (l.sign_position, l.exponent_position, l.exponent_size)
                == (exponent + mantissa, mantissa, exponent)
            && (l.mantissa_position, l.mantissa_size, l.exponent_bias) == (0, mantissa, bias);
        let big = match self.order {
            ByteOrder::Little => false,
            ByteOrder::Big => true,
            ByteOrder::Vax => return None,
        };
        ieee.then_some((Kind::Float(self.size as u8), big))
    }

    /// The value; rounded to the nearest f64 where it has more bits.
    pub(super) fn value(&self, bytes: &[u8]) -> f64 {
        let l = &self.layout;
        let raw = little(bytes, self.order);
        let field = |position: u8, len: u8| (raw >> position) & low_bits(u32::from(len));
        let negative = field(l.sign_position, 1) == 1;
        let exponent = field(l.exponent_position, l.exponent_size) as i64;
        let mantissa = field(l.mantissa_position, l.mantissa_size);
        let bits = i64::from(l.mantissa_size);
        let bias = i64::from(l.exponent_bias);
        let top = low_bits(u32::from(l.exponent_size)) as i64;
        let vax = self.order == ByteOrder::Vax;
        // E4M3 with bias 7 has no infinity; only all bits set are no number.
        let e4m3 = (l.exponent_size, l.mantissa_size, self.size) == (4, 3, 1);
        let fraction = match l.normalization {
            Normalization::MsbSet => mantissa & low_bits((bits - 1).max(0) as u32),
            _ => mantissa,
        };
        let special = exponent == top && !vax && (!e4m3 || mantissa == 7);
        let value = if special {
            if fraction == 0 { f64::INFINITY } else { f64::NAN }
        } else {
            match l.normalization {
                Normalization::Implied if vax && exponent == 0 => 0.0,
                Normalization::Implied if exponent == 0 => scale(mantissa, 1 - bias - bits),
                Normalization::Implied => scale(mantissa | 1 << bits, exponent - bias - bits),
                Normalization::MsbSet => scale(mantissa, exponent.max(1) - bias - (bits - 1)),
                Normalization::None => scale(mantissa, exponent - bias - bits),
            }
        };
        if negative { -value } else { value }
    }
}

fn low_bits(n: u32) -> u128 {
    1_u128.checked_shl(n).map_or(u128::MAX, |b| b - 1)
}

/// `mantissa` times 2 to the power of `exponent`, in steps that do not over- or underflow early.
fn scale(mantissa: u128, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let mut value = mantissa as f64;
    let mut left = exponent.clamp(-4000, 4000);
    while left != 0 {
        let step = left.clamp(-512, 512);
        value *= 2_f64.powi(step as i32);
        left -= step;
    }
    value
}

/// The bytes of a number as one little-endian integer.
pub(super) fn little(bytes: &[u8], order: ByteOrder) -> u128 {
    let mut a = [0; MOST_BYTES];
    let n = bytes.len().min(MOST_BYTES);
    a[..n].copy_from_slice(&bytes[..n]);
    match order {
        ByteOrder::Little => {}
        ByteOrder::Big => a[..n].reverse(),
        // The 16-bit words are in descending order, their bytes in ascending order.
        ByteOrder::Vax => {
            a[..n].reverse();
            a[..n].as_chunks_mut::<2>().0.iter_mut().for_each(|w| w.reverse());
        }
    }
    u128::from_le_bytes(a)
}
