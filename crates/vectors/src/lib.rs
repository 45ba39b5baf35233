//! Nearest neighbours among many vectors, kept in an HDF5 file that every tool can read.
//!
//! A [`VectorIndex`] holds vectors of equal length and a graph over them (HNSW, a hierarchy of navigable small worlds).
//! It is built once, by the crate `hnsw_rs`, in the order of the vectors and on one thread, with distances that are
//! summed in a fixed order: the same vectors and options give the same graph and the same file on every machine.
//! Searching walks the graph with code of this crate, which checks a file's graph when it is opened and can then
//! not be led astray by it. The file is described in `docs/formats/vectors-v1.md`.
//!
//! ```
//! use tensilo_vectors::{BuildOptions, Metric, VectorIndex};
//! # let folder = std::env::temp_dir().join(format!("tensilo-vectors-doc-{}", std::process::id()));
//! # use tensilo_core::io::{Disk, SystemDisk};
//! # SystemDisk.create_dir(&folder)?;
//! # let path = folder.join("points.h5");
//! // Three points of a plane.
//! let points = vec![0.0, 0.0, 1.0, 0.0, 5.0, 5.0];
//! let index = VectorIndex::build(points, 2, Metric::L2, BuildOptions::default())?;
//! index.save_to_hdf5(&path)?;
//!
//! let index = VectorIndex::open(&path)?;
//! let found = index.search(&[4.0, 4.0], 2, 64)?;
//! assert_eq!(found.iter().map(|n| n.row).collect::<Vec<_>>(), [2, 1]);
//! # SystemDisk.unlink(&path)?;
//! # SystemDisk.remove_dir(&folder)?;
//! # Ok::<(), tensilo_core::Error>(())
//! ```

mod build;
mod file;
mod graph;
mod index;
mod metric;
mod search;

pub use build::BuildOptions;
pub use file::SaveOptions;
pub use index::VectorIndex;
pub use metric::Metric;
pub use search::{Neighbour, Searcher};
