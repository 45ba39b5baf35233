//! Version 1 B-tree nodes (specification III.A.1), encoded. A node has `2K` places for children and `2K + 1`
//! for keys, and always its full size.

use super::put_address;
use crate::format::Address;
use tensilo_core::wire::FieldWriter;

/// Half of the children of a node of chunks: the default, which version 0 superblocks imply.
pub const CHUNK_K: usize = 32;

/// What a tree indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The symbol table nodes of a group; a key is the heap offset of a name.
    Group,
    /// The chunks of a dataset of this rank (without the element size).
    Chunk {
        /// Dimensions of the dataset.
        rank: usize,
    },
}

impl Kind {
    /// Bytes of a key.
    pub fn key_size(self) -> usize {
        match self {
            Self::Group => 8,
            Self::Chunk { rank } => 8 + 8 * (rank + 1),
        }
    }

    /// Most children of a node.
    pub fn most_children(self) -> usize {
        match self {
            Self::Group => 2 * super::symbol_table::GROUP_INTERNAL_K,
            Self::Chunk { .. } => 2 * CHUNK_K,
        }
    }

    /// Bytes of a node.
    pub fn node_size(self) -> u64 {
        (24 + 8 * self.most_children() + self.key_size() * (self.most_children() + 1)) as u64
    }
}

/// One node: its children, the key on the left of each, and the key on the right of the last.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// What is indexed.
    pub kind: Kind,
    /// 0 for leaves.
    pub level: u8,
    /// The node on the left on this level.
    pub left: Option<Address>,
    /// The node on the right on this level.
    pub right: Option<Address>,
    /// Encoded keys and children.
    pub children: &'a [(Vec<u8>, Address)],
    /// The key on the right of the last child; ignored in an empty node.
    pub last_key: &'a [u8],
}

impl Node<'_> {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        let kind = u8::from(self.kind != Kind::Group);
        w.bytes(b"TREE").u8(kind).u8(self.level).u16(self.children.len() as u16);
        put_address(&mut w, self.left);
        put_address(&mut w, self.right);
        for (key, child) in self.children {
            w.bytes(key);
            put_address(&mut w, Some(*child));
        }
        if !self.children.is_empty() {
            w.bytes(self.last_key);
        }
        w.zeros(self.kind.node_size() as usize - w.len());
        w.finish()
    }
}

/// The key of a chunk: stored size, filter mask and element offsets, the last of which (of the bytes of an
/// element) is `last`.
pub fn chunk_key(size: u32, mask: u32, offsets: impl Iterator<Item = u64>, last: u64) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.u32(size).u32(mask);
    for o in offsets {
        w.u64(o);
    }
    w.u64(last);
    w.finish()
}
