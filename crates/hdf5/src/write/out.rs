//! Where bytes leave: addresses given out in call order, and writes to neighbouring addresses joined.

use super::addresses::{Addresses, Of, too_long};
use crate::format::Address;
use tensilo_core::io::{DiskFile, Fingerprint, Staged};
use tensilo_core::{Error, Result};

/// Small writes are joined up to this many bytes.
const JOINED: usize = 1 << 20;
/// And those from here on are not: a copy and a write later, when no thread encodes any more, cost more than a call.
const LARGE: usize = 32 << 10;

/// The file being written.
#[derive(Debug)]
pub(crate) enum Target<'f> {
    /// A file of the caller's, who also publishes it.
    Borrowed(&'f dyn DiskFile),
    /// A temporary file beside its destination.
    Staged(Staged),
}

impl Target<'_> {
    fn file(&self) -> &dyn DiskFile {
        match self {
            Self::Borrowed(file) => *file,
            Self::Staged(staged) => staged.file(),
        }
    }
}

/// A file that grows at its end.
#[derive(Debug)]
pub(crate) struct Out<'f> {
    target: Target<'f>,
    base: u64,
    addresses: Addresses,
    joined: Vec<u8>,
    /// Absolute position of `joined`.
    joined_at: u64,
    /// Absolute end of all that was ever written, joined or not.
    reached: u64,
    /// The first error; after it nothing can be published.
    broken: bool,
}

impl<'f> Out<'f> {
    /// Addresses count from `base`.
    pub(crate) fn new(target: Target<'f>, base: u64, addresses: Addresses) -> Self {
        Self { target, base, addresses, joined: Vec::new(), joined_at: 0, reached: 0, broken: false }
    }

    /// What was given out.
    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Gives out `len` bytes at a multiple of eight.
    pub(crate) fn allocate(&mut self, len: u64, of: Of) -> Result<Address> {
        let address = self.addresses.allocate(len, of)?;
        self.check(address.0.saturating_add(len), len)?;
        Ok(address)
    }

    /// Is `end` a possible position, user block included?
    fn check(&self, end: u64, len: u64) -> Result<()> {
        match end.checked_add(self.base).filter(|end| *end <= i64::MAX as u64) {
            Some(_) => Ok(()),
            None => Err(too_long(len)),
        }
    }

    /// Begins raw data of unknown length; until it is whole, nothing else may be given out.
    pub(crate) fn begin_run(&mut self) -> Result<Address> {
        self.addresses.begin_run()
    }

    /// Makes the raw data begun last longer.
    pub(crate) fn extend(&mut self, len: u64) -> Result<()> {
        let end = self.addresses.extend(len)?;
        self.check(end, len)
    }

    /// Absolute position of an address.
    pub(crate) fn absolute(&self, address: Address) -> u64 {
        self.base + address.0
    }

    /// Writes bytes at an address, sooner or later.
    pub(crate) fn write(&mut self, at: Address, data: &[u8]) -> Result<()> {
        self.write_absolute(self.absolute(at), data)
    }

    /// Writes bytes at a position of the file, sooner or later.
    pub(crate) fn write_absolute(&mut self, at: u64, data: &[u8]) -> Result<()> {
        let joined_end = self.joined_at + self.joined.len() as u64;
        // Up to seven bytes of alignment between neighbours are zeros, where nothing was ever written: chunks whose places
        // are given from the beginning come in any order and can be shorter than that.
        let is_new = joined_end >= self.reached;
        self.reached = self.reached.max(at.saturating_add(data.len() as u64));
        let gap = at.checked_sub(joined_end);
        let gap = gap.filter(|g| (*g == 0 || *g < 8 && is_new) && !self.joined.is_empty());
        if let Some(gap) = gap
            && data.len() < LARGE
            && self.joined.len() + 8 + data.len() <= JOINED
        {
            self.joined.resize(self.joined.len() + gap as usize, 0);
            self.joined.extend_from_slice(data);
            return Ok(());
        }
        self.flush()?;
        if data.len() >= LARGE {
            return self.put(at, data);
        }
        self.joined_at = at;
        self.joined.extend_from_slice(data);
        Ok(())
    }

    /// Writes what was joined.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.joined.is_empty() {
            return Ok(());
        }
        let joined = std::mem::take(&mut self.joined);
        let done = self.put(self.joined_at, &joined);
        self.joined = joined;
        self.joined.clear();
        done
    }

    fn put(&mut self, at: u64, data: &[u8]) -> Result<()> {
        if self.broken {
            return Err(Error::invalid("an earlier write to this file failed; it cannot be finished"));
        }
        self.target.file().write_at(at, data).inspect_err(|_| self.broken = true)
    }

    /// Notes that something was left half done, so that the file must not be finished.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
    }

    /// Sets the length of the file, so that it ends where the superblock says.
    pub(crate) fn end_at(&mut self, end: u64) -> Result<()> {
        self.flush()?;
        let length = self.base + end;
        if self.target.file().len()? < length {
            self.target.file().set_len(length).inspect_err(|_| self.broken = true)?;
        }
        Ok(())
    }

    /// Publishes a staged file; a borrowed one is left to its owner.
    pub(crate) fn publish(self, replace: bool) -> Result<Option<Fingerprint>> {
        if self.broken {
            return Err(Error::invalid("a write to this file failed or a dataset was left unfinished"));
        }
        match self.target {
            Target::Borrowed(_) => Ok(None),
            Target::Staged(staged) if replace => staged.publish_replace().map(Some),
            Target::Staged(staged) => staged.publish_no_replace().map(Some),
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }
}
