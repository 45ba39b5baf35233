//! Records by their ids: no lock, and no allocation and no system call per record where the file is mapped. Batches of
//! large or compressed records are read by several threads.

use super::codec::{Codecs, sized};
use super::entry::{ENTRY, Entry, Stored, entry_at};
use super::reading::Lent;
use super::snapshot::{Snapshot, Store};
use super::table::{Bytes, Note};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tensilo_core::gather::{
    FieldBuffer, Gather, Schema, StoreFingerprint, check_buffers, check_ids, check_lengths,
};
use tensilo_core::streaming;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Result};

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn unlike(entry: &Entry) -> Error {
    Error::corrupt("the stored bytes do not match their checksum").at(entry.offset)
}

/// A cell that was looked up.
pub(super) struct Cell<'a> {
    pub entry: Entry,
    pub note: Note<'a>,
}

impl Snapshot {
    /// The checked entry of a cell.
    pub fn entry(&self, id: u64, field: usize) -> Result<Entry> {
        check_ids(&[id], self.state.len)?;
        self.schema.field(field)?;
        self.cell(&self.bytes(), id, field).map(|cell| cell.entry)
    }

    /// The bytes that were committed.
    pub(super) fn bytes(&self) -> Bytes<'_> {
        Bytes::of(&*self.source, self.end)
    }

    /// The checked entry of a cell that exists.
    #[inline]
    pub(super) fn cell<'a>(&'a self, bytes: &Bytes<'a>, id: u64, field: usize) -> Result<Cell<'a>> {
        let row = self.table.row(bytes, id)?;
        let entry = self.checked(entry_at(row.entries, field)?, id, field)?;
        Ok(Cell { entry, note: row.note(field) })
    }

    /// An entry of the table, checked.
    #[inline]
    pub(super) fn checked(&self, entry: &[u8; ENTRY], id: u64, field: usize) -> Result<Entry> {
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
    pub fn read_cell(&self, lent: &mut Lent<'_>, id: u64, field: usize, out: &mut [u8]) -> Result<()> {
        self.read_cell_of(&self.bytes(), lent, id, field, out, 0)
    }

    /// As [`read_cell`](Self::read_cell), as a part of a result of `whole` bytes.
    pub(super) fn read_cell_of(
        &self,
        bytes: &Bytes<'_>,
        lent: &mut Lent<'_>,
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
        self.read_known(bytes, lent, &cell, id, field, out)
    }

    #[inline]
    pub(super) fn read_known(
        &self,
        bytes: &Bytes<'_>,
        lent: &mut Lent<'_>,
        cell: &Cell<'_>,
        id: u64,
        field: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let element = self.forms[field].element;
        self.read_entry(bytes, lent.codecs(), &cell.entry, cell.note, element, out)
            .map_err(|e| self.named(e, id, field))
    }

    /// Says in an error which cell it is about.
    #[cold]
    pub(super) fn named(&self, e: Error, id: u64, field: usize) -> Error {
        e.context(format_args!("field {:?}", self.schema.fields()[field].name)).in_record(id)
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
        if let Some(stored) = self.compared(bytes, entry, note)? {
            return codecs
                .decode(entry, stored, element, &self.dictionaries, out)
                .map_err(|e| e.at(entry.offset));
        }
        if entry.codec == Stored::Raw {
            self.source.read_at(entry.offset, out)?;
            return if crc32c::crc32c(out) == entry.crc { Ok(()) } else { Err(unlike(entry)) };
        }
        let mut buffer = std::mem::take(&mut codecs.stored);
        // Less than the caller's room, so nothing that the file could blow up.
        let stored = sized(&mut buffer, entry.stored as usize);
        let done = self.source.read_at(entry.offset, stored).and_then(|()| {
            if crc32c::crc32c(stored) != entry.crc {
                return Err(unlike(entry));
            }
            codecs.decode(entry, stored, element, &self.dictionaries, out).map_err(|e| e.at(entry.offset))
        });
        codecs.stored = buffer;
        done
    }

    /// The stored bytes of a cell that are lent, compared with their checksum unless its note says that they were.
    #[inline]
    pub(super) fn compared<'a>(
        &self,
        bytes: &Bytes<'a>,
        entry: &Entry,
        note: Note<'_>,
    ) -> Result<Option<&'a [u8]>> {
        self.check_place(entry)?;
        let Some(stored) = bytes.borrow(entry.offset, entry.stored) else { return Ok(None) };
        if !note.is_set() {
            if crc32c::crc32c(stored) != entry.crc {
                return Err(unlike(entry));
            }
            note.set();
        }
        Ok(Some(stored))
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
