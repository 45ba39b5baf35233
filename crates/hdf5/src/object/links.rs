//! The links of a group, whichever way they are kept: symbol table, messages in the header, or fractal heap.

use super::btree_v2::{self, hash_of};
use super::together::together;
use super::{FractalHeap, Link, ObjectHeader, symbol_table};
use crate::format::Address;
use crate::format::message::MessageKind;
use crate::space::FileSpace;
use std::cell::RefCell;
use tensilo_core::wire::lookup3;
use tensilo_core::{Error, Result};

/// Record type of the name index.
const NAME_INDEX: u8 = 5;

/// All links of a group, in stored order: by name in old-style groups, by the hash of the name in dense ones.
///
/// # Errors
/// `Corrupt` when the group is damaged, `InvalidArgument` when the object is no group.
pub fn links(space: &FileSpace, header: &ObjectHeader) -> Result<Vec<Link>> {
    match kept(space, header)? {
        Kept::Table(table) => symbol_table::links(space, table),
        Kept::Compact => compact(space, header).collect(),
        Kept::Dense { heap, names } => {
            let mut heap = FractalHeap::open(space, heap)?;
            let mut out = Vec::new();
            let mut bytes = 0_u64;
            btree_v2::find(
                space,
                names,
                NAME_INDEX,
                &mut |_| Ok(std::cmp::Ordering::Equal),
                &mut |r, at| {
                    let link = dense_link(space, &mut heap, r, at)?;
                    bytes = bytes.saturating_add(link.name.len() as u64);
                    space.budget().bytes(bytes, "the names of a group").map(drop)?;
                    out.push(link);
                    Ok(())
                },
            )?;
            Ok(out)
        }
    }
}

/// All links as [`links`] gives them, or `None` where the group has more than `most`.
///
/// # Errors
/// As [`links`].
pub fn links_up_to(space: &FileSpace, header: &ObjectHeader, most: u64) -> Result<Option<Vec<Link>>> {
    if let Kept::Dense { names, .. } = kept(space, header)?
        && btree_v2::records(space, names, NAME_INDEX)? > most
    {
        return Ok(None);
    }
    links(space, header).map(|links| Some(links).filter(|l| l.len() as u64 <= most))
}

/// The link of this name, without listing the others: a search in the symbol table or the name index, or a look at
/// the header's own messages.
///
/// # Errors
/// As [`links`].
pub fn lookup(space: &FileSpace, header: &ObjectHeader, name: &[u8]) -> Result<Option<Link>> {
    match kept(space, header)? {
        Kept::Table(table) => symbol_table::lookup(space, table, name),
        Kept::Compact => {
            for link in compact(space, header) {
                let link = link?;
                if link.name == name {
                    return Ok(Some(link));
                }
            }
            Ok(None)
        }
        Kept::Dense { heap, names } => {
            let heap = FractalHeap::open(space, heap);
            let heap = RefCell::new(together(heap, || btree_v2::probe(space, names))?);
            let hash = lookup3(name);
            let mut found = None;
            let searched = btree_v2::find(
                space,
                names,
                NAME_INDEX,
                &mut |r| Ok(hash_of(r, 0)?.cmp(&hash)),
                &mut |r, at| {
                    if found.is_none() {
                        let link = dense_link(space, &mut heap.borrow_mut(), r, at)?;
                        found = Some(link).filter(|l| l.name == name);
                    }
                    Ok(())
                },
            );
            together(searched, || heap.borrow().probe())?;
            Ok(found)
        }
    }
}

enum Kept {
    Table(crate::format::message::group::SymbolTable),
    Compact,
    Dense { heap: Address, names: Address },
}

fn kept(space: &FileSpace, header: &ObjectHeader) -> Result<Kept> {
    if let Some(info) = header.link_info()? {
        let Some(heap) = info.heap else { return Ok(Kept::Compact) };
        let names =
            info.names.ok_or_else(|| header.corrupt("link info message: a heap but no name index"))?;
        return Ok(Kept::Dense { heap, names });
    }
    match header.symbol_table()? {
        Some(table) => Ok(Kept::Table(table)),
        None => Err(space.locate(Error::invalid("the object is no group"))),
    }
}

fn compact(space: &FileSpace, header: &ObjectHeader) -> impl Iterator<Item = Result<Link>> {
    header
        .messages
        .iter()
        .filter(|m| m.kind == MessageKind::Link)
        .map(|m| Link::parse(header.body(m), m.offset, space.sizes()).map_err(|e| space.locate(e)))
}

/// A record of the name index: hash of the name, heap id of the link message.
fn dense_link(space: &FileSpace, heap: &mut FractalHeap<'_>, record: &[u8], at: u64) -> Result<Link> {
    let (body, body_at) = heap.shown(record.get(4..).unwrap_or(&[]), at.saturating_add(4))?;
    Link::parse(&body, body_at, space.sizes()).map_err(|e| space.locate(e))
}
