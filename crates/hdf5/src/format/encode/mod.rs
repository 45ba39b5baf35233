//! What a writer needs to put every structure into bytes: the other half of the parsers beside it.
//!
//! Encoders are given values that this crate made (shapes, addresses from the layout, checked names), never
//! bytes of a file; what cannot be expressed under a [`Bound`] is refused with an error that names it. Address
//! and length fields are always eight bytes wide, as in all files of common writers.

#![expect(clippy::arithmetic_side_effects, reason = "sizes of structures that we lay out ourselves")]

mod bound;
pub mod btree_v1;
pub mod btree_v2;
pub mod extensible_array;
pub mod fixed_array;
pub mod fractal_heap;
pub mod global_heap;
pub mod object_header;
pub mod selection;
pub mod shared_messages;
pub mod superblock;
pub mod symbol_table;

pub use bound::Bound;

use super::Address;
use tensilo_core::wire::{FieldWriter, lookup3};

/// Bytes of the v0 superblock and its root entry.
pub(crate) const UNDEFINED: u64 = u64::MAX;

/// Appends an eight-byte address; `None` is the undefined address.
pub(crate) fn put_address(w: &mut FieldWriter, address: Option<Address>) {
    w.u64(address.map_or(UNDEFINED, |a| a.0));
}

/// Appends the checksum over everything written so far.
pub(crate) fn put_checksum(w: &mut FieldWriter) {
    let sum = lookup3(w.as_slice());
    w.u32(sum);
}

/// Least number of bytes that hold `value`, at least 1.
pub(crate) fn width_of(value: u64) -> usize {
    let bits = 64 - value.leading_zeros();
    bits.div_ceil(8).max(1) as usize
}
