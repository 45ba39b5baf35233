//! The structures of an HDF5 file one by one: each parser of `hdf5/format` alone, with any bytes.
//!
//! Where a checksum guards a structure, the right one is put behind the bytes, so that the fields are reached. Bytes
//! whose meaning depends on the widths of addresses and lengths have a byte in front that names these.

use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_hdf5::format::btree_v1::{GroupNode, symbol_node};
use tensilo_hdf5::format::btree_v2::BtreeV2Header;
use tensilo_hdf5::format::datatype::Datatype;
use tensilo_hdf5::format::free_space::FreeSpaceHeader;
use tensilo_hdf5::format::heap::fractal::FractalHeapHeader;
use tensilo_hdf5::format::heap::{global, local};
use tensilo_hdf5::format::index::chunk_node;
use tensilo_hdf5::format::index::extensible_array::ExtensibleArray;
use tensilo_hdf5::format::index::fixed_array::FixedArray;
use tensilo_hdf5::format::index::record::Form;
use tensilo_hdf5::format::object_header::{Prefix, parse_chunk};
use tensilo_hdf5::format::selection::StoredSelection;
use tensilo_hdf5::format::superblock::Superblock;
use tensilo_hdf5::format::symbol_entry::SymbolEntry;
use tensilo_hdf5::format::{Address, Sizes, shared_messages as shared, virtual_block as mappings};

/// Widths of addresses and lengths by the first byte, and the bytes behind it.
pub(crate) fn widths(data: &[u8]) -> Option<(Sizes, &[u8])> {
    const WIDTHS: [u8; 4] = [8, 4, 2, 16];
    let (first, rest) = data.split_first()?;
    let width = |n: u8| WIDTHS[usize::from(n % 4)];
    Some((Sizes { offset: width(*first), length: width(first / 4) }, rest))
}

/// The first `len` bytes, the last four of them the checksum of those before.
fn sealed(data: &[u8], len: u64) -> Option<Vec<u8>> {
    let covered = data.get(..usize::try_from(len.checked_sub(4)?).ok()?)?;
    let mut bytes = covered.to_vec();
    bytes.extend(lookup3(covered).to_le_bytes());
    Some(bytes)
}

/// The bytes behind the first `len`.
fn behind(data: &[u8], len: u64) -> &[u8] {
    usize::try_from(len).ok().and_then(|len| data.get(len..)).unwrap_or(&[])
}

/// The address behind a block's signature and version, of whoever owns the block.
fn owner(block: &[u8]) -> Address {
    let bytes = block.get(5..).and_then(|b| b.first_chunk());
    Address(bytes.map_or(64, |b| u64::from_le_bytes(*b)))
}

/// A superblock, its checksum right where it has one.
pub fn superblock(data: &[u8]) {
    let _ = Superblock::parse(data, 0);
    for len in [28, 36, 48] {
        if let Some(bytes) = sealed(data, len) {
            let _ = Superblock::parse(&bytes, 512);
        }
    }
}

/// An object header: prefix and first chunk.
pub fn object_header(data: &[u8]) {
    let Ok(prefix) = Prefix::parse(data, 0) else { return };
    let mut bytes = data.to_vec();
    if prefix.version == 2 {
        bytes.extend(lookup3(data).to_le_bytes());
    }
    let mut last = 0;
    let _ = parse_chunk(&prefix, &bytes, prefix.len as usize, 0, &mut |e| {
        assert!(e.start >= last && e.start + e.len <= bytes.len(), "messages lie in the chunk, in order");
        last = e.start + e.len;
        Ok(())
    });
}

/// A datatype message; what is read can be shown.
pub fn datatype(data: &[u8]) {
    if let Ok(t) = Datatype::parse(data, 0) {
        assert!(t.to_string().len() < 64 + 64 * data.len());
    }
}

/// Nodes of a group's version 1 B-tree, and symbol table nodes.
pub fn btree_v1(data: &[u8]) {
    let Some((sizes, data)) = widths(data) else { return };
    let Some((k, b)) = data.split_first() else { return };
    let k = u16::from(*k);
    if let Ok(node) = GroupNode::parse(b, 0, sizes, k) {
        assert_eq!(node.keys.len(), node.children.len() + 1);
    }
    if let Ok(entries) = symbol_node(b, 0, sizes, k) {
        assert!(entries.len() <= 2 * usize::from(k));
    }
}

/// An entry of a symbol table.
pub fn symbol_entry(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let mut r = FieldReader::new(b, 0, "symbol entry");
    if SymbolEntry::parse(&mut r, sizes).is_ok() {
        assert_eq!(r.position() as u64, SymbolEntry::len(sizes));
    }
}

/// Header and root of a version 2 B-tree.
pub fn btree_v2(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let len = BtreeV2Header::len(sizes);
    let Some(bytes) = sealed(b, len) else { return };
    let Ok(header) = BtreeV2Header::parse(&bytes, 0, sizes) else { return };
    let Some(root) = header.root else { return };
    let node = behind(b, len);
    let leaf = root.records.saturating_mul(u64::from(header.record_size)).saturating_add(10);
    if let Some(leaf) = sealed(node, leaf)
        && let Ok(node) = header.node(&leaf, 0, 0, root.records)
    {
        assert_eq!(node.records.len() as u64, root.records * u64::from(header.record_size));
    }
    if let Ok(node) = header.node(node, 0, header.depth, root.records) {
        assert!(header.depth == 0 || node.children.len() as u64 == root.records + 1);
    }
}

/// A local heap and its free list.
pub fn local_heap(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    if let Ok(heap) = local::LocalHeapHeader::parse(b, 0, sizes) {
        let _ = heap.check_free_list(behind(b, local::LocalHeapHeader::len(sizes)), 0, sizes);
    }
}

/// A collection of a global heap.
pub fn global_heap(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    if global::collection_len(b, 0, sizes).is_ok() {
        for object in global::objects(b, 0, sizes).unwrap_or_default() {
            assert!(object.data.end <= b.len());
        }
    }
}

/// A fractal heap: header, ids, indirect and direct blocks.
pub fn fractal_heap(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let Ok(len) = FractalHeapHeader::total_len(b, 0, sizes) else { return };
    let Some(bytes) = sealed(b, len) else { return };
    let rest = behind(b, len);
    let Ok(header) = FractalHeapHeader::parse(&bytes, 0, owner(rest), sizes) else { return };
    let _ = header.id(rest, 0);
    let _ = header.huge_record(rest, 0);
    let rows = header.root_rows.min(64);
    if let Some(block) = sealed(rest, header.indirect_len(rows)) {
        let children = header.indirect(&block, 0, rows, 0).unwrap_or_default();
        assert!(children.len() <= usize::from(rows) * usize::from(header.width));
    }
    let _ = header.check_direct(rest, 0, 0);
    for offset in [0, 1, 511, 512, 1 << 20, u64::MAX] {
        let _ = header.locate(offset);
    }
}

/// A node of a version 1 B-tree of chunks of two dimensions.
pub fn chunk_node(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let Ok(head) = chunk_node::Head::parse(b, 0) else { return };
    let (mut key, mut found) = ([0; 3], 0);
    let read = chunk_node::entries(b, 0, sizes, head, &mut key, &mut |_, _| {
        found += 1;
        Ok(())
    });
    assert!(read.is_err() || found == head.entries);
}

/// A record of a chunk, of any form: filtered or not, its width, how many coordinates, then the record.
pub fn chunk_record(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let [filtered, width, coords, record @ ..] = b else { return };
    let mut at = vec![0; usize::from(coords % 8)];
    let form = Form::new(sizes, 64, filtered % 2 == 1, u64::from(*width), at.len() as u64);
    if let Ok(form) = form
        && form.parse_record(record, 0, &mut at).is_ok()
    {
        assert!(usize::from(*width) <= record.len());
    }
}

/// A fixed array: header, data block and its pages.
pub fn fixed_array(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let len = FixedArray::header_len(sizes);
    let Some(Ok(array)) = sealed(b, len).map(|bytes| FixedArray::parse(&bytes, 0, sizes)) else { return };
    if let Some(block) = sealed(behind(b, len), array.block_len()) {
        let _ = array.block_body(&block, 0);
    }
    for page in [0, array.pages().saturating_sub(1)] {
        let (_, len) = array.page_place(page);
        if let Some(bytes) = sealed(behind(b, 28), len) {
            let _ = array.page_body(&bytes, 0);
        }
    }
}

/// An extensible array: header, index block, super blocks and data blocks.
pub fn extensible_array(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let len = ExtensibleArray::header_len(sizes);
    let Some(Ok(array)) = sealed(b, len).map(|bytes| ExtensibleArray::parse(&bytes, 0, sizes)) else {
        return;
    };
    let rest = behind(b, len);
    if let Some(block) = sealed(rest, array.index_block_len()) {
        let _ = array.parse_index_block(&block, 0);
    }
    for element in [0, 1, 100, 1 << 30, u64::MAX] {
        let Some(block) = array.super_block_of(element) else { continue };
        if let Some(bytes) = sealed(rest, array.super_block_len(block)) {
            let _ = array.super_block_body(block, &bytes, 0);
        }
        if let Some(bytes) = sealed(rest, array.data_block_len(block)) {
            let _ = array.data_block_body(block, 0, &bytes, 0);
        }
        let (_, len) = array.page_place(block, array.pages(block).saturating_sub(1));
        if let Some(bytes) = sealed(rest, len) {
            let _ = array.page_body(&bytes, 0);
        }
    }
}

/// Tables and lists of shared messages, and their records.
pub fn shared_messages(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let Some((count, b)) = b.split_first() else { return };
    let count = count % 64;
    if let Some(bytes) = sealed(b, shared::table_len(sizes, count)) {
        let found = shared::table(&bytes, 0, sizes, count).unwrap_or_default();
        assert!(found.len() <= usize::from(count));
    }
    if let Some(bytes) = sealed(b, shared::list_len(sizes, count.into())) {
        let found = shared::list(&bytes, 0, sizes, count.into()).unwrap_or_default();
        assert!(found.len() <= usize::from(count));
    }
    let _ = shared::record(b, 0, sizes);
}

/// A free-space manager: header and section list.
pub fn free_space(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    let len = FreeSpaceHeader::len(sizes);
    let Some(Ok(header)) = sealed(b, len).map(|bytes| FreeSpaceHeader::parse(&bytes, 0, sizes)) else {
        return;
    };
    let rest = behind(b, len);
    for len in [header.list_len, rest.len() as u64] {
        if let Some(list) = sealed(rest, len) {
            let found = header.sections(&list, 0, owner(&list), 4).unwrap_or_default();
            assert!(found.len() <= list.len());
        }
    }
}

/// A selection.
pub fn selection(data: &[u8]) {
    let _ = StoredSelection::parse(&mut FieldReader::new(data, 0, "selection"));
}

/// The mappings of a virtual dataset.
pub fn virtual_block(data: &[u8]) {
    let Some((sizes, b)) = widths(data) else { return };
    if let Some(bytes) = sealed(b, b.len() as u64) {
        let _ = mappings::parse(&bytes, 0, sizes);
    }
}
