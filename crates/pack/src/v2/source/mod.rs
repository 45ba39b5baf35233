//! Where counts come from: a detector family, any HDF5 dataset, a `.npy` file, or a pack of format 1.

pub(crate) mod boxes;
pub(crate) mod family;
pub mod inspect;
pub(crate) mod npy;
pub(crate) mod stack;
