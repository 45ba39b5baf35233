//! Walks a version 2 B-tree of chunks (record types 10, plain, and 11, filtered).

use super::{ChunkIndex, Gather, Stored, Visit, node};
use crate::format::Address;
use crate::format::btree_v2::{BtreeV2Header, Node, NodePointer};
use crate::format::index::record::Form;
use crate::space::{FileSpace, Visits};
use std::cmp::Ordering;
use tensilo_core::{Error, Result};

const WHAT: &str = "chunk B-tree";
const PLAIN: u8 = 10;
const FILTERED: u8 = 11;

fn open(index: &ChunkIndex, space: &FileSpace, at: Address) -> Result<(BtreeV2Header, Form)> {
    let bytes = space.read(at, BtreeV2Header::len(space.sizes()), WHAT)?;
    let header = BtreeV2Header::parse(&bytes, bytes.offset(), space.sizes())?;
    if header.kind != PLAIN && header.kind != FILTERED {
        let message =
            format!("{WHAT}: records of type {} where {PLAIN} or {FILTERED} is expected", header.kind);
        return Err(Error::corrupt(message).at(bytes.offset()));
    }
    let rank = index.layout.dims.len() as u64;
    let form = index
        .form(space, header.kind == FILTERED, u64::from(header.record_size), rank)
        .map_err(|e| e.at(bytes.offset()))?;
    Ok((header, form))
}

/// Parses every record of a node.
fn records(
    header: &BtreeV2Header,
    form: &Form,
    node: &Node<'_>,
    coords: &mut [u64],
    visit: &mut Visit<'_>,
) -> Result<()> {
    let size = usize::from(header.record_size);
    for (i, record) in node.records.chunks_exact(size).enumerate() {
        let stored = form.parse_record(record, node.at.saturating_add((i * size) as u64), coords)?;
        visit(coords, stored)?;
    }
    Ok(())
}

pub(super) fn walk(
    index: &ChunkIndex,
    space: &FileSpace,
    at: Address,
    visits: &mut Visits,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let (header, form) = open(index, space, at)?;
    let mut coords = index.origin();
    let mut todo: Vec<(NodePointer, u16)> =
        header.root.map(|root| (root, header.depth)).into_iter().collect();
    let mut gather = Gather::default();
    while let Some((pointer, height)) = todo.pop() {
        let bytes =
            gather.tolerate(node(space, visits, pointer.address, u64::from(header.node_size), WHAT))?;
        let Some(bytes) = bytes else { continue };
        let found = header.node(&bytes, bytes.offset(), height, pointer.records)?;
        records(&header, &form, &found, &mut coords, visit)?;
        // A leaf has no children, so the height cannot pass 0.
        todo.extend(found.children.iter().rev().map(|c| (*c, height.saturating_sub(1))));
    }
    gather.finish()
}

pub(super) fn find(
    index: &ChunkIndex,
    space: &FileSpace,
    at: Address,
    wanted: &[u64],
) -> Result<Option<Stored>> {
    let (header, form) = open(index, space, at)?;
    let mut coords = index.origin();
    let Some(mut pointer) = header.root else { return Ok(None) };
    for height in (0..=header.depth).rev() {
        let bytes = space.read(pointer.address, u64::from(header.node_size), WHAT)?;
        let found = header.node(&bytes, bytes.offset(), height, pointer.records)?;
        let (mut below, mut stored_at) = (0, None);
        records(&header, &form, &found, &mut coords, &mut |coords, stored| {
            match coords.cmp(wanted) {
                Ordering::Less => below += 1,
                Ordering::Equal => stored_at = Some(stored),
                Ordering::Greater => {}
            }
            Ok(())
        })?;
        if stored_at.is_some() {
            return Ok(stored_at);
        }
        match found.children.get(below) {
            Some(child) => pointer = *child,
            None => break,
        }
    }
    Ok(None)
}
