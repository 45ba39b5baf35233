//! The trait every filter implements, built-in or a user's own.

use crate::{ChunkInfo, Codecs};
use tensilo_core::Result;

/// Where a decoded result lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// That many bytes were written to the start of the destination.
    Written(usize),
    /// The result is this many leading bytes of the source; nothing was copied.
    Prefix(usize),
}

/// What became of a chunk that was to be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    /// The destination holds the result.
    Written,
    /// The result would not be smaller, or this data is not for this filter; an optional filter is skipped,
    /// a mandatory one makes the chunk fail.
    Declined,
}

/// One HDF5 filter, both ways. Implement it for filters of your own and give them to
/// [`Registry::register`](crate::Registry::register).
pub trait Filter: Send + Sync {
    /// The registered filter id.
    fn id(&self) -> u16;

    /// The registered name.
    fn name(&self) -> &str;

    /// Whether the filter, with these client values, is there to make chunks smaller; an optional compressor
    /// whose result is not smaller than its input is skipped for that chunk.
    fn compresses(&self, values: &[u32]) -> bool {
        let _ = values;
        true
    }

    /// The most bytes that encoding `raw` bytes can yield. It bounds what the filter behind this one may
    /// decode to, so too small a bound makes valid chunks fail and a huge one costs memory.
    fn most_encoded(&self, values: &[u32], raw: usize) -> usize {
        let _ = values;
        raw.saturating_add(raw / 8).saturating_add(4096)
    }

    /// Decodes `src` into the start of `dst`, whose length is the most that a well-formed source can yield.
    ///
    /// # Errors
    /// `Corrupt` when the source breaks the filter's format or yields more than `dst` holds.
    fn decode(&self, values: &[u32], codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded>;

    /// Encodes `src`, appending to the empty `dst`.
    ///
    /// # Errors
    /// `InvalidArgument` when the client values make no sense for this data, `Unsupported` when the filter
    /// only decodes.
    fn encode(
        &self,
        values: &[u32],
        info: &ChunkInfo,
        codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded>;
}
