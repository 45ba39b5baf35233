//! The journal: which entries and which header the table will have. It is there only while a delete or a step of a
//! compaction is under way, and makes it all or nothing.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 8 | magic `TZRJ`, u16 1, u16 0 |
//! | 8 | 16 | header of `meta.zr` before |
//! | 24 | 16 | header after |
//! | 40 | 8 | number of entries |
//! | 48 | 20 n | u32 index, entry of 16 bytes |
//! | 48 + 20 n | 4 | CRC-32C of all before |
//!
//! A journal that is not whole was never begun. One whose headers are not the table's is a leftover.

use super::files::{self, Handle};
use super::format::{ENTRY_LEN, Entry, HEADER_LEN, Header, entry_at};
use super::store::Zrecord;
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{ErrorKind, Result};

const MAGIC: &[u8; 8] = b"TZRJ\x01\0\0\0";
const FIXED: u64 = 48;
const PER_ENTRY: u64 = 4 + ENTRY_LEN as u64;

/// What will be done to the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journal {
    pub before: Header,
    pub after: Header,
    pub entries: Vec<(u64, Entry)>,
}

impl Journal {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::new();
        w.bytes(MAGIC).bytes(&self.before.encode()).bytes(&self.after.encode());
        w.u64(self.entries.len() as u64);
        for (index, entry) in &self.entries {
            w.u32(*index as u32).bytes(&entry.encode());
        }
        let crc = crc32c::crc32c(w.as_slice());
        w.u32(crc);
        w.finish()
    }

    /// Reads a journal; `None` when it is not whole.
    fn parse(bytes: &[u8], store: &Zrecord) -> Option<Self> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let mut r = FieldReader::new(body, 0, "journal");
        r.signature(MAGIC).ok()?;
        let geometry = &store.options.geometry;
        let before = Header::parse(r.bytes(HEADER_LEN).ok()?, geometry).ok()?;
        let after = Header::parse(r.bytes(HEADER_LEN).ok()?, geometry).ok()?;
        let count = r.u64().ok()?;
        if count.checked_mul(PER_ENTRY)? != r.remaining() as u64 {
            return None;
        }
        let mut entries = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let index = u64::from(r.u32().ok()?);
            entries.push((index, Entry::parse(&r.array().ok()?)));
        }
        entries.iter().all(|(index, _)| *index < after.len).then_some(Self { before, after, entries })
    }

    /// Is the table just before, in, or just behind this change? An append in between makes another header.
    pub fn is_about(&self, header: &Header) -> bool {
        // A write of the header that failed half way.
        let mut torn = self.before;
        torn.frontier.chunk = self.after.frontier.chunk;
        [self.before, self.after, torn].contains(header)
    }

    /// Is there a file of the name?
    pub fn exists(store: &Zrecord) -> Result<bool> {
        Ok(Self::open(store)?.is_some())
    }

    fn open(store: &Zrecord) -> Result<Option<Handle>> {
        let past_disk = store.options.read_only && store.options.mapped;
        match Handle::open(&*store.options.disk, &store.folder.join(files::JOURNAL), past_disk) {
            Ok(file) => Ok(Some(file)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The journal of a change that a crash interrupted.
    pub fn read(store: &Zrecord) -> Result<Option<Self>> {
        let Some(file) = Self::open(store)? else { return Ok(None) };
        let len = file.len()?;
        if len < FIXED + 4 || len > FIXED + 4 + PER_ENTRY * u64::from(store.options.geometry.records) {
            return Ok(None);
        }
        let (mut bytes, _charge) = store.options.budget.buffer(len, "the journal")?;
        file.read_at(0, &mut bytes)?;
        Ok(Self::parse(&bytes, store))
    }

    /// Writes the journal; from then on the change will happen.
    pub fn begin(&self, store: &Zrecord) -> Result<()> {
        let disk = &*store.options.disk;
        let file = disk.create_new(&store.folder.join(files::JOURNAL))?;
        file.write_at(0, &self.encode())?;
        file.sync()?;
        disk.sync_dir(&store.folder)
    }

    /// Does what a journal says, if there is one, and removes it.
    pub fn finish(store: &Zrecord) -> Result<()> {
        if !Self::exists(store)? {
            return Ok(());
        }
        if let Some(journal) = Self::read(store)?
            && journal.is_about(&store.header()?)
        {
            let meta = store.meta.writable()?;
            for (index, entry) in &journal.entries {
                meta.write_at(entry_at(*index), &entry.encode())?;
            }
            meta.sync()?;
            meta.write_at(0, &journal.after.encode())?;
            meta.sync()?;
        }
        store.options.disk.unlink(&store.folder.join(files::JOURNAL))?;
        store.options.disk.sync_dir(&store.folder)
    }
}
