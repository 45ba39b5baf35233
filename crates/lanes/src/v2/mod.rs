//! Format 2, `PTS\x02`: checksums, twelve types, lanes that grow; the page `docs/formats/lanes-v2.md` is its definition.
//!
//! ```text
//! 0       commit record A, 64 bytes        512     commit record B, 64 bytes
//! 4096    lanes; later, wherever the file ended: appended slabs
//! ..      slab table and header (JSON) of each commit, behind everything it speaks of
//! ```
//! The valid commit record with the higher generation says where its header is. A commit writes data, table
//! and header, syncs, writes the other record, and syncs: a crash leaves the old state or the new one.

pub(crate) mod commit_record;
pub(crate) mod header;
