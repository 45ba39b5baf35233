//! Shared header messages of a file being written: equal ones stand once in a fractal heap, with an index over them.
//!
//! A reference to one is ten bytes, whatever it refers to, so that headers have their sizes before anything has an
//! address. Heap ids follow from the order and the lengths of what goes in: datatypes, dataspaces and the like are
//! put in first, for attributes contain references to them.

use super::dense;
use super::file_space::SharedIndexOptions;
use super::index::btree_v2;
use super::layout::Blocks;
use crate::format::Address;
use crate::format::encode::btree_v2::Shape as TreeShape;
use crate::format::encode::fractal_heap::Shape;
use crate::format::encode::shared_messages::{self as encode, LIST_MAX, NewIndex, RECORD, Record};
use crate::format::message::encode as message;
use std::collections::BTreeMap;
use tensilo_core::wire::lookup3_from;
use tensilo_core::{Error, Result};

/// Bytes of a node of the B-tree over messages.
const NODE: u32 = 512;
/// Type of its records.
const TREE: u8 = 7;

/// A shared message.
#[derive(Debug, Clone)]
struct Message {
    kind: u16,
    body: Vec<u8>,
    references: u32,
    id: [u8; 8],
}

/// The messages of one index.
#[derive(Debug, Default)]
struct Index {
    /// Bit `n` is set when messages of type `n` are shared.
    kinds: u16,
    min_size: u32,
    messages: Vec<Message>,
    /// Number of each message, by kind and body.
    numbers: BTreeMap<(u16, Vec<u8>), usize>,
}

/// How far the messages are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Only lengths matter.
    Sizes,
    /// What is asked for is taken in.
    Collecting,
    /// All have their ids.
    Final,
}

/// The shared messages of a file.
#[derive(Debug)]
pub(crate) struct Shared {
    stage: Stage,
    indexes: Vec<Index>,
}

impl Shared {
    pub(crate) fn new(options: &[SharedIndexOptions]) -> Self {
        let index = |o: &SharedIndexOptions| Index {
            kinds: o.kinds.iter().fold(0, |bits, k| bits | 1 << k.message()),
            min_size: o.min_size,
            ..Index::default()
        };
        Self { stage: Stage::Sizes, indexes: options.iter().map(index).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Begins to take messages in.
    pub(crate) fn collect(&mut self) {
        self.stage = Stage::Collecting;
    }

    fn index_of(&self, kind: u16, body: &[u8]) -> Option<usize> {
        self.indexes.iter().position(|i| i.kinds & 1 << kind != 0 && body.len() as u64 >= i.min_size.into())
    }

    /// Takes a message in, if it is shared.
    pub(crate) fn take(&mut self, kind: u16, body: &[u8]) {
        let Some(index) = self.index_of(kind, body) else { return };
        let index = &mut self.indexes[index];
        match index.numbers.get(&(kind, body.to_vec())) {
            Some(n) => index.messages[*n].references += 1,
            None => {
                index.numbers.insert((kind, body.to_vec()), index.messages.len());
                let new = Message { kind, body: body.to_vec(), references: 1, id: [0; 8] };
                index.messages.push(new);
            }
        }
    }

    /// The heap id of a message; `None` when it is not shared.
    pub(crate) fn id(&self, kind: u16, body: &[u8]) -> Result<Option<[u8; 8]>> {
        let Some(index) = self.index_of(kind, body) else { return Ok(None) };
        if self.stage == Stage::Sizes {
            return Ok(Some([0; 8]));
        }
        let index = &self.indexes[index];
        match index.numbers.get(&(kind, body.to_vec())) {
            Some(n) => Ok(Some(index.messages[*n].id)),
            None => Err(Error::invalid("a shared message was not collected")),
        }
    }

    /// What stands in place of a message; `None` when it is not shared.
    pub(crate) fn reference(&self, kind: u16, body: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.id(kind, body)?.map(message::in_heap))
    }

    /// Gives ids to what was taken in. What is taken in later leaves them as they are.
    pub(crate) fn number(&mut self) -> Result<()> {
        for index in &mut self.indexes {
            index.heap(&mut Blocks::scratch())?;
        }
        Ok(())
    }

    /// Stores everything; returns the address of the master table.
    pub(crate) fn store(&mut self, blocks: &mut Blocks) -> Result<Address> {
        let mut table = Vec::with_capacity(self.indexes.len());
        for index in &mut self.indexes {
            table.push(index.store(blocks)?);
        }
        self.stage = Stage::Final;
        blocks.append("shared message table", "(superblock extension)", encode::table(&table))
    }
}

impl Index {
    /// Builds the heap, which gives the messages their ids.
    fn heap(&mut self, blocks: &mut Blocks) -> Result<Address> {
        let bodies: Vec<&[u8]> = self.messages.iter().map(|m| m.body.as_slice()).collect();
        let (heap, ids) = dense::heap(Shape::ATTRIBUTES, &bodies, blocks, "(superblock extension)")?;
        for (message, id) in self.messages.iter_mut().zip(ids) {
            message.id = id;
        }
        Ok(heap)
    }

    fn store(&mut self, blocks: &mut Blocks) -> Result<NewIndex> {
        let mut new = NewIndex { kinds: self.kinds, min_size: self.min_size, ..NewIndex::default() };
        if self.messages.is_empty() {
            return Ok(new);
        }
        new.messages = u16::try_from(self.messages.len())
            .map_err(|_| Error::unsupported("an index of more than 65535 shared messages"))?;
        new.heap = Some(self.heap(blocks)?);
        let mut sorted: Vec<(Record, &Message)> = self.messages.iter().map(|m| (m.record(), m)).collect();
        let object = "(superblock extension)";
        if new.messages <= LIST_MAX {
            let records: Vec<Record> = sorted.into_iter().map(|(r, _)| r).collect();
            new.index = Some(blocks.append("shared message list", object, encode::list(&records))?);
            return Ok(new);
        }
        new.is_tree = true;
        sorted
            .sort_by(|(a, x), (b, y)| (a.hash, x.body.len(), &x.body).cmp(&(b.hash, y.body.len(), &y.body)));
        let records: Vec<u8> = sorted.iter().flat_map(|(r, _)| r.encode()).collect();
        let shape = TreeShape { kind: TREE, node_size: NODE, record_size: RECORD };
        new.index = Some(btree_v2::build(shape, &records, blocks, object)?);
        Ok(new)
    }
}

impl Message {
    fn record(&self) -> Record {
        let hash = lookup3_from(u32::from(self.kind), &self.body);
        Record { hash, references: self.references, id: self.id }
    }
}
