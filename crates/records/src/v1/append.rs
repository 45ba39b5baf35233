//! Appending: encode in parallel, write the data, make it durable, then the entries, then the header.

use super::codec::Codec;
use super::fault::Fault;
use super::files::chunk_name;
use super::format::{ENTRY_LEN, Entry, Header, entry_at};
use super::items::Items;
use super::journal::Journal;
use super::place::{Frontier, Place};
use super::store::{State, Zrecord};
use std::sync::{Mutex, PoisonError};
use tensilo_core::io::DiskFile;
use tensilo_core::{Error, ErrorKind, Quiet, Result};

/// Source bytes that are encoded before any of them is written.
const WINDOW: usize = 64 << 20;
/// Source bytes of one worker's share.
const UNIT: usize = 1 << 18;
/// Stored bytes that are written at once.
const WRITTEN_AT_ONCE: usize = 8 << 20;

/// A share of the records, encoded.
#[derive(Debug, Default)]
struct Encoded {
    bytes: Vec<u8>,
    /// Stored bytes and codec of each record.
    records: Vec<(u32, Codec)>,
}

impl Zrecord {
    /// Appends records and returns the id of the first. They are durable when it returns; after a crash all are
    /// there or none. Other processes may append meanwhile: each waits for its turn.
    ///
    /// # Errors
    /// `InvalidArgument` for items outside the bytes given, or not of 1 to 1 048 576 bytes, before anything is
    /// written; `Limit` when the store is full; `Locked` when another process does not give the lock back;
    /// `InsufficientDisk`, `Io`: then the store is as it was.
    pub fn append(&self, items: Items<'_>, codec: Option<Codec>) -> Result<u64> {
        items.check()?;
        let codec = codec.unwrap_or(self.options.codec);
        drop(self.whole_state()?);
        if Journal::exists(self)? {
            self.alone(|_, _| Ok(()))?;
        }
        let state = self.whole_state()?;
        let _writing = self.writing()?;
        let before = self.load(&state, None)?;
        let count = items.count() as u64;
        if count > u64::from(self.options.geometry.records).saturating_sub(before.len) {
            return Err(self.full(before.len));
        }
        if count == 0 {
            return Ok(before.len);
        }
        let mut writer = Writer::new(self, before.frontier);
        let result = self.write_all(&state, &mut writer, before, items, codec);
        if result.is_err() {
            writer.take_back();
        }
        result.map(|()| before.len)
    }

    fn full(&self, len: u64) -> Error {
        Error::limit(format!("the store is full: it has {len} records"))
            .in_file(&self.folder)
            .with_source(Fault::Full)
    }

    fn write_all(
        &self,
        state: &State,
        writer: &mut Writer<'_>,
        before: Header,
        items: Items<'_>,
        codec: Codec,
    ) -> Result<()> {
        let meta = self.meta.writable()?;
        let mut next = 0;
        let mut index = before.len;
        while next < items.count() {
            let mut end = next;
            let mut bytes = 0;
            while end < items.count() && bytes < WINDOW {
                bytes += items.len_of(end);
                end += 1;
            }
            let entries = match codec {
                Codec::Raw if items.run(next..end).is_some() => self.write_raw(writer, items, next..end)?,
                _ => self.write_encoded(writer, items, next..end, codec)?,
            };
            let mut table = Vec::with_capacity(entries.len() * ENTRY_LEN);
            for (i, entry) in entries.iter().enumerate() {
                table.extend_from_slice(&entry.encode());
                state.table.set(index + i as u64, entry)?;
            }
            // Entries past the length are not looked at by anyone.
            meta.write_at(entry_at(index), &table)?;
            index += entries.len() as u64;
            next = end;
        }
        writer.sync()?;
        meta.sync()?;
        let after = Header { frontier: writer.frontier, len: index };
        // From here on the records may be there, whatever is answered: their bytes must stay.
        writer.keep();
        if let Err(e) = meta.write_at(0, &after.encode()) {
            meta.write_at(0, &before.encode()).ok();
            return Err(e);
        }
        meta.sync()?;
        state.table.publish(after.len, after.frontier);
        Ok(())
    }

    /// Writes records that lie in the caller's memory as they will lie in the file.
    fn write_raw(
        &self,
        writer: &mut Writer<'_>,
        items: Items<'_>,
        range: std::ops::Range<usize>,
    ) -> Result<Vec<Entry>> {
        let mut entries = Vec::with_capacity(range.len());
        let mut first = range.start;
        while first < range.end {
            // As many as go to one chunk.
            let mut places = Vec::new();
            let mut frontier = writer.frontier;
            while first + places.len() < range.end {
                let len = items.len_of(first + places.len()) as u32;
                let mut next = frontier;
                let place = writer.take(&mut next, len)?;
                if places.last().is_some_and(|p: &Place| p.chunk != place.chunk) {
                    break;
                }
                entries.push(Entry::new(place, len, len, Codec::Raw));
                places.push(place);
                frontier = next;
            }
            let run = first..first + places.len();
            let bytes = items.run(run.clone()).unwrap_or_default();
            if let Some(place) = places.first() {
                writer.write(*place, bytes)?;
            }
            writer.frontier = frontier;
            first = run.end;
        }
        Ok(entries)
    }

    fn write_encoded(
        &self,
        writer: &mut Writer<'_>,
        items: Items<'_>,
        range: std::ops::Range<usize>,
        codec: Codec,
    ) -> Result<Vec<Entry>> {
        let mut units = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let mut end = start;
            let mut bytes = 0;
            while end < range.end && bytes < UNIT {
                bytes += items.len_of(end);
                end += 1;
            }
            units.push((start..end, Mutex::new(Encoded::default())));
            start = end;
        }
        let total = range.len() as u64;
        let scratch = || self.pool.take();
        self.options.threads.for_each(units.len(), &Quiet, "encoding", total, scratch, |lent, unit, _| {
            let Some((range, slot)) = units.get(unit) else { return Ok(()) };
            let mut out = Encoded::default();
            for i in range.clone() {
                let record = lent.scratch().encode(items.get(i)?, codec, &mut out.bytes)?;
                out.records.push(record);
            }
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = out;
            Ok(())
        })?;
        let mut entries = Vec::with_capacity(range.len());
        let mut pending: Option<(Place, Vec<u8>)> = None;
        for (range, slot) in units {
            let encoded = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            let mut rest = &encoded.bytes[..];
            for (i, (stored, codec)) in range.zip(encoded.records) {
                let mut frontier = writer.frontier;
                let place = writer.take(&mut frontier, stored)?;
                let (bytes, others) = rest.split_at(stored as usize);
                rest = others;
                match &mut pending {
                    Some((at, run)) if at.chunk == place.chunk && run.len() < WRITTEN_AT_ONCE => {
                        run.extend_from_slice(bytes);
                    }
                    _ => {
                        if let Some((at, run)) = pending.take() {
                            writer.write(at, &run)?;
                        }
                        pending = Some((place, bytes.to_vec()));
                    }
                }
                writer.frontier = frontier;
                entries.push(Entry::new(place, stored, items.len_of(i) as u32, codec));
            }
        }
        if let Some((at, run)) = pending {
            writer.write(at, &run)?;
        }
        Ok(entries)
    }
}

/// Writes records behind the end of the store.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub store: &'a Zrecord,
    pub frontier: Frontier,
    open: Option<(u16, Box<dyn DiskFile>)>,
    /// Files that were written, and their lengths before; `None` for new ones.
    grown: Vec<(u16, Option<u64>)>,
}

impl<'a> Writer<'a> {
    pub fn new(store: &'a Zrecord, frontier: Frontier) -> Self {
        Self { store, frontier, open: None, grown: Vec::new() }
    }

    fn take(&self, frontier: &mut Frontier, bytes: u32) -> Result<Place> {
        self.store.options.geometry.take(frontier, bytes).ok_or_else(|| {
            Error::limit("the store is full: no data file has room")
                .in_file(&self.store.folder)
                .with_source(Fault::Full)
        })
    }

    /// Nothing will be taken back.
    fn keep(&mut self) {
        self.grown.clear();
    }

    /// Writes at a place behind the end, in a file that is created when there is none.
    pub fn write(&mut self, place: Place, bytes: &[u8]) -> Result<()> {
        if self.open.as_ref().is_none_or(|(chunk, _)| *chunk != place.chunk) {
            self.sync()?;
            let path = self.store.folder.join(chunk_name(place.chunk));
            let disk = &*self.store.options.disk;
            let file = match disk.open(&path) {
                Ok(file) => {
                    self.grown.push((place.chunk, Some(file.len()?)));
                    file
                }
                Err(e) if e.kind() == ErrorKind::NotFound && place.offset == 0 => {
                    let file = disk.create_new(&path)?;
                    self.grown.push((place.chunk, None));
                    disk.sync_dir(&self.store.folder)?;
                    file
                }
                Err(e) => return Err(e),
            };
            self.open = Some((place.chunk, file));
        }
        match &self.open {
            Some((_, file)) => file.write_at(u64::from(place.offset), bytes),
            None => Ok(()),
        }
    }

    /// Makes all that was written durable.
    pub fn sync(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |(_, file)| file.sync())
    }

    /// Gives the space of a failed change back, as far as that works; what is left behind the end does no harm.
    pub fn take_back(&mut self) {
        self.open = None;
        let disk = &*self.store.options.disk;
        for (chunk, before) in self.grown.drain(..) {
            let path = self.store.folder.join(chunk_name(chunk));
            match before {
                Some(before) => {
                    if let Ok(file) = disk.open(&path)
                        && file.len().is_ok_and(|len| len > before)
                    {
                        file.set_len(before).ok();
                    }
                }
                None => {
                    disk.unlink(&path).ok();
                }
            }
        }
    }
}
