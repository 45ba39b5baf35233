//! Nodes of the chunk indexes (specification III.A and VII): parsing only; [`index`](crate::index) walks them.
//!
//! Version 2 B-trees have their nodes in [`btree_v2`](super::btree_v2); their chunk records (types 10 and 11) are
//! here in [`record`].

pub mod chunk_node;
pub mod extensible_array;
pub mod fixed_array;
pub mod record;

use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, Result};

/// Bytes of the checksum that ends every structure of the array indexes.
pub const CHECKSUM: u64 = 4;

/// Verifies the checksum at the end of a structure and returns the bytes before it.
pub(crate) fn checked<'a>(bytes: &'a [u8], at: u64, what: &'static str) -> Result<&'a [u8]> {
    let short = || Error::corrupt(format!("{what}: too short for a checksum")).at(at);
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(short)?;
    let (expected, found) = (u32::from_le_bytes(*sum), lookup3(body));
    if expected != found {
        return Err(Error::corrupt(format!(
            "{what}: checksum {found:#010x} where {expected:#010x} is stored"
        ))
        .at(at));
    }
    Ok(body)
}

/// Reads signature and version, which must be 0.
pub(crate) fn begin(r: &mut FieldReader<'_>, signature: &[u8; 4]) -> Result<()> {
    r.signature(signature)?;
    match r.u8()? {
        0 => Ok(()),
        version => Err(r.corrupt(format_args!("version {version} is not known"))),
    }
}

/// Is bit `i` set? Bits are counted from the highest of each byte; bits past the end are not set.
pub(crate) fn bit(bitmap: &[u8], i: u64) -> bool {
    usize::try_from(i / 8).ok().and_then(|byte| bitmap.get(byte)).is_some_and(|b| b & (0x80 >> (i % 8)) != 0)
}
