//! The budget that a file's numbers must pass before they make us allocate, loop or recurse.
//!
//! [`Limits`] says what a user allows; a [`Budget`] is charged and refunded while an operation runs. A budget
//! is a cheap clone: all clones of one budget share what was charged, from any thread.

use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one open file, or one operation, may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may be allocated at one time because a file says so (metadata, chunk scratch, results of
    /// `read`). Buffers that the caller brings are not counted.
    pub bytes: u64,
    /// Deepest nesting of datatypes, heaps, trees and links.
    pub depth: u64,
    /// Most items (messages, links, attributes, tree nodes) one operation may visit.
    pub items: u64,
}

impl Default for Limits {
    /// 16 GiB, 128 levels, 2^26 items.
    fn default() -> Self {
        Self { bytes: 16 << 30, depth: 128, items: 1 << 26 }
    }
}

impl Limits {
    /// No more than this many bytes at one time.
    #[must_use]
    pub fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }
}

/// A running account against [`Limits`].
///
/// ```
/// use tensilo_core::{Budget, Limits};
/// let budget = Budget::new(Limits::default().with_bytes(100));
/// let held = budget.bytes(60, "heap block").unwrap();
/// assert!(budget.bytes(60, "heap block").is_err());
/// drop(held);
/// assert!(budget.bytes(60, "heap block").is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    limits: Limits,
    bytes: AtomicU64,
    peak: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Budget {
    /// Opens an account with nothing charged.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Account { limits, bytes: AtomicU64::new(0), peak: AtomicU64::new(0) }))
    }

    /// The limits this account is held against.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Bytes charged now.
    pub fn used(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Most bytes that were ever charged at one time.
    pub fn peak(&self) -> u64 {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Charges bytes until the returned guard is dropped.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit), naming `what`, when the limit would be passed.
    pub fn bytes(&self, n: u64, what: &str) -> Result<Charge> {
        let limit = self.0.limits.bytes;
        let before = self
            .0
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |b| b.checked_add(n).filter(|t| *t <= limit))
            .map_err(|used| {
                Error::limit(format!("{what} needs {n} bytes; {used} of {limit} allowed bytes are in use"))
                    .hint("raise the byte limit if this file is trusted")
            })?;
        self.0.peak.fetch_max(before + n, Ordering::Relaxed);
        Ok(Charge { account: self.0.clone(), n })
    }

    /// Allocates a zeroed buffer whose length came from a file, and charges it while `Charge` lives.
    ///
    /// # Errors
    /// `Limit` when the limit would be passed or the system has no such memory.
    pub fn buffer(&self, n: u64, what: &str) -> Result<(Vec<u8>, Charge)> {
        let charge = self.bytes(n, what)?;
        let len = usize::try_from(n)
            .map_err(|_| Error::limit(format!("{what}: {n} bytes do not fit in memory")))?;
        let v = crate::buffer::zeroed_vec(len)
            .map_err(|_| Error::limit(format!("{what}: no memory for {n} bytes")))?;
        Ok((v, charge))
    }

    /// Checks a nesting level.
    ///
    /// # Errors
    /// `Limit` when `level` is deeper than allowed.
    pub fn depth(&self, level: u64, what: &str) -> Result<()> {
        if level > self.0.limits.depth {
            return Err(Error::limit(format!("{what} is nested deeper than {} levels", self.0.limits.depth)));
        }
        Ok(())
    }

    /// Checks a number of items.
    ///
    /// # Errors
    /// `Limit` when `n` is more than allowed.
    pub fn items(&self, n: u64, what: &str) -> Result<()> {
        if n > self.0.limits.items {
            return Err(Error::limit(format!(
                "{n} {what} are more than the {} allowed",
                self.0.limits.items
            )));
        }
        Ok(())
    }
}

/// Bytes charged to a [`Budget`]; dropping it refunds them.
#[derive(Debug)]
#[must_use]
pub struct Charge {
    account: Arc<Account>,
    n: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.bytes.fetch_sub(self.n, Ordering::Relaxed);
    }
}
