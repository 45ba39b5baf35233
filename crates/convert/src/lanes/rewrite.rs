//! A lane store becomes another one: of the other format, or in order again.

use super::export::{LARGE, slab};
use std::path::Path;
use tensilo_core::{Monitor, Progress, Result};
use tensilo_lanes::{Advice, LaneKind, LaneSpec, Store, StoreSchema, StoreWriter, WriterOptions};

/// Rewrites a store: another format, and slabs that were appended elsewhere together again. Slabs never written stay
/// so.
///
/// # Errors
/// `Unsupported` when the new format cannot hold it; `Corrupt`; as [`StoreWriter::create_with`]; the monitor's.
pub fn rewrite(
    store: &Store,
    path: impl AsRef<Path>,
    options: WriterOptions,
    monitor: &dyn Monitor,
) -> Result<()> {
    let mut lanes: Vec<LaneSpec> = store.lanes().cloned().collect();
    for lane in &mut lanes {
        if lane.slabs == Some(store.nslabs()) {
            lane.slabs = None;
        }
    }
    let schema = StoreSchema::new(store.nslabs(), lanes.clone()).with_app(store.app().clone());
    let writer = StoreWriter::create_with(path, schema, options)?;
    for (i, spec) in lanes.iter().enumerate() {
        monitor.poll(&Progress { stage: "lanes", done: i as u64, total: lanes.len() as u64 })?;
        copy_lane(store, &writer, spec, monitor)?;
    }
    writer.finish()
}

fn copy_lane(store: &Store, writer: &StoreWriter, spec: &LaneSpec, monitor: &dyn Monitor) -> Result<()> {
    let slabs = store.slab_count(&spec.name)?;
    let large = slabs.saturating_mul(spec.slab_bytes()?) > LARGE;
    let mut ordered = Vec::new();
    for k in 0..slabs {
        monitor.poll(&Progress { stage: "slabs", done: k, total: slabs })?;
        if store.is_written(&spec.name, k)? {
            let to = matches!(spec.kind, LaneKind::Slab { .. }).then_some(k);
            writer.write_bytes(&spec.name, to, slab(store, spec, k, &mut ordered)?)?;
            if large {
                store.advise_slabs(&spec.name, k..k + 1, Advice::DropCached)?;
            }
        }
    }
    Ok(())
}
