//! Reading: handles for files, groups, datasets and attributes; plan and execution.
//!
//! Handles are cheap clones, `Send` and `Sync`, and hold no lock while they read. A read is planned first
//! ([`ReadPlan`], a value that can be printed) and then carried out: neighbouring chunks are fetched together,
//! decoded on all threads, straight into the destination where the shape allows it.
//!
//! ```no_run
//! use tensilo_core::array::{Hyperslab, Selection};
//! use tensilo_hdf5::read::File;
//! let file = File::open("scan.h5")?;
//! for link in file.root()?.links()? {
//!     println!("{}", link.text());
//! }
//! let frames = file.dataset("/entry/data")?;
//! let first_ten = Selection::from(Hyperslab::new(vec![0, 0, 0], vec![10, 192, 192]));
//! let counts: Vec<u16> = frames.read_selection(&first_ten)?;
//! # let _ = counts;
//! # Ok::<(), tensilo_core::Error>(())
//! ```

mod attribute;
mod cache;
mod chunks;
mod convert;
mod dataset;
mod element;
mod execute;
mod external;
mod external_raw;
mod file;
mod group;
mod multi;
mod names;
mod options;
mod origins;
mod pairing;
mod path;
mod plan;
mod reference;
mod strings;
mod view;
mod virtual_dataset;
pub mod vlen;

pub use crate::index::ChunkEntry;
pub use crate::object::DamagedAttribute;
pub use attribute::Attribute;
pub use chunks::ManifestEntry;
pub use dataset::Dataset;
pub use element::{Element, Kind};
pub use file::{File, Object, open_source};
pub use group::{Group, LinkInfo, NamedDatatype};
pub use multi::{Request, read_multi};
pub use options::{ExternalLinks, OpenOptions};
pub use plan::{ReadPlan, Source, SourcePlan};
pub use reference::{Reference, Region};
pub use strings::trim;
