//! hdf5
