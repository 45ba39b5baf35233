//! What Tensilo's tests share and no user gets: oracles, conformance suites, the disk log and its replay.
//!
//! It is a development dependency of every crate. It knows `tensilo-core` only, so that any crate may use it.

pub mod allocations;
pub mod conformance;
mod counting;
pub mod disk_log;
mod memory_records;
pub mod oracle;
pub mod slow_pack;
pub mod strategies;

pub use counting::CountingSource;
pub use memory_records::MemoryRecords;
pub use oracle::TempDir;
