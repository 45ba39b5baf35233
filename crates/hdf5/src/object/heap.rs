//! Objects of the global heap: the data of variable-length elements.

use crate::format::Address;
use crate::space::FileSpace;
pub use crate::space::GlobalHeapObject;
use tensilo_core::Result;

/// Reads object `index` of the global heap collection at `address`.
///
/// # Errors
/// `Corrupt` when the collection is damaged or has no such object.
pub fn global_heap_object(space: &FileSpace, address: Address, index: u32) -> Result<GlobalHeapObject> {
    space.global_heap_object(address, index)
}
