//! Format 1, `PTS\x01`: what petektools 0.2 reads and writes, byte for byte.
//!
//! ```text
//! 0          "PTS" and the version byte 1
//! 4          u32: header length
//! 8          header: compact JSON
//! data_base  = header end, rounded up to 64: lanes in order, each at a multiple of 64
//! seal       = data end, rounded up to 8: "PTSZ", u64 nslabs, u64 data end; the file ends here
//! ```
//! Everything is little-endian; padding is zero. The page `docs/formats/lanes-v1.md` says all of it.

pub(crate) mod header;
pub(crate) mod seal;
