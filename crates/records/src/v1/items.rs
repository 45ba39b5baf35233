//! Records that are to be appended, in the caller's memory.

use super::fault::Fault;
use super::format::MAX_RECORD_LEN;
use tensilo_core::{Error, Result};

/// Records to append.
#[derive(Debug, Clone, Copy)]
pub enum Items<'a> {
    /// `count` records of `len` bytes, one every `stride` bytes.
    Fixed {
        /// Where they lie.
        bytes: &'a [u8],
        /// Bytes from the start of one to the start of the next.
        stride: usize,
        /// Bytes of each.
        len: usize,
        /// How many.
        count: usize,
    },
    /// The i-th record has `lens[i]` bytes from `starts[i]` on.
    Ragged {
        /// Where they lie.
        bytes: &'a [u8],
        /// First byte of each.
        starts: &'a [u64],
        /// Bytes of each.
        lens: &'a [u32],
    },
}

impl<'a> Items<'a> {
    /// How many.
    pub fn count(&self) -> usize {
        match self {
            Self::Fixed { count, .. } => *count,
            Self::Ragged { lens, .. } => lens.len(),
        }
    }

    /// Bytes of the i-th.
    pub(super) fn len_of(&self, i: usize) -> usize {
        match self {
            Self::Fixed { len, .. } => *len,
            Self::Ragged { lens, .. } => lens.get(i).map_or(0, |l| *l as usize),
        }
    }

    /// The i-th record; checked by [`check`](Self::check).
    pub(super) fn get(&self, i: usize) -> Result<&'a [u8]> {
        let found = match *self {
            Self::Fixed { bytes, stride, len, .. } => {
                stride.checked_mul(i).and_then(|s| bytes.get(s..s.checked_add(len)?))
            }
            Self::Ragged { bytes, starts, lens } => starts.get(i).zip(lens.get(i)).and_then(|(s, len)| {
                let start = usize::try_from(*s).ok()?;
                bytes.get(start..start.checked_add(*len as usize)?)
            }),
        };
        found.ok_or_else(|| {
            Error::invalid(format!("item {i} does not lie inside the {} bytes given", self.bytes().len()))
                .with_source(Fault::Buffer)
        })
    }

    /// The bytes of several records when they lie one behind the other without gaps.
    pub(super) fn run(&self, range: std::ops::Range<usize>) -> Option<&'a [u8]> {
        match *self {
            Self::Fixed { bytes, stride, len, .. } if stride == len => {
                bytes.get(range.start.checked_mul(len)?..range.end.checked_mul(len)?)
            }
            _ => None,
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Fixed { bytes, .. } | Self::Ragged { bytes, .. } => bytes,
        }
    }

    /// Checks that all records exist and have lengths that a store takes.
    pub(super) fn check(&self) -> Result<()> {
        let length = |i: usize, len: usize| {
            if (1..=MAX_RECORD_LEN).contains(&len) {
                return Ok(());
            }
            Err(Error::invalid(format!("item {i} has {len} bytes; a record has 1 to {MAX_RECORD_LEN}"))
                .with_source(Fault::RecordLength))
        };
        match *self {
            Self::Fixed { len, count, .. } => {
                if count > 0 {
                    length(0, len)?;
                    self.get(count - 1)?;
                }
            }
            Self::Ragged { starts, lens, .. } => {
                if starts.len() != lens.len() {
                    return Err(Error::invalid(format!(
                        "{} starts and {} lengths",
                        starts.len(),
                        lens.len()
                    ))
                    .with_source(Fault::Buffer));
                }
                for (i, len) in lens.iter().enumerate() {
                    length(i, *len as usize)?;
                    self.get(i)?;
                }
            }
        }
        Ok(())
    }
}
