//! What producing a pack of format 2 takes: the cut, memory, disk; refused before anything is written.
//!
//! The cut follows from shape and element type alone, so that equal sources make equal packs whatever the machine. What
//! may differ is the *window*: the scans that are decoded and coded together, some whole tiles.

use super::codec::{BLOCK_COLUMNS, BLOCK_PIXELS, BLOCK_ROWS, BLOCK_SCANS, MOST_COUNTS};
use super::format::shard_table::blocks_per_tile;
use super::layout::{BlockSize, Layout};
use super::source::inspect::Inspection;
use crate::receipt_path;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tensilo_core::io::Disk;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Result};

/// Counts of a tile take no more than this, unless one frame does.
const TILE_BYTES: u64 = 256 << 20;
/// Counts of a shard take about this.
const SHARD_BYTES: u64 = 256 << 20;
/// Decoded chunks of a source that may be kept from window to window.
const MOST_KEPT_CHUNKS: u64 = 64 << 20;
/// Memory for what is small: joined writes, metadata, stacks.
const FIXED: u64 = 4 << 20;
/// Memory that coding a block may hold for each of its counts.
const SCRATCH_PER_COUNT: u64 = 16;

/// What a plan depends on.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// Memory that may be used, in bytes.
    pub memory: u64,
    /// Disk space that may be used; what the disk has free when absent.
    pub available_disk: Option<u64>,
    /// Most threads.
    pub threads: Threads,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { memory: crate::plan::default_memory(), available_disk: None, threads: Threads::default() }
    }
}

/// What producing will take. All sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Shape and cut.
    pub layout: Layout,
    /// Where the pack goes.
    pub destination: PathBuf,
    /// Scans that are decoded and coded together.
    pub window: u64,
    /// How often a chunk of the source is decoded at most; 1 is once.
    pub decodes: u64,
    /// Decoded chunks of the source that are kept from window to window.
    pub chunk_cache_bytes: u64,
    /// Threads that will work.
    pub workers: usize,
    /// Most bytes that the work will hold at one time.
    pub planned_peak_bytes: u64,
    /// The memory budget.
    pub memory: u64,
    /// Most bytes of the pack.
    pub maximum_output_bytes: u64,
    /// Most bytes of the receipt.
    pub maximum_receipt_bytes: u64,
    /// Disk space that was available.
    pub available_disk: u64,
}

/// The cut of a stack: blocks as the codec likes them, narrower where the detector is; tiles of at most 256 scans; shards
/// of about 256 MiB of counts.
///
/// # Errors
/// `InvalidArgument` for a shape that a pack cannot hold.
pub fn cut(inspection: &Inspection) -> Result<Layout> {
    let detector = &inspection.detector_shape;
    let columns = detector.last().copied().unwrap_or(1);
    let rows = detector.iter().rev().skip(1).try_fold(1_u64, |n, d| n.checked_mul(*d)).unwrap_or(u64::MAX);
    let (whole, likes) = (BLOCK_PIXELS as u64, [BLOCK_ROWS as u64, BLOCK_COLUMNS as u64]);
    let (block_rows, block_columns) = if columns < likes[1] {
        ((whole / columns.max(1)).min(rows.max(1)), columns)
    } else if rows < likes[0] {
        (rows, (whole / rows.max(1)).min(columns))
    } else {
        (likes[0], likes[1])
    };
    let frame = rows.saturating_mul(columns).saturating_mul(inspection.counts.bytes() as u64);
    let most = (MOST_COUNTS as u64 / (block_rows * block_columns).max(1)).min(BLOCK_SCANS as u64);
    let mut scans = 1;
    while 2 * scans <= most && frame.saturating_mul(2 * scans) <= TILE_BYTES {
        scans *= 2;
    }
    let tiles = (SHARD_BYTES / frame.saturating_mul(scans).max(1)).clamp(1, 1 << 16);
    let block = BlockSize { rows: block_rows as u32, columns: block_columns as u32, scans: scans as u32 };
    Layout::new(&inspection.scan_shape, detector, inspection.counts, block, scans * tiles)
}

/// Plans a pack: refuses what cannot work before anything is allocated. Whether the destination exists is not looked at;
/// producing decides that.
///
/// # Errors
/// `InvalidArgument` for the shape, `InsufficientMemory`, `InsufficientDisk`.
pub fn plan(
    inspection: &Inspection,
    destination: &Path,
    options: &PlanOptions,
    disk: &dyn Disk,
) -> Result<Plan> {
    if destination.to_str().is_none() {
        return Err(Error::invalid("the destination is no UTF-8").in_file(destination));
    }
    let layout = cut(inspection)?;
    let workers = options.threads.get();
    let tile = u64::from(layout.block().scans);
    let shard = layout.shard_scans().min(layout.scans().next_multiple_of(tile));
    let (period, layer) = (inspection.period.max(1), inspection.layer_bytes);
    let fits_tile = period == 1 || tile.is_multiple_of(period);
    let cache = if !fits_tile && layer <= MOST_KEPT_CHUNKS { layer } else { 0 };
    let mut window = tile;
    if !fits_tile && cache == 0 {
        // Chunks that reach over many scans are decoded less often the more scans are taken at once.
        let wanted = period.div_ceil(tile).saturating_mul(tile).min(shard);
        while window < wanted && peak(inspection, &layout, 2 * window, cache, workers) <= options.memory {
            window = (2 * window).min(wanted);
        }
    }
    let decodes = if fits_tile || cache > 0 { 1 } else { period.div_ceil(window).saturating_add(1) };
    let planned = peak(inspection, &layout, window, cache, workers);
    if planned > options.memory {
        return Err(Error::new(
            ErrorKind::InsufficientMemory,
            format!("producing needs {planned} bytes of memory, {} are given", options.memory),
        )
        .hint("allow more with --memory"));
    }
    let destination = crate::source::catalog::normal(destination)?;
    let folder = crate::leftovers::folder_of(&destination);
    let available = match options.available_disk {
        Some(bytes) => bytes,
        None => disk.free_space(folder)?,
    };
    let maximum_receipt_bytes = receipt_maximum(inspection, &layout);
    let maximum_output_bytes = output_maximum(inspection, &layout);
    let needed = maximum_output_bytes.saturating_add(maximum_receipt_bytes);
    if needed > available {
        return Err(Error::new(
            ErrorKind::InsufficientDisk,
            format!("the pack could take {needed} bytes of disk, {available} are available"),
        )
        .hint("choose another disk, or allow more with --available-disk"));
    }
    Ok(Plan {
        layout,
        destination,
        window,
        decodes,
        chunk_cache_bytes: cache,
        workers,
        planned_peak_bytes: planned,
        memory: options.memory,
        maximum_output_bytes,
        maximum_receipt_bytes,
        available_disk: available,
    })
}

/// Bytes of one window: counts, and what they are coded to, which is at most a byte a block longer.
pub(crate) fn window_bytes(layout: &Layout, excluded: u64, window: u64) -> [u64; 2] {
    let window = window.min(layout.scans());
    let counts = layout.frame_bytes().saturating_mul(window);
    let tiles = window.div_ceil(layout.block().scans.into());
    let kept =
        excluded.saturating_mul(4 + window.saturating_mul(layout.counts().bytes() as u64) / tiles.max(1));
    let records = blocks_per_tile(layout, excluded as usize).saturating_mul(16).saturating_add(kept);
    [counts, counts.saturating_add(tiles.saturating_mul(records))]
}

/// Bytes that one worker holds while it codes a block.
pub(crate) fn worker_bytes(layout: &Layout, excluded: u64) -> u64 {
    let counts = layout.block_values();
    let kept = excluded.min(crate::v2::codec::MOST_PIXELS as u64).saturating_mul(layout.block().scans.into());
    let per_count = SCRATCH_PER_COUNT + layout.counts().bytes() as u64;
    counts.max(kept.min(MOST_COUNTS as u64)).saturating_mul(per_count)
}

/// Bytes of a shard's records and of what its excluded pixels are.
pub(crate) fn shard_bytes(layout: &Layout, excluded: u64) -> u64 {
    let blocks = layout.tiles_of(0).saturating_mul(blocks_per_tile(layout, excluded as usize));
    blocks.saturating_mul(24).saturating_add(excluded.saturating_mul(16))
}

fn peak(inspection: &Inspection, layout: &Layout, window: u64, cache: u64, workers: usize) -> u64 {
    let (excluded, workers) = (inspection.excluded.len() as u64, workers as u64);
    let [counts, coded] = window_bytes(layout, excluded, window);
    // Reading: the stored and the decoded chunk of each worker. Coding begins when reading is done.
    let reading = inspection.chunk_bytes.saturating_mul(2).saturating_mul(workers);
    // Parts of several datasets are read beside the window, and converted where their types differ.
    let reading = reading.saturating_add(if inspection.gathered { counts.saturating_mul(3) } else { 0 });
    let coding = worker_bytes(layout, excluded).saturating_mul(workers).saturating_add(coded);
    let mask = if inspection.mask.is_some() { layout.pixels().saturating_mul(8) } else { 0 };
    let index = layout.shards().saturating_mul(256).saturating_add(mask);
    [counts, reading.max(coding), cache, shard_bytes(layout, excluded), index, FIXED]
        .into_iter()
        .fold(0, u64::saturating_add)
}

fn output_maximum(inspection: &Inspection, layout: &Layout) -> u64 {
    let excluded = inspection.excluded.len() as u64;
    let windows = layout.tiles();
    let [_, coded] = window_bytes(layout, excluded, layout.block().scans.into());
    let mask = if inspection.mask.is_some() { layout.pixels().saturating_mul(5) } else { 0 };
    let shards = layout.shards().saturating_mul(shard_bytes(layout, excluded).saturating_add(256));
    let members = inspection.members.iter().map(|m| 1024 + m.path.as_os_str().len() as u64).sum::<u64>();
    let small =
        mask.saturating_add(excluded.saturating_mul(8)).saturating_add(members).saturating_add(1 << 20);
    coded.saturating_mul(windows).saturating_add(shards).saturating_add(small)
}

fn receipt_maximum(inspection: &Inspection, layout: &Layout) -> u64 {
    let paths: u64 = inspection.members.iter().map(|m| 1024 + 6 * m.path.as_os_str().len() as u64).sum();
    let excluded = (inspection.excluded.len() as u64).saturating_mul(16);
    layout.shards().saturating_mul(512).saturating_add(paths).saturating_add(excluded).saturating_add(1 << 20)
}

impl Plan {
    /// Where the receipt goes.
    pub fn receipt_path(&self) -> PathBuf {
        receipt_path(&self.destination)
    }

    /// The plan as JSON.
    pub fn to_json(&self) -> Value {
        let l = &self.layout;
        json!({
            "format": 2,
            "destination": self.destination,
            "receipt": self.receipt_path(),
            "sourceShape": l.shape(),
            "scanShape": l.scan_shape(),
            "detectorShape": l.detector_shape(),
            "sourceDtype": l.counts().name(),
            "sourceLogicalBytes": l.logical_bytes(),
            "blockRows": l.block().rows,
            "blockColumns": l.block().columns,
            "blockScans": l.block().scans,
            "scansPerShard": l.shard_scans(),
            "shardCount": l.shards(),
            "windowScans": self.window,
            "decodesOfAChunk": self.decodes,
            "chunkCacheBytes": self.chunk_cache_bytes,
            "workers": self.workers,
            "plannedPeakTransientBytes": self.planned_peak_bytes,
            "memoryBytes": self.memory,
            "predictedOutputFileMaximumBytes": self.maximum_output_bytes,
            "predictedReceiptFileMaximumBytes": self.maximum_receipt_bytes,
            "availableDiskBytes": self.available_disk,
        })
    }
}
