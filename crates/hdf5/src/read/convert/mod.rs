//! Elements as stored to elements as wanted, by libhdf5's rules, but never silently wrong.
//!
//! Integers of any width, byte order, precision and offset, and floats of any layout, become the wanted type. A
//! float becomes an integer by cutting its fraction off. What does not fit is an error that says the value: libhdf5
//! would clamp it. Rounding to the nearest float is not an error, as in libhdf5.

mod fast;
mod float;
mod slow;

use super::element::Kind;
use crate::format::datatype::{Class, Datatype};
use float::FloatForm;
use slow::IntegerForm;
use tensilo_core::{Error, Result};

/// How elements of one datatype become values of one kind.
#[derive(Debug, Clone)]
pub(super) struct Conversion {
    /// Values of the wanted kind in one element (more than one for array types).
    pub(super) items: usize,
    /// Bytes of an element as stored.
    pub(super) stored: usize,
    kind: Kind,
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    /// Stored just as wanted.
    Copy,
    /// Stored as wanted, but in the other byte order.
    Swap(usize),
    /// A plain integer or float on both sides.
    Fast(fast::Convert),
    /// Anything else that is a number.
    Slow(Number),
}

/// The layout of a stored number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Integer(IntegerForm),
    Float(FloatForm),
}

impl Number {
    /// The layout of a numeric datatype; `None` for others.
    fn of(datatype: &Datatype) -> Result<Option<Self>> {
        Ok(match &datatype.class {
            Class::Integer { order, signed, bits } => {
                Some(Self::Integer(IntegerForm::new(datatype.size, *order, *signed, *bits)?))
            }
            Class::Bitfield { order, bits } => {
                Some(Self::Integer(IntegerForm::new(datatype.size, *order, false, *bits)?))
            }
            Class::Float { order, layout, .. } => {
                Some(Self::Float(FloatForm::new(datatype.size, *order, *layout)?))
            }
            Class::Enum { base, .. } => Self::of(base)?,
            _ => None,
        })
    }

    fn size(&self) -> usize {
        match self {
            Self::Integer(form) => form.size,
            Self::Float(form) => form.size,
        }
    }

    /// Is it stored as a Rust type of this kind in little-endian (false) or big-endian (true) order?
    fn plain(&self) -> Option<(Kind, bool)> {
        match self {
            Self::Integer(form) => form.plain(),
            Self::Float(form) => form.plain(),
        }
    }
}

/// Numbers in an element of this type, and their type; complex numbers count as two where `pairs` are wanted.
fn flatten(datatype: &Datatype, pairs: bool) -> Option<(usize, &Datatype)> {
    match &datatype.class {
        Class::Array { dims, base } => {
            let n = dims.iter().try_fold(1_usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?))?;
            let (inner, number) = flatten(base, pairs)?;
            Some((n.checked_mul(inner)?, number))
        }
        Class::Complex { base } if pairs => Some((2, base)),
        Class::Compound { members } if pairs => {
            let [re, im] = members.as_slice() else { return None };
            let (half, float) =
                (u64::from(re.datatype.size), matches!(re.datatype.class, Class::Float { .. }));
            let fits = re.datatype == im.datatype
                && re.offset == 0
                && im.offset == half
                && u64::from(datatype.size) == 2 * half;
            (float && fits).then_some((2, &re.datatype))
        }
        _ if pairs => None,
        _ => Some((1, datatype)),
    }
}

impl Conversion {
    /// Chooses the conversion.
    ///
    /// # Errors
    /// `InvalidArgument` when the datatype is not numeric; `Unsupported` for number layouts that are not known.
    pub(super) fn new(datatype: &Datatype, kind: Kind) -> Result<Self> {
        let none = || {
            Error::invalid(format!("elements of type {datatype} cannot be read as {kind}"))
                .hint("read their bytes instead")
        };
        let (pairs, part) = match kind {
            Kind::Complex(n) => (true, Kind::Float(n)),
            other => (false, other),
        };
        let (numbers, base) = flatten(datatype, pairs).ok_or_else(none)?;
        let number = Number::of(base)?.ok_or_else(none)?;
        let stored = usize::try_from(datatype.size).map_err(|_| none())?;
        if numbers.checked_mul(number.size()) != Some(stored) || stored == 0 {
            return Err(Error::corrupt(format!(
                "elements of {stored} bytes do not hold {numbers} numbers of {}",
                number.size()
            )));
        }
        let how = match number.plain() {
            Some((found, big)) if found == part => match (part.size(), big != cfg!(target_endian = "big")) {
                (1, _) | (_, false) => How::Copy,
                (n, true) => How::Swap(n),
            },
            Some((found, big)) => How::Fast(fast::choose(found, big, part)),
            None => How::Slow(number),
        };
        Ok(Self { items: if pairs { numbers / 2 } else { numbers }, stored, kind, how })
    }

    /// Bytes of one converted element.
    pub(super) fn width(&self) -> usize {
        self.items * self.kind.size()
    }

    /// Are stored bytes just what is wanted?
    pub(super) fn is_copy(&self) -> bool {
        matches!(self.how, How::Copy)
    }

    /// Converts whole elements; `dst` has room for exactly as many.
    ///
    /// # Errors
    /// `InvalidArgument`, saying the value, when one does not fit in the wanted type.
    pub(super) fn convert(&self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        if src.len() / self.stored != dst.len() / self.width() || !src.len().is_multiple_of(self.stored) {
            return Err(Error::invalid("a conversion's buffers do not match"));
        }
        match &self.how {
            How::Copy => dst.copy_from_slice(src),
            How::Swap(n) => {
                for (d, s) in dst.chunks_exact_mut(*n).zip(src.chunks_exact(*n)) {
                    d.copy_from_slice(s);
                    d.reverse();
                }
            }
            How::Fast(convert) => convert(src, dst)?,
            How::Slow(number) => slow::convert(number, self.part(), src, dst)?,
        }
        Ok(())
    }

    fn part(&self) -> Kind {
        match self.kind {
            Kind::Complex(n) => Kind::Float(n),
            other => other,
        }
    }
}

/// A value does not fit in the wanted type.
#[cold]
fn does_not_fit(value: impl std::fmt::Display, kind: Kind) -> Error {
    Error::invalid(format!("the value {value} does not fit in {kind}"))
}
