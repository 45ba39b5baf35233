//! Lists of cells on one thread, looked up ahead: what waits for memory does so while something else is copied or decoded.
//!
//! Cells go by blocks: while one is copied or decoded the places of the next are known and its bytes are on the way. Raw
//! cells that were compared before are found in [`Runs`](super::runs::Runs), all others by their entries.

use super::codec::Codecs;
use super::entry::{ENTRY, Entry, Stored};
use super::gather::Cell;
use super::pairs::worth_two;
use super::snapshot::Snapshot;
use super::table::{Bytes, Note};
use tensilo_core::gather::FieldBuffer;
use tensilo_core::streaming;
use tensilo_core::{Monitor, Progress, Result};
use tensilo_filters::deflate::Inflate;

/// Cells of a block.
const AHEAD: usize = 16;
/// Raw cells that are looked up before the first of them is copied.
const COPIED: usize = 8;
/// Most stored bytes of a cell that are asked for ahead; then the processor sees that they are read in order.
const ASKED: u64 = 1 << 10;
/// Bytes between two looks at the monitor.
const LOOK: u64 = 1 << 20;
/// Most records between two.
const MOST: u64 = 256;

/// Codec states of the pool: taken when they are first needed, and given back.
pub(crate) struct Lent<'a> {
    codecs: Option<Codecs>,
    of: &'a Snapshot,
}

impl<'a> Lent<'a> {
    pub fn new(of: &'a Snapshot) -> Self {
        Self { codecs: None, of }
    }

    #[inline]
    pub fn codecs(&mut self) -> &mut Codecs {
        self.codecs.get_or_insert_with(|| self.of.pool.take())
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(codecs) = self.codecs.take() {
            self.of.pool.give(codecs);
        }
    }
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

/// A block of cells that were looked up.
type Block<'a> = [Known<'a>; AHEAD];

impl Snapshot {
    /// Reads a list of records on this thread.
    pub(super) fn serial(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.serial_with(&mut Lent::new(self), ids, into, monitor)
    }

    pub(super) fn serial_with(
        &self,
        lent: &mut Lent<'_>,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let (bytes, total) = (self.bytes(), ids.len() as u64);
        let step: u64 = into.iter().map(|buffer| self.forms[buffer.field].step).sum();
        let count = (LOOK / step.max(1)).clamp(AHEAD as u64, MOST) as usize;
        let mut first = 0;
        ids.chunks(count).try_for_each(|ids| {
            monitor.poll(&Progress { stage: "gathering", done: first as u64, total })?;
            for buffer in into.iter_mut() {
                self.read_some(&bytes, lent, ids, first, buffer)?;
            }
            first += ids.len();
            Ok(())
        })
    }

    /// Reads one field of a few records, which are the list's from `first` on.
    fn read_some(
        &self,
        bytes: &Bytes<'_>,
        lent: &mut Lent<'_>,
        ids: &[u64],
        first: usize,
        buffer: &mut FieldBuffer<'_>,
    ) -> Result<()> {
        let field = buffer.field;
        if self.forms[field].ragged {
            let mut two = false;
            for (i, id) in ids.iter().enumerate() {
                if std::mem::take(&mut two) {
                    continue;
                }
                let cell = self.cell(bytes, *id, field)?;
                two =
                    worth_two(&cell.entry) && self.read_two_at(bytes, lent, &ids[i..], first + i, buffer)?;
                if two {
                    continue;
                }
                let range = buffer.range(first + i, cell.entry.raw)?;
                self.read_known(bytes, lent, &cell, *id, field, &mut buffer.bytes[range])?;
            }
            return Ok(());
        }
        let copied = self.copy_compared(bytes, ids, first, buffer)?;
        self.read_blocks(bytes, lent, &ids[copied..], first + copied, buffer)
    }

    /// Copies raw cells that were compared, up to the first that is another or was not; how many.
    #[inline]
    fn copy_compared(
        &self,
        bytes: &Bytes<'_>,
        ids: &[u64],
        first: usize,
        buffer: &mut FieldBuffer<'_>,
    ) -> Result<usize> {
        let (field, whole) = (buffer.field, buffer.bytes.len());
        let len = self.forms[field].step;
        // The next cells in turn; `found` counts them all, and stays when one is not found.
        let mut ring = [&[][..]; COPIED];
        let mut found = 0;
        let mut more = (0..COPIED).all(|_| self.find_next(bytes, ids, field, &mut ring, &mut found));
        let mut copied = 0;
        while copied < found {
            let stored = ring[copied % COPIED];
            more = more && self.find_next(bytes, ids, field, &mut ring, &mut found);
            let range = buffer.range(first + copied, len)?;
            streaming::copy(stored, &mut buffer.bytes[range], whole);
            copied += 1;
        }
        Ok(copied)
    }

    /// Finds the next raw cell that was compared and asks for its bytes; false when it is another or was not.
    #[inline(always)]
    fn find_next<'a>(
        &self,
        bytes: &Bytes<'a>,
        ids: &[u64],
        field: usize,
        ring: &mut [&'a [u8]; COPIED],
        found: &mut usize,
    ) -> bool {
        let len = self.forms[field].step;
        let stored = ids.get(*found).and_then(|id| self.find(bytes, *id, field, len));
        let Some(stored) = stored else { return false };
        streaming::ask(stored.get(..ASKED as usize).unwrap_or(stored));
        ring[*found % COPIED] = stored;
        *found += 1;
        true
    }

    /// Reads cells of whatever kind by blocks, each looked up while the one before it has not been decoded.
    fn read_blocks(
        &self,
        bytes: &Bytes<'_>,
        lent: &mut Lent<'_>,
        ids: &[u64],
        first: usize,
        buffer: &mut FieldBuffer<'_>,
    ) -> Result<()> {
        let field = buffer.field;
        let large = self.forms[field].step >= Inflate::WORTH_TWO;
        let mut blocks = ids.chunks(AHEAD);
        let Some(mut block) = blocks.next() else { return Ok(()) };
        let mut known = self.look_up(bytes, block, field);
        let mut at = first;
        loop {
            let next = blocks.next().map(|ids| (ids, self.look_up(bytes, ids, field)));
            let mut two = false;
            for (i, (known, id)) in known.iter().zip(block).enumerate() {
                if std::mem::take(&mut two) {
                    continue;
                }
                if large && !matches!(known, Known::Raw(_)) {
                    two = self.read_two_at(bytes, lent, &block[i..], at + i, buffer)?;
                    if two {
                        continue;
                    }
                }
                self.read_one(bytes, lent, (*known, *id), at + i, buffer)?;
            }
            at += block.len();
            match next {
                Some(next) => (block, known) = next,
                None => return Ok(()),
            }
        }
    }

    /// Reads the cell of a record, the i-th of the list.
    #[inline]
    fn read_one(
        &self,
        bytes: &Bytes<'_>,
        lent: &mut Lent<'_>,
        (known, id): (Known<'_>, u64),
        i: usize,
        buffer: &mut FieldBuffer<'_>,
    ) -> Result<()> {
        let field = buffer.field;
        let cell = match known {
            Known::Raw(stored) => {
                let range = buffer.range(i, stored.len() as u64)?;
                let whole = buffer.bytes.len();
                streaming::copy(stored, &mut buffer.bytes[range], whole);
                return Ok(());
            }
            Known::Entry(entry) => Cell { entry: self.checked(entry, id, field)?, note: Note::Set },
            Known::Not => self.cell(bytes, id, field)?,
        };
        let range = buffer.range(i, cell.entry.raw)?;
        self.read_known(bytes, lent, &cell, id, field, &mut buffer.bytes[range])?;
        if cell.entry.codec == Stored::Raw && matches!(cell.note, Note::Bit(..)) && cell.note.is_set() {
            self.runs.note(id, field, cell.entry.raw, cell.entry.offset);
        }
        Ok(())
    }

    /// Looks up a block of cells and asks for what is stored of them.
    #[inline]
    fn look_up<'a>(&'a self, bytes: &Bytes<'a>, ids: &[u64], field: usize) -> Block<'a> {
        let len = self.forms[field].step;
        let mut block = [Known::Not; AHEAD];
        for (slot, id) in block.iter_mut().zip(ids) {
            *slot = self.known(bytes, *id, field, len);
        }
        for known in &block {
            let stored = match known {
                Known::Not => continue,
                Known::Raw(stored) => stored.get(..ASKED as usize).unwrap_or(stored),
                Known::Entry(entry) => {
                    let Some((offset, stored)) = Entry::place(entry) else { continue };
                    bytes.borrow(offset, stored.min(ASKED)).unwrap_or_default()
                }
            };
            streaming::ask(stored);
        }
        block
    }

    /// The bytes of a raw cell that was compared, where its run says.
    #[inline(always)]
    fn find<'a>(&self, bytes: &Bytes<'a>, id: u64, field: usize, len: u64) -> Option<&'a [u8]> {
        self.runs.find(id, field, len).and_then(|offset| bytes.borrow(offset, len))
    }

    /// What is known of a cell from its last reading.
    #[inline(always)]
    fn known<'a>(&'a self, bytes: &Bytes<'a>, id: u64, field: usize, len: u64) -> Known<'a> {
        match self.find(bytes, id, field, len) {
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
}
