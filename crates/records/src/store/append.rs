//! Appending: a block of records at a time, field after field, compressed by several threads and written in order.

use super::appender::Appender;
use super::codec::{Codec, Codecs, Encoding};
use super::entry::{Ahead, ENTRY, Entry, INLINE, LARGEST_CELL, Stored};
use super::gather::held;
use super::snapshot::FieldForm;
use super::writer::StoreWriter;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tensilo_core::io::DiskFile;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Quiet, Result};

/// Bytes of a block: the most that may wait, encoded, for a thread that was held up. Others are written meanwhile, and
/// their buffers encoded into again.
const BLOCK: u64 = 32 << 20;
/// Bytes that one thread compresses at a time.
const SHARE: u64 = 128 << 10;
/// From so many bytes on several threads compress.
const PARALLEL: u64 = 512 << 10;

/// One field of the records to append.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    /// The records' bytes, one after the other.
    pub bytes: &'a [u8],
    /// Steps of each record in a ragged field.
    pub steps: Option<&'a [u64]>,
}

impl<'a> Column<'a> {
    /// A field of a fixed shape.
    pub fn fixed(bytes: &'a [u8]) -> Self {
        Self { bytes, steps: None }
    }

    /// A ragged field.
    pub fn ragged(bytes: &'a [u8], steps: &'a [u64]) -> Self {
        Self { bytes, steps: Some(steps) }
    }
}

/// Cells of one field that one thread encodes.
struct Share<'a> {
    field: usize,
    bytes: &'a [u8],
    /// Length of each cell.
    lens: Lens<'a>,
    /// The stored bytes, unless they are the source's.
    stored: Vec<u8>,
    borrowed: bool,
    encoded: bool,
    entries: Vec<Entry>,
}

enum Lens<'a> {
    Same(u64, usize),
    Steps(&'a [u64], u64),
}

impl Lens<'_> {
    fn each(&self) -> impl Iterator<Item = u64> + '_ {
        let (same, count, steps, step) = match self {
            Lens::Same(len, count) => (*len, *count, &[][..], 0),
            Lens::Steps(steps, step) => (0, steps.len(), *steps, *step),
        };
        (0..count).map(move |i| steps.get(i).map_or(same, |n| n * step))
    }
}

/// Where appending stands in one field.
#[derive(Clone, Copy)]
struct Cursor {
    byte: usize,
}

impl StoreWriter {
    /// Appends records, one column for each field, and returns their ids. They are durable and visible after
    /// [`commit`](Self::commit).
    ///
    /// # Errors
    /// `InvalidArgument` when the columns do not fit the schema; `Limit` for a cell of more than 2^32 bytes or too many
    /// records; `InsufficientDisk`, `Io`. After an error none of these records is there, and what was appended before
    /// still is.
    pub fn append(&mut self, records: u64, columns: &[Column<'_>]) -> Result<Range<u64>> {
        self.append_watched(records, columns, &Quiet)
    }

    /// Appends records; the monitor is polled between blocks.
    ///
    /// # Errors
    /// As [`append`](Self::append), and the monitor's.
    pub fn append_watched(
        &mut self,
        records: u64,
        columns: &[Column<'_>],
        monitor: &dyn Monitor,
    ) -> Result<Range<u64>> {
        self.usable()?;
        self.check_columns(records, columns)?;
        let first = self.len();
        let savepoint = self.next.savepoint();
        match self.append_blocks(records, columns, monitor) {
            Ok(()) => {
                self.changed |= records > 0;
                Ok(first..self.len())
            }
            Err(e) => {
                self.next.roll_back(savepoint);
                Err(e.in_file(&self.path))
            }
        }
    }

    fn check_columns(&self, records: u64, columns: &[Column<'_>]) -> Result<()> {
        let fields = self.schema.fields();
        if columns.len() != fields.len() {
            return Err(Error::invalid(format!("{} columns for {} fields", columns.len(), fields.len())));
        }
        for ((field, form), column) in fields.iter().zip(&self.forms).zip(columns) {
            let bad = |what: String| Err(Error::invalid(format!("field {:?}: {what}", field.name)));
            let total = match (form.ragged, column.steps) {
                (false, None) => form.step.checked_mul(records),
                (true, Some(steps)) if steps.len() as u64 == records => {
                    if let Some(i) =
                        steps.iter().position(|n| n.checked_mul(form.step).is_none_or(|b| b > LARGEST_CELL))
                    {
                        return Err(Error::limit(format!(
                            "field {:?}: {} steps, at most 2^32 bytes are possible",
                            field.name, steps[i]
                        ))
                        .in_record(i as u64));
                    }
                    steps.iter().try_fold(0_u64, |sum, n| sum.checked_add(n * form.step))
                }
                (true, Some(steps)) => return bad(format!("{} lengths for {records} records", steps.len())),
                (true, None) => return bad("a ragged field needs the lengths".into()),
                (false, Some(_)) => return bad("a fixed field has no lengths".into()),
            };
            if total != Some(column.bytes.len() as u64) {
                return bad(format!(
                    "{} bytes for {records} records of {} bytes a step",
                    column.bytes.len(),
                    form.step
                ));
            }
        }
        Ok(())
    }

    fn append_blocks(&mut self, records: u64, columns: &[Column<'_>], monitor: &dyn Monitor) -> Result<()> {
        let mut cursors = vec![Cursor { byte: 0 }; columns.len()];
        let spare = Spare::default();
        let mut at = 0_usize;
        let total = usize::try_from(records).map_err(|_| Error::limit("too many records at once"))?;
        while at < total {
            let mut end = at;
            let mut bytes = 0_u64;
            while end < total && (end == at || bytes < BLOCK) {
                for (form, column) in self.forms.iter().zip(columns) {
                    bytes += ENTRY as u64 + form.step * column.steps.map_or(1, |s| s[end]);
                }
                end += 1;
            }
            self.append_block(at..end, bytes, columns, (&mut cursors, &spare), monitor)?;
            at = end;
        }
        Ok(())
    }

    fn append_block(
        &mut self,
        range: Range<usize>,
        bytes: u64,
        columns: &[Column<'_>],
        (cursors, spare): (&mut [Cursor], &Spare),
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let mut shares = Vec::new();
        for (field, column) in columns.iter().enumerate() {
            self.cut_shares(field, column, range.clone(), &mut cursors[field], &mut shares);
        }
        let shares: Vec<_> = shares.into_iter().map(Mutex::new).collect();
        let threads = if bytes >= PARALLEL { self.options.threads } else { Threads::ONE };
        let Self { next, file, pool, forms, encodings, dictionaries, .. } = self;
        let (encoder, file) = (Encoder { forms, encodings, dictionaries }, &**file);
        let entries = vec![Vec::with_capacity(range.len()); columns.len()];
        let placing = Mutex::new(Placing { next, file, shares: &shares, placed: 0, entries, spare });
        let lent = || pool.take();
        threads.for_each(shares.len(), monitor, "appending", bytes, lent, |codecs, k, done| {
            let Some(share) = shares.get(k) else { return Ok(()) };
            {
                let mut share = held(share);
                share.stored = spare.take();
                encoder.encode(codecs, &mut share)?;
                done.add(share.bytes.len() as u64);
            }
            // What comes next in the file is written meanwhile, by whoever finds nobody at it.
            placing.try_lock().map_or(Ok(()), |mut placing| placing.place())
        })?;
        let mut placing = placing.into_inner().unwrap_or_else(PoisonError::into_inner);
        placing.place()?;
        let entries = placing.entries;
        let mut record = Vec::with_capacity(columns.len() * ENTRY);
        for i in 0..range.len() {
            record.clear();
            for field in &entries {
                let entry = field.get(i).ok_or_else(|| Error::invalid("a cell was not encoded"))?;
                record.extend_from_slice(&entry.encode());
            }
            self.next.push_record(&*self.file, &record)?;
        }
        Ok(())
    }

    /// Cuts the cells of a field into shares for threads.
    fn cut_shares<'a>(
        &self,
        field: usize,
        column: &Column<'a>,
        range: Range<usize>,
        cursor: &mut Cursor,
        shares: &mut Vec<Share<'a>>,
    ) {
        let step = self.forms[field].step;
        let mut at = range.start;
        while at < range.end {
            let (mut end, mut bytes) = (at, 0_u64);
            while end < range.end && (end == at || bytes < SHARE) {
                bytes += step * column.steps.map_or(1, |s| s[end]);
                end += 1;
                if bytes == 0 && column.steps.is_none() {
                    end = range.end;
                }
            }
            let lens = match column.steps {
                Some(steps) => Lens::Steps(&steps[at..end], step),
                None => Lens::Same(step, end - at),
            };
            let from = cursor.byte;
            cursor.byte += bytes as usize;
            shares.push(Share {
                field,
                bytes: &column.bytes[from..cursor.byte],
                lens,
                stored: Vec::new(),
                borrowed: false,
                encoded: false,
                entries: Vec::with_capacity(end - at),
            });
            at = end;
        }
    }
}

/// Puts shares into the file, in their order, as soon as they are encoded.
struct Placing<'a> {
    next: &'a mut Appender,
    file: &'a dyn DiskFile,
    shares: &'a [Mutex<Share<'a>>],
    /// Shares that were put.
    placed: usize,
    /// Entries of each field's cells that were put.
    entries: Vec<Vec<Entry>>,
    spare: &'a Spare,
}

/// Buffers whose bytes were put into the file: encoded into again, they cost no memory that must be found and cleared.
#[derive(Default)]
struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    fn take(&self) -> Vec<u8> {
        held(&self.0).pop().unwrap_or_default()
    }

    fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        held(&self.0).push(buffer);
    }
}

impl Placing<'_> {
    /// Puts the shares that come next and are encoded.
    fn place(&mut self) -> Result<()> {
        while let Some(share) = self.shares.get(self.placed) {
            // Whoever has it is still encoding it.
            let Ok(mut share) = share.try_lock() else { return Ok(()) };
            if !share.encoded {
                return Ok(());
            }
            let stored = std::mem::take(&mut share.stored);
            let base = self.next.put(self.file, if share.borrowed { share.bytes } else { &stored })?;
            self.spare.give(stored);
            for entry in &mut share.entries {
                if entry.codec != Stored::Inline {
                    entry.offset += base;
                }
            }
            let field = share.field;
            self.entries[field].append(&mut share.entries);
            self.placed += 1;
        }
        Ok(())
    }
}

/// What encoding a share needs to know of the store.
struct Encoder<'a> {
    forms: &'a [FieldForm],
    encodings: &'a [Encoding],
    dictionaries: &'a [Arc<[u8]>],
}

impl Encoder<'_> {
    fn encode(&self, codecs: &mut Codecs, share: &mut Share<'_>) -> Result<()> {
        self.encode_cells(codecs, share)?;
        share.encoded = true;
        Ok(())
    }

    fn encode_cells(&self, codecs: &mut Codecs, share: &mut Share<'_>) -> Result<()> {
        let encoding = {
            let mut e = self.encodings[share.field];
            // The most recent dictionary goes with every Zstandard cell.
            if matches!(e.codec, Codec::Zstd(_)) {
                e.dictionary = self.dictionaries.len() as u8;
            }
            e
        };
        let element = self.forms[share.field].element;
        let raw = encoding == Encoding::RAW;
        let mut at = 0_usize;
        if let (true, Lens::Same(len, _)) = (raw, &share.lens)
            && *len > INLINE as u64
        {
            // Stored as they are: nothing is copied.
            share.borrowed = true;
            for cell in share.bytes.chunks_exact(*len as usize) {
                share.entries.push(Entry {
                    offset: at as u64,
                    stored: *len,
                    raw: *len,
                    codec: Stored::Raw,
                    ahead: Ahead::None,
                    dictionary: 0,
                    crc: crc32c::crc32c(cell),
                });
                at += cell.len();
            }
            return Ok(());
        }
        for len in share.lens.each() {
            let end = at + len as usize;
            let cell = share.bytes.get(at..end).ok_or_else(|| Error::invalid("a column is too short"))?;
            share.entries.push(codecs.encode(
                &encoding,
                cell,
                element,
                self.dictionaries,
                &mut share.stored,
            )?);
            at = end;
        }
        Ok(())
    }
}
