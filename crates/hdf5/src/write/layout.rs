//! Layout: every piece of metadata gets its address and its bytes, as a value that can be printed and tested
//! without a disk.
//!
//! Headers first get addresses, in the order in which a walk from the root meets the objects (names sorted), for
//! their sizes do not depend on addresses. Then the messages that objects share are collected and stored, and, in the
//! first order, each object's other structures are built and its header is encoded. A header that names nothing
//! unknown is encoded at once.

use super::addresses::{Addresses, Of};
use super::dense;
use super::external_data::ExternalData;
use super::group;
use super::index::{self, Choice};
use super::options::WriteOptions;
use super::shared::Shared;
use super::tree::{Attribute, Dataset, Kind, Node, NodeId, Storage, Target, Tree, TypeUse, charset_of};
use crate::format::Address;
use crate::format::datatype::Class;
use crate::format::encode::object_header::{
    MARK_IF_UNKNOWN, MOST_BODY, NewHeader, NewMessage, SHARED, UNSHARED, kind,
};
use crate::format::encode::symbol_table::{Cache, Entry, LocalHeap};
use crate::format::encode::{Bound, UNDEFINED};
use crate::format::message::data_layout::DataLayout;
use crate::format::message::dataspace::Dataspace;
use crate::format::message::encode as message;
use crate::format::message::encode::{Dense, NewAttribute};
use crate::format::message::fill_value::AllocationTime;
use std::fmt;
use std::sync::Arc;
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// A run of metadata bytes and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Address, relative to the superblock.
    pub address: Address,
    /// What the bytes are, in the specification's words.
    pub what: &'static str,
    /// The object they belong to.
    pub object: Arc<str>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// All metadata of a file but its superblock, in order of address.
///
/// Its text form has one line per block: address, length, what it is, and the object's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// The root group, as a version 0 superblock states it.
    pub root: Entry,
    /// Header of the superblock extension, if there is one.
    pub extension: Option<Address>,
    /// End of the file, relative to the superblock.
    pub end: u64,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for b in &self.blocks {
            writeln!(f, "{:>12} {:>9} {:<24} {}", b.address.0, b.bytes.len(), b.what, b.object)?;
        }
        writeln!(f, "{:>12} {:>9} end of file", self.end, "")
    }
}

/// Blocks being laid out behind each other.
#[derive(Debug)]
pub(crate) struct Blocks {
    addresses: Addresses,
    placed: Vec<Block>,
}

impl Blocks {
    /// Blocks that go nowhere.
    pub(crate) fn scratch() -> Self {
        Self { addresses: Addresses::new(0, None), placed: Vec::new() }
    }

    pub(crate) fn allocate(&mut self, len: u64) -> Result<Address> {
        self.addresses.allocate(len, Of::Metadata)
    }

    pub(crate) fn place(
        &mut self,
        address: Address,
        what: &'static str,
        object: impl Into<Arc<str>>,
        bytes: Vec<u8>,
    ) {
        self.placed.push(Block { address, what, object: object.into(), bytes });
    }

    /// Allocates and places bytes that do not depend on their own address.
    pub(crate) fn append(&mut self, what: &'static str, object: &str, bytes: Vec<u8>) -> Result<Address> {
        let address = self.allocate(bytes.len() as u64)?;
        self.place(address, what, object, bytes);
        Ok(address)
    }
}

/// Addresses of an object's structures outside its header.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Places {
    pub(crate) symbol_table: Option<(Address, Address)>,
    pub(crate) links: Dense,
    pub(crate) attributes: Dense,
    pub(crate) index: Option<Address>,
    /// Heap of the names of external files.
    pub(crate) external: Option<Address>,
}

/// What is decided about an object before any address is known.
#[derive(Debug)]
struct Decided {
    group: Option<group::Style>,
    dense_attributes: bool,
    choice: Option<Choice>,
    /// Version of the header.
    version: u8,
}

/// Everything that encoding a header needs to know.
pub(crate) struct Context {
    pub(crate) bound: Bound,
    /// Addresses of all headers, by object; zero while they are not known.
    pub(crate) headers: Vec<Address>,
    shared: Shared,
}

/// Lays out the metadata of a tree at the next addresses.
pub(crate) fn layout(tree: &Tree, options: &WriteOptions, addresses: Addresses) -> Result<Layout> {
    let order = walk(tree);
    let headers = vec![Address(0); tree.nodes.len()];
    let shared = Shared::new(&options.shared);
    let mut context = Context { bound: options.bound, headers, shared };
    let mut blocks = Blocks { addresses, placed: Vec::new() };
    // Objects whose headers name addresses, with the place of the header's block (of a pinned header, the second block).
    let mut rest = Vec::new();
    for id in &order {
        let node = tree.node(*id);
        let decision = context.decide(node).map_err(in_node(node))?;
        let header = context.header(node, &decision, &context.placeholder(node)).map_err(in_node(node))?;
        let len = if node.pinned.is_some() { header.continuation_size() } else { header.size() };
        let body = blocks.allocate(len)?;
        context.headers[id.0] = node.pinned.unwrap_or(body);
        if context.shared.is_empty() && stands_alone(node, &decision) {
            // Nothing in it is unknown yet: it need not be made again.
            blocks.place(
                body,
                "object header",
                Arc::clone(&node.path),
                header.encode().map_err(in_node(node))?,
            );
            continue;
        }
        rest.push((*id, decision, body));
    }
    let extension = context.extension(tree, &order, options, &mut blocks)?;
    let mut root_places = Places::default();
    for (id, decision, body) in &rest {
        let node = tree.node(*id);
        let places = context.build(node, decision, &mut blocks).map_err(in_node(node))?;
        if *id == NodeId::ROOT {
            root_places = places;
        }
        let header = context.header(node, decision, &places).map_err(in_node(node))?;
        match node.pinned {
            None => blocks.place(
                *body,
                "object header",
                Arc::clone(&node.path),
                header.encode().map_err(in_node(node))?,
            ),
            Some(pinned) => {
                let (first, second) = header.encode_pinned(*body).map_err(in_node(node))?;
                blocks.place(pinned, "object header", Arc::clone(&node.path), first);
                blocks.place(*body, "header continuation", Arc::clone(&node.path), second);
            }
        }
    }
    let mut placed = blocks.placed;
    placed.sort_by_key(|b| b.address);
    let cache = match root_places.symbol_table {
        Some((btree, heap)) => Cache::Group { btree, heap },
        None => Cache::Nothing,
    };
    let root = Entry { name: 0, header: context.headers[0], cache };
    Ok(Layout { blocks: placed, root, extension, end: blocks.addresses.end() })
}

/// Does the header name no address but that of raw data, which is on the disk already?
fn stands_alone(node: &Node, decided: &Decided) -> bool {
    let Kind::Dataset(d) = &node.kind else { return false };
    matches!(d.storage, Storage::Contiguous { .. } | Storage::Compact(_))
        && node.pinned.is_none()
        && !decided.dense_attributes
        && d.datatype.committed.is_none()
        && node.attributes.iter().all(|a| a.datatype.committed.is_none())
}

fn in_node(node: &Node) -> impl Fn(Error) -> Error + '_ {
    |e| e.in_object(&*node.path)
}

/// All objects, each once, parents before children, names in byte order.
fn walk(tree: &Tree) -> Vec<NodeId> {
    let mut seen = vec![false; tree.nodes.len()];
    let mut order = Vec::with_capacity(tree.nodes.len());
    let mut waiting = vec![NodeId::ROOT];
    while let Some(id) = waiting.pop() {
        if std::mem::replace(&mut seen[id.0], true) {
            continue;
        }
        order.push(id);
        if let Kind::Group(links) = &tree.node(id).kind {
            let children = links.values().rev().filter_map(|l| match l.target {
                Target::Hard(child) => Some(child),
                _ => None,
            });
            waiting.extend(children);
        }
    }
    order
}

impl Context {
    /// Version of an object's header: tracking the order of attributes needs version 2, and so do attributes that
    /// are too large for any header.
    fn header_version(&self, node: &Node) -> Result<u8> {
        let needed =
            self.bound.has_v2_headers() || node.order.attributes.is_some() || self.has_large(node)?;
        Ok(if needed { 2 } else { 1 })
    }

    /// Does an attribute not fit in a header?
    fn has_large(&self, node: &Node) -> Result<bool> {
        for a in &node.attributes {
            // The rest of the message is small, unless the datatype is one of many names.
            let plain = !matches!(a.datatype.datatype.class, Class::Compound { .. } | Class::Enum { .. });
            if plain && a.data.len() + a.name.len() < MOST_BODY / 2 {
                continue;
            }
            if self.attribute_body(a)?.len() > MOST_BODY {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn decide(&self, node: &Node) -> Result<Decided> {
        let group = match &node.kind {
            Kind::Group(links) => Some(group::style(links, self.bound, node.order.links)),
            _ => None,
        };
        let choice = match &node.kind {
            Kind::Dataset(d) => match &d.storage {
                Storage::Chunked(chunks) => Some(index::choose(chunks, &d.dataspace, self.bound)),
                _ => None,
            },
            _ => None,
        };
        // Attributes in a heap need headers of version 2; one that fits no message needs a heap.
        let version = self.header_version(node)?;
        let dense_attributes =
            version > 1 && (node.attributes.len() > group::MOST_COMPACT || self.has_large(node)?);
        Ok(Decided { group, dense_attributes, choice, version })
    }

    /// Places as wide as the real ones.
    fn placeholder(&self, node: &Node) -> Places {
        let index = match &node.kind {
            Kind::Dataset(d) => match &d.storage {
                Storage::Chunked(chunks) if chunks.records.is_empty() => None,
                _ => Some(Address(0)),
            },
            _ => None,
        };
        Places { symbol_table: Some((Address(0), Address(0))), index, ..Places::default() }
    }

    /// Builds what an object has outside its header.
    fn build(&self, node: &Node, decided: &Decided, blocks: &mut Blocks) -> Result<Places> {
        let mut places = Places::default();
        match (&node.kind, &decided.group, &decided.choice) {
            (Kind::Group(links), Some(style), _) => {
                group::build(self, node, links, *style, &mut places, blocks)?;
            }
            (Kind::Dataset(d), _, Some(choice)) => {
                if let Storage::Chunked(chunks) = &d.storage {
                    places.index = index::build(chunks, &d.dataspace, choice, blocks, &node.path)?;
                }
            }
            (Kind::Dataset(d), _, None) => {
                if let Storage::External { pieces, .. } = &d.storage {
                    let heap = external_names(pieces).0;
                    let address = blocks.allocate(heap.len())?;
                    blocks.place(address, "local heap", Arc::clone(&node.path), heap.encode(address));
                    places.external = Some(address);
                }
            }
            _ => {}
        }
        if decided.dense_attributes {
            let mut items = Vec::with_capacity(node.attributes.len());
            for a in &node.attributes {
                let body = self.attribute_body(a)?;
                let shared = self.shared.id(kind::ATTRIBUTE, &body)?;
                items.push(dense::Item::new(&a.name, u64::from(a.order), body, shared));
            }
            let of = dense::Of::Attributes;
            places.attributes =
                dense::store(of, items, node.order.attributes == Some(true), blocks, &node.path)?;
        }
        Ok(places)
    }

    fn header(&self, node: &Node, decided: &Decided, places: &Places) -> Result<NewHeader> {
        let mut messages = match &node.kind {
            Kind::Group(links) => {
                let style = decided.group.unwrap_or(group::Style::SymbolTable);
                group::messages(self, node, links, style, places)?
            }
            Kind::Dataset(d) => self.dataset_messages(d, decided, places)?,
            Kind::Datatype(t) => {
                let mut w = FieldWriter::new();
                t.encode(&mut w, self.bound)?;
                let mut m = NewMessage::new(kind::DATATYPE, w.finish()).constant();
                m.flags |= UNSHARED;
                vec![m]
            }
        };
        if let Some(comment) = &node.comment {
            let mut text = comment.clone();
            text.push(0);
            messages.push(NewMessage::new(kind::COMMENT, text));
        }
        let version = decided.version;
        if version > 1 && node.links > 1 {
            let mut w = FieldWriter::new();
            w.u8(0).u32(node.links);
            let mut m = NewMessage::new(kind::REFERENCE_COUNT, w.finish());
            m.flags |= UNSHARED;
            messages.push(m);
        }
        let attribute_order = node.order.attributes;
        // h5diff of 1.10 takes the attributes of a version 2 header without this message for other ones.
        if version > 1 && !node.attributes.is_empty() {
            let next = u16::try_from(node.attributes.len()).unwrap_or(u16::MAX);
            let body = message::attribute_info(places.attributes, attribute_order, next);
            let mut m = NewMessage::new(kind::ATTRIBUTE_INFO, body);
            m.flags |= UNSHARED;
            messages.push(m);
        }
        if !decided.dense_attributes {
            for a in &node.attributes {
                messages.push(self.attribute_message(a)?);
            }
        }
        Ok(NewHeader { version, links: node.links, attribute_order, messages })
    }

    fn dataset_messages(&self, d: &Dataset, decided: &Decided, places: &Places) -> Result<Vec<NewMessage>> {
        let layout = match (&d.storage, &decided.choice) {
            (Storage::Compact(data), _) => DataLayout::Compact(data.clone()),
            (Storage::Contiguous { address, size }, _) => {
                DataLayout::Contiguous { address: *address, size: *size }
            }
            (Storage::Chunked(chunks), Some(choice)) => {
                DataLayout::Chunked(index::layout_of(chunks, choice, places.index))
            }
            (Storage::Virtual(heap), _) => {
                DataLayout::Virtual { heap: Some(heap.collection), index: heap.index }
            }
            (Storage::External { size, .. }, _) => DataLayout::Contiguous { address: None, size: *size },
            (Storage::Chunked(_), None) => return Err(Error::invalid("no chunk index was chosen")),
        };
        let mut messages = vec![
            self.shareable(NewMessage::new(kind::DATASPACE, message::dataspace(&d.dataspace, self.bound)?))?,
            self.datatype_message(&d.datatype)?,
            self.shareable(NewMessage::new(kind::FILL, message::fill(&d.fill, self.bound)?).constant())?,
        ];
        if !d.filters.is_empty() {
            let body = message::filters(&d.filters, self.bound)?;
            messages.push(self.shareable(NewMessage::new(kind::FILTERS, body).constant())?);
        }
        let mut m = NewMessage::new(kind::LAYOUT, message::layout(&layout)?);
        // Space that is there from the beginning, and of a known size, never moves.
        let early = d.fill.allocation == AllocationTime::Early && d.filters.is_empty();
        if early && !matches!(d.storage, Storage::Compact(_)) {
            m = m.constant();
        }
        messages.push(m);
        if let Storage::External { pieces, .. } = &d.storage {
            let pieces: Vec<_> = external_names(pieces).1;
            let heap = places.external.unwrap_or(Address(0));
            messages.push(NewMessage::new(kind::EXTERNAL_FILES, message::external_files(heap, &pieces)));
        }
        Ok(messages)
    }

    /// The message, or a reference to where objects share it.
    fn shareable(&self, mut m: NewMessage) -> Result<NewMessage> {
        if let Some(reference) = self.shared.reference(m.kind, &m.body)? {
            m.body = reference;
            m.flags |= SHARED;
        }
        Ok(m)
    }

    fn datatype_message(&self, datatype: &TypeUse) -> Result<NewMessage> {
        let (body, is_shared) = self.datatype_body(datatype)?;
        let mut m = NewMessage::new(kind::DATATYPE, body).constant();
        if is_shared {
            m.flags |= SHARED;
        }
        Ok(m)
    }

    /// The body of a datatype's message; and is it a reference?
    fn datatype_body(&self, datatype: &TypeUse) -> Result<(Vec<u8>, bool)> {
        if let Some(id) = datatype.committed {
            return Ok((message::committed(self.headers[id.0]), true));
        }
        let body = self.own_datatype(datatype)?;
        match self.shared.reference(kind::DATATYPE, &body)? {
            Some(reference) => Ok((reference, true)),
            None => Ok((body, false)),
        }
    }

    fn own_datatype(&self, datatype: &TypeUse) -> Result<Vec<u8>> {
        let mut w = FieldWriter::new();
        datatype.datatype.encode(&mut w, self.bound)?;
        Ok(w.finish())
    }

    /// The body of an attribute's message.
    pub(crate) fn attribute_body(&self, a: &Attribute) -> Result<Vec<u8>> {
        let (datatype, datatype_shared) = self.datatype_body(&a.datatype)?;
        let dataspace = message::dataspace(&a.dataspace, self.bound)?;
        let reference = self.shared.reference(kind::DATASPACE, &dataspace)?;
        let new = NewAttribute {
            name: &a.name,
            charset: charset_of(&a.name),
            datatype: &datatype,
            datatype_shared,
            dataspace: reference.as_ref().unwrap_or(&dataspace),
            dataspace_shared: reference.is_some(),
            data: &a.data,
        };
        message::attribute(&new, self.bound)
    }

    fn attribute_message(&self, a: &Attribute) -> Result<NewMessage> {
        let mut m = NewMessage::new(kind::ATTRIBUTE, self.attribute_body(a)?);
        m.order = a.order;
        self.shareable(m)
    }

    /// Takes all messages in that objects share, stores them, and writes the superblock extension; returns the
    /// address of its header, if there is one.
    fn extension(
        &mut self,
        tree: &Tree,
        order: &[NodeId],
        options: &WriteOptions,
        blocks: &mut Blocks,
    ) -> Result<Option<Address>> {
        let mut messages = Vec::new();
        if !self.shared.is_empty() {
            self.collect_shared(tree, order)?;
            let table = self.shared.store(blocks)?;
            let body = message::shared_table(table, options.shared.len() as u8);
            let mut m = NewMessage::new(kind::SHARED_TABLE, body).constant();
            m.flags |= UNSHARED;
            messages.push(m);
        }
        let space = &options.file_space;
        if space.is_stated() {
            let body =
                message::file_space(space.strategy.number(), space.persist, space.threshold, space.page_size);
            let mut m = NewMessage::new(kind::FILE_SPACE, body);
            m.flags = UNSHARED | MARK_IF_UNKNOWN;
            messages.push(m);
        }
        if messages.is_empty() {
            return Ok(None);
        }
        let version = if self.bound.has_v2_headers() { 2 } else { 1 };
        let header = NewHeader { version, links: 1, attribute_order: None, messages };
        blocks.append("object header", "(superblock extension)", header.encode()?).map(Some)
    }

    fn collect_shared(&mut self, tree: &Tree, order: &[NodeId]) -> Result<()> {
        self.shared.collect();
        for node in order.iter().map(|id| tree.node(*id)) {
            if let Kind::Dataset(d) = &node.kind {
                self.take_parts(&d.datatype, &d.dataspace)?;
                self.shared.take(kind::FILL, &message::fill(&d.fill, self.bound)?);
                if !d.filters.is_empty() {
                    self.shared.take(kind::FILTERS, &message::filters(&d.filters, self.bound)?);
                }
            }
            for a in &node.attributes {
                self.take_parts(&a.datatype, &a.dataspace)?;
            }
        }
        self.shared.number()?;
        for a in order.iter().flat_map(|id| &tree.node(*id).attributes) {
            let body = self.attribute_body(a)?;
            self.shared.take(kind::ATTRIBUTE, &body);
        }
        Ok(())
    }

    fn take_parts(&mut self, datatype: &TypeUse, dataspace: &Dataspace) -> Result<()> {
        if datatype.committed.is_none() {
            let body = self.own_datatype(datatype)?;
            self.shared.take(kind::DATATYPE, &body);
        }
        self.shared.take(kind::DATASPACE, &message::dataspace(dataspace, self.bound)?);
        Ok(())
    }
}

/// The heap of the files' names, and for each piece the heap offset of its name, its offset and its size.
fn external_names(pieces: &[ExternalData]) -> (LocalHeap, Vec<(u64, u64, u64)>) {
    let mut heap = LocalHeap::default();
    let slots = pieces
        .iter()
        .map(|p| (heap.add(p.file.as_bytes()), p.offset, p.bytes.unwrap_or(UNDEFINED)))
        .collect();
    (heap, slots)
}
