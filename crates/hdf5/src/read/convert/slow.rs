//! Numbers that no Rust type stores: odd precisions, offsets and sizes, unusual floats.

use super::fast::{self, Wide};
use super::float::{MOST_BYTES, little};
use super::{Kind, Number, does_not_fit};
use crate::format::datatype::{BitField, ByteOrder};
use tensilo_core::{Error, Result};

/// An integer layout whose bits were checked to lie inside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IntegerForm {
    pub(super) size: usize,
    order: ByteOrder,
    signed: bool,
    offset: u32,
    precision: u32,
}

impl IntegerForm {
    pub(super) fn new(size: u32, order: ByteOrder, signed: bool, bits: BitField) -> Result<Self> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MOST_BYTES {
            return Err(Error::unsupported(format!("integers of {size} bytes")));
        }
        let (offset, precision) = (u32::from(bits.offset), u32::from(bits.precision));
        if size == 0 || precision == 0 || offset + precision > 8 * size as u32 || order == ByteOrder::Vax {
            return Err(Error::corrupt(format!(
                "{precision} bits from bit {offset} on do not fit in an integer of {size} bytes"
            )));
        }
        Ok(Self { size, order, signed, offset, precision })
    }

    /// Is it an integer that Rust has, and in big-endian order?
    pub(super) fn plain(&self) -> Option<(Kind, bool)> {
        let whole = self.offset == 0 && self.precision == 8 * self.size as u32;
        let n = self.size as u8;
        let kind = if self.signed { Kind::Signed(n) } else { Kind::Unsigned(n) };
        (whole && matches!(self.size, 1 | 2 | 4 | 8)).then_some((kind, self.order == ByteOrder::Big))
    }

    /// The value, or its text where it has more than 64 bits.
    fn value(&self, bytes: &[u8]) -> Result<Wide, String> {
        let unused = 128 - self.precision;
        let raw = (little(bytes, self.order) >> self.offset) << unused;
        if self.signed {
            let v = raw as i128 >> unused;
            i64::try_from(v).map(Wide::Signed).map_err(|_| v.to_string())
        } else {
            let v = raw >> unused;
            u64::try_from(v).map(Wide::Unsigned).map_err(|_| v.to_string())
        }
    }
}

/// Converts one number after the other.
pub(super) fn convert(number: &Number, kind: Kind, src: &[u8], dst: &mut [u8]) -> Result<()> {
    let pairs = src.chunks_exact(number.size()).zip(dst.chunks_exact_mut(kind.size()));
    for (bytes, out) in pairs {
        let value = match number {
            Number::Float(form) => Wide::Float(form.value(bytes)),
            Number::Integer(form) => form.value(bytes).map_err(|text| does_not_fit(text, kind))?,
        };
        fast::put(value, kind, out)?;
    }
    Ok(())
}
