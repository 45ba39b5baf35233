//! NumPy's `.npy` files: a header that is a Python literal, then the elements in C order.
//!
//! Source of the facts: NumPy's documentation, `numpy.lib.format`.

use crate::hdf5::StoredArray;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::array::npy::{NPY_MAGIC, NpyHeader, item_size};
use tensilo_core::io::{ByteSource, Disk, FileSource, Staged};
use tensilo_core::{Error, Result};
use tensilo_hdf5::format::datatype::Datatype;

/// The header of a file with elements of NumPy type `descr` (such as `<f4`) and this shape.
///
/// ```
/// let header = tensilo_convert::npy::header("<u2", &[2, 3]);
/// assert_eq!(header.len() % 64, 0);
/// ```
pub fn header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let dims: String = shape.iter().map(|d| format!("{d}, ")).collect();
    let dims =
        if shape.len() == 1 { dims.trim_end().to_owned() } else { dims.trim_end_matches(", ").to_owned() };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    let padding = 63 - (10 + text.len()) % 64;
    let mut out = NPY_MAGIC.to_vec();
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&((text.len() + padding + 1) as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len() + padding, b' ');
    out.push(b'\n');
    out
}

/// An open `.npy` file in C order.
#[derive(Debug, Clone)]
pub struct NpyFile {
    source: Arc<dyn ByteSource>,
    descr: String,
    shape: Vec<u64>,
    data: u64,
    item: u64,
}

impl NpyFile {
    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` for what is no `.npy` file or ends early; `Unsupported` for Fortran order, structured or
    /// object types.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Arc::new(FileSource::open(path)?)).map_err(|e| e.in_file(path))
    }

    /// Opens a file held by a source.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(source: Arc<dyn ByteSource>) -> Result<Self> {
        let NpyHeader { descr, shape, item, data, .. } = NpyHeader::read(&*source)?;
        Ok(Self { source, descr, shape, data, item })
    }

    /// NumPy type string: `<f4`.
    pub fn descr(&self) -> &str {
        &self.descr
    }

    /// Extents, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes of one element.
    pub fn item_size(&self) -> u64 {
        self.item
    }

    /// The elements as an array of this datatype, for HDF5.
    ///
    /// # Errors
    /// `InvalidArgument` when the datatype has another size.
    pub fn stored(&self, datatype: Datatype) -> Result<StoredArray> {
        if u64::from(datatype.size) != self.item {
            return Err(Error::invalid(format!("a datatype of {} bytes for {}", datatype.size, self.descr)));
        }
        StoredArray::new(Arc::clone(&self.source), self.data, datatype, self.shape.clone())
    }

    /// Fills `out` from element `first` on.
    ///
    /// # Errors
    /// `Corrupt` past the end; `Io`.
    pub fn read_at(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let at = first.checked_mul(self.item).and_then(|n| n.checked_add(self.data));
        self.source.read_at(at.ok_or_else(|| Error::invalid("element number passes 2^64"))?, out)
    }
}

/// A `.npy` file being written front to back under a temporary name.
#[derive(Debug)]
pub struct NpyWriter {
    staged: Staged,
    at: u64,
    end: u64,
}

impl NpyWriter {
    /// Starts a file for an array of this type and shape.
    ///
    /// # Errors
    /// `InvalidArgument` when the array passes 2^64 bytes; `Io`.
    pub fn create(disk: Arc<dyn Disk>, path: impl AsRef<Path>, descr: &str, shape: &[u64]) -> Result<Self> {
        let head = header(descr, shape);
        let item = item_size(descr).ok_or_else(|| Error::unsupported(format!("elements of type {descr}")))?;
        let end = shape
            .iter()
            .try_fold(item, |n, d| n.checked_mul(*d))
            .and_then(|n| n.checked_add(head.len() as u64))
            .ok_or_else(|| Error::invalid("the array passes 2^64 bytes"))?;
        let staged = Staged::create(disk, path)?;
        staged.write_at(0, &head)?;
        Ok(Self { staged, at: head.len() as u64, end })
    }

    /// Appends elements' bytes.
    ///
    /// # Errors
    /// `InvalidArgument` past the array's end; `InsufficientDisk`; `Io`.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() as u64 > self.end - self.at {
            return Err(Error::invalid("more elements than the shape holds"));
        }
        self.staged.write_at(self.at, bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Makes the file durable and gives it its name.
    ///
    /// # Errors
    /// `InvalidArgument` when elements are missing; `AlreadyExists` unless `replace`; `Io`.
    pub fn finish(self, replace: bool) -> Result<()> {
        if self.at != self.end {
            return Err(Error::invalid(format!("{} bytes of the array are missing", self.end - self.at)));
        }
        if replace { self.staged.publish_replace() } else { self.staged.publish_no_replace() }.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_core::io::MemorySource;

    #[test]
    fn headers_lead_back_to_type_and_shape() {
        for shape in [vec![], vec![5], vec![2, 3, 0]] {
            let mut bytes = header("<f8", &shape);
            bytes.extend(vec![0; 8 * shape.iter().product::<u64>() as usize]);
            let file = NpyFile::from_source(Arc::new(MemorySource::new(bytes.clone()))).unwrap();
            assert_eq!((file.descr(), file.shape()), ("<f8", &shape[..]));
            if bytes.len() > 64 * bytes.len().div_ceil(64) - 8 && !shape.contains(&0) {
                bytes.pop();
                assert!(NpyFile::from_source(Arc::new(MemorySource::new(bytes))).is_err());
            }
        }
    }

    #[test]
    fn what_is_no_npy_file_is_refused() {
        for bytes in [&b""[..], b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{}", b"\x93NUMPY\x01\x00\x02\x00{}"]
        {
            assert!(NpyFile::from_source(Arc::new(MemorySource::new(bytes))).is_err());
        }
    }
}
