//! Records to `.npy` files.

use super::block;
use crate::npy::NpyWriter;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::gather::{FieldShape, Gather, gather};
use tensilo_core::io::Disk;
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Monitor, Progress, Result};

/// Writes a field of all records to an `.npy` file: `[records, …]`; of a ragged field the rows one after the other.
///
/// # Errors
/// As reading and writing; `AlreadyExists` unless `replace`; the monitor's.
pub fn field_to_npy(
    store: &dyn Gather,
    field: usize,
    disk: Arc<dyn Disk>,
    path: impl AsRef<Path>,
    replace: bool,
    threads: Threads,
    monitor: &dyn Monitor,
) -> Result<()> {
    let schema = store.schema().field(field)?.clone();
    let (FieldShape::Fixed(inner) | FieldShape::Ragged(inner)) = &schema.shape;
    let mut rows = store.len();
    if schema.is_ragged() {
        rows = 0;
        for_blocks(store, |ids| {
            let mut steps = vec![0; ids.len()];
            store.lengths(field, ids, &mut steps)?;
            rows += steps.iter().sum::<u64>();
            Ok(())
        })?;
    }
    let shape = [&[rows], &inner[..]].concat();
    let mut out = NpyWriter::create(disk, path, &schema.dtype.numpy(), &shape)?;
    let budget = Budget::default();
    for_blocks(store, |ids| {
        monitor.poll(&Progress { stage: "exporting", done: ids[0], total: store.len() })?;
        for value in gather(store, ids, &[field], &budget, threads, monitor)? {
            out.write(&value.bytes)?;
        }
        Ok(())
    })?;
    out.finish(replace)
}

/// Writes the rows of each record in a field to an `.npy` file of 64-bit numbers.
///
/// # Errors
/// As [`field_to_npy`].
pub fn lengths_to_npy(
    store: &dyn Gather,
    field: usize,
    disk: Arc<dyn Disk>,
    path: impl AsRef<Path>,
    replace: bool,
) -> Result<()> {
    let mut out = NpyWriter::create(disk, path, "<u8", &[store.len()])?;
    for_blocks(store, |ids| {
        let mut steps = vec![0; ids.len()];
        store.lengths(field, ids, &mut steps)?;
        out.write(&steps.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>())
    })?;
    out.finish(replace)
}

fn for_blocks(store: &dyn Gather, mut work: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
    let mut first = 0;
    while first < store.len() {
        let ids = block(&[store], first)?;
        work(&ids)?;
        first += ids.len() as u64;
    }
    Ok(())
}
