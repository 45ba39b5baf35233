//! One handle for both formats: [`Records`] to read, [`RecordsWriter`] to write. New stores have our own format.

use crate::store::{self, Column, Problem, Stats, Store, StoreWriter, Verified, Where, WriterOptions};
use crate::v1::{self, Items, Zrecord, ZrecordOptions, ZrecordSnapshot};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::gather::{FieldBuffer, Gather, Schema, StoreFingerprint, View};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, ErrorKind, Monitor, Progress, Quiet, Result};

/// On-disk format of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Our own, one file.
    Tensilo,
    /// Zrecord v1, loaderx's folder.
    Zrecord,
}

impl Format {
    /// The format of what is at a path.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` for what is no record store; `Io`.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let meta = std::fs::metadata(path).map_err(|e| Error::io("cannot open", e).in_file(path))?;
        match meta.is_dir() {
            true if v1::is_store(path) => Ok(Self::Zrecord),
            false if store::is_store(path)? => Ok(Self::Tensilo),
            _ => Err(Error::corrupt("this is no record store of a format that is known").in_file(path)),
        }
    }

    /// `"tensilo"` or `"zrecord"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensilo => "tensilo",
            Self::Zrecord => "zrecord",
        }
    }
}

/// A record store of either format, open for reading: one snapshot. Clones are cheap and show the same.
///
/// ```
/// use tensilo_core::dtype::DType;
/// use tensilo_core::gather::{FieldSchema, Gather, Schema};
/// use tensilo_records::store::{Column, WriterOptions};
/// use tensilo_records::{Records, RecordsWriter};
/// # let path = std::env::temp_dir().join(format!("tensilo-handle-doc-{}.trec", std::process::id()));
/// let schema = Schema::new(vec![FieldSchema::ragged("text", DType::U8, [])])?;
/// let mut writer = RecordsWriter::create(&path, schema, WriterOptions::default())?;
/// writer.append(2, &[Column::ragged(b"twowords", &[3, 5])])?;
/// writer.commit()?;
/// let records = Records::open(&path)?;
/// assert_eq!((records.len(), records.get(1, 0)?), (2, b"words".to_vec()));
/// # use tensilo_core::io::Disk;
/// # tensilo_core::io::SystemDisk.unlink(&path)?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Records(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Tensilo(Store),
    Zrecord { store: Arc<Zrecord>, snapshot: Arc<ZrecordSnapshot> },
}

impl Records {
    /// Opens a store of either format.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Unsupported`, `Limit`, `Io`; `Locked` while another process deletes from or compacts a
    /// Zrecord store.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, store::OpenOptions::default())
    }

    /// Opens with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: store::OpenOptions) -> Result<Self> {
        match Format::of(&path)? {
            Format::Tensilo => Store::open_with(path, options).map(|s| Self(Inner::Tensilo(s))),
            Format::Zrecord => {
                let budget = Budget::new(options.limits);
                let options = ZrecordOptions { read_only: true, budget, ..ZrecordOptions::default() };
                let store = Arc::new(Zrecord::open(path, options)?);
                let snapshot = Arc::new(store.snapshot()?);
                Ok(Self(Inner::Zrecord { store, snapshot }))
            }
        }
    }

    /// Shows what is committed now, if that is more recent; says whether it was. Other clones stay as they are.
    ///
    /// # Errors
    /// As [`open`](Self::open); the handle then shows what it showed.
    pub fn refresh(&mut self) -> Result<bool> {
        match &mut self.0 {
            Inner::Tensilo(store) => store.refresh(),
            Inner::Zrecord { store, snapshot } => {
                let before = snapshot.len();
                store.refresh()?;
                *snapshot = Arc::new(store.snapshot()?);
                Ok(snapshot.len() != before)
            }
        }
    }

    /// On-disk format.
    pub fn format(&self) -> Format {
        match &self.0 {
            Inner::Tensilo(_) => Format::Tensilo,
            Inner::Zrecord { .. } => Format::Zrecord,
        }
    }

    /// The store, when it has our own format.
    pub fn as_store(&self) -> Option<&Store> {
        match &self.0 {
            Inner::Tensilo(store) => Some(store),
            Inner::Zrecord { .. } => None,
        }
    }

    fn gather(&self) -> &dyn Gather {
        match &self.0 {
            Inner::Tensilo(store) => store,
            Inner::Zrecord { snapshot, .. } => &**snapshot,
        }
    }

    /// Number of commits up to this snapshot; 0 in a Zrecord store, which does not count them.
    pub fn generation(&self) -> u64 {
        self.as_store().map_or(0, Store::generation)
    }

    /// The metadata, JSON text; `None` when there is none, as in every Zrecord store.
    ///
    /// # Errors
    /// `Corrupt`, `Limit`, `Io`.
    pub fn metadata(&self) -> Result<Option<String>> {
        self.as_store().map_or(Ok(None), Store::metadata)
    }

    /// How writers store the fields unless told otherwise; empty in a Zrecord store, which does not say.
    pub fn encodings(&self) -> &[String] {
        self.as_store().map_or(&[], Store::encodings)
    }

    /// What the store holds and takes.
    ///
    /// # Errors
    /// `Io`.
    pub fn stats(&self) -> Result<Stats> {
        match &self.0 {
            Inner::Tensilo(store) => Ok(store.stats()),
            Inner::Zrecord { store, .. } => {
                let s = store.stats()?;
                Ok(Stats {
                    records: s.records,
                    generation: 0,
                    live_bytes: s.live_bytes,
                    file_bytes: s.chunk_bytes,
                    reclaimable: s.reclaimable(),
                })
            }
        }
    }

    /// One field of one record.
    ///
    /// # Errors
    /// `InvalidArgument` for an id or field that does not exist; `Corrupt`, `Limit`, `Io`.
    pub fn get(&self, id: u64, field: usize) -> Result<Vec<u8>> {
        if let Inner::Tensilo(store) = &self.0 {
            return store.get(id, field);
        }
        let values = tensilo_core::gather::gather(
            self.gather(),
            &[id],
            &[field],
            &Budget::default(),
            Threads::ONE,
            &Quiet,
        )?;
        Ok(values.into_iter().next().map(|v| v.bytes).unwrap_or_default())
    }

    /// Some of the records, in the order of the list.
    ///
    /// # Errors
    /// `InvalidArgument` for an id that does not exist.
    pub fn view(&self, ids: impl Into<Arc<[u64]>>) -> Result<View> {
        View::new(Arc::new(self.clone()), ids)
    }

    /// Reads and decodes everything, and says what is damaged. A Zrecord store has no checksums: only what cannot be
    /// decoded is seen there.
    ///
    /// # Errors
    /// `Io`; the monitor's.
    pub fn verify(&self, threads: Threads, monitor: &dyn Monitor) -> Result<Verified> {
        if let Inner::Tensilo(store) = &self.0 {
            return store.verify(threads, monitor);
        }
        let mut answer = Verified { records: self.len(), ..Verified::default() };
        for id in 0..self.len() {
            monitor.poll(&Progress { stage: "verifying", done: id, total: self.len() })?;
            for (field, schema) in self.schema().fields().iter().enumerate() {
                match self.get(id, field) {
                    Ok(bytes) => answer.bytes += bytes.len() as u64,
                    Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) => {
                        answer.bad_records += 1;
                        answer.problems += 1;
                        if answer.described.len() < 1000 {
                            let place = Where::Record { id, field: schema.name.clone() };
                            answer.described.push(Problem { place, message: e.message().to_owned() });
                        }
                    }
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(answer)
    }
}

impl Gather for Records {
    fn schema(&self) -> &Schema {
        self.gather().schema()
    }

    fn len(&self) -> u64 {
        self.gather().len()
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        self.gather().fingerprint()
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        self.gather().lengths(field, ids, steps)
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.gather().gather_into(ids, into, threads, monitor)
    }
}

/// A record store of either format, open for writing.
#[derive(Debug)]
pub enum RecordsWriter {
    /// Our own format.
    Tensilo(Box<StoreWriter>),
    /// Zrecord v1: what is appended is committed at once.
    Zrecord(Box<Zrecord>),
}

impl RecordsWriter {
    /// Makes a new store of our own format and opens it.
    ///
    /// # Errors
    /// As [`StoreWriter::create`].
    pub fn create(path: impl AsRef<Path>, schema: Schema, options: WriterOptions) -> Result<Self> {
        StoreWriter::create(path, schema, options).map(|w| Self::Tensilo(Box::new(w)))
    }

    /// Opens a store of either format; of the options, a Zrecord store takes the time to wait, the threads and the disk.
    ///
    /// # Errors
    /// As [`StoreWriter::open`] and [`Zrecord::open`].
    pub fn open(path: impl AsRef<Path>, options: WriterOptions) -> Result<Self> {
        match Format::of(&path)? {
            Format::Tensilo => StoreWriter::open(path, options).map(|w| Self::Tensilo(Box::new(w))),
            Format::Zrecord => {
                let options = ZrecordOptions {
                    lock_wait: options.wait,
                    threads: options.threads,
                    budget: Budget::new(options.limits),
                    disk: options.disk,
                    ..ZrecordOptions::default()
                };
                Zrecord::open(path, options).map(|z| Self::Zrecord(Box::new(z)))
            }
        }
    }

    /// On-disk format.
    pub fn format(&self) -> Format {
        match self {
            Self::Tensilo(_) => Format::Tensilo,
            Self::Zrecord(_) => Format::Zrecord,
        }
    }

    /// What a record is made of.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn schema(&self) -> Result<Schema> {
        match self {
            Self::Tensilo(w) => Ok(w.schema().clone()),
            Self::Zrecord(z) => Ok(z.snapshot()?.schema().clone()),
        }
    }

    /// Records, those not committed yet included.
    pub fn len(&self) -> u64 {
        match self {
            Self::Tensilo(w) => w.len(),
            Self::Zrecord(z) => z.len(),
        }
    }

    /// Is there no record?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends records, one column for each field, and returns their ids; durable after [`commit`](Self::commit).
    ///
    /// # Errors
    /// As [`StoreWriter::append`] and [`Zrecord::append`].
    pub fn append(&mut self, records: u64, columns: &[Column<'_>]) -> Result<Range<u64>> {
        let z = match self {
            Self::Tensilo(w) => return w.append(records, columns),
            Self::Zrecord(z) => z,
        };
        let schema = z.snapshot()?.schema().clone();
        let ([field], [column]) = (schema.fields(), columns) else {
            return Err(Error::invalid(format!("{} columns for one field", columns.len())));
        };
        let step = field.step_bytes()?;
        let count = usize::try_from(records).map_err(|_| Error::limit("too many records at once"))?;
        let first = match (field.is_ragged(), column.steps) {
            (false, None) => {
                let len = usize::try_from(step).map_err(|_| Error::limit("records of this size"))?;
                if count.checked_mul(len) != Some(column.bytes.len()) {
                    let n = column.bytes.len();
                    return Err(Error::invalid(format!("{n} bytes for {records} records of {len}")));
                }
                z.append(Items::Fixed { bytes: column.bytes, stride: len, len, count }, None)?
            }
            (true, Some(steps)) if steps.len() == count => {
                let (mut starts, mut lens, mut at) = (Vec::new(), Vec::new(), 0_u64);
                for n in steps {
                    let bytes = n
                        .checked_mul(step)
                        .and_then(|b| u32::try_from(b).ok())
                        .ok_or_else(|| Error::limit(format!("a record of {n} steps")))?;
                    starts.push(at);
                    lens.push(bytes);
                    at += u64::from(bytes);
                }
                if at != column.bytes.len() as u64 {
                    return Err(Error::invalid(format!("{} bytes for lengths of {at}", column.bytes.len())));
                }
                z.append(Items::Ragged { bytes: column.bytes, starts: &starts, lens: &lens }, None)?
            }
            _ => return Err(Error::invalid("a ragged field needs one length a record, a fixed one none")),
        };
        Ok(first..first + records)
    }

    /// Makes everything appended durable and visible.
    ///
    /// # Errors
    /// As [`StoreWriter::commit`].
    pub fn commit(&mut self) -> Result<()> {
        match self {
            Self::Tensilo(w) => w.commit().map(drop),
            Self::Zrecord(_) => Ok(()),
        }
    }

    /// Deletes records: from the largest id on, the last record takes the place of each. Durable when it returns.
    ///
    /// # Errors
    /// As [`StoreWriter::delete`] and [`Zrecord::delete`].
    pub fn delete(&mut self, ids: &[u64]) -> Result<()> {
        match self {
            Self::Tensilo(w) => w.delete(ids).map(drop),
            Self::Zrecord(z) => z.delete(ids),
        }
    }

    /// Gives the space of deleted records back.
    ///
    /// # Errors
    /// As [`StoreWriter::compact`] and [`Zrecord::compact`].
    pub fn compact(&mut self, monitor: &dyn Monitor) -> Result<()> {
        match self {
            Self::Tensilo(w) => w.compact(monitor).map(drop),
            Self::Zrecord(z) => z.compact(monitor),
        }
    }

    /// Replaces the metadata with the next commit.
    ///
    /// # Errors
    /// As [`StoreWriter::set_metadata`]; `Unsupported` in a Zrecord store.
    pub fn set_metadata(&mut self, text: &str) -> Result<()> {
        match self {
            Self::Tensilo(w) => w.set_metadata(text),
            Self::Zrecord(_) => Err(Error::unsupported("a Zrecord store has no metadata")),
        }
    }
}
