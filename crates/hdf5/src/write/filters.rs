//! Which filters a dataset's chunks go through, by name.

use tensilo_filters::{FilterSpec, id};

/// A filter pipeline to be written; client values that depend on the datatype are filled in when it is known.
///
/// ```
/// use tensilo_hdf5::write::Filters;
/// let pipeline = Filters::new().shuffle().deflate(4);
/// assert_eq!(pipeline.specs(8)[0].values, [8]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Filters(Vec<(FilterSpec, Option<usize>)>);

impl Filters {
    /// No filter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bitshuffle with LZ4: what detectors write.
    pub fn bitshuffle_lz4() -> Self {
        Self::new().bitshuffle(2)
    }

    fn with(mut self, id: u16, values: Vec<u32>, element_size_at: Option<usize>) -> Self {
        self.0.push((FilterSpec::new(id, values).optional(), element_size_at));
        self
    }

    /// Byte shuffle.
    #[must_use]
    pub fn shuffle(self) -> Self {
        self.with(id::SHUFFLE, vec![0], Some(0))
    }

    /// Deflate at a level from 0 to 9.
    #[must_use]
    pub fn deflate(self, level: u32) -> Self {
        self.with(id::DEFLATE, vec![level], None)
    }

    /// Fletcher-32 checksum; never left out.
    #[must_use]
    pub fn fletcher32(mut self) -> Self {
        self.0.push((FilterSpec::new(id::FLETCHER32, Vec::new()), None));
        self
    }

    /// Bitshuffle, then 0 (nothing) or 2 (LZ4).
    #[must_use]
    fn bitshuffle(self, compression: u32) -> Self {
        self.with(id::BITSHUFFLE, vec![0, 4, 0, 0, compression], Some(2))
    }

    /// LZ4 in blocks of the default size.
    #[must_use]
    pub fn lz4(self) -> Self {
        self.with(id::LZ4, vec![0], None)
    }

    /// Zstandard at a level from 1 to 22.
    #[must_use]
    pub fn zstd(self, level: u32) -> Self {
        self.with(id::ZSTD, vec![level], None)
    }

    /// Any filter.
    #[must_use]
    pub fn then(mut self, spec: FilterSpec) -> Self {
        self.0.push((spec, None));
        self
    }

    /// The filters of a dataset with elements of this many bytes.
    pub fn specs(&self, element_size: u32) -> Vec<FilterSpec> {
        let fill = |(spec, slot): &(FilterSpec, Option<usize>)| {
            let mut spec = spec.clone();
            if let Some(v) = slot.and_then(|at| spec.values.get_mut(at)) {
                *v = element_size;
            }
            spec
        };
        self.0.iter().map(fill).collect()
    }
}

impl From<&[FilterSpec]> for Filters {
    fn from(specs: &[FilterSpec]) -> Self {
        Self(specs.iter().map(|s| (s.clone(), None)).collect())
    }
}

impl From<Vec<FilterSpec>> for Filters {
    fn from(specs: Vec<FilterSpec>) -> Self {
        Self(specs.into_iter().map(|s| (s, None)).collect())
    }
}
