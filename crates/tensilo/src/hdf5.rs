//! HDF5 files, read without libhdf5: the handles, and how a selection is said.

pub use tensilo_core::array::{Hyperslab, NumpyIndex, Points, Resolved, Selection};
pub use tensilo_hdf5::format::datatype::{Class, Datatype};
pub use tensilo_hdf5::format::message::dataspace::Dataspace;
pub use tensilo_hdf5::object::DamagedAttribute;
pub use tensilo_hdf5::read::{
    Attribute, Dataset, Element, ExternalLinks, File, Group, LinkInfo, NamedDatatype, Object, OpenOptions,
    ReadPlan,
};

/// Writing new files.
pub mod write {
    pub use tensilo_hdf5::write::*;
}
