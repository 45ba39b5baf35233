//! The integration tests of HDF5 reading and writing, one binary.

mod checking;
mod reading;
mod structure;
mod writing;
