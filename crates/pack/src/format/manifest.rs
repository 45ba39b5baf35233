//! The JSON manifest (contract, 2.8, 2.9 and 3): what a pack says about itself, checked against its index.
//!
//! The parsed JSON is kept beside the checked facts, so that extensions this crate does not use stay visible.

use super::index::PackIndex;
use crate::digest::Sha256Sum;
use crate::identity::{self, MaskOrigin};
use crate::profile::{FORMAT_SCHEMA, Flavour, Profile, RECEIPT_SCHEMA};
use crate::source::calibration::Calibration;
use serde_json::{Map, Value, json};
use tensilo_core::{Error, Result};

/// The text that a revision 3 manifest has under `working_value_definition`.
pub const WORKING_DEFINITION: &str =
    "all admitted source counts exactly; authenticated dead pixels set to zero";
/// The same for a revision 1 manifest.
pub const WORKING_DEFINITION_LZ4: &str =
    "all source counts exactly; authenticated detector-mask pixels are excluded from scientific products";

/// A manifest that agrees with its index.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The whole JSON object.
    pub json: Map<String, Value>,
    /// SHA-256 of all raw values; a few writers leave it out.
    pub raw_sha256: Option<Sha256Sum>,
    /// SHA-256 of all working values in their element type.
    pub working_sha256: Sha256Sum,
    /// SHA-256 of the complete pixel mask.
    pub mask_sha256: Sha256Sum,
    /// Values of the excluded pixels, where they are constant and stated.
    pub excluded_values: Option<Vec<u16>>,
    /// Calibration and the hash stated for it.
    pub calibration: Option<(Calibration, Sha256Sum)>,
    /// Calibration of the detector that a later step added.
    pub detector_calibration: Option<DetectorCalibration>,
}

/// The extension `detector_calibration`.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectorCalibration {
    /// Centre of the pattern: row, column, in pixels.
    pub center_px: [f64; 2],
    /// Radius of the bright-field disk in pixels.
    pub bright_field_radius_px: f64,
    /// Rotation between scan and detector in degrees, and whether its components are exchanged.
    pub dpc: Option<(f64, bool)>,
    /// How it was found.
    pub method: String,
}

/// What a producer states in a revision 3 manifest beyond its index.
#[derive(Debug, Clone)]
pub struct ManifestFacts<'a> {
    /// Where the mask came from.
    pub mask_origin: MaskOrigin,
    /// SHA-256 of the complete pixel mask.
    pub mask_sha256: Sha256Sum,
    /// The constants of the excluded pixels.
    pub excluded_values: &'a [u16],
    /// SHA-256 of the raw values.
    pub raw_sha256: Sha256Sum,
    /// SHA-256 of the working values.
    pub working_sha256: Sha256Sum,
    /// Calibration.
    pub calibration: &'a Calibration,
}

/// The manifest of profile `exact-uint8-bitpacked`.
pub fn encode_bit_packed(index: &PackIndex, facts: &ManifestFacts<'_>) -> String {
    let manifest = json!({
        "crop": null,
        "detector_bin": 1,
        "detector_mask_identity_origin": facts.mask_origin.name(),
        "detector_mask_sha256": facts.mask_sha256,
        "encoding_profile": Profile::ExactUint8BitPacked.name(),
        "format_schema": FORMAT_SCHEMA,
        "masked_detector_pixels": index.excluded,
        "masked_detector_pixels_sha256": Sha256Sum::of_u32(&index.excluded),
        "masked_detector_raw_values": facts.excluded_values,
        "payload_codec": "direct-bitpacked-u32",
        "prepared_uint8_sha256": facts.working_sha256,
        "producer_execution_backend": "cpu-reference",
        "producer_gpu_accelerated": false,
        "producer_receipt_schema": RECEIPT_SCHEMA,
        "scan_bin": 1,
        "scan_tile": 32,
        "schema": Flavour::BitPacked8.manifest_schema(),
        "shard_count": index.cut.shards,
        "source_calibration": facts.calibration.manifest_object(),
        "source_dtype": "uint16",
        "source_identity_sha256": index.source_identity,
        "source_raw_logical_sha256": facts.raw_sha256,
        "source_shape": index.geometry.shape(),
        "status": "complete",
        "working_dtype": "uint8",
        "working_value_definition": WORKING_DEFINITION,
    });
    manifest.to_string()
}

/// What an LZ4 manifest states of one shard beyond its index record.
#[derive(Debug, Clone, Copy)]
pub struct Lz4ShardFacts {
    /// SHA-256 of the compressed payload.
    pub compressed_sha256: Sha256Sum,
    /// SHA-256 of the width bytes.
    pub widths_sha256: Sha256Sum,
    /// The largest width.
    pub maximum_width: u32,
}

/// The manifest of profile `exact-uint16-lz4`.
pub fn encode_lz4(index: &PackIndex, facts: &ManifestFacts<'_>, shards: &[Lz4ShardFacts]) -> String {
    let columns = index.geometry.detector_columns();
    let pairs: Vec<[u32; 2]> = index.excluded.iter().map(|p| [p / columns, p % columns]).collect();
    let records: Vec<Value> = index
        .shards
        .iter()
        .zip(shards)
        .enumerate()
        .map(|(k, (r, f))| {
            json!({
                "ordinal": k,
                "scan_count": index.cut.scans_per_shard,
                "payload_file_offset": r.payload.offset,
                "payload_file_bytes": r.payload.bytes,
                "lengths_file_offset": r.lengths.offset,
                "lengths_file_bytes": r.lengths.bytes,
                "descriptor_widths_file_offset": r.header.offset,
                "descriptor_widths_file_bytes": r.header.bytes,
                "payload_decoded_bytes": r.decoded_bytes,
                "payload_decoded_sha256": r.payload_sha256,
                "descriptor_count": r.header_items,
                "payload_chunk_count": r.chunks,
                "payload_compressed_sha256": f.compressed_sha256,
                "descriptor_widths_sha256": f.widths_sha256,
                "maximum_width": f.maximum_width,
            })
        })
        .collect();
    let mut manifest = json!({
        "crop": null,
        "descriptor_codec": "uint8 five-bit widths",
        "detector_bin": 1,
        "detector_mask_identity_origin": facts.mask_origin.name(),
        "detector_mask_sha256": facts.mask_sha256,
        "encoding_profile": Profile::ExactUint16Lz4.name(),
        "format_schema": FORMAT_SCHEMA,
        "masked_detector_pixels": pairs,
        "masked_detector_pixels_sha256": Sha256Sum::of_u32(&index.excluded),
        "payload_chunk_bytes": 128,
        "payload_chunk_codec": "independent raw LZ4 blocks",
        "payload_chunk_length_codec": "uint8 encoded_bytes_minus_one",
        "producer_execution_backend": "cpu-reference",
        "producer_gpu_accelerated": false,
        "producer_receipt_schema": RECEIPT_SCHEMA,
        "scan_bin": 1,
        "scans_per_shard": index.cut.scans_per_shard,
        "schema": Flavour::Lz4.manifest_schema(),
        "shard_count": index.cut.shards,
        "shards": records,
        "source_calibration": facts.calibration.manifest_object(),
        "source_dtype": "uint16",
        "source_identity_sha256": index.source_identity,
        "source_raw_logical_sha256": facts.raw_sha256,
        "source_shape": index.geometry.shape(),
        "status": "complete",
        "working_dtype": "uint16",
        "working_logical_sha256": facts.working_sha256,
        "working_value_definition": WORKING_DEFINITION_LZ4,
    });
    if !index.excluded.is_empty() {
        manifest["masked_detector_payload_policy"] = "retained_exactly_in_payload".into();
    }
    manifest.to_string()
}

impl Manifest {
    /// Parses a manifest and compares every field that a reader must with the index.
    ///
    /// # Errors
    /// `Corrupt`, naming the field.
    pub fn parse(text: &[u8], index: &PackIndex) -> Result<Self> {
        let json: Map<String, Value> = serde_json::from_slice(text)
            .map_err(|e| Error::corrupt(format!("manifest: {e}")).at(super::prelude::PRELUDE_BYTES))?;
        let f = Fields { json: &json };
        let lz4 = index.flavour == Flavour::Lz4;
        f.equals("schema", &index.flavour.manifest_schema().into())?;
        f.equals("status", &"complete".into())?;
        f.equals("source_shape", &json!(index.geometry.shape()))?;
        match f.text("source_dtype")? {
            "uint16" | "uint8" => {}
            other => return Err(wrong("source_dtype", other)),
        }
        match f.text("working_dtype")? {
            "uint8" if index.flavour != Flavour::BitPacked16 => {}
            "uint16" if index.flavour != Flavour::BitPacked8 => {}
            other => return Err(wrong("working_dtype", other)),
        }
        f.equals("scan_bin", &1.into())?;
        f.equals("detector_bin", &1.into())?;
        if f.get("crop")? != &Value::Null {
            return Err(wrong("crop", &json["crop"]));
        }
        f.equals("shard_count", &index.cut.shards.into())?;
        if lz4 || json.contains_key("scans_per_shard") {
            f.equals("scans_per_shard", &index.cut.scans_per_shard.into())?;
        }
        f.equals("source_identity_sha256", &index.source_identity.to_string().into())?;
        let excluded_values = if lz4 { f.check_lz4(index)? } else { f.check_bit_packed(index)? };
        if json.contains_key("masked_detector_pixels_sha256") {
            let sum = Sha256Sum::of_u32(&index.excluded).to_string();
            f.equals("masked_detector_pixels_sha256", &sum.into())?;
        }
        let working = if lz4 || index.flavour == Flavour::BitPacked16 {
            "working_logical_sha256"
        } else {
            "prepared_uint8_sha256"
        };
        let calibration =
            json.get("source_calibration").filter(|c| !c.is_null()).map(Calibration::parse).transpose()?;
        let detector_calibration = json
            .get("detector_calibration")
            .filter(|c| !c.is_null())
            .map(|c| DetectorCalibration::parse(c, index))
            .transpose()?;
        Ok(Self {
            raw_sha256: match json.get("source_raw_logical_sha256") {
                None => None,
                Some(_) => Some(f.sum("source_raw_logical_sha256")?),
            },
            working_sha256: f.sum(working)?,
            mask_sha256: f.sum("detector_mask_sha256")?,
            excluded_values,
            calibration,
            detector_calibration,
            json,
        })
    }

    /// The value of a field, if it is there.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.json.get(key)
    }
}

struct Fields<'a> {
    json: &'a Map<String, Value>,
}

#[cold]
fn wrong(key: &str, found: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("manifest: {key} is {found}"))
}

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Result<&'a Value> {
        self.json.get(key).ok_or_else(|| Error::corrupt(format!("manifest: {key} is missing")))
    }

    fn text(&self, key: &str) -> Result<&'a str> {
        let value = self.get(key)?;
        value.as_str().ok_or_else(|| wrong(key, value))
    }

    fn sum(&self, key: &str) -> Result<Sha256Sum> {
        self.text(key)?.parse().map_err(|e: Error| e.context(format_args!("manifest: {key}")))
    }

    fn equals(&self, key: &str, expected: &Value) -> Result<()> {
        let found = self.get(key)?;
        if found != expected {
            return Err(Error::corrupt(format!("manifest: {key} is {found}, {expected} is expected")));
        }
        Ok(())
    }

    /// Revision 3; returns the constants of the excluded pixels.
    fn check_bit_packed(&self, index: &PackIndex) -> Result<Option<Vec<u16>>> {
        self.equals("payload_codec", &"direct-bitpacked-u32".into())?;
        self.equals("working_value_definition", &WORKING_DEFINITION.into())?;
        self.equals("scan_tile", &32.into())?;
        self.equals("masked_detector_pixels", &json!(index.excluded))?;
        if self.json.contains_key("shards") {
            return Err(Error::corrupt("manifest: revision 3 has no shards"));
        }
        let Some(values) = self.json.get("masked_detector_raw_values") else { return Ok(None) };
        let parsed = values.as_array().and_then(|list| {
            list.iter().map(|v| v.as_u64().and_then(|v| u16::try_from(v).ok())).collect::<Option<Vec<_>>>()
        });
        match parsed {
            Some(list) if list.len() == index.excluded.len() => Ok(Some(list)),
            _ => Err(wrong("masked_detector_raw_values", values)),
        }
    }

    /// Revision 1.
    fn check_lz4(&self, index: &PackIndex) -> Result<Option<Vec<u16>>> {
        self.equals("payload_chunk_codec", &"independent raw LZ4 blocks".into())?;
        self.equals("payload_chunk_length_codec", &"uint8 encoded_bytes_minus_one".into())?;
        self.equals("descriptor_codec", &"uint8 five-bit widths".into())?;
        self.equals("payload_chunk_bytes", &128.into())?;
        let columns = index.geometry.detector_columns();
        let pairs: Vec<[u32; 2]> = index.excluded.iter().map(|p| [p / columns, p % columns]).collect();
        self.equals("masked_detector_pixels", &json!(pairs))?;
        if !index.excluded.is_empty() {
            self.equals("masked_detector_payload_policy", &"retained_exactly_in_payload".into())?;
        }
        let shards = self.get("shards")?;
        let list = shards.as_array().filter(|l| l.len() == index.shards.len());
        let list = list.ok_or_else(|| Error::corrupt("manifest: shards is no list of all shards"))?;
        for (k, (stated, record)) in list.iter().zip(&index.shards).enumerate() {
            let expected = [
                ("ordinal", json!(k)),
                ("payload_file_offset", json!(record.payload.offset)),
                ("payload_file_bytes", json!(record.payload.bytes)),
                ("lengths_file_offset", json!(record.lengths.offset)),
                ("lengths_file_bytes", json!(record.lengths.bytes)),
                ("descriptor_widths_file_offset", json!(record.header.offset)),
                ("descriptor_widths_file_bytes", json!(record.header.bytes)),
                ("payload_decoded_bytes", json!(record.decoded_bytes)),
                ("payload_decoded_sha256", json!(record.payload_sha256)),
                ("descriptor_count", json!(record.header_items)),
                ("payload_chunk_count", json!(record.chunks)),
            ];
            for (key, value) in expected {
                if stated.get(key) != Some(&value) {
                    return Err(Error::corrupt(format!(
                        "manifest: shard {k} has {key} {}, {value} is expected",
                        stated.get(key).unwrap_or(&Value::Null)
                    )));
                }
            }
        }
        Ok(None)
    }
}

impl DetectorCalibration {
    fn parse(value: &Value, index: &PackIndex) -> Result<Self> {
        let fail = |what: &str| Error::corrupt(format!("manifest: detector_calibration: {what}"));
        if value.get("schema") != Some(&"quantem.gpu.detector-calibration/v1".into()) {
            return Err(fail("schema"));
        }
        if value.get("source_identity_sha256") != Some(&index.source_identity.to_string().into()) {
            return Err(fail("it belongs to another source"));
        }
        let number = |v: &Value| v.as_f64().filter(|x| x.is_finite());
        let [.., rows, columns] = index.geometry.shape().map(f64::from);
        let center = value.get("detector_center_px").and_then(Value::as_array).and_then(|l| match &l[..] {
            [r, c] => Some([number(r)?, number(c)?]),
            _ => None,
        });
        let center = center
            .filter(|[r, c]| (0.0..rows).contains(r) && (0.0..columns).contains(c))
            .ok_or_else(|| fail("detector_center_px"))?;
        let radius = value
            .get("bright_field_radius_px")
            .and_then(number)
            .filter(|r| *r > 0.0 && *r <= rows.hypot(columns))
            .ok_or_else(|| fail("bright_field_radius_px"))?;
        let dpc = match (value.get("dpc_rotation_degrees"), value.get("dpc_component_order_exchanged")) {
            (None | Some(Value::Null), None | Some(Value::Null)) => None,
            (Some(angle), Some(Value::Bool(exchanged))) => {
                Some((number(angle).ok_or_else(|| fail("dpc_rotation_degrees"))?, *exchanged))
            }
            _ => return Err(fail("dpc_rotation_degrees and dpc_component_order_exchanged go together")),
        };
        let method = value.get("method").and_then(Value::as_str).filter(|m| !m.is_empty());
        Ok(Self {
            center_px: center,
            bright_field_radius_px: radius,
            dpc,
            method: method.ok_or_else(|| fail("method"))?.to_owned(),
        })
    }
}

/// The longest manifest that a revision 3 pack of this shape can have: hashes all `f`, raw values all 65535.
pub fn longest_bit_packed(index_like: &PackIndex, origin: MaskOrigin, calibration: &Calibration) -> usize {
    let worst = Sha256Sum([0xff; 32]);
    let values = vec![u16::MAX; index_like.excluded.len()];
    let facts = ManifestFacts {
        mask_origin: origin,
        mask_sha256: worst,
        excluded_values: &values,
        raw_sha256: worst,
        working_sha256: worst,
        calibration,
    };
    encode_bit_packed(index_like, &facts).len()
}

/// Is the mask hash that of no mask at all?
pub(crate) fn implicit_mask(manifest: &Manifest, index: &PackIndex) -> bool {
    index.excluded.is_empty()
        && manifest.mask_sha256 == identity::implicit_mask_sha256(index.geometry.pixels())
}
