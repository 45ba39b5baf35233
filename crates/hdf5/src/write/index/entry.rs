//! What fixed arrays, extensible arrays and version 2 B-trees keep of a chunk.

use super::{Chunks, Record};
use crate::format::encode::{UNDEFINED, width_of};
use tensilo_core::wire::FieldWriter;

/// The form of an entry: an address, and for filtered chunks the stored size and the filter mask.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryForm {
    /// Width of the stored size; 0 for unfiltered chunks.
    size_width: usize,
}

impl EntryForm {
    pub(super) fn of(chunks: &Chunks, layout_version: u8) -> Self {
        let bytes = chunks.dims.iter().product::<u64>() * chunks.element_size;
        // Version 4 leaves one more byte than a chunk's size needs, version 5 always has eight.
        let size_width = match (chunks.filtered, layout_version) {
            (false, _) => 0,
            (true, ..=4) => (1 + width_of(bytes)).min(8),
            (true, _) => 8,
        };
        Self { size_width }
    }

    pub(super) fn is_filtered(self) -> bool {
        self.size_width > 0
    }

    pub(super) fn size(self) -> usize {
        if self.is_filtered() { 8 + self.size_width + 4 } else { 8 }
    }

    pub(super) fn put(self, w: &mut FieldWriter, record: Option<&Record>) {
        w.u64(record.map_or(UNDEFINED, |r| r.address.0));
        if self.is_filtered() {
            w.uint(record.map_or(0, |r| r.size), self.size_width).u32(record.map_or(0, |r| r.mask));
        }
    }
}
