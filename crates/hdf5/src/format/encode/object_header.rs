//! Object headers (specification IV.A.1), encoded: versions 1 and 2.
//!
//! A header is one block. One whose address must be known before its messages are (something refers to it) has
//! a small first block of a fixed size, with nothing but a continuation message in it, and a second block.

use super::put_checksum;
use crate::format::Address;
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// Message types.
pub mod kind {
    /// Dataspace.
    pub const DATASPACE: u16 = 0x01;
    /// Link info.
    pub const LINK_INFO: u16 = 0x02;
    /// Datatype.
    pub const DATATYPE: u16 = 0x03;
    /// Fill value of old releases.
    pub const OLD_FILL: u16 = 0x04;
    /// Fill value.
    pub const FILL: u16 = 0x05;
    /// Link.
    pub const LINK: u16 = 0x06;
    /// External raw data files.
    pub const EXTERNAL_FILES: u16 = 0x07;
    /// Data layout.
    pub const LAYOUT: u16 = 0x08;
    /// Group info.
    pub const GROUP_INFO: u16 = 0x0a;
    /// Filter pipeline.
    pub const FILTERS: u16 = 0x0b;
    /// Attribute.
    pub const ATTRIBUTE: u16 = 0x0c;
    /// Comment.
    pub const COMMENT: u16 = 0x0d;
    /// Shared message table, in the superblock extension.
    pub const SHARED_TABLE: u16 = 0x0f;
    /// Continuation.
    pub const CONTINUATION: u16 = 0x10;
    /// Symbol table.
    pub const SYMBOL_TABLE: u16 = 0x11;
    /// Attribute info.
    pub const ATTRIBUTE_INFO: u16 = 0x15;
    /// Reference count.
    pub const REFERENCE_COUNT: u16 = 0x16;
    /// File space info, in the superblock extension.
    pub const FILE_SPACE: u16 = 0x17;
}

/// Message flag: the message never changes.
pub const CONSTANT: u8 = 1;
/// Message flag: the body is a reference to a message kept elsewhere.
pub const SHARED: u8 = 2;
/// Message flag: the message must not be shared.
pub const UNSHARED: u8 = 4;
/// Message flag: who does not know the message notes that, when they change the object.
pub const MARK_IF_UNKNOWN: u8 = 0x10;

/// One message of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Message type.
    pub kind: u16,
    /// Message flags.
    pub flags: u8,
    /// The body, without padding.
    pub body: Vec<u8>,
    /// Creation order, where the header tracks that of attributes.
    pub order: u16,
}

impl NewMessage {
    /// A message without flags.
    pub fn new(kind: u16, body: Vec<u8>) -> Self {
        Self { kind, flags: 0, body, order: 0 }
    }

    /// The same, marked as never changing.
    #[must_use]
    pub fn constant(mut self) -> Self {
        self.flags |= CONSTANT;
        self
    }
}

/// The most bytes a message body can have, in headers of either version.
pub const MOST_BODY: usize = 65_528;

/// A header to be written.
#[derive(Debug, Clone)]
pub struct NewHeader {
    /// Version, 1 or 2.
    pub version: u8,
    /// Number of hard links to the object (version 2 has a message for it when it is not 1).
    pub links: u32,
    /// Does the header number its attributes in the order they were made (version 2)? `Some(true)`: and is that
    /// order indexed?
    pub attribute_order: Option<bool>,
    /// The messages.
    pub messages: Vec<NewMessage>,
}

impl NewHeader {
    /// Bytes of the one block.
    pub fn size(&self) -> u64 {
        let messages = self.messages_len();
        match self.version {
            1 => 16 + messages,
            _ => 6 + size_width(messages) as u64 + messages + 4,
        }
    }

    /// Bytes of the second block of a header whose first one is pinned.
    pub fn continuation_size(&self) -> u64 {
        self.messages_len() + if self.version == 1 { 0 } else { 8 }
    }

    fn messages_len(&self) -> u64 {
        let each = |m: &NewMessage| match self.version {
            1 => 8 + m.body.len().next_multiple_of(8),
            _ => 4 + 2 * usize::from(self.attribute_order.is_some()) + m.body.len(),
        };
        self.messages.iter().map(each).sum::<usize>() as u64
    }

    /// The header as one block.
    ///
    /// # Errors
    /// `Unsupported` when there are too many messages or one is too long.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut w = FieldWriter::with_capacity(self.size() as usize);
        self.prefix(&mut w, self.messages.len(), self.messages_len())?;
        for m in &self.messages {
            self.message(&mut w, m)?;
        }
        if self.version != 1 {
            put_checksum(&mut w);
        }
        Ok(w.finish())
    }

    /// The header as a pinned first block and a second one that stands at `rest`.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_pinned(&self, rest: Address) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut body = FieldWriter::new();
        body.u64(rest.0).u64(self.continuation_size());
        let continuation = NewMessage::new(kind::CONTINUATION, body.finish());
        let mut first = FieldWriter::new();
        let only = Self { messages: vec![continuation.clone()], ..self.clone() };
        self.prefix(&mut first, self.messages.len() + 1, only.messages_len())?;
        self.message(&mut first, &continuation)?;
        let mut second = FieldWriter::new();
        if self.version != 1 {
            put_checksum(&mut first);
            second.bytes(b"OCHK");
        }
        for m in &self.messages {
            self.message(&mut second, m)?;
        }
        if self.version != 1 {
            put_checksum(&mut second);
        }
        Ok((first.finish(), second.finish()))
    }

    fn prefix(&self, w: &mut FieldWriter, messages: usize, len: u64) -> Result<()> {
        if self.version == 1 {
            let messages = u16::try_from(messages).map_err(|_| too_many(messages))?;
            let len = u32::try_from(len).map_err(|_| too_many(usize::from(messages)))?;
            w.u8(1).u8(0).u16(messages).u32(self.links).u32(len).u32(0);
            return Ok(());
        }
        let width = size_width(len);
        let order = match self.attribute_order {
            None => 0,
            Some(false) => 0x04,
            Some(true) => 0x0c,
        };
        w.bytes(b"OHDR").u8(2).u8(width.trailing_zeros() as u8 | order).uint(len, width);
        Ok(())
    }

    fn message(&self, w: &mut FieldWriter, m: &NewMessage) -> Result<()> {
        if m.body.len() > MOST_BODY {
            return Err(Error::unsupported(format!(
                "a message of {} bytes in an object header; {MOST_BODY} are possible",
                m.body.len()
            )));
        }
        if self.version == 1 {
            let len = m.body.len().next_multiple_of(8);
            w.u16(m.kind).u16(len as u16).u8(m.flags).zeros(3).bytes(&m.body).zeros(len - m.body.len());
        } else {
            w.u8(m.kind as u8).u16(m.body.len() as u16).u8(m.flags);
            if self.attribute_order.is_some() {
                w.u16(m.order);
            }
            w.bytes(&m.body);
        }
        Ok(())
    }
}

fn too_many(messages: usize) -> Error {
    Error::unsupported(format!("{messages} messages are too many for one object header"))
        .hint("a newer bound keeps many attributes outside the header")
}

/// Width of the field that states the size of a version 2 header's first block.
fn size_width(len: u64) -> usize {
    match len {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}
