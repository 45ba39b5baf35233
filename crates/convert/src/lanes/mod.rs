//! Lane stores from and to `.npy` files and HDF5 datasets, and from format 1 to format 2.
//!
//! An array of shape `[n, …]` becomes a lane of `n` slabs, one for each step of its first axis; an array of one axis a
//! flat lane; and the other way round. A slab is in memory at a time, or a block of what needs no reordering.

mod export;
mod import;
mod rewrite;

pub use export::{lane_to_dataset, lane_to_npy, lanes_to_hdf5};
pub use import::{dataset_to_lane, lane_of_dataset, lane_of_npy, npy_to_lane};
pub(crate) use import::{lane_type, with_type};
pub use rewrite::rewrite;
