//! Data layout message (specification IV.A.2.i): where a dataset's raw data is.

use crate::format::Address;

/// Where the raw data of a dataset is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataLayout {
    /// In the object header itself.
    Compact(Vec<u8>),
    /// One run of bytes; `None` when never written.
    Contiguous {
        /// Start, if allocated.
        address: Option<Address>,
        /// Stored size in bytes (may be 0 in old versions: then it follows from space and type).
        size: u64,
    },
    /// A grid of chunks behind a chunk index.
    Chunked(ChunkedLayout),
    /// Mappings to other datasets, in a global heap object.
    Virtual {
        /// Address of the global heap collection, if any.
        heap: Option<Address>,
        /// Index of the object in that collection.
        index: u32,
    },
}

/// A chunked layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkedLayout {
    /// Version of the layout message, 1 to 5.
    pub version: u8,
    /// Chunk extents, slowest first; rank of the dataspace (the element size is not among them).
    pub dims: Vec<u64>,
    /// Element size in bytes as stored behind the dimensions.
    pub element_size: u64,
    /// Partial chunks at the edge are stored without filters (version 4 and later, flag bit 0).
    pub unfiltered_edges: bool,
    /// The kind of index and its parameters.
    pub index: ChunkIndexLayout,
    /// Address of the index; `None` when no chunk was ever written.
    pub address: Option<Address>,
}

/// Kind and parameters of a chunk index, as the layout message states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkIndexLayout {
    /// Version 1 B-tree (layout versions 1 to 3).
    BtreeV1,
    /// One chunk; size and mask are given when it is filtered.
    Single {
        /// Stored size and filter mask of a filtered chunk.
        filtered: Option<(u64, u32)>,
    },
    /// All chunks one after the other, unfiltered.
    Implicit,
    /// Fixed array.
    FixedArray {
        /// log2 of the number of elements in a data block page.
        page_bits: u8,
    },
    /// Extensible array.
    ExtensibleArray {
        /// Bits needed to store the maximum number of elements.
        max_bits: u8,
        /// Elements in the index block.
        index_elements: u8,
        /// Least number of data block pointers in a secondary block.
        min_pointers: u8,
        /// Least number of elements in a data block.
        min_elements: u8,
        /// log2 of the number of elements in a data block page.
        page_bits: u8,
    },
    /// Version 2 B-tree.
    BtreeV2 {
        /// Size of a node in bytes.
        node_size: u32,
        /// Percentage at which a node splits.
        split: u8,
        /// Percentage at which nodes merge.
        merge: u8,
    },
}
