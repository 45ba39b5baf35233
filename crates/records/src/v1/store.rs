//! The handle of a store: creating, opening, reading, and the frame in which changes happen.

use super::chunks::{Chunks, Opening};
use super::codec::{Codec, Pool};
use super::fault::Fault;
use super::files::{self, Handle};
use super::format::{ENTRY_LEN, Entry, HEADER_LEN, Header, entry_at};
use super::journal::Journal;
use super::place::{Frontier, Geometry};
use super::read::Source;
use super::schema;
use super::snapshot::ZrecordSnapshot;
use super::table::Table;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tensilo_core::gather::Places;
use tensilo_core::io::{Disk, DiskFile, LockKind, SystemDisk};
use tensilo_core::limits::Budget;
use tensilo_core::progress::Monitor;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Result};

/// Entries that are read from the file at once.
const ENTRIES_AT_ONCE: u64 = 1 << 16;

/// How a store is opened or created.
#[derive(Debug, Clone)]
pub struct ZrecordOptions {
    /// How records are stored when the call does not say.
    pub codec: Codec,
    /// Open for reading only: needs no permission to write, changes nothing.
    pub read_only: bool,
    /// How long to wait for another process that holds a lock.
    pub lock_wait: Duration,
    /// Threads that compress.
    pub threads: Threads,
    /// Memory that the record table may take: 16 bytes a record.
    pub budget: Budget,
    /// Sizes; anything but the default is for tests.
    pub geometry: Geometry,
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// Map the data files and read them past `disk`; false for a disk that is no real one.
    pub mapped: bool,
}

impl Default for ZrecordOptions {
    fn default() -> Self {
        Self {
            codec: Codec::default(),
            read_only: false,
            lock_wait: Duration::from_secs(10),
            threads: Threads::default(),
            budget: Budget::default(),
            geometry: Geometry::default(),
            disk: SystemDisk::shared(),
            mapped: true,
        }
    }
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Records.
    pub records: u64,
    /// Bytes that their stored forms take.
    pub live_bytes: u64,
    /// Bytes up to where the next record goes, all data files together.
    pub chunk_bytes: u64,
}

impl Stats {
    /// Bytes that compacting could give back, but for less than one record at the end of each data file.
    pub fn reclaimable(&self) -> u64 {
        self.chunk_bytes.saturating_sub(self.live_bytes)
    }
}

/// What reads use: replaced as a whole when records move.
#[derive(Debug)]
pub(super) struct State {
    pub table: Arc<Table>,
    pub chunks: Arc<Chunks>,
    /// A change failed, and the table could not be read again.
    pub broken: bool,
}

/// An open Zrecord v1 store. Any number of threads may use it: reads and appends go on side by side.
#[derive(Debug)]
pub struct Zrecord {
    pub(super) folder: PathBuf,
    pub(super) options: ZrecordOptions,
    pub(super) meta: Handle,
    /// Holds the presence lock; snapshots do too.
    presence: Arc<Handle>,
    state: RwLock<State>,
    pub(super) pool: Arc<Pool>,
    turn: Mutex<()>,
    process: u32,
}

impl Zrecord {
    /// Creates an empty store; the folder may exist if nothing but a schema is in it, the folder above it must.
    ///
    /// # Errors
    /// `AlreadyExists` when there is a store; `NotFound` without a folder above; `Io`, `InsufficientDisk`.
    pub fn create(folder: impl AsRef<Path>, options: ZrecordOptions) -> Result<Self> {
        let (folder, disk) = (folder.as_ref(), &*options.disk);
        let geometry = options.geometry.clamped();
        match disk.create_dir(folder) {
            Ok(()) => {
                let parent = folder.parent().unwrap_or(Path::new(""));
                if folder.file_name().is_some() {
                    disk.sync_dir(parent)?;
                }
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
        let mut has_chunk = false;
        for name in disk.list(folder)? {
            let name = name.to_string_lossy().into_owned();
            if name == files::META {
                return Err(Error::already_exists("there is a store").in_file(folder));
            } else if name == files::META_NEW {
                disk.unlink(&folder.join(&name))?;
            } else if name == files::chunk_name(0) && disk.open(&folder.join(&name))?.is_empty()? {
                has_chunk = true;
            } else if name != schema::SCHEMA_FILE {
                return Err(Error::already_exists(format!("the folder holds {name:?}")).in_file(folder));
            }
        }
        if !has_chunk {
            disk.create_new(&folder.join(files::chunk_name(0)))?.sync()?;
        }
        disk.sync_dir(folder)?;
        let made = files::create_meta(disk, folder, &Header { frontier: Frontier::START, len: 0 }, geometry);
        if let Err(e) = made {
            disk.unlink(&folder.join(files::META_NEW)).ok();
            return Err(e);
        }
        disk.sync_dir(folder)?;
        Self::open(folder, options)
    }

    /// Opens a store; what a crash left half done is finished first, or looked through when open for reading only.
    ///
    /// # Errors
    /// `NotFound` when there is no store; `Corrupt`, `Unsupported` for a damaged or newer one; `Locked` while
    /// another process deletes or compacts; `Limit` when the table needs more than the budget; `Io`.
    pub fn open(folder: impl AsRef<Path>, options: ZrecordOptions) -> Result<Self> {
        let (folder, mut options) = (folder.as_ref(), options);
        options.geometry = options.geometry.clamped();
        // On a disk that is no real one, everything goes through it.
        let past_disk = options.read_only && options.mapped;
        let open = |name: &str| {
            Handle::open(&*options.disk, &folder.join(name), past_disk).map_err(|e| match e.kind() {
                ErrorKind::NotFound => files::not_a_store(folder, &format!("there is no {name}")),
                _ => e,
            })
        };
        let (meta, presence) = (open(files::META)?, open(&files::chunk_name(0))?);
        presence.lock(LockKind::Shared, options.lock_wait)?;
        let opening =
            Opening { folder: folder.to_path_buf(), disk: options.disk.clone(), mapped: options.mapped };
        let table = Arc::new(Table::new(options.geometry, options.budget.clone()));
        let state = State { table, chunks: Arc::new(Chunks::new(opening)), broken: false };
        let store = Self {
            folder: folder.to_path_buf(),
            options,
            meta,
            presence: Arc::new(presence),
            state: RwLock::new(state),
            pool: Arc::default(),
            turn: Mutex::default(),
            process: std::process::id(),
        };
        if store.options.read_only {
            let journal = Journal::read(&store)?;
            store.load(&store.read_state(), journal.as_ref())?;
        } else if Journal::exists(&store)? {
            // Another handle may be the one that finishes it, or be gone by now.
            store.alone(|_, _| Ok(()))?;
        } else {
            store.load(&store.read_state(), None)?;
        }
        Ok(store)
    }

    /// Opens a store, or creates it when there is none and the folder above exists.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`create`](Self::create).
    pub fn open_or_create(folder: impl AsRef<Path>, options: ZrecordOptions) -> Result<Self> {
        let folder = folder.as_ref();
        match Self::open(folder, options.clone()) {
            Err(e) if e.kind() == ErrorKind::NotFound && !options.read_only => {
                match Self::create(folder, options.clone()) {
                    // Another process was faster.
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                        Self::open(folder, options).map_err(|_| e)
                    }
                    other => other,
                }
            }
            other => other,
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How records are stored when the call does not say.
    pub fn codec(&self) -> Codec {
        self.options.codec
    }

    /// Number of records that this handle knows; [`refresh`](Self::refresh) looks for more.
    pub fn len(&self) -> u64 {
        self.read_state().table.len()
    }

    /// Is there no record?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks for records that other handles or processes have appended, and says how many there are now.
    ///
    /// # Errors
    /// `Io`; `Corrupt`.
    pub fn refresh(&self) -> Result<u64> {
        let state = self.read_state();
        if !self.options.read_only || !Journal::exists(self)? {
            let _turn = self.turn();
            self.load(&state, None)?;
        }
        Ok(state.table.len())
    }

    /// The records that this handle knows now; typed, when the folder has a schema.
    ///
    /// # Errors
    /// `Corrupt` for a damaged or foreign schema; `Io`.
    pub fn snapshot(&self) -> Result<ZrecordSnapshot> {
        let past_disk = self.options.mapped;
        let schema = schema::of_folder(&*self.options.disk, &self.folder, past_disk)?;
        self.snapshot_as(schema)
    }

    /// The records that this handle knows now, as bytes, whatever schema the folder has.
    ///
    /// # Errors
    /// `Io` after a failed change.
    pub fn snapshot_untyped(&self) -> Result<ZrecordSnapshot> {
        self.snapshot_as(schema::untyped()?)
    }

    /// The records that this handle knows now, as the one field of a schema. Records of another length than a fixed
    /// field has are errors when they are asked for.
    ///
    /// # Errors
    /// `InvalidArgument` for several fields, or a ragged one whose rows have not one byte; `Io` after a failed change.
    pub fn snapshot_as(&self, schema: tensilo_core::gather::Schema) -> Result<ZrecordSnapshot> {
        let [field] = schema.fields() else {
            return Err(Error::invalid(format!("{} fields, a record is one", schema.fields().len())));
        };
        if field.is_ragged() && field.step_bytes()? != 1 {
            return Err(Error::invalid("records of any lengths are rows of single bytes"));
        }
        let state = self.whole_state()?;
        Ok(ZrecordSnapshot {
            len: state.table.len(),
            table: state.table.clone(),
            chunks: state.chunks.clone(),
            pool: self.pool.clone(),
            schema,
            fingerprint: OnceLock::new(),
            _presence: self.presence.clone(),
        })
    }

    /// Bytes of each record of a list.
    ///
    /// # Errors
    /// `InvalidArgument` for ids that do not exist or lists of different lengths; `Corrupt`.
    pub fn lengths(&self, ids: &[u64], out: &mut [u32]) -> Result<()> {
        let state = self.whole_state()?;
        state.table.check_ids(ids, state.table.len())?;
        if ids.len() != out.len() {
            return Err(Error::invalid(format!("{} ids and room for {} lengths", ids.len(), out.len()))
                .with_source(Fault::Buffer));
        }
        let frontier = state.table.frontier();
        for (id, to) in ids.iter().zip(out) {
            *to = state.table.extent(*id, frontier)?.len;
        }
        Ok(())
    }

    /// Decodes records to their places in the caller's memory; bytes that no record covers stay as they are.
    ///
    /// Small records cost no system call and no allocation each; large batches are shared among threads. After an
    /// error the buffer holds anything.
    ///
    /// # Errors
    /// `InvalidArgument` for ids or places that do not fit, before anything is read; `Corrupt`, `Io`, naming the
    /// record; the monitor's.
    pub fn gather(
        &self,
        ids: &[u64],
        dst: &mut [u8],
        places: Places<'_>,
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let state = self.whole_state()?;
        let (table, chunks) = (&*state.table, &*state.chunks);
        let source = Source { table, chunks, pool: &self.pool, len: table.len(), exactly: None };
        source.gather(ids, dst, places, threads, monitor)
    }

    /// How much the store holds.
    ///
    /// # Errors
    /// `Io` after a failed change.
    pub fn stats(&self) -> Result<Stats> {
        let state = self.whole_state()?;
        let records = state.table.len();
        let live_bytes = (0..records).map(|id| u64::from(state.table.entry(id).stored)).sum();
        let Frontier { chunk, offset } = state.table.frontier();
        let chunk_bytes = u64::from(chunk) * self.options.geometry.chunk_bytes + u64::from(offset);
        Ok(Stats { records, live_bytes, chunk_bytes })
    }

    /// Makes everything durable that any process has written to the store; what this crate appends is so already.
    ///
    /// # Errors
    /// `Io`, `InsufficientDisk`; `InvalidArgument` when open for reading only.
    pub fn sync(&self) -> Result<()> {
        let disk = &*self.options.disk;
        let last = self.whole_state()?.table.frontier().chunk;
        self.meta.writable()?;
        for chunk in 0..=last {
            disk.open(&self.folder.join(files::chunk_name(chunk)))?.sync()?;
        }
        self.meta.writable()?.sync()?;
        disk.sync_dir(&self.folder)
    }

    pub(super) fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, unless a failed change has left it unknown.
    pub(super) fn whole_state(&self) -> Result<RwLockReadGuard<'_, State>> {
        let state = self.read_state();
        if state.broken {
            return Err(Error::new(ErrorKind::Io, "a change failed before; open the store again")
                .in_file(&self.folder));
        }
        Ok(state)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the writer lock and this handle's turn; both end with the returned values.
    pub(super) fn writing(&self) -> Result<(MutexGuard<'_, ()>, Box<dyn DiskFile>)> {
        self.meta.writable()?;
        let turn = self.turn();
        // A file opened for this alone: a process that forked shares the others, and so their locks.
        let file = Handle::Disk(self.options.disk.open(&self.folder.join(files::META))?);
        file.lock(LockKind::Exclusive, self.options.lock_wait)?;
        match file {
            Handle::Disk(file) => Ok((turn, file)),
            Handle::ReadOnly(_, path) => {
                Err(Error::invalid("the store is open for reading only").in_file(path))
            }
        }
    }

    /// Reads a header that no append was changing meanwhile.
    pub(super) fn header(&self) -> Result<Header> {
        let read = || -> Result<[u8; HEADER_LEN]> {
            let mut bytes = [0; HEADER_LEN];
            let len = self.meta.len()?;
            if len < HEADER_LEN as u64 {
                return Err(files::not_a_store(&self.folder, &format!("its table has {len} bytes")));
            }
            self.meta.read_at(0, &mut bytes)?;
            Ok(bytes)
        };
        let mut bytes = read()?;
        loop {
            let again = read()?;
            if again == bytes {
                break;
            }
            bytes = again;
        }
        let header = Header::parse(&bytes, &self.options.geometry);
        let header = header.map_err(|e| e.in_file(self.folder.join(files::META)))?;
        let (has, needs) = (self.meta.len()?, entry_at(header.len));
        if has < needs {
            let message = format!("the table ends at byte {has}; {} records need {needs}", header.len);
            return Err(Error::corrupt(message)
                .in_file(self.folder.join(files::META))
                .with_source(Fault::NotAStore));
        }
        Ok(header)
    }

    /// Reads entries that the table does not have yet, and shows them; a journal is looked through.
    pub(super) fn load(&self, state: &State, journal: Option<&Journal>) -> Result<Header> {
        let mut header = self.header()?;
        if let Some(journal) = journal.filter(|j| j.is_about(&header)) {
            header = journal.after;
        }
        let known = state.table.len();
        if header.len < known {
            return Err(Error::source_changed(format!(
                "the store had {known} records and has {} now",
                header.len
            ))
            .in_file(&self.folder)
            .hint("it was changed by a program that takes no locks; open it again"));
        }
        if header.len > known || header.frontier != state.table.frontier() {
            self.load_entries(&state.table, known..header.len)?;
            for (index, entry) in journal.map_or(&[][..], |j| &j.entries) {
                state.table.set(*index, entry)?;
            }
            state.table.publish(header.len, header.frontier);
        }
        Ok(header)
    }

    fn load_entries(&self, table: &Table, range: std::ops::Range<u64>) -> Result<()> {
        let mut bytes = Vec::new();
        let mut next = range.start;
        while next < range.end {
            let count = (range.end - next).min(ENTRIES_AT_ONCE);
            bytes.resize(count as usize * ENTRY_LEN, 0);
            self.meta.read_at(entry_at(next), &mut bytes)?;
            for (i, raw) in bytes.as_chunks::<ENTRY_LEN>().0.iter().enumerate() {
                table.set(next + i as u64, &Entry::parse(raw))?;
            }
            next += count;
        }
        Ok(())
    }

    /// Runs a change that no other handle may look at, under both locks and after finishing what a crash left.
    ///
    /// Afterwards the table in memory is what the files say, whatever happened.
    pub(super) fn alone<T>(&self, change: impl FnOnce(&Self, &State) -> Result<T>) -> Result<T> {
        self.meta.writable()?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if self.process != std::process::id() {
            return Err(Error::new(
                ErrorKind::Locked,
                "the handle was opened before this process forked off",
            )
            .hint("open the store again in this process")
            .in_file(&self.folder));
        }
        if Arc::strong_count(&state.chunks) > 1 {
            return Err(
                Error::new(ErrorKind::Locked, "a snapshot of these records is in use").in_file(&self.folder)
            );
        }
        let writing = self.writing()?;
        // Own maps hold locks like everyone's.
        state.chunks = Arc::new(Chunks::new(self.opening()));
        if let Err(e) = self.presence.lock(LockKind::Exclusive, Duration::ZERO) {
            // Changing a lock may lose it; nobody else can have taken it alone without the writer lock.
            self.presence.lock(LockKind::Shared, self.options.lock_wait)?;
            return Err(match e.kind() {
                ErrorKind::Locked => e.context("other handles use the store"),
                _ => e,
            });
        }
        let result = self.finish_and_load(&mut state).and_then(|()| change(self, &state));
        let again = match &result {
            Ok(_) => Ok(()),
            Err(_) => self.finish_and_load(&mut state),
        };
        state.broken = again.is_err();
        self.presence.lock(LockKind::Shared, self.options.lock_wait)?;
        drop(writing);
        result
    }

    fn opening(&self) -> Opening {
        Opening { folder: self.folder.clone(), disk: self.options.disk.clone(), mapped: self.options.mapped }
    }

    /// Finishes what a journal says and reads the table afresh.
    fn finish_and_load(&self, state: &mut RwLockWriteGuard<'_, State>) -> Result<()> {
        Journal::finish(self)?;
        state.chunks = Arc::new(Chunks::new(self.opening()));
        state.table = Arc::new(Table::new(self.options.geometry, self.options.budget.clone()));
        self.load(state, None).map(drop)
    }
}
