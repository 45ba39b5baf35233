//! Seal of format 1: the 20 bytes that say that a file was finished.

use crate::place::Placement;
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, Result};

pub(crate) const MAGIC: [u8; 4] = *b"PTSZ";
pub(crate) const LEN: u64 = 20;

/// Where the seal of a file with this data end stands.
pub(crate) fn offset(data_end: u64) -> Result<u64> {
    data_end.checked_next_multiple_of(8).ok_or_else(|| Error::corrupt("data end passes 2^64"))
}

/// The seal's bytes.
pub(crate) fn encode(placement: &Placement) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.bytes(&MAGIC).u64(placement.nslabs).u64(placement.data_end);
    w.finish()
}

/// Compares a seal with its header.
pub(crate) fn check(bytes: &[u8], at: u64, placement: &Placement) -> Result<()> {
    let mut r = FieldReader::new(bytes, at, "seal");
    r.signature(&MAGIC).map_err(|e| e.hint("the store was never finished, or it was cut"))?;
    for (field, expected) in [("nslabs", placement.nslabs), ("data end", placement.data_end)] {
        let here = r.offset();
        let found = r.u64()?;
        if found != expected {
            return Err(
                Error::corrupt(format!("seal: {field} is {found}, the header says {expected}")).at(here)
            );
        }
    }
    Ok(())
}
