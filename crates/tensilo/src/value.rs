//! One element as a value that can be shown: what `info`, `read` and a notebook print.
//!
//! [`decode`] goes from stored bytes to a [`Value`]; text that lies in a heap is fetched through [`Heap`].

use serde::{Serialize, Serializer};
use std::fmt;
use tensilo_core::{Error, Result};
use tensilo_hdf5::format::datatype::{BitField, ByteOrder, Class, Datatype, FloatLayout, Normalization};

/// A decoded element.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A signed or unsigned integer of up to 64 bits.
    Integer(i128),
    /// A number of single precision.
    Float32(f32),
    /// A number of double precision.
    Float64(f64),
    /// Text, invalid UTF-8 replaced.
    Text(String),
    /// Bytes that are no number and no text: opaque values, wide or unusual numbers.
    Bytes(Vec<u8>),
    /// A name of an enumeration.
    Name(String),
    /// An array or a variable-length sequence.
    List(Vec<Value>),
    /// A compound: names and values in stored order.
    Record(Vec<(String, Value)>),
    /// A complex number: real and imaginary part.
    Complex(Box<Value>, Box<Value>),
    /// The address of an object that is referred to, 0 for none.
    Reference(u64),
}

/// Fetches what an element keeps in the global heap.
pub trait Heap {
    /// Bytes of a stored address.
    fn address_size(&self) -> usize;

    /// A copy of an object of the global heap.
    ///
    /// # Errors
    /// When there is no such object, or the file is damaged.
    fn object(&self, address: u64, index: u32) -> Result<Vec<u8>>;
}

/// Decodes one stored element.
///
/// # Errors
/// `Corrupt` when the bytes are too few or a heap object is missing or of another size.
pub fn decode(t: &Datatype, bytes: &[u8], heap: &dyn Heap) -> Result<Value> {
    let size = t.size as usize;
    let b = bytes.get(..size).ok_or_else(|| Error::corrupt("an element is cut short"))?;
    Ok(match &t.class {
        Class::Integer { order, signed, bits } => integer(b, *order, *signed, bits),
        Class::Bitfield { order, bits } => integer(b, *order, false, bits),
        Class::Float { order, bits, layout } => float(b, *order, bits, layout),
        Class::Time { .. } | Class::Opaque { .. } => Value::Bytes(b.to_vec()),
        Class::String { .. } => Value::Text(text(b, b' ')),
        Class::Compound { members } => {
            let mut fields = Vec::with_capacity(members.len());
            for m in members {
                let at = usize::try_from(m.offset).ok().and_then(|o| b.get(o..));
                let at = at.ok_or_else(|| Error::corrupt("a member lies outside its compound"))?;
                fields.push((lossy(&m.name), decode(&m.datatype, at, heap)?));
            }
            Value::Record(fields)
        }
        Class::Enum { base, members } => match members.iter().find(|(_, v)| v == b) {
            Some((name, _)) => Value::Name(lossy(name)),
            None => decode(base, b, heap)?,
        },
        Class::Array { base, .. } => Value::List(list(base, b, heap)?),
        Class::Complex { base } => {
            let half = base.size as usize;
            let imaginary = b.get(half..).ok_or_else(|| Error::corrupt("a complex number is cut short"))?;
            Value::Complex(Box::new(decode(base, b, heap)?), Box::new(decode(base, imaginary, heap)?))
        }
        Class::VarString { .. } => Value::Text(match sequence(b, heap)? {
            Some((_, bytes)) => text(&bytes, 0),
            None => String::new(),
        }),
        Class::VarLen { base } => match sequence(b, heap)? {
            None => Value::List(Vec::new()),
            Some((n, bytes)) => {
                let wanted = n.checked_mul(u64::from(base.size));
                if wanted != Some(bytes.len() as u64) {
                    return Err(Error::corrupt(format!(
                        "a sequence of {n} elements is stored in {} bytes",
                        bytes.len()
                    )));
                }
                Value::List(list(base, &bytes, heap)?)
            }
        },
        Class::Reference(_) => Value::Reference(little(b.get(..size.min(8)).unwrap_or(b)) as u64),
    })
}

fn list(base: &Datatype, bytes: &[u8], heap: &dyn Heap) -> Result<Vec<Value>> {
    bytes.chunks_exact((base.size as usize).max(1)).map(|e| decode(base, e, heap)).collect()
}

/// Length and bytes of a sequence in the heap; `None` for a null one.
fn sequence(b: &[u8], heap: &dyn Heap) -> Result<Option<(u64, Vec<u8>)>> {
    let width = heap.address_size();
    if b.len() < 8 + width {
        return Err(Error::corrupt("a variable-length element is shorter than a heap id"));
    }
    let n = little(&b[..4]) as u64;
    let address = little(&b[4..4 + width.min(8)]) as u64;
    let index = little(&b[4 + width..8 + width]) as u32;
    if address == 0 || n == 0 {
        return Ok(None);
    }
    Ok(Some((n, heap.object(address, index)?)))
}

fn little(b: &[u8]) -> u128 {
    b.iter().take(16).rev().fold(0, |n, c| n << 8 | u128::from(*c))
}

fn lossy(b: &[u8]) -> String {
    String::from_utf8_lossy(b).into_owned()
}

/// Text up to its first NUL, without trailing padding.
fn text(b: &[u8], padding: u8) -> String {
    let b = b.split(|c| *c == 0).next().unwrap_or(b);
    let end = b.iter().rposition(|c| *c != padding).map_or(0, |i| i + 1);
    lossy(if padding == 0 { b } else { &b[..end] })
}

/// The bytes of a number with the least significant first.
fn ordered(b: &[u8], order: ByteOrder) -> Option<Vec<u8>> {
    let mut b = b.to_vec();
    match order {
        ByteOrder::Little => {}
        ByteOrder::Big => b.reverse(),
        ByteOrder::Vax => return None,
    }
    Some(b)
}

fn integer(b: &[u8], order: ByteOrder, signed: bool, bits: &BitField) -> Value {
    let (offset, precision) = (u32::from(bits.offset), u32::from(bits.precision));
    let le = match ordered(b, order) {
        Some(le) if le.len() <= 8 && precision > 0 && offset + precision <= 64 => le,
        _ => return Value::Bytes(b.to_vec()),
    };
    let raw = (little(&le) >> offset) & ((1_u128 << precision) - 1);
    let negative = signed && raw >> (precision - 1) & 1 == 1;
    Value::Integer(if negative { raw as i128 - (1_i128 << precision) } else { raw as i128 })
}

fn float(b: &[u8], order: ByteOrder, bits: &BitField, l: &FloatLayout) -> Value {
    let Some(le) = ordered(b, order) else { return Value::Bytes(b.to_vec()) };
    let fields =
        (l.sign_position, l.exponent_position, l.exponent_size, l.mantissa_position, l.mantissa_size);
    let plain = bits.offset == 0
        && usize::from(bits.precision) == 8 * b.len()
        && l.normalization == Normalization::Implied;
    match (fields, l.exponent_bias, le.as_slice()) {
        ((31, 23, 8, 0, 23), 127, &[a, b, c, d]) if plain => Value::Float32(f32::from_le_bytes([a, b, c, d])),
        ((63, 52, 11, 0, 52), 1023, &[a, b, c, d, e, f, g, h]) if plain => {
            Value::Float64(f64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        ((15, 10, 5, 0, 10), 15, &[a, b]) if plain => Value::Float32(half_to_f32(u16::from_le_bytes([a, b]))),
        // bfloat16 is the upper half of a binary32, E5M2 that of a binary16.
        ((15, 7, 8, 0, 7), 127, &[a, b]) if plain => Value::Float32(f32::from_le_bytes([0, 0, a, b])),
        ((7, 2, 5, 0, 2), 15, &[a]) if plain => Value::Float32(half_to_f32(u16::from_le_bytes([0, a]))),
        _ => Value::Bytes(b.to_vec()),
    }
}

/// IEEE binary16 to binary32, which holds every value of it.
fn half_to_f32(h: u16) -> f32 {
    let sign = u32::from(h >> 15) << 31;
    let exponent = u32::from(h >> 10 & 0x1f);
    let mantissa = u32::from(h & 0x3ff);
    match exponent {
        0 => {
            let v = mantissa as f32 / 16_777_216.0;
            if sign != 0 { -v } else { v }
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | mantissa << 13),
        e => f32::from_bits(sign | (e + 112) << 23 | mantissa << 13),
    }
}

fn hex(b: &[u8]) -> String {
    b.iter().map(|c| format!("{c:02x}")).collect()
}

fn float_text(v: f64, finite: impl fmt::Display) -> String {
    if v.is_finite() {
        finite.to_string()
    } else if v.is_nan() {
        "NaN".into()
    } else if v > 0.0 {
        "Infinity".into()
    } else {
        "-Infinity".into()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(v) => write!(f, "{v}"),
            Self::Float32(v) => f.write_str(&float_text(f64::from(*v), v)),
            Self::Float64(v) => f.write_str(&float_text(*v, v)),
            Self::Text(s) => write!(f, "{s:?}"),
            Self::Bytes(b) => write!(f, "0x{}", hex(b)),
            Self::Name(n) => f.write_str(n),
            Self::List(items) => {
                f.write_str("[")?;
                for (i, v) in items.iter().enumerate() {
                    write!(f, "{}{v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Record(fields) => {
                f.write_str("{")?;
                for (i, (name, v)) in fields.iter().enumerate() {
                    write!(f, "{}{name}: {v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Self::Complex(re, im) => write!(f, "({re}, {im}i)"),
            Self::Reference(0) => f.write_str("(no object)"),
            Self::Reference(a) => write!(f, "(object at {a})"),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        match self {
            Self::Integer(v) => match (i64::try_from(*v), u64::try_from(*v)) {
                (Ok(v), _) => s.serialize_i64(v),
                (_, Ok(v)) => s.serialize_u64(v),
                _ => s.serialize_str(&v.to_string()),
            },
            Self::Float32(v) if v.is_finite() => s.serialize_f32(*v),
            Self::Float64(v) if v.is_finite() => s.serialize_f64(*v),
            Self::Float32(_) | Self::Float64(_) => s.serialize_str(&self.to_string()),
            Self::Text(t) | Self::Name(t) => s.serialize_str(t),
            Self::Bytes(b) => {
                let mut map = s.serialize_map(Some(1))?;
                map.serialize_entry("hex", &hex(b))?;
                map.end()
            }
            Self::List(items) => s.collect_seq(items),
            Self::Record(fields) => {
                let mut map = s.serialize_map(Some(fields.len()))?;
                for (name, v) in fields {
                    map.serialize_entry(name, v)?;
                }
                map.end()
            }
            Self::Complex(re, im) => s.collect_seq([re, im]),
            Self::Reference(a) => {
                let mut map = s.serialize_map(Some(1))?;
                map.serialize_entry("address", a)?;
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_hdf5::format::datatype::Padding;

    struct NoHeap;
    impl Heap for NoHeap {
        fn address_size(&self) -> usize {
            8
        }
        fn object(&self, _: u64, _: u32) -> Result<Vec<u8>> {
            Ok(b"abc\0d".to_vec())
        }
    }

    fn int(size: u32, order: ByteOrder, signed: bool, offset: u16, precision: u16) -> Datatype {
        let bits = BitField { offset, precision, low_padding: Padding::Zero, high_padding: Padding::Zero };
        Datatype { size, class: Class::Integer { order, signed, bits } }
    }

    #[test]
    fn integers_decode_in_both_orders_and_in_parts_of_their_bytes() {
        let be = int(2, ByteOrder::Big, true, 0, 16);
        assert_eq!(decode(&be, &[0xff, 0xfe], &NoHeap).unwrap(), Value::Integer(-2));
        let part = int(2, ByteOrder::Little, true, 4, 8);
        assert_eq!(decode(&part, &[0xf0, 0x0f], &NoHeap).unwrap(), Value::Integer(-1));
        let wide = int(8, ByteOrder::Little, false, 0, 64);
        assert_eq!(decode(&wide, &[0xff; 8], &NoHeap).unwrap(), Value::Integer(i128::from(u64::MAX)));
    }

    #[test]
    fn half_precision_widens_exactly() {
        // IEEE 754 binary16: 1.0, -2.0, the largest, the smallest subnormal, infinity.
        for (h, v) in
            [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (1, 5.960_464_5e-8), (0x7c00, f32::INFINITY)]
        {
            assert_eq!(half_to_f32(h), v);
        }
        assert!(half_to_f32(0x7e00).is_nan());
    }

    #[test]
    fn an_element_that_is_cut_short_is_an_error() {
        let t = int(4, ByteOrder::Little, false, 0, 32);
        assert!(decode(&t, &[1, 2, 3], &NoHeap).is_err());
    }

    #[test]
    fn values_print_as_text_and_as_json() {
        let v = Value::Record(vec![
            ("a".into(), Value::Float32(0.1)),
            ("b".into(), Value::List(vec![Value::Text("x\"".into()), Value::Float64(f64::NAN)])),
        ]);
        assert_eq!(v.to_string(), r#"{a: 0.1, b: ["x\"", NaN]}"#);
        assert_eq!(serde_json::to_string(&v).unwrap(), r#"{"a":0.1,"b":["x\"","NaN"]}"#);
    }
}
