//! Manifest extensions (contract, 2.9): what later steps add to a pack, read and checked.
//!
//! `detector_calibration` is the manifest's own; here are the ranges of bytes that others name. Unknown keys of a
//! manifest, such as those of `.qgix` files, are left alone.

use super::Pack;
use crate::digest::Sha256Sum;
use crate::format::index::{Extent, PackIndex};
use crate::format::manifest::Manifest;
use crate::profile::Flavour;
use serde_json::Value;
use tensilo_core::{Error, Result};

const MOMENT_WORDS: u64 = 8;
/// How deep a foreign object is searched for ranges.
const DEEPEST: usize = 8;

/// A range of bytes that an extension names, with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Where it stands in the manifest, keys joined by dots.
    pub name: String,
    /// Where it lies in the file.
    pub extent: Extent,
    /// SHA-256 of the bytes.
    pub sha256: Sha256Sum,
}

/// The extension `prepared_dpc_moments`: total, row moment and column moment of every scan, stated and in range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedMoments {
    /// Where its words lie.
    pub extent: Extent,
    /// SHA-256 of the words.
    pub sha256: Sha256Sum,
    /// The largest total, row moment and column moment there can be.
    pub bounds: [u128; 3],
}

fn fail(key: &str, what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("manifest: {key}: {what}"))
}

/// Checks that a range lies in the file, behind the index, and apart from every shard.
fn check_extent(key: &str, extent: Extent, index: Option<&PackIndex>, file_bytes: u64) -> Result<()> {
    let end = extent.offset.checked_add(extent.bytes).filter(|end| *end <= file_bytes);
    let Some(end) = end else {
        return Err(fail(key, format_args!("{} bytes reach past the end of the file", extent.bytes))
            .at(extent.offset));
    };
    let shards = index.into_iter().flat_map(|i| &i.shards);
    for (k, s) in shards.enumerate() {
        for r in [s.payload, s.lengths, s.header] {
            if r.bytes > 0 && r.offset < end && extent.offset < r.range().end {
                return Err(fail(key, format_args!("its bytes overlap shard {k}")).at(extent.offset));
            }
        }
    }
    Ok(())
}

fn extent_of(value: &Value) -> Option<(Extent, Sha256Sum)> {
    let offset = value.get("file_offset")?.as_u64()?;
    let bytes = value.get("file_bytes")?.as_u64()?;
    let sha256 = value.get("sha256")?.as_str()?.parse().ok()?;
    Some((Extent { offset, bytes }, sha256))
}

impl PreparedMoments {
    pub(super) fn parse(manifest: &Manifest, index: &PackIndex, file_bytes: u64) -> Result<Option<Self>> {
        const KEY: &str = "prepared_dpc_moments";
        let Some(value) = manifest.get(KEY).filter(|v| !v.is_null()) else { return Ok(None) };
        let equals = |key: &str, expected: Value| match value.get(key) {
            Some(found) if *found == expected => Ok(()),
            found => Err(fail(
                KEY,
                format_args!("{key} is {}, {expected} is expected", found.unwrap_or(&Value::Null)),
            )),
        };
        let schema = value.get("schema").and_then(Value::as_str).unwrap_or("");
        let working = manifest.working_sha256.to_string();
        let maximum = match (schema, index.flavour) {
            ("quantem.gpu.prepared-dpc-moments/v1", Flavour::BitPacked8) => {
                equals("working_uint8_sha256", working.into())?;
                255
            }
            ("quantem.gpu.prepared-dpc-moments/v2", Flavour::BitPacked16 | Flavour::Lz4) => {
                equals("working_logical_sha256", working.into())?;
                equals("working_dtype", "uint16".into())?;
                value
                    .get("maximum_value")
                    .and_then(Value::as_u64)
                    .filter(|m| *m <= u64::from(u16::MAX))
                    .ok_or_else(|| fail(KEY, "maximum_value"))?
            }
            _ => return Err(fail(KEY, format_args!("schema {schema:?} does not fit the pack"))),
        };
        let g = &index.geometry;
        equals("source_identity_sha256", index.source_identity.to_string().into())?;
        equals("detector_mask_sha256", manifest.mask_sha256.to_string().into())?;
        equals("detector_selection", "all-nonexcluded-v1".into())?;
        equals("scan_count", g.scans().into())?;
        let selected = g.pixels() - index.excluded.len() as u64;
        equals("selected_detector_pixels", selected.into())?;
        equals("detector_columns", g.detector_columns().into())?;
        equals("dtype", "little-endian-u32".into())?;
        equals("word_order", "little-endian-u32-pairs".into())?;
        equals("words_per_scan", MOMENT_WORDS.into())?;
        let names = value.get("layout").and_then(Value::as_array);
        if names.is_none_or(|l| l.len() as u64 != MOMENT_WORDS || !l.iter().all(Value::is_string)) {
            return Err(fail(KEY, "layout does not name 8 words"));
        }
        let bounds = bounds(index, maximum);
        for (key, bound) in ["total_bound", "row_moment_bound", "column_moment_bound"].into_iter().zip(bounds)
        {
            equals(key, bound.to_string().into())?;
        }
        let narrow = |b: u128| b <= u128::from(u32::MAX);
        equals("narrow_integer", narrow(bounds[0]).into())?;
        equals("narrow_products", (narrow(bounds[1]) && narrow(bounds[2])).into())?;
        let (extent, sha256) =
            extent_of(value).ok_or_else(|| fail(KEY, "file_offset, file_bytes and sha256"))?;
        if u128::from(extent.bytes) != 4 * u128::from(MOMENT_WORDS) * u128::from(g.scans()) {
            return Err(fail(KEY, format_args!("{} bytes for {} scans", extent.bytes, g.scans())));
        }
        if !extent.offset.is_multiple_of(4) {
            return Err(fail(KEY, "its words are not aligned to 4 bytes").at(extent.offset));
        }
        check_extent(KEY, extent, Some(index), file_bytes)?;
        Ok(Some(Self { extent, sha256, bounds }))
    }
}

/// The largest total, row moment and column moment of admitted pixels.
fn bounds(index: &PackIndex, maximum: u64) -> [u128; 3] {
    let (rows, columns) =
        (u128::from(index.geometry.detector_rows()), u128::from(index.geometry.detector_columns()));
    let mut sums = [rows * columns, columns * (rows * (rows - 1) / 2), rows * (columns * (columns - 1) / 2)];
    for e in &index.excluded {
        let e = u128::from(*e);
        sums[0] -= 1;
        sums[1] -= e / columns;
        sums[2] -= e % columns;
    }
    sums.map(|s| s * u128::from(maximum))
}

/// Every range of bytes named inside `prepared_detector_products`.
pub(super) fn prepared_products(manifest: &Manifest, file_bytes: u64) -> Result<Vec<Extension>> {
    const KEY: &str = "prepared_detector_products";
    let mut found = Vec::new();
    if let Some(value) = manifest.get(KEY).filter(|v| !v.is_null()) {
        if !value.is_object() {
            return Err(fail(KEY, "it is no object"));
        }
        collect(KEY, value, file_bytes, DEEPEST, &mut found)?;
    }
    Ok(found)
}

fn collect(
    name: &str,
    value: &Value,
    file_bytes: u64,
    depth: usize,
    found: &mut Vec<Extension>,
) -> Result<()> {
    if depth == 0 {
        return Err(fail(name, "it is nested too deeply"));
    }
    if value.get("file_offset").is_some() {
        let (extent, sha256) =
            extent_of(value).ok_or_else(|| fail(name, "file_offset, file_bytes and sha256"))?;
        check_extent(name, extent, None, file_bytes)?;
        found.push(Extension { name: name.to_owned(), extent, sha256 });
    }
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (format!("{name}.{k}"), v)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(k, v)| (format!("{name}.{k}"), v)).collect(),
        _ => return Ok(()),
    };
    for (name, child) in children {
        if child.is_object() || child.is_array() {
            collect(&name, child, file_bytes, depth - 1, found)?;
        }
    }
    Ok(())
}

impl Pack {
    /// Reads an extension's bytes and checks their hash.
    ///
    /// # Errors
    /// `Corrupt` when the hash differs, `Limit`, errors of reading.
    pub fn extension_bytes(&self, extension: &Extension) -> Result<Vec<u8>> {
        self.checked_bytes(&extension.name, extension.extent, &extension.sha256)
    }

    fn checked_bytes(&self, name: &str, extent: Extent, sha256: &Sha256Sum) -> Result<Vec<u8>> {
        let (mut bytes, _charge) = self.budget().buffer(extent.bytes, name)?;
        self.source().read_at(extent.offset, &mut bytes).map_err(|e| self.in_file(e))?;
        let found = Sha256Sum::of(&bytes);
        if found != *sha256 {
            let e = fail(name, format_args!("SHA-256 {found} found, {sha256} stated"));
            return Err(self.in_file(e.at(extent.offset)));
        }
        Ok(bytes)
    }

    /// Total, row moment and column moment of every scan, from the extension `prepared_dpc_moments`; `None` without it.
    ///
    /// # Errors
    /// `Corrupt` when the hash differs, a value passes its bound or a spare word is not 0; `Limit`, errors of reading.
    pub fn prepared_moments(&self) -> Result<Option<[Vec<u64>; 3]>> {
        const KEY: &str = "prepared_dpc_moments";
        let Some(m) = self.moments_extension() else { return Ok(None) };
        let _charge = self.budget().bytes(m.extent.bytes, KEY)?;
        let bytes = self.checked_bytes(KEY, m.extent, &m.sha256)?;
        let scans = bytes.len() / (4 * MOMENT_WORDS as usize);
        let mut all: [Vec<u64>; 3] = std::array::from_fn(|_| Vec::with_capacity(scans));
        for (scan, words) in bytes.chunks_exact(4 * MOMENT_WORDS as usize).enumerate() {
            let (pairs, _) = words.as_chunks::<8>();
            for ((to, pair), bound) in all.iter_mut().zip(pairs).zip(m.bounds) {
                let value = u64::from_le_bytes(*pair);
                if u128::from(value) > bound {
                    return Err(
                        self.in_file(fail(KEY, format_args!("scan {scan} has {value}, more than {bound}")))
                    );
                }
                to.push(value);
            }
            if pairs[3] != [0; 8] {
                return Err(
                    self.in_file(fail(KEY, format_args!("scan {scan} has spare words that are not 0")))
                );
            }
        }
        Ok(Some(all))
    }
}
