//! Salvaging: what is whole of a damaged store goes into a new one.

use super::compact::Window;
use super::entry::{Entry, Stored, entry_at};
use super::layout::{Block, COPIES, CommitRecord, FRONT, RECORD};
use super::snapshot::{
    LARGEST_DICTIONARY, LARGEST_METADATA, SchemaAndMore, forms, front_bytes, read_block, read_schema,
    read_state,
};
use super::state::{STATE_MAGIC, State};
use super::table::walk;
use super::writer::{StoreWriter, WriterOptions};
use std::path::Path;
use tensilo_core::io::{ByteSource, Disk, FileSource};
use tensilo_core::{Budget, Error, ErrorKind, Monitor, Progress, Result};

/// Losses that are described; more are counted.
const DESCRIBED: usize = 1000;
/// Bytes that are searched at a time.
const SEARCHED: usize = 1 << 20;

/// Records that could not be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The first id.
    pub first: u64,
    /// How many.
    pub records: u64,
    /// Why.
    pub why: String,
}

/// What salvaging found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// Records that are in the new store, in their order; ids after a lost one are smaller there.
    pub saved: u64,
    /// Records that are not.
    pub lost: u64,
    /// The first 1000 losses.
    pub described: Vec<Lost>,
    /// The commit that was found.
    pub generation: u64,
    /// Was it not found through a commit record, but by searching for state blocks? It may be older than the last.
    pub searched: bool,
}

/// Copies every record that is whole from a damaged store to a new one.
///
/// The commit is the most recent one whose state block and schema are whole. The new store has its name when all is
/// copied.
///
/// # Errors
/// `InvalidArgument` when both are the same file; `Corrupt` when no commit is whole; those of [`StoreWriter::create`]; `Io`; the monitor's.
pub fn salvage(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    mut options: WriterOptions,
    monitor: &dyn Monitor,
) -> Result<Salvaged> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let source = FileSource::open(from)?;
    if same_file(&*options.disk, from, to) {
        return Err(Error::invalid("a store is not salvaged to itself")
            .hint("what could not be copied would be gone; give another destination")
            .in_file(to));
    }
    options.whole = true;
    let budget = Budget::new(options.limits.clone());
    let (state, more, searched) = find(&source, &budget, monitor).map_err(|e| e.in_file(from))?;
    if options.encoding.is_none() {
        for (field, text) in more.schema.fields().iter().zip(&more.encodings) {
            if let Ok(encoding) = text.parse() {
                options.field_encodings.push((field.name.clone(), encoding));
            }
        }
    }
    options.metadata = state
        .metadata
        .and_then(|b| read_block(&source, b, LARGEST_METADATA, &budget, "metadata").ok())
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let mut writer = StoreWriter::create(to, more.schema.clone(), options)?;
    let mut answer =
        Salvaged { saved: 0, lost: 0, described: Vec::new(), generation: state.generation, searched };
    for b in &state.dictionaries {
        let dictionary = read_block(&source, *b, LARGEST_DICTIONARY, &budget, "dictionary")?;
        writer.add_dictionary(&dictionary)?;
    }
    let forms = forms(&more.schema)?;
    let mut window = Window::new(&source, &budget);
    let mut fresh = Vec::new();
    walk(&source, &state, &mut |first, count, entries| {
        monitor.poll(&Progress { stage: "salvaging", done: first, total: state.len })?;
        let entries = match entries {
            Ok(entries) => entries,
            Err(e) => return answer.lose(first, count.min(state.len - first), &e),
        };
        for (id, record) in (first..).zip(entries.chunks_exact(state.record_bytes())) {
            let place = writer.next.savepoint();
            fresh.clear();
            let copied = (0..state.fields).zip(&forms).try_for_each(|(field, form)| {
                let mut entry = Entry::parse(entry_at(record, field)?)?;
                let fits =
                    if form.ragged { entry.raw.is_multiple_of(form.step) } else { entry.raw == form.step };
                if !fits {
                    return Err(Error::corrupt(format!("{} bytes do not fit the field", entry.raw)));
                }
                if entry.codec != Stored::Inline {
                    let cell = window.cell(&entry)?;
                    entry.offset = writer.next.put(&*writer.file, cell)?;
                }
                fresh.extend_from_slice(&entry.encode());
                Ok(())
            });
            match copied {
                Ok(()) => {
                    writer.next.push_record(&*writer.file, &fresh)?;
                    writer.changed = true;
                    answer.saved += 1;
                }
                Err(e) => {
                    writer.next.roll_back(place);
                    answer.lose(id, 1, &e)?;
                }
            }
        }
        Ok(())
    })?;
    writer.commit()?;
    Ok(answer)
}

/// Are both names of one file?
fn same_file(disk: &dyn Disk, a: &Path, b: &Path) -> bool {
    let identity = |path| disk.open(path).and_then(|f| f.fingerprint()).ok().map(|f| (f.device, f.inode));
    let (a, b) = (identity(a), identity(b));
    a.is_some() && a == b
}

impl Salvaged {
    /// Notes a loss; an error that is no damage goes on.
    fn lose(&mut self, first: u64, records: u64, e: &Error) -> Result<()> {
        if !matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Limit) {
            return Err(Error::new(e.kind(), e.message()));
        }
        self.lost += records;
        let why = e.message().to_owned();
        let room = self.described.len() < DESCRIBED;
        match self.described.last_mut() {
            Some(last) if last.first + last.records == first && last.why == why => last.records += records,
            _ if room => self.described.push(Lost { first, records, why }),
            _ => {}
        }
        Ok(())
    }
}

/// The most recent commit that is whole, and whether it had to be searched for.
fn find(
    source: &dyn ByteSource,
    budget: &Budget,
    monitor: &dyn Monitor,
) -> Result<(State, SchemaAndMore, bool)> {
    let front = front_bytes(source)?;
    let mut records: Vec<CommitRecord> = COPIES
        .iter()
        .filter_map(|at| front.get(*at as usize..*at as usize + RECORD))
        .filter_map(|bytes| CommitRecord::parse(bytes, 0).ok().flatten())
        .collect();
    records.sort_by_key(|r| std::cmp::Reverse(r.generation));
    let open = |generation, block| {
        let state = read_state(source, generation, block, budget)?;
        let more = read_schema(source, &state, budget)?;
        Ok::<_, Error>((state, more))
    };
    for record in records {
        if let Ok((state, more)) = open(record.generation, record.state) {
            return Ok((state, more, false));
        }
    }
    let mut best: Option<(State, SchemaAndMore)> = None;
    let mut at = FRONT;
    let mut bytes = Vec::new();
    while at < source.len() {
        monitor.poll(&Progress { stage: "searching", done: at, total: source.len() })?;
        let end = source.len().min(at + (SEARCHED + State::FIXED) as u64);
        bytes.resize((end - at) as usize, 0);
        source.read_at(at, &mut bytes)?;
        let within = bytes.len().min(SEARCHED);
        for i in (0..within).filter(|i| bytes[*i..].starts_with(&STATE_MAGIC)) {
            let Some(len) = State::block_bytes(&bytes[i..]) else { continue };
            let Some(generation) = bytes.get(i + 8..).and_then(|b| b.first_chunk()) else { continue };
            let generation = u64::from_le_bytes(*generation);
            let block = Block { offset: at + i as u64, bytes: len, crc: 0 };
            if best.as_ref().is_some_and(|(s, _)| s.generation >= generation) {
                continue;
            }
            if let Ok(found) = open_found(source, generation, block, budget) {
                best = Some(found);
            }
        }
        at += SEARCHED as u64;
    }
    let (state, more) =
        best.ok_or_else(|| Error::corrupt("no commit of the store is whole: nothing can be salvaged"))?;
    Ok((state, more, true))
}

/// Reads a state block whose checksum only the block itself states.
fn open_found(
    source: &dyn ByteSource,
    generation: u64,
    mut block: Block,
    budget: &Budget,
) -> Result<(State, SchemaAndMore)> {
    block.check(source.len(), "state block")?;
    let last = block.end().and_then(|end| end.checked_sub(4)).unwrap_or(0);
    let mut crc = [0; 4];
    source.read_at(last, &mut crc)?;
    block.crc = u32::from_le_bytes(crc);
    let state = read_state(source, generation, block, budget)?;
    let more = read_schema(source, &state, budget)?;
    Ok((state, more))
}
