//! The datatypes that writers ask for by name: integers, IEEE floats, strings, booleans, complex numbers.

use super::{BitField, ByteOrder, CharacterSet, Class, Datatype, FloatLayout, Member, Normalization};
use super::{Padding, ReferenceKind, StringPadding};
use crate::format::encode::Bound;
use tensilo_core::{Error, Result};

/// Byte order of this machine.
const NATIVE: ByteOrder = if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };

fn all_bits(bytes: u8) -> BitField {
    let precision = u16::from(bytes).saturating_mul(8);
    BitField { offset: 0, precision, low_padding: Padding::Zero, high_padding: Padding::Zero }
}

impl Datatype {
    /// An integer of 1 to 255 bytes, all of its bits significant.
    pub fn integer(bytes: u8, signed: bool, order: ByteOrder) -> Self {
        Self { size: u32::from(bytes), class: Class::Integer { order, signed, bits: all_bits(bytes) } }
    }

    /// An integer in this machine's byte order.
    pub fn native_integer(bytes: u8, signed: bool) -> Self {
        Self::integer(bytes, signed, NATIVE)
    }

    /// An IEEE 754 float from its exponent and mantissa bits; sign, exponent and mantissa fill all bits.
    fn ieee(bytes: u8, exponent_size: u8, mantissa_size: u8, order: ByteOrder) -> Self {
        let bits = all_bits(bytes);
        let layout = FloatLayout {
            internal_padding: Padding::Zero,
            normalization: Normalization::Implied,
            sign_position: mantissa_size.saturating_add(exponent_size),
            exponent_position: mantissa_size,
            exponent_size,
            mantissa_position: 0,
            mantissa_size,
            exponent_bias: (1_u32 << exponent_size.saturating_sub(1).min(31)).saturating_sub(1),
        };
        Self { size: u32::from(bytes), class: Class::Float { order, bits, layout } }
    }

    /// IEEE half precision, 2 bytes.
    pub fn float16(order: ByteOrder) -> Self {
        Self::ieee(2, 5, 10, order)
    }

    /// The upper half of a single: 8 exponent bits, 7 mantissa bits.
    pub fn bfloat16(order: ByteOrder) -> Self {
        Self::ieee(2, 8, 7, order)
    }

    /// IEEE single precision, 4 bytes.
    pub fn float32(order: ByteOrder) -> Self {
        Self::ieee(4, 8, 23, order)
    }

    /// IEEE double precision, 8 bytes.
    pub fn float64(order: ByteOrder) -> Self {
        Self::ieee(8, 11, 52, order)
    }

    /// IEEE half precision in this machine's byte order.
    pub fn native_float16() -> Self {
        Self::float16(NATIVE)
    }

    /// IEEE single precision in this machine's byte order.
    pub fn native_float32() -> Self {
        Self::float32(NATIVE)
    }

    /// IEEE double precision in this machine's byte order.
    pub fn native_float64() -> Self {
        Self::float64(NATIVE)
    }

    /// A string of a fixed size in bytes, padded with NULs.
    pub fn fixed_string(bytes: u32, charset: CharacterSet) -> Self {
        Self { size: bytes, class: Class::String { padding: StringPadding::NullPadded, charset } }
    }

    /// A variable-length UTF-8 string: 16 bytes per element, the text in a global heap.
    pub fn text() -> Self {
        let class = Class::VarString { padding: StringPadding::NullTerminated, charset: CharacterSet::Utf8 };
        Self { size: 16, class }
    }

    /// A variable-length sequence: 16 bytes per element, the items in a global heap.
    pub fn sequence(base: Self) -> Self {
        Self { size: 16, class: Class::VarLen { base: Box::new(base) } }
    }

    /// Arrays of such extents as elements; the base itself without extents.
    ///
    /// # Errors
    /// `Unsupported` for elements of 4 GiB or more.
    pub fn array(base: Self, dims: &[u64]) -> Result<Self> {
        if dims.is_empty() {
            return Ok(base);
        }
        let size = dims.iter().try_fold(u64::from(base.size), |n, d| n.checked_mul(*d));
        let size = size.and_then(|n| u32::try_from(n).ok());
        let size = size.ok_or_else(|| Error::unsupported(format!("array elements of extents {dims:?}")))?;
        Ok(Self { size, class: Class::Array { dims: dims.to_vec(), base: Box::new(base) } })
    }

    /// The enumeration FALSE, TRUE of one byte that h5py uses for booleans.
    pub fn boolean() -> Self {
        let base = Box::new(Self::integer(1, true, ByteOrder::Little));
        let members = vec![(b"FALSE".to_vec(), vec![0]), (b"TRUE".to_vec(), vec![1])];
        Self { size: 1, class: Class::Enum { base, members } }
    }

    /// Do elements contain sequences or strings of variable length?
    pub fn has_variable_length(&self) -> bool {
        match &self.class {
            Class::VarLen { .. } | Class::VarString { .. } => true,
            Class::Array { base, .. } => base.has_variable_length(),
            Class::Compound { members } => members.iter().any(|m| m.datatype.has_variable_length()),
            _ => false,
        }
    }

    /// A complex number as the compound `r`, `i` that h5py uses; `part` is the type of both.
    pub fn complex_compound(part: Self) -> Self {
        let size = part.size.saturating_mul(2);
        let second = u64::from(part.size);
        let members = vec![
            Member { name: b"r".to_vec(), offset: 0, datatype: part.clone() },
            Member { name: b"i".to_vec(), offset: second, datatype: part },
        ];
        Self { size, class: Class::Compound { members } }
    }

    /// A complex number as the bound's releases know it: of its own class from 2.0 on, else as h5py's compound.
    pub fn complex(part: Self, bound: Bound) -> Self {
        if bound < Bound::V200 {
            return Self::complex_compound(part);
        }
        Self { size: part.size.saturating_mul(2), class: Class::Complex { base: Box::new(part) } }
    }

    /// A reference of HDF5 1.12 and newer, to an object, a region or an attribute: 18 bytes.
    pub fn reference() -> Self {
        Self { size: 18, class: Class::Reference(ReferenceKind::Object2) }
    }

    /// A reference to a part of a dataset, of the kind of HDF5 1.0 to 1.10: 12 bytes.
    pub fn region_reference() -> Self {
        Self { size: 12, class: Class::Reference(ReferenceKind::Region) }
    }

    /// A reference to an object: the address of its header, 8 bytes.
    pub fn object_reference() -> Self {
        Self { size: 8, class: Class::Reference(ReferenceKind::Object) }
    }
}
