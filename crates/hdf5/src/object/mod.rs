//! Follows addresses: object headers, links, attributes, heaps, shared messages.
//!
//! [`ObjectHeader`] is one object; [`links`] and [`lookup`] are what a group holds, [`attributes`] what any object
//! carries. Every walk is bounded: no cycle, however made, is followed twice, and no structure is believed to be
//! longer than the file.

mod attributes;
mod btree_v2;
mod fractal_heap;
mod header;
pub mod heap;
mod links;
mod local_heap;
mod shared;
mod symbol_table;
mod together;

pub use attributes::{AttributeData, DamagedAttribute, attribute, attributes};
pub use btree_v2::{find, walk};
pub use fractal_heap::FractalHeap;
pub use header::{ExternalFile, ObjectHeader, ObjectKind};
pub use links::{links, links_up_to, lookup};
pub use local_heap::LocalHeap;
pub use shared::Resolved;

pub use crate::format::message::link::{Link, LinkTarget};
pub use crate::space::Message;
