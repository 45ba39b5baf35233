//! Large deflated cells, two at a time: inflating one waits for nothing of the other, which takes less time than one after
//! the other.

use super::entry::{Ahead, Entry, Stored};
use super::gather::Cell;
use super::reading::Lent;
use super::snapshot::Snapshot;
use super::table::Bytes;
use tensilo_core::Result;
use tensilo_core::gather::FieldBuffer;
use tensilo_filters::deflate::Inflate;

/// Whether a cell is worth decoding together with another one.
#[inline(always)]
pub(super) fn worth_two(entry: &Entry) -> bool {
    entry.codec == Stored::Deflate && entry.ahead == Ahead::None && entry.raw >= Inflate::WORTH_TWO
}

impl Snapshot {
    /// Reads the cells of the first two of the records, the i-th of the list and the next. `false` where that is not
    /// worth it, or anything is wrong with one of them before it is decoded: then nothing was read.
    pub(super) fn read_two_at(
        &self,
        bytes: &Bytes<'_>,
        lent: &mut Lent<'_>,
        ids: &[u64],
        i: usize,
        buffer: &mut FieldBuffer<'_>,
    ) -> Result<bool> {
        let field = buffer.field;
        let &[a, b, ..] = ids else { return Ok(false) };
        let Some(cells) = self.two(bytes, [a, b], field) else { return Ok(false) };
        let ranges = [buffer.range(i, cells[0].entry.raw), buffer.range(i + 1, cells[1].entry.raw)];
        let [Ok(range), Ok(behind)] = ranges else { return Ok(false) };
        let Ok(outs) = buffer.bytes.get_disjoint_mut([range, behind]) else { return Ok(false) };
        self.inflate_two(bytes, lent, [a, b], field, cells, outs)
    }

    /// As [`read_two_at`](Self::read_two_at), to places that were found.
    pub(super) fn read_two(
        &self,
        bytes: &Bytes<'_>,
        lent: &mut Lent<'_>,
        ids: [u64; 2],
        field: usize,
        outs: [&mut [u8]; 2],
    ) -> Result<bool> {
        if outs.iter().any(|out| (out.len() as u64) < Inflate::WORTH_TWO) {
            return Ok(false);
        }
        let Some(cells) = self.two(bytes, ids, field) else { return Ok(false) };
        self.inflate_two(bytes, lent, ids, field, cells, outs)
    }

    fn two<'a>(&'a self, bytes: &Bytes<'a>, [a, b]: [u64; 2], field: usize) -> Option<[Cell<'a>; 2]> {
        let large = |id| self.cell(bytes, id, field).ok().filter(|cell| worth_two(&cell.entry));
        Some([large(a)?, large(b)?])
    }

    fn inflate_two(
        &self,
        bytes: &Bytes<'_>,
        lent: &mut Lent<'_>,
        ids: [u64; 2],
        field: usize,
        cells: [Cell<'_>; 2],
        [out_a, out_b]: [&mut [u8]; 2],
    ) -> Result<bool> {
        let stored = |cell: &Cell<'_>, out: &[u8]| {
            let fits = out.len() as u64 == cell.entry.raw;
            if fits { self.compared(bytes, &cell.entry, cell.note).ok().flatten() } else { None }
        };
        let (Some(a), Some(b)) = (stored(&cells[0], out_a), stored(&cells[1], out_b)) else {
            return Ok(false);
        };
        let done = lent.codecs().inflate_two((a, out_a), (b, out_b));
        for (done, (id, cell)) in done.into_iter().zip(ids.into_iter().zip(&cells)) {
            done.map_err(|e| self.named(e.at(cell.entry.offset), id, field))?;
        }
        Ok(true)
    }
}
