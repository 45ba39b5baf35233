//! What is fuzzed: one function per target, each taking any bytes at all.
//!
//! A target may return early, never panic, hang or allocate without bound. `cargo fuzz run TARGET --features libfuzzer`
//! drives one with libFuzzer; `cargo test` replays the seeds in `corpus/` and simple mutations of them.

mod decoders;
mod filters;
mod hdf5;
mod pack;
mod wire;

pub use decoders::*;
pub use filters::filters;
pub use hdf5::hdf5;
pub use pack::pack;
pub use wire::wire;

/// A target's name, which is that of its folder in `corpus/`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("wire", wire),
    ("filters", filters),
    ("hdf5", hdf5),
    ("pack", pack),
    ("deflate", deflate),
    ("fletcher32", fletcher32),
    ("szip", szip),
    ("nbit", nbit),
    ("scaleoffset", scaleoffset),
    ("bzip2", bzip2),
    ("lzf", lzf),
    ("blosc", blosc),
    ("lz4", lz4),
    ("bitshuffle", bitshuffle),
    ("zfp", zfp),
    ("zstandard", zstandard),
    ("vbz", vbz),
    ("blosc2", blosc2),
];

/// Bytes that one target may have allocated at a time.
pub const MOST_BYTES: u64 = 64 << 20;
