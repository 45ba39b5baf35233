//! Elements of variable length: what they hold lies in a global heap.
//!
//! | stored field | bytes |
//! |---|---|
//! | number of elements (bytes of a string) | 4 |
//! | address of the heap collection | size of offsets |
//! | index of the object in it | 4 |

use super::File;
use crate::format::datatype::{Class, Datatype, StringPadding};
use crate::object::heap::global_heap_object;
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

/// The bytes that one stored element of variable length stands for: a string without its padding, or the elements of
/// a sequence, as stored. Nested elements of variable length are resolved in turn by their own datatype.
///
/// # Errors
/// `InvalidArgument` when the datatype is not of variable length; `Corrupt` when the heap is damaged or too short.
pub fn resolve(file: &File, id: &[u8], datatype: &Datatype) -> Result<Vec<u8>> {
    let width = match &datatype.class {
        Class::VarString { .. } => 1,
        Class::VarLen { base } => u64::from(base.size),
        _ => return Err(Error::invalid(format!("elements of type {datatype} have no variable length"))),
    };
    let space = file.space();
    let mut r = FieldReader::new(id, 0, "variable-length element");
    let count = u64::from(r.u32()?);
    let address = space.sizes().address(&mut r)?;
    let index = r.u32()?;
    let Some(address) = address.filter(|a| a.0 != 0 && count > 0) else { return Ok(Vec::new()) };
    let wanted = count.saturating_mul(width);
    let object = global_heap_object(space, address, index)?;
    let Some(bytes) = usize::try_from(wanted).ok().and_then(|n| object.get(..n)) else {
        return Err(Error::corrupt(format!(
            "a heap object of {} bytes where {wanted} are needed",
            object.len()
        )));
    };
    Ok(match &datatype.class {
        // Writers count the final NUL or not; what is behind one is not part of a string.
        Class::VarString { padding: StringPadding::NullTerminated, .. } => {
            bytes.split(|b| *b == 0).next().unwrap_or(bytes).to_vec()
        }
        _ => bytes.to_vec(),
    })
}
