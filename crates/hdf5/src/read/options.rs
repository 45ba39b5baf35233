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
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// What the file's numbers may make us allocate.
    pub limits: Limits,
    /// Threads that one read may use.
    pub threads: Threads,
    /// Which files named by this file may be opened.
    pub links: ExternalLinks,
    /// The filters that chunks are decoded with.
    pub filters: Registry,
    /// Most bytes of decoded chunks to keep, beside what `limits` allow, for reads that need only parts of a chunk;
    /// 0 keeps none.
    pub chunk_cache: usize,
}

impl Default for OpenOptions {
    /// Default limits and filters, all cores, names only within the file's folder tree, 16 MiB of decoded chunks.
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            threads: Threads::default(),
            links: ExternalLinks::default(),
            filters: Registry::default(),
            chunk_cache: 16 << 20,
        }
    }
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
