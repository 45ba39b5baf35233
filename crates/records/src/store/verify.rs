//! Verifying: every byte that a snapshot needs is read and compared with its checksum, every cell is decoded.

use super::codec::Codecs;
use super::entry::{ENTRY, Entry, Stored, entry_at};
use super::layout::Front;
use super::snapshot::{Snapshot, Store, front_bytes};
use super::state::State;
use super::table::{Note, walk};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use tensilo_core::io::FileSource;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Monitor, Progress, Result};

/// Problems that are described; more are counted.
const DESCRIBED: usize = 1000;
/// Bytes of leaves that are checked together.
const BATCH: usize = 4 << 20;

/// What a problem is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// One of the two commit records, counted from 0; the other one is whole.
    CommitRecord(usize),
    /// The state block's sums.
    State,
    /// The metadata.
    Metadata,
    /// A page of the table: these records cannot be found.
    Table {
        /// First record of the page.
        first: u64,
        /// Records of the page.
        records: u64,
    },
    /// A field of a record.
    Record {
        /// The record.
        id: u64,
        /// The field's name.
        field: String,
    },
}

/// Something that is wrong in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Where,
    /// What.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Where::CommitRecord(i) => write!(f, "commit record {i}: ")?,
            Where::State => f.write_str("state block: ")?,
            Where::Metadata => f.write_str("metadata: ")?,
            Where::Table { first, records } => write!(f, "records {first} to {}: ", first + records - 1)?,
            Where::Record { id, field } => write!(f, "record {id}, field {field:?}: ")?,
        }
        f.write_str(&self.message)
    }
}

/// The answer of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// Records of the store.
    pub records: u64,
    /// Records of which something cannot be read.
    pub bad_records: u64,
    /// Stored bytes that were compared with their checksums.
    pub bytes: u64,
    /// Problems in all.
    pub problems: u64,
    /// The first 1000 of them.
    pub described: Vec<Problem>,
}

impl Verified {
    /// Is everything whole?
    pub fn is_good(&self) -> bool {
        self.problems == 0
    }

    fn add(&mut self, place: Where, error: &Error) {
        self.problems += 1;
        if self.described.len() < DESCRIBED {
            let at = error.offset().map_or(String::new(), |at| format!(" (at byte {at})"));
            self.described.push(Problem { place, message: format!("{}{at}", error.message()) });
        }
    }
}

/// Does an error say that the store is bad, and not that it could not be looked at?
fn is_damage(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Limit)
}

impl Store {
    /// Reads and decodes everything that this snapshot shows.
    ///
    /// # Errors
    /// `Io` when it could not be examined, and the monitor's; damage is the answer, not an error.
    pub fn verify(&self, threads: Threads, monitor: &dyn Monitor) -> Result<Verified> {
        self.0.verify(threads, monitor)
    }
}

impl Snapshot {
    fn verify(&self, threads: Threads, monitor: &dyn Monitor) -> Result<Verified> {
        let mut answer = Verified { records: self.state.len, ..Verified::default() };
        self.verify_front(&mut answer)?;
        let store_metadata = self.state.metadata.map(|block| {
            super::snapshot::read_block(
                &*self.source,
                block,
                super::snapshot::LARGEST_METADATA,
                &self.budget,
                "metadata",
            )
        });
        if let Some(Err(e)) = store_metadata {
            if !is_damage(&e) {
                return Err(e);
            }
            answer.add(Where::Metadata, &e);
        }
        let answer = Mutex::new(answer);
        let sums = Mutex::new(State::empty(self.state.schema, self.state.fields));
        let mut batch: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut held = 0;
        walk(&*self.source, &self.state, &mut |first, records, entries| {
            match entries {
                Ok(entries) => {
                    held += entries.len();
                    batch.push((first, entries.to_vec()));
                }
                Err(e) if is_damage(&e) => {
                    let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
                    answer.bad_records += records.min(self.state.len - first);
                    answer.add(Where::Table { first, records }, &e);
                }
                Err(e) => return Err(e),
            }
            if held >= BATCH {
                self.verify_batch(&batch, &sums, &answer, threads, monitor)?;
                batch.clear();
                held = 0;
            }
            Ok(())
        })?;
        self.verify_batch(&batch, &sums, &answer, threads, monitor)?;
        let sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut answer = answer.into_inner().unwrap_or_else(PoisonError::into_inner);
        let agrees = (sums.live_bytes, sums.digest) == (self.state.live_bytes, self.state.digest);
        if answer.problems == 0 && !agrees {
            answer
                .add(Where::State, &Error::corrupt("the table does not add up to the sums that are stated"));
        }
        answer.described.sort_by_key(|p| match &p.place {
            Where::CommitRecord(i) => (0, *i as u64),
            Where::State | Where::Metadata => (1, 0),
            Where::Table { first, .. } => (2, *first),
            Where::Record { id, .. } => (2, *id),
        });
        Ok(answer)
    }

    /// Are both commit records whole, and of this snapshot or a later one?
    fn verify_front(&self, answer: &mut Verified) -> Result<()> {
        let front = match &self.path {
            Some(path) => front_bytes(&FileSource::open(path)?)?,
            None => front_bytes(&*self.source)?,
        };
        match Front::parse(&front) {
            Ok(front) => {
                for (i, copy) in front.copies.iter().enumerate() {
                    if copy.is_none() {
                        answer.add(Where::CommitRecord(i), &Error::corrupt("it does not match its checksum"));
                    }
                }
            }
            Err(e) if is_damage(&e) => answer.add(Where::CommitRecord(0), &e),
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn verify_batch(
        &self,
        batch: &[(u64, Vec<u8>)],
        sums: &Mutex<State>,
        answer: &Mutex<Verified>,
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let Some((from, _)) = batch.first() else { return Ok(()) };
        let total = self.state.len;
        monitor.poll(&Progress { stage: "verifying", done: *from, total })?;
        let scratch = || (Codecs::default(), Vec::new());
        // Eight records at a time: large ones must not keep the monitor waiting.
        let record = self.state.record_bytes();
        let units: Vec<(u64, &[u8])> = batch
            .iter()
            .flat_map(|(first, entries)| {
                (0..).step_by(8).zip(entries.chunks(8 * record)).map(move |(i, part)| (first + i, part))
            })
            .collect();
        threads.for_each(units.len(), monitor, "verifying", total, scratch, |(codecs, out), k, done| {
            let Some((first, entries)) = units.get(k) else { return Ok(()) };
            for (id, record) in (*first..).zip(entries.chunks_exact(record)) {
                let mut bad = false;
                for field in 0..record.len() / ENTRY {
                    match self.verify_cell(codecs, out, record, field) {
                        Ok(bytes) => answer.lock().unwrap_or_else(PoisonError::into_inner).bytes += bytes,
                        Err(e) if is_damage(&e) => {
                            bad = true;
                            let field = self.schema.fields()[field].name.clone();
                            let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
                            answer.add(Where::Record { id, field }, &e);
                        }
                        Err(e) => return Err(e),
                    }
                }
                if bad {
                    answer.lock().unwrap_or_else(PoisonError::into_inner).bad_records += 1;
                } else {
                    sums.lock().unwrap_or_else(PoisonError::into_inner).count(id, record, true)?;
                }
            }
            done.add(entries.len() as u64);
            Ok(())
        })
    }

    /// Checks one cell and returns how many stored bytes that were.
    fn verify_cell(
        &self,
        codecs: &mut Codecs,
        out: &mut Vec<u8>,
        record: &[u8],
        field: usize,
    ) -> Result<u64> {
        let entry = Entry::parse(entry_at(record, field)?)?;
        let form = self.forms[field];
        let fits = if form.ragged { entry.raw.is_multiple_of(form.step) } else { entry.raw == form.step };
        if !fits {
            return Err(Error::corrupt(format!("{} bytes do not fit the field", entry.raw)));
        }
        if entry.codec == Stored::Inline {
            return Ok(0);
        }
        // Nothing is allocated for a cell that lies outside.
        self.check_place(&entry)?;
        let _charge = self.budget.bytes(entry.raw, "a record")?;
        if out.len() < entry.raw as usize {
            out.resize(entry.raw as usize, 0);
        }
        self.read_entry(
            &(&*self.source).into(),
            codecs,
            &entry,
            Note::None,
            form.element,
            &mut out[..entry.raw as usize],
        )?;
        Ok(entry.stored)
    }
}
