//! What a filter pipeline message says about one filter, and what a chunk looks like.

/// One filter of a dataset's pipeline, as the file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterSpec {
    /// The registered filter id.
    pub id: u16,
    /// The name stored in the file, if any.
    pub name: Option<String>,
    /// Flags; bit 0 set means that the filter is optional on writing.
    pub flags: u16,
    /// Client values.
    pub values: Vec<u32>,
}

impl FilterSpec {
    /// A mandatory filter without a stored name.
    pub fn new(id: u16, values: Vec<u32>) -> Self {
        Self { id, name: None, flags: 0, values }
    }

    /// The same filter, marked optional: a chunk that it cannot shrink is stored without it.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.flags |= 1;
        self
    }

    /// Whether a chunk may be stored without this filter when it fails or does not shrink.
    pub fn is_optional(&self) -> bool {
        self.flags & 1 != 0
    }
}

/// What encoding a chunk needs to know beyond its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Bytes per element.
    pub element_size: usize,
    /// Elements along each dimension of a chunk, slowest first.
    pub chunk_dims: Vec<u64>,
}

/// Registered filter ids.
pub mod id {
    /// Deflate (zlib).
    pub const DEFLATE: u16 = 1;
    /// Byte shuffle.
    pub const SHUFFLE: u16 = 2;
    /// Fletcher-32 checksum.
    pub const FLETCHER32: u16 = 3;
    /// Szip (extended Golomb-Rice).
    pub const SZIP: u16 = 4;
    /// N-bit packing.
    pub const NBIT: u16 = 5;
    /// Scale-offset.
    pub const SCALE_OFFSET: u16 = 6;
    /// bzip2.
    pub const BZIP2: u16 = 307;
    /// LZF.
    pub const LZF: u16 = 32000;
    /// Blosc 1.
    pub const BLOSC: u16 = 32001;
    /// LZ4.
    pub const LZ4: u16 = 32004;
    /// Bitshuffle, alone or with LZ4 or Zstandard.
    pub const BITSHUFFLE: u16 = 32008;
    /// ZFP.
    pub const ZFP: u16 = 32013;
    /// Zstandard.
    pub const ZSTD: u16 = 32015;
    /// VBZ (Oxford Nanopore).
    pub const VBZ: u16 = 32020;
    /// BitGroom quantisation: the identity on reading.
    pub const BITGROOM: u16 = 32022;
    /// Granular BitRound quantisation: the identity on reading.
    pub const GRANULAR_BITROUND: u16 = 32023;
    /// Blosc 2.
    pub const BLOSC2: u16 = 32026;
}
