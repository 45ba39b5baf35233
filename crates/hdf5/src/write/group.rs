//! Groups: as symbol tables, or as link messages.

use super::dense;
use super::index::btree_v1;
use super::layout::{Blocks, Context, Places};
use super::tree::{Link, Node, Target, charset_of};
use crate::format::Address;
use crate::format::datatype::CharacterSet;
use crate::format::encode::Bound;
use crate::format::encode::btree_v1::Kind;
use crate::format::encode::object_header::{MOST_BODY, NewMessage, kind};
use crate::format::encode::symbol_table::{self, Cache, ENTRIES_PER_NODE, Entry, LocalHeap};
use crate::format::message::encode as message;
use crate::format::message::encode::NewTarget;
use std::collections::BTreeMap;
use tensilo_core::{Error, Result};

/// How a group keeps its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Symbol table: local heap, version 1 B-tree, symbol table nodes.
    SymbolTable,
    /// Link messages in the header.
    Compact,
    /// Link messages in a fractal heap.
    Dense,
}

/// Most links that stand in the header, and most attributes.
pub(crate) const MOST_COMPACT: usize = 8;

/// Chooses as libhdf5 does: symbol tables hold hard and soft links with ASCII names only.
pub(crate) fn style(links: &BTreeMap<Vec<u8>, Link>, bound: Bound, order: Option<bool>) -> Style {
    let plain = |(name, link): (&Vec<u8>, &Link)| {
        charset_of(name) == CharacterSet::Ascii && matches!(link.target, Target::Hard(_) | Target::Soft(_))
    };
    if !bound.has_v2_headers() && order.is_none() && links.iter().all(plain) {
        Style::SymbolTable
    } else if links.len() > MOST_COMPACT || links.iter().any(too_long) {
        Style::Dense
    } else {
        Style::Compact
    }
}

/// Is the message of this link too long for an object header?
fn too_long((name, link): (&Vec<u8>, &Link)) -> bool {
    /// What stands in the message beside names and values.
    const REST: usize = 32;
    let value = match &link.target {
        Target::Hard(_) => 0,
        Target::Soft(path) => path.len(),
        Target::External { file, object } => file.len() + object.len(),
        Target::User { data, .. } => data.len(),
    };
    name.len() + value > MOST_BODY - REST
}

/// Builds what a group has outside its header.
pub(crate) fn build(
    context: &Context,
    node: &Node,
    links: &BTreeMap<Vec<u8>, Link>,
    style: Style,
    places: &mut Places,
    blocks: &mut Blocks,
) -> Result<()> {
    let (order, object) = (node.order.links, &*node.path);
    match style {
        Style::SymbolTable => places.symbol_table = Some(symbol_table(context, links, blocks, object)?),
        Style::Compact => {}
        Style::Dense => {
            let mut items = Vec::with_capacity(links.len());
            for (name, link) in links {
                let body = link_body(context, name, link, order)?;
                items.push(dense::Item::new(name, link.order, body, None));
            }
            places.links = dense::store(dense::Of::Links, items, order == Some(true), blocks, object)?;
        }
    }
    Ok(())
}

/// What a group that keeps its links elsewhere has in its header.
static NONE: BTreeMap<Vec<u8>, Link> = BTreeMap::new();

/// The messages of a group's header.
pub(crate) fn messages(
    context: &Context,
    node: &Node,
    links: &BTreeMap<Vec<u8>, Link>,
    style: Style,
    places: &Places,
) -> Result<Vec<NewMessage>> {
    if let (Style::SymbolTable, Some((btree, heap))) = (style, places.symbol_table) {
        return Ok(vec![NewMessage::new(kind::SYMBOL_TABLE, message::symbol_table(btree, heap))]);
    }
    let order = node.order.links;
    let info = message::link_info(places.links, order, links.len() as u64);
    let mut all = vec![
        NewMessage::new(kind::LINK_INFO, info),
        NewMessage::new(kind::GROUP_INFO, message::group_info()).constant(),
    ];
    let in_header = if style == Style::Compact { links.iter() } else { NONE.iter() };
    for (name, link) in in_header {
        all.push(NewMessage::new(kind::LINK, link_body(context, name, link, order)?));
    }
    Ok(all)
}

fn link_body(context: &Context, name: &[u8], link: &Link, order: Option<bool>) -> Result<Vec<u8>> {
    let order = order.map(|_| link.order as i64);
    let target = match &link.target {
        Target::Hard(id) => NewTarget::Hard(context.headers[id.0]),
        Target::Soft(path) => NewTarget::Soft(path),
        Target::External { file, object } => NewTarget::External { file, object },
        Target::User { class, data } => NewTarget::User { class: *class, data },
    };
    message::link(name, charset_of(name), order, target)
}

/// Builds heap, symbol table nodes and B-tree; returns the addresses of B-tree and heap.
fn symbol_table(
    context: &Context,
    links: &BTreeMap<Vec<u8>, Link>,
    blocks: &mut Blocks,
    object: &str,
) -> Result<(Address, Address)> {
    let mut heap = LocalHeap::default();
    let mut entries = Vec::with_capacity(links.len());
    for (name, link) in links {
        let name = heap.add(name);
        let entry = match &link.target {
            Target::Hard(id) => Entry { name, header: context.headers[id.0], cache: Cache::Nothing },
            Target::Soft(path) => {
                let value = u32::try_from(heap.add(path))
                    .map_err(|_| Error::unsupported("more than 4 GiB of names in one group"))?;
                Entry { name, header: Address(0), cache: Cache::SoftLink { value } }
            }
            _ => return Err(Error::invalid("a symbol table holds hard and soft links only")),
        };
        entries.push(entry);
    }
    let heap_address = blocks.allocate(heap.len())?;
    blocks.place(heap_address, "local heap", object, heap.encode(heap_address));
    // The key on the left of a node is the last name of the one before it, "" for the first.
    let mut key = 0_u64.to_le_bytes().to_vec();
    let mut children = Vec::new();
    for node in entries.chunks(ENTRIES_PER_NODE) {
        let address = blocks.append("symbol table node", object, symbol_table::node(node))?;
        let last = node.last().map_or(0, |e| e.name).to_le_bytes().to_vec();
        children.push((std::mem::replace(&mut key, last), address));
    }
    let btree = btree_v1::tree(Kind::Group, children, &key, blocks, object)?;
    Ok((btree, heap_address))
}
