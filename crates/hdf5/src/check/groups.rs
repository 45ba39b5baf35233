//! The links of groups, kept in any of three ways; a damaged one hides no other.

use super::Check;
use crate::format::Address;
use crate::format::btree_v1::{self, GroupNode};
use crate::format::message::MessageKind;
use crate::format::message::group::{DenseInfo, SymbolTable};
use crate::format::symbol_entry::Cached;
use crate::object::{FractalHeap, Link, LinkTarget, LocalHeap, ObjectHeader};
use crate::space::Visits;
use tensilo_core::{Error, Result};

const NAME_INDEX: u8 = 5;
const ORDER_INDEX: u8 = 6;
const TREE: &str = "group B-tree node";
const NODE: &str = "symbol table node";

/// A link to an object of this file: its name and the address.
pub(super) type Child = (Vec<u8>, Address);

fn child(link: Link) -> Option<Child> {
    match link.target {
        LinkTarget::Hard(address) => Some((link.name, address)),
        _ => None,
    }
}

impl Check<'_> {
    /// Checks how a group keeps its links, and returns those that lead to objects.
    pub(super) fn links(&mut self, header: &ObjectHeader, at: u64) -> Result<Vec<Child>> {
        let info = self.sound(header.link_info(), at)?.flatten();
        if let Some(info) = info {
            return match info.heap {
                None => self.compact_links(header),
                Some(heap) => self.dense_links(info, heap, at),
            };
        }
        match self.sound(header.symbol_table(), at)?.flatten() {
            Some(table) => self.old_links(table, at),
            None => Ok(Vec::new()),
        }
    }

    fn compact_links(&mut self, header: &ObjectHeader) -> Result<Vec<Child>> {
        let sizes = self.space.sizes();
        let mut children = Vec::new();
        for m in header.messages.iter().filter(|m| m.kind == MessageKind::Link) {
            let link = Link::parse(header.body(m), m.offset, sizes);
            children.extend(self.sound(link, m.offset)?.and_then(child));
        }
        Ok(children)
    }

    fn dense_links(&mut self, info: DenseInfo, heap: Address, at: u64) -> Result<Vec<Child>> {
        let space = self.space.clone();
        self.fractal_heap(heap)?;
        if let Some(order) = info.order {
            self.tree(order, &[ORDER_INDEX])?;
        }
        let Some(names) = info.names else {
            let e = Error::corrupt("link info message: a heap but no name index").at(at);
            return self.report.found(&e, at).map(|()| Vec::new());
        };
        let records = self.tree(names, &[NAME_INDEX])?;
        let Some(mut heap) = self.sound(FractalHeap::open(&space, heap), at)? else { return Ok(Vec::new()) };
        let mut children = Vec::new();
        for (record, at) in records {
            let link = heap
                .object(record.get(4..).unwrap_or(&[]), at.saturating_add(4))
                .and_then(|(body, body_at)| Link::parse(&body, body_at, space.sizes()));
            children.extend(self.sound(link, at)?.and_then(child));
        }
        Ok(children)
    }

    fn old_links(&mut self, table: SymbolTable, at: u64) -> Result<Vec<Child>> {
        let space = self.space.clone();
        let heap = LocalHeap::load(&space, table.heap);
        let heap = self.structure(heap, space.base().saturating_add(table.heap.0))?;
        let mut walk = Old { heap, visits: space.visits(), children: Vec::new() };
        self.old_node(&mut walk, table.btree, None, at)?;
        Ok(walk.children)
    }

    fn old_node(&mut self, walk: &mut Old<'_>, address: Address, level: Option<u8>, from: u64) -> Result<()> {
        self.poll()?;
        let space = self.space.clone();
        let (sizes, ranks) = (space.sizes(), space.extension().ranks);
        let at = space.base().saturating_add(address.0);
        let node = space.read(address, GroupNode::len(sizes, ranks.group_internal), TREE).and_then(|bytes| {
            walk.visits.enter(at, GroupNode::head_len(sizes), TREE)?;
            let node = GroupNode::parse(&bytes, at, sizes, ranks.group_internal)?;
            match level {
                Some(l) if l != node.level => {
                    Err(Error::corrupt(format!("{TREE}: level {} where {l} is expected", node.level)).at(at))
                }
                _ => Ok(node),
            }
        });
        let Some(node) = self.structure(node, from.max(at))? else { return Ok(()) };
        for below in node.children {
            match node.level.checked_sub(1) {
                Some(level) => self.old_node(walk, below, Some(level), at)?,
                None => self.symbol_node(walk, below)?,
            }
        }
        Ok(())
    }

    fn symbol_node(&mut self, walk: &mut Old<'_>, address: Address) -> Result<()> {
        let space = self.space.clone();
        let (sizes, k) = (space.sizes(), space.extension().ranks.group_leaf);
        let at = space.base().saturating_add(address.0);
        let entries = space.read(address, btree_v1::symbol_node_len(sizes, k), NODE).and_then(|bytes| {
            walk.visits.enter(at, 8, NODE)?;
            btree_v1::symbol_node(&bytes, at, sizes, k)
        });
        let Some(entries) = self.structure(entries, at)? else { return Ok(()) };
        let mut last: Option<Vec<u8>> = None;
        for entry in entries {
            let Some(heap) = &walk.heap else {
                // Without names the objects can be checked all the same.
                walk.children.extend(entry.header.map(|h| (format!("(object {})", h.0).into_bytes(), h)));
                continue;
            };
            let name = heap.text(entry.name).map(<[u8]>::to_vec);
            let Some(name) = self.sound(name, at)? else { continue };
            if last.as_ref().is_some_and(|l| *l >= name) {
                let e = Error::corrupt(format!("{NODE}: names are not in order")).at(at);
                self.report.found(&e, at)?;
            }
            match (entry.cached, entry.header) {
                (Cached::SoftLink(target), _) => {
                    let target = heap.text(target.into()).map(drop);
                    self.sound(target, at)?;
                }
                (_, Some(header)) => walk.children.push((name.clone(), header)),
                (_, None) => {
                    let e = Error::corrupt("symbol table entry: no object header").at(at);
                    self.report.found(&e, at)?;
                }
            }
            last = Some(name);
        }
        Ok(())
    }
}

/// A walk over an old-style group.
struct Old<'s> {
    heap: Option<LocalHeap<'s>>,
    visits: Visits,
    children: Vec<Child>,
}
