//! Tests of the filters against h5py + hdf5plugin, and against damage.

mod cases;
mod hostile;
mod oracle;
mod szip;
