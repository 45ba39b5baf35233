//! Fixed arrays (specification appendix C.C), encoded: a header and one data block, in pages when it is long.
//!
//! | header | bytes | data block | bytes |
//! |---|---|---|---|
//! | `FAHD`, version, client, entry size, page bits | 8 | `FADB`, version, client | 6 |
//! | entries | 8 | header address | 8 |
//! | data block address | 8 | page bitmap, if paged, then checksum | n + 4 |
//! | checksum | 4 | entries (of each page), checksum | n + 4 |

use super::{put_address, put_checksum};
use crate::format::Address;
use tensilo_core::wire::{FieldWriter, lookup3};

/// log2 of the entries of a page: libhdf5's default for chunks.
pub const PAGE_BITS: u8 = 10;
/// Bytes of the header.
pub const HEADER_SIZE: u64 = 28;

/// The header.
pub fn header(filtered: bool, entry_size: usize, entries: u64, data: Address) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.bytes(b"FAHD").u8(0).u8(u8::from(filtered)).u8(entry_size as u8).u8(PAGE_BITS).u64(entries);
    put_address(&mut w, Some(data));
    put_checksum(&mut w);
    w.finish()
}

/// The data block, from all entries one behind the other.
pub fn data_block(filtered: bool, entry_size: usize, header: Address, entries: &[u8]) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.bytes(b"FADB").u8(0).u8(u8::from(filtered));
    put_address(&mut w, Some(header));
    let page = entry_size << PAGE_BITS;
    if entries.len() <= page {
        w.bytes(entries);
        put_checksum(&mut w);
        return w.finish();
    }
    w.bytes(&all_set(entries.len().div_ceil(page)));
    put_checksum(&mut w);
    for page in entries.chunks(page) {
        w.bytes(page).u32(lookup3(page));
    }
    w.finish()
}

/// A bitmap, highest bit first, of `bits` ones.
pub(crate) fn all_set(bits: usize) -> Vec<u8> {
    let mut map = vec![0xff; bits / 8];
    if !bits.is_multiple_of(8) {
        map.push(!(0xff_u8 >> (bits % 8)));
    }
    map
}
