//! Datatypes as text, in the canonical form of `tensilo digest`: structure only, one line, no spaces.

use super::{
    BitField, ByteOrder, CharacterSet, Class, Datatype, FloatLayout, Normalization, Padding, ReferenceKind,
    StringPadding,
};
use std::fmt::{self, Display, Formatter, Write};

/// Raw bytes of a name as text: UTF-8, a backslash doubled, each byte of an invalid sequence as `\xhh`.
///
/// ```
/// use tensilo_hdf5::format::datatype::text_of;
/// assert_eq!(text_of(b"caf\xc3\xa9 \\ \xff"), "café \\\\ \\xff");
/// ```
pub fn text_of(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
        }
        for b in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{b:02x}");
        }
    }
    out
}

/// A JSON string of the [text](text_of) of raw bytes; only `"`, `\` and characters below U+0020 are escaped.
struct Quoted<'a>(&'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in text_of(self.0).chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{c}' => f.write_str("\\f")?,
                c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

fn order_text(order: ByteOrder, size: u32) -> &'static str {
    match order {
        _ if size == 1 => "",
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
        ByteOrder::Vax => "vax",
    }
}

fn pad(p: Padding) -> u8 {
    match p {
        Padding::Zero => 0,
        Padding::One => 1,
        Padding::Background => 2,
    }
}

fn bits_of(size: u32) -> u64 {
    u64::from(size).saturating_mul(8)
}

impl BitField {
    /// Are all bits of an element of `size` bytes significant?
    pub fn is_full(&self, size: u32) -> bool {
        self.offset == 0 && u64::from(self.precision) == bits_of(size)
    }
}

impl Display for BitField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "prec={},off={},lopad={},hipad={}",
            self.precision,
            self.offset,
            pad(self.low_padding),
            pad(self.high_padding)
        )
    }
}

impl FloatLayout {
    /// The layout of IEEE 754 binary16, binary32 or binary64, by size in bytes.
    pub fn ieee(size: u32) -> Option<Self> {
        let (sign, exponent_size, bias) = match size {
            2 => (15, 5, 15),
            4 => (31, 8, 127),
            8 => (63, 11, 1023),
            _ => return None,
        };
        let mantissa_size = u8::saturating_sub(sign, exponent_size);
        Some(Self {
            internal_padding: Padding::Zero,
            normalization: Normalization::Implied,
            sign_position: sign,
            exponent_position: mantissa_size,
            exponent_size,
            mantissa_position: 0,
            mantissa_size,
            exponent_bias: bias,
        })
    }
}

impl Datatype {
    /// Is this a plain IEEE 754 number of 2, 4 or 8 bytes (in either byte order)?
    pub fn is_ieee(&self) -> bool {
        match &self.class {
            Class::Float { order, bits, layout } => {
                *order != ByteOrder::Vax
                    && bits.is_full(self.size)
                    && FloatLayout::ieee(self.size)
                        .is_some_and(|i| FloatLayout { internal_padding: Padding::Zero, ..*layout } == i)
            }
            _ => false,
        }
    }
}

impl Display for Datatype {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let size = self.size;
        match &self.class {
            Class::Integer { order, signed, bits } => {
                partial(f, if *signed { 'i' } else { 'u' }, *order, bits, size)
            }
            Class::Bitfield { order, bits } => partial(f, 'b', *order, bits, size),
            Class::Float { order, bits, layout } => float(f, self, *order, bits, layout),
            Class::Time { order, .. } => write!(f, "time{}{}", bits_of(size), order_text(*order, size)),
            Class::String { padding, charset } => {
                write!(f, "str{size}:{padding}:{charset}")
            }
            Class::VarString { padding, charset } => write!(f, "vstr:{padding}:{charset}"),
            Class::Opaque { tag } => write!(f, "opaque{size}:{}", Quoted(tag)),
            Class::Compound { members } => {
                f.write_char('{')?;
                for (i, m) in members.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{}:{}", Quoted(&m.name), m.datatype)?;
                }
                f.write_char('}')
            }
            Class::Reference(kind) => f.write_str(match kind {
                ReferenceKind::Object => "ref(object)",
                ReferenceKind::Region => "ref(region)",
                ReferenceKind::Object2 | ReferenceKind::Region2 | ReferenceKind::Attribute => "ref(std)",
            }),
            Class::Enum { base, members } => {
                write!(f, "enum({base}){{")?;
                for (i, (name, value)) in members.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{}={}", Quoted(name), Decimal(base, value))?;
                }
                f.write_char('}')
            }
            Class::VarLen { base } => write!(f, "vlen({base})"),
            Class::Array { dims, base } => {
                let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
                write!(f, "array[{}]({base})", dims.join(","))
            }
            Class::Complex { base } => write!(f, "complex({base})"),
        }
    }
}

fn partial(f: &mut Formatter<'_>, letter: char, order: ByteOrder, bits: &BitField, size: u32) -> fmt::Result {
    write!(f, "{letter}{}{}", bits_of(size), order_text(order, size))?;
    if bits.is_full(size) { Ok(()) } else { write!(f, "({bits})") }
}

fn float(
    f: &mut Formatter<'_>,
    datatype: &Datatype,
    order: ByteOrder,
    bits: &BitField,
    l: &FloatLayout,
) -> fmt::Result {
    let (size, order) = (datatype.size, order_text(order, datatype.size));
    if datatype.is_ieee() {
        return write!(f, "f{}{order}", bits_of(size));
    }
    write!(
        f,
        "float{}{order}(spos={},epos={},esize={},mpos={},msize={},ebias={},norm={},{bits},inpad={})",
        bits_of(size),
        l.sign_position,
        l.exponent_position,
        l.exponent_size,
        l.mantissa_position,
        l.mantissa_size,
        l.exponent_bias,
        match l.normalization {
            Normalization::Implied => 0,
            Normalization::MsbSet => 1,
            Normalization::None => 2,
        },
        pad(l.internal_padding)
    )
}

/// The value of an enumeration member, in decimal; hexadecimal where it is wider than 128 bits.
struct Decimal<'a>(&'a Datatype, &'a [u8]);

impl Display for Decimal<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (big, signed) = match &self.0.class {
            Class::Integer { order, signed, .. } => (*order == ByteOrder::Big, *signed),
            _ => (false, false),
        };
        let mut bytes = self.1.to_vec();
        if big {
            bytes.reverse();
        }
        if bytes.len() > 16 {
            return bytes.iter().rev().try_for_each(|b| write!(f, "{b:02x}"));
        }
        let negative = signed && bytes.last().is_some_and(|b| b & 0x80 != 0);
        bytes.resize(16, if negative { 0xff } else { 0 });
        let value: [u8; 16] = bytes.try_into().unwrap_or([0; 16]);
        if signed {
            write!(f, "{}", i128::from_le_bytes(value))
        } else {
            write!(f, "{}", u128::from_le_bytes(value))
        }
    }
}

impl Display for StringPadding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NullTerminated => f.write_str("nullterm"),
            Self::NullPadded => f.write_str("nullpad"),
            Self::SpacePadded => f.write_str("spacepad"),
            Self::Other(n) => write!(f, "{n}"),
        }
    }
}

impl Display for CharacterSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ascii => f.write_str("ascii"),
            Self::Utf8 => f.write_str("utf8"),
            Self::Other(n) => write!(f, "{n}"),
        }
    }
}
