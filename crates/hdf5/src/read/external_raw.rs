//! Raw data in other files, seen as one run of bytes.

use super::File;
use crate::object::ExternalFile;
use std::sync::Arc;
use tensilo_core::io::{ByteSource, FileSource, Fingerprint};
use tensilo_core::{Error, Result};

/// The pieces of a dataset's raw data, one after the other. What a file is too short for reads as zeros, as with
/// libhdf5.
#[derive(Debug)]
pub(super) struct ExternalRaw {
    pieces: Vec<Piece>,
    len: u64,
}

#[derive(Debug)]
struct Piece {
    file: Arc<FileSource>,
    /// Where it begins in the data.
    start: u64,
    /// Where it begins in its file.
    offset: u64,
    len: u64,
}

impl ExternalRaw {
    /// Opens the files, by the policy for names in files.
    ///
    /// # Errors
    /// `NotFound` naming a file; `Limit` where the policy forbids it; `Corrupt` when they have no room for `len` bytes.
    pub(super) fn open(file: &File, list: &[ExternalFile], len: u64) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut start = 0_u64;
        for external in list {
            if start >= len {
                break;
            }
            let rest = len - start;
            let here = external.size.unwrap_or(rest).min(rest);
            external
                .offset
                .checked_add(here)
                .ok_or_else(|| Error::corrupt("external data passes 64 bits"))?;
            let path = file.named_path(&external.name)?;
            let source = Arc::new(FileSource::open(path)?);
            pieces.push(Piece { file: source, start, offset: external.offset, len: here });
            start += here;
        }
        if start < len {
            return Err(Error::corrupt(format!("{len} bytes of data, but external files for {start}")));
        }
        Ok(Self { pieces, len })
    }
}

impl ByteSource for ExternalRaw {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.len) {
            return Err(Error::corrupt("a read past the end of external data").at(offset));
        }
        let mut at = offset;
        let mut rest = buf;
        // Pieces are in order; the last one that begins at or before `at` holds it.
        let mut i = self.pieces.partition_point(|p| p.start <= at).saturating_sub(1);
        while !rest.is_empty() {
            let piece = self.pieces.get(i).ok_or_else(|| Error::corrupt("a gap in external data"))?;
            let inside = at - piece.start;
            let n = rest.len().min(usize::try_from(piece.len - inside).unwrap_or(usize::MAX));
            let (now, later) = rest.split_at_mut(n);
            let from = piece.offset + inside;
            let stored = usize::try_from(piece.file.len().saturating_sub(from)).unwrap_or(n).min(n);
            let (stored, missing) = now.split_at_mut(stored);
            if !stored.is_empty() {
                piece.file.read_at(from, stored)?;
            }
            missing.fill(0);
            (rest, at, i) = (later, at + n as u64, i + 1);
        }
        Ok(())
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        match self.pieces.first() {
            Some(piece) => piece.file.fingerprint(),
            None => Ok(Fingerprint::default()),
        }
    }
}
