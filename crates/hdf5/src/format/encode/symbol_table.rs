//! Symbol-table groups (specification III.A.1, III.B, III.C, III.D), encoded: symbol table nodes, the version 1
//! B-tree over them, and the local heap of their names.

use super::put_address;
use crate::format::Address;
use tensilo_core::wire::FieldWriter;

/// Half of the entries of a symbol table node, as the superblock states it.
pub const GROUP_LEAF_K: usize = 4;
/// Half of the children of a group's B-tree node, as the superblock states it.
pub const GROUP_INTERNAL_K: usize = 16;
/// Entries of a full symbol table node.
pub const ENTRIES_PER_NODE: usize = 2 * GROUP_LEAF_K;
/// Bytes of a symbol table node.
pub const NODE_SIZE: u64 = 8 + 40 * ENTRIES_PER_NODE as u64;
/// Bytes of a local heap's header; the data segment follows it here.
pub const HEAP_HEADER_SIZE: u64 = 32;

/// What a symbol table entry caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Nothing.
    Nothing,
    /// The B-tree and heap of the group that the entry names.
    Group {
        /// The B-tree.
        btree: Address,
        /// The local heap.
        heap: Address,
    },
    /// The entry is a soft link, and this is the heap offset of its value.
    SoftLink {
        /// Offset of the value in the local heap.
        value: u32,
    },
}

/// One symbol table entry: a name and where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Heap offset of the name.
    pub name: u64,
    /// The object's header; ignored for soft links.
    pub header: Address,
    /// What is cached.
    pub cache: Cache,
}

impl Entry {
    /// Appends the 40 bytes of the entry.
    pub fn encode(&self, w: &mut FieldWriter) {
        w.u64(self.name);
        match self.cache {
            Cache::Nothing => {
                put_address(w, Some(self.header));
                w.u32(0).u32(0).zeros(16);
            }
            Cache::Group { btree, heap } => {
                put_address(w, Some(self.header));
                w.u32(1).u32(0);
                put_address(w, Some(btree));
                put_address(w, Some(heap));
            }
            Cache::SoftLink { value } => {
                put_address(w, None);
                w.u32(2).u32(0).u32(value).zeros(12);
            }
        }
    }
}

/// A symbol table node of at most [`ENTRIES_PER_NODE`] entries.
pub fn node(entries: &[Entry]) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.bytes(b"SNOD").u8(1).u8(0).u16(entries.len() as u16);
    for e in entries {
        e.encode(&mut w);
    }
    w.zeros(40 * (ENTRIES_PER_NODE - entries.len()));
    w.finish()
}

/// The names of a group, each at a multiple of eight; offset 0 is the empty string.
#[derive(Debug, Clone)]
pub struct LocalHeap(FieldWriter);

impl Default for LocalHeap {
    fn default() -> Self {
        let mut w = FieldWriter::new();
        w.zeros(8);
        Self(w)
    }
}

impl LocalHeap {
    /// Adds a string and returns its offset.
    pub fn add(&mut self, text: &[u8]) -> u64 {
        let at = self.0.len();
        self.0.bytes(text).u8(0).align(8);
        at as u64
    }

    /// Bytes of header and data segment.
    pub fn len(&self) -> u64 {
        HEAP_HEADER_SIZE + self.0.len() as u64
    }

    /// Never: offset 0 is always there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Header and data segment, to stand at `address`; no space in it is free.
    pub fn encode(&self, address: Address) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(b"HEAP").u8(0).zeros(3).u64(self.0.len() as u64);
        // 1 is how libhdf5 marks an empty free list.
        w.u64(1).u64(address.0 + HEAP_HEADER_SIZE).bytes(self.0.as_slice());
        w.finish()
    }
}
