//! Dense storage of links and attributes: a fractal heap of their messages, and version 2 B-trees over them, by
//! the hash of the name and by creation order.

use super::index::btree_v2;
use super::layout::Blocks;
use crate::format::Address;
use crate::format::encode::btree_v2::Shape as TreeShape;
use crate::format::encode::fractal_heap::{Content, HEADER_SIZE, Id, MOST_MANAGED, Shape};
use crate::format::encode::object_header::SHARED;
use crate::format::message::encode::Dense;
use tensilo_core::wire::{FieldWriter, lookup3};
use tensilo_core::{Error, Result};

/// Bytes of a node of these B-trees.
const NODE: u32 = 512;

/// Most bytes of a record.
const MOST_RECORD: usize = 17;

/// A link or attribute to be stored densely.
#[derive(Debug, Clone)]
pub(crate) struct Item<'n> {
    name: &'n [u8],
    hash: u32,
    order: u64,
    /// The message's body.
    body: Vec<u8>,
    /// Its id in the heap of shared messages, where it is there.
    shared: Option<[u8; 8]>,
}

impl<'n> Item<'n> {
    pub(crate) fn new(name: &'n [u8], order: u64, body: Vec<u8>, shared: Option<[u8; 8]>) -> Self {
        Self { name, hash: lookup3(name), order, body, shared }
    }
}

/// What the items are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Links,
    Attributes,
}

/// Stores items; `by_order`: is their order indexed?
pub(crate) fn store(
    of: Of,
    mut items: Vec<Item<'_>>,
    by_order: bool,
    blocks: &mut Blocks,
    object: &str,
) -> Result<Dense> {
    let shape = match of {
        Of::Links => Shape::LINKS,
        Of::Attributes => Shape::ATTRIBUTES,
    };
    // Names are distinct, so the hashes alone order nearly all of them.
    items.sort_by(|a, b| (a.hash, &a.name).cmp(&(b.hash, &b.name)));
    let own = items.iter().filter(|i| i.shared.is_none());
    let bodies: Vec<&[u8]> = own.map(|i| i.body.as_slice()).collect();
    let (heap, ids) = heap(shape, &bodies, blocks, object)?;
    let mut own = ids.into_iter();
    let mut place = |i: &Item| match i.shared {
        Some(id) => (id, SHARED),
        None => (own.next().unwrap_or_default(), 0),
    };
    let ids: Vec<(Id, u8)> = items.iter().map(&mut place).collect();
    let mut names = FieldWriter::with_capacity(MOST_RECORD * items.len());
    for (item, (id, flags)) in items.iter().zip(&ids) {
        let id = &id[..shape.id_len];
        match of {
            Of::Links => names.u32(item.hash).bytes(id),
            Of::Attributes => names.bytes(id).u8(*flags).u32(item.order as u32).u32(item.hash),
        };
    }
    let (name_kind, order_kind) = match of {
        Of::Links => (5, 6),
        Of::Attributes => (8, 9),
    };
    let tree = |kind: u8, records: &FieldWriter, blocks: &mut Blocks| {
        let record_size = records.len() / items.len();
        btree_v2::build(TreeShape { kind, node_size: NODE, record_size }, records.as_slice(), blocks, object)
    };
    let names = tree(name_kind, &names, blocks)?;
    if !by_order {
        return Ok(Dense { heap: Some(heap), names: Some(names), order: None });
    }
    let mut numbered: Vec<(u64, &(Id, u8))> = items.iter().map(|i| i.order).zip(&ids).collect();
    numbered.sort();
    let mut orders = FieldWriter::with_capacity(MOST_RECORD * items.len());
    for (order, (id, flags)) in numbered {
        let id = &id[..shape.id_len];
        match of {
            Of::Links => orders.u64(order).bytes(id),
            Of::Attributes => orders.bytes(id).u8(*flags).u32(order as u32),
        };
    }
    let order = tree(order_kind, &orders, blocks)?;
    Ok(Dense { heap: Some(heap), names: Some(names), order: Some(order) })
}

/// Builds a heap of these objects; returns the address of its header and the objects' ids.
pub(crate) fn heap(
    shape: Shape,
    objects: &[&[u8]],
    blocks: &mut Blocks,
    object: &str,
) -> Result<(Address, Vec<Id>)> {
    let header = blocks.allocate(HEADER_SIZE)?;
    let mut content = Content::default();
    let mut ids = Vec::with_capacity(objects.len());
    let mut managed = Vec::new();
    let mut huge = FieldWriter::new();
    for bytes in objects {
        if bytes.len() <= MOST_MANAGED {
            managed.push(*bytes);
            ids.push(None);
            continue;
        }
        let at = blocks.append("huge heap object", object, bytes.to_vec())?;
        content.last_huge += 1;
        content.huge_bytes += bytes.len() as u64;
        huge.u64(at.0).u64(bytes.len() as u64).u64(content.last_huge);
        ids.push(Some(shape.huge_id(content.last_huge)));
    }
    if content.last_huge > 0 {
        let tree = TreeShape { kind: 1, node_size: NODE, record_size: 24 };
        content.huge_tree = Some(btree_v2::build(tree, huge.as_slice(), blocks, object)?);
    }
    let mut filler =
        Filler { shape, header, objects: &managed, next: 0, ids: Vec::new(), content, blocks, object };
    filler.fill()?;
    let Filler { ids: managed_ids, content, .. } = filler;
    let mut managed_ids = managed_ids.into_iter();
    let ids = ids.into_iter().map(|huge| huge.or_else(|| managed_ids.next()).unwrap_or_default()).collect();
    blocks.place(header, "fractal heap header", object, shape.header(&content));
    Ok((header, ids))
}

/// Puts objects into blocks, in the order of the heap's space.
struct Filler<'a> {
    shape: Shape,
    header: Address,
    objects: &'a [&'a [u8]],
    next: usize,
    ids: Vec<Id>,
    content: Content,
    blocks: &'a mut Blocks,
    object: &'a str,
}

impl Filler<'_> {
    fn fill(&mut self) -> Result<()> {
        if self.objects.is_empty() {
            return Ok(());
        }
        let all: u64 = self.objects.iter().map(|o| o.len() as u64).sum();
        if all <= self.shape.start - self.shape.overhead() {
            self.content.root = self.direct(0, self.shape.start)?;
            self.content.next_block = 0;
            return Ok(());
        }
        // Rows until nothing is left; the root is written once their number is known.
        let mut children = Vec::new();
        let mut offset = 0;
        let mut rows = 0;
        while self.next < self.objects.len() {
            self.row(rows, &mut offset, &mut children)?;
            rows += 1;
            if self.shape.span(rows).trailing_zeros() >= u32::from(self.shape.bits) {
                return Err(Error::unsupported("more links or attributes than a fractal heap holds"));
            }
        }
        let bytes = self.shape.indirect_block(self.header, 0, &children);
        self.content.rows = rows;
        self.content.root = Some(self.blocks.append("fractal heap indirect", self.object, bytes)?);
        Ok(())
    }

    /// Fills one row at `offset`, and moves it behind the row.
    fn row(&mut self, row: u32, offset: &mut u64, children: &mut Vec<Option<Address>>) -> Result<()> {
        let size = self.shape.block_size(row);
        for _ in 0..self.shape.width {
            let child = if row < self.shape.direct_rows() {
                self.direct(*offset, size)?
            } else {
                self.indirect(*offset, size)?
            };
            children.push(child);
            *offset += size;
        }
        Ok(())
    }

    fn indirect(&mut self, offset: u64, size: u64) -> Result<Option<Address>> {
        if self.next == self.objects.len() {
            return Ok(None);
        }
        let rows = self.shape.rows_of(size);
        let (mut at, mut children) = (offset, Vec::new());
        for row in 0..rows {
            self.row(row, &mut at, &mut children)?;
        }
        let bytes = self.shape.indirect_block(self.header, offset, &children);
        self.blocks.append("fractal heap indirect", self.object, bytes).map(Some)
    }

    /// Fills a direct block with as many of the next objects as fit; none is made when not even the first does.
    fn direct(&mut self, offset: u64, size: u64) -> Result<Option<Address>> {
        let overhead = self.shape.overhead();
        let mut bytes = Vec::new();
        while let Some(o) = self.objects.get(self.next) {
            if overhead + (bytes.len() + o.len()) as u64 > size {
                break;
            }
            self.ids.push(self.shape.managed_id(offset + overhead + bytes.len() as u64, o.len()));
            bytes.extend_from_slice(o);
            self.next += 1;
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        self.content.managed_bytes += bytes.len() as u64;
        self.content.managed = self.ids.len() as u64;
        self.content.allocated += size;
        self.content.next_block = offset + size;
        let block = self.shape.direct_block(self.header, offset, size, &bytes);
        self.blocks.append("fractal heap direct block", self.object, block).map(Some)
    }
}
