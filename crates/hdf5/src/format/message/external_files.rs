//! External data files message (specification IV.A.2.h): raw data in other files.

use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Where the raw data of a dataset is in other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalFiles {
    /// Address of the local heap that holds the names.
    pub heap: Address,
    /// The pieces, in order.
    pub slots: Vec<ExternalSlot>,
}

/// One piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalSlot {
    /// Where the name begins in the heap.
    pub name: u64,
    /// Where the data begins in the file, in bytes.
    pub offset: u64,
    /// Bytes reserved there; `None` for unlimited.
    pub size: Option<u64>,
}

impl ExternalFiles {
    /// Parses the message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "external files message");
        let version = r.u8()?;
        if version != 1 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        r.skip(3)?;
        let (allocated, used) = (r.u16()?, r.u16()?);
        if allocated == 0 || used > allocated {
            return Err(r.corrupt(format_args!("{used} of {allocated} slots are used")));
        }
        let heap = sizes.address(&mut r)?.ok_or_else(|| r.corrupt("no heap address"))?;
        let mut slots = Vec::new();
        for _ in 0..used {
            let (name, offset) = (sizes.length(&mut r)?, sizes.length(&mut r)?);
            slots.push(ExternalSlot { name, offset, size: unlimited(&mut r, sizes)? });
        }
        Ok(Self { heap, slots })
    }
}

/// A length of which all bits set mean that there is no end.
fn unlimited(r: &mut FieldReader<'_>, sizes: Sizes) -> Result<Option<u64>> {
    Sizes { offset: sizes.length, ..sizes }.address(r).map(|a| a.map(|a| a.0))
}
