//! What repacking changes: filters and layouts, of all datasets or of some.

use super::walk::Entry;
use crate::format::message::data_layout::DataLayout;
use crate::format::message::dataspace::Dataspace;
use crate::read::{Dataset, Object};
use crate::write::Filters;
use std::collections::BTreeMap;
use tensilo_core::{Error, Result};

/// Most bytes of a chunk of a dataset that had none.
const MOST_CHUNK: u64 = 1 << 20;
/// Most bytes in a compact layout.
const MOST_COMPACT: u64 = 64_000;

/// A layout that datasets get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewLayout {
    /// Chunks of these extents, slowest first; larger ones are cut to the maximum extents.
    Chunked(Vec<u64>),
    /// One piece.
    Contiguous,
    /// In the object header.
    Compact,
}

/// What is changed; what is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The filters. A dataset without chunks gets some, of at most 1 MiB.
    pub filters: Option<Filters>,
    /// The layout.
    pub layout: Option<NewLayout>,
}

/// What is changed on the way.
///
/// A change for all datasets passes by those that cannot have it: scalars, other ranks than that of the chunk,
/// growing datasets without chunks, too large ones in headers; of filters, codecs of numbers pass by other elements. A change for a named dataset is made or refused.
#[derive(Debug, Clone, Default)]
pub struct RepackOptions {
    /// Of all datasets.
    pub all: Change,
    /// Of single datasets, by path with one slash in front of each name.
    pub objects: BTreeMap<Vec<u8>, Change>,
    /// Datasets of fewer bytes stay as they are.
    pub minimum: u64,
}

/// How a dataset is written.
pub(super) enum Plan {
    Keep,
    Chunks { dims: Vec<u64>, filters: Filters },
    Contiguous,
    Compact,
}

impl RepackOptions {
    /// The same filters for all datasets.
    pub fn with_filters(filters: Filters) -> Self {
        Self { all: Change { filters: Some(filters), layout: None }, ..Self::default() }
    }

    pub(super) fn check(&self, entries: &[Entry]) -> Result<()> {
        let is = |wanted: &[u8]| {
            entries.iter().any(
                |e| matches!(e, Entry::Object { path, object: Object::Dataset(_) } if path.as_slice() == wanted),
            )
        };
        match self.objects.keys().find(|name| !is(name)) {
            None => Ok(()),
            Some(name) => {
                let name = String::from_utf8_lossy(name).into_owned();
                Err(Error::not_found("no dataset of this path is to be changed").in_object(name))
            }
        }
    }

    pub(super) fn plan(&self, path: &[u8], d: &Dataset) -> Result<Plan> {
        let named = self.objects.get(path);
        let of_this = named.and_then(|c| c.filters.as_ref());
        let filters = of_this.or(self.all.filters.as_ref());
        // Filters of a named dataset are used or refused.
        let possible_filters = |filters: &Filters, d: &Dataset, dims: &[u64]| match of_this {
            Some(_) => Some(filters.clone()),
            None => {
                let left = filters.possible(d.datatype(), dims);
                (filters.is_empty() || !left.is_empty()).then_some(left)
            }
        };
        let wish = named.and_then(|c| c.layout.as_ref());
        let bytes = d.elements().saturating_mul(u64::from(d.datatype().size));
        if bytes < self.minimum {
            return Ok(Plan::Keep);
        }
        let layout = match wish {
            Some(layout) => {
                possible(layout, d, bytes)?;
                Some(layout)
            }
            None => self.all.layout.as_ref().filter(|l| possible(l, d, bytes).is_ok()),
        };
        let Dataspace::Simple { .. } = d.dataspace() else { return Ok(Plan::Keep) };
        Ok(match (layout, filters) {
            (Some(NewLayout::Contiguous), _) => Plan::Contiguous,
            (Some(NewLayout::Compact), _) => Plan::Compact,
            (Some(NewLayout::Chunked(dims)), filters) => {
                let cut = |(c, m): (&u64, &Option<u64>)| m.map_or(*c, |m| (*c).min(m.max(1)));
                let dims: Vec<u64> = dims.iter().zip(d.max_shape()).map(cut).collect();
                let filters = filters.and_then(|f| possible_filters(f, d, &dims));
                let filters = filters.unwrap_or_else(|| Filters::from(d.filters()));
                Plan::Chunks { dims, filters }
            }
            (None, None) => Plan::Keep,
            (None, Some(filters)) => {
                let dims = match d.layout() {
                    DataLayout::Virtual { .. } => return Ok(Plan::Keep),
                    DataLayout::Chunked(l) => l.dims.clone(),
                    _ if filters.is_empty() || d.elements() == 0 => return Ok(Plan::Keep),
                    _ => chunk_for(d),
                };
                match possible_filters(filters, d, &dims) {
                    Some(filters) => Plan::Chunks { dims, filters },
                    None => Plan::Keep,
                }
            }
        })
    }
}

/// Can the dataset have this layout?
fn possible(layout: &NewLayout, d: &Dataset, bytes: u64) -> Result<()> {
    let grows = d.shape().iter().zip(d.max_shape()).any(|(n, m)| *m != Some(*n));
    let refused = match layout {
        NewLayout::Chunked(dims) if dims.len() != d.shape().len() || dims.is_empty() || dims.contains(&0) => {
            format!("chunks {dims:?} for the shape {:?}", d.shape())
        }
        NewLayout::Chunked(_) => return Ok(()),
        _ if grows => "only chunked datasets can grow".to_owned(),
        NewLayout::Compact if bytes > MOST_COMPACT => {
            format!("{bytes} bytes in a compact layout; {MOST_COMPACT} are possible")
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(refused))
}

/// Extents of a chunk: the whole array, its longest extent halved until it is small enough.
fn chunk_for(d: &Dataset) -> Vec<u64> {
    let mut dims: Vec<u64> = d.shape().iter().map(|n| (*n).max(1)).collect();
    let size = u64::from(d.datatype().size).max(1);
    while dims.iter().fold(size, |n, d| n.saturating_mul(*d)) > MOST_CHUNK {
        match dims.iter_mut().max_by_key(|n| **n) {
            Some(longest) if *longest > 1 => *longest = longest.div_ceil(2),
            _ => break,
        }
    }
    dims
}
