//! Fixed and extensible arrays built from all records: chunks by number in the grid of maximum extents.

use super::entry::EntryForm;
use super::{Chunks, Record};
use crate::format::Address;
use crate::format::encode::extensible_array as ea;
use crate::format::encode::fixed_array as fa;
use crate::write::layout::Blocks;
use std::collections::BTreeMap;
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Result};

/// Elements `range` of an array, unwritten ones undefined.
fn elements(form: EntryForm, records: &BTreeMap<u64, &Record>, range: std::ops::Range<u64>) -> Vec<u8> {
    let mut w = FieldWriter::new();
    for i in range {
        form.put(&mut w, records.get(&i).copied());
    }
    w.finish()
}

/// Builds a fixed array; `grid` is the number of chunks along each maximum extent.
pub(super) fn fixed(
    chunks: &Chunks,
    form: EntryForm,
    grid: &[u64],
    blocks: &mut Blocks,
    object: &str,
) -> Result<Address> {
    let count = crate::write::split::product(grid)?;
    let numbered: BTreeMap<u64, &Record> = chunks
        .records
        .iter()
        .map(|(number, record)| {
            (chunks.coords(*number).iter().zip(grid).fold(0, |n, (c, g)| n * g + c), record)
        })
        .collect();
    let header = blocks.allocate(fa::HEADER_SIZE)?;
    let all = elements(form, &numbered, 0..count);
    let data = fa::data_block(form.is_filtered(), form.size(), header, &all);
    let data = blocks.append("fixed array data block", object, data)?;
    let bytes = fa::header(form.is_filtered(), form.size(), count, data);
    blocks.place(header, "fixed array header", object, bytes);
    Ok(header)
}

/// Builds an extensible array; `grid` is the number of chunks along each maximum extent but that of the
/// dimension `unlimited`, which varies slowest.
pub(super) fn extensible(
    chunks: &Chunks,
    form: EntryForm,
    grid: &[u64],
    unlimited: usize,
    blocks: &mut Blocks,
    object: &str,
) -> Result<Address> {
    let mut numbered = BTreeMap::new();
    for (number, record) in &chunks.records {
        let coords = chunks.coords(*number);
        let mut n = coords[unlimited];
        for (d, (c, g)) in coords.iter().zip(grid).enumerate() {
            if d != unlimited {
                n = n.checked_mul(*g).and_then(|n| n.checked_add(*c)).ok_or_else(too_many)?;
            }
        }
        if n >> ea::MAX_BITS != 0 {
            return Err(too_many());
        }
        numbered.insert(n, record);
    }
    Builder { form, numbered, blocks, object, counts: ea::Counts::default() }.build()
}

fn too_many() -> Error {
    Error::unsupported("more chunks than an extensible array holds (2^32)")
}

struct Builder<'a> {
    form: EntryForm,
    numbered: BTreeMap<u64, &'a Record>,
    blocks: &'a mut Blocks,
    object: &'a str,
    counts: ea::Counts,
}

impl Builder<'_> {
    fn build(mut self) -> Result<Address> {
        let filtered = self.form.is_filtered();
        let header = self.blocks.allocate(ea::HEADER_SIZE)?;
        let index = self.blocks.allocate(ea::index_block_size(self.form.size()))?;
        let mut direct = Vec::new();
        let mut secondary = Vec::new();
        for (u, shape) in ea::super_blocks().into_iter().enumerate() {
            if u < ea::DIRECT_SUPER_BLOCKS {
                direct.extend(self.data_blocks(header, shape)?);
            } else {
                secondary.push(self.secondary(header, shape)?);
            }
        }
        let in_index = u64::from(ea::INDEX_ELEMENTS);
        self.counts.max_set = self.numbered.last_key_value().map_or(0, |(last, _)| last + 1);
        self.counts.realized += in_index;
        let first = elements(self.form, &self.numbered, 0..in_index);
        let bytes = ea::index_block(filtered, header, &first, &direct, &secondary);
        self.blocks.place(index, "extensible array index", self.object, bytes);
        let bytes = ea::header(filtered, self.form.size(), &self.counts, index);
        self.blocks.place(header, "extensible array header", self.object, bytes);
        Ok(header)
    }

    fn has_any(&self, start: u64, len: u64) -> bool {
        let from = u64::from(ea::INDEX_ELEMENTS) + start;
        self.numbered.range(from..from + len).next().is_some()
    }

    /// The data blocks of a super block, those with no record left out.
    fn data_blocks(&mut self, header: Address, shape: ea::SuperBlock) -> Result<Vec<Option<Address>>> {
        let mut addresses = Vec::new();
        for i in 0..shape.data_blocks {
            let start = shape.start + i * shape.elements;
            if !self.has_any(start, shape.elements) {
                addresses.push(None);
                continue;
            }
            let from = u64::from(ea::INDEX_ELEMENTS) + start;
            let all = elements(self.form, &self.numbered, from..from + shape.elements);
            let bytes = ea::data_block(self.form.is_filtered(), header, start, self.form.size(), &all);
            self.counts.data_blocks += 1;
            self.counts.data_bytes += bytes.len() as u64;
            self.counts.realized += shape.elements;
            addresses.push(Some(self.blocks.append("extensible array data", self.object, bytes)?));
        }
        Ok(addresses)
    }

    fn secondary(&mut self, header: Address, shape: ea::SuperBlock) -> Result<Option<Address>> {
        if !self.has_any(shape.start, shape.data_blocks * shape.elements) {
            return Ok(None);
        }
        let address = self.blocks.allocate(ea::secondary_size(shape))?;
        let data = self.data_blocks(header, shape)?;
        let bytes = ea::secondary_block(self.form.is_filtered(), header, shape, &data);
        self.counts.secondary_blocks += 1;
        self.counts.secondary_bytes += bytes.len() as u64;
        self.blocks.place(address, "extensible array secondary", self.object, bytes);
        Ok(Some(address))
    }
}
