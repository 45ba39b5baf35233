//! HDF5 files, read and written without libhdf5: the handles, and how a selection is said.

pub use tensilo_core::array::{
    Axis, ChunkGrid, Hyperslab, IndexItem, NumpyIndex, Points, Resolved, Selection, Zipped,
};
pub use tensilo_hdf5::format::datatype::{Class, Datatype, Member};
pub use tensilo_hdf5::format::message::dataspace::Dataspace;
pub use tensilo_hdf5::format::message::fill_value::FillTime;
pub use tensilo_hdf5::object::DamagedAttribute;
pub use tensilo_hdf5::read::{
    Attribute, ChunkEntry, Dataset, Element, ExternalLinks, File, Group, LinkInfo, ManifestEntry,
    NamedDatatype, Object, OpenOptions, ReadPlan, Reference, Region, Request, Source, SourcePlan,
    open_source, read_multi,
};

/// Writing new files.
pub mod write {
    pub use tensilo_hdf5::write::*;
}

/// Checking whole files.
pub mod check {
    pub use tensilo_hdf5::check::*;
}

/// Whole files written again.
pub mod repack {
    pub use tensilo_hdf5::repack::*;
}
