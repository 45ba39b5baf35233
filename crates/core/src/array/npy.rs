//! The header of NumPy's `.npy` files: a Python literal that says what the elements behind it are.
//!
//! Source of the facts: NumPy's documentation, `numpy.lib.format`.

use super::npy_literal::{Literal, Reader};
use crate::io::ByteSource;
use crate::{Error, Result};

/// What every `.npy` file begins with.
pub const NPY_MAGIC: &[u8; 6] = b"\x93NUMPY";
/// A header longer than this is no header of ours or of NumPy's.
const HEADER_MAX: u64 = 1 << 20;

/// What a `.npy` file holds, in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// NumPy type string: `<f4`; of a structured type the list of its fields.
    pub descr: String,
    /// Extents, slowest first.
    pub shape: Vec<u64>,
    /// Bytes of one element.
    pub item: u64,
    /// Bytes of all elements.
    pub bytes: u64,
    /// Offset of the first element.
    pub data: u64,
}

impl NpyHeader {
    /// Reads the header, and sees that the file is as long as it says.
    ///
    /// ```
    /// use tensilo_core::array::npy::NpyHeader;
    /// use tensilo_core::io::MemorySource;
    /// let text = "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }";
    /// let mut file = [b"\x93NUMPY\x01\x00", &[text.len() as u8, 0][..], text.as_bytes()].concat();
    /// file.extend([0; 12]);
    /// let header = NpyHeader::read(&MemorySource::new(file))?;
    /// assert_eq!((&*header.descr, &header.shape[..], header.item), ("<u2", &[2, 3][..], 2));
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupt` for what is no `.npy` file or ends early; `Unsupported` for Fortran order and for elements that are
    /// neither of a plain type nor structured; `Io`.
    pub fn read(source: &dyn ByteSource) -> Result<Self> {
        let mut at = 0;
        let header = Self::read_front(&mut |out: &mut [u8]| {
            let end = at + out.len() as u64;
            if end > source.len() {
                return Err(Error::corrupt("no .npy file: it ends before its header does").at(at));
            }
            source.read_at(at, out)?;
            at = end;
            Ok(())
        })?;
        if header.data.checked_add(header.bytes).is_none_or(|end| end > source.len()) {
            let e = format!("shape {:?} of {} passes the end of the file", header.shape, header.descr);
            return Err(Error::corrupt(e).at(header.data));
        }
        Ok(header)
    }

    /// Reads the header from bytes that `next` gives front to back; it then stands at the first element.
    ///
    /// # Errors
    /// As [`read`](Self::read), but for the length of what follows; errors of `next`.
    pub fn read_front(next: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<Self> {
        let mut head = [0; 10];
        next(&mut head)?;
        if head[..6] != *NPY_MAGIC {
            return Err(Error::corrupt("no .npy file: it begins otherwise"));
        }
        let (start, len) = match head[6] {
            1 => (10, u64::from(u16::from_le_bytes([head[8], head[9]]))),
            2 | 3 => {
                let mut more = [0; 2];
                next(&mut more)?;
                (12, u64::from(u32::from_le_bytes([head[8], head[9], more[0], more[1]])))
            }
            v => return Err(Error::unsupported(format!(".npy version {v}")).at(6)),
        };
        if len > HEADER_MAX {
            return Err(Error::corrupt(format!("a header of {len} bytes; {HEADER_MAX} are possible")).at(8));
        }
        let mut text = vec![0; len as usize];
        next(&mut text)?;
        let text = match head[6] {
            3 => String::from_utf8(text).map_err(|_| Error::corrupt("the header is no text").at(start))?,
            // Latin-1: each byte is the character of its number.
            _ => text.into_iter().map(char::from).collect(),
        };
        let (descr, fortran, shape) =
            literal(&text).ok_or_else(|| Error::corrupt("the header cannot be read").at(start))?;
        if fortran && shape.iter().filter(|d| **d > 1).count() > 1 {
            return Err(
                Error::unsupported("the array is in Fortran order").hint("save numpy.ascontiguousarray(a)")
            );
        }
        let item =
            item_size(&descr).ok_or_else(|| Error::unsupported(format!("elements of type {descr}")))?;
        let bytes = shape.iter().try_fold(item, |n, d| n.checked_mul(*d)).ok_or_else(|| {
            Error::corrupt(format!("shape {shape:?} of {descr} passes 2^64 bytes")).at(start)
        })?;
        Ok(Self { descr, shape, item, bytes, data: start + len })
    }
}

/// Bytes of an element of a NumPy type string, or of the list of a structured type; `None` for what is neither.
///
/// ```
/// use tensilo_core::array::npy::item_size;
/// assert_eq!(item_size("<f4"), Some(4));
/// assert_eq!(item_size("[('a', '<i2'), ('b', '<f8', (2,))]"), Some(18));
/// assert_eq!(item_size("|O"), None);
/// ```
pub fn item_size(descr: &str) -> Option<u64> {
    if descr.starts_with('[') {
        return structured(descr)?.iter().try_fold(0_u64, |sum, f| {
            let count = f.shape.iter().try_fold(1_u64, |n, d| n.checked_mul(*d))?;
            sum.checked_add(item_size(&f.descr)?.checked_mul(count)?)
        });
    }
    let kind = descr.get(1..2)?;
    let size: u64 = descr.get(2..)?.parse().ok()?;
    (descr.starts_with(['<', '|', '>', '=']) && "biufcSV".contains(kind)).then_some(size)
}

/// A field of a structured type; each begins where the one before ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyField {
    /// Its name; empty where it only fills space.
    pub name: String,
    /// Its NumPy type string, or the list of its fields.
    pub descr: String,
    /// Its own shape, empty for a single value.
    pub shape: Vec<u64>,
}

/// The fields of a structured type, as a header lists them: `[('a', '<i2'), ('b', '<f4', (2,))]`.
pub fn structured(descr: &str) -> Option<Vec<NpyField>> {
    match Reader::new(descr).value()? {
        Literal::List(fields) => fields.into_iter().map(field).collect(),
        _ => None,
    }
}

fn field(literal: Literal) -> Option<NpyField> {
    let Literal::List(parts) = literal else { return None };
    let mut parts = parts.into_iter();
    let name = match parts.next()? {
        Literal::Text(name) => name,
        // A title, then the name.
        Literal::List(both) => match both.into_iter().nth(1)? {
            Literal::Text(name) => name,
            _ => return None,
        },
        _ => return None,
    };
    let descr = described(&parts.next()?)?;
    let shape = match parts.next() {
        None => Vec::new(),
        Some(Literal::Number(n)) => vec![n],
        Some(Literal::List(dims)) => dims.iter().map(number).collect::<Option<_>>()?,
        Some(_) => return None,
    };
    parts.next().is_none().then_some(NpyField { name, descr, shape })
}

fn number(literal: &Literal) -> Option<u64> {
    if let Literal::Number(n) = literal { Some(*n) } else { None }
}

/// A type as text: a type string as it is, a list as Python writes it.
fn described(literal: &Literal) -> Option<String> {
    match literal {
        Literal::Text(text) => Some(text.clone()),
        Literal::List(_) => written(literal),
        _ => None,
    }
}

fn written(literal: &Literal) -> Option<String> {
    Some(match literal {
        Literal::Text(text) => {
            let escape = |c: char| match c {
                '\\' | '\'' => format!("\\{c}"),
                c if c.is_control() => format!("\\U{:08x}", u32::from(c)),
                c => c.to_string(),
            };
            format!("'{}'", text.chars().map(escape).collect::<String>())
        }
        Literal::Number(n) => n.to_string(),
        Literal::Bool(_) => return None,
        Literal::List(items) => {
            format!("[{}]", items.iter().map(written).collect::<Option<Vec<_>>>()?.join(", "))
        }
    })
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
fn literal(text: &str) -> Option<(String, bool, Vec<u64>)> {
    let mut reader = Reader::new(text);
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    reader.pass("{").then_some(())?;
    while !reader.pass("}") {
        let Literal::Text(key) = reader.value()? else { return None };
        reader.pass(":").then_some(())?;
        match (key.as_str(), reader.value()?) {
            ("descr", value) => descr = Some(described(&value)?),
            ("fortran_order", Literal::Bool(b)) => fortran = Some(b),
            ("shape", Literal::List(dims)) => {
                shape = Some(dims.iter().map(number).collect::<Option<Vec<u64>>>()?);
            }
            _ => return None,
        }
        if !reader.pass(",") && !reader.left().starts_with('}') {
            return None;
        }
    }
    Some((descr?, fortran?, shape?))
}
