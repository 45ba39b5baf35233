//! Data layout message (specification IV.A.2.i): where a dataset's raw data is.

use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

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

/// Most dimensions of a layout: those of a dataspace and the element size.
pub const MAX_DIMS: u8 = 33;

impl DataLayout {
    /// Parses a data layout message, versions 1 to 5.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "data layout message");
        let version = r.u8()?;
        match version {
            1 | 2 => parse_old(&mut r, version, sizes),
            3..=5 => parse_new(&mut r, version, sizes),
            v => Err(r.corrupt(format_args!("version {v} is not known"))),
        }
    }
}

fn parse_old(r: &mut FieldReader<'_>, version: u8, sizes: Sizes) -> Result<DataLayout> {
    let ndims = rank(r)?;
    let class = r.u8()?;
    r.skip(5)?;
    match class {
        0 => {
            r.skip(usize::from(ndims).saturating_mul(4))?;
            let len = usize::try_from(r.u32()?).unwrap_or(usize::MAX);
            Ok(DataLayout::Compact(r.bytes(len)?.to_vec()))
        }
        1 => {
            let address = sizes.address(r)?;
            r.skip(usize::from(ndims).saturating_mul(4))?;
            Ok(DataLayout::Contiguous { address, size: 0 })
        }
        2 => {
            let address = sizes.address(r)?;
            let (dims, element_size) = chunk_dims(r, ndims, 4)?;
            Ok(DataLayout::Chunked(ChunkedLayout {
                version,
                dims,
                element_size,
                unfiltered_edges: false,
                index: ChunkIndexLayout::BtreeV1,
                address,
            }))
        }
        c => Err(r.corrupt(format_args!("layout class {c} is not known"))),
    }
}

fn parse_new(r: &mut FieldReader<'_>, version: u8, sizes: Sizes) -> Result<DataLayout> {
    match r.u8()? {
        0 => {
            let len = usize::from(r.u16()?);
            Ok(DataLayout::Compact(r.bytes(len)?.to_vec()))
        }
        1 => Ok(DataLayout::Contiguous { address: sizes.address(r)?, size: sizes.length(r)? }),
        2 if version == 3 => {
            let ndims = rank(r)?;
            let address = sizes.address(r)?;
            let (dims, element_size) = chunk_dims(r, ndims, 4)?;
            Ok(DataLayout::Chunked(ChunkedLayout {
                version,
                dims,
                element_size,
                unfiltered_edges: false,
                index: ChunkIndexLayout::BtreeV1,
                address,
            }))
        }
        2 => parse_chunked(r, version, sizes).map(DataLayout::Chunked),
        3 if version >= 4 => Ok(DataLayout::Virtual { heap: sizes.address(r)?, index: r.u32()? }),
        c => Err(r.corrupt(format_args!("layout class {c} is not possible in version {version}"))),
    }
}

/// A chunked layout of version 4 or 5: flags, dimensions of a stated width, index type and its parameters.
fn parse_chunked(r: &mut FieldReader<'_>, version: u8, sizes: Sizes) -> Result<ChunkedLayout> {
    let flags = r.u8()?;
    if flags & !3 != 0 {
        return Err(r.corrupt(format_args!("unknown flags {flags:#x}")));
    }
    let ndims = rank(r)?;
    let width = r.u8()?;
    if !(1..=8).contains(&width) {
        return Err(r.corrupt(format_args!("chunk dimensions of {width} bytes each")));
    }
    let (dims, element_size) = chunk_dims(r, ndims, width)?;
    let index = match r.u8()? {
        1 => ChunkIndexLayout::Single {
            filtered: if flags & 2 != 0 { Some((sizes.length(r)?, r.u32()?)) } else { None },
        },
        2 => ChunkIndexLayout::Implicit,
        3 => ChunkIndexLayout::FixedArray { page_bits: nonzero(r)? },
        4 => ChunkIndexLayout::ExtensibleArray {
            max_bits: nonzero(r)?,
            index_elements: nonzero(r)?,
            min_pointers: nonzero(r)?,
            min_elements: nonzero(r)?,
            page_bits: nonzero(r)?,
        },
        5 => {
            let node_size = r.u32()?;
            if node_size == 0 {
                return Err(r.corrupt("B-tree nodes of 0 bytes"));
            }
            ChunkIndexLayout::BtreeV2 { node_size, split: nonzero(r)?, merge: nonzero(r)? }
        }
        k => return Err(r.corrupt(format_args!("chunk index type {k} is not known"))),
    };
    let address = sizes.address(r)?;
    Ok(ChunkedLayout { version, dims, element_size, unfiltered_edges: flags & 1 != 0, index, address })
}

fn rank(r: &mut FieldReader<'_>) -> Result<u8> {
    let n = r.u8()?;
    if n == 0 || n > MAX_DIMS {
        return Err(r.corrupt(format_args!("{n} dimensions; 1 to {MAX_DIMS} are possible")));
    }
    Ok(n)
}

fn nonzero(r: &mut FieldReader<'_>) -> Result<u8> {
    let n = r.u8()?;
    if n == 0 {
        return Err(r.corrupt("a chunk index parameter of 0"));
    }
    Ok(n)
}

/// Chunk extents and, behind them, the element size.
fn chunk_dims(r: &mut FieldReader<'_>, ndims: u8, width: u8) -> Result<(Vec<u64>, u64)> {
    let mut dims = (0..ndims).map(|_| r.uint(usize::from(width))).collect::<Result<Vec<u64>>>()?;
    if dims.contains(&0) {
        return Err(r.corrupt("a chunk dimension of 0"));
    }
    let element_size = dims.pop().unwrap_or(0);
    if dims.is_empty() {
        return Err(r.corrupt("chunks without a dimension"));
    }
    Ok((dims, element_size))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic fails the test")]
mod tests {
    use super::*;
    use tensilo_core::ErrorKind;

    fn parse(body: &[u8]) -> Result<DataLayout> {
        DataLayout::parse(body, 0, Sizes::EIGHT)
    }

    #[test]
    fn chunk_dimensions_of_every_width_are_read() {
        for width in 1..=8_u8 {
            let mut body = vec![4, 2, 1, 3, width];
            for dim in [200_u64, 17, 8] {
                body.extend(&dim.to_le_bytes()[..usize::from(width)]);
            }
            body.extend([3, 10]);
            body.extend(4096_u64.to_le_bytes());
            let DataLayout::Chunked(c) = parse(&body).unwrap() else { panic!("not chunked") };
            assert_eq!((c.dims, c.element_size), (vec![200, 17], 8));
            assert_eq!(c.index, ChunkIndexLayout::FixedArray { page_bits: 10 });
            assert!(c.unfiltered_edges);
            assert_eq!(c.address, Some(Address(4096)));
        }
    }

    #[test]
    fn impossible_layouts_are_corrupt() {
        let bad: [&[u8]; 9] = [
            &[0, 1],
            &[6, 1],
            &[3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 2, 4, 2, 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 2, 0, 34, 1],
            &[4, 2, 0, 2, 0],
            &[4, 2, 0, 2, 9],
            &[4, 2, 0, 2, 1, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0],
            &[3, 0, 5, 0, 1, 2, 3],
        ];
        for body in bad {
            assert_eq!(parse(body).unwrap_err().kind(), ErrorKind::Corrupt, "{body:?}");
        }
    }
}
