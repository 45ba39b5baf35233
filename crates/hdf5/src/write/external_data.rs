//! Raw data in files of its own.

use super::dataset::DatasetBuilder;
use super::tree::Storage;
use tensilo_core::{Error, Result};

/// A piece of a file that holds raw data of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalData {
    /// Name of the file, as readers will resolve it.
    pub file: String,
    /// Where the piece begins.
    pub offset: u64,
    /// Its bytes; `None` for as many as there are, in the last piece only.
    pub bytes: Option<u64>,
}

impl DatasetBuilder<'_, '_> {
    /// Makes a contiguous dataset whose raw data stands in other files, which are not touched.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn create_external(self, pieces: &[ExternalData]) -> Result<()> {
        let (writer, d) = self.describe()?;
        if d.chunk.is_some() || d.compact {
            return Err(Error::invalid("only a contiguous dataset can have its data in other files"));
        }
        let size = d.elements * d.element_size();
        let mut room = 0_u64;
        for (i, p) in pieces.iter().enumerate() {
            if p.file.is_empty() || p.file.contains('\0') {
                return Err(Error::invalid("the name of an external file is empty or contains a NUL"));
            }
            if p.bytes.is_none() && i + 1 != pieces.len() {
                return Err(Error::invalid("only the last external file can be of any length"));
            }
            room = room.saturating_add(p.bytes.unwrap_or(u64::MAX));
        }
        if room < size || pieces.len() > usize::from(u16::MAX) {
            return Err(Error::invalid(format!(
                "{} external files with room for {room} of {size} bytes",
                pieces.len()
            )));
        }
        writer.add_dataset(d, Storage::External { pieces: pieces.to_vec(), size }, 0).map(|_| ())
    }
}
