//! From one kind of store to another, a bounded block at a time.
//!
//! [`npy`] reads and writes NumPy's array files; [`lanes`] moves arrays into and out of lane stores.

pub mod lanes;
pub mod npy;

/// Bytes that are in memory at one time, about.
const BLOCK: u64 = 16 << 20;
