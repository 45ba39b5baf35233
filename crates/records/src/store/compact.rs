//! Compaction: the live records, stored bytes as they are, in the order of their ids, in a new file that takes the old
//! one's name when it is complete. Snapshots keep the old file until they are dropped.

use super::appender::{Appender, FileBytes};
use super::entry::{Entry, Stored, entry_at};
use super::layout::FRONT;
use super::schema_block::LARGEST_SCHEMA;
use super::snapshot::{LARGEST_DICTIONARY, LARGEST_METADATA, read_block};
use super::state::State;
use super::table::walk;
use super::writer::{StoreWriter, write_front};
use tensilo_core::io::{ByteSource, Staged};
use tensilo_core::{Budget, Error, ErrorKind, Monitor, Progress, Result};

/// Bytes that are read ahead while cells are copied.
const WINDOW: usize = 4 << 20;

/// What compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes of the file before.
    pub before: u64,
    /// Bytes of the file now.
    pub after: u64,
}

/// Reads cells that mostly follow each other, a window at a time.
#[derive(Debug)]
pub(super) struct Window<'a> {
    pub source: &'a dyn ByteSource,
    budget: &'a Budget,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    pub fn new(source: &'a dyn ByteSource, budget: &'a Budget) -> Self {
        Self { source, budget, start: 0, bytes: Vec::new() }
    }

    /// The stored bytes of a cell; its entry's checksum was right.
    pub fn cell(&mut self, entry: &Entry) -> Result<&[u8]> {
        let (offset, len) = (entry.offset, entry.stored);
        let end = offset.checked_add(len).filter(|end| offset >= FRONT && *end <= self.source.len());
        let Some(end) = end else {
            return Err(Error::corrupt(format!("{len} stored bytes lie outside of the store")).at(offset));
        };
        if offset < self.start || end > self.start + self.bytes.len() as u64 {
            let ahead = (WINDOW as u64).max(len).min(self.source.len() - offset);
            let _charge = self.budget.bytes(ahead, "a record")?;
            self.bytes.resize(ahead as usize, 0);
            self.start = offset;
            self.source.read_at(offset, &mut self.bytes)?;
        }
        let from = (offset - self.start) as usize;
        let bytes = self.bytes.get(from..from + len as usize).unwrap_or(&[]);
        if crc32c::crc32c(bytes) != entry.crc {
            return Err(Error::corrupt("the stored bytes do not match their checksum").at(offset));
        }
        Ok(bytes)
    }
}

impl StoreWriter {
    /// Gives the space of deleted records and of outgrown table pages back; what was appended is committed first.
    ///
    /// The new file is complete and synced before it takes the name; until then, and in every snapshot that is open,
    /// the old one stays. It needs room for all live records beside the old file.
    ///
    /// # Errors
    /// `Corrupt`, naming the record, when one is damaged: see `salvage`; `InsufficientDisk` with nothing changed;
    /// `Locked` when another writer took the store in the moment after; `Io`; the monitor's.
    pub fn compact(&mut self, monitor: &dyn Monitor) -> Result<Compacted> {
        self.usable()?;
        self.commit()?;
        let before = self.end;
        self.write_compacted(monitor).map_err(|e| e.in_file(&self.path))?;
        // The lock of the old file is let go only now: whoever waits for it finds that the name is another file's.
        let path = self.path.clone();
        match Self::open(&path, self.options.clone()) {
            Ok(fresh) => *self = fresh,
            Err(e) => {
                self.broken = Some("the compacted store could not be opened".into());
                return Err(e);
            }
        }
        Ok(Compacted { before, after: self.end })
    }

    fn write_compacted(&mut self, monitor: &dyn Monitor) -> Result<()> {
        let staged = Staged::create(self.options.disk.clone(), &self.path)?;
        let needed = self.committed.live_bytes;
        let free = self.options.disk.free_space(&self.path)?;
        if free < needed {
            let message = format!("compaction needs {needed} bytes beside the store, {free} are free");
            return Err(Error::new(ErrorKind::InsufficientDisk, message));
        }
        let source = FileBytes { file: &*self.file, len: self.end };
        let old = &self.committed;
        let mut out = Appender::new(State::empty(old.schema, old.fields), FRONT);
        let block = |b, most, what| read_block(&source, b, most, &self.budget, what);
        let schema = block(old.schema, LARGEST_SCHEMA, "schema")?;
        out.state.schema = out.put_block(staged.file(), &schema)?;
        if let Some(b) = old.metadata {
            let metadata = block(b, LARGEST_METADATA, "metadata")?;
            out.state.metadata = Some(out.put_block(staged.file(), &metadata)?);
        }
        for b in &old.dictionaries {
            let dictionary = block(*b, LARGEST_DICTIONARY, "dictionary")?;
            let fresh = out.put_block(staged.file(), &dictionary)?;
            out.state.dictionaries.push(fresh);
        }
        let mut window = Window::new(&source, &self.budget);
        let mut fresh = Vec::with_capacity(old.record_bytes());
        walk(&source, old, &mut |first, count, entries| {
            monitor.poll(&Progress { stage: "compacting", done: first, total: old.len })?;
            let entries = entries?;
            for (id, record) in (first..first + count).zip(entries.chunks_exact(old.record_bytes())) {
                fresh.clear();
                for field in 0..old.fields {
                    let mut entry = Entry::parse(entry_at(record, field)?).map_err(|e| e.in_record(id))?;
                    if entry.codec != Stored::Inline {
                        let cell = window.cell(&entry).map_err(|e| e.in_record(id))?;
                        entry.offset = out.put(staged.file(), cell)?;
                    }
                    fresh.extend_from_slice(&entry.encode());
                }
                out.push_record(staged.file(), &fresh)?;
            }
            Ok(())
        })
        .map_err(|e| match e.kind() {
            ErrorKind::Corrupt => e.hint("salvage copies the records that are whole to a new store"),
            _ => e,
        })?;
        if (out.state.len, out.state.digest) != (old.len, old.digest) {
            return Err(Error::corrupt("the records do not match the store's digest"));
        }
        write_front(&mut out, staged.file(), old.generation + 1)?;
        staged.publish_replace().map(drop)
    }
}
