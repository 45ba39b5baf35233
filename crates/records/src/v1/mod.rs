//! Zrecord v1, the format of loaderx 0.5.0: a folder with a table `meta.zr` and data files `0.zr`, `1.zr`, ...
//!
//! The format is described in docs/formats/zrecord-v1.md, with what loaderx 0.5.0 did wrong and what happens here.
//! Data flows downwards through the files of this folder: `format` (what the bytes mean) → `place` (where a record
//! may lie) → `table` (the records in memory) → `chunks` (the bytes of the data files) → `codec` → `read`; and for
//! changes `append`, `journal` + `delete`, `compact`. `store` holds the handle, `files` names and locks.
//!
//! ```
//! use tensilo_records::v1::{Items, Zrecord, ZrecordOptions};
//! use tensilo_core::{Quiet, gather::Places, threads::Threads};
//! # let folder = std::env::temp_dir().join(format!("tensilo-zrecord-doc-{}", std::process::id()));
//! let store = Zrecord::create(&folder, ZrecordOptions::default())?;
//! let first = store.append(Items::Fixed { bytes: b"sixteen bytes...and sixteen more", stride: 16, len: 16, count: 2 }, None)?;
//! let mut batch = [0; 32];
//! store.gather(&[1, 0], &mut batch, Places::Stride(16), Threads::ONE, &Quiet)?;
//! assert_eq!((first, &batch), (0, b"and sixteen moresixteen bytes..."));
//! # drop(store);
//! # use tensilo_core::io::{Disk, SystemDisk};
//! # for name in ["0.zr", "meta.zr"] { SystemDisk.unlink(&folder.join(name))?; }
//! # SystemDisk.remove_dir(&folder)?;
//! # Ok::<(), tensilo_core::Error>(())
//! ```

mod append;
mod chunks;
mod codec;
mod compact;
mod delete;
mod fault;
mod files;
mod format;
mod items;
mod journal;
mod place;
mod read;
mod schema;
mod snapshot;
mod store;
mod table;

pub use codec::Codec;
pub use fault::{Fault, code_of};
pub use files::is_store;
pub use format::MAX_RECORD_LEN;
pub use items::Items;
pub use place::Geometry;
pub use schema::{SCHEMA_FILE, SCHEMA_FORMAT};
pub use snapshot::ZrecordSnapshot;
pub use store::{Stats, Zrecord, ZrecordOptions};
