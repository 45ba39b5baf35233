//! The receipt: JSON beside a pack that states source, choices, hashes and counts (contract, 5.4), and its check.
//!
//! A pack counts as published only with a matching receipt. The check compares every field with what the pack itself
//! says or what was recomputed from it; only `timing`, `completedUTC` and `destination` cannot be known from it.

use crate::digest::Sha256Sum;
use crate::format::manifest;
use crate::geometry::Cut;
use crate::identity::{self, MaskOrigin};
use crate::plan::{self, Sizes};
use crate::profile::{FORMAT_SCHEMA, Flavour, Profile, RECEIPT_SCHEMA};
use crate::read::Pack;
use crate::source::calibration::Calibration;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::{Error, Result};

/// Longest receipt that is read.
const MOST_BYTES: u64 = 1 << 30;

/// A receipt; field names in JSON are the contract's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// `quantem.gpu.lossless-pack-production/v1`.
    pub schema: String,
    /// `quantem.gpu.lossless-pack-format/v1`.
    pub format_schema: String,
    /// Name of the profile.
    pub encoding_profile: String,
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
    /// The source's files, master first.
    pub source_members: Vec<ReceiptMember>,
    /// Identity of the source.
    #[serde(rename = "sourceIdentitySHA256")]
    pub source_identity_sha256: Sha256Sum,
    /// Hash of all raw values.
    #[serde(rename = "sourceRawLogicalSHA256")]
    pub source_raw_logical_sha256: Sha256Sum,
    /// Hash of all working values.
    #[serde(rename = "workingLogicalSHA256")]
    pub working_logical_sha256: Sha256Sum,
    /// Shape of the acquisition.
    pub source_shape: [u32; 4],
    /// `uint16`.
    pub source_dtype: String,
    /// `uint8` or `uint16`.
    pub working_dtype: String,
    /// Bytes of the prepared indexes.
    pub prepared_index_bytes: u64,
    /// Bytes of the largest LZ4 block.
    pub maximum_compressed_block_bytes: u64,
    /// `cpu-reference`.
    pub execution_backend: String,
    /// `false`.
    pub gpu_accelerated: bool,
    /// Scans of a tile.
    pub scan_tile: u32,
    /// Scans of a shard.
    pub scans_per_shard: u32,
    /// Number of shards.
    pub shard_count: u32,
    /// 1.
    pub scan_bin: u32,
    /// 1.
    pub detector_bin: u32,
    /// Excluded flat pixels, ascending.
    pub bad_pixel_indices: Vec<u32>,
    /// Their constants; empty for a profile that keeps their values.
    pub bad_pixel_raw_values: Vec<u16>,
    /// Hash of the list.
    #[serde(rename = "badPixelIdentitySHA256")]
    pub bad_pixel_identity_sha256: Sha256Sum,
    /// Hash of the complete mask.
    #[serde(rename = "detectorMaskIdentitySHA256")]
    pub detector_mask_identity_sha256: Sha256Sum,
    /// Where the mask came from.
    pub detector_mask_identity_origin: String,
    /// Sampling, with its hash.
    pub calibration: Value,
    /// From the plan.
    pub predicted_packed_resident_maximum_bytes: u64,
    /// Payload and headers of all shards.
    pub observed_packed_resident_bytes: u64,
    /// From the plan.
    pub predicted_peak_transient_bytes: u64,
    /// The contract's account of the run.
    pub accounted_peak_transient_bytes: u64,
    /// From the plan.
    pub predicted_output_file_maximum_bytes: u64,
    /// From the plan.
    pub predicted_receipt_file_maximum_bytes: u64,
    /// From the plan.
    pub predicted_output_disk_maximum_bytes: u64,
    /// How long the steps took.
    pub timing: Timing,
    /// The shards.
    pub shards: Vec<ReceiptShard>,
}

/// One file of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptMember {
    /// `master` or `data`.
    pub role: String,
    /// Where it was.
    pub path: String,
    /// Length.
    pub bytes: u64,
    /// Hash of the whole file.
    pub sha256: Sha256Sum,
}

/// One shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptShard {
    /// Counted from 0.
    pub ordinal: u32,
    /// Its first scan.
    pub first_scan: u64,
    /// Number of scans.
    pub scan_count: u32,
    /// Payload bytes as stored.
    pub payload_bytes: u64,
    /// Hash of the (decoded) payload.
    #[serde(rename = "payloadSHA256")]
    pub payload_sha256: Sha256Sum,
    /// Header bytes; for LZ4, width and length bytes.
    pub header_bytes: u64,
    /// Hash of the headers, or of the width bytes.
    #[serde(rename = "headerSHA256")]
    pub header_sha256: Sha256Sum,
    /// Widest tile.
    pub maximum_bit_width: u32,
}

/// Milliseconds of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// Hashing the source.
    pub source_authentication_milliseconds: f64,
    /// Decoding, hashing, packing.
    pub decode_and_packing_milliseconds: f64,
    /// Finishing and syncing the file.
    pub container_write_milliseconds: f64,
    /// Looking at the source again, hashing the output.
    pub stability_and_output_hash_milliseconds: f64,
    /// All until the names are given.
    pub total_before_atomic_publication_milliseconds: f64,
}

/// What decoding a pack proved; compared with its manifest and receipt.
#[derive(Debug, Clone)]
pub(crate) struct Proven {
    pub raw_sha256: Option<Sha256Sum>,
    pub working_sha256: Sha256Sum,
    /// Header hash and widest tile of each shard.
    pub shards: Vec<(Sha256Sum, u32)>,
    pub output_sha256: Sha256Sum,
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

    /// The text: sorted keys, two spaces, ` : `, a final newline.
    pub fn encode(&self) -> Vec<u8> {
        let value = serde_json::to_value(self).unwrap_or_default();
        let mut out = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, Layout::default());
        // Writing to memory does not fail.
        let _ = value.serialize(&mut serializer);
        out.push(b'\n');
        out
    }

    /// Compares the receipt with a pack, without decoding it: everything but hashes of values and of the file.
    /// Returns what differs.
    pub fn differences(&self, pack: &Pack) -> Vec<String> {
        let mut d = Differences(Vec::new());
        self.compare_fixed(pack, &mut d);
        self.compare_source(pack, &mut d);
        self.compare_mask(pack, &mut d);
        self.compare_shards(pack, &mut d);
        if let Err(e) = self.compare_numbers(pack, &mut d) {
            d.0.push(format!("the receipt's numbers: {}", e.message()));
        }
        d.0
    }

    /// Compares the receipt with what decoding proved. Returns what differs.
    pub(crate) fn differences_from(&self, proven: &Proven) -> Vec<String> {
        let mut d = Differences(Vec::new());
        if let Some(raw) = proven.raw_sha256 {
            d.compare("sourceRawLogicalSHA256", &self.source_raw_logical_sha256, &raw);
        }
        d.compare("workingLogicalSHA256", &self.working_logical_sha256, &proven.working_sha256);
        d.compare("outputSHA256", &self.output_sha256, &proven.output_sha256);
        for (k, (stated, (header, widest))) in self.shards.iter().zip(&proven.shards).enumerate() {
            d.compare(&format!("shards[{k}].headerSHA256"), &stated.header_sha256, header);
            d.compare(&format!("shards[{k}].maximumBitWidth"), &stated.maximum_bit_width, widest);
        }
        d.0
    }

    fn compare_fixed(&self, pack: &Pack, d: &mut Differences) {
        let (index, manifest) = (pack.index(), pack.manifest());
        d.compare("schema", &*self.schema, RECEIPT_SCHEMA);
        d.compare("formatSchema", &*self.format_schema, FORMAT_SCHEMA);
        let profile = match index.flavour {
            Flavour::BitPacked8 => Some(Profile::ExactUint8BitPacked.name()),
            Flavour::Lz4 => Some(Profile::ExactUint16Lz4.name()),
            Flavour::BitPacked16 => None,
        };
        if let Some(name) = manifest.get("encoding_profile").and_then(Value::as_str).or(profile) {
            d.compare("encodingProfile", &*self.encoding_profile, name);
        }
        d.compare("outputBytes", &self.output_bytes, &pack.file_bytes());
        d.compare("sourceShape", &self.source_shape, &index.geometry.shape());
        let dtype = manifest.get("source_dtype").and_then(Value::as_str).unwrap_or("uint16");
        d.compare("sourceDtype", &*self.source_dtype, dtype);
        d.compare("workingDtype", &*self.working_dtype, index.flavour.working_dtype());
        let backend = manifest.get("producer_execution_backend").and_then(Value::as_str);
        d.compare("executionBackend", &*self.execution_backend, backend.unwrap_or("cpu-reference"));
        let gpu = manifest.get("producer_gpu_accelerated").and_then(Value::as_bool);
        d.compare("gpuAccelerated", &self.gpu_accelerated, &gpu.unwrap_or(false));
        d.compare("scanTile", &self.scan_tile, &index.cut.tile);
        d.compare("scansPerShard", &self.scans_per_shard, &index.cut.scans_per_shard);
        d.compare("shardCount", &self.shard_count, &index.cut.shards);
        d.compare("scanBin", &self.scan_bin, &1);
        d.compare("detectorBin", &self.detector_bin, &1);
        match (&manifest.calibration, Calibration::parse(&self.calibration)) {
            (_, Err(e)) => d.0.push(format!("calibration: {}", e.message())),
            (Some((stated, sum)), Ok((here, here_sum))) => {
                d.compare("calibration", &here, stated);
                d.compare("calibration.sha256", &here_sum, sum);
            }
            (None, Ok((here, _))) => d.compare("calibration", &here, &Calibration::default()),
        }
    }

    fn compare_source(&self, pack: &Pack, d: &mut Differences) {
        let sum = |m: &ReceiptMember| m.sha256;
        let masters: Vec<Sha256Sum> =
            self.source_members.iter().filter(|m| m.role == "master").map(sum).collect();
        let data: Vec<Sha256Sum> = self.source_members.iter().filter(|m| m.role == "data").map(sum).collect();
        let first_is_master = self.source_members.first().is_some_and(|m| m.role == "master");
        if masters.len() + data.len() != self.source_members.len()
            || masters.len() > 1
            || first_is_master != (masters.len() == 1)
            || data.is_empty()
        {
            d.0.push("sourceMembers: not one master at most, first, and then data files".into());
        }
        let identity = identity::source_identity(masters.first(), &data);
        d.compare("sourceMembers", &identity, &pack.index().source_identity);
        d.compare("sourceIdentitySHA256", &self.source_identity_sha256, &pack.index().source_identity);
        let stated = &pack.manifest().raw_sha256;
        if let Some(raw) = stated {
            d.compare("sourceRawLogicalSHA256", &self.source_raw_logical_sha256, raw);
        }
        d.compare("workingLogicalSHA256", &self.working_logical_sha256, &pack.manifest().working_sha256);
    }

    fn compare_mask(&self, pack: &Pack, d: &mut Differences) {
        let (index, manifest) = (pack.index(), pack.manifest());
        d.compare("badPixelIndices", &self.bad_pixel_indices, &index.excluded);
        let values = manifest.excluded_values.clone().unwrap_or_default();
        d.compare("badPixelRawValues", &self.bad_pixel_raw_values, &values);
        d.compare(
            "badPixelIdentitySHA256",
            &self.bad_pixel_identity_sha256,
            &Sha256Sum::of_u32(&index.excluded),
        );
        d.compare("detectorMaskIdentitySHA256", &self.detector_mask_identity_sha256, &manifest.mask_sha256);
        match manifest.get("detector_mask_identity_origin").and_then(Value::as_str) {
            Some(origin) => {
                d.compare("detectorMaskIdentityOrigin", &*self.detector_mask_identity_origin, origin)
            }
            None => {
                let known = [MaskOrigin::Source, MaskOrigin::Implicit].map(MaskOrigin::name);
                if !known.contains(&&*self.detector_mask_identity_origin)
                    || (self.detector_mask_identity_origin == MaskOrigin::Implicit.name()
                        && !manifest::implicit_mask(manifest, index))
                {
                    d.0.push(format!("detectorMaskIdentityOrigin is {}", self.detector_mask_identity_origin));
                }
            }
        }
    }

    fn compare_shards(&self, pack: &Pack, d: &mut Differences) {
        let index = pack.index();
        d.compare("number of shards", &self.shards.len(), &index.shards.len());
        for (k, (stated, record)) in self.shards.iter().zip(&index.shards).enumerate() {
            let name = |field: &str| format!("shards[{k}].{field}");
            let scans = index.cut.scans_per_shard;
            d.compare(&name("ordinal"), &(stated.ordinal as usize), &k);
            d.compare(&name("firstScan"), &stated.first_scan, &(k as u64 * u64::from(scans)));
            d.compare(&name("scanCount"), &stated.scan_count, &scans);
            d.compare(&name("payloadBytes"), &stated.payload_bytes, &record.payload.bytes);
            d.compare(&name("payloadSHA256"), &stated.payload_sha256, &record.payload_sha256);
            d.compare(
                &name("headerBytes"),
                &stated.header_bytes,
                &(record.header.bytes + record.lengths.bytes),
            );
        }
    }

    fn compare_numbers(&self, pack: &Pack, d: &mut Differences) -> Result<()> {
        let index = pack.index();
        let (pixels, cut) = (index.geometry.pixels(), index.cut);
        let stored = |k: usize| {
            let r = &index.shards[k];
            r.payload.bytes + r.header.bytes + r.lengths.bytes
        };
        let observed: u64 = (0..index.shards.len()).map(stored).sum();
        d.compare("observedPackedResidentBytes", &self.observed_packed_resident_bytes, &observed);
        let profile = match index.flavour {
            Flavour::Lz4 => Profile::ExactUint16Lz4,
            Flavour::BitPacked8 | Flavour::BitPacked16 => Profile::ExactUint8BitPacked,
        };
        let largest = (0..index.shards.len()).map(stored).max().unwrap_or(0);
        let decoded = index.shards.iter().map(|r| r.decoded_bytes).max().unwrap_or(0);
        let (prepared, block) = (self.prepared_index_bytes, self.maximum_compressed_block_bytes);
        let accounted =
            plan::accounted_peak(profile, pixels, cut.tiles(), largest, prepared, block, decoded)?;
        d.compare("accountedPeakTransientBytes", &self.accounted_peak_transient_bytes, &accounted);
        let cut = Cut { tile: profile.tile(), ..cut };
        let sizes = Sizes::with_cut(pixels, index.excluded.len() as u64, profile, cut)?;
        let resident = sizes.resident()?;
        d.compare(
            "predictedPackedResidentMaximumBytes",
            &self.predicted_packed_resident_maximum_bytes,
            &resident,
        );
        let peak = sizes.transient(prepared, block)?;
        d.compare("predictedPeakTransientBytes", &self.predicted_peak_transient_bytes, &peak);
        let file = sizes.file()?;
        d.compare("predictedOutputFileMaximumBytes", &self.predicted_output_file_maximum_bytes, &file);
        let paths = self.source_members.iter().map(|m| m.path.len() as u64).sum();
        let receipt = plan::receipt_maximum_of(self.source_members.len() as u64, paths, cut.shards)?;
        d.compare("predictedReceiptFileMaximumBytes", &self.predicted_receipt_file_maximum_bytes, &receipt);
        let disk = file.checked_add(receipt).ok_or_else(|| Error::corrupt("they do not fit 64 bits"))?;
        d.compare("predictedOutputDiskMaximumBytes", &self.predicted_output_disk_maximum_bytes, &disk);
        Ok(())
    }
}

struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug + ?Sized>(&mut self, field: &str, stated: &T, expected: &T) {
        if stated != expected {
            self.0.push(format!("{field} is {stated:?}, {expected:?} is expected"));
        }
    }
}

/// Foundation's pretty printing: two spaces, ` : ` behind a key.
#[derive(Default)]
struct Layout<'a>(serde_json::ser::PrettyFormatter<'a>);

impl serde_json::ser::Formatter for Layout<'_> {
    fn begin_array<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        self.0.begin_array(w)
    }

    fn end_array<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        self.0.end_array(w)
    }

    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.0.begin_array_value(w, first)
    }

    fn end_array_value<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        self.0.end_array_value(w)
    }

    fn begin_object<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        self.0.begin_object(w)
    }

    fn end_object<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        self.0.end_object(w)
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.0.begin_object_key(w, first)
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        w.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        self.0.end_object_value(w)
    }
}
