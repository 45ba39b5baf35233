//! What Tensilo's tests share and no user gets: oracles, conformance suites, the disk log and its replay.
//!
//! It is a development dependency of every crate. It knows `tensilo-core` only, so that any crate may use it.

pub mod conformance;
mod counting;
pub mod disk_log;
pub mod oracle;

pub use counting::CountingSource;
pub use oracle::TempDir;
