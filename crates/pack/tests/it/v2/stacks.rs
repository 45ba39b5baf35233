//! Stacks of counts of our own: written as `.npy` or as a detector family, packed, and read again.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::{Disk, SystemDisk};
use tensilo_core::threads::Threads;
use tensilo_core::{Quiet, Result};
use tensilo_hdf5::format::datatype::Datatype;
use tensilo_hdf5::write::{FileWriter, Filters, Value, WriteOptions};
use tensilo_pack::v2::counts::CountType;
use tensilo_pack::v2::layout::{BlockSize, Layout};
use tensilo_pack::v2::plan::{Plan, PlanOptions, plan};
use tensilo_pack::v2::produce::{ProduceOptions, Produced, produce};
use tensilo_pack::v2::source::inspect::{InspectOptions, Inspection, inspect};

/// A stack: shape, type and little-endian counts.
#[derive(Debug, Clone)]
pub struct Stack {
    pub scan: Vec<u64>,
    pub detector: Vec<u64>,
    pub counts: CountType,
    pub bytes: Vec<u8>,
}

impl Stack {
    /// Fills a stack with what `value` says for each position; signed values keep their low bits.
    pub fn of(
        scan: &[u64],
        detector: &[u64],
        counts: CountType,
        mut value: impl FnMut(usize) -> i64,
    ) -> Self {
        let n: u64 = scan.iter().chain(detector).product();
        let width = counts.bytes();
        let bytes = (0..n as usize).flat_map(|i| value(i).to_le_bytes()[..width].to_vec()).collect();
        Self { scan: scan.to_vec(), detector: detector.to_vec(), counts, bytes }
    }

    pub fn shape(&self) -> Vec<u64> {
        [&self.scan[..], &self.detector].concat()
    }

    /// The counts as numbers.
    pub fn values(&self) -> Vec<i64> {
        let one = |b: &[u8]| {
            let mut wide = [if self.counts.is_signed() && b[b.len() - 1] & 0x80 != 0 { 0xff } else { 0 }; 8];
            wide[..b.len()].copy_from_slice(b);
            i64::from_le_bytes(wide)
        };
        self.bytes.chunks_exact(self.counts.bytes()).map(one).collect()
    }

    /// Writes `stack.npy`.
    pub fn npy(&self, folder: &Path) -> PathBuf {
        let dims: String = self.shape().iter().map(|d| format!("{d},")).collect();
        let text =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({dims}), }}", self.counts.descr());
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend_from_slice(&(text.len() as u16).to_le_bytes());
        file.extend_from_slice(text.as_bytes());
        file.extend_from_slice(&self.bytes);
        let path = folder.join("stack.npy");
        std::fs::write(&path, file).unwrap();
        path
    }

    /// Writes a master and members with so many frames each, chunks of `chunk` frames, and a mask.
    pub fn family(&self, folder: &Path, members: &[u64], chunk: u64, mask: Option<&[u32]>) -> PathBuf {
        let frame = self.detector.iter().product::<u64>() as usize * self.counts.bytes();
        let datatype = Datatype::native_integer(self.counts.bytes() as u8, self.counts.is_signed());
        let disk = SystemDisk::shared();
        let mut at = 0;
        for (i, frames) in members.iter().enumerate() {
            let path = folder.join(format!("s_data_{:06}.h5", i + 1));
            let mut w = FileWriter::create(disk.clone(), path, WriteOptions::default()).unwrap();
            let end = at + *frames as usize * frame;
            let shape = [&[*frames], &self.detector[..]].concat();
            let chunk = [&[chunk.min(*frames)], &self.detector[..]].concat();
            w.dataset("/entry/data/data")
                .datatype(datatype.clone())
                .shape(&shape)
                .chunk(&chunk)
                .filters(Filters::bitshuffle_lz4())
                .write_bytes(&self.bytes[at..end])
                .unwrap();
            w.finish().unwrap();
            at = end;
        }
        assert_eq!(at, self.bytes.len());
        let path = folder.join("s_master.h5");
        let mut w = FileWriter::create(disk, &path, WriteOptions::default()).unwrap();
        w.create_group("/entry/data").unwrap();
        let scan: Vec<i64> = self.scan.iter().map(|n| *n as i64).collect();
        w.attribute("/entry/data", "scan_shape", Value::array(&scan, &[scan.len() as u64]).unwrap()).unwrap();
        if let Some(mask) = mask {
            w.dataset(tensilo_pack::export::MASK).shape(&self.detector).write(mask).unwrap();
        }
        w.finish().unwrap();
        path
    }
}

/// Inspects a source with a detector of so many axes.
pub fn inspected(source: &Path, detector_axes: usize) -> Result<Inspection> {
    inspect(source, &InspectOptions { detector_axes, ..InspectOptions::default() }, &Quiet)
}

/// Plans for a disk with room, with so many workers.
pub fn planned(inspection: &Inspection, destination: &Path, workers: usize) -> Plan {
    let options =
        PlanOptions { memory: 4 << 30, available_disk: Some(1 << 40), threads: Threads::new(workers) };
    plan(inspection, destination, &options, &SystemDisk).unwrap()
}

/// Packs a source to a destination of the system's disk.
pub fn packed(source: &Path, detector_axes: usize, destination: &Path, workers: usize) -> Result<Produced> {
    packed_on(SystemDisk::shared(), source, detector_axes, destination, workers)
}

/// Packs a source to a destination of a disk.
pub fn packed_on(
    disk: Arc<dyn Disk>,
    source: &Path,
    detector_axes: usize,
    destination: &Path,
    workers: usize,
) -> Result<Produced> {
    let inspection = inspected(source, detector_axes)?;
    let plan = planned(&inspection, destination, workers);
    let made = produce(&inspection, &plan, &ProduceOptions { disk, ..ProduceOptions::default() }, &Quiet)?;
    assert!(made.peak_bytes <= plan.planned_peak_bytes, "{} of {}", made.peak_bytes, plan.planned_peak_bytes);
    assert!(made.receipt.output_bytes <= plan.maximum_output_bytes);
    Ok(made)
}

/// Packs a source in blocks and shards of these extents, so that a small stack has many.
pub fn packed_in(
    source: &Path,
    detector_axes: usize,
    destination: &Path,
    block: BlockSize,
    shard_scans: u64,
) -> Result<Produced> {
    let i = inspected(source, detector_axes)?;
    let mut plan = planned(&i, destination, 2);
    plan.layout = Layout::new(&i.scan_shape, &i.detector_shape, i.counts, block, shard_scans)?;
    plan.window = u64::from(block.scans);
    plan.maximum_output_bytes = u64::MAX;
    plan.maximum_receipt_bytes = u64::MAX;
    produce(&i, &plan, &ProduceOptions::default(), &Quiet)
}

/// SplitMix64: random numbers that are the same everywhere.
pub fn noise(seed: u64, at: u64) -> u64 {
    let mut x = seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
