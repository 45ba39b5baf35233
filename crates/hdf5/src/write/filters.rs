//! Which filters a dataset's chunks go through, by name.

use super::client_values::{Elements, is_number, nbit, scale_offset, szip};
use crate::format::datatype::{Class, Datatype};
use tensilo_core::Result;
use tensilo_filters::{ChunkInfo, Codecs, FilterSpec, Pipeline, Registry, Scratch, id};

/// Most elements with which a filter is tried, and bytes of them if they are more than one.
const TRIED: (u64, u64) = (1024, 64 << 10);

/// A filter pipeline to be written; client values that depend on the datatype are filled in when it is known.
///
/// ```
/// use tensilo_hdf5::write::Filters;
/// let pipeline = Filters::new().shuffle().deflate(4);
/// assert_eq!(pipeline.specs(8)[0].values, [8]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Filters(Vec<(FilterSpec, Late)>);

/// What of a filter's client values is not known before the dataset is.
#[derive(Debug, Clone, Copy)]
enum Late {
    Nothing,
    /// One value is the size of an element.
    ElementSize(usize),
    /// One value is the size of a chunk.
    ChunkBytes(usize),
    Szip {
        pixels: u32,
        nearest: bool,
    },
    Nbit,
    ScaleOffset(i32),
}

impl Filters {
    /// No filter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bitshuffle with LZ4: what detectors write. Mandatory, so that no chunk is stored without it.
    pub fn bitshuffle_lz4() -> Self {
        Self(vec![(FilterSpec::new(id::BITSHUFFLE, vec![0, 4, 0, 0, 2]), Late::ElementSize(2))])
    }

    fn with(mut self, id: u16, values: Vec<u32>, late: Late) -> Self {
        self.0.push((FilterSpec::new(id, values).optional(), late));
        self
    }

    /// Is there no filter?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Byte shuffle.
    #[must_use]
    pub fn shuffle(self) -> Self {
        self.with(id::SHUFFLE, vec![0], Late::ElementSize(0))
    }

    /// Deflate at a level from 0 to 9. Level 1 looks for long copies only; 7 to 9 are slow and hardly smaller than 6.
    #[must_use]
    pub fn deflate(self, level: u32) -> Self {
        self.with(id::DEFLATE, vec![level], Late::Nothing)
    }

    /// Fletcher-32 checksum; never left out.
    #[must_use]
    pub fn fletcher32(mut self) -> Self {
        self.0.push((FilterSpec::new(id::FLETCHER32, Vec::new()), Late::Nothing));
        self
    }

    /// Bitshuffle, then 0 (nothing) or 2 (LZ4).
    #[must_use]
    pub fn bitshuffle(self, compression: u32) -> Self {
        self.with(id::BITSHUFFLE, vec![0, 4, 0, 0, compression], Late::ElementSize(2))
    }

    /// LZ4 in blocks of the default size.
    #[must_use]
    pub fn lz4(self) -> Self {
        self.with(id::LZ4, vec![0], Late::Nothing)
    }

    /// Zstandard at a level from 1 to 22. Behind [`shuffle`](Self::shuffle), level 3 is what we recommend wherever the
    /// readers have the filter (hdf5plugin for h5py): it stores about what deflate stores at level 6, four to ten times as fast.
    ///
    /// Eight frames of 512 × 512, all behind shuffle, one thread; MB are 10^6 bytes of elements. Zstandard from
    /// level 6 was measured in another run, when the clock was slower:
    ///
    /// | filter | f32 field: ratio | MB/s written | MB/s read | u16 counts: ratio | MB/s written | MB/s read |
    /// |---|---|---|---|---|---|---|
    /// | deflate 1 | 1.68 | 385 | 2330 | 11.32 | 596 | 656 |
    /// | deflate 4 | 1.75 | 252 | 2756 | 9.07 | 127 | 1934 |
    /// | deflate 6 | 1.76 | 153 | 2588 | 9.68 | 44 | 1859 |
    /// | deflate 9 | 1.77 | 43 | 2329 | 10.47 | 3 | 2032 |
    /// | zstd 1 | 1.76 | 771 | 2798 | 8.68 | 515 | 1482 |
    /// | **zstd 3** | 1.78 | 671 | 2619 | 8.86 | 476 | 1668 |
    /// | zstd 6 | 1.78 | 224 | 1572 | 9.35 | 75 | 832 |
    /// | zstd 9 | 1.79 | 122 | 1535 | 9.56 | 38 | 916 |
    /// | zstd 15 | 1.79 | 25 | 1249 | 11.14 | 6 | 1425 |
    ///
    /// ```
    /// use tensilo_hdf5::write::Filters;
    /// let recommended = Filters::new().shuffle().zstd(3);
    /// assert_eq!(recommended.specs(4).len(), 2);
    /// ```
    #[must_use]
    pub fn zstd(self, level: u32) -> Self {
        self.with(id::ZSTD, vec![level], Late::Nothing)
    }

    /// A filter by its registered number, with its client values.
    #[must_use]
    pub fn filter(self, id: u16, values: &[u32], optional: bool) -> Self {
        let spec = FilterSpec::new(id, values.to_vec());
        self.then(if optional { spec.optional() } else { spec })
    }

    /// Any filter.
    #[must_use]
    pub fn then(mut self, spec: FilterSpec) -> Self {
        self.0.push((spec, Late::Nothing));
        self
    }

    /// LZF, as h5py writes it.
    #[must_use]
    pub fn lzf(self) -> Self {
        self.with(id::LZF, vec![4, 0x0105, 0], Late::ChunkBytes(2))
    }

    /// Szip with this even number of pixels per block (up to 32), of neighbours' differences or not.
    #[must_use]
    pub fn szip(self, pixels: u32, nearest: bool) -> Self {
        self.with(id::SZIP, Vec::new(), Late::Szip { pixels, nearest })
    }

    /// N-bit: only significant bits.
    #[must_use]
    pub fn nbit(self) -> Self {
        self.with(id::NBIT, Vec::new(), Late::Nbit)
    }

    /// Scale-offset: decimal digits that floats keep, or bits of integers (0 for as many as are needed).
    #[must_use]
    pub fn scale_offset(self, scale: i32) -> Self {
        self.with(id::SCALE_OFFSET, Vec::new(), Late::ScaleOffset(scale))
    }

    /// The filters of a dataset with elements of this many bytes; values that follow from more than that (of szip,
    /// n-bit and scale-offset) are left out.
    pub fn specs(&self, element_size: u32) -> Vec<FilterSpec> {
        let fill = |(spec, late): &(FilterSpec, Late)| {
            let mut spec = spec.clone();
            if let Late::ElementSize(at) = late
                && let Some(v) = spec.values.get_mut(*at)
            {
                *v = element_size;
            }
            spec
        };
        self.0.iter().map(fill).collect()
    }

    /// Sees that chunks can be encoded: a filter that is not built in, only decodes or refuses its client values would be
    /// left out of every chunk where it is optional.
    ///
    /// ```
    /// use tensilo_hdf5::write::Filters;
    /// assert!(Filters::new().filter(32_001, &[2, 2, 4, 400, 5, 1, 0], true).check_encodes(4, &[100]).is_ok());
    /// assert!(Filters::new().filter(999, &[], true).check_encodes(4, &[100]).is_err());
    /// ```
    ///
    /// # Errors
    /// `Unsupported`, `InvalidArgument`, naming the filter.
    pub fn check_encodes(&self, element_size: u32, chunk: &[u64]) -> Result<()> {
        // A short run along the fastest axis stands for the chunk.
        let mut chunk_dims = vec![1; chunk.len()];
        if let (Some(to), Some(from)) = (chunk_dims.last_mut(), chunk.last()) {
            *to = (*from).min(TRIED.0).min((TRIED.1 / u64::from(element_size).max(1)).max(1));
        }
        let elements = chunk_dims.iter().product::<u64>() as usize;
        let raw = vec![0; elements * element_size as usize];
        let info = ChunkInfo { element_size: element_size as usize, chunk_dims };
        let registry = Registry::default();
        let specs = self.specs(element_size);
        let known = |late: &Late| matches!(late, Late::Nothing | Late::ElementSize(_));
        for (spec, _) in specs.iter().zip(&self.0).filter(|(_, (_, late))| known(late)) {
            let Some(filter) = registry.get(spec.id) else {
                return Pipeline::new(&[FilterSpec::new(spec.id, Vec::new())], &registry)
                    .and_then(|p| p.encode(&mut Scratch::default(), &raw, &info))
                    .map(drop);
            };
            filter
                .encode(&spec.values, &info, &mut Codecs::default(), &raw, &mut Vec::new())
                .map_err(|e| e.context(format_args!("filter {} ({})", spec.id, filter.name())))?;
        }
        Ok(())
    }

    /// Those of the filters that a dataset of such elements can have: codecs of numbers pass by everything else.
    pub(crate) fn possible(&self, datatype: &Datatype, chunk: &[u64]) -> Self {
        let can = |late: &Late| match late {
            Late::Szip { pixels, .. } => {
                let points = chunk.iter().fold(1_u64, |n, d| n.saturating_mul(*d));
                is_number(datatype) && points >= u64::from(*pixels)
            }
            Late::ScaleOffset(_) => matches!(datatype.class, Class::Integer { .. } | Class::Float { .. }),
            _ => true,
        };
        Self(self.0.iter().filter(|(_, late)| can(late)).cloned().collect())
    }

    /// The filters of a dataset with all their values.
    pub(crate) fn specs_of(&self, of: Elements<'_>) -> Result<Vec<FilterSpec>> {
        let mut specs = self.specs(of.datatype.size);
        for (spec, (_, late)) in specs.iter_mut().zip(&self.0) {
            match *late {
                Late::Nothing | Late::ElementSize(_) => {}
                Late::ChunkBytes(at) => {
                    if let Some(v) = spec.values.get_mut(at) {
                        // Larger ones are refused where the chunk is checked.
                        *v = u32::try_from(of.chunk_bytes()).unwrap_or(0);
                    }
                }
                Late::Szip { pixels, nearest } => spec.values = szip(of, pixels, nearest)?,
                Late::Nbit => spec.values = nbit(of)?,
                Late::ScaleOffset(scale) => spec.values = scale_offset(of, scale)?,
            }
        }
        Ok(specs)
    }
}

impl From<&[FilterSpec]> for Filters {
    fn from(specs: &[FilterSpec]) -> Self {
        Self(specs.iter().map(|s| (s.clone(), Late::Nothing)).collect())
    }
}

impl From<Vec<FilterSpec>> for Filters {
    fn from(specs: Vec<FilterSpec>) -> Self {
        Self(specs.into_iter().map(|s| (s, Late::Nothing)).collect())
    }
}
