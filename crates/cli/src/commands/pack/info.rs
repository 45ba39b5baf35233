//! `tensilo pack info`: what a pack holds, from its first 64 KiB and its receipt.

use super::{format2, is_2, object};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tensilo::Result;
use tensilo::pack::read::Pack;
use tensilo::pack::receipt::Receipt;
use tensilo::pack::receipt_path;

/// Arguments of `pack info`.
#[derive(Debug, Args)]
pub struct InfoArguments {
    /// The pack.
    pub pack: PathBuf,
}

/// Describes.
pub fn run(a: &InfoArguments, out: &mut Output) -> Outcome {
    if is_2(&a.pack) {
        return format2::info(a, out);
    }
    let pack = Pack::open(&a.pack)?;
    let (receipt, differences) = receipt(&a.pack, &pack)?;
    let view = view(&pack, receipt, &differences);
    if out.is_json() {
        out.json("tensilo.pack.info/1", &object(view)?)?;
        return Ok(Answer::Yes);
    }
    let (index, manifest) = (pack.index(), pack.manifest());
    let [rows, columns, detector_rows, detector_columns] = pack.shape();
    out.line(format_args!(
        "shape       {rows} × {columns} scans of {detector_rows} × {detector_columns} pixels"
    ))?;
    out.line(format_args!("profile     {}", text(&view["encodingProfile"])))?;
    out.line(format_args!("values      uint16, as {} without the excluded", pack.flavour().working_dtype()))?;
    out.line(format_args!(
        "excluded    {} pixels, {}",
        index.excluded.len(),
        if pack.has_raw() { "their values can be restored" } else { "their values are not known" }
    ))?;
    out.line(format_args!("shards      {} of {} scans", index.cut.shards, index.cut.scans_per_shard))?;
    let (logical, file) = (number(&view["logicalBytes"]), pack.file_bytes());
    out.line(format_args!(
        "size        {} of {} ({:.2} : 1)",
        human::bytes(file),
        human::bytes(logical),
        logical as f64 / file as f64
    ))?;
    out.line(format_args!("source      {}", index.source_identity))?;
    if let Some(raw) = manifest.raw_sha256 {
        out.line(format_args!("raw         {raw}"))?;
    }
    out.line(format_args!("working     {}", manifest.working_sha256))?;
    if let Some((calibration, _)) = &manifest.calibration {
        out.line(format_args!("calibration {}", calibration.manifest_object()))?;
    }
    if let Some(c) = &manifest.detector_calibration {
        out.line(format_args!(
            "detector    centre {}, {}, bright field of {} pixels ({})",
            c.center_px[0],
            c.center_px[1],
            c.bright_field_radius_px,
            human::name(&c.method)
        ))?;
    }
    out.line(format_args!("receipt     {receipt}"))?;
    for d in &differences {
        out.line(format_args!("            {}", human::name(d)))?;
    }
    Ok(Answer::Yes)
}

/// Is the receipt beside the pack there, and does it agree with what can be seen without hashing?
fn receipt(path: &Path, pack: &Pack) -> Result<(&'static str, Vec<String>)> {
    let receipt = match Receipt::read(&receipt_path(path)) {
        Ok(receipt) => receipt,
        Err(e) if e.kind() == tensilo::ErrorKind::NotFound => return Ok(("missing", Vec::new())),
        Err(e) => return Ok(("unreadable", vec![e.message().to_owned()])),
    };
    let differences = receipt.differences(pack);
    Ok((if differences.is_empty() { "agrees; `pack verify` proves it" } else { "differs" }, differences))
}

fn view(pack: &Pack, receipt: &str, differences: &[String]) -> Value {
    let (index, manifest) = (pack.index(), pack.manifest());
    let resident: u64 = index.shards.iter().map(|s| s.payload.bytes + s.header.bytes + s.lengths.bytes).sum();
    let profile = manifest.get("encoding_profile").cloned().unwrap_or(Value::Null);
    json!({
        "encodingProfile": profile,
        "shape": pack.shape(),
        "sourceDtype": "uint16",
        "workingDtype": pack.flavour().working_dtype(),
        "excludedPixels": index.excluded,
        "rawCanBeRestored": pack.has_raw(),
        "scanTile": index.cut.tile,
        "scansPerShard": index.cut.scans_per_shard,
        "shardCount": index.cut.shards,
        "fileBytes": pack.file_bytes(),
        "packedBytes": resident,
        "logicalBytes": 2 * pack.geometry().scans() * pack.geometry().pixels(),
        "sourceIdentitySHA256": index.source_identity,
        "sourceRawLogicalSHA256": manifest.raw_sha256,
        "workingLogicalSHA256": manifest.working_sha256,
        "detectorMaskSHA256": manifest.mask_sha256,
        "manifestSHA256": pack.manifest_sha256(),
        "calibration": manifest.calibration.as_ref().map(|(c, _)| c.manifest_object()),
        "detectorCalibration": manifest.detector_calibration.as_ref().map(|c| json!({
            "centerPixels": c.center_px,
            "brightFieldRadiusPixels": c.bright_field_radius_px,
            "method": c.method,
        })),
        "preparedMoments": pack.moments_extension().is_some(),
        "preparedProducts": pack.products_extension().iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
        "receipt": receipt,
        "receiptDifferences": differences,
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| "not stated".to_owned(), human::name)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
