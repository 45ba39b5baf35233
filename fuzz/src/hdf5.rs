//! A whole HDF5 file: every object is opened, every attribute and dataset read.

use std::collections::BTreeSet;
use std::sync::Arc;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_core::{Limits, Result};
use tensilo_hdf5::read::{Attribute, DamagedAttribute, Dataset, ExternalLinks, File, Object, OpenOptions};

/// Most objects that are opened, and most bytes of one dataset that are read.
const MOST_OBJECTS: usize = 64;
const MOST_READ: u64 = 1 << 20;

/// Opens the file and walks it from the root. Errors are answers.
pub fn hdf5(data: &[u8]) {
    let options = OpenOptions {
        limits: Limits::default().with_bytes(crate::MOST_BYTES / 4),
        threads: Threads::ONE,
        links: ExternalLinks::Refuse,
        ..OpenOptions::default()
    };
    let Ok(file) = File::from_source(Arc::new(MemorySource::new(data)), options) else { return };
    let Ok(root) = file.root() else { return };
    let mut seen = BTreeSet::new();
    let mut waiting = vec![Object::Group(root)];
    while let Some(object) = waiting.pop() {
        if seen.len() >= MOST_OBJECTS || !seen.insert(object.address()) {
            continue;
        }
        match object {
            Object::Group(group) => {
                attributes(group.attributes());
                for link in group.links().unwrap_or_default() {
                    waiting.extend(group.open_link(&link).ok());
                }
            }
            Object::Dataset(dataset) => {
                attributes(dataset.attributes());
                read(&dataset);
            }
            Object::Datatype(datatype) => attributes(datatype.attributes()),
            _ => {}
        }
    }
}

fn attributes(found: Result<Vec<Result<Attribute, DamagedAttribute>>>) {
    for attribute in found.unwrap_or_default().into_iter().flatten() {
        attribute.read_bytes();
        let _ = attribute.read_string_bytes();
        let _ = attribute.read::<f64>();
    }
}

/// Reads everything where that is little, else the first element of each dimension.
fn read(dataset: &Dataset) {
    let bytes = dataset.elements().checked_mul(u64::from(dataset.datatype().size));
    let selection = if bytes.is_some_and(|b| b <= MOST_READ) {
        Selection::All
    } else {
        let rank = dataset.shape().len();
        Selection::Hyperslab(Hyperslab::new(vec![0; rank], vec![1; rank]))
    };
    let whole = dataset.read_bytes(&selection);
    if let (Ok(plan), Ok(bytes)) = (dataset.plan(&selection), &whole) {
        assert_eq!(plan.result_bytes(), bytes.len() as u64);
    }
    let _ = dataset.read_string_bytes(&selection);
    let _ = dataset.read_selection::<f32>(&selection);
    if let Ok(chunks) = dataset.chunks() {
        let mut stored = Vec::new();
        for chunk in chunks.iter().take(MOST_OBJECTS) {
            let _ = dataset.read_chunk_stored(chunk, &mut stored);
        }
    }
}
