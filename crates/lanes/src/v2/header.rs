//! Header of format 2: JSON with the lanes, their extents and the place of the slab table; and the table.
//!
//! The slab table has 8 bytes for every slab, lane after lane: u32 CRC-32C of the slab's stored bytes, u32
//! state (0 never written, 1 written).

use crate::checked::Checked;
use crate::lane_type::LaneType;
use crate::place::{ALIGN, Extent, LanePlace, Placement, SlabState};
use crate::schema::{LaneKind, LaneSpec, twice};
use crate::v2::commit_record::DATA_BASE;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, Result};

/// Bytes of a slab's entry in the table.
pub(crate) const ENTRY: u64 = 8;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    nslabs: u64,
    lanes: Vec<Lane>,
    table: Table,
    data_end: u64,
    app: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    offset: u64,
    bytes: u64,
    crc32c: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lane {
    name: String,
    dtype: String,
    kind: String,
    elems: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shape: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chunk: Vec<u64>,
    slabs: u64,
    /// `[offset, slabs, room]` each.
    extents: Vec<[u64; 3]>,
}

/// Encodes the slab table of all lanes.
pub(crate) fn encode_table(placement: &Placement) -> Vec<u8> {
    let mut w = FieldWriter::new();
    for s in placement.lanes.iter().flat_map(|l| &l.table) {
        w.u32(s.crc).u32(u32::from(s.written));
    }
    w.finish()
}

/// Encodes the header of a placement whose table stands at `table_offset`.
pub(crate) fn encode(placement: &Placement, table_offset: u64, table: &[u8]) -> Result<Vec<u8>> {
    let lanes = placement
        .lanes
        .iter()
        .map(|l| Lane {
            name: l.spec.name.clone(),
            dtype: l.spec.dtype.name().into(),
            kind: if matches!(l.spec.kind, LaneKind::Flat { .. }) { "flat" } else { "slab" }.into(),
            elems: l.spec.elems(),
            shape: l.spec.shape.clone(),
            chunk: l.spec.chunk.clone(),
            slabs: l.slabs,
            extents: l.extents.iter().map(|e| [e.offset, e.slabs, e.room]).collect(),
        })
        .collect();
    let header = Header {
        nslabs: placement.nslabs,
        lanes,
        table: Table { offset: table_offset, bytes: table.len() as u64, crc32c: crc32c::crc32c(table) },
        data_end: placement.data_end,
        app: placement.app.clone(),
    };
    serde_json::to_vec(&header).map_err(|e| Error::invalid(format!("the header is no JSON: {e}")))
}

/// A parsed header, before its table was read.
pub(crate) struct Parsed {
    pub placement: Placement,
    pub table_offset: u64,
    pub table_bytes: u64,
    table_crc: u32,
}

/// Parses and checks the JSON of a header that stands at `at` in a file of `file_bytes` committed bytes.
pub(crate) fn parse(json: &[u8], at: u64, file_bytes: u64) -> Result<Parsed> {
    let bad = |m: String| Error::corrupt(format!("header: {m}")).at(at);
    let header: Header = serde_json::from_slice(json).map_err(|e| bad(e.to_string()))?;
    if let Some(name) = twice(header.lanes.iter().map(|l| l.name.as_str())) {
        return Err(bad(format!("two lanes have the name {name:?}")));
    }
    let mut lanes = Vec::with_capacity(header.lanes.len());
    let mut used = Vec::new();
    let mut slabs_in_all = 0_u64;
    for lane in header.lanes {
        let place = place(&lane).map_err(|e| e.context("header").at(at))?;
        let mut counted = 0_u64;
        for e in &place.extents {
            let end = e.room.checked_mul(place.slab_bytes).and_then(|n| n.checked_add(e.offset));
            if e.slabs > e.room
                || e.offset < DATA_BASE
                || end.is_none_or(|end| end > file_bytes)
                || !e.offset.is_multiple_of(ALIGN)
            {
                return Err(bad(format!("lane {:?}: an extent lies outside the file", lane.name)));
            }
            used.push((e.offset, end.unwrap_or(e.offset)));
            counted = counted.checked_add(e.slabs).ok_or_else(|| bad("slab counts overflow".into()))?;
        }
        if counted != place.slabs {
            return Err(bad(format!(
                "lane {:?}: {} slabs, but {counted} in its extents",
                lane.name, place.slabs
            )));
        }
        slabs_in_all =
            slabs_in_all.checked_add(place.slabs).ok_or_else(|| bad("slab counts overflow".into()))?;
        lanes.push(place);
    }
    used.sort_unstable();
    if used.windows(2).any(|w| w[0].1 > w[1].0) {
        return Err(bad("two extents overlap".into()));
    }
    let table = header.table;
    if slabs_in_all.checked_mul(ENTRY) != Some(table.bytes)
        || table.offset.checked_add(table.bytes) != Some(at)
    {
        return Err(bad(format!("a slab table of {} bytes does not fit {slabs_in_all} slabs", table.bytes)));
    }
    if used.last().is_some_and(|(_, end)| *end > table.offset) {
        return Err(bad("an extent reaches into the slab table".into()));
    }
    let placement = Placement { nslabs: header.nslabs, lanes, app: header.app, data_end: header.data_end };
    Ok(Parsed { placement, table_offset: table.offset, table_bytes: table.bytes, table_crc: table.crc32c })
}

fn place(lane: &Lane) -> Result<LanePlace> {
    let kind = match lane.kind.as_str() {
        "slab" => LaneKind::Slab { elems: lane.elems },
        "flat" => LaneKind::Flat { len: lane.elems },
        k => return Err(Error::corrupt(format!("kind: slab or flat, not {k:?}")).in_object(&lane.name)),
    };
    let dtype = LaneType::parse(&lane.dtype)
        .map_err(|_| Error::corrupt(format!("dtype {:?} is unknown", lane.dtype)).in_object(&lane.name))?;
    let spec = LaneSpec {
        name: lane.name.clone(),
        dtype,
        kind,
        slabs: matches!(kind, LaneKind::Slab { .. }).then_some(lane.slabs),
        shape: lane.shape.clone(),
        chunk: lane.chunk.clone(),
        reserve: 0,
    };
    let corrupt = |e: Error| Error::corrupt(e.message().to_owned()).in_object(&lane.name);
    spec.check().map_err(corrupt)?;
    if matches!(kind, LaneKind::Flat { .. }) && lane.slabs != 1 {
        return Err(Error::corrupt("slabs: a flat lane is one slab").in_object(&lane.name));
    }
    let slab_bytes = spec.slab_bytes().map_err(corrupt)?;
    let extents = lane.extents.iter().map(|[offset, slabs, room]| Extent {
        slabs: *slabs,
        room: *room,
        offset: *offset,
    });
    Ok(LanePlace {
        spec,
        slabs: lane.slabs,
        slab_bytes,
        extents: extents.collect(),
        table: Vec::new(),
        checked: Checked::default(),
    })
}

impl Parsed {
    /// Takes the table's bytes and hands the complete placement out.
    pub fn with_table(mut self, bytes: &[u8]) -> Result<Placement> {
        let mut r = FieldReader::new(bytes, self.table_offset, "slab table");
        if crc32c::crc32c(bytes) != self.table_crc {
            return Err(r.corrupt("checksum does not match"));
        }
        for lane in &mut self.placement.lanes {
            // The table's length was compared with the slab counts, so this allocates what is there.
            let n =
                usize::try_from(lane.slabs).map_err(|_| Error::limit("too many slabs for this machine"))?;
            lane.table.reserve_exact(n);
            for _ in 0..n {
                let crc = r.u32()?;
                let written = match r.u32()? {
                    0 => false,
                    1 => true,
                    s => return Err(r.corrupt(format_args!("slab state {s}"))),
                };
                lane.table.push(SlabState { crc, written });
            }
            lane.checked = Checked::new(n);
        }
        Ok(self.placement)
    }
}
