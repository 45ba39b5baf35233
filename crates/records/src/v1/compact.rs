//! Compacting: records slide to the front, and what they leave is given back to the system.
//!
//! A record is copied only into space that no committed entry names, made durable there, and only then does its entry
//! (16 bytes inside one sector) name the new place. So every state on the way is a whole store, for loaderx too, and a
//! second run goes on where the first was stopped. The journal is there for a disk that fails inside those 16 bytes. Where the hole in front is smaller than the
//! record behind it, a run of records is first taken behind the end of the store; the others then have room to slide.

use super::append::Writer;
use super::fault::Fault;
use super::files::{chunk_name, chunk_of};
use super::format::{Entry, Extent, Header, entry_at};
use super::journal::Journal;
use super::place::{Frontier, Place};
use super::store::{State, Zrecord};
use std::collections::VecDeque;
use std::ops::Range;
use tensilo_core::io::DiskFile;
use tensilo_core::progress::{Monitor, Progress};
use tensilo_core::{Error, ErrorKind, Result};

/// Bytes that are copied before the entries are written.
const BATCH: u64 = 16 << 20;
/// Unit in which file systems give space back.
const PAGE: u64 = 4096;

/// Bytes in a data file, and the records (by position in a sorted list) that they are; several only in a damaged store.
#[derive(Debug, Clone)]
struct Piece {
    place: Place,
    stored: u32,
    ids: Range<usize>,
}

/// A compaction under way.
#[derive(Debug)]
struct Compaction<'a> {
    store: &'a Zrecord,
    state: &'a State,
    /// All ids, by their places.
    ids: Vec<u64>,
    /// What is in the file.
    header: Header,
    /// Where the next piece goes.
    cursor: Frontier,
    /// Used bytes of each data file below the cursor's.
    used: Vec<u64>,
    queue: VecDeque<Piece>,
}

impl Zrecord {
    /// Moves records to the front of the store and gives the space behind them back to the system.
    ///
    /// Ids keep their meaning. A crash or a cancelled run at any point leaves a whole store; a second run finishes.
    /// Records that lie where they should are not moved.
    ///
    /// # Errors
    /// `Locked` while other handles or snapshots use the store; `Corrupt` when entries name impossible or overlapping
    /// bytes, before any change; `InsufficientDisk`, `Limit`, when a record needs room for a time and there is none;
    /// `Io`; the monitor's.
    pub fn compact(&self, monitor: &dyn Monitor) -> Result<()> {
        drop(self.whole_state()?);
        self.alone(|store, state| {
            let mut work = Compaction::plan(store, state)?;
            let total = work.ids.len() as u64;
            while !work.queue.is_empty() {
                let done = total - work.queue.len().min(work.ids.len()) as u64;
                monitor.poll(&Progress { stage: "compacting", done, total })?;
                work.step()?;
            }
            work.end()
        })
    }
}

impl<'a> Compaction<'a> {
    fn plan(store: &'a Zrecord, state: &'a State) -> Result<Self> {
        let header = store.header()?;
        let geometry = &store.options.geometry;
        let extent = |id: u64| -> Result<Extent> { state.table.extent(id, header.frontier) };
        let mut ids: Vec<u64> = (0..header.len).collect();
        for id in &ids {
            extent(*id)?;
        }
        ids.sort_by_key(|id| geometry.linear(state.table.entry(*id).place()));
        let mut queue: VecDeque<Piece> = VecDeque::new();
        for (i, id) in ids.iter().enumerate() {
            let Extent { place, stored, .. } = extent(*id)?;
            if let Some(last) = queue.back_mut() {
                if last.place == place && last.stored == stored {
                    last.ids.end = i + 1;
                    continue;
                }
                if geometry.linear(last.place) + u64::from(last.stored) > geometry.linear(place) {
                    let other = ids.get(last.ids.start).copied().unwrap_or_default();
                    return Err(Error::corrupt(format!("its bytes overlap those of record {other}"))
                        .in_record(*id)
                        .in_file(&store.folder)
                        .with_source(Fault::Decode));
                }
            }
            queue.push_back(Piece { place, stored, ids: i..i + 1 });
        }
        Ok(Self { store, state, ids, header, cursor: Frontier::START, used: Vec::new(), queue })
    }

    fn linear(&self, place: Place) -> u64 {
        self.store.options.geometry.linear(place)
    }

    /// Where the front piece should go, and the cursor behind it.
    fn target(&self, stored: u32) -> Result<(Place, Frontier)> {
        let mut cursor = self.cursor;
        let place = self.store.options.geometry.take(&mut cursor, stored);
        place.map(|p| (p, cursor)).ok_or_else(|| Error::limit("the store is full").with_source(Fault::Full))
    }

    fn advance(&mut self, cursor: Frontier) {
        if cursor.chunk != self.cursor.chunk {
            self.used.push(u64::from(self.cursor.offset));
        }
        self.cursor = cursor;
    }

    /// Moves a batch of pieces, or makes room for the next one.
    fn step(&mut self) -> Result<()> {
        let Some(front) = self.queue.front() else { return Ok(()) };
        // Below this byte, and from the cursor on, nothing is committed.
        let free_until = self.linear(front.place);
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(piece) = self.queue.front() {
            let (place, cursor) = self.target(piece.stored)?;
            if place == piece.place {
                if batch.is_empty() {
                    self.advance(cursor);
                    self.queue.pop_front();
                    return Ok(());
                }
                break;
            }
            bytes += u64::from(piece.stored);
            let end = self.linear(place) + u64::from(piece.stored);
            if end > free_until || (bytes > BATCH && !batch.is_empty()) {
                break;
            }
            let piece = piece.clone();
            self.queue.pop_front();
            self.advance(cursor);
            batch.push((piece, place));
        }
        if batch.is_empty() { self.make_room() } else { self.relocate(&batch, self.header.frontier) }
    }

    /// Takes pieces from the front behind the end of the store, and puts them at the end of the queue.
    fn make_room(&mut self) -> Result<()> {
        let mut frontier = self.header.frontier;
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(piece) = self.queue.front() {
            bytes += u64::from(piece.stored);
            if bytes > BATCH && !batch.is_empty() {
                break;
            }
            let place = self.store.options.geometry.take(&mut frontier, piece.stored).ok_or_else(|| {
                Error::limit("the store is full; compacting needs some room at its end")
                    .with_source(Fault::Full)
            })?;
            let piece = piece.clone();
            self.queue.pop_front();
            batch.push((piece, place));
        }
        self.relocate(&batch, frontier)?;
        self.queue.extend(batch.into_iter().map(|(piece, place)| Piece { place, ..piece }));
        Ok(())
    }

    /// Copies pieces to free space, makes them durable, then the end of the store, then the entries.
    fn relocate(&mut self, batch: &[(Piece, Place)], frontier: Frontier) -> Result<()> {
        let mut from = Files { store: self.store, open: None };
        let mut to = Writer::new(self.store, self.header.frontier);
        let copied = batch.iter().try_for_each(|(piece, place)| {
            let bytes = from.read(piece).map_err(|e| e.in_record(self.first_id(piece)))?;
            to.write(*place, &bytes)
        });
        if let Err(e) = copied.and_then(|()| to.sync()) {
            if frontier != self.header.frontier {
                to.take_back();
            }
            return Err(e);
        }
        let meta = self.store.meta.writable()?;
        if frontier != self.header.frontier {
            let header = Header { frontier, ..self.header };
            meta.write_at(0, &header.encode())?;
            meta.sync()?;
            self.header = header;
        }
        let mut entries = Vec::new();
        for (piece, place) in batch {
            for id in self.ids.get(piece.ids.clone()).unwrap_or_default() {
                let mut entry = self.state.table.entry(*id);
                (entry.chunk, entry.offset) = (place.chunk, place.offset);
                self.state.table.set(*id, &entry)?;
                entries.push((*id, entry));
            }
        }
        self.commit(self.header, entries)
    }

    /// Changes the table: all of it or nothing.
    fn commit(&mut self, after: Header, entries: Vec<(u64, Entry)>) -> Result<()> {
        Journal { before: self.header, after, entries }.begin(self.store)?;
        Journal::finish(self.store)?;
        self.header = after;
        Ok(())
    }

    fn first_id(&self, piece: &Piece) -> u64 {
        self.ids.get(piece.ids.start).copied().unwrap_or_default()
    }

    /// Sets the end of the store, and gives back what lies behind it.
    fn end(mut self) -> Result<()> {
        let store = self.store;
        let meta = store.meta.writable()?;
        if self.header.frontier != self.cursor {
            self.commit(Header { frontier: self.cursor, ..self.header }, Vec::new())?;
        }
        self.state.table.publish(self.header.len, self.cursor);
        let disk = &*store.options.disk;
        let mut removed = false;
        for name in disk.list(&store.folder)? {
            if name.to_str().and_then(chunk_of).is_some_and(|c| c > self.cursor.chunk) {
                disk.unlink(&store.folder.join(&name))?;
                removed = true;
            }
        }
        if removed {
            disk.sync_dir(&store.folder)?;
        }
        self.used.push(u64::from(self.cursor.offset));
        for (chunk, used) in self.used.iter().enumerate() {
            let file = disk.open(&store.folder.join(chunk_name(chunk as u16)))?;
            if file.len()? > *used {
                file.set_len(*used)?;
                file.sync()?;
            }
        }
        let first = entry_at(self.header.len).next_multiple_of(PAGE);
        let end = meta.len()?;
        if first < end {
            meta.punch(first, end - first).or_else(|e| if cannot_punch(&e) { Ok(()) } else { Err(e) })?;
        }
        Ok(())
    }
}

/// Does the file system have no such call?
fn cannot_punch(e: &Error) -> bool {
    use std::error::Error as _;
    let io = e.source().and_then(|s| s.downcast_ref::<std::io::Error>());
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::Unsupported)
}

/// Reads pieces by position: what is being changed is not mapped.
#[derive(Debug)]
struct Files<'a> {
    store: &'a Zrecord,
    open: Option<(u16, Box<dyn DiskFile>)>,
}

impl Files<'_> {
    fn read(&mut self, piece: &Piece) -> Result<Vec<u8>> {
        let chunk = piece.place.chunk;
        if self.open.as_ref().is_none_or(|(open, _)| *open != chunk) {
            let path = self.store.folder.join(chunk_name(chunk));
            self.open = Some((chunk, self.store.options.disk.open(&path)?));
        }
        // At most two longest records by the check of the extent.
        let mut bytes = vec![0; piece.stored as usize];
        if let Some((_, file)) = &self.open {
            let offset = u64::from(piece.place.offset);
            let len = file.len()?;
            if offset + bytes.len() as u64 > len {
                return Err(Error::new(ErrorKind::Corrupt, format!("its data file ends at byte {len}"))
                    .at(offset)
                    .with_source(Fault::Decode));
            }
            file.read_at(offset, &mut bytes)?;
        }
        Ok(bytes)
    }
}
