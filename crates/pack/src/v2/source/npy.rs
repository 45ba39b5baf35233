//! Stacks in NumPy's `.npy` files: a header that is a Python literal, then the counts in C order.
//!
//! Source of the facts: NumPy's documentation, `numpy.lib.format`.

use crate::v2::counts::CountType;
use std::path::Path;
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::{Error, Result};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// A header longer than this is none of NumPy's.
const HEADER_MAX: u64 = 1 << 16;

/// An open `.npy` file of counts.
#[derive(Debug)]
pub(crate) struct NpyStack {
    source: FileSource,
    pub counts: CountType,
    big_endian: bool,
    pub shape: Vec<u64>,
    data: u64,
}

impl NpyStack {
    /// # Errors
    /// `NotFound`; `Corrupt` for what is no `.npy` file or ends early; `Unsupported` for Fortran order or elements that
    /// are no counts.
    pub fn open(path: &Path) -> Result<Self> {
        Self::parse(FileSource::open(path)?).map_err(|e| e.in_file(path))
    }

    fn parse(source: FileSource) -> Result<Self> {
        let mut head = [0; 12];
        if source.len() < 12 {
            return Err(Error::corrupt("too short for a .npy file"));
        }
        source.read_at(0, &mut head)?;
        if head[..6] != *MAGIC {
            return Err(Error::corrupt("no .npy file: it begins otherwise"));
        }
        let (start, len) = match head[6] {
            1 => (10, u64::from(u16::from_le_bytes([head[8], head[9]]))),
            2 | 3 => (12, u64::from(u32::from_le_bytes([head[8], head[9], head[10], head[11]]))),
            v => return Err(Error::unsupported(format!(".npy version {v}")).at(6)),
        };
        if len > HEADER_MAX || start + len > source.len() {
            return Err(Error::corrupt(format!("a header of {len} bytes does not fit the file")).at(8));
        }
        let mut text = vec![0; len as usize];
        source.read_at(start, &mut text)?;
        let text = String::from_utf8(text).map_err(|_| Error::corrupt("the header is no text").at(start))?;
        let (descr, fortran, shape) =
            literal(&text).ok_or_else(|| Error::corrupt("the header cannot be read").at(start))?;
        if fortran && shape.iter().filter(|d| **d > 1).count() > 1 {
            return Err(
                Error::unsupported("the array is in Fortran order").hint("save numpy.ascontiguousarray(a)")
            );
        }
        let unsupported = || Error::unsupported(format!("elements of type {descr}; a pack holds counts"));
        let mut parts = descr.chars();
        let (order, kind) = (parts.next(), parts.next());
        let bytes: u32 = parts.as_str().parse().map_err(|_| unsupported())?;
        let signed = match kind {
            Some('u') => false,
            Some('i') => true,
            _ => return Err(unsupported()),
        };
        let counts = CountType::new(bytes, signed).map_err(|_| unsupported())?;
        let data = start + len;
        let total = shape.iter().try_fold(u64::from(bytes), |n, d| n.checked_mul(*d));
        if total.and_then(|n| n.checked_add(data)).is_none_or(|end| end > source.len()) {
            let e = format!("shape {shape:?} of {descr} passes the end of the file");
            return Err(Error::corrupt(e).at(data));
        }
        Ok(Self { source, counts, big_endian: order == Some('>'), shape, data })
    }

    /// Fills `out` with the elements from `first` on, in this machine's byte order.
    pub fn read_at(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let width = self.counts.bytes();
        self.source.read_at(self.data + first * width as u64, out)?;
        if self.big_endian != cfg!(target_endian = "big") {
            out.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        Ok(())
    }
}

/// Reads `{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }`.
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
    Some((descr, fortran, shape.map(|d| d.parse().ok()).collect::<Option<Vec<u64>>>()?))
}
