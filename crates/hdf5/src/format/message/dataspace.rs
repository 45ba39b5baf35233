//! Dataspace message (specification IV.A.2.b): rank, current and maximum dimensions.

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
