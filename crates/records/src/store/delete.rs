//! Deleting: the last record takes the place of each deleted one, so that ids stay `0..len`. Changed pages of the table
//! are written anew behind the end; whoever reads an older snapshot notices nothing.

use super::appender::{Appender, FileBytes, encode_references};
use super::entry::ENTRY;
use super::state::{FAN, LEAF, PageRef, State, full_pages};
use super::table::{Table, read_page};
use super::writer::StoreWriter;
use std::collections::{BTreeMap, BTreeSet};
use tensilo_core::gather::check_ids;
use tensilo_core::io::{ByteSource, DiskFile};
use tensilo_core::{Error, Result};

impl StoreWriter {
    /// Deletes records and commits; what was appended before is committed first. Returns how many were deleted.
    ///
    /// Ids are taken from the largest to the smallest, repeated ones once; each time the last record takes the place
    /// of the deleted one.
    ///
    /// # Errors
    /// `InvalidArgument` for an id that does not exist, before anything is changed; `Corrupt`, `Limit`; those of
    /// [`commit`](Self::commit).
    pub fn delete(&mut self, ids: &[u64]) -> Result<u64> {
        self.usable()?;
        check_ids(ids, self.len())?;
        self.commit()?;
        let mut ids = ids.to_vec();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.dedup();
        if ids.is_empty() {
            return Ok(0);
        }
        let savepoint = self.next.savepoint();
        let deleted = self.delete_sorted(&ids).and_then(|()| {
            self.changed = true;
            self.commit()
        });
        if let Err(e) = deleted {
            self.next.roll_back(savepoint);
            self.changed = false;
            return Err(e.in_file(&self.path));
        }
        Ok(ids.len() as u64)
    }

    fn delete_sorted(&mut self, ids: &[u64]) -> Result<()> {
        let source = FileBytes { file: &*self.file, len: self.end };
        let old = &self.committed;
        let table = Table::new(old, self.budget.clone());
        let _held =
            self.budget.bytes(ids.len() as u64 * (old.record_bytes() as u64 + 64), "the list of changes")?;
        let mut state = old.clone();
        let mut moved: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for id in ids {
            let last = state.len.checked_sub(1).ok_or_else(|| Error::invalid("no record is left"))?;
            let now = |moved: &BTreeMap<u64, Vec<u8>>, id: u64| match moved.get(&id) {
                Some(entries) => Ok(entries.clone()),
                None => table.record(&source, id).map(<[u8]>::to_vec),
            };
            state.count(*id, &now(&moved, *id)?, false)?;
            if *id != last {
                let entries = now(&moved, last)?;
                state.count(last, &entries, false)?;
                state.count(*id, &entries, true)?;
                moved.insert(*id, entries);
            }
            moved.remove(&last);
            state.len = last;
        }
        let changed = Changed { file: &*self.file, source: &source, table: &table, old, moved: &moved };
        changed.rebuild(state, &mut self.next)
    }
}

/// A table of which some records are to change.
struct Changed<'a> {
    file: &'a dyn DiskFile,
    source: &'a dyn ByteSource,
    table: &'a Table,
    old: &'a State,
    moved: &'a BTreeMap<u64, Vec<u8>>,
}

impl Changed<'_> {
    /// Writes the changed pages and sets the state's open ends; the state has the new number of records.
    fn rebuild(&self, mut state: State, out: &mut Appender) -> Result<()> {
        let len = state.len;
        let record = self.old.record_bytes();
        let leaves = full_pages(len, 0);
        state.tail.clear();
        for id in leaves * LEAF..len {
            match self.moved.get(&id) {
                Some(entries) => state.tail.extend_from_slice(entries),
                None => state.tail.extend_from_slice(self.table.record(self.source, id)?),
            }
        }
        let mut fresh: BTreeMap<u64, PageRef> = BTreeMap::new();
        let dirty: BTreeSet<u64> =
            self.moved.keys().map(|id| id / LEAF).filter(|leaf| *leaf < leaves).collect();
        for leaf in dirty {
            let at = self.table.page(self.source, 0, leaf)?;
            let mut page = read_page(self.source, at, 0, record)?;
            for (id, entries) in self.moved.range(leaf * LEAF..(leaf + 1) * LEAF) {
                let start = (id % LEAF) as usize * record;
                page.get_mut(start..start + self.old.fields * ENTRY)
                    .ok_or_else(|| Error::corrupt("a leaf is too short"))?
                    .copy_from_slice(entries);
            }
            fresh.insert(leaf, out.put_page(self.file, &page)?);
        }
        state.frontier.clear();
        for level in 0.. {
            let (full, above) = (full_pages(len, level), full_pages(len, level + 1));
            if full == 0 {
                break;
            }
            let level = level as usize;
            let page = |index: u64| match fresh.get(&index) {
                Some(page) => Ok(*page),
                None => self.table.page(self.source, level, index),
            };
            state.frontier.push((above * FAN..full).map(page).collect::<Result<_>>()?);
            let parents: BTreeSet<u64> = fresh.keys().map(|i| i / FAN).filter(|i| *i < above).collect();
            let mut next = BTreeMap::new();
            for parent in parents {
                let children = (parent * FAN..(parent + 1) * FAN).map(page).collect::<Result<Vec<_>>>()?;
                next.insert(parent, out.put_page(self.file, &encode_references(&children))?);
            }
            fresh = next;
        }
        out.state = state;
        Ok(())
    }
}
