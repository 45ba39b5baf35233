//! Version 2 B-tree (specification III.A.2): header and nodes, whatever the records are.
//!
//! Child pointers are as wide as the largest counts need, which follows from node size and record size.

use super::{Address, Sizes};
use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, Result};

/// Deepest tree whose header is believed; at two records a node this is more than 2^64 records.
const MAX_DEPTH: u16 = 64;

/// Header of a version 2 B-tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BtreeV2Header {
    /// Type of the records.
    pub kind: u8,
    /// Bytes of a node.
    pub node_size: u32,
    /// Bytes of a record.
    pub record_size: u16,
    /// Depth; 0 when the root is a leaf.
    pub depth: u16,
    /// Root node and its number of records; `None` when the tree is empty.
    pub root: Option<NodePointer>,
    /// Records in the whole tree.
    pub records: u64,
    sizes: Sizes,
    /// Most records of a node and width of the total beneath it, by height above the leaves.
    levels: Vec<Level>,
    /// Width of the number of records of a child.
    count_width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    max_records: u64,
    total_width: usize,
}

/// A child of an internal node, or the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePointer {
    /// Address of the node.
    pub address: Address,
    /// Records in that node.
    pub records: u64,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node<'a> {
    /// The records, one after the other.
    pub records: &'a [u8],
    /// Absolute offset of the first record.
    pub at: u64,
    /// The children, one more than records; empty in a leaf.
    pub children: Vec<NodePointer>,
}

impl BtreeV2Header {
    /// Bytes of a header.
    pub fn len(sizes: Sizes) -> u64 {
        u64::from(sizes.offset).saturating_add(u64::from(sizes.length)).saturating_add(22)
    }

    /// Parses the header and verifies its checksum.
    ///
    /// # Errors
    /// `Corrupt` when it is no header, or its numbers do not fit together.
    pub fn parse(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "version 2 B-tree");
        r.signature(b"BTHD")?;
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let kind = r.u8()?;
        let node_size = r.u32()?;
        let record_size = r.u16()?;
        let depth = r.u16()?;
        r.skip(2)?;
        let address = sizes.address(&mut r)?;
        let root_records = u64::from(r.u16()?);
        let records = sizes.length(&mut r)?;
        let covered = bytes.get(..r.position()).unwrap_or(bytes);
        if lookup3(covered) != r.u32()? {
            return Err(Error::corrupt("version 2 B-tree: checksum of the header does not match").at(at));
        }
        let root = address
            .filter(|_| root_records > 0)
            .map(|address| NodePointer { address, records: root_records });
        let mut header = Self {
            kind,
            node_size,
            record_size,
            depth,
            root,
            records,
            sizes,
            levels: Vec::new(),
            count_width: 0,
        };
        header.set_levels().ok_or_else(|| {
            Error::corrupt(format!(
                "version 2 B-tree: nodes of {node_size} bytes, records of {record_size}, depth {depth} do not fit \
                 together"
            ))
            .at(at)
        })?;
        if root.is_none() && records > 0 {
            return Err(Error::corrupt(format!("version 2 B-tree: {records} records but no root")).at(at));
        }
        Ok(header)
    }

    fn set_levels(&mut self) -> Option<()> {
        if self.record_size == 0 || self.depth > MAX_DEPTH {
            return None;
        }
        let room = u64::from(self.node_size).checked_sub(10)?;
        let record = u64::from(self.record_size);
        let leaf = room.checked_div(record)?;
        if leaf == 0 {
            return None;
        }
        self.count_width = bytes_of(leaf);
        self.levels.push(Level { max_records: leaf, total_width: 0 });
        let mut total = leaf;
        for level in 1..=self.depth {
            let below = self.levels.last()?.total_width;
            let pointer = u64::from(self.sizes.offset)
                .checked_add(self.count_width as u64)?
                .checked_add(below as u64)?;
            let max = room.checked_sub(pointer)?.checked_div(record.checked_add(pointer)?)?;
            if max == 0 {
                return None;
            }
            // Past 2^64 no field grows any more.
            total = max.saturating_add(1).saturating_mul(total).saturating_add(max);
            let _ = level;
            self.levels.push(Level { max_records: max, total_width: bytes_of(total) });
        }
        Some(())
    }

    /// Parses a node `height` levels above the leaves that holds `count` records, and verifies its checksum.
    ///
    /// # Errors
    /// `Corrupt` when it is no such node.
    pub fn node<'a>(&self, bytes: &'a [u8], at: u64, height: u16, count: u64) -> Result<Node<'a>> {
        let mut r = FieldReader::new(bytes, at, "version 2 B-tree node");
        r.signature(if height == 0 { b"BTLF" } else { b"BTIN" })?;
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let kind = r.u8()?;
        if kind != self.kind {
            return Err(r.corrupt(format_args!("record type {kind} in a tree of type {}", self.kind)));
        }
        let level = self.levels.get(usize::from(height)).copied();
        let level = level.filter(|l| count <= l.max_records);
        let Some(level) = level else {
            return Err(r.corrupt(format_args!("{count} records do not fit in a node")));
        };
        let _ = level;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let records_at = r.offset();
        let records = r.bytes(count.saturating_mul(usize::from(self.record_size)))?;
        let mut children = Vec::new();
        if height > 0 {
            let below = self.levels.get(usize::from(height).saturating_sub(1)).map_or(0, |l| l.total_width);
            for _ in 0..=count {
                let address =
                    self.sizes.address(&mut r)?.ok_or_else(|| r.corrupt("a child without an address"))?;
                let records = r.uint(self.count_width)?;
                r.uint(below)?;
                children.push(NodePointer { address, records });
            }
        }
        let covered = bytes.get(..r.position()).unwrap_or(bytes);
        if lookup3(covered) != r.u32()? {
            return Err(Error::corrupt("version 2 B-tree node: checksum does not match").at(at));
        }
        Ok(Node { records, at: records_at, children })
    }
}

/// Bytes needed to write `n`.
fn bytes_of(n: u64) -> usize {
    let bits = n.checked_ilog2().unwrap_or(0);
    usize::try_from(bits.checked_div(8).unwrap_or(0)).unwrap_or(8).saturating_add(1)
}
