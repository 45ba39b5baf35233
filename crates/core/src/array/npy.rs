//! The header of NumPy's `.npy` files: a Python literal that says what the elements behind it are.
//!
//! Source of the facts: NumPy's documentation, `numpy.lib.format`.

use crate::io::ByteSource;
use crate::{Error, Result};

/// What every `.npy` file begins with.
pub const NPY_MAGIC: &[u8; 6] = b"\x93NUMPY";
/// A header longer than this is no header of ours or of NumPy's.
const HEADER_MAX: u64 = 1 << 20;

/// What a `.npy` file holds, in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// NumPy type string: `<f4`.
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
    /// `Corrupt` for what is no `.npy` file or ends early; `Unsupported` for Fortran order and for elements that are not of
    /// one plain type; `Io`.
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
        let text = String::from_utf8(text).map_err(|_| Error::corrupt("the header is no text").at(start))?;
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

/// Bytes of an element of a NumPy type string; `None` for what is no plain type.
pub fn item_size(descr: &str) -> Option<u64> {
    let kind = descr.get(1..2)?;
    let size: u64 = descr.get(2..)?.parse().ok()?;
    (descr.starts_with(['<', '|', '>', '=']) && "biufcSV".contains(kind)).then_some(size)
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
fn literal(text: &str) -> Option<(String, bool, Vec<u64>)> {
    let after = |key: &str| {
        let at = text.find(&format!("'{key}'"))?;
        Some(text.get(at..)?.split_once(':')?.1.trim_start())
    };
    let descr = after("descr")?.strip_prefix('\'')?.split_once('\'')?.0.to_owned();
    let order = after("fortran_order")?;
    let fortran =
        if order.starts_with("True") { true } else { order.starts_with("False").then_some(false)? };
    let dims = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let shape = dims.split(',').map(str::trim).filter(|d| !d.is_empty());
    Some((descr, fortran, shape.map(|d| d.parse().ok()).collect::<Option<_>>()?))
}
