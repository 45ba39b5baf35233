//! Where bytes come from ([`ByteSource`]) and how anything reaches a disk ([`Disk`]).

mod disk;
mod source;
pub mod staged;
mod system_disk;

pub use disk::{Disk, DiskFile, LockKind};
pub use source::{ByteSource, FileSource, Fingerprint, MemorySource};
pub use staged::Staged;
pub use system_disk::SystemDisk;
