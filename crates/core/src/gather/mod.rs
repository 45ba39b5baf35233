//! Gathering: a list of record ids, in the order wanted, becomes arrays. The one thing a loader knows of a store.
//!
//! Record stores, lanes (a slab is a record), HDF5 datasets along their first axis, and packs (a frame is a record)
//! implement [`Gather`]; [`View`] picks and reorders the records of one store, [`Concat`] joins several. [`gather`]
//! allocates the result, the trait itself fills the caller's buffers.

mod concat;
mod fingerprint;
mod schema;
mod view;

pub use concat::Concat;
pub use fingerprint::StoreFingerprint;
pub use schema::{FieldSchema, FieldShape, Schema};
pub use view::View;

use crate::buffer::zeroed_vec;
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::progress::Monitor;
use crate::threads::Threads;
use std::fmt::Debug;

/// Which ids are cheap together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locality {
    /// Records that are decoded or fetched together; 1 when any order costs the same. Blocks start at multiples.
    pub block: u64,
}

impl Locality {
    /// Any order costs the same.
    pub const ANY: Self = Self { block: 1 };
}

/// Where the records of one field go in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places<'a> {
    /// The i-th record starts at i times so many bytes.
    Stride(u64),
    /// The i-th record starts at this byte.
    Starts(&'a [u64]),
}

/// A caller's buffer for one field.
#[derive(Debug)]
pub struct FieldBuffer<'a> {
    /// Position of the field in the schema.
    pub field: usize,
    /// Where the bytes go; what no record covers is left as it is.
    pub bytes: &'a mut [u8],
    /// Where each record goes.
    pub places: Places<'a>,
}

impl FieldBuffer<'_> {
    /// The byte range of the i-th record, which has `len` bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when it does not lie inside the buffer.
    #[inline]
    pub fn range(&self, i: usize, len: u64) -> Result<std::ops::Range<usize>> {
        let start = match self.places {
            Places::Stride(stride) => stride.checked_mul(i as u64),
            Places::Starts(starts) => starts.get(i).copied(),
        };
        start
            .and_then(|s| Some(s..s.checked_add(len)?))
            .filter(|r| r.end <= self.bytes.len() as u64)
            .map(|r| r.start as usize..r.end as usize)
            .ok_or_else(|| self.no_place(i, len))
    }

    #[cold]
    fn no_place(&self, i: usize, len: u64) -> Error {
        let n = self.bytes.len();
        Error::invalid(format!("record {i} of the list has no place of {len} bytes in the buffer of {n}"))
    }

    /// Checks that all records have places inside the buffer that do not overlap; so that they can be filled in any
    /// order, by several threads. `lens` are their bytes, one for all or one for each.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the first record that does not fit.
    pub fn check(&self, n: usize, lens: Lens<'_>) -> Result<()> {
        if let (Places::Stride(stride), Lens::Same(len)) = (self.places, lens) {
            if n > 1 && stride < len {
                return Err(Error::invalid(format!(
                    "a stride of {stride} bytes is less than the {len} of a record"
                )));
            }
            return if n == 0 { Ok(()) } else { self.range(n - 1, len).map(drop) };
        }
        let mut end = 0;
        let mut sorted = true;
        for i in 0..n {
            let range = self.range(i, lens.of(i))?;
            if !range.is_empty() {
                sorted &= range.start >= end;
                end = range.end;
            }
        }
        if sorted {
            return Ok(());
        }
        let mut ranges: Vec<_> =
            (0..n).map(|i| Ok((self.range(i, lens.of(i))?, i))).collect::<Result<_>>()?;
        ranges.retain(|(range, _)| !range.is_empty());
        ranges.sort_by_key(|(range, _)| range.start);
        match ranges.windows(2).find(|w| w[0].0.end > w[1].0.start) {
            Some(w) => Err(Error::invalid(format!("records {} and {} of the list overlap", w[0].1, w[1].1))),
            None => Ok(()),
        }
    }
}

/// Lengths of the records of a list, in bytes.
#[derive(Debug, Clone, Copy)]
pub enum Lens<'a> {
    /// All have this length.
    Same(u64),
    /// The i-th has this many steps of so many bytes.
    Steps(&'a [u64], u64),
}

impl Lens<'_> {
    /// Length of the i-th record; too large a one saturates, and then fits nowhere.
    pub fn of(&self, i: usize) -> u64 {
        match self {
            Self::Same(len) => *len,
            Self::Steps(steps, bytes) => steps.get(i).map_or(u64::MAX, |s| s.saturating_mul(*bytes)),
        }
    }
}

/// A store whose records are read by their ids.
///
/// A handle shows one snapshot: as long as it lives, an id means the same record. Any number of threads may use it.
pub trait Gather: Send + Sync + Debug {
    /// What a record is made of.
    fn schema(&self) -> &Schema;

    /// Number of records; their ids are `0..len`.
    fn len(&self) -> u64;

    /// Is there no record?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Identifies what the ids mean: the same for every handle that shows the same records in the same order, also
    /// on another machine; another one as soon as records were appended, deleted or changed. Resumed loaders compare
    /// it.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn fingerprint(&self) -> Result<StoreFingerprint>;

    /// Says for each id how many steps its record has in a field: rows of a ragged one, 1 of a fixed one.
    ///
    /// # Errors
    /// `InvalidArgument` for an id or a field that does not exist, or when the two lists differ in length;
    /// `Io`, `Corrupt`.
    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()>;

    /// Fills buffers with the fields of records, in the order of the ids, which may repeat.
    ///
    /// Fields that no buffer names are not read. After an error the buffers hold anything.
    ///
    /// # Errors
    /// `InvalidArgument` for ids, fields or places that do not fit, before anything is read; `Corrupt`, `Io`, both
    /// naming the record; the monitor's.
    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()>;

    /// Which ids are cheap together.
    fn locality(&self) -> Locality {
        Locality::ANY
    }
}

/// Checks that ids exist; for implementors.
///
/// # Errors
/// `InvalidArgument`, naming the first that does not.
pub fn check_ids(ids: &[u64], len: u64) -> Result<()> {
    match ids.iter().find(|id| **id >= len) {
        Some(id) => Err(Error::invalid(format!("there are {len} records")).in_record(*id)),
        None => Ok(()),
    }
}

/// Checks field, ids and room of a [`Gather::lengths`] as its contract says; for implementors.
///
/// # Errors
/// `InvalidArgument`.
pub fn check_lengths(store: &dyn Gather, field: usize, ids: &[u64], steps: &[u64]) -> Result<()> {
    store.schema().field(field)?;
    check_ids(ids, store.len())?;
    if ids.len() != steps.len() {
        return Err(Error::invalid(format!("{} ids and room for {} lengths", ids.len(), steps.len())));
    }
    Ok(())
}

/// Checks ids, fields and places of a [`Gather::gather_into`] as its contract says; for implementors.
///
/// # Errors
/// `InvalidArgument`; those of [`Gather::lengths`].
pub fn check_buffers(store: &dyn Gather, ids: &[u64], into: &[FieldBuffer<'_>]) -> Result<()> {
    check_ids(ids, store.len())?;
    for buffer in into {
        let field = store.schema().field(buffer.field)?;
        let bytes = field.step_bytes()?;
        let checked = if field.is_ragged() {
            let mut steps = vec![0; ids.len()];
            store.lengths(buffer.field, ids, &mut steps)?;
            buffer.check(ids.len(), Lens::Steps(&steps, bytes))
        } else {
            buffer.check(ids.len(), Lens::Same(bytes))
        };
        checked.map_err(|e| e.context(format_args!("field {:?}", field.name)))?;
    }
    Ok(())
}

/// One gathered field of a list of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldValues {
    /// Position of the field in the schema.
    pub field: usize,
    /// The records one after the other.
    pub bytes: Vec<u8>,
    /// For a ragged field: where each record starts, in steps, and at the end the sum. Empty for a fixed one.
    pub offsets: Vec<u64>,
}

/// Reads fields of records into new memory, which the budget must allow; `fields` are positions, all when empty.
///
/// # Errors
/// As [`Gather::gather_into`]; `Limit`, `InsufficientMemory`.
pub fn gather(
    store: &dyn Gather,
    ids: &[u64],
    fields: &[usize],
    budget: &Budget,
    threads: Threads,
    monitor: &dyn Monitor,
) -> Result<Vec<FieldValues>> {
    check_ids(ids, store.len())?;
    let all: Vec<usize> = (0..store.schema().fields().len()).collect();
    let fields = if fields.is_empty() { &all[..] } else { fields };
    let mut values = Vec::with_capacity(fields.len());
    let mut starts = Vec::with_capacity(fields.len());
    let mut charges = Vec::new();
    for &field in fields {
        let schema = store.schema().field(field)?;
        let bytes = schema.step_bytes()?;
        let mut offsets = Vec::new();
        if schema.is_ragged() {
            let mut steps = vec![0; ids.len()];
            store.lengths(field, ids, &mut steps)?;
            offsets.push(0);
            let mut sum = 0_u64;
            for s in steps {
                sum = sum.saturating_add(s);
                offsets.push(sum);
            }
        }
        let steps = offsets.last().copied().unwrap_or(ids.len() as u64);
        let total = steps.checked_mul(bytes).and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
            Error::limit(format!("field {:?}: {steps} steps of {bytes} bytes", schema.name))
        })?;
        charges.push(budget.bytes(total as u64, "the gathered records")?);
        starts.push(offsets.iter().map(|o| o * bytes).collect::<Vec<_>>());
        values.push(FieldValues { field, bytes: zeroed_vec(total)?, offsets });
    }
    let mut into: Vec<FieldBuffer<'_>> = Vec::with_capacity(values.len());
    for (value, starts) in values.iter_mut().zip(&starts) {
        let schema = store.schema().field(value.field)?;
        let places = match schema.is_ragged() {
            true => Places::Starts(&starts[..ids.len()]),
            false => Places::Stride(schema.step_bytes()?),
        };
        into.push(FieldBuffer { field: value.field, bytes: &mut value.bytes, places });
    }
    store.gather_into(ids, &mut into, threads, monitor)?;
    Ok(values)
}
