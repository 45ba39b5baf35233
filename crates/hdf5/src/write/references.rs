//! References of HDF5 1.12 and newer: to objects, to parts of datasets, to attributes.
//!
//! | element | bytes |
//! |---|---|
//! | kind (2 object, 3 region, 4 attribute), flags | 2 |
//! | of an object: size of an address, address | 9 |
//! | of the rest: size, heap collection, index | 16 |
//!
//! The heap object begins with size of an address and address; then of regions size and rank (4 each) and the
//! selection, of attributes the length of the name (2) and the name.

use super::writer::FileWriter;
use crate::format::encode::Bound;
use crate::format::encode::selection::Region;
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// What a reference of HDF5 1.12 and newer refers to.
#[derive(Debug, Clone, Copy)]
pub enum Referred<'a> {
    /// The object itself.
    Object,
    /// A part of the dataset.
    Region(&'a Region),
    /// The attribute of this name.
    Attribute(&'a [u8]),
}

/// Bytes of an element: kind, flags, size, heap collection, index.
const ELEMENT: usize = 18;

impl FileWriter<'_> {
    /// A reference of HDF5 1.12 and newer: the 18 bytes of an element of
    /// [`Datatype::reference`](crate::format::datatype::Datatype::reference).
    ///
    /// # Errors
    /// `NotFound` when the object was not made yet, `Unsupported` under bounds below v112, `InvalidArgument` for
    /// regions of what is no dataset.
    pub fn standard_reference(
        &mut self,
        object: impl AsRef<[u8]>,
        to: Referred<'_>,
    ) -> Result<[u8; ELEMENT]> {
        let object = object.as_ref();
        if self.bound() < Bound::V112 {
            let bound = self.bound();
            return Err(Error::unsupported(format!(
                "references of HDF5 1.12 cannot be written under the bound {bound}"
            )));
        }
        let address = self.reference(object)?;
        let mut element = FieldWriter::new();
        let mut stored = FieldWriter::new();
        stored.u8(8).u64(address.0);
        match to {
            Referred::Object => {
                element.u8(2).u8(0).bytes(stored.as_slice());
            }
            Referred::Region(region) => {
                let (_, rank) = self.dataset_rank(object)?;
                let mut selection = FieldWriter::new();
                region.encode(&mut selection, self.bound())?;
                stored.u32(selection.len() as u32).u32(rank as u32).bytes(selection.as_slice());
                element.u8(3).u8(0);
            }
            Referred::Attribute(name) => {
                let len = u16::try_from(name.len())
                    .map_err(|_| Error::invalid("an attribute's name of over 65535 bytes"))?;
                stored.u16(len).bytes(name);
                element.u8(4).u8(0);
            }
        }
        if !matches!(to, Referred::Object) {
            let id = self.heap_object(stored.as_slice())?;
            element.u32(stored.len() as u32).u64(id.collection.0).u32(id.index);
        }
        let mut bytes = [0; ELEMENT];
        bytes[..element.len()].copy_from_slice(element.as_slice());
        Ok(bytes)
    }
}
