//! Resolves shared messages: from a reference to the message itself.

use super::FractalHeap;
use crate::format::Address;
use crate::format::message::MessageKind;
use crate::format::message::shared::SharedReference;
use crate::space::{FileSpace, StoredHeader};
use std::borrow::Cow;
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

/// Longest chain of references.
const MAX_CHAIN: u32 = 8;

/// The body of a message, wherever it was.
#[derive(Debug, Clone)]
pub struct Resolved<'a> {
    /// The body.
    pub bytes: Cow<'a, [u8]>,
    /// Its absolute offset.
    pub at: u64,
    /// Address of the object header that holds it, when it is another object's: a committed datatype.
    pub committed: Option<Address>,
}

/// The body of a message of this kind: `bytes` itself, or what it refers to when `shared`.
pub(super) fn resolve<'a>(
    space: &FileSpace,
    kind: MessageKind,
    shared: bool,
    bytes: &'a [u8],
    at: u64,
) -> Result<Resolved<'a>> {
    if !shared {
        return Ok(Resolved { bytes: Cow::Borrowed(bytes), at, committed: None });
    }
    follow(space, kind, bytes, at, 0).map_err(|e| space.locate(e))
}

fn follow(
    space: &FileSpace,
    kind: MessageKind,
    bytes: &[u8],
    at: u64,
    chain: u32,
) -> Result<Resolved<'static>> {
    if chain >= MAX_CHAIN {
        return Err(Error::corrupt(format!("a shared {kind} message refers to itself")).at(at));
    }
    let mut r = FieldReader::new(bytes, at, "shared message");
    match SharedReference::parse(&mut r, space.sizes())? {
        SharedReference::Heap(id) => {
            let index = space.shared_indexes()?.iter().find(|i| i.holds(kind));
            let heap = index.and_then(|i| i.heap).ok_or_else(|| {
                Error::corrupt(format!("a shared {kind} message, but the file shares none")).at(at)
            })?;
            let (bytes, at) = FractalHeap::open(space, heap)?.object(&id, at)?;
            Ok(Resolved { bytes: Cow::Owned(bytes), at, committed: None })
        }
        SharedReference::Object(address) => {
            let header = StoredHeader::load(space, address)?;
            let message = header.find(kind).ok_or_else(|| {
                Error::corrupt(format!("a shared {kind} message, but there is none at {}", address.0)).at(at)
            })?;
            let mut found = if message.is_shared() {
                follow(space, kind, header.body(message), message.offset, chain + 1)?
            } else {
                Resolved {
                    bytes: Cow::Owned(header.body(message).to_vec()),
                    at: message.offset,
                    committed: None,
                }
            };
            found.committed = Some(address);
            Ok(found)
        }
    }
}
