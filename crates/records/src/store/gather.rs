//! Records by their ids: no lock, and no allocation and no system call per record where the file is mapped. Batches of
//! large or compressed records are read by several threads.

use super::codec::{Codecs, sized};
use super::entry::{ENTRY, Entry, Stored, entry_at};
use super::snapshot::{Snapshot, Store};
use super::table::{Bytes, Note};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tensilo_core::gather::{
    FieldBuffer, Gather, Places, Schema, StoreFingerprint, check_buffers, check_ids, check_lengths,
};
use tensilo_core::streaming;
use tensilo_core::threads::{Beside, Threads};
use tensilo_core::{Error, Monitor, Progress, Quiet, Result};

/// Work, in bytes that are copied, from which on further threads are worth their start.
const WORTH_THREADS: u64 = 2 << 20;
/// Bytes between two looks at the monitor, and the most of a thread's share.
const SHARE: u64 = 1 << 20;
/// The least of a thread's share.
const LEAST_SHARE: u64 = 16 << 10;
/// Records that are looked up before the first of them is copied.
const AHEAD: usize = 16;
/// Work from which on a thread that stands by is worth its share, and up to which two threads are enough.
const WORTH_SHARING: u64 = 48 << 10;
const LONG: u64 = 8 << 20;
/// Most shares of it, and the work of one, if it can be.
const SHARES: usize = 16;
const SHARED: u64 = 24 << 10;

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work of a decoded byte, in bytes that are copied.
fn work(codec: Stored) -> u64 {
    match codec {
        Stored::Raw | Stored::Inline => 1,
        Stored::Lz4 => 4,
        Stored::Zstd | Stored::Deflate => 16,
    }
}

/// A cell that was looked up.
struct Cell<'a> {
    entry: Entry,
    note: Note<'a>,
}

/// What is known of a cell before it is read.
#[derive(Clone, Copy)]
enum Known<'a> {
    Not,
    /// The bytes of a raw cell that was compared with its checksum.
    Raw(&'a [u8]),
    /// The entry of another cell that was.
    Entry(&'a [u8; ENTRY]),
}

impl Snapshot {
    /// The checked entry of a cell.
    pub fn entry(&self, id: u64, field: usize) -> Result<Entry> {
        check_ids(&[id], self.state.len)?;
        self.schema.field(field)?;
        self.cell(&self.bytes(), id, field).map(|cell| cell.entry)
    }

    /// The bytes that were committed.
    fn bytes(&self) -> Bytes<'_> {
        Bytes::of(&*self.source, self.end)
    }

    /// The checked entry of a cell that exists.
    #[inline]
    fn cell<'a>(&'a self, bytes: &Bytes<'a>, id: u64, field: usize) -> Result<Cell<'a>> {
        let row = self.table.row(bytes, id)?;
        let entry = self.checked(entry_at(row.entries, field)?, id, field)?;
        Ok(Cell { entry, note: row.note(field) })
    }

    /// An entry of the table, checked.
    #[inline]
    fn checked(&self, entry: &[u8; ENTRY], id: u64, field: usize) -> Result<Entry> {
        let entry = Entry::parse(entry).map_err(|e| e.in_record(id))?;
        let form = self.forms[field];
        let fits = if form.ragged { entry.raw.is_multiple_of(form.step) } else { entry.raw == form.step };
        if !fits {
            return Err(Error::corrupt(format!(
                "field {:?} has {} bytes, its steps have {}",
                self.schema.fields()[field].name,
                entry.raw,
                form.step
            ))
            .in_record(id));
        }
        Ok(entry)
    }

    /// Reads a cell into its place, which must have its length.
    pub fn read_cell(&self, codecs: &mut Codecs, id: u64, field: usize, out: &mut [u8]) -> Result<()> {
        self.read_cell_of(&self.bytes(), codecs, id, field, out, 0)
    }

    /// As [`read_cell`](Self::read_cell), as a part of a result of `whole` bytes.
    fn read_cell_of(
        &self,
        bytes: &Bytes<'_>,
        codecs: &mut Codecs,
        id: u64,
        field: usize,
        out: &mut [u8],
        whole: usize,
    ) -> Result<()> {
        let cell = self.cell(bytes, id, field)?;
        if let Cell { entry: Entry { codec: Stored::Raw, offset, stored, .. }, note } = &cell
            && note.is_set()
            && *stored == out.len() as u64
            && let Some(stored) = bytes.borrow(*offset, *stored)
        {
            streaming::copy(stored, out, whole);
            return Ok(());
        }
        self.read_known(bytes, codecs, &cell, id, field, out)
    }

    #[inline]
    fn read_known(
        &self,
        bytes: &Bytes<'_>,
        codecs: &mut Codecs,
        cell: &Cell<'_>,
        id: u64,
        field: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let element = self.forms[field].element;
        self.read_entry(bytes, codecs, &cell.entry, cell.note, element, out).map_err(|e| {
            e.context(format_args!("field {:?}", self.schema.fields()[field].name)).in_record(id)
        })
    }

    /// Reads the cell of an entry, and compares its bytes with their checksum unless its note says that they were.
    #[inline]
    pub fn read_entry(
        &self,
        bytes: &Bytes<'_>,
        codecs: &mut Codecs,
        entry: &Entry,
        note: Note<'_>,
        element: usize,
        out: &mut [u8],
    ) -> Result<()> {
        if out.len() as u64 != entry.raw {
            return Err(Error::invalid(format!("{} bytes of room for {}", out.len(), entry.raw)));
        }
        if entry.codec == Stored::Inline {
            let n = out.len();
            out.copy_from_slice(entry.inline().get(..n).unwrap_or(&[]));
            return Ok(());
        }
        let damaged = || Error::corrupt("the stored bytes do not match their checksum").at(entry.offset);
        self.check_place(entry)?;
        if let Some(stored) = bytes.borrow(entry.offset, entry.stored) {
            if !note.is_set() {
                if crc32c::crc32c(stored) != entry.crc {
                    return Err(damaged());
                }
                note.set();
            }
            return codecs
                .decode(entry, stored, element, &self.dictionaries, out)
                .map_err(|e| e.at(entry.offset));
        }
        if entry.codec == Stored::Raw {
            self.source.read_at(entry.offset, out)?;
            return if crc32c::crc32c(out) == entry.crc { Ok(()) } else { Err(damaged()) };
        }
        let mut buffer = std::mem::take(&mut codecs.stored);
        // Less than the caller's room, so nothing that the file could blow up.
        let stored = sized(&mut buffer, entry.stored as usize);
        let done = self.source.read_at(entry.offset, stored).and_then(|()| {
            if crc32c::crc32c(stored) != entry.crc {
                return Err(damaged());
            }
            codecs.decode(entry, stored, element, &self.dictionaries, out).map_err(|e| e.at(entry.offset))
        });
        codecs.stored = buffer;
        done
    }

    /// Do the stored bytes lie among what was committed?
    pub fn check_place(&self, entry: &Entry) -> Result<()> {
        let inside = entry.offset >= super::layout::FRONT
            && entry.offset.checked_add(entry.stored).is_some_and(|end| end <= self.end);
        if inside || entry.codec == Stored::Inline {
            return Ok(());
        }
        let message = format!("{} stored bytes lie outside the committed {}", entry.stored, self.end);
        Err(Error::corrupt(message).at(entry.offset))
    }

    fn serial(&self, ids: &[u64], into: &mut [FieldBuffer<'_>], monitor: &dyn Monitor) -> Result<()> {
        let mut codecs = self.pool.take();
        let done = self.serial_with(&mut codecs, ids, into, monitor);
        self.pool.give(codecs);
        done
    }

    fn serial_with(
        &self,
        codecs: &mut Codecs,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let (bytes, total) = (self.bytes(), ids.len() as u64);
        let mut since = SHARE;
        let mut first = 0;
        ids.chunks(AHEAD).try_for_each(|ids| {
            if since >= SHARE {
                monitor.poll(&Progress { stage: "gathering", done: first as u64, total })?;
                since = 0;
            }
            for buffer in into.iter_mut() {
                since += self.read_some(&bytes, codecs, ids, first, buffer)?;
            }
            first += ids.len();
            Ok(())
        })
    }

    /// Reads one field of a few records, which are the list's from `first` on; says how many bytes that were.
    ///
    /// Cells that were compared before are looked up first and then copied or decoded, all of them in one go: where one
    /// lookup or copy waits for memory, the processor goes on with the next.
    #[inline]
    fn read_some(
        &self,
        bytes: &Bytes<'_>,
        codecs: &mut Codecs,
        ids: &[u64],
        first: usize,
        buffer: &mut FieldBuffer<'_>,
    ) -> Result<u64> {
        let field = buffer.field;
        let form = self.forms[field];
        let mut known: [Known<'_>; AHEAD] = [Known::Not; AHEAD];
        if !form.ragged {
            for (slot, id) in known.iter_mut().zip(ids) {
                *slot = self.known(bytes, *id, field, form.step);
            }
        }
        let mut read = 0;
        for (i, (known, id)) in known.iter().zip(ids).enumerate() {
            let cell = match known {
                Known::Raw(stored) => {
                    let range = buffer.range(first + i, stored.len() as u64)?;
                    let whole = buffer.bytes.len();
                    streaming::copy(stored, &mut buffer.bytes[range], whole);
                    read += stored.len() as u64 + 64;
                    continue;
                }
                Known::Entry(entry) => {
                    let note = Note::Set;
                    Cell { entry: self.checked(entry, *id, field)?, note }
                }
                Known::Not => self.cell(bytes, *id, field)?,
            };
            let range = buffer.range(first + i, cell.entry.raw)?;
            self.read_known(bytes, codecs, &cell, *id, field, &mut buffer.bytes[range])?;
            read += cell.entry.raw + 64;
        }
        Ok(read)
    }

    /// What is known of a cell from its last reading.
    #[inline(always)]
    fn known<'a>(&'a self, bytes: &Bytes<'a>, id: u64, field: usize, len: u64) -> Known<'a> {
        match self.runs.find(id, field, len).and_then(|offset| bytes.borrow(offset, len)) {
            Some(stored) => Known::Raw(stored),
            None => self.known_in_table(bytes, id, field, len),
        }
    }

    /// As [`known`](Self::known), by the cell's entry; a raw one is found without the next time.
    #[inline(never)]
    fn known_in_table<'a>(&'a self, bytes: &Bytes<'a>, id: u64, field: usize, len: u64) -> Known<'a> {
        let Some(entry) = self.table.known(bytes, id, field) else { return Known::Not };
        let Some(offset) = Entry::raw_offset(entry, len) else { return Known::Entry(entry) };
        let Some(stored) = bytes.borrow(offset, len) else { return Known::Not };
        self.runs.note(id, field, len, offset);
        Known::Raw(stored)
    }

    fn parallel(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let mut shares = Vec::new();
        let bytes: u64 = into.iter().map(|buffer| buffer.bytes.len() as u64).sum();
        let size = (bytes / (4 * threads.get() as u64)).clamp(LEAST_SHARE, SHARE);
        for buffer in into {
            self.share_out(ids, buffer, size, &mut shares)?;
        }
        let shares: Vec<_> = shares.into_iter().map(Mutex::new).collect();
        let (known, total) = (self.bytes(), ids.len() as u64);
        let take = || Lent { codecs: self.pool.take(), to: self };
        threads.for_each(shares.len(), monitor, "gathering", total, take, |lent, k, done| {
            let Some(share) = shares.get(k) else { return Ok(()) };
            let mut share = held(share);
            let Share { field, cells } = &mut *share;
            for (i, out) in cells.iter_mut() {
                self.read_cell_of(&known, &mut lent.codecs, ids[*i], *field, out, bytes as usize)?;
            }
            done.add(cells.len() as u64);
            Ok(())
        })
    }

    /// Cuts a buffer, whose places are known not to overlap, into the places of its records, in shares.
    fn share_out<'a>(
        &self,
        ids: &[u64],
        buffer: &'a mut FieldBuffer<'_>,
        size: u64,
        shares: &mut Vec<Share<'a>>,
    ) -> Result<()> {
        let form = self.forms[buffer.field];
        let known = self.bytes();
        let mut places = Vec::with_capacity(ids.len());
        for (i, id) in ids.iter().enumerate() {
            let bytes = if form.ragged { self.cell(&known, *id, buffer.field)?.entry.raw } else { form.step };
            places.push((buffer.range(i, bytes)?, i));
        }
        if matches!(buffer.places, Places::Starts(_)) {
            places.sort_unstable_by_key(|(range, i)| (range.start, range.end, *i));
        }
        let (mut rest, mut at) = (&mut *buffer.bytes, 0);
        let mut share = Share { field: buffer.field, cells: Vec::new() };
        let mut bytes = 0;
        for (range, i) in places {
            let overlap = || Error::invalid(format!("record {i} of the list overlaps another"));
            // An empty record may stand inside another's place, and needs none.
            let cell = if range.is_empty() {
                &mut []
            } else {
                let skip = range.start.checked_sub(at).ok_or_else(overlap)?;
                let (_, behind) = rest.split_at_mut_checked(skip).ok_or_else(overlap)?;
                let (cell, behind) = behind.split_at_mut_checked(range.len()).ok_or_else(overlap)?;
                rest = behind;
                at = range.end;
                cell
            };
            bytes += cell.len() as u64 + 64;
            share.cells.push((i, cell));
            if bytes >= size {
                bytes = 0;
                let full = std::mem::replace(&mut share, Share { field: buffer.field, cells: Vec::new() });
                shares.push(full);
            }
        }
        shares.push(share);
        Ok(())
    }

    /// Reads one field of a batch, all of one length, together with the thread that stands by.
    fn shared(
        &self,
        ids: &[u64],
        buffer: &mut FieldBuffer<'_>,
        stride: u64,
        (beside, work): (Beside, u64),
        monitor: &dyn Monitor,
    ) -> Result<()> {
        monitor.poll(&Progress { stage: "gathering", done: 0, total: ids.len() as u64 })?;
        let field = buffer.field;
        let count = (work / SHARED).clamp(2, SHARES as u64) as usize;
        let size = ids.len().div_ceil(count).next_multiple_of(AHEAD);
        let cells = buffer.bytes.chunks_mut(size.saturating_mul(stride as usize));
        let mut shares = [const { Mutex::new(None) }; SHARES];
        for (slot, share) in shares.iter_mut().zip(ids.chunks(size).zip(cells)) {
            *slot = Mutex::new(Some(share));
        }
        // Of either thread its own.
        let codecs = [self.pool.take(), self.pool.take()].map(Mutex::new);
        // The first in the list, whoever came first.
        let failed: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        beside.run(ids.len().div_ceil(size), &|thread, k| {
            let share = shares.get(k).and_then(|s| held(s).take());
            let (Some((ids, bytes)), Some(codecs)) = (share, codecs.get(thread)) else { return };
            let mut into = [FieldBuffer { field, bytes, places: Places::Stride(stride) }];
            if let Err(e) = self.serial_with(&mut held(codecs), ids, &mut into, &Quiet) {
                let mut failed = held(&failed);
                if failed.as_ref().is_none_or(|(at, _)| k < *at) {
                    *failed = Some((k, e));
                }
            }
        });
        // The owner's goes back last, and is the next one's again.
        for codecs in codecs.into_iter().rev() {
            self.pool.give(codecs.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), |(_, e)| Err(e))
    }

    /// Reads a batch with as many threads as pay.
    fn batch(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let work = if threads.get() > 1 { self.work(ids, into)? } else { 0 };
        // Two threads that are there are as fast as more that must be started.
        let short = if threads.get() > 2 { WORTH_THREADS } else { LONG };
        let beside = if (WORTH_SHARING..short).contains(&work) { threads.beside() } else { Beside::ALONE };
        match into {
            [buffer] if beside.stands_by() && !self.forms[buffer.field].ragged => match buffer.places {
                Places::Stride(stride) => self.shared(ids, buffer, stride, (beside, work), monitor),
                Places::Starts(_) => self.serial(ids, into, monitor),
            },
            _ if work >= WORTH_THREADS => self.parallel(ids, into, threads, monitor),
            _ => self.serial(ids, into, monitor),
        }
    }

    /// What reading a batch takes, in bytes that are copied. The first record stands for all.
    fn work(&self, ids: &[u64], into: &[FieldBuffer<'_>]) -> Result<u64> {
        let Some(id) = ids.first().filter(|_| ids.len() > 1) else { return Ok(0) };
        let mut all = 0;
        for buffer in into {
            let form = self.forms[buffer.field];
            let bytes = if form.ragged { buffer.bytes.len() as u64 } else { form.step * ids.len() as u64 };
            all += bytes * work(self.cell(&self.bytes(), *id, buffer.field)?.entry.codec);
        }
        Ok(all)
    }
}

/// Records of one field for one thread: position in the list, and where it goes.
struct Share<'a> {
    field: usize,
    cells: Vec<(usize, &'a mut [u8])>,
}

/// Codec states that go back to the pool.
struct Lent<'a> {
    codecs: Codecs,
    to: &'a Snapshot,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.to.pool.give(std::mem::take(&mut self.codecs));
    }
}

impl Gather for Store {
    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn len(&self) -> u64 {
        self.0.state.len
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        let mut print = StoreFingerprint::new("records").with_number(self.0.state.len);
        for field in self.0.schema.fields() {
            print = print
                .with(field.name.as_bytes())
                .with(format!("{:?}{:?}", field.dtype, field.shape).as_bytes());
        }
        Ok(print.with(&self.0.state.digest.to_le_bytes()))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        check_lengths(self, field, ids, steps)?;
        let form = self.0.forms[field];
        if !form.ragged {
            steps.fill(1);
            return Ok(());
        }
        let bytes = self.0.bytes();
        for (id, n) in ids.iter().zip(steps) {
            *n = self.0.cell(&bytes, *id, field)?.entry.raw / form.step;
        }
        Ok(())
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        check_buffers(self, ids, into)?;
        let named = |e: Error| match &self.0.path {
            Some(path) => e.in_file(path),
            None => e,
        };
        let done = self.0.batch(ids, into, threads, monitor);
        done.map_err(named)
    }
}
