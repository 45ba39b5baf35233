//! What Tensilo's tests share and no user gets: oracles, temporary folders, and (unpublished) slow reference code.
//!
//! It is a development dependency of every crate. It knows `tensilo-core` only, so that any crate may use it.

pub mod conformance;
pub mod disk_log;
pub mod oracle;

pub use oracle::TempDir;
