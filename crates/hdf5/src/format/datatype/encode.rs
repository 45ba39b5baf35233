//! Datatype message (specification IV.A.2.d), encoded: versions 1 to 5.
//!
//! Numbers and strings have version 1, numbers in VAX order 3. Under `earliest`, what holds other types has version
//! 1 or, around arrays, 2; under newer bounds version 3 (no padding), 4 (the references of 1.12) or 5 (complex numbers)
//! as the bound's libhdf5 writes them, though only those types need the last two.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "lengths of datatypes that we write, each checked for its field"
)]

use super::{BitField, ByteOrder, CharacterSet, Class, Datatype, FloatLayout, Normalization};
use super::{Padding, ReferenceKind, StringPadding};
use crate::format::encode::{Bound, width_of};
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// What stands in front of a datatype's properties.
struct Head {
    class: u8,
    bits: u32,
}

impl Datatype {
    /// The version of the message body when compounds, enumerations and arrays have at least version `floor`:
    /// numbers and strings keep version 1, and what holds other types has at least their version.
    pub fn version_above(&self, floor: u8) -> u8 {
        match &self.class {
            Class::Complex { .. } => 5,
            Class::Reference(ReferenceKind::Object2 | ReferenceKind::Region2 | ReferenceKind::Attribute) => 4,
            Class::Integer { order: ByteOrder::Vax, .. } | Class::Float { order: ByteOrder::Vax, .. } => 3,
            Class::Array { base, .. } => base.version_above(floor).max(floor).max(2),
            Class::Enum { base, .. } => base.version_above(floor).max(floor),
            Class::VarLen { base } => base.version_above(floor),
            Class::Compound { members } => {
                members.iter().map(|m| m.datatype.version_above(floor)).fold(floor, u8::max)
            }
            _ => 1,
        }
    }

    /// Appends the message body in the version that `bound` asks for.
    ///
    /// # Errors
    /// `InvalidArgument` when a name, tag or extent does not fit its field; `Unsupported` for types that the
    /// bound's releases do not know.
    pub fn encode(&self, w: &mut FieldWriter, bound: Bound) -> Result<()> {
        let floor = bound.datatype_version();
        let version = self.version_above(floor);
        if version > 3 && version > floor {
            let what = if version == 5 { "complex numbers" } else { "references of HDF5 1.12" };
            return Err(Error::unsupported(format!("{what} cannot be written under the bound {bound}")));
        }
        self.encode_above(w, floor)
    }

    fn encode_above(&self, w: &mut FieldWriter, floor: u8) -> Result<()> {
        let version = self.version_above(floor);
        let head = self.head()?;
        w.u8(version << 4 | head.class).u24(head.bits).u32(self.size);
        match &self.class {
            Class::Integer { bits, .. } | Class::Bitfield { bits, .. } => put_bits(w, bits),
            Class::Float { bits, layout, .. } => {
                put_bits(w, bits);
                put_float(w, layout);
            }
            Class::Time { precision, .. } => {
                w.u16(*precision);
            }
            Class::String { .. } | Class::Reference(_) => {}
            Class::Opaque { tag } => {
                w.bytes(tag).zeros(tag.len().next_multiple_of(8) - tag.len());
            }
            Class::Compound { members } => {
                check_apart(members)?;
                for m in members {
                    self.encode_member(w, version, floor, m)?;
                }
            }
            Class::Enum { base, members } => encode_enum(w, version, floor, base, members)?,
            Class::VarLen { base } | Class::Complex { base } => base.encode_above(w, floor)?,
            Class::VarString { .. } => Self::byte().encode_above(w, floor)?,
            Class::Array { dims, base } => encode_array(w, version, floor, dims, base)?,
        }
        Ok(())
    }

    /// The unsigned byte that libhdf5 puts beneath variable-length strings.
    fn byte() -> Self {
        let bits =
            BitField { offset: 0, precision: 8, low_padding: Padding::Zero, high_padding: Padding::Zero };
        Self { size: 1, class: Class::Integer { order: ByteOrder::Little, signed: false, bits } }
    }

    fn head(&self) -> Result<Head> {
        let (class, bits) = match &self.class {
            Class::Integer { order, signed, bits } => {
                (0, order_bits(*order)? | pad_bits(bits) | u32::from(*signed) << 3)
            }
            Class::Float { order, bits, layout } => (1, float_bits(*order, bits, layout)),
            Class::Time { order, .. } => (2, order_bits(*order)?),
            Class::String { padding, charset } => (3, string_bits(*padding, *charset)),
            Class::Bitfield { order, bits } => (4, order_bits(*order)? | pad_bits(bits)),
            Class::Opaque { tag } => (5, opaque_bits(tag)?),
            Class::Compound { members } => (6, count_bits(members.len(), "members of a compound")?),
            Class::Reference(kind) => (7, reference_bits(*kind)),
            Class::Enum { members, .. } => (8, count_bits(members.len(), "members of an enumeration")?),
            Class::VarLen { .. } => (9, 0),
            // String padding and character set stand four bits further up than in fixed strings.
            Class::VarString { padding, charset } => (9, 1 | string_bits(*padding, *charset) << 4),
            Class::Array { .. } => (10, 0),
            Class::Complex { .. } => (11, 1),
        };
        Ok(Head { class, bits })
    }

    fn encode_member(&self, w: &mut FieldWriter, version: u8, floor: u8, m: &super::Member) -> Result<()> {
        put_name(w, version, &m.name)?;
        let end = m.offset.checked_add(u64::from(m.datatype.size));
        if end.is_none_or(|end| end > u64::from(self.size)) {
            return Err(Error::invalid(format!(
                "member {:?} of {} bytes at {} passes the end of its compound of {} bytes",
                String::from_utf8_lossy(&m.name),
                m.datatype.size,
                m.offset,
                self.size
            )));
        }
        match version {
            1 => {
                // No dimensions: arrays are a class of their own since version 2.
                w.u32(m.offset as u32).zeros(28);
            }
            2 => {
                w.u32(m.offset as u32);
            }
            _ => {
                w.uint(m.offset, width_of(u64::from(self.size)));
            }
        }
        m.datatype.encode_above(w, floor)
    }
}

/// Members that share bytes: no libhdf5 opens such a type.
fn check_apart(members: &[super::Member]) -> Result<()> {
    let mut by_offset: Vec<&super::Member> = members.iter().collect();
    by_offset.sort_by_key(|m| m.offset);
    for (a, b) in by_offset.iter().zip(by_offset.iter().skip(1)) {
        if a.offset.saturating_add(u64::from(a.datatype.size)) > b.offset {
            return Err(Error::unsupported(format!(
                "members {:?} and {:?} of a compound overlap, which libhdf5 does not open",
                String::from_utf8_lossy(&a.name),
                String::from_utf8_lossy(&b.name)
            )));
        }
    }
    Ok(())
}

fn put_bits(w: &mut FieldWriter, bits: &BitField) {
    w.u16(bits.offset).u16(bits.precision);
}

fn put_float(w: &mut FieldWriter, f: &FloatLayout) {
    w.u8(f.exponent_position).u8(f.exponent_size).u8(f.mantissa_position).u8(f.mantissa_size);
    w.u32(f.exponent_bias);
}

fn put_name(w: &mut FieldWriter, version: u8, name: &[u8]) -> Result<()> {
    if name.is_empty() || name.contains(&0) {
        return Err(Error::invalid("a member's name is empty or contains a NUL"));
    }
    w.bytes(name).u8(0);
    if version < 3 {
        let len = name.len() + 1;
        w.zeros(len.next_multiple_of(8) - len);
    }
    Ok(())
}

fn encode_enum(
    w: &mut FieldWriter,
    version: u8,
    floor: u8,
    base: &Datatype,
    members: &[(Vec<u8>, Vec<u8>)],
) -> Result<()> {
    base.encode_above(w, floor)?;
    for (name, _) in members {
        put_name(w, version, name)?;
    }
    for (name, value) in members {
        if value.len() as u64 != u64::from(base.size) {
            return Err(Error::invalid(format!(
                "the value of enumeration member {:?} has {} bytes, its type {}",
                String::from_utf8_lossy(name),
                value.len(),
                base.size
            )));
        }
        w.bytes(value);
    }
    Ok(())
}

fn encode_array(w: &mut FieldWriter, version: u8, floor: u8, dims: &[u64], base: &Datatype) -> Result<()> {
    if dims.is_empty() || dims.len() > 32 {
        return Err(Error::invalid(format!(
            "an array type of {} dimensions; 1 to 32 are possible",
            dims.len()
        )));
    }
    w.u8(dims.len() as u8);
    if version < 3 {
        w.zeros(3);
    }
    for d in dims {
        let d =
            u32::try_from(*d).map_err(|_| Error::invalid(format!("array extent {d} needs over 32 bits")))?;
        w.u32(d);
    }
    if version < 3 {
        for i in 0..dims.len() {
            w.u32(i as u32);
        }
    }
    base.encode_above(w, floor)
}

fn order_bits(order: ByteOrder) -> Result<u32> {
    match order {
        ByteOrder::Little => Ok(0),
        ByteOrder::Big => Ok(1),
        ByteOrder::Vax => Err(Error::invalid("only floats can be in VAX order")),
    }
}

fn pad_bits(bits: &BitField) -> u32 {
    let one = |p: Padding| u32::from(p == Padding::One);
    one(bits.low_padding) << 1 | one(bits.high_padding) << 2
}

fn float_bits(order: ByteOrder, bits: &BitField, layout: &FloatLayout) -> u32 {
    let order = match order {
        ByteOrder::Little => 0,
        ByteOrder::Big => 1,
        ByteOrder::Vax => 0x41,
    };
    let normalization = match layout.normalization {
        Normalization::None => 0,
        Normalization::MsbSet => 1,
        Normalization::Implied => 2,
    };
    let inside = u32::from(layout.internal_padding == Padding::One) << 3;
    order | pad_bits(bits) | inside | normalization << 4 | u32::from(layout.sign_position) << 8
}

fn string_bits(padding: StringPadding, charset: CharacterSet) -> u32 {
    let padding = match padding {
        StringPadding::NullTerminated => 0,
        StringPadding::NullPadded => 1,
        StringPadding::SpacePadded => 2,
        StringPadding::Other(n) => u32::from(n) & 0xf,
    };
    padding | u32::from(charset_number(charset) & 0xf) << 4
}

/// The number of a character set in messages.
pub(crate) fn charset_number(charset: CharacterSet) -> u8 {
    match charset {
        CharacterSet::Ascii => 0,
        CharacterSet::Utf8 => 1,
        CharacterSet::Other(n) => n,
    }
}

fn opaque_bits(tag: &[u8]) -> Result<u32> {
    let len = tag.len().next_multiple_of(8);
    if len > 248 {
        return Err(Error::invalid(format!("an opaque tag of {} bytes; 248 are possible", tag.len())));
    }
    Ok(len as u32)
}

fn count_bits(count: usize, what: &str) -> Result<u32> {
    match u16::try_from(count) {
        Ok(0) => Err(Error::invalid(format!("no {what}"))),
        Ok(n) => Ok(u32::from(n)),
        Err(_) => Err(Error::invalid(format!("{count} {what}; 65535 are possible"))),
    }
}

fn reference_bits(kind: ReferenceKind) -> u32 {
    /// Version of the encoding of 1.12's references, four bits up.
    const ENCODING: u32 = 1 << 4;
    match kind {
        ReferenceKind::Object => 0,
        ReferenceKind::Region => 1,
        ReferenceKind::Object2 => 2 | ENCODING,
        ReferenceKind::Region2 => 3 | ENCODING,
        ReferenceKind::Attribute => 4 | ENCODING,
    }
}
