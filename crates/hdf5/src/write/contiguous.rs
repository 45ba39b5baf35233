//! Contiguous datasets, written piece by piece.

use super::addresses::Of;
use super::dataset::{Described, Written};
use super::tree::Storage;
use super::writer::FileWriter;
use crate::format::Address;
use tensilo_core::{Error, Result};

/// Takes the elements of a contiguous dataset in order; [`finish`](Self::finish) enters it into the file.
///
/// Dropped unfinished, it makes the whole file unfinishable.
#[derive(Debug)]
#[must_use = "the dataset is part of the file once it is finished"]
pub struct ContiguousWriter<'w, 'f> {
    writer: &'w mut FileWriter<'f>,
    described: Option<Described>,
    address: Option<Address>,
    size: u64,
    written: u64,
    /// Does the dataset end where writing ends?
    growing: bool,
}

impl<'w, 'f> ContiguousWriter<'w, 'f> {
    pub(crate) fn new(writer: &'w mut FileWriter<'f>, described: Described) -> Result<Self> {
        described.check_fixed()?;
        let size = described.elements * described.element_size();
        let address = if size == 0 { None } else { Some(writer.out.allocate(size, Of::Raw)?) };
        Ok(Self { writer, described: Some(described), address, size, written: 0, growing: false })
    }

    /// As long as what is written. Nothing else is placed in the file meanwhile, as the writer is borrowed.
    pub(crate) fn growing(writer: &'w mut FileWriter<'f>, described: Described) -> Result<Self> {
        described.check_fixed()?;
        if described.dataspace.dims() != [0] {
            return Err(
                Error::invalid("a dataset of unknown length has shape [0]").in_object(described.shown())
            );
        }
        let address = Some(writer.out.begin_run()?);
        Ok(Self { writer, described: Some(described), address, size: 0, written: 0, growing: true })
    }

    /// Absolute position in the file of the first element, user block included; `None` without elements.
    pub fn offset(&self) -> Option<u64> {
        self.address.map(|a| self.writer.out.absolute(a))
    }

    /// The file being written, for objects in its heap.
    pub(crate) fn writer(&mut self) -> &mut FileWriter<'f> {
        self.writer
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when they are more than the shape has, errors of the disk and of the monitor.
    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        if self.growing {
            self.writer.out.extend(data.len() as u64)?;
            self.size += data.len() as u64;
        }
        let Some(address) = self.address.filter(|_| data.len() as u64 <= self.size - self.written) else {
            if data.is_empty() {
                return Ok(());
            }
            return Err(Error::invalid(format!(
                "{} bytes after {} of {}",
                data.len(),
                self.written,
                self.size
            )));
        };
        // Pieces keep the monitor polled and cost nothing.
        for piece in data.chunks(8 << 20) {
            self.writer.poll("writing", self.written, self.size)?;
            self.writer.out.write(Address(address.0 + self.written), piece)?;
            self.written += piece.len() as u64;
        }
        Ok(())
    }

    /// Enters the dataset into the file.
    ///
    /// # Errors
    /// `InvalidArgument` when elements are missing.
    pub fn finish(mut self) -> Result<Written> {
        let Some(mut described) = self.described.take() else {
            return Err(Error::invalid("the dataset was finished already"));
        };
        if self.growing {
            let count = self.size / described.element_size();
            described.elements = count;
            described.dataspace = super::value::simple(&[count]);
            self.address = self.address.filter(|_| self.size > 0);
            if count * described.element_size() != self.size {
                self.writer.out.give_up();
                return Err(Error::invalid(format!("{} bytes are no whole number of elements", self.size))
                    .in_object(described.shown()));
            }
        }
        if self.written != self.size {
            self.writer.out.give_up();
            return Err(Error::invalid(format!("{} of {} bytes were written", self.written, self.size))
                .in_object(described.shown()));
        }
        let storage = Storage::Contiguous { address: self.address, size: self.size };
        self.writer.add_dataset(described, storage, self.size)
    }
}

impl Drop for ContiguousWriter<'_, '_> {
    fn drop(&mut self) {
        if self.described.is_some() {
            self.writer.out.give_up();
        }
    }
}
