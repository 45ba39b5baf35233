//! The one writer of a store: appends collect behind the committed end, and a commit makes them durable and visible.
//!
//! A commit is: bytes and pages written, state block written; sync; first commit record; sync; second commit record.
//! So the second record is durable before the first is next written, and at every moment one of the two is whole.

use super::appender::{Appender, FileBytes};
use super::codec::{Encoding, Pool};
use super::layout::{COPIES, CommitRecord, FRONT, Front, RECORD, sniff};
use super::schema_block;
use super::snapshot::{
    FieldForm, LARGEST_DICTIONARY, LARGEST_METADATA, SchemaAndMore, forms, front_bytes, read_schema,
    read_state,
};
use super::state::{MOST_DICTIONARIES, State};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tensilo_core::gather::Schema;
use tensilo_core::io::{Disk, DiskFile, LockKind, Staged, SystemDisk};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, ErrorKind, Limits, Result};

/// How a store is written.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// How all fields are stored; `None` for what the store's schema says, raw in a new store.
    pub encoding: Option<Encoding>,
    /// How single fields are stored, by name; goes before `encoding`.
    pub field_encodings: Vec<(String, Encoding)>,
    /// Metadata of a new store, JSON text.
    pub metadata: Option<String>,
    /// A Zstandard dictionary for a new store.
    pub dictionary: Option<Vec<u8>>,
    /// May a new store replace a file of its name?
    pub replace: bool,
    /// Does a new store take its name only with its first commit? What it replaces stays until then, and if there is
    /// no commit.
    pub whole: bool,
    /// How long to wait for another writer.
    pub wait: Duration,
    /// Threads that compress.
    pub threads: Threads,
    /// What the file's numbers may make us allocate.
    pub limits: Limits,
    /// The disk.
    pub disk: Arc<dyn Disk>,
}

impl Default for WriterOptions {
    /// The schema's encodings, no metadata, nothing replaced, no waiting, all cores.
    fn default() -> Self {
        Self {
            encoding: None,
            field_encodings: Vec::new(),
            metadata: None,
            dictionary: None,
            replace: false,
            whole: false,
            wait: Duration::ZERO,
            threads: Threads::default(),
            limits: Limits::default(),
            disk: SystemDisk::shared(),
        }
    }
}

/// A store, open for writing; other writers are locked out while it lives.
///
/// What was appended and not committed is gone when it is dropped.
#[derive(Debug)]
pub struct StoreWriter {
    pub(super) options: WriterOptions,
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn DiskFile>,
    pub(super) schema: Schema,
    pub(super) forms: Vec<FieldForm>,
    pub(super) encodings: Vec<Encoding>,
    pub(super) dictionaries: Vec<Arc<[u8]>>,
    pub(super) committed: State,
    /// Where what is committed ends.
    pub(super) end: u64,
    pub(super) next: Appender,
    pub(super) pool: Pool,
    pub(super) budget: Budget,
    /// Is there something to commit?
    pub(super) changed: bool,
    /// What takes its name with the first commit.
    pub(super) unnamed: Option<Unnamed>,
    /// Why nothing can be written any more.
    pub(super) broken: Option<String>,
}

/// A store that does not have its name yet.
#[derive(Debug)]
pub(super) struct Unnamed {
    staged: Staged,
    /// What has the name, locked: whoever else writes to it would lose what is committed.
    _replaced: Option<Box<dyn DiskFile>>,
}

/// Finds out, before any work is done, whether a new store can have the name; locks what it replaces.
fn claim(path: &Path, options: &WriterOptions) -> Result<Option<Box<dyn DiskFile>>> {
    let disk = &*options.disk;
    if disk.list(path).is_ok() {
        let what = if options.replace { "a folder is not replaced" } else { "a folder has that name" };
        return Err(Error::already_exists(what).in_file(path));
    }
    if !options.replace {
        return match disk.open(path) {
            Ok(_) => Err(Error::already_exists("the file exists").in_file(path)),
            // Publishing decides.
            Err(_) => Ok(None),
        };
    }
    match lock(disk, path, options.wait) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == ErrorKind::Locked => Err(e),
        // There is nothing, or nothing that could be open for writing.
        Err(_) => Ok(None),
    }
}

/// How the fields of a schema are stored.
fn encodings(schema: &Schema, stated: &[String], options: &WriterOptions) -> Result<Vec<Encoding>> {
    let mut encodings = Vec::with_capacity(schema.fields().len());
    for (i, field) in schema.fields().iter().enumerate() {
        let own = options.field_encodings.iter().find(|(name, _)| *name == field.name).map(|(_, e)| *e);
        encodings.push(match (own.or(options.encoding), stated.get(i)) {
            (Some(chosen), _) => chosen,
            (None, Some(text)) => text.parse().map_err(|_| {
                Error::unsupported(format!(
                    "field {:?} is stored as {text:?}, which is not known",
                    field.name
                ))
            })?,
            (None, None) => Encoding::RAW,
        });
    }
    for (name, _) in &options.field_encodings {
        schema.position(name)?;
    }
    encodings.iter().try_for_each(Encoding::check)?;
    Ok(encodings)
}

fn check_metadata(text: &str) -> Result<()> {
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map_err(|e| Error::invalid(format!("the metadata is no JSON: {e}")))?;
    if text.len() as u64 > LARGEST_METADATA {
        return Err(Error::limit(format!("metadata of {} bytes", text.len())));
    }
    Ok(())
}

impl StoreWriter {
    /// Makes a new store without records and opens it. It exists as soon as this returns, or with the first commit
    /// where the options say so.
    ///
    /// # Errors
    /// `AlreadyExists` unless replacing is allowed; `Locked` when another has what would be replaced open for writing;
    /// `InvalidArgument`, `Limit` for schemas and encodings that a store cannot have; `InsufficientDisk`, `Io`; those
    /// of [`open`](Self::open).
    pub fn create(path: impl AsRef<Path>, schema: Schema, options: WriterOptions) -> Result<Self> {
        let path = path.as_ref();
        let replaced = claim(path, &options)?;
        let staged = Staged::create(options.disk.clone(), path)?;
        Self::write_new(&staged, &schema, &options)?;
        if options.whole {
            let file = options.disk.open(staged.temporary())?;
            let mut writer = Self::open_locked(path, file, options)?;
            writer.unnamed = Some(Unnamed { staged, _replaced: replaced });
            return Ok(writer);
        }
        if options.replace {
            staged.publish_replace()?;
        } else {
            staged.publish_no_replace()?;
        }
        drop(replaced);
        Self::open(path, options)
    }

    fn write_new(staged: &Staged, schema: &Schema, options: &WriterOptions) -> Result<()> {
        let encodings = encodings(schema, &[], options)?;
        let block = schema_block::encode(schema, &encodings)?;
        let state = State::empty(super::layout::Block { offset: 0, bytes: 0, crc: 0 }, schema.fields().len());
        let mut appender = Appender::new(state, FRONT);
        appender.state.schema = appender.put_block(staged.file(), &block)?;
        if let Some(text) = &options.metadata {
            check_metadata(text)?;
            appender.state.metadata = Some(appender.put_block(staged.file(), text.as_bytes())?);
        }
        if let Some(dictionary) = &options.dictionary {
            check_dictionary(dictionary)?;
            let block = appender.put_block(staged.file(), dictionary)?;
            appender.state.dictionaries.push(block);
        }
        write_front(&mut appender, staged.file(), 1)
    }

    /// Opens a store for writing and locks other writers out.
    ///
    /// # Errors
    /// `NotFound`; `Locked` when another writer does not end in the time given; `Corrupt`, `Unsupported`, `Limit`,
    /// `Io`.
    pub fn open(path: impl AsRef<Path>, options: WriterOptions) -> Result<Self> {
        let path = path.as_ref();
        let file = lock(&*options.disk, path, options.wait)?;
        Self::open_locked(path, file, options).map_err(|e| e.in_file(path))
    }

    fn open_locked(path: &Path, file: Box<dyn DiskFile>, options: WriterOptions) -> Result<Self> {
        let len = file.len()?;
        let source = FileBytes { file: &*file, len };
        let bytes = front_bytes(&source)?;
        if !sniff(&bytes) {
            return Err(Error::corrupt("the file is no record store"));
        }
        let front = Front::parse(&bytes)?;
        let record = front.newest()?;
        let budget = Budget::new(options.limits.clone());
        let state = read_state(&source, record.generation, record.state, &budget)?;
        let SchemaAndMore { schema, encodings: stated, dictionaries } =
            read_schema(&source, &state, &budget)?;
        let end = record.state.end().unwrap_or(len);
        // What a crash left: bytes behind the end, and a commit record that is damaged or of before.
        if len > end {
            file.set_len(end)?;
        }
        if front.copies != [Some(record); 2] {
            // The good record may be in memory only; it must be durable before the other is written.
            file.sync()?;
            for (at, copy) in COPIES.into_iter().zip(front.copies) {
                if copy != Some(record) {
                    // The sync before the next commit record makes this one durable.
                    file.write_at(at, &record.encode())?;
                }
            }
        }
        Ok(Self {
            path: path.to_path_buf(),
            forms: forms(&schema)?,
            encodings: encodings(&schema, &stated, &options)?,
            next: Appender::new(state.clone(), end),
            committed: state,
            end,
            file,
            schema,
            dictionaries,
            options,
            pool: Pool::default(),
            budget,
            changed: false,
            unnamed: None,
            broken: None,
        })
    }

    /// What a record is made of.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How the fields are stored by this writer.
    pub fn encodings(&self) -> &[Encoding] {
        &self.encodings
    }

    /// Records, those not committed yet included.
    pub fn len(&self) -> u64 {
        self.next.state.len
    }

    /// Is there no record?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of commits so far.
    pub fn generation(&self) -> u64 {
        self.committed.generation
    }

    /// Where the store is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the metadata, JSON text, with the next commit.
    ///
    /// # Errors
    /// `InvalidArgument` for text that is no JSON, `Limit`, `InsufficientDisk`, `Io`.
    pub fn set_metadata(&mut self, text: &str) -> Result<()> {
        self.usable()?;
        check_metadata(text)?;
        let block = self.next.put_block(&*self.file, text.as_bytes())?;
        self.next.state.metadata = Some(block);
        self.changed = true;
        Ok(())
    }

    /// Adds a Zstandard dictionary; cells that are appended from now on and stored with Zstandard use it.
    ///
    /// # Errors
    /// `InvalidArgument`, `Limit`, `InsufficientDisk`, `Io`.
    pub fn add_dictionary(&mut self, dictionary: &[u8]) -> Result<()> {
        self.usable()?;
        check_dictionary(dictionary)?;
        if self.dictionaries.len() >= MOST_DICTIONARIES {
            return Err(Error::limit(format!("a store has at most {MOST_DICTIONARIES} dictionaries")));
        }
        let block = self.next.put_block(&*self.file, dictionary)?;
        self.next.state.dictionaries.push(block);
        self.dictionaries.push(dictionary.into());
        self.changed = true;
        Ok(())
    }

    pub(super) fn usable(&self) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(Error::invalid(format!("the writer cannot go on: {why}"))
                .hint("open the store again: it shows the last commit, or the one that failed")
                .in_file(&self.path)),
        }
    }

    /// Makes everything appended durable and visible, and returns the number of the commit. Nothing is written when
    /// nothing changed. A new store that has no name yet gets it.
    ///
    /// # Errors
    /// `InsufficientDisk`, `Io`. When the bytes could not be written the commit may be tried again; when a sync or a
    /// commit record failed the writer is of no use any more, and the store shows the last commit or this one.
    pub fn commit(&mut self) -> Result<u64> {
        self.usable()?;
        if !self.changed {
            self.take_name()?;
            return Ok(self.committed.generation);
        }
        let generation = self.committed.generation + 1;
        let before = self.next.state.generation;
        let state = match self.next.put_state(&*self.file, generation) {
            Ok(state) => state,
            Err(e) => {
                self.next.state.generation = before;
                return Err(e);
            }
        };
        let record = CommitRecord { generation, state }.encode();
        let [first, second] = COPIES;
        let steps = || {
            self.file.sync()?;
            self.file.write_at(first, &record)?;
            self.file.sync()?;
            self.file.write_at(second, &record)
        };
        if let Err(e) = steps() {
            self.broken = Some(e.message().to_owned());
            return Err(e.in_file(&self.path));
        }
        self.committed = self.next.state.clone();
        self.end = self.next.end();
        self.changed = false;
        self.take_name()?;
        Ok(generation)
    }

    /// Gives a new store its name, if it has none yet.
    fn take_name(&mut self) -> Result<()> {
        let Some(Unnamed { staged, _replaced: replaced }) = self.unnamed.take() else { return Ok(()) };
        let named = if self.options.replace { staged.publish_replace() } else { staged.publish_no_replace() };
        if let Err(e) = named {
            self.broken = Some("the store did not get its name".into());
            return Err(e);
        }
        drop(replaced);
        // The temporary name's lock is gone with it.
        if let Err(e) = self.file.try_lock(LockKind::Exclusive) {
            self.broken = Some(e.message().to_owned());
        }
        Ok(())
    }
}

impl Drop for StoreWriter {
    /// Gives the space of what was not committed back.
    fn drop(&mut self) {
        if self.changed && self.broken.is_none() && self.unnamed.is_none() {
            self.file.set_len(self.end).ok();
        }
    }
}

fn check_dictionary(dictionary: &[u8]) -> Result<()> {
    if dictionary.is_empty() || dictionary.len() as u64 > LARGEST_DICTIONARY {
        return Err(Error::invalid(format!("a dictionary of {} bytes", dictionary.len())));
    }
    Ok(())
}

/// Writes the state block of a file that is not visible yet, and both commit records.
pub(super) fn write_front(appender: &mut Appender, file: &dyn DiskFile, generation: u64) -> Result<()> {
    let state = appender.put_state(file, generation)?;
    let record = CommitRecord { generation, state }.encode();
    let mut front = vec![0; FRONT as usize];
    for at in COPIES {
        front[at as usize..at as usize + RECORD].copy_from_slice(&record);
    }
    file.write_at(0, &front)
}

/// Opens the file and takes the writer's lock, of the file that has the name then: a compaction may have put another
/// there meanwhile.
pub(super) fn lock(disk: &dyn Disk, path: &Path, wait: Duration) -> Result<Box<dyn DiskFile>> {
    let until = Instant::now() + wait;
    loop {
        let file = disk.open(path)?;
        match file.try_lock(LockKind::Exclusive) {
            Ok(()) => {
                let identity = |f: &dyn DiskFile| f.fingerprint().map(|f| (f.device, f.inode));
                if identity(&*disk.open(path)?)? == identity(&*file)? {
                    return Ok(file);
                }
            }
            Err(e) if e.kind() == ErrorKind::Locked => {
                if Instant::now() >= until {
                    return Err(
                        e.hint("another writer has the store open; wait for it, or give a time to wait")
                    );
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(e) => return Err(e),
        }
    }
}
