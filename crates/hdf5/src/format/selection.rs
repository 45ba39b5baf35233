//! Dataspace selections as stored in virtual datasets and region references (specification, appendix on the
//! "Dataspace Selection" encoding).
//!
//! All begin with type (4) and version (4).
//!
//! | type | version | what follows |
//! |---|---|---|
//! | 0 none, 3 all | 1 | 8 bytes without meaning |
//! | 1 points | 1 | reserved (4), length (4), rank (4), count (4), coordinates (4 each) |
//! | 1 points | 2 | width (1), rank (4), count (width), coordinates (width each) |
//! | 2 hyperslabs | 1 | reserved (4), length (4), rank (4), count (4), blocks: first and last corner (4 each) |
//! | 2 hyperslabs | 2 | flags (1), length (4), rank (4); regular: start, stride, count, block (8 each) |
//! | 2 hyperslabs | 3 | flags (1), width (1), rank (4); regular as before, else as version 1, in that width |
//!
//! Flag bit 0 says that the hyperslab is regular; all bits set stand for "unlimited" in count and block.

use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// One dimension of a regular hyperslab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredDimension {
    /// First element.
    pub start: u64,
    /// Distance between blocks.
    pub stride: u64,
    /// Number of blocks; `None` for unlimited.
    pub count: Option<u64>,
    /// Elements in a block; `None` for unlimited.
    pub block: Option<u64>,
}

/// A selection as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredSelection {
    /// Nothing.
    None,
    /// Everything.
    All,
    /// Points, coordinates one after the other.
    Points {
        /// Number of dimensions.
        rank: usize,
        /// Coordinates.
        coords: Vec<u64>,
    },
    /// A regular hyperslab.
    Regular(Vec<StoredDimension>),
    /// Boxes, each a first and a last corner, both inside.
    Boxes(Vec<(Vec<u64>, Vec<u64>)>),
}

/// More dimensions than HDF5 allows.
const MOST_DIMENSIONS: usize = 32;
const REGULAR: u8 = 1;

impl StoredSelection {
    /// Parses a selection.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged; `Unsupported` for versions that are not known.
    pub fn parse(r: &mut FieldReader<'_>) -> Result<Self> {
        let (kind, version) = (r.u32()?, r.u32()?);
        match (kind, version) {
            (0 | 3, 1) => {
                r.skip(8)?;
                Ok(if kind == 0 { Self::None } else { Self::All })
            }
            (1, 1) => {
                r.skip(8)?;
                let rank = rank(r)?;
                Self::points(r, rank, 4)
            }
            (1, 2) => {
                let width = width(r)?;
                let rank = rank(r)?;
                Self::points(r, rank, width)
            }
            (2, 1) => {
                r.skip(8)?;
                let rank = rank(r)?;
                Self::boxes(r, rank, 4)
            }
            (2, 2 | 3) => {
                let flags = r.u8()?;
                let width = if version == 2 { r.skip(4).map(|()| 8)? } else { width(r)? };
                let rank = rank(r)?;
                if flags & REGULAR == 0 { Self::boxes(r, rank, width) } else { Self::regular(r, rank, width) }
            }
            _ => Err(r.unsupported(format_args!("a selection of type {kind}, version {version}"))),
        }
    }

    fn points(r: &mut FieldReader<'_>, rank: usize, width: usize) -> Result<Self> {
        let count = r.uint(width)?;
        let len = usize::try_from(count).ok().and_then(|n| n.checked_mul(rank));
        let len = len.filter(|n| n.checked_mul(width).is_some_and(|bytes| bytes <= r.remaining()));
        let Some(len) = len else { return Err(r.corrupt(format_args!("{count} points do not fit"))) };
        let coords = (0..len).map(|_| r.uint(width)).collect::<Result<_>>()?;
        Ok(Self::Points { rank, coords })
    }

    fn boxes(r: &mut FieldReader<'_>, rank: usize, width: usize) -> Result<Self> {
        let count = r.uint(width)?;
        let each = rank.saturating_mul(width).saturating_mul(2);
        let fits =
            usize::try_from(count).ok().and_then(|n| n.checked_mul(each)).is_some_and(|n| n <= r.remaining());
        if !fits {
            return Err(r.corrupt(format_args!("{count} blocks do not fit")));
        }
        let mut corner = || (0..rank).map(|_| r.uint(width)).collect::<Result<Vec<_>>>();
        Ok(Self::Boxes((0..count).map(|_| Ok((corner()?, corner()?))).collect::<Result<_>>()?))
    }

    fn regular(r: &mut FieldReader<'_>, rank: usize, width: usize) -> Result<Self> {
        let most =
            u64::MAX.checked_shr(64_u32.saturating_sub((width as u32).saturating_mul(8))).unwrap_or(u64::MAX);
        let limited = |n: u64| (n != most).then_some(n);
        let dimension = |_| {
            let (start, stride) = (r.uint(width)?, r.uint(width)?);
            Ok(StoredDimension {
                start,
                stride,
                count: limited(r.uint(width)?),
                block: limited(r.uint(width)?),
            })
        };
        Ok(Self::Regular((0..rank).map(dimension).collect::<Result<_>>()?))
    }
}

fn rank(r: &mut FieldReader<'_>) -> Result<usize> {
    let rank = r.u32()?;
    usize::try_from(rank)
        .ok()
        .filter(|n| (1..=MOST_DIMENSIONS).contains(n))
        .ok_or_else(|| r.corrupt(format_args!("a selection of {rank} dimensions")))
}

fn width(r: &mut FieldReader<'_>) -> Result<usize> {
    match r.u8()? {
        2 => Ok(2),
        4 => Ok(4),
        8 => Ok(8),
        n => Err(r.corrupt(format_args!("selection numbers of {n} bytes"))),
    }
}
