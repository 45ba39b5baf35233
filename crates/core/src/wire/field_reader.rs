//! Reads little-endian fields from bytes of a file: it knows its absolute offset for the error message, and
//! nothing it is given can make it panic.

use crate::error::{Error, Result};

/// A cursor over bytes that came from a known place in a file.
///
/// ```
/// use tensilo_core::wire::FieldReader;
/// let mut r = FieldReader::new(&[1, 0, 2], 4096, "header");
/// assert_eq!(r.u16()?, 1);
/// assert_eq!(r.u8()?, 2);
/// assert_eq!(r.u8().unwrap_err().offset(), Some(4099));
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FieldReader<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
    what: &'static str,
}

impl<'a> FieldReader<'a> {
    /// Reads `bytes`, which begin at absolute file offset `base` and belong to the structure `what`.
    pub fn new(bytes: &'a [u8], base: u64, what: &'static str) -> Self {
        Self { bytes, at: 0, base, what }
    }

    /// Absolute file offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.at as u64)
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The name of the structure being read.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// A `Corrupt` error at the current offset: `what: message`.
    #[cold]
    pub fn corrupt(&self, message: impl std::fmt::Display) -> Error {
        Error::corrupt(format!("{}: {message}", self.what)).at(self.offset())
    }

    /// An `Unsupported` error at the current offset: `what: message`.
    #[cold]
    pub fn unsupported(&self, message: impl std::fmt::Display) -> Error {
        Error::unsupported(format!("{}: {message}", self.what)).at(self.offset())
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// `Corrupt` when fewer are left; so for every method below.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..n)) {
            Some(b) => {
                self.at += n;
                Ok(b)
            }
            None => {
                Err(self
                    .corrupt(format_args!("ends after {} bytes where {n} more are needed", self.bytes.len())))
            }
        }
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let b = self.bytes.get(self.at..).unwrap_or(&[]);
        self.at = self.bytes.len();
        b
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut a = [0; N];
        a.copy_from_slice(self.bytes(N)?);
        Ok(a)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Three bytes, as HDF5's datatype bit field has them.
    pub fn u24(&mut self) -> Result<u32> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// An unsigned integer of 0 to 8 bytes.
    pub fn uint(&mut self, width: usize) -> Result<u64> {
        if width > 8 {
            // Wider fields are legal where their upper bytes are zero.
            let b = self.bytes(width)?;
            let (low, high) = b.split_at(8);
            if high.iter().any(|x| *x != 0) {
                return Err(self.unsupported(format_args!("a {width}-byte number does not fit in 64 bits")));
            }
            let mut a = [0; 8];
            a.copy_from_slice(low);
            return Ok(u64::from_le_bytes(a));
        }
        let mut a = [0; 8];
        let b = self.bytes(width)?;
        if let Some(dst) = a.get_mut(..width) {
            dst.copy_from_slice(b);
        }
        Ok(u64::from_le_bytes(a))
    }

    /// Skips `n` bytes.
    pub fn skip(&mut self, n: usize) -> Result<()> {
        self.bytes(n).map(|_| ())
    }

    /// Checks a signature.
    pub fn signature(&mut self, expected: &[u8]) -> Result<()> {
        let at = self.offset();
        let found = self.bytes(expected.len())?;
        if found != expected {
            return Err(Error::corrupt(format!(
                "{}: signature {:?} expected, {:?} found",
                self.what,
                String::from_utf8_lossy(expected),
                String::from_utf8_lossy(found)
            ))
            .at(at));
        }
        Ok(())
    }
}
