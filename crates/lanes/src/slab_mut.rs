//! A slab on loan from the writer: filled in memory, written through the disk when it is given back.

use crate::chunked;
use crate::lane_type::LaneElement;
use crate::writer::StoreWriter;
use std::ops::{Deref, DerefMut};
use tensilo_core::Result;

/// A slab on loan: change it, and it is written when dropped.
#[derive(Debug)]
pub struct SlabMut<'a, T: LaneElement> {
    writer: &'a StoreWriter,
    index: usize,
    k: u64,
    values: Vec<T>,
    due: bool,
}

impl<'a, T: LaneElement> SlabMut<'a, T> {
    pub(crate) fn new(writer: &'a StoreWriter, index: usize, k: u64, values: Vec<T>) -> Self {
        Self { writer, index, k, values, due: true }
    }
}

impl<T: LaneElement> Deref for SlabMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T: LaneElement> DerefMut for SlabMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

impl<T: LaneElement> SlabMut<'_, T> {
    /// Writes the slab now, and says whether that worked.
    ///
    /// # Errors
    /// `InsufficientDisk`, `Io`.
    pub fn write(mut self) -> Result<()> {
        self.due = false;
        self.store()
    }

    fn store(&self) -> Result<()> {
        let spec = self.writer.spec(self.index);
        if spec.chunk.is_empty() {
            self.writer.put_bytes(self.index, self.k, bytemuck::cast_slice(&self.values))
        } else {
            let stored = chunked::to_stored(spec, &self.values)?;
            self.writer.put_bytes(self.index, self.k, bytemuck::cast_slice(&stored))
        }
    }
}

impl<T: LaneElement> Drop for SlabMut<'_, T> {
    fn drop(&mut self) {
        if self.due
            && let Err(e) = self.store()
        {
            self.writer.fail(e);
        }
    }
}
