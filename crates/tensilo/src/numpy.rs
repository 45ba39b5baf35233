//! How a datatype is called in NumPy, and the header of a `.npy` file.
//!
//! Only what NumPy holds without converting a value has a name here; the rest is refused.

use std::fmt;
use tensilo_core::array::npy::{item_size, structured};
use tensilo_core::{Error, Result};
use tensilo_hdf5::format::datatype::{
    BitField, ByteOrder, CharacterSet, Class, Datatype, FloatLayout, Member, Normalization,
};

/// A NumPy dtype.
///
/// Its text is the Python literal that a `.npy` header holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumpyType {
    /// A plain one: `<f4`, `|S5`.
    Plain(String),
    /// A structured one.
    Record {
        /// The fields, by ascending offset.
        fields: Vec<Field>,
        /// Bytes of an element.
        size: usize,
    },
}

/// A field of a structured dtype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its dtype.
    pub dtype: NumpyType,
    /// Its own shape, empty for a single value.
    pub shape: Vec<u64>,
    /// Where it starts in the element, in bytes.
    pub offset: usize,
    /// How many bytes it takes.
    pub size: usize,
}

impl NumpyType {
    /// The dtype of stored elements, and the extents that an array datatype adds to every array of them.
    ///
    /// # Errors
    /// `Unsupported`, naming the class, where NumPy has no type that holds the stored bytes as they are.
    pub fn of(t: &Datatype) -> Result<(Self, Vec<u64>)> {
        let size = t.size as usize;
        Ok(match &t.class {
            Class::Integer { order, signed, bits } => {
                (number(if *signed { 'i' } else { 'u' }, size, *order, bits)?, Vec::new())
            }
            Class::Bitfield { order, bits } => (number('u', size, *order, bits)?, Vec::new()),
            Class::Float { order, bits, layout } => (float(size, *order, bits, layout)?, Vec::new()),
            Class::String { .. } => (Self::Plain(format!("|S{size}")), Vec::new()),
            Class::Opaque { .. } => (Self::Plain(format!("|V{size}")), Vec::new()),
            Class::Enum { members, .. } if is_bool(size, members) => (Self::Plain("|b1".into()), Vec::new()),
            Class::Enum { base, .. } => Self::of(base)?,
            Class::Array { dims, base } => {
                let (inner, more) = Self::of(base)?;
                (inner, dims.iter().copied().chain(more).collect())
            }
            Class::Complex { base } => (complex(&Self::of(base)?.0, base.size as usize)?, Vec::new()),
            Class::Compound { .. } => (record(t)?, Vec::new()),
            Class::Time { .. } => return Err(refused("time")),
            Class::VarString { .. } => return Err(refused("variable-length string")),
            Class::VarLen { .. } => return Err(refused("variable-length sequence")),
            Class::Reference(_) => return Err(refused("reference")),
        })
    }
}

impl NumpyType {
    /// The dtype that the header of a `.npy` file describes: a type string, or a list of fields.
    ///
    /// ```
    /// use tensilo::numpy::NumpyType;
    /// let dtype = NumpyType::from_descr("[('a', '<i2'), ('', '|V6'), ('b', '<f8', (2,))]")?;
    /// let NumpyType::Record { fields, size } = &dtype else { panic!("a structured dtype") };
    /// assert_eq!((fields[1].name.as_str(), fields[1].offset, *size), ("b", 8, 24));
    /// # Ok::<(), tensilo::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` for a list of anything but fields of known sizes.
    pub fn from_descr(descr: &str) -> Result<Self> {
        if !descr.starts_with('[') {
            return Ok(Self::Plain(descr.to_owned()));
        }
        let unknown = || Error::unsupported(format!("elements of type {descr}"));
        let (mut fields, mut offset) = (Vec::new(), 0_usize);
        for f in structured(descr).ok_or_else(unknown)? {
            let count = f.shape.iter().try_fold(1_u64, |n, d| n.checked_mul(*d));
            let size = item_size(&f.descr).zip(count).and_then(|(size, n)| size.checked_mul(n));
            let size = size.and_then(|n| usize::try_from(n).ok()).ok_or_else(unknown)?;
            let end = offset.checked_add(size).ok_or_else(unknown)?;
            if !f.name.is_empty() {
                let dtype = Self::from_descr(&f.descr)?;
                fields.push(Field { name: f.name, dtype, shape: f.shape, offset, size });
            }
            offset = end;
        }
        Ok(Self::Record { fields, size: offset })
    }

    /// The datatype that h5py writes for elements of this dtype: booleans as an enumeration, complex numbers as a
    /// compound of `r` and `i`.
    ///
    /// ```
    /// use tensilo::numpy::NumpyType;
    /// let dtype = NumpyType::Plain(">f4".into());
    /// assert_eq!(NumpyType::of(&dtype.datatype()?)?.0, dtype);
    /// # Ok::<(), tensilo::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` for objects, dates and Unicode strings, which HDF5 has no such type for.
    pub fn datatype(&self) -> Result<Datatype> {
        match self {
            Self::Plain(name) => plain(name).ok_or_else(|| {
                Error::unsupported(format!("HDF5 has no datatype for elements of dtype {name:?}"))
            }),
            Self::Record { fields, size } => {
                let mut members = Vec::with_capacity(fields.len());
                for f in fields {
                    let base = f.dtype.datatype().map_err(|e| e.context(format!("field {:?}", f.name)))?;
                    let datatype = Datatype::array(base, &f.shape)?;
                    members.push(Member {
                        name: f.name.clone().into_bytes(),
                        offset: f.offset as u64,
                        datatype,
                    });
                }
                let size = u32::try_from(*size)
                    .map_err(|_| Error::unsupported(format!("elements of {size} bytes")))?;
                Ok(Datatype { size, class: Class::Compound { members } })
            }
        }
    }
}

fn plain(name: &str) -> Option<Datatype> {
    if name == "bfloat16" {
        return Some(Datatype::bfloat16(ByteOrder::Little));
    }
    let order = match name.get(..1)? {
        "<" | "|" => ByteOrder::Little,
        ">" => ByteOrder::Big,
        _ => return None,
    };
    let size: u32 = name.get(2..)?.parse().ok()?;
    Some(match (name.get(1..2)?, size) {
        ("b", 1) => Datatype::boolean(),
        ("i", 1 | 2 | 4 | 8) => Datatype::integer(size as u8, true, order),
        ("u", 1 | 2 | 4 | 8) => Datatype::integer(size as u8, false, order),
        ("f", 2) => Datatype::float16(order),
        ("f", 4) => Datatype::float32(order),
        ("f", 8) => Datatype::float64(order),
        ("c", 8) => Datatype::complex_compound(Datatype::float32(order)),
        ("c", 16) => Datatype::complex_compound(Datatype::float64(order)),
        ("S", 1..) => Datatype::fixed_string(size, CharacterSet::Ascii),
        ("V", 1..) => Datatype { size, class: Class::Opaque { tag: Vec::new() } },
        _ => return None,
    })
}

fn refused(what: &str) -> Error {
    Error::unsupported(format!("NumPy has no dtype for elements of class {what}"))
}

fn letter(size: usize, order: ByteOrder) -> Result<char> {
    match order {
        _ if size == 1 => Ok('|'),
        ByteOrder::Little => Ok('<'),
        ByteOrder::Big => Ok('>'),
        ByteOrder::Vax => Err(refused("number in VAX byte order")),
    }
}

fn number(kind: char, size: usize, order: ByteOrder, bits: &BitField) -> Result<NumpyType> {
    if !matches!(size, 1 | 2 | 4 | 8) || usize::from(bits.precision) != 8 * size || bits.offset != 0 {
        return Err(refused(&format!("integer with {} significant bits in {size} bytes", bits.precision)));
    }
    Ok(NumpyType::Plain(format!("{}{kind}{size}", letter(size, order)?)))
}

fn float(size: usize, order: ByteOrder, bits: &BitField, l: &FloatLayout) -> Result<NumpyType> {
    let fields =
        (l.sign_position, l.exponent_position, l.exponent_size, l.mantissa_position, l.mantissa_size);
    let ieee = match size {
        2 => fields == (15, 10, 5, 0, 10) && l.exponent_bias == 15,
        4 => fields == (31, 23, 8, 0, 23) && l.exponent_bias == 127,
        8 => fields == (63, 52, 11, 0, 52) && l.exponent_bias == 1023,
        _ => false,
    };
    let full = bits.offset == 0 && usize::from(bits.precision) == 8 * size;
    if !ieee || !full || l.normalization != Normalization::Implied {
        return Err(refused(&format!("float of {size} bytes that is not IEEE 754")));
    }
    Ok(NumpyType::Plain(format!("{}f{size}", letter(size, order)?)))
}

fn complex(part: &NumpyType, size: usize) -> Result<NumpyType> {
    match part {
        NumpyType::Plain(s) if s[1..] == *"f4" || s[1..] == *"f8" => {
            Ok(NumpyType::Plain(format!("{}c{}", &s[..1], 2 * size)))
        }
        _ => Err(refused("complex of this precision")),
    }
}

/// Is this the enumeration that h5py and PyTables write for booleans?
fn is_bool(size: usize, members: &[(Vec<u8>, Vec<u8>)]) -> bool {
    size == 1
        && members.len() == 2
        && members.iter().any(|(n, v)| n == b"FALSE" && v == &[0])
        && members.iter().any(|(n, v)| n == b"TRUE" && v == &[1])
}

fn record(t: &Datatype) -> Result<NumpyType> {
    let Class::Compound { members } = &t.class else { return Err(refused("compound")) };
    let size = t.size as usize;
    if let [re, im] = members.as_slice()
        && (re.name.as_slice(), im.name.as_slice()) == (b"r", b"i")
        && re.datatype == im.datatype
        && (re.offset, im.offset) == (0, u64::from(re.datatype.size))
        && size == 2 * re.datatype.size as usize
        && let Ok((part, shape)) = NumpyType::of(&re.datatype)
        && shape.is_empty()
        && let Ok(c) = complex(&part, re.datatype.size as usize)
    {
        return Ok(c);
    }
    let mut fields = Vec::with_capacity(members.len());
    for m in members {
        let name = String::from_utf8(m.name.clone())
            .map_err(|_| Error::unsupported("a compound member's name is not UTF-8"))?;
        let (dtype, shape) = NumpyType::of(&m.datatype).map_err(|e| e.context(format!("member {name:?}")))?;
        let offset = m.offset as usize;
        fields.push(Field { name, dtype, shape, offset, size: m.datatype.size as usize });
    }
    fields.sort_by_key(|f| f.offset);
    let mut end = 0;
    for f in &fields {
        if f.offset < end {
            return Err(refused("compound with overlapping members"));
        }
        end = f.offset + f.size;
    }
    Ok(NumpyType::Record { fields, size })
}

fn python_text(s: &str) -> String {
    format!("'{}'", s.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\r', "\\r"))
}

fn python_tuple(dims: &[u64]) -> String {
    let items: Vec<String> = dims.iter().map(u64::to_string).collect();
    if let [one] = items.as_slice() { format!("({one},)") } else { format!("({})", items.join(", ")) }
}

impl fmt::Display for NumpyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fields, size) = match self {
            Self::Plain(s) => return f.write_str(&python_text(s)),
            Self::Record { fields, size } => (fields, *size),
        };
        let mut items = Vec::new();
        let mut at = 0;
        for field in fields {
            if field.offset > at {
                items.push(format!("('', '|V{}')", field.offset - at));
            }
            let name = python_text(&field.name);
            items.push(if field.shape.is_empty() {
                format!("({name}, {})", field.dtype)
            } else {
                format!("({name}, {}, {})", field.dtype, python_tuple(&field.shape))
            });
            at = field.offset + field.size;
        }
        if size > at {
            items.push(format!("('', '|V{}')", size - at));
        }
        write!(f, "[{}]", items.join(", "))
    }
}

/// The bytes before the data in a `.npy` file of this dtype and shape, in C order.
///
/// ```
/// use tensilo::numpy::{NumpyType, npy_header};
/// let header = npy_header(&NumpyType::Plain("<u2".into()), &[2, 3]);
/// assert_eq!(header.len() % 64, 0);
/// assert!(header.starts_with(b"\x93NUMPY\x01\x00"));
/// ```
pub fn npy_header(dtype: &NumpyType, shape: &[u64]) -> Vec<u8> {
    let text = format!("{{'descr': {dtype}, 'fortran_order': False, 'shape': {}, }}", python_tuple(shape));
    // Version 1 holds up to 65535 bytes of Latin-1, version 3 more and in UTF-8.
    let small = text.is_ascii() && text.len() + 128 < 65535;
    let fixed = if small { 10 } else { 12 };
    let padding = 63 - (fixed + text.len()) % 64;
    let len = text.len() + padding + 1;
    let mut out = b"\x93NUMPY".to_vec();
    if small {
        out.extend_from_slice(&[1, 0]);
        out.extend_from_slice(&(len as u16).to_le_bytes());
    } else {
        out.extend_from_slice(&[3, 0]);
        out.extend_from_slice(&(len as u32).to_le_bytes());
    }
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len() + padding, b' ');
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_hdf5::format::datatype::Padding;

    fn int(size: u32, order: ByteOrder) -> Datatype {
        let bits = BitField {
            offset: 0,
            precision: 8 * size as u16,
            low_padding: Padding::Zero,
            high_padding: Padding::Zero,
        };
        Datatype { size, class: Class::Integer { order, signed: true, bits } }
    }

    #[test]
    fn a_compound_with_gaps_names_them_as_void_fields() {
        let member = |name: &str, offset, datatype| Member { name: name.into(), offset, datatype };
        let array = Datatype {
            size: 6,
            class: Class::Array { dims: vec![3], base: Box::new(int(2, ByteOrder::Big)) },
        };
        let t = Datatype {
            size: 16,
            class: Class::Compound {
                members: vec![member("x", 0, int(1, ByteOrder::Little)), member("it's", 4, array)],
            },
        };
        let (dtype, shape) = NumpyType::of(&t).unwrap();
        assert!(shape.is_empty());
        assert_eq!(dtype.to_string(), r"[('x', '|i1'), ('', '|V3'), ('it\'s', '>i2', (3,)), ('', '|V6')]");
    }

    #[test]
    fn an_integer_with_unused_bits_is_refused() {
        let mut t = int(2, ByteOrder::Little);
        if let Class::Integer { bits, .. } = &mut t.class {
            bits.precision = 12;
        }
        assert_eq!(NumpyType::of(&t).unwrap_err().kind(), tensilo_core::ErrorKind::Unsupported);
    }
}
