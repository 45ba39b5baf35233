//! The plan: what producing a pack will take, in exact numbers, before any payload is read (contract, 5.2).
//!
//! Every step is checked 64-bit arithmetic. `predicted_peak_transient_bytes` is the contract's formula (one worker,
//! two decode passes): the least budget that is accepted. What will really run follows from the budget:
//! [`Plan::workers`], [`Plan::passes`] and [`Plan::planned_peak_transient_bytes`]. A smaller budget first takes away
//! the single pass, then workers; neither changes a byte of the result.

use crate::format::header::MOST_WORDS;
use crate::format::index::{Extent, PackIndex, ShardRecord, index_bytes};
use crate::format::manifest::{self, Lz4ShardFacts, ManifestFacts};
use crate::geometry::{Cut, Geometry};
use crate::profile::{Backend, Flavour, Profile};
use crate::source::inspect::Inspection;
use crate::strip;
use crate::{Sha256Sum, USER_BLOCK, receipt_path};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tensilo_core::io::Disk;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Result};

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;
/// Scratch for one shuffled block.
const UNSHUFFLE_SCRATCH: u64 = 8192;

/// How a pack is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOptions {
    /// How values are stored.
    pub profile: Profile,
    /// Who does the work.
    pub backend: Backend,
    /// Bytes of memory that may be used.
    pub memory: u64,
    /// Bytes of disk that may be used; the measured free space when absent.
    pub available_disk: Option<u64>,
    /// Most threads.
    pub threads: Threads,
}

impl Default for PlanOptions {
    /// `exact-uint8-bitpacked`, this machine's cores, 1 GiB or a quarter of the memory, measured disk space.
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            backend: Backend::default(),
            memory: default_memory(),
            available_disk: None,
            threads: Threads::default(),
        }
    }
}

/// The default memory budget: 1 GiB, or a quarter of the machine's memory if that is less.
pub fn default_memory() -> u64 {
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
        line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(KIB)
    });
    (1 << 30_u64).min(total.map_or(u64::MAX, |t| t / 4))
}

/// What producing will take. All sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How values are stored.
    pub profile: Profile,
    /// Who does the work.
    pub backend: Backend,
    /// Shape of the acquisition.
    pub geometry: Geometry,
    /// Shards and tiles.
    pub cut: Cut,
    /// Where the pack goes.
    pub destination: PathBuf,
    /// Header (or width and length) bytes of one shard.
    pub header_bytes_per_shard: u64,
    /// Most payload bytes of one shard, as stored.
    pub maximum_payload_bytes_per_shard: u64,
    /// Most bytes that payload and headers of all shards can take.
    pub predicted_packed_resident_maximum_bytes: u64,
    /// The contract's formula: one worker, two passes.
    pub predicted_peak_transient_bytes: u64,
    /// Most bytes of the pack.
    pub predicted_output_file_maximum_bytes: u64,
    /// Most bytes of the receipt.
    pub predicted_receipt_file_maximum_bytes: u64,
    /// Most bytes of both.
    pub predicted_output_disk_maximum_bytes: u64,
    /// Threads that will work.
    pub workers: usize,
    /// Times that each frame is decoded: 1 or 2.
    pub passes: u32,
    /// Most bytes that the work will hold at one time.
    pub planned_peak_transient_bytes: u64,
    /// The memory budget.
    pub memory: u64,
    /// Disk space that was available.
    pub available_disk: u64,
}

/// Plans a pack: refuses what cannot work before anything is allocated, in the contract's order: backend,
/// inspection, shards, memory, disk, user block.
///
/// Whether the destination exists is not looked at; producing decides that.
///
/// # Errors
/// `Unsupported` for a backend, `InvalidArgument` for shape or inspection, `InsufficientMemory`,
/// `InsufficientDisk`, `Limit` when the index does not fit the user block.
pub fn plan(
    inspection: &Inspection,
    destination: &Path,
    options: &PlanOptions,
    disk: &dyn Disk,
) -> Result<Plan> {
    options.backend.require()?;
    inspection.check_consistency()?;
    if inspection.source_dtype != "uint16" {
        return Err(Error::unsupported(format!(
            "the source is {}; the lossless pack v1 takes uint16",
            inspection.source_dtype
        ))
        .in_file(&inspection.members[0].path));
    }
    if destination.to_str().is_none() {
        return Err(Error::invalid("the destination is no UTF-8").in_file(destination));
    }
    let sizes = Sizes::new(inspection, options.profile)?;
    let peak = sizes.transient(inspection.prepared_index_bytes, inspection.maximum_compressed_block_bytes)?;
    if peak > options.memory {
        return Err(Error::new(
            ErrorKind::InsufficientMemory,
            format!("producing needs {peak} bytes of memory, {} are given", options.memory),
        ));
    }
    let (workers, passes, planned) = sizes.run_within(inspection, peak, options)?;
    let file = sizes.file()?;
    let receipt = receipt_maximum(inspection, sizes.cut.shards)?;
    let on_disk = file.checked_add(receipt).ok_or_else(overflow)?;
    let available = match options.available_disk {
        Some(given) => given,
        None => disk.free_space(destination.parent().unwrap_or(Path::new("")))?,
    };
    if on_disk > available {
        return Err(Error::new(
            ErrorKind::InsufficientDisk,
            format!("the pack and its receipt may need {on_disk} bytes, {available} are available"),
        )
        .in_file(destination));
    }
    sizes.check_user_block(inspection)?;
    Ok(Plan {
        profile: options.profile,
        backend: options.backend,
        geometry: inspection.geometry,
        cut: sizes.cut,
        destination: destination.to_path_buf(),
        header_bytes_per_shard: sizes.header,
        maximum_payload_bytes_per_shard: sizes.payload,
        predicted_packed_resident_maximum_bytes: sizes.resident()?,
        predicted_peak_transient_bytes: peak,
        predicted_output_file_maximum_bytes: file,
        predicted_receipt_file_maximum_bytes: receipt,
        predicted_output_disk_maximum_bytes: on_disk,
        workers,
        passes,
        planned_peak_transient_bytes: planned,
        memory: options.memory,
        available_disk: available,
    })
}

#[cold]
fn overflow() -> Error {
    Error::limit("the plan's numbers do not fit 64 bits")
}

fn sum(parts: impl IntoIterator<Item = u64>) -> Result<u64> {
    parts.into_iter().try_fold(0_u64, u64::checked_add).ok_or_else(overflow)
}

fn product(parts: impl IntoIterator<Item = u64>) -> Result<u64> {
    parts.into_iter().try_fold(1_u64, u64::checked_mul).ok_or_else(overflow)
}

/// Sizes of one shard and of all.
pub(crate) struct Sizes {
    profile: Profile,
    pub(crate) cut: Cut,
    pixels: u64,
    /// Header words, or widths and lengths.
    pub(crate) header: u64,
    /// Most payload bytes as stored.
    pub(crate) payload: u64,
}

impl Sizes {
    pub(crate) fn new(inspection: &Inspection, profile: Profile) -> Result<Self> {
        let cut = match profile {
            Profile::ExactUint8BitPacked => Cut::of(&inspection.geometry, profile)?,
            Profile::ExactUint16Lz4 => lz4_cut(inspection)?,
        };
        Self::with_cut(inspection.geometry.pixels(), inspection.excluded.len() as u64, profile, cut)
    }

    pub(crate) fn with_cut(pixels: u64, excluded: u64, profile: Profile, cut: Cut) -> Result<Self> {
        let scans = u64::from(cut.scans_per_shard);
        let (header, payload) = match profile {
            Profile::ExactUint8BitPacked => (
                product([4, pixels, cut.header_words().into()])?,
                product([pixels.saturating_sub(excluded), scans])?,
            ),
            Profile::ExactUint16Lz4 => {
                // Excluded streams are kept. A raw LZ4 block of 128 bytes takes at most 130.
                let blocks = product([2, pixels, scans])?.div_ceil(128);
                (sum([blocks, product([pixels, cut.tiles().into()])?])?, product([130, blocks])?)
            }
        };
        Ok(Self { profile, cut, pixels, header, payload })
    }

    pub(crate) fn resident(&self) -> Result<u64> {
        product([self.cut.shards.into(), sum([self.payload, self.header])?])
    }

    /// The file: user block, shards, 4 MiB, 64 KiB per shard.
    pub(crate) fn file(&self) -> Result<u64> {
        sum([USER_BLOCK, self.resident()?, 4 * MIB, product([64 * KIB, self.cut.shards.into()])?])
    }

    /// Memory of one worker and two passes.
    pub(crate) fn transient(&self, prepared_index_bytes: u64, maximum_block: u64) -> Result<u64> {
        let tiles = u64::from(self.cut.tiles());
        let words = match self.profile {
            Profile::ExactUint8BitPacked => 0,
            // Blocks are compressed from whole words.
            Profile::ExactUint16Lz4 => product([2, self.pixels, self.cut.scans_per_shard.into()])?,
        };
        sum([
            product([5, self.pixels, tiles])?,
            words,
            self.payload,
            self.header,
            self.tile_buffers()?,
            prepared_index_bytes,
            maximum_block,
            UNSHUFFLE_SCRATCH,
        ])
    }

    /// One decoded and one working tile.
    pub(crate) fn tile_buffers(&self) -> Result<u64> {
        match self.profile {
            Profile::ExactUint8BitPacked => product([96, self.pixels]),
            Profile::ExactUint16Lz4 => product([512, self.pixels]),
        }
    }

    /// What a single pass holds beyond two: the packed tiles of a shard.
    pub(crate) fn staging(&self) -> Result<u64> {
        match self.profile {
            Profile::ExactUint8BitPacked => Ok(self.payload),
            Profile::ExactUint16Lz4 => product([2, self.pixels, self.cut.scans_per_shard.into()]),
        }
    }

    /// Whether what a single pass keeps beside the packed tiles, a second shard's widths and the padding of staged
    /// pieces, fits where the contract counts offsets. For detectors of a few pixels it does not.
    fn has_room_to_stage(&self) -> bool {
        match self.profile {
            Profile::ExactUint8BitPacked => strip::padding(self.profile, self.pixels) <= 3 * self.pixels,
            // The whole words that the formula counts are not kept.
            Profile::ExactUint16Lz4 => true,
        }
    }

    /// Workers, passes and peak that fit the budget.
    fn run_within(
        &self,
        inspection: &Inspection,
        peak: u64,
        options: &PlanOptions,
    ) -> Result<(usize, u32, u64)> {
        let per_worker =
            sum([self.tile_buffers()?, inspection.maximum_compressed_block_bytes, UNSHUFFLE_SCRATCH])?;
        let most = options.threads.get();
        let with = |workers: usize, staging: u64| {
            let more = per_worker.checked_mul(workers as u64 - 1)?;
            peak.checked_add(more)?.checked_add(staging).filter(|total| *total <= options.memory)
        };
        if self.has_room_to_stage()
            && let Some(total) = with(most, self.staging()?)
        {
            return Ok((most, 1, total));
        }
        let fits = (1..=most).rev().find_map(|w| with(w, 0).map(|total| (w, 2, total)));
        fits.ok_or_else(overflow)
    }

    /// Manifest and index must fit the user block, whatever the hashes and constants turn out to be.
    fn check_user_block(&self, inspection: &Inspection) -> Result<()> {
        let needed = user_block_needed(inspection, self.profile, &self.cut, self.file()?)?;
        if needed > u128::from(USER_BLOCK) {
            return Err(Error::limit(format!(
                "manifest and index of {} shards may need {needed} bytes, the user block has {USER_BLOCK}",
                self.cut.shards
            )));
        }
        Ok(())
    }
}

/// 1 MiB, 1 KiB per shard and per member, and the members' paths.
pub(crate) fn receipt_maximum(inspection: &Inspection, shards: u32) -> Result<u64> {
    let paths = inspection.members.iter().map(|m| m.path.as_os_str().len() as u64).sum();
    receipt_maximum_of(inspection.members.len() as u64, paths, shards)
}

pub(crate) fn receipt_maximum_of(members: u64, path_bytes: u64, shards: u32) -> Result<u64> {
    sum([MIB, product([KIB, shards.into()])?, product([KIB, members])?, path_bytes])
}

/// Bytes of the user block that manifest and index may need.
fn user_block_needed(
    inspection: &Inspection,
    profile: Profile,
    cut: &Cut,
    file_maximum: u64,
) -> Result<u128> {
    let flavour = match profile {
        Profile::ExactUint8BitPacked => Flavour::BitPacked8,
        Profile::ExactUint16Lz4 => Flavour::Lz4,
    };
    let (excluded, shards) = (inspection.excluded.len() as u64, u64::from(cut.shards));
    let index = index_bytes(flavour, excluded, shards);
    if index > u128::from(USER_BLOCK) {
        return Ok(index);
    }
    let mut skeleton = PackIndex {
        flavour,
        geometry: inspection.geometry,
        cut: *cut,
        excluded: inspection.excluded.clone(),
        source_identity: inspection.source_identity,
        shards: Vec::new(),
    };
    let manifest = match profile {
        Profile::ExactUint8BitPacked => {
            manifest::longest_bit_packed(&skeleton, inspection.mask_origin, &inspection.calibration)
        }
        Profile::ExactUint16Lz4 => {
            let most = Extent { offset: file_maximum, bytes: file_maximum };
            let worst = Sha256Sum([0xff; 32]);
            let record = ShardRecord {
                payload: most,
                lengths: most,
                header: most,
                decoded_bytes: file_maximum,
                header_items: u32::MAX,
                chunks: u32::MAX,
                payload_sha256: worst,
            };
            skeleton.shards = vec![record; cut.shards as usize];
            let facts = ManifestFacts {
                mask_origin: inspection.mask_origin,
                mask_sha256: worst,
                excluded_values: &[],
                raw_sha256: worst,
                working_sha256: worst,
                calibration: &inspection.calibration,
            };
            let shard = Lz4ShardFacts { compressed_sha256: worst, widths_sha256: worst, maximum_width: 16 };
            manifest::encode_lz4(&skeleton, &facts, &vec![shard; cut.shards as usize]).len()
        }
    };
    Ok((24 + manifest as u128).next_multiple_of(8) + index)
}

/// The shard of an LZ4 pack: the contract's divisor, raised while payload words stay within 2^27 until the
/// manifest, which lists every shard, fits the user block.
fn lz4_cut(inspection: &Inspection) -> Result<Cut> {
    let profile = Profile::ExactUint16Lz4;
    let geometry = &inspection.geometry;
    let mut cut = Cut::of(geometry, profile)?;
    let tile = u64::from(cut.tile);
    let fits = |cut: &Cut| -> Result<bool> {
        let sizes = Sizes::with_cut(geometry.pixels(), 0, profile, *cut)?;
        Ok(user_block_needed(inspection, profile, cut, sizes.file()?)? <= u128::from(USER_BLOCK))
    };
    if geometry.pixels() * u64::from(cut.scans_per_shard) / 2 > MOST_WORDS {
        return Err(Error::limit(format!(
            "a shard of {} scans may have more than 2^27 words",
            cut.scans_per_shard
        )));
    }
    while !fits(&cut)? {
        let most = (2 * MOST_WORDS / geometry.pixels()).min(geometry.scans());
        let next = (u64::from(cut.scans_per_shard) / tile + 1..=most / tile)
            .map(|tiles| tiles * tile)
            .find(|s| geometry.scans().is_multiple_of(*s));
        // Left as it is, the plan says by how much the user block is too small.
        let Some(next) = next.and_then(|s| u32::try_from(s).ok()) else { return Ok(cut) };
        cut = Cut::with_scans_per_shard(geometry, profile, next)?;
    }
    Ok(cut)
}

/// The contract's account of a run: the largest shard, and what stands beside it.
pub(crate) fn accounted_peak(
    profile: Profile,
    pixels: u64,
    tiles: u32,
    largest_shard: u64,
    prepared_index_bytes: u64,
    maximum_block: u64,
    decoded_payload: u64,
) -> Result<u64> {
    let (words, buffers) = match profile {
        Profile::ExactUint8BitPacked => (0, product([96, pixels])?),
        Profile::ExactUint16Lz4 => (decoded_payload, product([512, pixels])?),
    };
    sum([
        largest_shard,
        words,
        product([5, pixels, tiles.into()])?,
        buffers,
        prepared_index_bytes,
        maximum_block,
        UNSHUFFLE_SCRATCH,
    ])
}

impl Plan {
    /// Where the receipt goes.
    pub fn receipt_path(&self) -> PathBuf {
        receipt_path(&self.destination)
    }

    /// The plan as JSON, with the contract's names.
    pub fn to_json(&self) -> Value {
        json!({
            "encodingProfile": self.profile.name(),
            "executionBackend": self.backend.name(),
            "sourceShape": self.geometry.shape(),
            "destination": self.destination,
            "scanTile": self.cut.tile,
            "scansPerShard": self.cut.scans_per_shard,
            "shardCount": self.cut.shards,
            "tilesPerShard": self.cut.tiles(),
            "headerBytesPerShard": self.header_bytes_per_shard,
            "maximumPayloadBytesPerShard": self.maximum_payload_bytes_per_shard,
            "predictedPackedResidentMaximumBytes": self.predicted_packed_resident_maximum_bytes,
            "predictedPeakTransientBytes": self.predicted_peak_transient_bytes,
            "predictedOutputFileMaximumBytes": self.predicted_output_file_maximum_bytes,
            "predictedReceiptFileMaximumBytes": self.predicted_receipt_file_maximum_bytes,
            "predictedOutputDiskMaximumBytes": self.predicted_output_disk_maximum_bytes,
            "workers": self.workers,
            "passes": self.passes,
            "plannedPeakTransientBytes": self.planned_peak_transient_bytes,
            "memoryBytes": self.memory,
            "availableDiskBytes": self.available_disk,
        })
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
