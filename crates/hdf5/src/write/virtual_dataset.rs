//! Virtual datasets: elements that stand in other datasets, and where.

use super::dataset::DatasetBuilder;
use super::tree::Storage;
use crate::format::encode::put_checksum;
use crate::format::encode::selection::Region;
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// A part of a virtual dataset and the part of another dataset that it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualSource {
    /// Name of the file; `.` for the file itself. `%b` stands for the number of the block along an unlimited
    /// dimension, `%%` for a percent sign.
    pub file: String,
    /// Path of the dataset in that file, with the same rules.
    pub dataset: String,
    /// What is shown of it.
    pub source: Region,
    /// Where it is shown.
    pub shown: Region,
}

impl DatasetBuilder<'_, '_> {
    /// Makes a virtual dataset of these parts; what no part covers reads as the fill value. Needs libhdf5 1.10
    /// or newer to be read, under every bound.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn create_virtual(self, sources: &[VirtualSource]) -> Result<()> {
        let (writer, d) = self.describe()?;
        if d.chunk.is_some() || d.compact {
            return Err(Error::invalid("a virtual dataset has no chunks and no data of its own"));
        }
        // Every reader of virtual datasets knows what 1.10 knows.
        let bound = writer.options.bound.max(super::Bound::V110);
        let mut w = FieldWriter::new();
        w.u8(0).u64(sources.len() as u64);
        for s in sources {
            for name in [&s.file, &s.dataset] {
                if name.is_empty() || name.contains('\0') {
                    return Err(Error::invalid("the name of a virtual source is empty or contains a NUL"));
                }
                w.bytes(name.as_bytes()).u8(0);
            }
            s.source.encode(&mut w, bound)?;
            s.shown.encode(&mut w, bound)?;
        }
        put_checksum(&mut w);
        let heap = writer.heap_object(w.as_slice())?;
        writer.add_dataset(d, Storage::Virtual(heap), 0).map(|_| ())
    }

    /// Makes a virtual dataset from the stored list of its sources, as another file has it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn create_virtual_stored(self, list: &[u8]) -> Result<()> {
        let (writer, d) = self.describe()?;
        let heap = writer.heap_object(list)?;
        writer.add_dataset(d, Storage::Virtual(heap), 0).map(|_| ())
    }
}
