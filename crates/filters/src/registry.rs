//! Which filters there are.

use crate::filter::Filter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The filters a pipeline is built from; the default one knows every built-in filter.
#[derive(Clone)]
pub struct Registry {
    filters: BTreeMap<u16, Arc<dyn Filter>>,
}

impl Registry {
    /// A registry that knows no filter at all.
    pub fn empty() -> Self {
        Self { filters: BTreeMap::new() }
    }

    /// Adds a filter; it takes the place of one with the same id.
    pub fn register(&mut self, filter: Arc<dyn Filter>) {
        self.filters.insert(filter.id(), filter);
    }

    /// The filter with this id.
    pub fn get(&self, id: u16) -> Option<&Arc<dyn Filter>> {
        self.filters.get(&id)
    }

    /// Ids and names of all filters, by id.
    pub fn list(&self) -> impl Iterator<Item = (u16, &str)> {
        self.filters.values().map(|f| (f.id(), f.name()))
    }
}

impl Default for Registry {
    fn default() -> Self {
        let mut all = Self::empty();
        all.register(Arc::new(crate::deflate::Deflate));
        all.register(Arc::new(crate::shuffle::Shuffle));
        all.register(Arc::new(crate::fletcher32::Fletcher32));
        all.register(Arc::new(crate::szip::Szip));
        all.register(Arc::new(crate::nbit::Nbit));
        all.register(Arc::new(crate::scaleoffset::ScaleOffset));
        all.register(Arc::new(crate::bzip2::Bzip2));
        all.register(Arc::new(crate::lzf::Lzf));
        all.register(Arc::new(crate::lz4::Lz4));
        all.register(Arc::new(crate::blosc::Blosc));
        all.register(Arc::new(crate::blosc::Blosc2));
        all.register(Arc::new(crate::bitshuffle::Bitshuffle));
        all.register(Arc::new(crate::zstandard::Zstandard));
        all.register(Arc::new(crate::vbz::Vbz));
        all.register(Arc::new(crate::quantised::Quantised::BITGROOM));
        all.register(Arc::new(crate::quantised::Quantised::GRANULAR_BITROUND));
        #[cfg(feature = "zfp")]
        all.register(Arc::new(crate::zfp::Zfp));
        all
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.list()).finish()
    }
}
