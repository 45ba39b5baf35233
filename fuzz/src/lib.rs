//! What is fuzzed: one function per target, each taking any bytes at all.
//!
//! A target may return early, never panic, hang or allocate without bound. `cargo fuzz run TARGET --features libfuzzer`
//! drives one with libFuzzer; `cargo test` replays the seeds in `corpus/` and simple mutations of them.

mod filters;
mod hdf5;
mod wire;

pub use filters::filters;
pub use hdf5::hdf5;
pub use wire::wire;

/// Every target by the name of its folder in `corpus/`.
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("wire", wire), ("filters", filters), ("hdf5", hdf5)];

/// Bytes that one target may have allocated at a time.
pub const MOST_BYTES: u64 = 64 << 20;
