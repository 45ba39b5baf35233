//! Stacks in NumPy's `.npy` files: counts in C order.

use crate::v2::counts::CountType;
use std::path::Path;
use tensilo_core::array::npy::NpyHeader;
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::{Error, Result};

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
        let NpyHeader { descr, shape, data, .. } = NpyHeader::read(&source)?;
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
