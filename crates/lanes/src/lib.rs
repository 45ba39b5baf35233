//! A memory-mapped store of typed arrays in k-slabs, for models larger than memory.
//!
//! A store holds named **lanes**. A lane is divided into **slabs** along the slow axis, each a contiguous run at
//! a fixed stride, so that a **window** of slabs is one slice of the map: reading costs no copy and no decoding.
//! Format 1 is petektools' `.pts`, byte for byte; format 2 adds checksums, more types and growth.
//!
//! ```
//! use tensilo_lanes::{LaneSpec, LaneType, Store, StoreSchema, StoreWriter};
//! # use tensilo_core::io::{Disk, SystemDisk};
//! # let folder = std::env::temp_dir().join(format!("tensilo-lanes-doc-{}", std::process::id()));
//! # SystemDisk.create_dir(&folder)?;
//! let path = folder.join("model.pts");
//! let schema = StoreSchema::new(3, vec![
//!     LaneSpec::slab("PORO", LaneType::F32, 4),
//!     LaneSpec::flat("COORD", LaneType::F64, 2),
//!     LaneSpec::slab("ZONE", LaneType::U16, 1),
//! ])
//! .with_app(serde_json::json!({ "kind": "demo" }));
//! let writer = StoreWriter::create(&path, schema)?.with_flush_behind(true);
//! for k in 0..3 {
//!     writer.slab_mut_f32("PORO", k)?.fill(k as f32);
//!     writer.write_slab_u16("ZONE", k, &[7])?;
//! }
//! writer.write_flat_f64("COORD", &[0.5, 1.5])?;
//! writer.flush_behind_slab("PORO", 2)?;
//! writer.flush()?;
//! writer.finalize()?;
//!
//! let store = Store::open(&path)?;
//! assert_eq!((store.nslabs(), store.lanes().len()), (3, 3));
//! assert_eq!(store.lane("COORD")?.elems(), 2);
//! assert_eq!(store.app()["kind"], "demo");
//! assert_eq!(store.slab_f32("PORO", 2)?, [2.0; 4]);
//! assert_eq!(store.window_f32("PORO", 1, 3)?.len(), 8);
//! assert_eq!(store.lane_u16("ZONE")?, [7; 3]);
//! assert_eq!(store.flat_f64("COORD")?, [0.5, 1.5]);
//! # #[cfg(feature = "ndarray")] {
//! // With the feature `ndarray`:
//! assert_eq!(store.window_view_f32("PORO", 1, 3)?.shape(), [2, 4]);
//! assert_eq!(store.slab_view_f32("PORO", 1)?[3], 1.0);
//! # }
//! // A clone costs nothing and serves another thread from the same map.
//! let other = store.clone();
//! let sum = std::thread::spawn(move || other.slab_f32("PORO", 1).map(|s| s.iter().sum::<f32>()));
//! assert_eq!(sum.join().unwrap()?, 4.0);
//! # drop(store);
//! # SystemDisk.unlink(&path)?;
//! # SystemDisk.remove_dir(&folder)?;
//! # Ok::<(), tensilo_core::Error>(())
//! ```

mod checked;
mod chunked;
mod examine;
mod flat_writer;
mod lane_type;
mod named;
mod place;
mod records;
mod reduce;
mod residency;
mod schema;
mod slab_mut;
mod store;
mod temporary;
mod v1;
mod v2;
mod views;
mod writer;

pub use flat_writer::FlatWriter;
pub use lane_type::{LaneElement, LaneType};
pub use records::LaneRecords;
pub use reduce::{Histogram, Summary};
pub use residency::Advice;
pub use schema::{FormatVersion, LaneKind, LaneSpec, StoreSchema};
pub use slab_mut::SlabMut;
pub use store::{Lane, OpenOptions, Store, open};
pub use temporary::TemporaryStore;
pub use writer::{StoreWriter, WriterOptions};
