//! Old-style groups: version 1 B-tree, symbol table nodes, names in a local heap.

use super::local_heap::LocalHeap;
use super::together::together;
use crate::format::Address;
use crate::format::btree_v1::{self, GroupNode};
use crate::format::datatype::CharacterSet;
use crate::format::message::group::SymbolTable;
use crate::format::message::link::{Link, LinkTarget};
use crate::format::symbol_entry::{Cached, SymbolEntry};
use crate::space::{FileSpace, Visits};
use tensilo_core::Result;

const TREE: &str = "group B-tree node";
const NODE: &str = "symbol table node";

struct Group<'s> {
    space: &'s FileSpace,
    heap: LocalHeap<'s>,
    visits: Visits,
}

impl<'s> Group<'s> {
    fn open(space: &'s FileSpace, table: SymbolTable) -> Result<Self> {
        let heap = together(LocalHeap::load(space, table.heap), || {
            let len = GroupNode::len(space.sizes(), space.extension().ranks.group_internal);
            space.read(table.btree, len, TREE).map(drop)
        })?;
        Ok(Self { space, heap, visits: space.visits() })
    }

    /// Reads a B-tree node; `level` is what its parent promises.
    fn tree_node(&mut self, address: Address, level: Option<u8>) -> Result<GroupNode> {
        let (sizes, k) = (self.space.sizes(), self.space.extension().ranks.group_internal);
        let bytes = self.space.read(address, GroupNode::len(sizes, k), TREE)?;
        let at = bytes.offset();
        let node = GroupNode::parse(&bytes, at, sizes, k).map_err(|e| self.space.locate(e))?;
        self.visits.enter(at, GroupNode::head_len(sizes), TREE).map_err(|e| self.space.locate(e))?;
        if level.is_some_and(|l| l != node.level) {
            let message = format!("{TREE}: level {} where {level:?} is expected", node.level);
            return Err(self.space.corrupt(message, at));
        }
        Ok(node)
    }

    fn symbol_node(&mut self, address: Address) -> Result<Vec<SymbolEntry>> {
        let (sizes, k) = (self.space.sizes(), self.space.extension().ranks.group_leaf);
        let len = btree_v1::symbol_node_len(sizes, k);
        let bytes = self.space.read(address, len, NODE)?;
        self.visits.enter(bytes.offset(), 8, NODE).map_err(|e| self.space.locate(e))?;
        btree_v1::symbol_node(&bytes, bytes.offset(), sizes, k).map_err(|e| self.space.locate(e))
    }

    fn link(&self, entry: &SymbolEntry) -> Result<Link> {
        let name = self.heap.text(entry.name)?.to_vec();
        if name.is_empty() {
            return Err(self.space.corrupt("symbol table entry: an empty name", self.space.base()));
        }
        let target = match (entry.cached, entry.header) {
            (Cached::SoftLink(offset), _) => LinkTarget::Soft(self.heap.text(offset.into())?.to_vec()),
            (_, Some(header)) => LinkTarget::Hard(header),
            (_, None) => {
                let at = self.space.base();
                return Err(self.space.corrupt("symbol table entry: no object header", at));
            }
        };
        Ok(Link { name, target, creation_order: None, charset: CharacterSet::Ascii })
    }

    fn list(&mut self, address: Address, level: Option<u8>, out: &mut Vec<Link>) -> Result<()> {
        let node = self.tree_node(address, level)?;
        for child in node.children {
            if node.level > 0 {
                self.list(child, Some(node.level - 1), out)?;
            } else {
                for entry in self.symbol_node(child)? {
                    out.push(self.link(&entry)?);
                }
            }
        }
        Ok(())
    }

    fn lookup(&mut self, mut address: Address, name: &[u8]) -> Result<Option<Link>> {
        let mut level = None;
        loop {
            let node = self.tree_node(address, level)?;
            // Child i holds the names above key i, up to and with key i + 1.
            let (mut low, mut high) = (0, node.children.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                let upper = node.keys.get(middle + 1).copied().unwrap_or(0);
                if self.heap.text(upper)? < name {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            let Some(child) = node.children.get(low).copied() else { return Ok(None) };
            if node.level > 0 {
                (address, level) = (child, Some(node.level - 1));
                continue;
            }
            let entries = self.symbol_node(child)?;
            let (mut low, mut high) = (0, entries.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                match self.heap.text(entries[middle].name)?.cmp(name) {
                    std::cmp::Ordering::Less => low = middle + 1,
                    std::cmp::Ordering::Greater => high = middle,
                    std::cmp::Ordering::Equal => return self.link(&entries[middle]).map(Some),
                }
            }
            return Ok(None);
        }
    }
}

/// All links of an old-style group, in the order of their names.
pub(super) fn links(space: &FileSpace, table: SymbolTable) -> Result<Vec<Link>> {
    let mut out = Vec::new();
    Group::open(space, table)?.list(table.btree, None, &mut out)?;
    Ok(out)
}

/// The link of this name.
pub(super) fn lookup(space: &FileSpace, table: SymbolTable, name: &[u8]) -> Result<Option<Link>> {
    Group::open(space, table)?.lookup(table.btree, name)
}
