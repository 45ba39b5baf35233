//! A source that counts what is read from it, for tests that promise a number of reads.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tensilo_core::Result;
use tensilo_core::io::{ByteSource, Fingerprint};

/// Passes every read on and remembers its range.
#[derive(Debug)]
pub struct CountingSource<S> {
    inner: S,
    reads: Mutex<Vec<Range<u64>>>,
    borrows: bool,
}

impl<S: ByteSource> CountingSource<S> {
    /// Counts from 0 on. Nothing can be borrowed, so that every byte is read.
    pub fn new(inner: S) -> Self {
        Self { inner, reads: Mutex::default(), borrows: false }
    }

    /// Counts from 0 on, and lets bytes be borrowed where the source can; a borrow counts as a read.
    pub fn with_borrows(inner: S) -> Self {
        Self { borrows: true, ..Self::new(inner) }
    }

    /// The source inside.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The ranges read so far, in the order of the calls.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.lock().clone()
    }

    /// Reads so far.
    pub fn reads(&self) -> usize {
        self.lock().len()
    }

    /// Bytes read so far, repeated ones counted again.
    pub fn bytes(&self) -> u64 {
        self.lock().iter().map(|r| r.end - r.start).sum()
    }

    /// Counts from 0 again.
    pub fn reset(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Range<u64>>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: ByteSource> ByteSource for CountingSource<S> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.lock().push(offset..offset.saturating_add(buf.len() as u64));
        self.inner.read_at(offset, buf)
    }

    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        let bytes = self.borrows.then(|| self.inner.borrow(range.clone())).flatten()?;
        self.lock().push(range);
        Some(bytes)
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        self.inner.fingerprint()
    }

    fn path(&self) -> Option<&Path> {
        self.inner.path()
    }
}
