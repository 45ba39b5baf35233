//! The oldest libhdf5 that must open a file: which versions of each structure may be written.

use tensilo_core::{Error, Result};

/// The oldest release of libhdf5 that must open the file, as libhdf5's own low bounds name them.
///
/// Under each bound, structures take the versions that libhdf5 itself would choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Bound {
    /// All releases from 1.8 on (and most before): symbol tables, version 1 B-trees and object headers.
    #[default]
    Earliest,
    /// 1.8: checksummed headers, compact and dense links and attributes.
    V18,
    /// 1.10: the five newer chunk indexes.
    V110,
    /// 1.12: the newer references.
    V112,
    /// 1.14.
    V114,
    /// 2.0: complex numbers, chunks of more than 4 GiB.
    V200,
}

impl Bound {
    /// All bounds, oldest first.
    pub const ALL: [Self; 6] = [Self::Earliest, Self::V18, Self::V110, Self::V112, Self::V114, Self::V200];

    /// The name that libhdf5's tools use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Earliest => "earliest",
            Self::V18 => "v18",
            Self::V110 => "v110",
            Self::V112 => "v112",
            Self::V114 => "v114",
            Self::V200 => "v200",
        }
    }

    /// Version of the superblock.
    pub fn superblock_version(self) -> u8 {
        match self {
            Self::Earliest => 0,
            Self::V18 => 2,
            _ => 3,
        }
    }

    /// Are object headers of version 2 (checksummed), with dense links and attributes?
    pub fn has_v2_headers(self) -> bool {
        self >= Self::V18
    }

    /// Version of layout messages.
    pub fn layout_version(self) -> u8 {
        match self {
            Self::Earliest | Self::V18 => 3,
            Self::V200 => 5,
            _ => 4,
        }
    }

    /// Lowest version of datatype messages.
    pub fn datatype_version(self) -> u8 {
        match self {
            Self::Earliest => 1,
            Self::V18 | Self::V110 => 3,
            Self::V112 | Self::V114 => 4,
            Self::V200 => 5,
        }
    }
}

impl std::str::FromStr for Bound {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|b| b.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::invalid(format!("bound {name:?} is not one of {names}"))
        })
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
