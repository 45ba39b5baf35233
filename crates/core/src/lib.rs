//! The ground floor of Tensilo: where bytes come from, which elements are wanted, and how anything reaches a disk.
//!
//! Every other crate builds on this one. It knows no file format but the header of NumPy's arrays; it knows [`Error`], the [`limits`] that
//! keep hostile files from taking memory, [`threads`], [`progress`], the [`io`] traits for reading and for
//! changing a disk, bounds-checked [`wire`] reading, and [`mod@array`] shapes and selections.

pub mod array;
pub mod buffer;
pub mod dtype;
pub mod error;
pub mod gather;
pub mod io;
pub mod limits;
pub mod progress;
pub mod streaming;
pub mod threads;
pub mod wire;

pub use error::{Error, ErrorKind, Result};
pub use limits::{Budget, Limits};
pub use progress::{CancelFlag, Monitor, Progress, Quiet};
