//! The receipt of a pack of format 2: what it was made from, when, and the hash of the whole file.
//!
//! A pack counts as published only with its receipt beside it. Everything but `completedUTC`, `destination` and `timing` can
//! be compared with the pack.

use super::format::index::PackIndex;
use crate::digest::Sha256Sum;
use crate::receipt::{ReceiptMember, Timing};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::{Error, Result};

/// Schema of the receipt.
pub const SCHEMA: &str = "tensilo.pack-production/v2";
/// Longest receipt that is read.
const MOST_BYTES: u64 = 1 << 30;

/// A receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// `tensilo.pack-production/v2`.
    pub schema: String,
    /// 2.
    pub format: u32,
    /// When, in UTC, whole seconds.
    #[serde(rename = "completedUTC")]
    pub completed_utc: String,
    /// Absolute path of the pack.
    pub destination: String,
    /// Length of the pack.
    pub output_bytes: u64,
    /// Hash of the whole pack.
    #[serde(rename = "outputSHA256")]
    pub output_sha256: Sha256Sum,
    /// What the source was.
    pub source_kind: String,
    /// Path of the dataset in an HDF5 file, where one was named.
    pub source_object: Option<String>,
    /// The source's files, master first.
    pub source_members: Vec<ReceiptMember>,
    /// Identity of the source.
    #[serde(rename = "sourceIdentitySHA256")]
    pub source_identity_sha256: Sha256Sum,
    /// Hash of all counts as the source has them.
    #[serde(rename = "sourceRawLogicalSHA256")]
    pub source_raw_logical_sha256: Sha256Sum,
    /// Shape of the scan.
    pub scan_shape: Vec<u64>,
    /// Shape of the detector.
    pub detector_shape: Vec<u64>,
    /// Element type.
    pub source_dtype: String,
    /// Rows, columns and scans of a block.
    pub block: [u32; 3],
    /// Scans of a shard.
    pub scans_per_shard: u64,
    /// Excluded flat pixels, ascending.
    pub bad_pixel_indices: Vec<u32>,
    /// Hash of the complete mask.
    #[serde(rename = "detectorMaskIdentitySHA256")]
    pub detector_mask_identity_sha256: Sha256Sum,
    /// Where the mask came from.
    pub detector_mask_identity_origin: String,
    /// Sampling, with its hash.
    pub calibration: Value,
    /// From the plan.
    pub planned_peak_transient_bytes: u64,
    /// Most bytes that were held at one time, as counted.
    pub accounted_peak_transient_bytes: u64,
    /// How long the steps took.
    pub timing: Timing,
    /// The shards.
    pub shards: Vec<ReceiptShard>,
}

/// One shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptShard {
    /// Counted from 0.
    pub ordinal: u64,
    /// Its first scan.
    pub first_scan: u64,
    /// Number of scans.
    pub scan_count: u64,
    /// Bytes of its blocks.
    pub blocks_bytes: u64,
    /// Bytes of its table.
    pub table_bytes: u64,
    /// Hash of both.
    pub sha256: Sha256Sum,
}

/// The receipt's view of a pack's shards.
pub(crate) fn shards(index: &PackIndex) -> Vec<ReceiptShard> {
    let each = (0..).zip(&index.shards).map(|(ordinal, record)| {
        let scans = index.layout.shard(ordinal);
        ReceiptShard {
            ordinal,
            first_scan: scans.start,
            scan_count: scans.end - scans.start,
            blocks_bytes: record.blocks_bytes,
            table_bytes: record.table_bytes,
            sha256: record.sha256,
        }
    });
    each.collect()
}

impl Receipt {
    /// Parses a receipt.
    ///
    /// # Errors
    /// `Corrupt` when it is no JSON or lacks a field.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|e| Error::corrupt(format!("receipt: {e}")))
    }

    /// Reads the receipt at a path.
    ///
    /// # Errors
    /// `NotFound`, `Io`, and as [`parse`](Self::parse).
    pub fn read(path: &Path) -> Result<Self> {
        let source = FileSource::open(path)?;
        if source.len() > MOST_BYTES {
            return Err(Error::corrupt(format!("a receipt of {} bytes", source.len())).in_file(path));
        }
        let mut bytes = vec![0; source.len() as usize];
        source.read_at(0, &mut bytes)?;
        Self::parse(&bytes).map_err(|e| e.in_file(path))
    }

    /// The text: sorted keys, two spaces, a final newline.
    pub fn encode(&self) -> Vec<u8> {
        let value = serde_json::to_value(self).unwrap_or_default();
        let mut out = serde_json::to_vec_pretty(&value).unwrap_or_default();
        out.push(b'\n');
        out
    }

    /// Compares the receipt with a pack's index and length. Returns what differs.
    pub fn differences(&self, index: &PackIndex, file_bytes: u64) -> Vec<String> {
        let (mut found, l) = (Vec::new(), &index.layout);
        let mut compare = |what: &str, same: bool| {
            if !same {
                found.push(format!("{what} is not that of the pack"));
            }
        };
        let block = l.block();
        compare("schema", self.schema == SCHEMA && self.format == 2);
        compare("outputBytes", self.output_bytes == file_bytes);
        compare("sourceIdentitySHA256", self.source_identity_sha256 == index.source_identity);
        compare("sourceRawLogicalSHA256", self.source_raw_logical_sha256 == index.raw_sha256);
        compare("scanShape", self.scan_shape == l.scan_shape());
        compare("detectorShape", self.detector_shape == l.detector_shape());
        compare("sourceDtype", self.source_dtype == l.counts().name());
        compare("block", self.block == [block.rows, block.columns, block.scans]);
        compare("scansPerShard", self.scans_per_shard == l.shard_scans());
        compare("badPixelIndices", self.bad_pixel_indices == index.excluded);
        compare("detectorMaskIdentitySHA256", self.detector_mask_identity_sha256 == index.mask_sha256);
        compare("detectorMaskIdentityOrigin", self.detector_mask_identity_origin == index.mask_origin.name());
        let stated = self.calibration.get("sha256").and_then(Value::as_str);
        compare("calibration", stated == Some(&index.calibration_sha256.to_string()));
        compare("shards", self.shards == shards(index));
        found
    }
}
