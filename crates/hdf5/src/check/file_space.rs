//! The parts of a file that belong to no object: flags, shared messages, free space.

use super::Check;
use crate::format::shared_messages::{self, SharedIndex, SharedRecord};
use crate::format::superblock::{FLAG_SWMR_WRITE, FLAG_WRITE};
use crate::object::{FractalHeap, ObjectHeader};
use tensilo_core::{Error, Result};

/// Record type of the index of shared messages.
const SHARED_INDEX: u8 = 7;

impl Check<'_> {
    /// A file that a writer has open may be half written.
    pub(super) fn flags(&mut self) -> Result<()> {
        let superblock = self.space.superblock();
        if superblock.version < 3 || superblock.flags & (FLAG_WRITE | FLAG_SWMR_WRITE) == 0 {
            return Ok(());
        }
        self.report.enter("(superblock)");
        let e = Error::unsupported("a writer has the file open, or did not close it");
        self.report.found(&e, self.space.base())
    }

    pub(super) fn file_parts(&mut self) -> Result<()> {
        self.report.enter("(free space)");
        let managers = self.space.extension().file_space.as_ref().map(|f| f.managers.clone());
        for manager in managers.unwrap_or_default() {
            self.free_space(manager, 0)?;
        }
        self.report.enter("(shared messages)");
        let Some(message) = self.space.extension().shared_messages else { return Ok(()) };
        let space = self.space.clone();
        let at = space.base().saturating_add(message.address.0);
        let Some(indexes) = self.structure(space.shared_indexes(), at)? else { return Ok(()) };
        indexes.iter().try_for_each(|index| self.shared_index(index))
    }

    fn shared_index(&mut self, index: &SharedIndex) -> Result<()> {
        let space = self.space.clone();
        let sizes = space.sizes();
        if let Some(heap) = index.heap {
            self.fractal_heap(heap)?;
        }
        let Some(address) = index.index else { return Ok(()) };
        let at = space.base().saturating_add(address.0);
        let mut records = Vec::new();
        if index.is_list {
            let list = space
                .read(address, shared_messages::list_len(sizes, index.messages), "shared message list")
                .and_then(|bytes| shared_messages::list(&bytes, at, sizes, index.messages));
            records = self.structure(list, at)?.unwrap_or_default().into_iter().map(|r| (r, at)).collect();
        } else {
            for (record, at) in self.tree(address, &[SHARED_INDEX])? {
                let record = shared_messages::record(&record, at, sizes);
                records.extend(self.sound(record, at)?.map(|r| (r, at)));
            }
        }
        let mut heap = match index.heap {
            Some(heap) => self.sound(FractalHeap::open(&space, heap), at)?,
            None => None,
        };
        for (record, at) in records {
            let found = match (record, &mut heap) {
                (SharedRecord::Heap { id, .. }, Some(heap)) => heap.object(&id, at).map(drop),
                (SharedRecord::Object(Some(header)), _) => ObjectHeader::load(&space, header).map(drop),
                (SharedRecord::Heap { .. }, None) if index.heap.is_some() => Ok(()), // said already
                _ => Err(Error::corrupt("shared message record: it leads nowhere").at(at)),
            };
            self.sound(found, at)?;
        }
        Ok(())
    }
}
