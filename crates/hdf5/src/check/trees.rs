//! Version 2 B-trees: every node, whatever the records are.

use super::Check;
use crate::format::Address;
use crate::format::btree_v2::{BtreeV2Header, NodePointer};
use crate::space::Visits;
use tensilo_core::{Error, Result};

const WHAT: &str = "version 2 B-tree node";

/// A record and its absolute offset.
pub(super) type Record = (Vec<u8>, u64);

/// A walk over one tree.
struct Walk {
    header: BtreeV2Header,
    at: u64,
    visits: Visits,
    records: Vec<Record>,
    bytes: u64,
}

impl Check<'_> {
    /// Verifies all nodes of the tree at `address`, which must hold records of one of these types, and returns the
    /// records of the sound ones.
    pub(super) fn tree(&mut self, address: Address, kinds: &[u8]) -> Result<Vec<Record>> {
        let space = self.space.clone();
        let sizes = space.sizes();
        let opened = space.read(address, BtreeV2Header::len(sizes), "version 2 B-tree").and_then(|bytes| {
            let header = BtreeV2Header::parse(&bytes, bytes.offset(), sizes)?;
            if !kinds.contains(&header.kind) {
                let message =
                    format!("version 2 B-tree: records of type {} where {kinds:?} are expected", header.kind);
                return Err(Error::corrupt(message).at(bytes.offset()));
            }
            Ok((header, bytes.offset()))
        });
        let Some((header, at)) = self.structure(opened, space.base().saturating_add(address.0))? else {
            return Ok(Vec::new());
        };
        let (root, depth, count) = (header.root, header.depth, header.records);
        let mut walk = Walk { header, at, visits: space.visits(), records: Vec::new(), bytes: 0 };
        let damaged = self.report.summary.damaged;
        if let Some(root) = root {
            self.tree_node(&mut walk, root, depth)?;
        }
        if self.report.summary.damaged == damaged && walk.records.len() as u64 != count {
            let message =
                format!("version 2 B-tree: {} records where {count} are stated", walk.records.len());
            self.report.found(&Error::corrupt(message).at(at), at)?;
        }
        Ok(walk.records)
    }

    fn tree_node(&mut self, walk: &mut Walk, pointer: NodePointer, height: u16) -> Result<()> {
        self.poll()?;
        let space = self.space.clone();
        let node_size = u64::from(walk.header.node_size);
        let at = space.base().saturating_add(pointer.address.0);
        let read = space.read(pointer.address, node_size, WHAT).and_then(|bytes| {
            walk.visits.enter(bytes.offset(), node_size, WHAT)?;
            Ok(bytes)
        });
        let Some(bytes) = self.sound(read, at)? else { return Ok(()) };
        let node = walk.header.node(&bytes, at, height, pointer.records);
        let Some(node) = self.structure(node, at)? else { return Ok(()) };
        let width = usize::from(walk.header.record_size).max(1);
        walk.bytes = walk.bytes.saturating_add(node.records.len() as u64);
        space.budget().bytes(walk.bytes, "the records of a B-tree").map(drop).map_err(|e| e.at(walk.at))?;
        let mut records = node.records.chunks_exact(width).enumerate();
        for child in node.children.iter().map(Some).chain(std::iter::once(None)) {
            if let Some(child) = child {
                self.tree_node(walk, *child, height - 1)?;
            }
            if child.is_none() {
                // A leaf has no children: all its records.
                for (i, record) in records.by_ref() {
                    walk.records.push((record.to_vec(), node.at.saturating_add((i * width) as u64)));
                }
            } else if let Some((i, record)) = records.next() {
                walk.records.push((record.to_vec(), node.at.saturating_add((i * width) as u64)));
            }
        }
        Ok(())
    }
}
