//! Version 2 B-trees (specification III.A.2), encoded from sorted records.
//!
//! Widths of the counts in child pointers follow from the node size: the number of records of a node has the
//! width of a leaf's largest number, that of a whole subtree the width of the largest subtree.

use super::{put_address, put_checksum};
use crate::format::Address;
use tensilo_core::wire::FieldWriter;

/// Percentage at which a full node splits.
pub const SPLIT: u8 = 100;
/// Percentage at which nodes merge.
pub const MERGE: u8 = 40;
/// Bytes of the header.
pub const HEADER_SIZE: u64 = 38;
/// Signature, version, type and checksum of a node.
const NODE_OVERHEAD: usize = 10;

/// The type and sizes of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Record type.
    pub kind: u8,
    /// Bytes of a node.
    pub node_size: u32,
    /// Bytes of a record.
    pub record_size: usize,
}

/// Bytes that hold numbers up to `n`.
fn count_width(n: u64) -> usize {
    super::width_of(n)
}

/// What a level can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Records of a node on this level.
    pub most: u64,
    /// Records of a whole subtree.
    pub most_below: u64,
    /// Width of a subtree's count; 0 on the level of leaves.
    width: usize,
}

impl Shape {
    /// Levels from the leaves up to one whose subtree holds `records`.
    pub fn levels(&self, records: u64) -> Vec<Level> {
        let room = self.node_size as usize - NODE_OVERHEAD;
        let leaf = (room / self.record_size) as u64;
        let mut top = Level { most: leaf, most_below: leaf, width: 0 };
        let mut levels = vec![top];
        while top.most_below < records {
            let pointer = self.pointer_size(leaf, top);
            let most = ((room - pointer) / (self.record_size + pointer)) as u64;
            let most_below = (most + 1).saturating_mul(top.most_below).saturating_add(most);
            top = Level { most, most_below, width: count_width(most_below) };
            levels.push(top);
        }
        levels
    }

    fn pointer_size(&self, leaf: u64, below: Level) -> usize {
        8 + count_width(leaf) + below.width
    }

    /// The header; `root` has `root_records` of all `records`.
    pub fn header(&self, depth: u16, root: Option<Address>, root_records: u16, records: u64) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(b"BTHD").u8(0).u8(self.kind).u32(self.node_size).u16(self.record_size as u16).u16(depth);
        w.u8(SPLIT).u8(MERGE);
        put_address(&mut w, root);
        w.u16(root_records).u64(records);
        put_checksum(&mut w);
        w.finish()
    }

    /// A leaf from its records, one behind the other; behind them the node is zeros.
    pub fn leaf(&self, records: &[u8]) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(b"BTLF").u8(0).u8(self.kind).bytes(records);
        put_checksum(&mut w);
        self.fill_up(w)
    }

    /// An inner node: its records, and its children (address, own records, records of the subtree), which are
    /// on the level `below`.
    pub fn inner(
        &self,
        records: &[u8],
        children: &[(Address, u64, u64)],
        leaf: Level,
        below: Level,
    ) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(b"BTIN").u8(0).u8(self.kind).bytes(records);
        for (address, own, all) in children {
            put_address(&mut w, Some(*address));
            w.uint(*own, count_width(leaf.most));
            if below.width > 0 {
                w.uint(*all, below.width);
            }
        }
        put_checksum(&mut w);
        self.fill_up(w)
    }

    fn fill_up(&self, mut w: FieldWriter) -> Vec<u8> {
        w.zeros(self.node_size as usize - w.len());
        w.finish()
    }
}
