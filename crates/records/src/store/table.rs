//! The record table as readers see it: pages are read, checked and kept when a record of theirs is first asked for.
//!
//! Finding a record costs one step per level (two for a million records) and no lock. Pages above the leaves are kept
//! parsed, 64 bytes for every 128 records that were touched; leaves stay in the map, or are kept where there is none.
//!
//! Beside a leaf in the map stands a bit for each of its cells: was the cell compared with its checksum? What was
//! committed is never written again, so once is enough for a snapshot.

use super::entry::ENTRY;
use super::layout::FRONT;
use super::state::{FAN, LEAF, PAGE, PageRef, State, full_pages, reference};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tensilo_core::io::ByteSource;
use tensilo_core::limits::Charge;
use tensilo_core::wire::FieldReader;
use tensilo_core::{Budget, Error, Result};

/// A page and what was found in it.
#[derive(Debug)]
struct Node {
    at: PageRef,
    loaded: OnceLock<Loaded>,
}

#[derive(Debug)]
enum Loaded {
    Inner {
        children: Box<[Node]>,
        _held: Charge,
    },
    /// A leaf that the source lends; its checksum was right.
    Lent {
        compared: Bits,
        _held: Charge,
    },
    Leaf {
        bytes: Box<[u8]>,
        _held: Charge,
    },
}

/// A source, and all its bytes at once where it lends them: finding one then costs no call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub source: &'a dyn ByteSource,
    /// From the end of the commit records on.
    whole: Option<&'a [u8]>,
}

impl<'a> Bytes<'a> {
    /// What a source has up to `end`.
    pub fn of(source: &'a dyn ByteSource, end: u64) -> Self {
        Self { source, whole: source.borrow(FRONT..end) }
    }

    /// Some of the bytes, where they are lent.
    #[inline(always)]
    pub fn borrow(&self, offset: u64, bytes: u64) -> Option<&'a [u8]> {
        let end = offset.checked_add(bytes)?;
        match self.whole {
            Some(whole) => whole.get(offset.checked_sub(FRONT)? as usize..end.checked_sub(FRONT)? as usize),
            None => self.source.borrow(offset..end),
        }
    }
}

impl<'a> From<&'a dyn ByteSource> for Bytes<'a> {
    fn from(source: &'a dyn ByteSource) -> Self {
        Self { source, whole: None }
    }
}

/// A bit for each cell of a leaf, or of the tail.
type Bits = Box<[AtomicU64]>;

fn bits(cells: usize) -> Bits {
    (0..cells.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()
}

/// The entries of a record, and where it is noted which of them were compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub entries: &'a [u8],
    compared: &'a [AtomicU64],
    first: usize,
}

impl<'a> Row<'a> {
    /// The note of one cell.
    #[inline]
    pub fn note(&self, field: usize) -> Note<'a> {
        let bit = self.first + field;
        self.compared.get(bit / 64).map_or(Note::None, |word| Note::Bit(word, 1 << (bit % 64)))
    }
}

/// Says whether a cell was compared with its checksum since the snapshot was opened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Note<'a> {
    /// A cell that is compared every time.
    None,
    /// One that is known to have been compared.
    Set,
    /// The word and the bit that say it.
    Bit(&'a AtomicU64, u64),
}

impl Note<'_> {
    /// Was it?
    #[inline]
    pub fn is_set(&self) -> bool {
        match self {
            Note::None => false,
            Note::Set => true,
            Note::Bit(word, bit) => word.load(Ordering::Relaxed) & bit != 0,
        }
    }

    /// It was.
    pub fn set(&self) {
        if let Note::Bit(word, bit) = self {
            word.fetch_or(*bit, Ordering::Relaxed);
        }
    }
}

/// The table of one snapshot.
#[derive(Debug)]
pub(crate) struct Table {
    record: usize,
    /// Per level, the pages that no page above refers to.
    levels: Vec<Box<[Node]>>,
    /// Per level, how many pages are full; one more than levels, the last 0.
    full: Vec<u64>,
    tail: Box<[u8]>,
    /// Of the tail's cells.
    compared: Bits,
    budget: Budget,
}

impl Table {
    pub fn new(state: &State, budget: Budget) -> Self {
        let node = |at: &PageRef| Node { at: *at, loaded: OnceLock::new() };
        let levels: Vec<Box<[Node]>> =
            state.frontier.iter().map(|pages| pages.iter().map(node).collect()).collect();
        let full = (0..=levels.len() as u32).map(|level| full_pages(state.len, level)).collect();
        let (record, tail) = (state.record_bytes(), state.tail.as_slice().into());
        Self { record, levels, full, tail, compared: bits(state.tail.len() / ENTRY), budget }
    }

    /// The entries of a record, one for each field; the id must exist.
    ///
    /// # Errors
    /// `Corrupt` for damaged pages, `Limit`, `Io`.
    #[inline]
    pub fn record<'a>(&'a self, source: &'a dyn ByteSource, id: u64) -> Result<&'a [u8]> {
        self.row(&source.into(), id).map(|row| row.entries)
    }

    /// As [`record`](Self::record), with the notes of what was compared.
    #[inline]
    pub fn row<'a>(&'a self, source: &Bytes<'a>, id: u64) -> Result<Row<'a>> {
        let (leaf, within) = (id / LEAF, (id % LEAF) as usize);
        let (entries, compared) = self.leaf(source, leaf)?;
        let start = within * self.record;
        let entries = entries
            .get(start..start + self.record)
            .ok_or_else(|| Error::corrupt("the record table is too short").in_record(id))?;
        Ok(Row { entries, compared, first: start / ENTRY })
    }

    /// The entry of a cell in a page that the source lends and that was looked at before, if the cell was compared
    /// with its checksum: the way of nearly all reads, and the shortest.
    #[inline(always)]
    pub fn known<'a>(&'a self, source: &Bytes<'a>, id: u64, field: usize) -> Option<&'a [u8; ENTRY]> {
        let (leaf, within) = (id / LEAF, (id % LEAF) as usize);
        let full = |level: usize| self.full.get(level).copied().unwrap_or(0);
        let (page, compared) = if leaf >= full(0) {
            (&*self.tail, &*self.compared)
        } else {
            let (mut level, mut index) = (0, leaf);
            while index / FAN < full(level + 1) {
                index /= FAN;
                level += 1;
            }
            let mut node = self.levels.get(level)?.get((index - full(level + 1) * FAN) as usize)?;
            loop {
                match node.loaded.get()? {
                    Loaded::Lent { compared, .. } => {
                        break (source.borrow(node.at.offset, LEAF * self.record as u64)?, &**compared);
                    }
                    Loaded::Inner { children, .. } => {
                        level -= 1;
                        node = children
                            .get((leaf >> (FAN.trailing_zeros() * level as u32) & (FAN - 1)) as usize)?;
                    }
                    Loaded::Leaf { .. } => return None,
                }
            }
        };
        let bit = within * (self.record / ENTRY) + field;
        let word = compared.get(bit / 64)?.load(Ordering::Relaxed);
        let entry = page.get(bit * ENTRY..)?.first_chunk()?;
        (word >> (bit % 64) & 1 != 0).then_some(entry)
    }

    /// The entries of a leaf, or of the tail, and the notes of its cells.
    #[inline]
    fn leaf<'a>(&'a self, source: &Bytes<'a>, leaf: u64) -> Result<(&'a [u8], &'a [AtomicU64])> {
        if leaf >= self.full.first().copied().unwrap_or(0) {
            return Ok((&self.tail, &self.compared));
        }
        let (mut level, mut index) = (0, leaf);
        while index / FAN < self.full.get(level + 1).copied().unwrap_or(0) {
            index /= FAN;
            level += 1;
        }
        let before = self.full.get(level + 1).copied().unwrap_or(0) * FAN;
        let lost = || Error::corrupt("the record table lacks a page");
        let mut node =
            self.levels.get(level).and_then(|l| l.get((index - before) as usize)).ok_or_else(lost)?;
        loop {
            match self.load(source.source, node, level)? {
                Loaded::Leaf { bytes, .. } => return Ok((bytes, &[])),
                Loaded::Lent { compared, .. } => {
                    let bytes = LEAF * self.record as u64;
                    let page = source.borrow(node.at.offset, bytes).ok_or_else(lost)?;
                    return Ok((page, compared));
                }
                Loaded::Inner { children, .. } => {
                    level -= 1;
                    let child = leaf / FAN.pow(level as u32) % FAN;
                    node = children.get(child as usize).ok_or_else(lost)?;
                }
            }
        }
    }

    #[inline]
    fn load<'a>(&self, source: &dyn ByteSource, node: &'a Node, level: usize) -> Result<&'a Loaded> {
        match node.loaded.get() {
            Some(loaded) => Ok(loaded),
            None => self.load_first(source, node, level),
        }
    }

    #[cold]
    fn load_first<'a>(&self, source: &dyn ByteSource, node: &'a Node, level: usize) -> Result<&'a Loaded> {
        // Made before it is kept: of two threads that come at once one makes it in vain, and a process that forks
        // meanwhile leaves no lock held.
        let bytes = page_bytes(level, self.record);
        let loaded = if level == 0 {
            match source.borrow(node.at.offset..node.at.offset.saturating_add(bytes)) {
                Some(page) => {
                    check(page, node.at, level)?;
                    let cells = LEAF as usize * self.record / ENTRY;
                    let _held = self.budget.bytes(cells as u64 / 8, "the record table")?;
                    Loaded::Lent { compared: bits(cells), _held }
                }
                None => {
                    let charge = self.budget.bytes(bytes, "the record table")?;
                    Loaded::Leaf {
                        bytes: read_page(source, node.at, level, self.record)?.into(),
                        _held: charge,
                    }
                }
            }
        } else {
            let charge = self.budget.bytes(FAN * size_of::<Node>() as u64, "the record table")?;
            let page = read_page(source, node.at, level, self.record)?;
            let child = |at| Node { at, loaded: OnceLock::new() };
            Loaded::Inner {
                children: references(&page, node.at.offset)?.into_iter().map(child).collect(),
                _held: charge,
            }
        };
        let _ = node.loaded.set(loaded);
        node.loaded.get().ok_or_else(|| Error::corrupt("a page of the record table was not kept"))
    }

    /// Where a full page of a level is.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn page(&self, source: &dyn ByteSource, level: usize, index: u64) -> Result<PageRef> {
        let lost = || Error::corrupt("the record table lacks a page");
        let (mut top, mut above) = (level, index);
        while above / FAN < self.full.get(top + 1).copied().unwrap_or(0) {
            above /= FAN;
            top += 1;
        }
        let before = self.full.get(top + 1).copied().unwrap_or(0) * FAN;
        let mut node =
            self.levels.get(top).and_then(|l| l.get(above.checked_sub(before)? as usize)).ok_or_else(lost)?;
        while top > level {
            let Loaded::Inner { children, .. } = self.load(source, node, top)? else { return Err(lost()) };
            top -= 1;
            let child = index / FAN.pow((top - level) as u32) % FAN;
            node = children.get(child as usize).ok_or_else(lost)?;
        }
        Ok(node.at)
    }
}

/// Bytes of a full page.
pub(crate) fn page_bytes(level: usize, record: usize) -> u64 {
    if level == 0 { LEAF * record as u64 } else { PAGE as u64 }
}

fn check(page: &[u8], at: PageRef, level: usize) -> Result<()> {
    if at.offset < FRONT || crc32c::crc32c(page) != at.crc {
        return Err(Error::corrupt(format!(
            "a page of level {level} of the record table does not match its checksum"
        ))
        .at(at.offset));
    }
    Ok(())
}

/// Reads a page and compares it with its checksum.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(crate) fn read_page(
    source: &dyn ByteSource,
    at: PageRef,
    level: usize,
    record: usize,
) -> Result<Vec<u8>> {
    let mut page = vec![0; page_bytes(level, record) as usize];
    source.read_at(at.offset, &mut page)?;
    check(&page, at, level)?;
    Ok(page)
}

/// The references of a page above the leaves.
///
/// # Errors
/// `Corrupt` for a page that is too short.
pub(crate) fn references(page: &[u8], base: u64) -> Result<Vec<PageRef>> {
    let mut r = FieldReader::new(page, base, "page of the record table");
    (0..FAN).map(|_| reference(&mut r)).collect()
}

/// Is shown a leaf: first record id, how many, and the entries or why they cannot be had.
pub(crate) type Show<'a> = &'a mut dyn FnMut(u64, u64, Result<&[u8]>) -> Result<()>;

/// Shows every leaf of a state in order, and the tail, without keeping any. A damaged page above the leaves is shown
/// once for all records below it.
///
/// # Errors
/// What `show` returns.
pub(crate) fn walk(source: &dyn ByteSource, state: &State, show: Show<'_>) -> Result<()> {
    fn page(
        source: &dyn ByteSource,
        (record, at, level, first): (usize, PageRef, usize, u64),
        show: Show<'_>,
    ) -> Result<()> {
        let records = LEAF.saturating_mul(FAN.saturating_pow(level as u32));
        let bytes = match read_page(source, at, level, record) {
            Ok(bytes) => bytes,
            Err(e) => return show(first, records, Err(e)),
        };
        if level == 0 {
            return show(first, records, Ok(&bytes));
        }
        for (i, child) in (0_u64..).zip(references(&bytes, at.offset)?) {
            page(source, (record, child, level - 1, first + i * (records / FAN)), show)?;
        }
        Ok(())
    }
    let mut first = 0;
    for (level, pages) in state.frontier.iter().enumerate().rev() {
        for at in pages {
            page(source, (state.record_bytes(), *at, level, first), show)?;
            first += LEAF * FAN.pow(level as u32);
        }
    }
    if !state.tail.is_empty() {
        show(first, state.len - first, Ok(&state.tail))?;
    }
    Ok(())
}
