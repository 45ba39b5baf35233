//! Tests of the filters against h5py + hdf5plugin, and against damage.

mod cases;
mod exhaustive;
mod hostile;
mod masks;
mod oracle;
mod szip;
mod zlib;
