//! Writing new files: split → encode → layout → emit.
//!
//! A [`FileWriter`] takes objects in any order. Raw data goes to the disk at once, in call order: arrays are
//! *split* into chunks, each chunk is *encoded* exactly once, on all threads, and leaves in order through a
//! bounded window. Metadata is kept as a tree until [`FileWriter::finish`], which *lays it out* (a [`Layout`]: every block
//! with its address, printable) and *emits* it, the superblock last. Only then does the file get its name.

mod addresses;
mod chunks;
mod client_values;
mod contiguous;
mod dataset;
mod dense;
mod element;
mod encode;
mod external_data;
mod file_space;
mod filters;
mod group;
mod heap;
mod index;
mod layout;
mod options;
mod out;
mod references;
mod scales;
mod shared;
mod split;
mod tree;
mod value;
mod virtual_dataset;
mod workers;
mod writer;

pub use crate::format::encode::Bound;
pub use crate::format::encode::selection::{Region, Span};
pub use chunks::ChunkWriter;
pub use contiguous::ContiguousWriter;
pub use dataset::{DatasetBuilder, Written};
pub use element::Element;
pub use external_data::ExternalData;
pub use file_space::{FileSpaceOptions, SharedIndexOptions, SharedKind, SpaceStrategy};
pub use filters::Filters;
pub use heap::HeapId;
pub use layout::{Block, Layout};
pub use options::{SharedMonitor, WriteOptions};
pub use references::Referred;
pub use tree::Tracking;
pub(crate) use tree::normal;
pub use value::Value;
pub use virtual_dataset::VirtualSource;
pub use writer::{FileWriter, Finished};
