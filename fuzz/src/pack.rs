//! A whole pack: opened, then a value, a frame and a region of every shard.

use std::sync::Arc;
use tensilo_core::Limits;
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_pack::read::{Pack, ReadOptions, Region};

/// Most shards that are loaded, and most pixels of a frame that is read.
const MOST_SHARDS: usize = 8;
const MOST_PIXELS: u64 = 1 << 16;

/// Opens the pack and reads from each shard. Errors are answers.
pub fn pack(data: &[u8]) {
    let options = ReadOptions {
        limits: Limits::default().with_bytes(crate::MOST_BYTES / 4),
        threads: Threads::ONE,
        cached_bytes: 1 << 20,
    };
    let Ok(pack) = Pack::from_source(Arc::new(MemorySource::new(data)), options) else { return };
    let [scan_rows, scan_columns, detector_rows, detector_columns] = pack.shape();
    let pixels = u64::from(detector_rows) * u64::from(detector_columns);
    let scans = u64::from(scan_rows) * u64::from(scan_columns);
    for ordinal in 0..MOST_SHARDS {
        if let Ok(shard) = pack.shard(ordinal)
            && shard.scans() > 0
        {
            shard.value(0, shard.scans() - 1);
        }
    }
    for scan in [0, scans / 2, scans.saturating_sub(1), u64::MAX] {
        let _ = pack.value(scan, pixels.saturating_sub(1));
        let _ = pack.raw_value(scan, pixels);
        if pixels <= MOST_PIXELS {
            let frame = pack.frame(scan);
            assert!(frame.is_err() || scan < scans, "a frame outside the scan");
            let _ = pack.raw_frame(scan);
        }
    }
    let corner =
        Region::all(pack.shape()).scans(0..scan_rows.min(2), 0..scan_columns.min(2)).detector(0..1, 0..1);
    if let Ok(values) = pack.region(&corner) {
        assert_eq!(values.len() as u128, corner.len());
    }
}
