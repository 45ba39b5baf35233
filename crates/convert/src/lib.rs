//! From one kind of store to another, a bounded block at a time.
//!
//! [`npy`] reads and writes NumPy's array files, [`npz`] archives of them; [`lanes`] moves arrays into and out of lane stores,
//! [`records`] into and out of record stores, [`hdf5`] into and out of HDF5 datasets.

pub mod hdf5;
pub mod lanes;
pub mod npy;
pub mod npz;
pub mod records;

/// Bytes that are in memory at one time, about.
const BLOCK: u64 = 16 << 20;
