//! Tensilo's own record store: one file of records with typed fields, each with its checksum.
//!
//! [`Store`] is a snapshot for reading, [`StoreWriter`] the one writer. What was committed is never changed: appends and
//! deletions write behind it, compaction makes a new file. The format is described byte by byte in
//! `docs/formats/records-v1.md`.

mod append;
mod appender;
mod batch;
mod codec;
mod compact;
mod delete;
mod entry;
mod gather;
#[cfg(test)]
mod huge_tests;
mod layout;
mod pairs;
mod reading;
mod runs;
mod salvage;
mod schema_block;
mod snapshot;
mod state;
mod table;
mod verify;
mod writer;

pub use append::Column;
pub use codec::{Codec, Encoding, UnknownEncoding, train_dictionary};
pub use compact::Compacted;
pub use entry::{Ahead, LARGEST_CELL};
pub use layout::{MAGIC, VERSION};
pub use salvage::{Lost, Salvaged, salvage};
pub use snapshot::{OpenOptions, Stats, Store, is_store};
pub use state::{MOST_FIELDS, MOST_RECORDS};
pub use verify::{Problem, Verified, Where};
pub use writer::{StoreWriter, WriterOptions};
