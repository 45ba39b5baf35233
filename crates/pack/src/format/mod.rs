//! What the bytes of a pack mean: prelude, manifest, binary index, compact headers, tiles, LZ4 blocks.
//!
//! Every structure has its reading and its writing side by side; nothing here opens a file.

pub mod header;
pub mod index;
pub mod lz4_blocks;
pub mod manifest;
pub mod prelude;
pub mod tile;
