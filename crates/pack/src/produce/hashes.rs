//! The hashes of a run: the chains of raw and working values, and what was written of each shard.
//!
//! Raw values are one long chain, and twice as many bytes as working ones. Where a core with SHA instructions is half idle
//! in a single chain, payloads and headers that are in the file already are read back and hashed beside the second half
//! of a tile's raw values; elsewhere the chains are fed by two workers, each at its own tile.

use crate::digest::Sha256Sum;
use crate::format::index::Extent;
use crate::sha_pair::{Sha256Stream, update_pair};
use std::collections::VecDeque;
use tensilo_core::Result;
use tensilo_core::io::DiskFile;

/// Bytes that are read back at one time.
const READ: usize = 64 << 10;

/// All chains of a run but that of the raw values, which may be at another tile.
#[derive(Default)]
pub(crate) struct Hashes {
    pub working: Sha256Stream,
    parts: VecDeque<Part>,
    finished: Vec<Sha256Sum>,
    buffer: Vec<u8>,
}

struct Part {
    at: u64,
    end: u64,
    stream: Sha256Stream,
}

impl Hashes {
    /// Appends parts of the file that are complete.
    pub fn add(&mut self, written: impl IntoIterator<Item = Extent>) {
        let part = |e: Extent| Part { at: e.offset, end: e.offset + e.bytes, stream: Sha256Stream::new() };
        self.parts.extend(written.into_iter().map(part));
    }

    /// Hashes a tile's values, and parts of the file beside them.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn tile(
        &mut self,
        raw_chain: &mut Sha256Stream,
        raw: &[u8],
        working: &[u8],
        file: &dyn DiskFile,
    ) -> Result<()> {
        let (now, mut later) = raw.split_at(working.len().min(raw.len()));
        update_pair(raw_chain, now, &mut self.working, working);
        while !later.is_empty() && !self.parts.is_empty() {
            let n = self.part(file, raw_chain, later)?;
            later = &later[n.min(later.len())..];
        }
        raw_chain.update(later);
        Ok(())
    }

    /// Hashes a tile's working values, then at most as many bytes of parts of the file.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn working_tile(&mut self, working: &[u8], file: &dyn DiskFile) -> Result<()> {
        self.working.update(working);
        let mut done = 0;
        while done < working.len() && !self.parts.is_empty() {
            done += self.part(file, &mut Sha256Stream::new(), &[])?;
        }
        Ok(())
    }

    /// Hashes bytes of the first part, and as many of `beside` into another chain; returns how many of the part's.
    fn part(&mut self, file: &dyn DiskFile, chain: &mut Sha256Stream, beside: &[u8]) -> Result<usize> {
        let Some(part) = self.parts.front_mut() else { return Ok(0) };
        self.buffer.resize(READ, 0);
        let n = (part.end - part.at).min(READ as u64) as usize;
        let n = if beside.is_empty() { n } else { n.min(beside.len()) };
        file.read_at(part.at, &mut self.buffer[..n])?;
        update_pair(chain, &beside[..n.min(beside.len())], &mut part.stream, &self.buffer[..n]);
        part.at += n as u64;
        if part.at == part.end
            && let Some(part) = self.parts.pop_front()
        {
            self.finished.push(part.stream.finish());
        }
        Ok(n)
    }

    /// The working hash, and the hash of every part in the order they were added.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn finish(mut self, file: &dyn DiskFile) -> Result<(Sha256Sum, Vec<Sha256Sum>)> {
        while !self.parts.is_empty() {
            self.part(file, &mut Sha256Stream::new(), &[])?;
        }
        Ok((self.working.finish(), self.finished))
    }
}
