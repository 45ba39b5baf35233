//! The datatype text of the canonical form: structure only, no sizes or offsets of compounds.

use super::text::quoted;
use tensilo_hdf5::format::datatype::{
    BitField, ByteOrder, CharacterSet, Class, Datatype, FloatLayout, Normalization, Padding, ReferenceKind,
    StringPadding,
};

/// The canonical text of a datatype.
pub fn type_name(t: &Datatype) -> String {
    let bits = u64::from(t.size) * 8;
    match &t.class {
        Class::Integer { order, signed, bits: field } => {
            let letter = if *signed { "i" } else { "u" };
            format!("{letter}{bits}{}{}", order_suffix(t.size, *order), partial(t.size, field))
        }
        Class::Bitfield { order, bits: field } => {
            format!("b{bits}{}{}", order_suffix(t.size, *order), partial(t.size, field))
        }
        Class::Time { order, .. } => format!("time{bits}{}", order_suffix(t.size, *order)),
        Class::Float { order, bits: field, layout } => float_name(t.size, *order, field, layout),
        Class::String { padding, charset } => {
            format!("str{}:{}:{}", t.size, padding_name(*padding), charset_name(*charset))
        }
        Class::VarString { padding, charset } => {
            format!("vstr:{}:{}", padding_name(*padding), charset_name(*charset))
        }
        Class::Opaque { tag } => format!("opaque{}:{}", t.size, quoted(until_nul(tag))),
        Class::Compound { members } => {
            let members: Vec<String> = members
                .iter()
                .map(|m| format!("{}:{}", quoted(until_nul(&m.name)), type_name(&m.datatype)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Class::Reference(kind) => format!("ref({})", reference_name(*kind)),
        Class::Enum { base, members } => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}={}", quoted(until_nul(name)), decimal(base, value)))
                .collect();
            format!("enum({}){{{}}}", type_name(base), members.join(","))
        }
        Class::VarLen { base } => format!("vlen({})", type_name(base)),
        Class::Array { dims, base } => {
            let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
            format!("array[{}]({})", dims.join(","), type_name(base))
        }
        Class::Complex { base } => format!("complex({})", type_name(base)),
    }
}

/// The bytes before the first NUL.
fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or(bytes)
}

fn order_suffix(size: u32, order: ByteOrder) -> &'static str {
    match order {
        _ if size == 1 => "",
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
        ByteOrder::Vax => "vax",
    }
}

fn pad_number(p: Padding) -> u8 {
    match p {
        Padding::Zero => 0,
        Padding::One => 1,
        Padding::Background => 2,
    }
}

fn pads(f: &BitField) -> String {
    format!(
        "prec={},off={},lopad={},hipad={}",
        f.precision,
        f.offset,
        pad_number(f.low_padding),
        pad_number(f.high_padding)
    )
}

fn is_partial(size: u32, f: &BitField) -> bool {
    u64::from(f.precision) != u64::from(size) * 8 || f.offset != 0
}

fn partial(size: u32, f: &BitField) -> String {
    if is_partial(size, f) { format!("({})", pads(f)) } else { String::new() }
}

fn float_name(size: u32, order: ByteOrder, f: &BitField, l: &FloatLayout) -> String {
    let fields =
        (l.sign_position, l.exponent_position, l.exponent_size, l.mantissa_position, l.mantissa_size);
    let ieee = match size {
        2 => fields == (15, 10, 5, 0, 10) && l.exponent_bias == 15,
        4 => fields == (31, 23, 8, 0, 23) && l.exponent_bias == 127,
        8 => fields == (63, 52, 11, 0, 52) && l.exponent_bias == 1023,
        _ => false,
    };
    let (bits, suffix) = (u64::from(size) * 8, order_suffix(size, order));
    if ieee && !is_partial(size, f) && l.normalization == Normalization::Implied && order != ByteOrder::Vax {
        return format!("f{bits}{suffix}");
    }
    let norm = match l.normalization {
        Normalization::Implied => 0,
        Normalization::MsbSet => 1,
        Normalization::None => 2,
    };
    format!(
        "float{bits}{suffix}(spos={},epos={},esize={},mpos={},msize={},ebias={},norm={norm},{},inpad={})",
        l.sign_position,
        l.exponent_position,
        l.exponent_size,
        l.mantissa_position,
        l.mantissa_size,
        l.exponent_bias,
        pads(f),
        pad_number(l.internal_padding)
    )
}

fn padding_name(p: StringPadding) -> String {
    match p {
        StringPadding::NullTerminated => "nullterm".into(),
        StringPadding::NullPadded => "nullpad".into(),
        StringPadding::SpacePadded => "spacepad".into(),
        StringPadding::Other(n) => n.to_string(),
    }
}

fn charset_name(c: CharacterSet) -> String {
    match c {
        CharacterSet::Ascii => "ascii".into(),
        CharacterSet::Utf8 => "utf8".into(),
        CharacterSet::Other(n) => n.to_string(),
    }
}

fn reference_name(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Object => "object",
        ReferenceKind::Region => "region",
        ReferenceKind::Object2 | ReferenceKind::Region2 | ReferenceKind::Attribute => "std",
    }
}

/// Is the type stored with its most significant byte first, beneath enumerations?
fn is_big(t: &Datatype) -> bool {
    match &t.class {
        Class::Integer { order, .. } | Class::Bitfield { order, .. } | Class::Float { order, .. } => {
            *order == ByteOrder::Big
        }
        Class::Time { order, .. } => *order == ByteOrder::Big,
        Class::Enum { base, .. } => is_big(base),
        _ => false,
    }
}

/// A stored integer of any width in decimal.
fn decimal(base: &Datatype, stored: &[u8]) -> String {
    let mut bytes = stored.to_vec();
    if is_big(base) {
        bytes.reverse();
    }
    let signed = matches!(base.class, Class::Integer { signed: true, .. });
    let negative = signed && bytes.last().is_some_and(|b| b & 0x80 != 0);
    if negative {
        // Two's complement: invert and add one.
        let mut carry = true;
        for b in &mut bytes {
            (*b, carry) = (!*b).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    while bytes.iter().any(|b| *b != 0) {
        let mut rest = 0_u16;
        for b in bytes.iter_mut().rev() {
            let v = rest << 8 | u16::from(*b);
            *b = (v / 10) as u8;
            rest = v % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    if digits.is_empty() {
        digits.push(b'0');
    }
    if negative {
        digits.push(b'-');
    }
    digits.reverse();
    String::from_utf8(digits).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(size: u32, order: ByteOrder, signed: bool) -> Datatype {
        let bits = BitField {
            offset: 0,
            precision: (size * 8) as u16,
            low_padding: Padding::Zero,
            high_padding: Padding::Zero,
        };
        Datatype { size, class: Class::Integer { order, signed, bits } }
    }

    #[test]
    fn integers_name_their_order_but_for_one_byte() {
        assert_eq!(type_name(&integer(1, ByteOrder::Big, false)), "u8");
        assert_eq!(type_name(&integer(2, ByteOrder::Big, true)), "i16be");
        let mut odd = integer(4, ByteOrder::Little, false);
        if let Class::Integer { bits, .. } = &mut odd.class {
            bits.precision = 12;
            bits.offset = 3;
        }
        assert_eq!(type_name(&odd), "u32le(prec=12,off=3,lopad=0,hipad=0)");
    }

    #[test]
    fn enum_values_are_decimal_in_any_width_and_order() {
        for (v, size) in
            [(0_i128, 1), (-1, 1), (-128, 1), (127, 1), (-32768, 2), (1 << 40, 8), (-(1 << 62), 8)]
        {
            let le = v.to_le_bytes();
            let base = integer(size, ByteOrder::Little, true);
            assert_eq!(decimal(&base, &le[..size as usize]), v.to_string());
            let mut be = le[..size as usize].to_vec();
            be.reverse();
            assert_eq!(decimal(&integer(size, ByteOrder::Big, true), &be), v.to_string());
        }
        assert_eq!(decimal(&integer(1, ByteOrder::Little, false), &[200]), "200");
        assert_eq!(
            decimal(&integer(16, ByteOrder::Little, false), &u128::MAX.to_le_bytes()),
            u128::MAX.to_string()
        );
    }
}
