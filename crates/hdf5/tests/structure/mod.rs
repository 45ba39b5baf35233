//! Structures: what superblocks, headers, heaps, groups and attributes say, against what libhdf5 says.

mod corpus;
pub mod generated;
mod image_memory;
mod images;
mod mutation;
mod opening;
mod walker;
