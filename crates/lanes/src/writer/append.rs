//! Growth of a store of format 2: slabs at the end of a lane, and new lanes.

use super::{Mode, StoreWriter};
use crate::place::{ALIGN, Extent, SlabState, lay_out_lane};
use crate::schema::{LaneKind, LaneSpec};
use tensilo_core::{Error, Result};

impl StoreWriter {
    /// Adds `slabs` slabs at the end of a lane; they read as zeros until they are written.
    ///
    /// # Errors
    /// `InvalidArgument` unless the store was opened by [`append`](Self::append) and the lane has slabs;
    /// `NotFound`; `InsufficientDisk`.
    pub fn append_slabs(&mut self, name: &str, slabs: u64) -> Result<()> {
        self.need_append()?;
        let index = self.placement.index(name)?;
        let data_end = self.placement.data_end;
        let lane = &mut self.placement.lanes[index];
        if matches!(lane.spec.kind, LaneKind::Flat { .. }) {
            return Err(Error::invalid("a flat lane does not grow").in_object(name));
        }
        let overflow = || Error::invalid("the lane passes 2^64 bytes").in_object(name);
        let total = lane.slabs.checked_add(slabs).ok_or_else(overflow)?;
        let mut left = slabs;
        if let Some(last) = lane.extents.last_mut() {
            let here = left.min(last.room - last.slabs);
            last.slabs += here;
            left -= here;
        }
        if left > 0 {
            let offset = data_end.checked_next_multiple_of(ALIGN).ok_or_else(overflow)?;
            let bytes = left.checked_mul(lane.slab_bytes).ok_or_else(overflow)?;
            let end = offset.checked_add(bytes).ok_or_else(overflow)?;
            self.target.file().allocate(offset, bytes)?;
            match lane.extents.last_mut() {
                Some(l) if l.room == l.slabs && l.offset + l.room * lane.slab_bytes == offset => {
                    l.slabs += left;
                    l.room += left;
                }
                _ => lane.extents.push(Extent { slabs: left, room: left, offset }),
            }
            self.placement.data_end = end;
        }
        lane.slabs = total;
        lane.spec.slabs = Some(total);
        let n = usize::try_from(total).map_err(|_| overflow())?;
        self.lock().tables[index].resize(n, SlabState::default());
        Ok(())
    }

    /// Adds a lane.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad or double lane, or unless opened by [`append`](Self::append);
    /// `InsufficientDisk`.
    pub fn add_lane(&mut self, spec: LaneSpec) -> Result<()> {
        self.need_append()?;
        let mut schema = self.schema.clone();
        schema.lanes.push(spec.clone());
        schema.validate()?;
        let (lane, end) = lay_out_lane(&spec, self.placement.nslabs, self.placement.data_end, true)?;
        let offset = lane.extents.first().map_or(end, |e| e.offset);
        self.target.file().allocate(offset, end - offset)?;
        self.lock().tables.push(lane.table.clone());
        self.placement.lanes.push(lane);
        self.placement.data_end = end;
        self.kept.push(0);
        self.schema = schema;
        Ok(())
    }

    fn need_append(&self) -> Result<()> {
        if self.mode != Mode::Append {
            return Err(Error::invalid("the store was not opened to append"));
        }
        Ok(())
    }
}
