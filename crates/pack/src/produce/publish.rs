//! The last steps: user block, hash of the whole file, receipt, and both names.

use super::shards::Shards;
use crate::digest::Sha256Sum;
use crate::format::index::PackIndex;
use crate::format::manifest::{self, Lz4ShardFacts, ManifestFacts};
use crate::format::prelude::Prelude;
use crate::plan::{self, Plan};
use crate::profile::{FORMAT_SCHEMA, Flavour, Profile, RECEIPT_SCHEMA};
use crate::receipt::{Receipt, ReceiptMember, ReceiptShard, Timing};
use crate::sha_pair::Sha256Stream;
use crate::source::inspect::Inspection;
use crate::{USER_BLOCK, receipt_path};
use std::time::SystemTime;
use tensilo_core::io::DiskFile;
use tensilo_core::{Error, ErrorKind, Monitor, Progress, Result};

/// What was found while packing.
pub(crate) struct Found {
    pub index: PackIndex,
    pub raw_sha256: Sha256Sum,
    pub working_sha256: Sha256Sum,
    /// Constants of the excluded pixels; empty where their values are kept.
    pub constants: Vec<u16>,
    pub shards: Vec<super::shards::ShardFacts>,
}

impl Found {
    pub fn new(
        inspection: &Inspection,
        plan: &Plan,
        shards: Shards<'_, '_>,
        sums: [Sha256Sum; 2],
        constants: Vec<u16>,
    ) -> Self {
        let flavour = match plan.profile {
            Profile::ExactUint8BitPacked => Flavour::BitPacked8,
            Profile::ExactUint16Lz4 => Flavour::Lz4,
        };
        let index = PackIndex {
            flavour,
            geometry: plan.geometry,
            cut: plan.cut,
            excluded: inspection.excluded.clone(),
            source_identity: inspection.source_identity,
            shards: shards.records,
        };
        Self { index, raw_sha256: sums[0], working_sha256: sums[1], constants, shards: shards.facts }
    }
}

/// The user block: prelude, manifest, index, zeros.
///
/// # Errors
/// `Limit` when they do not fit, which the plan rules out.
pub(crate) fn user_block(inspection: &Inspection, found: &Found) -> Result<Vec<u8>> {
    let facts = ManifestFacts {
        mask_origin: inspection.mask_origin,
        mask_sha256: inspection.mask_sha256,
        excluded_values: &found.constants,
        raw_sha256: found.raw_sha256,
        working_sha256: found.working_sha256,
        calibration: &inspection.calibration,
    };
    let text = if found.index.flavour == Flavour::Lz4 {
        let shards: Vec<Lz4ShardFacts> = found
            .shards
            .iter()
            .map(|s| Lz4ShardFacts {
                compressed_sha256: s.stored_sha256,
                widths_sha256: s.header_sha256,
                maximum_width: s.widest,
            })
            .collect();
        manifest::encode_lz4(&found.index, &facts, &shards)
    } else {
        manifest::encode_bit_packed(&found.index, &facts)
    };
    let index = found.index.encode();
    let prelude = Prelude::for_parts(text.as_bytes(), index.len())?;
    if prelude.end() > USER_BLOCK {
        return Err(Error::limit(format!(
            "manifest and index need {} bytes of the user block",
            prelude.end()
        )));
    }
    let mut block = prelude.encode();
    block.extend_from_slice(text.as_bytes());
    block.resize(prelude.index_offset as usize, 0);
    block.extend_from_slice(&index);
    block.resize(USER_BLOCK as usize, 0);
    Ok(block)
}

/// Hashes a finished file.
pub(crate) fn hash_file(file: &dyn DiskFile, monitor: &dyn Monitor) -> Result<(u64, Sha256Sum)> {
    let total = file.len()?;
    let mut buffer = vec![0; 128 << 10];
    let mut stream = Sha256Stream::new();
    let mut at = 0;
    while at < total {
        if at.is_multiple_of(4 << 20) {
            monitor.poll(&Progress { stage: "hashing pack", done: at, total })?;
        }
        let n = (total - at).min(buffer.len() as u64) as usize;
        file.read_at(at, &mut buffer[..n])?;
        stream.update(&buffer[..n]);
        at += n as u64;
    }
    Ok((total, stream.finish()))
}

/// The receipt of a finished pack.
pub(crate) fn receipt(
    inspection: &Inspection,
    plan: &Plan,
    found: &Found,
    output: (u64, Sha256Sum),
    timing: Timing,
) -> Result<Receipt> {
    let index = &found.index;
    let stored = |r: &crate::format::index::ShardRecord| r.payload.bytes + r.header.bytes + r.lengths.bytes;
    let accounted = plan::accounted_peak(
        plan.profile,
        index.geometry.pixels(),
        index.cut.tiles(),
        index.shards.iter().map(stored).max().unwrap_or(0),
        inspection.prepared_index_bytes,
        inspection.maximum_compressed_block_bytes,
        index.shards.iter().map(|r| r.decoded_bytes).max().unwrap_or(0),
    )?;
    let shards = index.shards.iter().zip(&found.shards).zip(0..).map(|((r, f), ordinal)| ReceiptShard {
        ordinal,
        first_scan: u64::from(ordinal) * u64::from(index.cut.scans_per_shard),
        scan_count: index.cut.scans_per_shard,
        payload_bytes: r.payload.bytes,
        payload_sha256: r.payload_sha256,
        header_bytes: r.header.bytes + r.lengths.bytes,
        header_sha256: f.header_sha256,
        maximum_bit_width: f.widest,
    });
    let members = inspection.members.iter().map(|m| ReceiptMember {
        role: m.role.name().to_owned(),
        path: m.path.display().to_string(),
        bytes: m.bytes,
        sha256: m.sha256,
    });
    let destination = std::path::absolute(&plan.destination).unwrap_or_else(|_| plan.destination.clone());
    Ok(Receipt {
        schema: RECEIPT_SCHEMA.to_owned(),
        format_schema: FORMAT_SCHEMA.to_owned(),
        encoding_profile: plan.profile.name().to_owned(),
        completed_utc: utc_now(),
        destination: destination.display().to_string(),
        output_bytes: output.0,
        output_sha256: output.1,
        source_members: members.collect(),
        source_identity_sha256: inspection.source_identity,
        source_raw_logical_sha256: found.raw_sha256,
        working_logical_sha256: found.working_sha256,
        source_shape: index.geometry.shape(),
        source_dtype: inspection.source_dtype.to_owned(),
        working_dtype: plan.profile.working_dtype().to_owned(),
        prepared_index_bytes: inspection.prepared_index_bytes,
        maximum_compressed_block_bytes: inspection.maximum_compressed_block_bytes,
        execution_backend: plan.backend.name().to_owned(),
        gpu_accelerated: false,
        scan_tile: index.cut.tile,
        scans_per_shard: index.cut.scans_per_shard,
        shard_count: index.cut.shards,
        scan_bin: 1,
        detector_bin: 1,
        bad_pixel_indices: inspection.excluded.clone(),
        bad_pixel_raw_values: found.constants.clone(),
        bad_pixel_identity_sha256: inspection.excluded_sha256,
        detector_mask_identity_sha256: inspection.mask_sha256,
        detector_mask_identity_origin: inspection.mask_origin.name().to_owned(),
        calibration: inspection.calibration.receipt_object(),
        predicted_packed_resident_maximum_bytes: plan.predicted_packed_resident_maximum_bytes,
        observed_packed_resident_bytes: index.shards.iter().map(stored).sum(),
        predicted_peak_transient_bytes: plan.predicted_peak_transient_bytes,
        accounted_peak_transient_bytes: accounted,
        predicted_output_file_maximum_bytes: plan.predicted_output_file_maximum_bytes,
        predicted_receipt_file_maximum_bytes: plan.predicted_receipt_file_maximum_bytes,
        predicted_output_disk_maximum_bytes: plan.predicted_output_disk_maximum_bytes,
        timing,
        shards: shards.collect(),
    })
}

/// Both files must keep what the plan promised.
pub(crate) fn check_bounds(plan: &Plan, pack: u64, receipt: u64) -> Result<()> {
    let fail = |what: &str, is: u64, most: u64| {
        Err(Error::new(
            ErrorKind::InsufficientDisk,
            format!("{what} takes {is} bytes, the plan allows {most}"),
        ))
    };
    if pack > plan.predicted_output_file_maximum_bytes {
        return fail("the pack", pack, plan.predicted_output_file_maximum_bytes);
    }
    if pack + receipt > plan.predicted_output_disk_maximum_bytes {
        return fail("pack and receipt", pack + receipt, plan.predicted_output_disk_maximum_bytes);
    }
    if receipt > plan.predicted_receipt_file_maximum_bytes {
        return fail("the receipt", receipt, plan.predicted_receipt_file_maximum_bytes);
    }
    debug_assert!(receipt_path(&plan.destination) == plan.receipt_path());
    Ok(())
}

/// ISO 8601, whole seconds: `2026-01-02T03:04:05Z`.
pub(crate) fn utc_now() -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    utc(seconds)
}

/// The proleptic Gregorian calendar, by counting days in 400-year eras that begin in March.
fn utc(seconds: u64) -> String {
    let (days, in_day) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (in_day / 3600, in_day / 60 % 60, in_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_323_045, "2026-01-02T03:04:05Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
