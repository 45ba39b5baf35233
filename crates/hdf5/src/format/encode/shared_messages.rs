//! Shared message tables, lists and records (specification III.I), encoded.
//!
//! | master table, each index | bytes | record | bytes |
//! |---|---|---|---|
//! | version, form (0 list, 1 B-tree) | 2 | place (0: the heap) | 1 |
//! | kinds of messages, smallest size | 6 | hash of the message | 4 |
//! | limits between list and B-tree, messages | 6 | references to it | 4 |
//! | address of list or B-tree, of heap | 16 | heap id | 8 |

use super::{put_address, put_checksum};
use crate::format::Address;
use tensilo_core::wire::FieldWriter;

/// Most messages of a list; more are a B-tree.
pub const LIST_MAX: u16 = 50;
/// Fewest messages of a B-tree.
pub const TREE_MIN: u16 = 40;
/// Bytes of a record.
pub const RECORD: usize = 17;

/// An index of the master table.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewIndex {
    /// Bit `n` is set when messages of type `n` are shared.
    pub kinds: u16,
    /// Smallest message that is shared.
    pub min_size: u32,
    /// Messages in the index.
    pub messages: u16,
    /// Is the index a B-tree (or a list)?
    pub is_tree: bool,
    /// Its address; `None` without messages.
    pub index: Option<Address>,
    /// Address of the heap; `None` without messages.
    pub heap: Option<Address>,
}

/// The master table.
pub fn table(indexes: &[NewIndex]) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.bytes(b"SMTB");
    for i in indexes {
        w.u8(0).u8(u8::from(i.is_tree)).u16(i.kinds).u32(i.min_size);
        w.u16(LIST_MAX).u16(TREE_MIN).u16(i.messages);
        put_address(&mut w, i.index);
        put_address(&mut w, i.heap);
    }
    put_checksum(&mut w);
    w.finish()
}

/// What an index says of a message in its heap.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Hash of the message, beginning with its type.
    pub hash: u32,
    /// References to it.
    pub references: u32,
    /// Its heap id.
    pub id: [u8; 8],
}

impl Record {
    /// The bytes of a record.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.u8(0).u32(self.hash).u32(self.references).bytes(&self.id);
        w.finish()
    }
}

/// A list: the checksum stands behind the records, and the room is that of the longest list.
pub fn list(records: &[Record]) -> Vec<u8> {
    let mut w = FieldWriter::new();
    w.bytes(b"SMLI");
    for r in records {
        w.bytes(&r.encode());
    }
    put_checksum(&mut w);
    let room = 8 + RECORD * usize::from(LIST_MAX);
    w.zeros(room.saturating_sub(w.len()));
    w.finish()
}
