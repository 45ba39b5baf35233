//! Shared message references (specification IV.A.2, "Shared Message"): where a shared message really is.

use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Where a shared message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedReference {
    /// In the shared message heap, under this heap id.
    Heap([u8; 8]),
    /// In the object header at this address (a committed datatype, or an object that others share with).
    Object(Address),
}

impl SharedReference {
    /// Parses a reference, versions 1 to 3, and leaves the reader behind it.
    ///
    /// # Errors
    /// `Corrupt` when version or type are not known, or bytes are missing.
    pub fn parse(r: &mut FieldReader<'_>, sizes: Sizes) -> Result<Self> {
        let version = r.u8()?;
        let kind = r.u8()?;
        match version {
            1 => {
                // Version 1 holds a whole symbol table entry; only the address in it matters.
                r.skip(6)?;
                sizes.length(r)?;
                Self::object(r, sizes)
            }
            2 => Self::object(r, sizes),
            3 if kind == 1 => Ok(Self::Heap(r.array()?)),
            3 if kind == 2 || kind == 3 => Self::object(r, sizes),
            3 => Err(r.corrupt(format_args!("shared message type {kind} is not known"))),
            v => Err(r.corrupt(format_args!("shared message version {v} is not known"))),
        }
    }

    fn object(r: &mut FieldReader<'_>, sizes: Sizes) -> Result<Self> {
        sizes.address(r)?.map(Self::Object).ok_or_else(|| r.corrupt("a shared message without an address"))
    }
}

/// Shared message table message (specification IV.A.2.p), found in the superblock extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedTableMessage {
    /// Address of the master table.
    pub address: Address,
    /// Number of indexes in it.
    pub indexes: u8,
}

impl SharedTableMessage {
    /// Parses the message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "shared message table message");
        if r.u8()? != 0 {
            return Err(r.corrupt("version is not known"));
        }
        let address = sizes.address(&mut r)?.ok_or_else(|| r.corrupt("no address"))?;
        let indexes = r.u8()?;
        if indexes == 0 || indexes > 8 {
            return Err(r.corrupt(format_args!("{indexes} indexes; 1 to 8 are possible")));
        }
        Ok(Self { address, indexes })
    }
}
