//! loaderx's error codes: each error here carries the fault that it stands for, where there is one.

use std::error::Error as _;
use std::fmt;
use tensilo_core::{Error, ErrorKind};

/// A fault that loaderx has a code and a sentence for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Code -3.
    Index,
    /// Code -4.
    RecordLength,
    /// Code -5.
    Full,
    /// Code -6.
    Buffer,
    /// Code -7.
    Decode,
    /// Code -8.
    NotAStore,
}

impl Fault {
    /// The code, as in the C interface.
    pub fn code(self) -> i32 {
        match self {
            Self::Index => -3,
            Self::RecordLength => -4,
            Self::Full => -5,
            Self::Buffer => -6,
            Self::Decode => -7,
            Self::NotAStore => -8,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "index out of range",
            Self::RecordLength => "record length outside 1 to 1048576 bytes",
            Self::Full => "store is full",
            Self::Buffer => "buffer too small",
            Self::Decode => "stored record failed to decode",
            Self::NotAStore => "not a zrecord store, or written by a newer version",
        })
    }
}

impl std::error::Error for Fault {}

/// The code of an error: -1 (no memory) to -8 (no store).
pub fn code_of(error: &Error) -> i32 {
    if let Some(fault) = error.source().and_then(|s| s.downcast_ref::<Fault>()) {
        return fault.code();
    }
    match error.kind() {
        ErrorKind::InsufficientMemory | ErrorKind::Limit => -1,
        ErrorKind::Corrupt => -7,
        ErrorKind::InvalidArgument if error.record().is_some() => -3,
        _ => -2,
    }
}
