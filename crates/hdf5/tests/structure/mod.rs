//! Structures: what superblocks, headers, heaps, groups and attributes say, against what libhdf5 says.

mod corpus;
mod generated;
mod mutation;
mod opening;
mod walker;
