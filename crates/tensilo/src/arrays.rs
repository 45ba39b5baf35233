//! Datasets as `ndarray` arrays (feature `ndarray`).

use crate::hdf5::{Class, Dataset, Datatype, Element, Selection};
use ndarray::{ArrayD, IxDyn};
use tensilo_core::{Error, Result};

/// Reads datasets into `ndarray` arrays.
///
/// ```
/// use tensilo::arrays::ReadArray;
/// use tensilo::hdf5::File;
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
/// let file = File::open("examples/family/demo_master.h5")?;
/// let mask = file.dataset("/entry/instrument/detector/detectorSpecific/pixel_mask")?.read_array::<u32>()?;
/// assert_eq!(mask.shape(), [64, 64]);
/// assert_eq!(mask[[3, 60]], 1);
/// # Ok::<(), tensilo::Error>(())
/// ```
pub trait ReadArray {
    /// All elements. An array datatype adds its dimensions at the end.
    ///
    /// # Errors
    /// As [`Dataset::read`].
    fn read_array<T: Element>(&self) -> Result<ArrayD<T>> {
        self.read_array_selection(&Selection::All)
    }

    /// Selected elements, in the shape of the selection.
    ///
    /// # Errors
    /// As [`Dataset::read_selection`].
    fn read_array_selection<T: Element>(&self, selection: &Selection) -> Result<ArrayD<T>>;
}

impl ReadArray for Dataset {
    fn read_array_selection<T: Element>(&self, selection: &Selection) -> Result<ArrayD<T>> {
        let mut shape = Vec::new();
        for n in selection.shape(self.shape())?.into_iter().chain(inner_shape(self.datatype())) {
            shape.push(usize::try_from(n).map_err(|_| Error::limit("the array does not fit in memory"))?);
        }
        let values = self.read_selection(selection)?;
        ArrayD::from_shape_vec(IxDyn(&shape), values)
            .map_err(|e| Error::unsupported(format!("as an array of shape {shape:?}: {e}")))
    }
}

/// The dimensions that an array datatype adds.
fn inner_shape(t: &Datatype) -> Vec<u64> {
    match &t.class {
        Class::Array { dims, base } => dims.iter().copied().chain(inner_shape(base)).collect(),
        _ => Vec::new(),
    }
}
