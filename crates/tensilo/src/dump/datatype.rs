//! Datatypes by the names that HDF5's own tools give them.

use super::{escape, quoted};
use crate::hdf5::{Class, Datatype};
use tensilo_hdf5::format::datatype::{
    BitField, ByteOrder, CharacterSet, FloatLayout, Padding, ReferenceKind, StringPadding,
};

/// A datatype, one line or more; those behind the first are indented beneath it.
pub fn type_lines(t: &Datatype) -> Vec<String> {
    match &t.class {
        Class::Integer { order, signed, bits } => {
            let sign = if *signed { 'I' } else { 'U' };
            vec![number(t, *order, bits, &format!("H5T_STD_{sign}"), "H5T_INTEGER")]
        }
        Class::Bitfield { order, bits } => vec![number(t, *order, bits, "H5T_STD_B", "H5T_BITFIELD")],
        Class::Float { order, bits, layout } => vec![float(t, *order, bits, layout)],
        Class::Time { order, .. } => vec![format!("H5T_UNIX_D{}{}", 8 * t.size, suffix(*order))],
        Class::String { padding, charset } => string(&t.size.to_string(), *padding, *charset),
        Class::VarString { padding, charset } => string("H5T_VARIABLE", *padding, *charset),
        Class::Opaque { tag } => {
            vec!["H5T_OPAQUE {".into(), format!("   OPAQUE_TAG {};", quoted(tag)), "}".into()]
        }
        Class::Compound { members } => {
            let mut lines = vec!["H5T_COMPOUND {".to_owned()];
            for m in members {
                let mut inner = type_lines(&m.datatype);
                if let Some(last) = inner.last_mut() {
                    last.push_str(&format!(" {};", quoted(&m.name)));
                }
                lines.extend(inner.into_iter().map(|l| format!("   {l}")));
            }
            lines.push("}".into());
            lines
        }
        Class::Reference(kind) => vec![format!(
            "H5T_REFERENCE {{ {} }}",
            match kind {
                ReferenceKind::Object => "H5T_STD_REF_OBJECT",
                ReferenceKind::Region => "H5T_STD_REF_DSETREG",
                _ => "H5T_STD_REF",
            }
        )],
        Class::Enum { base, members } => {
            let mut lines = vec!["H5T_ENUM {".to_owned()];
            lines.extend(with_end(type_lines(base), ";").into_iter().map(|l| format!("   {l}")));
            for (name, value) in members {
                let value = super::element::number_text(base, value);
                lines.push(format!("   {:<18} {value};", format!("\"{}\"", escape(name))));
            }
            lines.push("}".into());
            lines
        }
        Class::VarLen { base } => around("H5T_VLEN {", type_lines(base)),
        Class::Array { dims, base } => {
            let dims: String = dims.iter().map(|d| format!("[{d}]")).collect();
            around(&format!("H5T_ARRAY {{ {dims}"), type_lines(base))
        }
        Class::Complex { base } => around("H5T_COMPLEX {", type_lines(base)),
    }
}

/// `head base }`, where the base may have several lines.
fn around(head: &str, mut base: Vec<String>) -> Vec<String> {
    if let Some(first) = base.first_mut() {
        *first = format!("{head} {first}");
    }
    with_end(base, " }")
}

fn with_end(mut lines: Vec<String>, end: &str) -> Vec<String> {
    if let Some(last) = lines.last_mut() {
        last.push_str(end);
    }
    lines
}

fn suffix(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "LE",
        ByteOrder::Big => "BE",
        ByteOrder::Vax => "VAX",
    }
}

fn number(t: &Datatype, order: ByteOrder, bits: &BitField, standard: &str, class: &str) -> String {
    let whole = bits.offset == 0 && u32::from(bits.precision) == 8 * t.size;
    if whole && matches!(t.size, 1 | 2 | 4 | 8) {
        return format!("{standard}{}{}", 8 * t.size, suffix(order));
    }
    let sign = if standard.ends_with('I') { " SIGNED;" } else { "" };
    format!(
        "{class} {{ SIZE {}; ORDER {};{sign} PRECISION {}; OFFSET {}; }}",
        t.size,
        suffix(order),
        bits.precision,
        bits.offset
    )
}

fn float(t: &Datatype, order: ByteOrder, bits: &BitField, l: &FloatLayout) -> String {
    let fields = (l.sign_position, l.exponent_position, l.exponent_size, l.mantissa_size, l.exponent_bias);
    let whole = bits.offset == 0
        && u32::from(bits.precision) == 8 * t.size
        && bits.low_padding == Padding::Zero
        && l.mantissa_position == 0;
    let known = match (t.size, fields) {
        (2, (15, 10, 5, 10, 15)) => Some("H5T_IEEE_F16"),
        (4, (31, 23, 8, 23, 127)) => Some("H5T_IEEE_F32"),
        (8, (63, 52, 11, 52, 1023)) => Some("H5T_IEEE_F64"),
        (2, (15, 7, 8, 7, 127)) => Some("H5T_FLOAT_BFLOAT16"),
        _ => None,
    };
    match known.filter(|_| whole) {
        Some(name) if order != ByteOrder::Vax => format!("{name}{}", suffix(order)),
        _ => format!(
            "H5T_FLOAT {{ SIZE {}; ORDER {}; PRECISION {}; OFFSET {}; SIGN {}; EXPONENT {} {} {}; MANTISSA {} {}; }}",
            t.size,
            suffix(order),
            bits.precision,
            bits.offset,
            l.sign_position,
            l.exponent_position,
            l.exponent_size,
            l.exponent_bias,
            l.mantissa_position,
            l.mantissa_size
        ),
    }
}

fn string(size: &str, padding: StringPadding, charset: CharacterSet) -> Vec<String> {
    let padding = match padding {
        StringPadding::NullTerminated => "H5T_STR_NULLTERM".to_owned(),
        StringPadding::NullPadded => "H5T_STR_NULLPAD".to_owned(),
        StringPadding::SpacePadded => "H5T_STR_SPACEPAD".to_owned(),
        StringPadding::Other(n) => n.to_string(),
    };
    let charset = match charset {
        CharacterSet::Ascii => "H5T_CSET_ASCII".to_owned(),
        CharacterSet::Utf8 => "H5T_CSET_UTF8".to_owned(),
        CharacterSet::Other(n) => n.to_string(),
    };
    vec![
        "H5T_STRING {".into(),
        format!("   STRSIZE {size};"),
        format!("   STRPAD {padding};"),
        format!("   CSET {charset};"),
        "   CTYPE H5T_C_S1;".into(),
        "}".into(),
    ]
}
