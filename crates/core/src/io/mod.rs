//! Where bytes come from ([`ByteSource`]) and how anything reaches a disk ([`Disk`]).
//!
//! Sources: [`FileSource`] (by position), [`MemorySource`], [`MappedSource`], [`OverlaySource`] (patches over
//! another), [`SparseSource`] (what was fetched so far). Disks: [`SystemDisk`], published to through [`Staged`].

mod coalesce;
mod disk;
mod mapped;
mod overlay;
mod source;
mod sparse;
pub mod staged;
mod system_disk;

pub use coalesce::{Coalesce, Fetch, coalesce, read_coalesced};
pub use disk::{Disk, DiskFile, LockKind};
pub use mapped::MappedSource;
pub use overlay::OverlaySource;
pub use source::{ByteSource, FileSource, Fingerprint, MemorySource};
pub use sparse::{SparseSource, fetch_until_done};
pub use staged::Staged;
pub use system_disk::SystemDisk;
