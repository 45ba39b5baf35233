//! HDF5 files, read and written without libhdf5.
//!
//! Floors, from the ground up; each imports only those below it:
//!
//! * [`mod@format`]: what the bytes mean. Parsing and encoding of every structure, no I/O, no panic.
//! * [`space`]: the file as bytes at addresses: superblock, base address, budget, checksummed reads.
//! * [`object`]: follows addresses: object headers, links, attributes, names.
//! * [`index`]: where a chunk is: six kinds of chunk index behind one lookup.
//! * [`read`]: handles for files, groups, datasets and attributes, plan and execution.
//! * [`mod@write`]: split, encode, layout, emit.
//! * [`check`]: walks everything, verifies every checksum, and goes on behind damage.
//! * [`mod@repack`]: a file read and written again.

pub mod check;
pub mod format;
pub mod index;
pub mod object;
pub mod read;
pub mod repack;
pub mod space;
pub mod write;
