//! The data files, opened when a record in them is first asked for, mapped where that is safe.
//!
//! A map covers only what was committed when it was made: appends write behind it, and who moves or cuts records
//! takes the presence lock alone, which waits until no handle, and so no map, is left.

use super::fault::Fault;
use super::files::{Handle, chunk_name};
use super::format::Extent;
use super::place::Frontier;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tensilo_core::io::{ByteSource, Disk, MappedSource};
use tensilo_core::streaming;
use tensilo_core::{Error, ErrorKind, Result};

#[derive(Debug)]
enum Bytes {
    Map(MappedSource),
    File(Handle),
}

/// A data file, as far as it was committed when it was opened.
#[derive(Debug)]
pub(super) struct ChunkFile {
    bytes: Bytes,
    len: u64,
}

type Open = Arc<Vec<Option<Arc<ChunkFile>>>>;

/// How data files are opened.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    pub folder: PathBuf,
    pub disk: Arc<dyn Disk>,
    /// May files be mapped, and be opened past the disk? Not on a disk that is no real one.
    pub mapped: bool,
}

/// The data files of a store.
#[derive(Debug)]
pub(super) struct Chunks {
    opening: Opening,
    open: RwLock<Open>,
    /// Held while files are opened.
    turn: Mutex<()>,
}

impl Chunks {
    pub fn new(opening: Opening) -> Self {
        Self { opening, open: RwLock::default(), turn: Mutex::default() }
    }

    /// Readers for one operation, whose result has so many bytes; they keep the files that they have seen.
    pub fn reader(&self, whole: usize) -> ChunkReader<'_> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner).clone();
        ChunkReader { chunks: self, open, whole }
    }

    /// Opens a chunk as far as it is committed now, unless it is open as far as `end` already.
    fn extend(&self, chunk: u16, end: u64, frontier: Frontier) -> Result<Open> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner).clone();
        if open.get(usize::from(chunk)).is_some_and(|c| c.as_ref().is_some_and(|c| c.len >= end)) {
            return Ok(open);
        }
        let file = self.opening.open(chunk, frontier)?;
        if file.len < end {
            let path = self.opening.folder.join(chunk_name(chunk));
            let message = format!("the file ends at byte {}, {end} bytes are expected", file.len);
            return Err(Error::corrupt(message).in_file(path).with_source(Fault::Decode));
        }
        let mut files = (*open).clone();
        files.resize(files.len().max(usize::from(chunk) + 1), None);
        if let Some(slot) = files.get_mut(usize::from(chunk)) {
            *slot = Some(Arc::new(file));
        }
        let files = Arc::new(files);
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = files.clone();
        Ok(files)
    }
}

impl Opening {
    fn open(&self, chunk: u16, frontier: Frontier) -> Result<ChunkFile> {
        let path = self.folder.join(chunk_name(chunk));
        let most = if chunk == frontier.chunk { u64::from(frontier.offset) } else { u64::MAX };
        if self.mapped {
            match MappedSource::open_locked_prefix(&path, most) {
                Ok(map) => return Ok(ChunkFile { len: map.len(), bytes: Bytes::Map(map) }),
                Err(e) if e.kind() == ErrorKind::Unsupported => {}
                Err(e) => return Err(e),
            }
        }
        let file = Handle::open(&*self.disk, &path, self.mapped)?;
        Ok(ChunkFile { len: file.len()?.min(most), bytes: Bytes::File(file) })
    }
}

/// Reads records for one worker.
#[derive(Debug, Clone)]
pub(super) struct ChunkReader<'a> {
    chunks: &'a Chunks,
    open: Open,
    /// Bytes of the result that it copies to.
    whole: usize,
}

impl ChunkReader<'_> {
    fn file(&mut self, extent: &Extent, frontier: Frontier) -> Result<&ChunkFile> {
        let (chunk, end) =
            (usize::from(extent.place.chunk), u64::from(extent.place.offset) + u64::from(extent.stored));
        let is_open = |open: &Open| open.get(chunk).is_some_and(|c| c.as_ref().is_some_and(|c| c.len >= end));
        if !is_open(&self.open) {
            self.open = self.chunks.extend(extent.place.chunk, end, frontier)?;
        }
        self.open
            .get(chunk)
            .and_then(Option::as_deref)
            .ok_or_else(|| Error::not_found(format!("data file {chunk} is not open")))
    }

    /// Copies the stored bytes of a record; `dst` has exactly as many.
    pub fn copy(&mut self, extent: &Extent, frontier: Frontier, dst: &mut [u8]) -> Result<()> {
        let (offset, whole) = (u64::from(extent.place.offset), self.whole);
        match &self.file(extent, frontier)?.bytes {
            Bytes::Map(map) => match map.borrow(offset..offset.saturating_add(dst.len() as u64)) {
                Some(stored) => {
                    streaming::copy(stored, dst, whole);
                    Ok(())
                }
                None => map.read_at(offset, dst),
            },
            Bytes::File(file) => file.read_at(offset, dst),
        }
    }

    /// The stored bytes of a record in a map that is open as far.
    pub fn lent(&self, extent: &Extent) -> Option<&[u8]> {
        let file = self.open.get(usize::from(extent.place.chunk))?.as_deref()?;
        let offset = u64::from(extent.place.offset);
        match &file.bytes {
            Bytes::Map(map) => map.borrow(offset..offset + u64::from(extent.stored)),
            Bytes::File(_) => None,
        }
    }

    /// The stored bytes of a record, in the map or in `room`.
    pub fn stored<'b>(
        &'b mut self,
        extent: &Extent,
        frontier: Frontier,
        room: &'b mut Vec<u8>,
    ) -> Result<&'b [u8]> {
        let offset = u64::from(extent.place.offset);
        match &self.file(extent, frontier)?.bytes {
            Bytes::Map(map) => map.borrow(offset..offset + u64::from(extent.stored)).ok_or_else(|| {
                Error::corrupt("a record lies outside its data file").with_source(Fault::Decode)
            }),
            Bytes::File(file) => {
                // At most 4 GiB by the entry; what is really there bounds it further (`file` has checked).
                room.resize(extent.stored as usize, 0);
                file.read_at(offset, room)?;
                Ok(room)
            }
        }
    }
}
