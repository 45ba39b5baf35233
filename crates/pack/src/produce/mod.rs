//! Producing a pack: the source is authenticated again, decoded in bounded tiles, packed shard by shard, and published
//! with its receipt; nothing is overwritten and nothing is left behind by a failure (contract, 5.3).

mod decode;
mod gather;
mod hashes;
mod kernel;
#[doc(hidden)]
pub mod parts;
mod passes;
pub(crate) mod publish;
mod shards;

use crate::leftovers;
use crate::plan::Plan;
use crate::profile::Profile;
use crate::receipt::{Receipt, Timing};
use crate::source::authentication::{self, check_unchanged};
use crate::source::inspect::{InspectOptions, Inspection, SourceMember};
use crate::source::prepare::{self, IndexFolder, Prepared};
use crate::strip;
use crate::writer::exists;
use crate::{USER_BLOCK, receipt_path};
use decode::Frames;
use hashes::Hashes;
use kernel::Kernel;
use passes::Pass;
use publish::Found;
use shards::Shards;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tensilo_core::io::{Disk, DiskFile, Fingerprint, Staged, SystemDisk};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, Limits, Monitor, Progress, Result};
use tensilo_hdf5::write::{FileWriter, WriteOptions};

/// How a pack is produced, beyond its plan.
#[derive(Debug, Clone)]
pub struct ProduceOptions {
    /// Where prepared indexes are kept; as in [`InspectOptions`].
    pub index_dir: Option<PathBuf>,
    /// Removes what dead runs left of this destination before looking whether it exists.
    pub clear_leftovers: bool,
    /// What the source's files may make us allocate for metadata.
    pub limits: Limits,
    /// Where pack, receipt and indexes are written.
    pub disk: Arc<dyn Disk>,
}

impl Default for ProduceOptions {
    fn default() -> Self {
        Self {
            index_dir: None,
            clear_leftovers: false,
            limits: Limits::default(),
            disk: SystemDisk::shared(),
        }
    }
}

/// A pack that was published.
#[derive(Debug, Clone, PartialEq)]
pub struct Produced {
    /// Its receipt, as stored.
    pub receipt: Receipt,
    /// Where the receipt is.
    pub receipt_path: PathBuf,
    /// Most bytes that were held at one time, as counted; at most the plan's `planned_peak_transient_bytes`.
    pub peak_bytes: u64,
    /// What was cleared of dead runs.
    pub cleared: Vec<PathBuf>,
}

/// Produces a pack and its receipt.
///
/// # Errors
/// `AlreadyExists` when pack or receipt do; `SourceChanged`; `Unsupported`, naming file, pixel, scan and value, when the
/// profile cannot hold the source; `Cancelled` or another error of the monitor; errors of the disk. After an error there
/// is neither pack nor receipt; folders that were made stay.
pub fn produce(
    inspection: &Inspection,
    plan: &Plan,
    options: &ProduceOptions,
    monitor: &dyn Monitor,
) -> Result<Produced> {
    let begun = Instant::now();
    plan.backend.require()?;
    let stage = "packing";
    monitor.poll(&Progress { stage, ..Progress::default() })?;
    let cleared = make_room(&plan.destination, options.clear_leftovers, &*options.disk)?;
    let (members, prepared) = authenticate(inspection, plan, options, monitor)?;
    let authenticated = Instant::now();
    let account = Budget::new(Limits::default().with_bytes(u64::MAX));
    let _indexes = account.bytes(inspection.prepared_index_bytes, "prepared indexes")?;
    let staged = Staged::create(options.disk.clone(), &plan.destination)?;
    let mut writer = FileWriter::over(staged.file(), WriteOptions::default().user_block(USER_BLOCK))?;
    writer.create_group("/quantem_gpu/shards")?;
    let found = pack_all(inspection, plan, prepared, (staged.file(), &mut writer), &account, monitor)?;
    let packed = Instant::now();
    writer.finish()?;
    staged.write_at(0, &publish::user_block(inspection, &found)?)?;
    staged.sync()?;
    let written = Instant::now();
    check_unchanged(&members)?;
    let output = publish::hash_file(staged.file(), monitor)?;
    let hashed = Instant::now();
    let ms = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e3;
    let timing = Timing {
        source_authentication_milliseconds: ms(begun, authenticated),
        decode_and_packing_milliseconds: ms(authenticated, packed),
        container_write_milliseconds: ms(packed, written),
        stability_and_output_hash_milliseconds: ms(written, hashed),
        total_before_atomic_publication_milliseconds: ms(begun, hashed),
    };
    let receipt = publish::receipt(inspection, plan, &found, output, timing)?;
    let text = receipt.encode();
    publish::check_bounds(plan, output.0, text.len() as u64)?;
    let receipt_path = plan.receipt_path();
    let staged_receipt = Staged::create(options.disk.clone(), &receipt_path)?;
    staged_receipt.write_at(0, &text)?;
    staged_receipt.sync()?;
    monitor.poll(&Progress { stage: "publishing", ..Progress::default() })?;
    Staged::publish_pair(staged_receipt, staged)?;
    Ok(Produced { receipt, receipt_path, peak_bytes: account.peak(), cleared })
}

/// The folder exists, destination and receipt do not.
pub(crate) fn make_room(destination: &Path, clear: bool, disk: &dyn Disk) -> Result<Vec<PathBuf>> {
    prepare::create_folders(leftovers::folder_of(destination), disk)?;
    let mut cleared = Vec::new();
    if clear {
        cleared = leftovers::clear(&leftovers::find(destination, disk)?, disk)?;
    }
    for path in [destination, &*receipt_path(destination)] {
        if exists(disk, path)? {
            let e = Error::already_exists("the destination exists and is not overwritten").in_file(path);
            let orphan = leftovers::find(destination, disk)?.orphan_receipts.iter().any(|p| p == path);
            return Err(match orphan {
                true => e.hint("it is the receipt of a run that died; clear leftovers to remove it"),
                false => e.hint("choose another destination, or remove the pack and its receipt"),
            });
        }
    }
    Ok(cleared)
}

/// The members with what they are now, and the data files with their indexes.
type Authenticated = (Vec<(SourceMember, Fingerprint)>, Vec<Prepared>);

/// Hashes the members again and opens their indexes; both must be what was inspected.
fn authenticate(
    inspection: &Inspection,
    plan: &Plan,
    options: &ProduceOptions,
    monitor: &dyn Monitor,
) -> Result<Authenticated> {
    inspection.check_consistency()?;
    let threads = Threads::new(plan.workers);
    let files = inspection.files();
    let members = authentication::hash_members(&files, threads, monitor, "authenticating source")?;
    for ((found, _), expected) in members.iter().zip(&inspection.members) {
        if found != expected {
            return Err(Error::source_changed("the file is not what was inspected").in_file(&expected.path));
        }
    }
    let options = InspectOptions {
        index_dir: options.index_dir.clone(),
        threads,
        limits: options.limits.clone(),
        disk: options.disk.clone(),
        ..InspectOptions::default()
    };
    let folder = IndexFolder::choose(options.index_dir.as_deref(), &options.disk);
    let data = inspection.data_files().map(|m| m.path.as_path());
    let prepared = prepare::prepare(data, &inspection.id, &folder, &options, monitor)?;
    let now = |path: &PathBuf| members.iter().find(|(m, _)| m.path == *path).map(|(_, f)| *f);
    let detector = [inspection.geometry.detector_rows(), inspection.geometry.detector_columns()];
    for (p, frames) in prepared.iter().zip(&inspection.frames) {
        let shape = p.index.shape();
        if now(&p.path) != Some(p.now) || (shape.frames, shape.detector) != (*frames, detector) {
            return Err(Error::source_changed("the file is not what was inspected").in_file(&p.path));
        }
    }
    Ok((members, prepared))
}

/// Decodes, hashes and packs everything.
fn pack_all(
    inspection: &Inspection,
    plan: &Plan,
    prepared: Vec<Prepared>,
    (file, writer): (&dyn DiskFile, &mut FileWriter<'_>),
    account: &Budget,
    monitor: &dyn Monitor,
) -> Result<Found> {
    let pixels = inspection.geometry.pixels() as usize;
    let room = Room::new(inspection, plan);
    let frames = Frames::new(prepared, room.read_bytes);
    let constants = constants(&frames, &inspection.excluded, pixels)?;
    let kernel = Kernel {
        profile: plan.profile,
        frames: &frames,
        pixels,
        columns: inspection.geometry.detector_columns() as usize,
        excluded: &inspection.excluded,
        constants: &constants,
    };
    let pass = Pass {
        kernel: &kernel,
        cut: plan.cut,
        workers: plan.workers,
        ring: room.ring,
        account,
        raw: Mutex::default(),
        hashes: Mutex::new(Hashes::default()),
        file,
        written: Mutex::default(),
    };
    let mut shards = Shards {
        writer,
        profile: plan.profile,
        pixels,
        cut: plan.cut,
        records: Vec::new(),
        facts: Vec::new(),
    };
    if plan.passes == 1 {
        passes::one_pass(&pass, &mut shards, monitor)?;
    } else {
        passes::two_passes(&pass, &mut shards, monitor)?;
    }
    let mut hashes = pass.hashes.into_inner().unwrap_or_else(PoisonError::into_inner);
    hashes.add(pass.written.into_inner().unwrap_or_else(PoisonError::into_inner));
    let (working, of_parts) = hashes.finish(file)?;
    let raw = pass.raw.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    shards.enter_sums(&of_parts);
    let stated = match plan.profile {
        Profile::ExactUint8BitPacked => constants,
        Profile::ExactUint16Lz4 => Vec::new(),
    };
    Ok(Found::new(inspection, plan, shards, [raw, working], stated))
}

/// Values of the excluded pixels in the first scan.
fn constants(frames: &Frames, excluded: &[u32], pixels: usize) -> Result<Vec<u16>> {
    if excluded.is_empty() {
        return Ok(Vec::new());
    }
    let mut first = vec![0; pixels];
    frames.decode(&mut frames.reader(), 0, &mut first)?;
    Ok(excluded.iter().map(|p| first[*p as usize]).collect())
}

/// How the memory that the plan counts for offsets is used, which this implementation does not keep: more decoded
/// tiles in flight, and whole chunks read at once.
struct Room {
    ring: usize,
    read_bytes: u64,
}

impl Room {
    fn new(inspection: &Inspection, plan: &Plan) -> Self {
        let (pixels, tiles) = (inspection.geometry.pixels(), u64::from(plan.cut.tiles()));
        let (workers, block) = (plan.workers as u64, inspection.maximum_compressed_block_bytes);
        let offsets = 4 * pixels * tiles;
        // A single pass keeps the widths of a second shard, and pads staged pieces; two passes keep a cursor per pixel.
        let kept = if plan.passes == 1 {
            (pixels + strip::padding(plan.profile, pixels)) * tiles
        } else {
            4 * pixels
        };
        let free = offsets.saturating_sub(kept);
        let tile = match plan.profile {
            Profile::ExactUint8BitPacked => 96 * pixels,
            Profile::ExactUint16Lz4 => 512 * pixels,
        };
        let more = if plan.passes == 1 { (free / 2 / tile).min(workers + 2) } else { 0 };
        // A chunk can be longer than a frame by little.
        let chunk = 2 * pixels + 4096;
        let read_bytes = (block + free / 4 / workers).min(chunk).max(block);
        Self { ring: (workers + more) as usize, read_bytes }
    }
}
