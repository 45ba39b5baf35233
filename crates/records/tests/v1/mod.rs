//! Zrecord v1.

mod compaction;
mod crash;
mod defects;
mod fixtures;
mod own_cases;
mod sharing;
mod together;
mod wheel;

use std::path::Path;
use std::sync::Arc;
use tensilo_core::gather::Places;
use tensilo_core::threads::Threads;
use tensilo_core::{Quiet, Result};
use tensilo_records::v1::{Codec, Geometry, Items, Zrecord, ZrecordOptions};
use tensilo_testkit::disk_log::{ModelDisk, RecordingDisk};

/// Sizes that fit in memory.
const SMALL: Geometry = Geometry { chunk_bytes: 10_000, chunks: 100, records: 1000 };

/// Options without long waits.
fn options() -> ZrecordOptions {
    ZrecordOptions { lock_wait: std::time::Duration::from_secs(5), ..ZrecordOptions::default() }
}

fn small() -> ZrecordOptions {
    ZrecordOptions { geometry: SMALL, ..options() }
}

/// Options for a disk that is no real one.
fn on_disk(disk: Arc<dyn tensilo_core::io::Disk>) -> ZrecordOptions {
    ZrecordOptions { disk, mapped: false, threads: Threads::ONE, ..small() }
}

fn model() -> ModelDisk {
    let disk = ModelDisk::new();
    disk.create_dir_all(Path::new("/d"));
    disk
}

/// Records what is done to an equal of a disk from now on.
fn recorded(disk: &ModelDisk) -> RecordingDisk {
    RecordingDisk::over_model(ModelDisk::from_image(disk.image()))
}

/// A store's record of so many bytes: the same for the same seed, compressible when even.
fn record(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|i| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if seed.is_multiple_of(2) { (seed as usize + i / 8) as u8 } else { state as u8 }
        })
        .collect()
}

fn append(store: &Zrecord, records: &[Vec<u8>], codec: Option<Codec>) -> Result<u64> {
    let bytes = records.concat();
    let lens: Vec<u32> = records.iter().map(|r| r.len() as u32).collect();
    let starts: Vec<u64> = lens
        .iter()
        .scan(0, |at, len| {
            let start = *at;
            *at += u64::from(*len);
            Some(start)
        })
        .collect();
    store.append(Items::Ragged { bytes: &bytes, starts: &starts, lens: &lens }, codec)
}

/// Some records, in the order of the ids.
fn get(store: &Zrecord, ids: &[u64]) -> Result<Vec<Vec<u8>>> {
    let mut lens = vec![0; ids.len()];
    store.lengths(ids, &mut lens)?;
    let mut starts = Vec::new();
    let mut end = 0;
    for len in &lens {
        starts.push(end);
        end += u64::from(*len);
    }
    let mut bytes = vec![0; end as usize];
    store.gather(ids, &mut bytes, Places::Starts(&starts), Threads::new(2), &Quiet)?;
    let cut = |(start, len): (&u64, &u32)| bytes[*start as usize..][..*len as usize].to_vec();
    Ok(starts.iter().zip(&lens).map(cut).collect())
}

/// All records.
fn all(store: &Zrecord) -> Result<Vec<Vec<u8>>> {
    get(store, &(0..store.len()).collect::<Vec<_>>())
}

/// What a delete leaves of a list, by the rule: descending, each hole takes what is last then.
fn without(mut records: Vec<Vec<u8>>, ids: &[u64]) -> Vec<Vec<u8>> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    for id in ids.iter().rev() {
        records.swap_remove(*id as usize);
    }
    records
}
