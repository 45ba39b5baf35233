//! Heaps: local (names of old-style groups), global (variable-length data) and fractal (dense links and attributes).

pub mod fractal;
pub mod global;
pub mod local;
