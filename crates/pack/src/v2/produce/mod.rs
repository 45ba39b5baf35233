//! Producing a pack of format 2: the source is authenticated, decoded once, coded block by block, and published with its
//! receipt; nothing is overwritten and nothing is left behind by a failure.

mod body;
mod coding;

pub(crate) use body::{CODES, INDEX, PAYLOAD};
pub(crate) use coding::{in_rects, rect_of};

use super::format::index::PackIndex;
use super::format::preamble::{Extent, PREAMBLE, Preamble};
use super::plan::Plan;
use super::receipt::{self, Receipt, SCHEMA};
use super::source::family::Opening;
use super::source::inspect::{Inspection, SourceKind};
use crate::digest::Sha256Sum;
use crate::produce::{make_room, publish};
use crate::receipt::{ReceiptMember, Timing};
use crate::sha_pair::Sha256Stream;
use crate::source::authentication::{self, check_unchanged};
use crate::source::inspect::SourceMember;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tensilo_core::io::{Disk, DiskFile, Fingerprint, Staged, SystemDisk};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, ErrorKind, Limits, Monitor, Progress, Result};
use tensilo_hdf5::write::{FileWriter, WriteOptions};

/// How a pack is produced, beyond its plan.
#[derive(Debug, Clone)]
pub struct ProduceOptions {
    /// Removes what dead runs left of this destination before looking whether it exists.
    pub clear_leftovers: bool,
    /// What the source's files may make us allocate for metadata.
    pub limits: Limits,
    /// Where pack and receipt are written.
    pub disk: Arc<dyn Disk>,
}

impl Default for ProduceOptions {
    fn default() -> Self {
        Self { clear_leftovers: false, limits: Limits::default(), disk: SystemDisk::shared() }
    }
}

/// A pack that was published.
#[derive(Debug, Clone, PartialEq)]
pub struct Produced {
    /// Its receipt, as stored.
    pub receipt: Receipt,
    /// Where the receipt is.
    pub receipt_path: PathBuf,
    /// Most bytes that were held at one time, as counted; at most the plan's `planned_peak_bytes`.
    pub peak_bytes: u64,
    /// What was cleared of dead runs.
    pub cleared: Vec<PathBuf>,
}

/// Produces a pack and its receipt. The same source and plan make the same bytes, whatever the threads.
///
/// # Errors
/// `AlreadyExists` when pack or receipt do; `SourceChanged`; errors of the source and of the disk; `Cancelled` or another
/// error of the monitor. After an error there is neither pack nor receipt; folders that were made stay.
pub fn produce(
    inspection: &Inspection,
    plan: &Plan,
    options: &ProduceOptions,
    monitor: &dyn Monitor,
) -> Result<Produced> {
    let begun = Instant::now();
    monitor.poll(&Progress { stage: "packing", ..Progress::default() })?;
    let cleared = make_room(&plan.destination, options.clear_leftovers, &*options.disk)?;
    let members = authenticate(inspection, plan, monitor)?;
    let authenticated = Instant::now();
    let account = Budget::new(Limits::default().with_bytes(u64::MAX));
    let opening = Opening {
        limits: options.limits.clone(),
        threads: Threads::new(plan.workers),
        chunk_cache: plan.chunk_cache_bytes as usize,
    };
    let frames = inspection.open(&opening)?;
    let staged = Staged::create(options.disk.clone(), &plan.destination)?;
    let mut writer = FileWriter::over(staged.file(), WriteOptions::default().user_block(PREAMBLE))?;
    let (packed, payload) =
        body::payload(&mut writer, |to| coding::pack_all(inspection, plan, &frames, &account, to, monitor))?;
    let packed_at = Instant::now();
    let index = PackIndex {
        layout: plan.layout.clone(),
        mask_origin: inspection.mask_origin,
        excluded: inspection.excluded.clone(),
        source_identity: inspection.source_identity,
        raw_sha256: packed.raw_sha256,
        mask_sha256: inspection.mask_sha256,
        calibration_sha256: inspection.calibration.sha256(),
        shards: packed.shards,
    };
    let encoded = index.encode();
    let at = body::describe(&mut writer, inspection, &index, &encoded)?;
    writer.finish()?;
    finish_preamble(&staged, at, &encoded, payload, monitor)?;
    staged.sync()?;
    let written = Instant::now();
    check_unchanged(&members)?;
    let output = publish::hash_file(staged.file(), monitor)?;
    let hashed = Instant::now();
    let ms = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e3;
    let timing = Timing {
        source_authentication_milliseconds: ms(begun, authenticated),
        decode_and_packing_milliseconds: ms(authenticated, packed_at),
        container_write_milliseconds: ms(packed_at, written),
        stability_and_output_hash_milliseconds: ms(written, hashed),
        total_before_atomic_publication_milliseconds: ms(begun, hashed),
    };
    let receipt = make_receipt(inspection, plan, &index, output, account.peak(), timing);
    let text = receipt.encode();
    if output.0 > plan.maximum_output_bytes || text.len() as u64 > plan.maximum_receipt_bytes {
        return Err(Error::new(
            ErrorKind::InsufficientDisk,
            format!("pack and receipt take {} and {} bytes, more than planned", output.0, text.len()),
        ));
    }
    let receipt_path = plan.receipt_path();
    let staged_receipt = Staged::create(options.disk.clone(), &receipt_path)?;
    staged_receipt.write_at(0, &text)?;
    staged_receipt.sync()?;
    monitor.poll(&Progress { stage: "publishing", ..Progress::default() })?;
    Staged::publish_pair(staged_receipt, staged)?;
    Ok(Produced { receipt, receipt_path, peak_bytes: account.peak(), cleared })
}

/// Hashes the members again; they must be what was inspected.
fn authenticate(
    inspection: &Inspection,
    plan: &Plan,
    monitor: &dyn Monitor,
) -> Result<Vec<(SourceMember, Fingerprint)>> {
    let files = inspection.files();
    let members =
        authentication::hash_members(&files, Threads::new(plan.workers), monitor, "authenticating source")?;
    for ((found, _), expected) in members.iter().zip(&inspection.members) {
        if found != expected {
            return Err(Error::source_changed("the file is not what was inspected").in_file(&expected.path));
        }
    }
    Ok(members)
}

/// Hashes what is no payload and writes the preamble.
fn finish_preamble(
    staged: &Staged,
    index: Extent,
    encoded: &[u8],
    payload: Extent,
    monitor: &dyn Monitor,
) -> Result<()> {
    let file_bytes = staged.len()?;
    let mut sha = Sha256Stream::new();
    let payload_end = payload.offset + payload.bytes;
    for (from, to) in [(PREAMBLE, payload.offset), (payload_end, file_bytes)] {
        hash_range(staged.file(), from, to, &mut sha, monitor)?;
    }
    let preamble = Preamble {
        file_bytes,
        index,
        index_crc: crc32c::crc32c(encoded),
        payload,
        frame_sha256: sha.finish(),
    };
    staged.write_at(0, &preamble.encode())
}

fn hash_range(
    file: &dyn DiskFile,
    from: u64,
    to: u64,
    sha: &mut Sha256Stream,
    monitor: &dyn Monitor,
) -> Result<()> {
    let mut buffer = vec![0; 128 << 10];
    let mut at = from;
    while at < to {
        monitor.poll(&Progress { stage: "hashing frame", done: at - from, total: to - from })?;
        let n = (to - at).min(buffer.len() as u64) as usize;
        file.read_at(at, &mut buffer[..n])?;
        sha.update(&buffer[..n]);
        at += n as u64;
    }
    Ok(())
}

fn make_receipt(
    inspection: &Inspection,
    plan: &Plan,
    index: &PackIndex,
    output: (u64, Sha256Sum),
    peak: u64,
    timing: Timing,
) -> Receipt {
    let block = plan.layout.block();
    let member = |m: &SourceMember| ReceiptMember {
        role: m.role.name().to_owned(),
        path: m.path.display().to_string(),
        bytes: m.bytes,
        sha256: m.sha256,
    };
    Receipt {
        schema: SCHEMA.to_owned(),
        format: 2,
        completed_utc: publish::utc_now(),
        destination: plan.destination.display().to_string(),
        output_bytes: output.0,
        output_sha256: output.1,
        source_kind: inspection.kind.name().to_owned(),
        source_object: match &inspection.kind {
            SourceKind::Hdf5 { object } => Some(object.clone()),
            _ => None,
        },
        source_members: inspection.members.iter().map(member).collect(),
        source_identity_sha256: index.source_identity,
        source_raw_logical_sha256: index.raw_sha256,
        scan_shape: index.layout.scan_shape().to_vec(),
        detector_shape: index.layout.detector_shape().to_vec(),
        source_dtype: index.layout.counts().name().to_owned(),
        block: [block.rows, block.columns, block.scans],
        scans_per_shard: index.layout.shard_scans(),
        bad_pixel_indices: index.excluded.clone(),
        detector_mask_identity_sha256: index.mask_sha256,
        detector_mask_identity_origin: index.mask_origin.name().to_owned(),
        calibration: inspection.calibration.receipt_object(),
        planned_peak_transient_bytes: plan.planned_peak_bytes,
        accounted_peak_transient_bytes: peak,
        timing,
        shards: receipt::shards(index),
    }
}
