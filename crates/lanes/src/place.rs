//! Where each slab of each lane is: the checked result of parsing either format, and of planning a new file.

use crate::checked::Checked;
use crate::schema::LaneSpec;
use tensilo_core::{Error, Result};

/// Lanes begin at multiples of this.
pub(crate) const ALIGN: u64 = 64;

/// A run of slabs that lie one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Slabs.
    pub slabs: u64,
    /// Slabs there is room for; at least `slabs`.
    pub room: u64,
    /// Absolute byte offset of the first.
    pub offset: u64,
}

/// A slab's entry in the table of format 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SlabState {
    /// CRC-32C of the stored bytes.
    pub crc: u32,
    /// Was it ever written? An unwritten slab reads as zeros.
    pub written: bool,
}

/// One lane in the file.
#[derive(Debug, Clone)]
pub(crate) struct LanePlace {
    pub spec: LaneSpec,
    /// Slabs; 1 for a flat lane.
    pub slabs: u64,
    pub slab_bytes: u64,
    /// In slab order.
    pub extents: Vec<Extent>,
    /// One entry for each slab in format 2, none in format 1.
    pub table: Vec<SlabState>,
    /// Which slabs were compared with their checksum since opening.
    pub checked: Checked,
}

impl LanePlace {
    /// Byte offset of slab `k`, and how many slabs follow it without a gap, itself included.
    pub fn locate(&self, k: u64) -> Result<(u64, u64)> {
        let mut first = 0;
        for e in &self.extents {
            if k - first < e.slabs {
                // Extents were checked to lie inside the file, so this cannot overflow.
                return Ok((e.offset + (k - first) * self.slab_bytes, e.slabs - (k - first)));
            }
            first += e.slabs;
        }
        Err(Error::invalid(format!("slab {k} is out of range: the lane has {}", self.slabs))
            .in_object(&self.spec.name))
    }

    /// Byte range of slabs `start..end`, when they lie without a gap.
    pub fn window(&self, start: u64, end: u64) -> Result<(u64, u64)> {
        if start > end || end > self.slabs {
            return Err(Error::invalid(format!(
                "window {start}..{end} is out of range: the lane has {} slabs",
                self.slabs
            ))
            .in_object(&self.spec.name));
        }
        if start == end {
            return Ok((self.extents.first().map_or(0, |e| e.offset), 0));
        }
        let (offset, run) = self.locate(start)?;
        if run < end - start {
            return Err(Error::unsupported(format!(
                "window {start}..{end} crosses a place where slabs were appended elsewhere; no single slice holds it"
            ))
            .in_object(&self.spec.name)
            .hint("copy it with read_window, or rewrite the store with `tensilo lanes convert`"));
        }
        Ok((offset, (end - start) * self.slab_bytes))
    }
}

/// A whole file: lanes, steps, application data.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub nslabs: u64,
    pub lanes: Vec<LanePlace>,
    pub app: serde_json::Value,
    /// End of the last lane.
    pub data_end: u64,
}

impl Placement {
    pub fn lane(&self, name: &str) -> Result<&LanePlace> {
        self.index(name).map(|i| &self.lanes[i])
    }

    pub fn index(&self, name: &str) -> Result<usize> {
        self.lanes.iter().position(|l| l.spec.name == name).ok_or_else(|| {
            let names: Vec<_> = self.lanes.iter().map(|l| l.spec.name.as_str()).collect();
            Error::not_found(format!("no lane {name:?}")).hint(format!("lanes: {}", names.join(", ")))
        })
    }

    /// Lays the lanes out one after the other from `start` on; all arithmetic is checked.
    pub fn lay_out(
        nslabs: u64,
        specs: &[LaneSpec],
        app: serde_json::Value,
        start: u64,
        tables: bool,
    ) -> Result<Self> {
        let mut end = start;
        let mut lanes = Vec::with_capacity(specs.len());
        for spec in specs {
            let (lane, next) = lay_out_lane(spec, nslabs, end, tables)?;
            lanes.push(lane);
            end = next;
        }
        Ok(Self { nslabs, lanes, app, data_end: end })
    }
}

pub(crate) fn lay_out_lane(spec: &LaneSpec, nslabs: u64, end: u64, tables: bool) -> Result<(LanePlace, u64)> {
    let overflow = || Error::invalid("the lane passes 2^64 bytes").in_object(&spec.name);
    let offset = end.checked_next_multiple_of(ALIGN).ok_or_else(overflow)?;
    let slabs = spec.slab_count(nslabs);
    let room = slabs.checked_add(spec.reserve).ok_or_else(overflow)?;
    let slab_bytes = spec.slab_bytes()?;
    let next = room.checked_mul(slab_bytes).and_then(|n| offset.checked_add(n)).ok_or_else(overflow)?;
    let table = if tables {
        vec![SlabState::default(); usize::try_from(slabs).map_err(|_| overflow())?]
    } else {
        Vec::new()
    };
    let checked = Checked::new(table.len());
    let extents = vec![Extent { slabs, room, offset }];
    Ok((LanePlace { spec: spec.clone(), slabs, slab_bytes, extents, table, checked }, next))
}
