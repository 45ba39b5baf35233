//! Contiguous data as the source holds it, without a copy.

use super::convert::Conversion;
use super::dataset::Storage;
use super::{Dataset, Element};
use tensilo_core::{Error, Result};

impl Dataset {
    /// All elements as the source holds them, without a copy: contiguous data of a source in memory or mapped.
    /// `None` for other layouts and sources, and where nothing was written.
    ///
    /// # Errors
    /// `Corrupt` when the data reaches past the end of the file.
    pub fn view_bytes(&self) -> Result<Option<&[u8]>> {
        let Storage::Contiguous(start) = self.0.storage else { return Ok(None) };
        self.located(|| {
            let space = &self.0.file.0.space;
            let end = start.checked_add(self.0.bytes()?).filter(|end| *end <= space.end());
            let end = end.ok_or_else(|| {
                Error::corrupt("contiguous data reaches past the end of the file").at(start)
            })?;
            Ok(space.source().borrow(start..end))
        })
    }

    /// As [`view_bytes`](Self::view_bytes), as values: `None` also where elements are not stored just as `T`, or not
    /// aligned for it.
    ///
    /// # Errors
    /// As [`view_bytes`](Self::view_bytes).
    pub fn view<T: Element>(&self) -> Result<Option<&[T]>> {
        let same = Conversion::new(&self.0.datatype, T::KIND).is_ok_and(|c| c.is_copy());
        let bytes = if same { self.view_bytes()? } else { None };
        Ok(bytes.and_then(|b| bytemuck::try_cast_slice(b).ok()))
    }

    /// The absolute offset of contiguous data; `None` for other layouts and where nothing was written.
    pub fn contiguous_offset(&self) -> Option<u64> {
        match self.0.storage {
            Storage::Contiguous(at) => Some(at),
            _ => None,
        }
    }
}
