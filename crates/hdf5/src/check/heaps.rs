//! Heaps: every block of a fractal heap, its huge objects and free space; local heaps; global heap collections.

use super::Check;
use crate::format::Address;
use crate::format::free_space::FreeSpaceHeader;
use crate::format::heap::fractal::FractalHeapHeader;
use crate::space::Visits;
use tensilo_core::{Error, Result};
use tensilo_filters::{Pipeline, Registry, Scratch};

const DIRECT: &str = "fractal heap direct block";
const INDIRECT: &str = "fractal heap indirect block";

/// A walk over one fractal heap.
struct Walk {
    header: FractalHeapHeader,
    visits: Visits,
    scratch: Scratch,
}

/// A direct block of a heap.
#[derive(Clone, Copy)]
struct Place {
    address: Address,
    /// Where it is in the heap.
    offset: u64,
    size: u64,
    /// Stored size and filter mask.
    filtered: Option<(u64, u32)>,
}

impl Check<'_> {
    /// Verifies every block of the heap whose header is at `address`; once for each heap.
    pub(super) fn fractal_heap(&mut self, address: Address) -> Result<()> {
        if !self.heaps.insert(address) {
            return Ok(());
        }
        let space = self.space.clone();
        let (sizes, at) = (space.sizes(), space.base().saturating_add(address.0));
        let header = space.read(address, 9, "fractal heap").and_then(|head| {
            let len = FractalHeapHeader::total_len(&head, at, sizes)?;
            let bytes = space.read(address, len, "fractal heap")?;
            FractalHeapHeader::parse(&bytes, at, address, sizes)
        });
        let Some(header) = self.structure(header, at)? else { return Ok(()) };
        let (root, rows, size) = (header.root, header.root_rows, header.start_size);
        let (huge, free, filtered) = (header.huge_btree, header.free_space, header.root_filtered);
        let heap_width = header.offset_width();
        let huge_kinds: &[u8] = match (header.huge_is_direct(), header.filters.is_empty()) {
            (false, true) => &[1],
            (false, false) => &[2],
            (true, true) => &[3],
            (true, false) => &[4],
        };
        let mut walk = Walk { header, visits: space.visits(), scratch: Scratch::default() };
        match root {
            Some(address) if rows == 0 => {
                self.direct_block(&mut walk, Place { address, offset: 0, size, filtered })?;
            }
            Some(address) => self.indirect_block(&mut walk, address, rows, 0)?,
            None => {}
        }
        if let Some(tree) = huge {
            for (record, record_at) in self.tree(tree, huge_kinds)? {
                let place = walk.header.huge_record(&record, record_at).and_then(|(place, _)| {
                    let bytes = space.read(place.address, place.len, "fractal heap huge object")?;
                    match place.filtered {
                        None => Ok(()),
                        Some((mask, len)) => unfilter(self, &mut walk, &bytes, mask, len).map(drop),
                    }
                });
                self.sound(place, record_at)?;
            }
        }
        match free {
            Some(manager) => self.free_space(manager, heap_width),
            None => Ok(()),
        }
    }

    fn indirect_block(&mut self, walk: &mut Walk, address: Address, rows: u16, base: u64) -> Result<()> {
        self.poll()?;
        let space = self.space.clone();
        let at = space.base().saturating_add(address.0);
        let len = walk.header.indirect_len(rows);
        let children = space.read(address, len, INDIRECT).and_then(|bytes| {
            walk.visits.enter(at, len, INDIRECT)?;
            walk.header.indirect(&bytes, at, rows, base)
        });
        let Some(children) = self.structure(children, at)? else { return Ok(()) };
        let width = usize::from(walk.header.width).max(1);
        for (i, child) in children.into_iter().enumerate() {
            let Some(address) = child.address else { continue };
            let row = u16::try_from(i / width).unwrap_or(u16::MAX);
            let place =
                walk.header.row_size(row).zip(walk.header.row_offset(row)).and_then(|(size, start)| {
                    let start =
                        size.checked_mul((i % width) as u64)?.checked_add(start)?.checked_add(base)?;
                    Some((size, start))
                });
            let Some((size, offset)) = place else {
                let e = Error::corrupt(format!("{INDIRECT}: row {row} is past 64 bits")).at(at);
                return self.report.found(&e, at);
            };
            if row < walk.header.direct_rows() {
                let filtered = child.filtered;
                self.direct_block(walk, Place { address, offset, size, filtered })?;
                continue;
            }
            let below = walk.header.rows_of(size);
            if below >= rows {
                let e = Error::corrupt(format!("{INDIRECT}: a table of {below} rows inside one of {rows}"));
                return self.report.found(&e.at(at), at);
            }
            self.indirect_block(walk, address, below, offset)?;
        }
        Ok(())
    }

    fn direct_block(&mut self, walk: &mut Walk, place: Place) -> Result<()> {
        self.poll()?;
        let space = self.space.clone();
        let at = space.base().saturating_add(place.address.0);
        let stored = place.filtered.map_or(place.size, |f| f.0);
        let checked = space.read(place.address, stored, DIRECT).and_then(|bytes| {
            walk.visits.enter(at, stored, DIRECT)?;
            match place.filtered {
                None => walk.header.check_direct(&bytes, at, place.offset),
                Some((_, mask)) => {
                    let block = unfilter(self, walk, &bytes, mask, place.size)?;
                    walk.header.check_direct(&block, at, place.offset)
                }
            }
        });
        self.structure(checked, at).map(drop)
    }

    /// Verifies a free-space manager and its list of sections. `heap_width` is the width of a position in the heap that
    /// it manages.
    pub(super) fn free_space(&mut self, address: Address, heap_width: usize) -> Result<()> {
        const WHAT: &str = "free-space manager";
        if !self.heaps.insert(address) {
            return Ok(());
        }
        let space = self.space.clone();
        let (sizes, at) = (space.sizes(), space.base().saturating_add(address.0));
        let header = space
            .read(address, FreeSpaceHeader::len(sizes), WHAT)
            .and_then(|bytes| FreeSpaceHeader::parse(&bytes, at, sizes));
        let Some(header) = self.structure(header, at)? else { return Ok(()) };
        let Some(list) = header.list else { return Ok(()) };
        let list_at = space.base().saturating_add(list.0);
        let sections = space
            .read(list, header.list_len, "free-space sections")
            .and_then(|bytes| header.sections(&bytes, list_at, address, heap_width));
        let Some(sections) = self.structure(sections, list_at)? else { return Ok(()) };
        for s in sections {
            if !header.of_heap && s.offset.checked_add(s.len).is_none() {
                let e = Error::corrupt(format!("free-space sections: {} bytes at {}", s.len, s.offset));
                self.report.found(&e.at(list_at), list_at)?;
            }
        }
        Ok(())
    }

    /// Verifies a global heap collection; once for each.
    pub(super) fn collection(&mut self, address: Address) -> Result<()> {
        if !self.heaps.insert(address) {
            return Ok(());
        }
        let at = self.space.base().saturating_add(address.0);
        let objects = self.space.clone().global_heap_objects(address);
        self.structure(objects, at).map(drop)
    }
}

/// Runs the heap's filters backwards; the result has `size` bytes.
fn unfilter(check: &Check<'_>, walk: &mut Walk, stored: &[u8], mask: u32, size: u64) -> Result<Vec<u8>> {
    let pipeline = Pipeline::new(&walk.header.filters, &Registry::default())?;
    let (mut out, _charge) = check.space.budget().buffer(size, DIRECT)?;
    pipeline.decode(&mut walk.scratch, stored, mask, &mut out).map_err(|e| e.context(DIRECT))?;
    Ok(out)
}
