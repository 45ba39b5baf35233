//! Bytes and table pages put behind what was committed: nothing before the committed end is ever written.

use super::entry::{ENTRY, Entry, entry_at};
use super::layout::Block;
use super::state::{FAN, LEAF, MOST_RECORDS, PageRef, State};
use tensilo_core::io::{ByteSource, DiskFile, Fingerprint};
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// Bytes that are collected before they are written, and from which on the disk is asked to begin with them.
const BUFFER: usize = 1 << 20;

/// A state in the making, and the bytes that are not written yet.
#[derive(Debug, Clone)]
pub(crate) struct Appender {
    pub state: State,
    /// Where the buffer's bytes go.
    start: u64,
    buffer: Vec<u8>,
    /// Up to where the disk was asked to write.
    asked: u64,
}

/// Where to go back to when an append fails.
#[derive(Debug)]
pub(crate) struct Savepoint {
    state: State,
    end: u64,
}

impl Appender {
    /// Goes on behind `end` from a state.
    pub fn new(state: State, end: u64) -> Self {
        Self { state, start: end, buffer: Vec::new(), asked: end }
    }

    /// Where the next byte goes.
    pub fn end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    pub fn savepoint(&self) -> Savepoint {
        Savepoint { state: self.state.clone(), end: self.end() }
    }

    /// Forgets what was put since; what reached the file stands behind the end and is written over.
    pub fn roll_back(&mut self, to: Savepoint) {
        self.state = to.state;
        match to.end.checked_sub(self.start) {
            Some(kept) => self.buffer.truncate(kept as usize),
            None => {
                self.buffer.clear();
                self.start = to.end;
                self.asked = self.asked.min(to.end);
            }
        }
    }

    /// Writes what was collected. After an error it may be tried again.
    pub fn flush(&mut self, file: &dyn DiskFile) -> Result<()> {
        if !self.buffer.is_empty() {
            file.write_at(self.start, &self.buffer)?;
            self.start += self.buffer.len() as u64;
            self.buffer.clear();
            self.write_out(file);
        }
        Ok(())
    }

    /// Lets the disk begin with what was written, while more is being encoded: the commit then waits less.
    fn write_out(&mut self, file: &dyn DiskFile) {
        let len = self.start.saturating_sub(self.asked);
        if len >= BUFFER as u64 {
            file.write_out(self.asked, len);
            self.asked = self.start;
        }
    }

    /// Puts bytes at the end and says where.
    pub fn put(&mut self, file: &dyn DiskFile, bytes: &[u8]) -> Result<u64> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush(file)?;
        }
        let at = self.end();
        if bytes.len() >= BUFFER / 4 && self.buffer.is_empty() {
            file.write_at(at, bytes)?;
            self.start += bytes.len() as u64;
            self.write_out(file);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(at)
    }

    /// Puts a block.
    pub fn put_block(&mut self, file: &dyn DiskFile, bytes: &[u8]) -> Result<Block> {
        let offset = self.put(file, bytes)?;
        Ok(Block { offset, bytes: bytes.len() as u64, crc: crc32c::crc32c(bytes) })
    }

    /// Puts a full page of the table.
    pub fn put_page(&mut self, file: &dyn DiskFile, page: &[u8]) -> Result<PageRef> {
        Ok(PageRef { offset: self.put(file, page)?, crc: crc32c::crc32c(page) })
    }

    /// Adds a record to the table: the entries of its fields, one after the other.
    pub fn push_record(&mut self, file: &dyn DiskFile, entries: &[u8]) -> Result<()> {
        if self.state.len >= MOST_RECORDS {
            return Err(Error::limit("a store has at most 2^40 records"));
        }
        let id = self.state.len;
        self.state.count(id, entries, true)?;
        self.state.tail.extend_from_slice(entries);
        self.state.len += 1;
        if self.state.len.is_multiple_of(LEAF) {
            let tail = std::mem::take(&mut self.state.tail);
            let page = self.put_page(file, &tail)?;
            self.push_page(file, 0, page)?;
        }
        Ok(())
    }

    fn push_page(&mut self, file: &dyn DiskFile, level: usize, page: PageRef) -> Result<()> {
        if self.state.frontier.len() <= level {
            self.state.frontier.push(Vec::new());
        }
        self.state.frontier[level].push(page);
        if self.state.frontier[level].len() as u64 == FAN {
            let children = std::mem::take(&mut self.state.frontier[level]);
            let above = self.put_page(file, &encode_references(&children))?;
            self.push_page(file, level + 1, above)?;
        }
        Ok(())
    }

    /// Writes everything and, behind it, the state block of a generation; not yet synced, not yet committed.
    pub fn put_state(&mut self, file: &dyn DiskFile, generation: u64) -> Result<Block> {
        self.flush(file)?;
        self.state.generation = generation;
        let bytes = self.state.encode()?;
        file.write_at(self.start, &bytes)?;
        let crc = crc32c::crc32c(&bytes[..bytes.len() - 4]);
        let block = Block { offset: self.start, bytes: bytes.len() as u64, crc };
        self.start += block.bytes;
        Ok(block)
    }
}

impl State {
    /// Counts a record in, or out.
    pub fn count(&mut self, id: u64, entries: &[u8], add: bool) -> Result<()> {
        for field in 0..self.fields {
            let entry = Entry::parse(entry_at(entries, field)?).map_err(|e| e.in_record(id))?;
            let digest = entry.digest(id, field as u64);
            if add {
                self.live_bytes = self.live_bytes.saturating_add(entry.outside());
                self.digest = self.digest.wrapping_add(digest);
            } else {
                self.live_bytes = self.live_bytes.saturating_sub(entry.outside());
                self.digest = self.digest.wrapping_sub(digest);
            }
        }
        debug_assert_eq!(entries.len(), self.fields * ENTRY);
        Ok(())
    }
}

/// The page of references.
pub(crate) fn encode_references(pages: &[PageRef]) -> Vec<u8> {
    let mut w = FieldWriter::new();
    for page in pages {
        w.u64(page.offset).u32(page.crc);
    }
    w.finish()
}

/// A file that is open for writing, as a source.
#[derive(Debug)]
pub(crate) struct FileBytes<'a> {
    pub file: &'a dyn DiskFile,
    pub len: u64,
}

impl ByteSource for FileBytes<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.len) {
            return Err(Error::corrupt(format!("{} bytes reach past the {} there are", buf.len(), self.len))
                .at(offset));
        }
        self.file.read_at(offset, buf)
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        self.file.fingerprint()
    }
}
