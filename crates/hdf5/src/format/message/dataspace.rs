//! Dataspace message (specification IV.A.2.b): rank, current and maximum dimensions.

use crate::format::Sizes;
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// The shape of a dataset or attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dataspace {
    /// No elements at all.
    Null,
    /// One element, rank 0.
    Scalar,
    /// An array.
    Simple {
        /// Current extents, slowest first.
        dims: Vec<u64>,
        /// Maximum extents, `None` for unlimited; as many as `dims`.
        max: Vec<Option<u64>>,
    },
}

impl Dataspace {
    /// Current extents; empty for null and scalar spaces.
    pub fn dims(&self) -> &[u64] {
        match self {
            Self::Null | Self::Scalar => &[],
            Self::Simple { dims, .. } => dims,
        }
    }

    /// Number of elements, or `None` when it does not fit in 64 bits.
    pub fn elements(&self) -> Option<u64> {
        match self {
            Self::Null => Some(0),
            Self::Scalar => Some(1),
            Self::Simple { dims, .. } => {
                if dims.contains(&0) {
                    return Some(0);
                }
                dims.iter().try_fold(1_u64, |n, d| n.checked_mul(*d))
            }
        }
    }
}

/// Most dimensions of a dataspace.
pub const MAX_RANK: u8 = 32;

impl Dataspace {
    /// Parses a dataspace message, versions 1 and 2.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "dataspace message");
        let version = r.u8()?;
        let rank = r.u8()?;
        if rank > MAX_RANK {
            return Err(r.corrupt(format_args!("rank {rank} is more than {MAX_RANK}")));
        }
        let flags = r.u8()?;
        let kind = match version {
            1 => {
                r.skip(5)?;
                u8::from(rank > 0)
            }
            2 => r.u8()?,
            v => return Err(r.corrupt(format_args!("version {v} is not known"))),
        };
        match kind {
            0 | 2 if rank > 0 => return Err(r.corrupt(format_args!("a scalar or null space of rank {rank}"))),
            0 => return Ok(Self::Scalar),
            2 => return Ok(Self::Null),
            1 => {}
            k => return Err(r.corrupt(format_args!("space type {k} is not known"))),
        }
        let dims = (0..rank).map(|_| sizes.length(&mut r)).collect::<Result<Vec<u64>>>()?;
        let max = if flags & 1 != 0 {
            let as_address = Sizes { offset: sizes.length, ..sizes };
            let mut max = Vec::with_capacity(dims.len());
            for dim in &dims {
                let m = as_address.address(&mut r)?.map(|a| a.0);
                if m.is_some_and(|m| m < *dim) {
                    return Err(r.corrupt(format_args!("extent {dim} is more than its maximum")));
                }
                max.push(m);
            }
            max
        } else {
            dims.iter().map(|d| Some(*d)).collect()
        };
        Ok(Self::Simple { dims, max })
    }
}
