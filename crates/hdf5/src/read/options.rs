//! How a file is opened.

use tensilo_core::{Limits, threads::Threads};
use tensilo_filters::Registry;

/// How to open a file.
///
/// ```
/// use tensilo_core::{Limits, threads::Threads};
/// use tensilo_hdf5::read::OpenOptions;
/// let careful = OpenOptions {
///     limits: Limits::default().with_bytes(256 << 20),
///     threads: Threads::ONE,
///     ..OpenOptions::default()
/// };
/// # let _ = careful;
/// ```
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// What the file's numbers may make us allocate.
    pub limits: Limits,
    /// Threads that one read may use.
    pub threads: Threads,
    /// Which files named by this file may be opened.
    pub links: ExternalLinks,
    /// The filters that chunks are decoded with.
    pub filters: Registry,
}

/// Which files may be opened because a file names them (external links, virtual sources, external raw data).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternalLinks {
    /// Those in the folder of the naming file and the folders beneath it; no symbolic link may lead out.
    #[default]
    SameFolderTree,
    /// None.
    Refuse,
    /// Any; for files that are trusted.
    Anywhere,
}
