//! Object headers, versions 1 and 2 (specification IV.A): the prefix, and the messages of one chunk.
//!
//! Following continuations is the work of [`object`](crate::object); here one chunk's bytes become a list of
//! message envelopes, each with its place in the chunk.

use super::message::MessageKind;
use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, Result};

/// Signature of a version 2 object header.
pub const SIGNATURE: &[u8; 4] = b"OHDR";
/// Signature of a version 2 continuation chunk.
pub const CONTINUATION_SIGNATURE: &[u8; 4] = b"OCHK";

/// Message flag: the body is a reference to a shared message.
pub const MESSAGE_SHARED: u8 = 0x02;
const MESSAGE_DONT_SHARE: u8 = 0x04;
/// Message flag: who does not know the message must not write to the object.
pub const MESSAGE_FAIL_ON_WRITE: u8 = 0x08;
const MESSAGE_MARK_UNKNOWN: u8 = 0x10;
const MESSAGE_WAS_UNKNOWN: u8 = 0x20;
const MESSAGE_SHAREABLE: u8 = 0x40;
const MESSAGE_FAIL_ALWAYS: u8 = 0x80;

/// Access, modification, change and birth times, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Last access.
    pub access: u32,
    /// Last modification.
    pub modification: u32,
    /// Last change.
    pub change: u32,
    /// Birth.
    pub birth: u32,
}

/// What stands before the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// Version, 1 or 2.
    pub version: u8,
    /// Flags (version 2).
    pub flags: u8,
    /// Number of messages (version 1).
    pub messages: Option<u16>,
    /// Hard links to this object (version 1; version 2 has a message for it, and 1 without).
    pub link_count: u32,
    /// Times, if stored (version 2).
    pub times: Option<Times>,
    /// Most compact and least dense attributes, if not the default (version 2).
    pub attribute_phase: Option<(u16, u16)>,
    /// Bytes before the first message.
    pub len: u64,
    /// Bytes of messages in the first chunk.
    pub chunk_len: u64,
}

/// Most bytes of a prefix.
pub const MAX_PREFIX: u64 = 34;

impl Prefix {
    /// Parses the prefix; more bytes than it has may be given.
    ///
    /// # Errors
    /// `Corrupt` when it is no object header.
    pub fn parse(bytes: &[u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "object header");
        if bytes.starts_with(SIGNATURE) { Self::parse_v2(&mut r) } else { Self::parse_v1(&mut r) }
    }

    fn parse_v1(r: &mut FieldReader<'_>) -> Result<Self> {
        let version = r.u8()?;
        if version != 1 {
            return Err(r.corrupt(format_args!("neither a version 2 signature nor version 1, but {version}")));
        }
        r.skip(1)?;
        let messages = r.u16()?;
        let link_count = r.u32()?;
        let chunk_len = u64::from(r.u32()?);
        r.skip(4)?;
        if (messages > 0 && chunk_len < 8) || (messages == 0 && chunk_len > 0) {
            return Err(r.corrupt(format_args!("{messages} messages do not fit in {chunk_len} bytes")));
        }
        Ok(Self {
            version,
            flags: 0,
            messages: Some(messages),
            link_count,
            times: None,
            attribute_phase: None,
            len: r.position() as u64,
            chunk_len,
        })
    }

    fn parse_v2(r: &mut FieldReader<'_>) -> Result<Self> {
        r.signature(SIGNATURE)?;
        let version = r.u8()?;
        if version != 2 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let flags = r.u8()?;
        if flags & 0xc0 != 0 {
            return Err(r.corrupt(format_args!("unknown flags {flags:#x}")));
        }
        let times = if flags & 0x20 != 0 {
            Some(Times { access: r.u32()?, modification: r.u32()?, change: r.u32()?, birth: r.u32()? })
        } else {
            None
        };
        let attribute_phase = if flags & 0x10 != 0 {
            let phase = (r.u16()?, r.u16()?);
            if phase.0 < phase.1 {
                return Err(r.corrupt(format_args!(
                    "at most {} compact but at least {} dense attributes",
                    phase.0, phase.1
                )));
            }
            Some(phase)
        } else {
            None
        };
        let chunk_len = r.uint([1, 2, 4, 8].get(usize::from(flags & 3)).copied().unwrap_or(8))?;
        let head = if flags & 0x04 != 0 { 6 } else { 4 };
        if chunk_len > 0 && chunk_len < head {
            return Err(r.corrupt(format_args!("{chunk_len} bytes hold no message")));
        }
        Ok(Self {
            version,
            flags,
            messages: None,
            link_count: 1,
            times,
            attribute_phase,
            len: r.position() as u64,
            chunk_len,
        })
    }

    /// Bytes of the whole first chunk: prefix, messages and checksum; `None` past 64 bits.
    pub fn total_len(&self) -> Option<u64> {
        let checksum = if self.version == 2 { 4 } else { 0 };
        self.len.checked_add(self.chunk_len)?.checked_add(checksum)
    }
}

/// The envelope of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// What kind of message it is.
    pub kind: MessageKind,
    /// Its flags.
    pub flags: u8,
    /// Its creation index, if tracked.
    pub creation_index: Option<u16>,
    /// Where the body begins in the chunk.
    pub start: usize,
    /// Bytes of the body.
    pub len: usize,
}

/// Parses the messages of one chunk and calls `each` for every one.
///
/// `chunk` is the whole chunk as stored: for the first chunk with its prefix of `skip` bytes, in version 2 with the
/// checksum, which is verified.
///
/// # Errors
/// `Corrupt` when a message passes the end, flags contradict each other, the checksum does not match, or a message is
/// unknown and says that it must be understood (`Unsupported`).
pub fn parse_chunk(
    prefix: &Prefix,
    chunk: &[u8],
    skip: usize,
    at: u64,
    each: &mut dyn FnMut(Envelope) -> Result<()>,
) -> Result<()> {
    let mut end = chunk.len();
    if prefix.version == 2 {
        end = end
            .checked_sub(4)
            .ok_or_else(|| Error::corrupt("object header: no room for a checksum").at(at))?;
        let (covered, stored) = chunk.split_at_checked(end).unwrap_or((chunk, &[]));
        if lookup3(covered).to_le_bytes() != stored {
            return Err(Error::corrupt("object header: checksum of a chunk does not match").at(at));
        }
    }
    let mut r = FieldReader::new(chunk.get(..end).unwrap_or(chunk), at, "object header message");
    r.skip(skip)?;
    let indexed = prefix.version == 2 && prefix.flags & 0x04 != 0;
    let head = match (prefix.version, indexed) {
        (1, _) => 8,
        (_, true) => 6,
        (_, false) => 4,
    };
    while r.remaining() > 0 {
        if r.remaining() < head {
            if prefix.version == 1 {
                return Err(r.corrupt("a gap behind the last message"));
            }
            break; // a gap too small for a message
        }
        let id = if prefix.version == 1 { r.u16()? } else { u16::from(r.u8()?) };
        let len = usize::from(r.u16()?);
        let flags = r.u8()?;
        let mut creation_index = None;
        if prefix.version == 1 {
            r.skip(3)?;
        } else if indexed {
            creation_index = Some(r.u16()?);
        }
        let kind = MessageKind::from_id(id);
        check_flags(&r, kind, flags)?;
        if kind == MessageKind::ReferenceCount && prefix.version == 1 {
            return Err(r.corrupt("a reference count message in a version 1 header"));
        }
        if prefix.version == 1 && len & 7 != 0 {
            return Err(r.corrupt(format_args!("length {len} is no multiple of 8")));
        }
        let start = r.position();
        r.skip(len)?;
        each(Envelope { kind, flags, creation_index, start, len })?;
    }
    Ok(())
}

fn check_flags(r: &FieldReader<'_>, kind: MessageKind, flags: u8) -> Result<()> {
    let has = |f: u8| flags & f != 0;
    if kind == MessageKind::Unknown(25) {
        return Err(r.corrupt("message type 25 must not be stored"));
    }
    if (has(MESSAGE_SHARED) && has(MESSAGE_DONT_SHARE))
        || (has(MESSAGE_WAS_UNKNOWN) && has(MESSAGE_FAIL_ON_WRITE))
        || (has(MESSAGE_WAS_UNKNOWN) && !has(MESSAGE_MARK_UNKNOWN))
    {
        return Err(r.corrupt(format_args!("flags {flags:#x} contradict each other")));
    }
    if let MessageKind::Unknown(id) = kind {
        if has(MESSAGE_FAIL_ALWAYS) {
            return Err(r.unsupported(format_args!("type {id} is not known and must be understood")));
        }
    } else if has(MESSAGE_SHAREABLE) && !kind.shareable() {
        return Err(r.corrupt(format_args!("a {kind} message is flagged as shareable")));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic fails the test")]
mod tests {
    use super::*;
    use tensilo_core::ErrorKind;

    fn v1(len: u32) -> Prefix {
        let mut bytes = vec![1, 0, 9, 0, 1, 0, 0, 0];
        bytes.extend(len.to_le_bytes());
        bytes.extend([0; 4]);
        Prefix::parse(&bytes, 0).unwrap()
    }

    fn parse(prefix: &Prefix, chunk: &[u8]) -> Result<Vec<(MessageKind, usize)>> {
        let mut found = Vec::new();
        parse_chunk(prefix, chunk, 0, 1000, &mut |e| {
            found.push((e.kind, e.len));
            Ok(())
        })?;
        Ok(found)
    }

    fn message(id: u8, len: u8, flags: u8) -> Vec<u8> {
        let mut m = vec![id, 0, len, 0, flags, 0, 0, 0];
        m.resize(8 + usize::from(len), 0);
        m
    }

    #[test]
    fn messages_of_a_version_1_chunk_are_listed() {
        let chunk = [message(1, 8, 0), message(77, 16, 0), message(0, 0, 0)].concat();
        let found = parse(&v1(chunk.len() as u32), &chunk).unwrap();
        let kinds = [(MessageKind::Dataspace, 8), (MessageKind::Unknown(77), 16), (MessageKind::Nil, 0)];
        assert_eq!(found, kinds);
    }

    #[test]
    fn messages_that_cannot_be_are_refused_at_their_place() {
        let bad = [
            (message(1, 7, 0), ErrorKind::Corrupt),         // not a multiple of 8
            (message(1, 8, 0x06), ErrorKind::Corrupt),      // shared, and not to be shared
            (message(1, 8, 0x28), ErrorKind::Corrupt),      // was unknown, but had to be known
            (message(1, 8, 0x20), ErrorKind::Corrupt),      // was unknown, but is not marked
            (message(8, 8, 0x40), ErrorKind::Corrupt),      // a layout cannot be shared
            (message(22, 8, 0), ErrorKind::Corrupt),        // a reference count in version 1
            (message(25, 8, 0), ErrorKind::Corrupt),        // never stored
            (message(99, 8, 0x80), ErrorKind::Unsupported), // unknown, must be understood
            (vec![1, 0, 16, 0, 0, 0, 0, 0, 1, 2, 3], ErrorKind::Corrupt), // passes the end
            ([message(0, 8, 0), vec![0; 5]].concat(), ErrorKind::Corrupt), // a gap
        ];
        for (chunk, kind) in bad {
            let e = parse(&v1(chunk.len() as u32), &chunk).unwrap_err();
            assert_eq!(e.kind(), kind, "{e}");
            assert!(e.offset().is_some_and(|o| (1000..1100).contains(&o)));
        }
        // What need not be understood may be unknown.
        assert!(parse(&v1(16), &message(99, 8, 0x08)).is_ok());
    }

    #[test]
    fn a_version_2_chunk_must_match_its_checksum() {
        let prefix = Prefix::parse(b"OHDR\x02\x00\x08", 0).unwrap();
        assert_eq!((prefix.chunk_len, prefix.len, prefix.total_len()), (8, 7, Some(19)));
        let mut chunk = vec![1, 1, 0, 0, 7, 0, 0, 0]; // a dataspace message of one byte, and a gap of three
        chunk.extend(lookup3(&chunk).to_le_bytes());
        assert_eq!(parse(&prefix, &chunk).unwrap(), [(MessageKind::Dataspace, 1)]);
        for bit in 0..chunk.len() * 8 {
            let mut flipped = chunk.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&prefix, &flipped).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
