//! A store of 768 MiB is written, reduced and windowed within 256 MiB of resident memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tensilo_core::Quiet;
use tensilo_core::threads::Threads;
use tensilo_lanes::{Advice, LaneSpec, LaneType, Store, StoreSchema, StoreWriter, WriterOptions};
use tensilo_testkit::TempDir;

const SLABS: u64 = 96;
const ELEMS: usize = 2 << 20; // 8 MiB of f32

fn rss() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn a_store_of_768_mib_needs_less_than_256_mib_resident() {
    let (stop, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let sampler = std::thread::spawn({
        let (stop, peak) = (stop.clone(), peak.clone());
        move || {
            while !stop.load(Ordering::Relaxed) {
                peak.fetch_max(rss(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    });
    // Not in a memory file system, where the page cache is the disk.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("big.pts");
    let schema = StoreSchema::new(SLABS, vec![LaneSpec::slab("v", LaneType::F32, ELEMS as u64)]);
    let options = WriterOptions { write_behind: true, ..WriterOptions::default() };
    let writer = StoreWriter::create_with(&path, schema, options).unwrap();
    let mut slab = vec![0_f32; ELEMS];
    for k in 0..SLABS {
        slab.fill(k as f32);
        writer.write_slab("v", k, &slab).unwrap();
    }
    writer.finish().unwrap();
    let store = Store::open(&path).unwrap();
    let after_writing = store.resident_bytes("v").unwrap();
    store.advise(Advice::Sequential).unwrap();
    let lane = store.typed::<f32>("v").unwrap();
    let mut sum = 0.0;
    for k in 0..SLABS {
        sum += lane.slab(k).unwrap().iter().map(|v| f64::from(*v)).sum::<f64>();
        store.advise_slabs("v", k..k + 1, Advice::DropCached).unwrap();
    }
    assert_eq!(sum, (0..SLABS).sum::<u64>() as f64 * ELEMS as f64);
    let after_reading = store.resident_bytes("v").unwrap();
    for start in [80, 3, 41] {
        let window = lane.window(start, start + 8).unwrap();
        assert_eq!(window[ELEMS * 7], (start + 7) as f32);
        store.advise_slabs("v", start..start + 8, Advice::DropCached).unwrap();
    }
    let parts = lane
        .map_windows(4, Threads::new(2), &Quiet, |start, values| {
            let s = values.iter().map(|v| f64::from(*v)).sum::<f64>();
            store.advise_slabs("v", start..start + 4, Advice::DropCached)?;
            Ok(s)
        })
        .unwrap();
    assert_eq!(parts.iter().sum::<f64>(), sum);
    stop.store(true, Ordering::Relaxed);
    sampler.join().unwrap();
    let peak = peak.load(Ordering::Relaxed);
    assert!(peak <= 256 << 20, "{} MiB resident", peak >> 20);
    // mincore: what the page cache still holds of 768 MiB.
    assert!(
        after_writing <= 128 << 20,
        "{} MiB of the lane in the page cache after writing",
        after_writing >> 20
    );
    assert!(
        after_reading <= 128 << 20,
        "{} MiB of the lane in the page cache after reading",
        after_reading >> 20
    );
}
