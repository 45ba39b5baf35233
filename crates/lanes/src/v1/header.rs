//! Header of format 1: magic, version, length, JSON.

use crate::lane_type::LaneType;
use crate::place::{ALIGN, Placement};
use crate::schema::{LaneKind, LaneSpec, StoreSchema, twice};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

pub(crate) const MAGIC: [u8; 3] = *b"PTS";
/// Magic, version and header length.
pub(crate) const FIXED: u64 = 8;
/// No sane header is larger; the JSON tree in memory is some ten times its text.
pub(crate) const HEADER_MAX: u64 = 64 << 20;

#[derive(Serialize)]
struct HeaderOut<'a> {
    nslabs: u64,
    lanes: Vec<LaneOut<'a>>,
    app: &'a Value,
}

#[derive(Serialize)]
struct LaneOut<'a> {
    name: &'a str,
    dtype: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    elems_per_slab: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    len: Option<u64>,
}

#[derive(Deserialize)]
struct HeaderIn {
    nslabs: u64,
    lanes: Vec<LaneIn>,
    #[serde(default)]
    app: Value,
}

#[derive(Deserialize)]
struct LaneIn {
    name: String,
    dtype: String,
    kind: String,
    elems_per_slab: Option<u64>,
    len: Option<u64>,
}

/// Encodes the header of a schema: magic to the end of the JSON.
pub(crate) fn encode(schema: &StoreSchema) -> Result<Vec<u8>> {
    let lanes = schema
        .lanes
        .iter()
        .map(|l| {
            let (kind, elems_per_slab, len) = match l.kind {
                LaneKind::Slab { elems } => ("slab", Some(elems), None),
                LaneKind::Flat { len } => ("flat", None, Some(len)),
            };
            LaneOut { name: &l.name, dtype: l.dtype.name(), kind, elems_per_slab, len }
        })
        .collect();
    let json = serde_json::to_vec(&HeaderOut { nslabs: schema.nslabs, lanes, app: &schema.app })
        .map_err(|e| Error::invalid(format!("the header is no JSON: {e}")))?;
    let len = u32::try_from(json.len()).map_err(|_| Error::invalid("the header passes 4 GiB"))?;
    let mut out = Vec::with_capacity(8 + json.len());
    out.extend_from_slice(&MAGIC);
    out.push(1);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&json);
    Ok(out)
}

/// Where the lanes begin behind a header of this length.
pub(crate) fn data_base(header_len: u64) -> Result<u64> {
    FIXED
        .checked_add(header_len)
        .and_then(|n| n.checked_next_multiple_of(ALIGN))
        .ok_or_else(|| Error::corrupt("header length passes 2^64").at(4))
}

/// Reads the 8 fixed bytes; returns the header's length.
pub(crate) fn fixed(bytes: &[u8], lenient: bool) -> Result<u64> {
    let mut r = FieldReader::new(bytes, 0, "lane store");
    r.signature(&MAGIC)?;
    let version = r.u8()?;
    match version {
        1 => {}
        0 if lenient => {}
        0 => {
            return Err(Error::corrupt("version byte 0; format 1 writes 1")
                .at(3)
                .hint("open it leniently if this file is trusted"));
        }
        v => {
            return Err(Error::unsupported(format!("lane store version {v} is newer than this reader")).at(3));
        }
    }
    Ok(u64::from(r.u32()?))
}

/// Parses the JSON and lays the lanes out.
pub(crate) fn parse(json: &[u8], lenient: bool) -> Result<Placement> {
    let bad = |m: String| Error::corrupt(format!("header: {m}")).at(FIXED);
    let text = std::str::from_utf8(json).map_err(|e| bad(e.to_string()))?;
    let header: HeaderIn = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    if header.nslabs == 0 && !lenient {
        return Err(bad("nslabs is 0".into()));
    }
    if !lenient && let Some(name) = twice(header.lanes.iter().map(|l| l.name.as_str())) {
        return Err(bad(format!("two lanes have the name {name:?}")));
    }
    let mut specs = Vec::with_capacity(header.lanes.len());
    for lane in header.lanes {
        specs.push(spec(lane, lenient)?);
    }
    let base = data_base(json.len() as u64)?;
    Placement::lay_out(header.nslabs, &specs, header.app, base, false).map_err(|e| bad(e.to_string()))
}

fn spec(lane: LaneIn, lenient: bool) -> Result<LaneSpec> {
    let bad = |m: String| Error::corrupt(format!("header: {m}")).at(FIXED).in_object(&lane.name);
    let dtype = LaneType::parse(&lane.dtype)
        .ok()
        .filter(|t| t.in_v1())
        .ok_or_else(|| bad(format!("dtype: format 1 has f32, f64, u16 and u32, not {:?}", lane.dtype)))?;
    let spec = match (lane.kind.as_str(), lane.elems_per_slab, lane.len) {
        ("slab", Some(elems), None) => LaneSpec::slab(&lane.name, dtype, elems),
        ("slab", Some(elems), Some(_)) if lenient => LaneSpec::slab(&lane.name, dtype, elems),
        ("flat", None, Some(len)) => LaneSpec::flat(&lane.name, dtype, len),
        ("flat", Some(_), Some(len)) if lenient => LaneSpec::flat(&lane.name, dtype, len),
        ("slab", Some(_), Some(_)) => return Err(bad("len: a slab lane has elems_per_slab only".into())),
        ("flat", Some(_), Some(_)) => return Err(bad("elems_per_slab: a flat lane has len only".into())),
        ("slab", None, _) => return Err(bad("elems_per_slab is missing".into())),
        ("flat", _, None) => return Err(bad("len is missing".into())),
        (kind, ..) => return Err(bad(format!("kind: slab or flat, not {kind:?}"))),
    };
    if !lenient && spec.elems() == 0 {
        return Err(bad("a lane without elements".into()));
    }
    Ok(spec)
}
