//! Deleting: the last records take the places of the deleted ones, so that ids stay dense.

use super::format::Entry;
use super::journal::Journal;
use super::store::Zrecord;
use std::collections::BTreeMap;
use tensilo_core::Result;

impl Zrecord {
    /// Removes records; the last ones get their ids, as in loaderx: in descending order of the ids, each hole is
    /// filled with the record that is last then. Repeated ids count once. The bytes stay until
    /// [`compact`](Self::compact).
    ///
    /// # Errors
    /// `InvalidArgument` for an id that does not exist, before any change; `Locked` while other handles or snapshots
    /// use the store; `Io`, `InsufficientDisk`: the next opening finishes or forgets what was begun.
    pub fn delete(&self, ids: &[u64]) -> Result<()> {
        {
            let state = self.whole_state()?;
            state.table.check_ids(ids, state.table.len())?;
        }
        self.meta.writable()?;
        if ids.is_empty() {
            return Ok(());
        }
        let mut ids = ids.to_vec();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.dedup();
        self.alone(|store, state| {
            let table = &state.table;
            table.check_ids(&ids, table.len())?;
            let before = store.header()?;
            let mut after = before;
            let mut moved: BTreeMap<u64, Entry> = BTreeMap::new();
            for id in &ids {
                after.len -= 1;
                let last = moved.remove(&after.len).unwrap_or_else(|| table.entry(after.len));
                if *id != after.len {
                    moved.insert(*id, last);
                }
            }
            let journal = Journal { before, after, entries: moved.into_iter().collect() };
            journal.begin(store)?;
            Journal::finish(store)?;
            for (index, entry) in &journal.entries {
                table.set(*index, entry)?;
            }
            table.publish(after.len, after.frontier);
            Ok(())
        })
    }
}
