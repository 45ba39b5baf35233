//! Opening a store: a snapshot of what was committed, which stays as it is while others append, delete and compact.

use super::codec::Pool;
use super::entry::{ENTRY, LARGEST_CELL};
use super::layout::{Block, FRONT, Front, RECORD, sniff};
use super::reading::Lent;
use super::runs::Runs;
use super::schema_block::{self, LARGEST_SCHEMA};
use super::state::{FAN, LEAF, PAGE, State, full_pages};
use super::table::Table;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::gather::Schema;
use tensilo_core::io::{ByteSource, FileSource, Fingerprint, MappedSource};
use tensilo_core::{Budget, Error, ErrorKind, Limits, Result};

/// How often a front is read that a writer is just changing.
const TRIES: usize = 32;
/// Most bytes of metadata.
pub(crate) const LARGEST_METADATA: u64 = 64 << 20;
/// Most bytes of a dictionary.
pub(crate) const LARGEST_DICTIONARY: u64 = 16 << 20;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// What the file's numbers may make us allocate.
    pub limits: Limits,
    /// Is the file mapped? Where that is not safe (network file systems) it is read by position.
    pub map: bool,
}

impl Default for OpenOptions {
    /// Default limits; mapped.
    fn default() -> Self {
        Self { limits: Limits::default(), map: true }
    }
}

/// A record store, open for reading: one snapshot. Clones are cheap and show the same.
///
/// ```
/// use tensilo_core::dtype::DType;
/// use tensilo_core::gather::{FieldSchema, Schema};
/// use tensilo_records::store::{Column, Store, StoreWriter, WriterOptions};
/// # let path = std::env::temp_dir().join(format!("tensilo-records-doc-{}.trec", std::process::id()));
/// let schema = Schema::new(vec![
///     FieldSchema::fixed("image", DType::U8, [2, 2]),
///     FieldSchema::fixed("label", DType::U8, []),
/// ])?;
/// let mut writer = StoreWriter::create(&path, schema, WriterOptions::default())?;
/// writer.append(2, &[Column::fixed(&[1, 2, 3, 4, 5, 6, 7, 8]), Column::fixed(&[0, 1])])?;
/// writer.commit()?;
///
/// let store = Store::open(&path)?;
/// assert_eq!(store.get(1, 0)?, [5, 6, 7, 8]);
/// # use tensilo_core::io::Disk;
/// # tensilo_core::io::SystemDisk.unlink(&path)?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Store(pub(crate) Arc<Snapshot>);

/// What a field's cells look like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldForm {
    /// Bytes of a step.
    pub step: u64,
    /// Bytes of an element.
    pub element: usize,
    pub ragged: bool,
}

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub source: Arc<dyn ByteSource>,
    pub path: Option<PathBuf>,
    pub options: OpenOptions,
    /// What the file was, to see whether another took its place.
    pub file: Option<(u64, u64)>,
    pub state: State,
    /// Where what was committed ends.
    pub end: u64,
    pub schema: Schema,
    pub forms: Vec<FieldForm>,
    pub table: Table,
    /// Raw cells that were compared.
    pub runs: Runs,
    /// How writers store the fields, as text.
    pub encodings: Vec<String>,
    pub dictionaries: Vec<Arc<[u8]>>,
    pub pool: Pool,
    pub budget: Budget,
}

/// What a store holds and takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Records.
    pub records: u64,
    /// Number of commits, compactions counted too.
    pub generation: u64,
    /// Bytes of the live records' cells outside the table.
    pub live_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes that compaction would give back.
    pub reclaimable: u64,
}

/// The bytes behind the commit records, mapped.
#[derive(Debug)]
struct Committed(MappedSource);

impl Committed {
    fn inside(offset: u64) -> Result<u64> {
        offset.checked_sub(FRONT).ok_or_else(|| Error::corrupt("the commit records are no data").at(offset))
    }
}

impl ByteSource for Committed {
    fn len(&self) -> u64 {
        FRONT + self.0.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_at(Self::inside(offset)?, buf)
    }

    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        self.0.borrow(range.start.checked_sub(FRONT)?..range.end.checked_sub(FRONT)?)
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        self.0.fingerprint()
    }

    fn path(&self) -> Option<&Path> {
        self.0.path()
    }
}

/// Does the file begin like a store of this format?
///
/// # Errors
/// `NotFound`, `Io`; `InvalidArgument` for a folder.
pub fn is_store(path: impl AsRef<Path>) -> Result<bool> {
    let source = FileSource::open(path)?;
    Ok(sniff(&front_bytes(&source)?))
}

/// The first bytes of a source, as many as there are.
pub(crate) fn front_bytes(source: &dyn ByteSource) -> Result<Vec<u8>> {
    let mut front = vec![0; FRONT.min(source.len()) as usize];
    source.read_at(0, &mut front)?;
    Ok(front)
}

/// Reads a block that was committed and compares it with its checksum.
pub(crate) fn read_block(
    source: &dyn ByteSource,
    block: Block,
    most: u64,
    budget: &Budget,
    what: &str,
) -> Result<Vec<u8>> {
    block.check(source.len(), what)?;
    if block.bytes > most {
        return Err(Error::corrupt(format!("{what} of {} bytes", block.bytes)).at(block.offset));
    }
    let (mut bytes, _charge) = budget.buffer(block.bytes, what)?;
    source.read_at(block.offset, &mut bytes)?;
    if crc32c::crc32c(&bytes) != block.crc {
        return Err(Error::corrupt(format!("{what} does not match its checksum")).at(block.offset));
    }
    Ok(bytes)
}

/// Reads the state that a commit record names.
pub(crate) fn read_state(
    source: &dyn ByteSource,
    generation: u64,
    block: Block,
    budget: &Budget,
) -> Result<State> {
    block.check(source.len(), "state block").map_err(|e| e.context("the store is truncated"))?;
    let (mut bytes, _charge) = budget.buffer(block.bytes, "state block")?;
    source.read_at(block.offset, &mut bytes)?;
    let state = State::parse(&bytes, block.offset)?;
    let crc = crc32c::crc32c(bytes.get(..bytes.len().saturating_sub(4)).unwrap_or(&[]));
    if state.generation != generation || crc != block.crc {
        return Err(Error::corrupt(format!(
            "the state block is of generation {}, the commit record of {generation}",
            state.generation
        ))
        .at(block.offset));
    }
    Ok(state)
}

/// What the blocks hold that a state refers to.
pub(crate) struct SchemaAndMore {
    pub schema: Schema,
    /// How writers store the fields, as text.
    pub encodings: Vec<String>,
    pub dictionaries: Vec<Arc<[u8]>>,
}

/// The schema and the dictionaries of a state.
pub(crate) fn read_schema(source: &dyn ByteSource, state: &State, budget: &Budget) -> Result<SchemaAndMore> {
    let block = read_block(source, state.schema, LARGEST_SCHEMA, budget, "schema")?;
    let (schema, encodings) = schema_block::parse(&block)?;
    if schema.fields().len() != state.fields {
        return Err(Error::corrupt(format!(
            "the schema has {} fields, the table {}",
            schema.fields().len(),
            state.fields
        )));
    }
    let dictionary = |b: &Block| Ok(read_block(source, *b, LARGEST_DICTIONARY, budget, "dictionary")?.into());
    let dictionaries = state.dictionaries.iter().map(dictionary).collect::<Result<_>>()?;
    Ok(SchemaAndMore { schema, encodings, dictionaries })
}

/// What the cells of a schema's fields look like.
pub(crate) fn forms(schema: &Schema) -> Result<Vec<FieldForm>> {
    let form = |f: &tensilo_core::gather::FieldSchema| {
        let element = f.dtype.size() as usize;
        Ok(FieldForm { step: f.step_bytes()?, element, ragged: f.is_ragged() })
    };
    schema.fields().iter().map(form).collect()
}

/// Bytes of all pages of a table.
fn table_bytes(state: &State) -> u64 {
    let leaves = full_pages(state.len, 0) * LEAF * (state.fields * ENTRY) as u64;
    let above = (1..).map(|level| full_pages(state.len, level)).take_while(|n| *n > 0);
    leaves + above.map(|n| n * PAGE as u64).sum::<u64>()
}

impl Store {
    /// Opens what is committed now.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` for a file that is damaged, truncated or no record store; `Unsupported`; `Limit`; `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::open_once(path, &options) {
                // A writer may be between its two commit records, or have committed since the length was asked for.
                Err(e) if e.kind() == ErrorKind::Corrupt && tries < TRIES => std::thread::yield_now(),
                other => return other.map_err(|e| e.in_file(path)),
            }
        }
    }

    fn open_once(path: &Path, options: &OpenOptions) -> Result<Self> {
        let source = FileSource::open(path)?;
        let front = front_bytes(&source)?;
        if !sniff(&front) {
            return Err(Error::corrupt("the file is no record store"));
        }
        let record = Front::parse(&front)?.newest()?;
        let file = source.fingerprint()?;
        let end = record.state.end().unwrap_or(u64::MAX);
        let mapped = options.map.then(|| MappedSource::open_committed(source.file(), path, FRONT..end));
        let source: Arc<dyn ByteSource> = match mapped {
            Some(Ok(map)) => Arc::new(Committed(map)),
            Some(Err(e)) if e.kind() != ErrorKind::Unsupported => return Err(e),
            _ => Arc::new(source),
        };
        let mut snapshot = Snapshot::read(source, record.generation, record.state, options)?;
        snapshot.path = Some(path.to_path_buf());
        snapshot.file = Some((file.device, file.inode));
        Ok(Self(Arc::new(snapshot)))
    }

    /// Opens a store that a source holds.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(source: Arc<dyn ByteSource>, options: &OpenOptions) -> Result<Self> {
        let record = Front::parse(&front_bytes(&*source)?)?.newest()?;
        Snapshot::read(source, record.generation, record.state, options).map(|s| Self(Arc::new(s)))
    }

    /// Shows what is committed now, if that is more recent; says whether it was. Other clones stay as they are.
    ///
    /// # Errors
    /// As [`open`](Self::open); the handle then shows what it showed.
    pub fn refresh(&mut self) -> Result<bool> {
        let Some(path) = &self.0.path else { return Ok(false) };
        let source = FileSource::open(path)?;
        let file = source.fingerprint()?;
        if let Ok(record) = Front::parse(&front_bytes(&source)?).and_then(|front| front.newest())
            && record.generation == self.0.state.generation
            && self.0.file == Some((file.device, file.inode))
        {
            return Ok(false);
        }
        let fresh = Self::open_with(path, self.0.options.clone())?;
        let newer = fresh.0.state.generation != self.0.state.generation || fresh.0.file != self.0.file;
        *self = fresh;
        Ok(newer)
    }

    /// Where the store is, if it was opened by a path.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Number of commits up to this snapshot; compactions count too.
    pub fn generation(&self) -> u64 {
        self.0.state.generation
    }

    /// The metadata, JSON text; `None` when there is none.
    ///
    /// # Errors
    /// `Corrupt`, `Limit`, `Io`.
    pub fn metadata(&self) -> Result<Option<String>> {
        let s = &*self.0;
        let Some(block) = s.state.metadata else { return Ok(None) };
        let bytes = read_block(&*s.source, block, LARGEST_METADATA, &s.budget, "metadata")?;
        String::from_utf8(bytes).map(Some).map_err(|_| Error::corrupt("the metadata is no text"))
    }

    /// How writers store the fields unless told otherwise, one text for each field: `"bitshuffle+zstd:3"`.
    pub fn encodings(&self) -> &[String] {
        &self.0.encodings
    }

    /// What the store holds and takes.
    pub fn stats(&self) -> Stats {
        let s = &*self.0;
        let extra: u64 = s.state.dictionaries.iter().chain(&s.state.metadata).map(|b| b.bytes).sum();
        let state = s.state.encode().map_or(0, |b| b.len() as u64);
        let needed =
            FRONT + s.state.schema.bytes + extra + s.state.live_bytes + table_bytes(&s.state) + state;
        Stats {
            records: s.state.len,
            generation: s.state.generation,
            live_bytes: s.state.live_bytes,
            file_bytes: s.end,
            reclaimable: s.end.saturating_sub(needed),
        }
    }

    /// One field of one record.
    ///
    /// # Errors
    /// `InvalidArgument` for an id or field that does not exist; `Corrupt`, `Limit`, `Io`.
    pub fn get(&self, id: u64, field: usize) -> Result<Vec<u8>> {
        let s = &*self.0;
        let entry = s.entry(id, field)?;
        let (mut bytes, _charge) = s.budget.buffer(entry.raw.min(LARGEST_CELL), "a record")?;
        s.read_cell(&mut Lent::new(s), id, field, &mut bytes).map(|()| bytes)
    }
}

impl Snapshot {
    pub fn read(
        source: Arc<dyn ByteSource>,
        generation: u64,
        block: Block,
        options: &OpenOptions,
    ) -> Result<Self> {
        let budget = Budget::new(options.limits.clone());
        let state = read_state(&*source, generation, block, &budget)?;
        let SchemaAndMore { schema, encodings, dictionaries } = read_schema(&*source, &state, &budget)?;
        Ok(Self {
            path: None,
            options: options.clone(),
            file: None,
            end: block.end().unwrap_or(u64::MAX),
            forms: forms(&schema)?,
            table: Table::new(&state, budget.clone()),
            runs: Runs::new(state.len, state.fields, budget.clone()),
            encodings,
            dictionaries,
            pool: Pool::default(),
            source,
            state,
            schema,
            budget,
        })
    }
}

const _: () = assert!(RECORD <= 512 && FAN >= 2, "a commit record is one sector");
