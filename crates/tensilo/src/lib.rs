//! Arrays that outgrow memory, in Rust and without libhdf5: read HDF5 files, write them, and turn a detector
//! family into an exact, much smaller pack.
//!
//! This crate is the door: it re-exports what the others offer, and this page is the guided tour. Every example
//! runs as a test on the family in `examples/family` of the repository.
//!
//! # Open a file, read a dataset
//!
//! [`hdf5::File`] opens a file; handles are cheap to clone and may be used from several threads at once. Links are
//! followed, also into other files of the same folder. Numbers are converted to the type that is asked for, where
//! every value fits.
//!
//! ```
//! use tensilo::hdf5::File;
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! let file = File::open("examples/family/demo_master.h5")?;
//! let frames = file.dataset("/entry/data/data_000001")?; // an external link
//! assert_eq!(frames.shape(), [200, 64, 64]);
//! let counts: Vec<f32> = frames.read::<f32>()?;
//! assert_eq!(counts.len(), 200 * 64 * 64);
//! # Ok::<(), tensilo::Error>(())
//! ```
//!
//! # Read a part into your own buffer
//!
//! Every read has two forms: `read…` allocates, `read_into` fills a slice. A [`hdf5::Hyperslab`] is start, count,
//! stride and block along each dimension; [`hdf5::NumpyIndex`] reads the same from text such as `0:10, ..., ::2`.
//! Only chunks that the selection touches are read.
//!
//! ```
//! use tensilo::hdf5::{File, Hyperslab, NumpyIndex, Selection};
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! let frames = File::open("examples/family/demo_data_000001.h5")?.dataset("/entry/data/data")?;
//! let every_tenth_frame = Selection::from(
//!     Hyperslab::new(vec![0, 16, 16], vec![20, 32, 32]).with_stride(vec![10, 1, 1]),
//! );
//! let mut counts = vec![0_u16; 20 * 32 * 32];
//! frames.read_into(&every_tenth_frame, &mut counts)?;
//!
//! let same = "0:200:10, 16:48, 16:48".parse::<NumpyIndex>()?.resolve(frames.shape())?;
//! assert_eq!(same.shape, [20, 32, 32]);
//! assert_eq!(frames.read_selection::<u16>(&same.selection)?, counts);
//! # Ok::<(), tensilo::Error>(())
//! ```
//!
//! # Attributes
//!
//! ```
//! use tensilo::hdf5::File;
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! let file = File::open("examples/family/demo_master.h5")?;
//! let data = file.group("/entry/data")?;
//! assert_eq!(data.attribute("NX_class")?.read_string()?, "NXdata");
//! assert_eq!(data.attribute("scan_shape")?.read::<u64>()?, [16, 32]);
//! for attribute in data.attributes()? {
//!     println!("{}", attribute.map_err(|damaged| damaged.error)?.text());
//! }
//! # Ok::<(), tensilo::Error>(())
//! ```
//!
//! # As an `ndarray`
//!
//! With the feature `ndarray`, `arrays::ReadArray` gives every dataset `read_array` and `read_array_selection`.
#![cfg_attr(
    feature = "ndarray",
    doc = "
```
use tensilo::arrays::ReadArray;
use tensilo::hdf5::File;
# std::env::set_current_dir(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../..\")).unwrap();
let frames = File::open(\"examples/family/demo_data_000003.h5\")?.dataset(\"/entry/data/data\")?;
let stack = frames.read_array::<u32>()?;
assert_eq!(stack.shape(), [112, 64, 64]);
let sum = stack.sum_axis(ndarray::Axis(0));
assert!(sum[[31, 31]] > sum[[5, 5]]);
# Ok::<(), tensilo::Error>(())
```"
)]
//!
//! # Errors
//!
//! There is one [`Error`]: its [`kind`](Error::kind) says who must act, its text is one line with file, object and
//! byte. Nothing that a file says makes a read panic, hang, or allocate more than [`core::Limits`] allow.
//!
//! ```
//! use tensilo::ErrorKind;
//! use tensilo::hdf5::File;
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! let file = File::open("examples/family/demo_master.h5")?;
//! let e = file.dataset("/entry/data/data_000009").unwrap_err();
//! assert_eq!(e.kind(), ErrorKind::NotFound);
//! assert!(e.to_string().starts_with("examples/family/demo_master.h5: /entry/data: "));
//! # Ok::<(), tensilo::Error>(())
//! ```
//!
//! # Where to go on
//!
//! * [`hdf5`]: everything about reading, and [`hdf5::write`].
//! * [`diff`]: whether two files or objects say the same, and where they do not.
//! * [`digest`]: what a file says, as lines that every implementation prints alike.
//! * [`view`] and [`value`]: objects and elements as plain data, for JSON and for people.
//! * [`numpy`]: dtypes and `.npy` headers.
//! * [`core`]: errors, limits, threads, progress, byte sources and disks.

#[cfg(feature = "ndarray")]
pub mod arrays;
pub mod diff;
pub mod digest;
pub mod dump;
pub mod hdf5;
pub mod numpy;
pub mod value;
pub mod view;

pub use tensilo_convert as convert;
pub use tensilo_core as core;
pub use tensilo_core::{Error, ErrorKind, Result};
pub use tensilo_lanes as lanes;
pub use tensilo_loader as loader;
pub use tensilo_pack as pack;
pub use tensilo_records as records;
