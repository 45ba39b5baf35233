//! A local heap in memory.

use crate::format::Address;
use crate::format::heap::local::LocalHeapHeader;
use crate::space::{Block, FileSpace};
use std::sync::Arc;
use tensilo_core::Result;

/// The data segment of a local heap.
#[derive(Debug)]
pub struct LocalHeap<'s> {
    space: &'s FileSpace,
    data: Arc<Block>,
}

impl<'s> LocalHeap<'s> {
    /// Reads the heap at `address`.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn load(space: &'s FileSpace, address: Address) -> Result<Self> {
        let sizes = space.sizes();
        let head = space.read(address, LocalHeapHeader::len(sizes), "local heap")?;
        let header = LocalHeapHeader::parse(&head, head.offset(), sizes).map_err(|e| space.locate(e))?;
        let key = [header.data.0, address.0, header.size, header.free_list];
        let data = space.block(key, || {
            let data = space.read(header.data, header.size, "local heap data")?;
            header.check_free_list(&data, data.offset(), sizes).map_err(|e| space.locate(e))?;
            data.into_block(space.budget(), "local heap data")
        })?;
        Ok(Self { space, data })
    }

    /// The text that begins at `offset`, without its NUL.
    ///
    /// # Errors
    /// `Corrupt` when it does not begin or end in the heap.
    pub fn text(&self, offset: u64) -> Result<&[u8]> {
        let rest = usize::try_from(offset).ok().and_then(|o| self.data.get(o..)).filter(|r| !r.is_empty());
        let text = rest.and_then(|r| r.iter().position(|b| *b == 0).and_then(|end| r.get(..end)));
        text.ok_or_else(|| {
            self.space.corrupt(
                format!("local heap: no text at {offset} of {}", self.data.len()),
                self.data.offset(),
            )
        })
    }
}
