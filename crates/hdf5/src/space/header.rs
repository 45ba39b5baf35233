//! Reads an object header as stored: first chunk, continuations, checksums, the list of messages.
//!
//! Shared messages stay references here; [`object`](crate::object) resolves them.

use super::FileSpace;
use crate::format::Address;
use crate::format::message::{MessageKind, file};
use crate::format::object_header::{Envelope, MESSAGE_SHARED, Prefix, parse_chunk};
use std::collections::VecDeque;
use tensilo_core::Result;

/// Bytes read at first; most headers are not longer.
const FIRST_READ: u64 = 512;

/// One message of an object header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub kind: MessageKind,
    /// Its flags.
    pub flags: u8,
    /// Its creation index, if tracked.
    pub creation_index: Option<u16>,
    /// Absolute offset of its body.
    pub offset: u64,
    start: usize,
    len: usize,
}

impl Message {
    /// Is the body a reference to a shared message?
    pub fn is_shared(&self) -> bool {
        self.flags & MESSAGE_SHARED != 0 && self.kind.shareable()
    }
}

/// An object header as stored.
#[derive(Debug, Clone)]
pub struct StoredHeader {
    /// Address of the header.
    pub address: Address,
    /// What stands before the messages.
    pub prefix: Prefix,
    /// The messages in stored order, continuations included.
    pub messages: Vec<Message>,
    bytes: Vec<u8>,
}

impl StoredHeader {
    /// Reads the header at `address` with all its continuations. Costs one read where the first 512 bytes hold it.
    ///
    /// # Errors
    /// `Corrupt` when it is no object header, a checksum does not match or continuations run in a cycle.
    pub fn load(space: &FileSpace, address: Address) -> Result<Self> {
        const WHAT: &str = "object header";
        let mut first = space.read_up_to(address, FIRST_READ, WHAT)?;
        let at = first.offset();
        let prefix = Prefix::parse(&first, at).map_err(|e| space.locate(e))?;
        let total = prefix.total_len().unwrap_or(u64::MAX);
        if total > first.len() as u64 {
            first = space.read(address, total, WHAT)?;
        }
        let mut header = Self { address, prefix, messages: Vec::new(), bytes: Vec::new() };
        let mut waiting = VecDeque::new();
        let chunk = first.get(..usize::try_from(total).unwrap_or(usize::MAX)).unwrap_or(&first);
        let skip = usize::try_from(header.prefix.len).unwrap_or(usize::MAX);
        header.add_chunk(space, chunk, skip, at, &mut waiting)?;
        // A version 1 prefix may count more messages than there are (old libraries did), but not fewer.
        if header.prefix.messages.is_some_and(|n| header.messages.len() > usize::from(n)) {
            return Err(space.corrupt("object header: more messages than it says", at));
        }
        if waiting.is_empty() {
            return Ok(header);
        }
        let mut visits = space.visits();
        visits.enter(at, total, WHAT).map_err(|e| space.locate(e))?;
        while let Some((address, len)) = waiting.pop_front() {
            let chunk = space.read(address, len, "object header continuation")?;
            visits.enter(chunk.offset(), len, "object header continuation").map_err(|e| space.locate(e))?;
            let skip = if header.prefix.version == 2 { 4 } else { 0 };
            if skip > 0 && !chunk.starts_with(crate::format::object_header::CONTINUATION_SIGNATURE) {
                return Err(space.corrupt("object header continuation: signature is missing", chunk.offset()));
            }
            header.add_chunk(space, &chunk, skip, chunk.offset(), &mut waiting)?;
        }
        Ok(header)
    }

    fn add_chunk(
        &mut self,
        space: &FileSpace,
        chunk: &[u8],
        skip: usize,
        at: u64,
        waiting: &mut VecDeque<(Address, u64)>,
    ) -> Result<()> {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(chunk);
        let mut links = None;
        let messages = &mut self.messages;
        parse_chunk(&self.prefix, chunk, skip, at, &mut |e: Envelope| {
            let offset = at.saturating_add(e.start as u64);
            let body = chunk.get(e.start..e.start.saturating_add(e.len)).unwrap_or(&[]);
            match e.kind {
                MessageKind::Continuation => {
                    waiting.push_back(file::continuation(body, offset, space.sizes())?);
                }
                MessageKind::ReferenceCount => {
                    links = Some(file::reference_count(body, offset)?);
                }
                _ => {}
            }
            messages.push(Message {
                kind: e.kind,
                flags: e.flags,
                creation_index: e.creation_index,
                offset,
                start: base.saturating_add(e.start),
                len: e.len,
            });
            Ok(())
        })
        .map_err(|e| space.locate(e))?;
        if let Some(n) = links {
            self.prefix.link_count = n;
        }
        Ok(())
    }

    /// The body of a message as stored.
    pub fn body(&self, message: &Message) -> &[u8] {
        self.bytes.get(message.start..message.start.saturating_add(message.len)).unwrap_or(&[])
    }

    /// The first message of a kind.
    pub fn find(&self, kind: MessageKind) -> Option<&Message> {
        self.messages.iter().find(|m| m.kind == kind)
    }
}
