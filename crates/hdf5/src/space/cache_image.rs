//! Metadata cache image (specification, "Metadata Cache Image"): metadata that was in memory when the file was
//! closed, written as one block instead of each to its place.
//!
//! The image is laid over the file: reads that fall into an entry come from the block, everything else from the
//! source. Nothing is written anywhere, and a mapped file is not copied for it.
//!
//! | bytes | block | bytes | entry |
//! |---|---|---|---|
//! | 4, 1, 1 | "MDCI", version 0, flags | 1, 1, 1, 1 | type, flags, ring, age |
//! | L | length of the block | 2, 2, 2, 4 | flush dependency children, dirty ones, parents, LRU rank |
//! | 4 | number of entries | O, L | address, length |
//! | … | entries | O each | addresses of the parents |
//! | 4 | checksum | … | the metadata |

use super::{Block, FileSpace};
use crate::format::message::file::CacheImageMessage;
use std::collections::BTreeMap;
use std::ops::Range;
use tensilo_core::io::ByteSource;
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

/// A metadata cache image, ready to be laid over the file.
#[derive(Debug)]
pub struct CacheImage {
    /// The block; `None` where the source lends its bytes whenever they are wanted.
    block: Option<Block>,
    at: u64,
    len: u64,
    /// Absolute start of an entry → where its bytes are in the block.
    entries: BTreeMap<u64, Range<usize>>,
}

/// Has a file a metadata cache image?
#[derive(Debug, Clone, Copy)]
pub enum CacheImageState<'a> {
    /// It has none, and is read straight from its bytes.
    None,
    /// It has one, which is laid over its bytes.
    Loadable(&'a CacheImage),
    /// It has one that is damaged, for this reason.
    Refused(&'a Error),
}

/// How much of a range the image covers.
pub(super) enum Cover<'a> {
    None,
    All(&'a [u8]),
    Part,
}

impl CacheImage {
    /// Loads the image that a message names; `None` when there is none. A source that lends its bytes goes on holding
    /// the block; of others it is read once.
    pub(super) fn load(space: &FileSpace, message: Option<CacheImageMessage>) -> Result<Option<Self>> {
        const WHAT: &str = "metadata cache image";
        let Some(CacheImageMessage { address: Some(address), size }) = message else { return Ok(None) };
        if size == 0 {
            return Ok(None);
        }
        let bytes = space.read_checksummed(address, size, WHAT)?;
        let (at, len) = (bytes.offset(), bytes.len() as u64);
        let entries = parse(space, &bytes, at).map_err(|e| space.locate(e))?;
        let block = if bytes.is_lent() { None } else { Some(bytes.into_block(space.budget(), WHAT)?) };
        Ok(Some(Self { block, at, len, entries }))
    }

    /// Absolute offset of the block in the file.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Length of the block in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Does the image hold no entry?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Is the block a copy in memory, and not lent by the source?
    pub fn is_copied(&self) -> bool {
        self.block.is_some()
    }

    fn block<'a>(&'a self, source: &'a dyn ByteSource) -> &'a [u8] {
        match &self.block {
            Some(block) => block,
            None => source.borrow(self.at..self.at.saturating_add(self.len)).unwrap_or(&[]),
        }
    }

    /// Entries that overlap `at..at + len`: entries do not overlap each other, so the one that begins before `at` and
    /// those that begin inside are all.
    fn overlapping<'a>(
        &'a self,
        source: &'a dyn ByteSource,
        at: u64,
        len: u64,
    ) -> impl Iterator<Item = (u64, &'a [u8])> {
        let end = at.saturating_add(len);
        let before = self.entries.range(..at).next_back();
        let touching = before
            .into_iter()
            .chain(self.entries.range(at..end))
            .filter(move |(start, r)| start.saturating_add(r.len() as u64) > at);
        touching.map(move |(start, r)| (*start, self.block(source).get(r.clone()).unwrap_or(&[])))
    }

    pub(super) fn cover<'a>(&'a self, source: &'a dyn ByteSource, at: u64, len: u64) -> Cover<'a> {
        let Some((start, bytes)) = self.overlapping(source, at, len).next() else { return Cover::None };
        let inside = at.checked_sub(start).and_then(|skip| {
            let skip = usize::try_from(skip).ok()?;
            bytes.get(skip..skip.checked_add(usize::try_from(len).ok()?)?)
        });
        inside.map_or(Cover::Part, Cover::All)
    }

    /// Overwrites what the image knows better in a buffer that was read at `at`.
    pub(super) fn patch(&self, source: &dyn ByteSource, at: u64, buf: &mut [u8]) {
        for (start, bytes) in self.overlapping(source, at, buf.len() as u64) {
            let (from, to) = if start < at {
                (usize::try_from(at - start).unwrap_or(usize::MAX), 0)
            } else {
                (0, usize::try_from(start - at).unwrap_or(usize::MAX))
            };
            let source = bytes.get(from..).unwrap_or(&[]);
            let target = buf.get_mut(to..).unwrap_or(&mut []);
            let n = source.len().min(target.len());
            target[..n].copy_from_slice(&source[..n]);
        }
    }
}

fn parse(space: &FileSpace, bytes: &[u8], at: u64) -> Result<BTreeMap<u64, Range<usize>>> {
    let sizes = space.sizes();
    let mut r = FieldReader::new(bytes, at, "metadata cache image");
    r.signature(b"MDCI")?;
    let version = r.u8()?;
    if version != 0 {
        return Err(r.corrupt(format_args!("version {version} is not known")));
    }
    r.skip(1)?;
    let len = sizes.length(&mut r)?;
    if len != bytes.len() as u64 {
        return Err(r.corrupt(format_args!("says it has {len} of {} bytes", bytes.len())));
    }
    let count = r.u32()?;
    let mut entries = BTreeMap::new();
    for _ in 0..count {
        r.skip(4)?;
        r.skip(4)?;
        let parents = usize::from(r.u16()?);
        r.skip(4)?;
        let address = sizes.address(&mut r)?.ok_or_else(|| r.corrupt("an entry without an address"))?;
        let len = sizes.length(&mut r)?;
        let start = space.check_range(address, len, "entry of the metadata cache image")?;
        r.skip(parents.saturating_mul(usize::from(sizes.offset)))?;
        let from = r.position();
        r.skip(usize::try_from(len).unwrap_or(usize::MAX))?;
        if len == 0 || entries.insert(start, from..r.position()).is_some() {
            return Err(Error::corrupt("metadata cache image: an entry of 0 bytes, or twice").at(start));
        }
    }
    let mut end = 0;
    for (start, range) in &entries {
        if *start < end {
            return Err(Error::corrupt("metadata cache image: entries overlap").at(*start));
        }
        end = start.saturating_add(range.len() as u64);
    }
    Ok(entries)
}
