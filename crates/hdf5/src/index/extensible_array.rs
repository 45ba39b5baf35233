//! Walks an extensible array.

use super::fixed_array::{element, elements};
use super::{ChunkIndex, Gather, Stored, Visit, node, offset};
use crate::format::Address;
use crate::format::index::bit;
use crate::format::index::extensible_array::{ExtensibleArray, SuperBlock};
use crate::format::index::record::Form;
use crate::space::{FileSpace, Visits};
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

const WHAT: &str = "extensible array";

fn open(index: &ChunkIndex, space: &FileSpace, at: Address) -> Result<(ExtensibleArray, Form)> {
    let bytes = space.read(at, ExtensibleArray::header_len(space.sizes()), WHAT)?;
    let array = ExtensibleArray::parse(&bytes, bytes.offset(), space.sizes())?;
    let form = index.form(space, array.filtered, array.element, 0).map_err(|e| e.at(bytes.offset()))?;
    Ok((array, form))
}

/// A walk over all blocks.
struct Walk<'a, 'v> {
    index: &'a ChunkIndex,
    space: &'a FileSpace,
    array: ExtensibleArray,
    form: Form,
    coords: Vec<u64>,
    visits: &'a mut Visits,
    gather: Gather,
    visit: &'a mut Visit<'v>,
}

pub(super) fn walk(
    index: &ChunkIndex,
    space: &FileSpace,
    at: Address,
    visits: &mut Visits,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let (array, form) = open(index, space, at)?;
    let Some(block_at) = array.index_block else { return Ok(()) };
    let bytes = node(space, visits, block_at, array.index_block_len(), WHAT)?;
    let block = array.parse_index_block(&bytes, bytes.offset())?;
    let mut walk =
        Walk { index, space, array, form, coords: index.origin(), visits, gather: Gather::default(), visit };
    walk.elements(block.elements, block.at, 0)?;
    let mut number = 0;
    for _ in 0..array.direct_super_blocks() {
        let Some(super_block) = array.super_block(number) else { break };
        let first = array.direct_place(super_block);
        for i in 0..super_block.blocks {
            let place = usize::try_from(first + i).unwrap_or(usize::MAX);
            if let Some(Some(at)) = block.data_blocks.get(place) {
                let done = walk.data_block(super_block, i, *at, None);
                walk.gather.tolerate(done)?;
            }
        }
        number += 1;
    }
    for at in block.super_blocks {
        let Some(super_block) = array.super_block(number) else { break };
        if let Some(at) = at {
            let done = walk.super_block(super_block, at);
            walk.gather.tolerate(done)?;
        }
        number += 1;
    }
    walk.gather.finish()
}

impl Walk<'_, '_> {
    fn elements(&mut self, body: &[u8], at: u64, first: u64) -> Result<()> {
        elements(self.index, &self.form, body, at, first, &mut self.coords, self.visit)
    }

    fn super_block(&mut self, block: SuperBlock, at: Address) -> Result<()> {
        let bytes = node(self.space, self.visits, at, self.array.super_block_len(block), WHAT)?;
        let (bitmap, addresses, at) = self.array.super_block_body(block, &bytes, bytes.offset())?;
        let mut r = FieldReader::new(addresses, at, WHAT);
        for i in 0..block.blocks {
            if let Some(at) = self.space.sizes().address(&mut r)? {
                let done = self.data_block(block, i, at, Some(bitmap));
                self.gather.tolerate(done)?;
            }
        }
        Ok(())
    }

    fn data_block(&mut self, block: SuperBlock, i: u64, at: Address, bitmap: Option<&[u8]>) -> Result<()> {
        let first = block.first + i * block.elements;
        let bytes = node(self.space, self.visits, at, self.array.data_block_len(block), WHAT)?;
        let (body, body_at) = self.array.data_block_body(block, i, &bytes, bytes.offset())?;
        let first = first + self.array.index_elements;
        let pages = self.array.pages(block);
        if pages == 0 {
            return self.elements(body, body_at, first);
        }
        let bitmap = bitmap.ok_or_else(|| paged_directly(at))?;
        for page in (0..pages).filter(|p| bit(bitmap, i * pages + p)) {
            let (start, len) = self.array.page_place(block, page);
            let bytes = self.gather.tolerate(node(self.space, self.visits, offset(at, start)?, len, WHAT))?;
            let Some(bytes) = bytes else { continue };
            let body = self.array.page_body(&bytes, bytes.offset())?;
            self.elements(body, bytes.offset(), first + page * self.array.page)?;
        }
        Ok(())
    }
}

fn paged_directly(at: Address) -> Error {
    Error::unsupported("extensible array: a paged data block without a super block").at(at.0)
}

pub(super) fn find(
    index: &ChunkIndex,
    space: &FileSpace,
    at: Address,
    coords: &[u64],
) -> Result<Option<Stored>> {
    let (array, form) = open(index, space, at)?;
    let (Some(block_at), Some(number)) = (array.index_block, index.geometry.number(coords)) else {
        return Ok(None);
    };
    let bytes = space.read(block_at, array.index_block_len(), WHAT)?;
    let block = array.parse_index_block(&bytes, bytes.offset())?;
    let Some(rest) = number.checked_sub(array.index_elements) else {
        return element(&form, block.elements, block.at, array.element, number);
    };
    let Some(super_block) = array.super_block_of(rest) else { return Ok(None) };
    let i = (rest - super_block.first) / super_block.elements;
    let inside = (rest - super_block.first) % super_block.elements;
    let get = |list: &[Option<Address>], at: u64| usize::try_from(at).ok().and_then(|at| *list.get(at)?);
    if super_block.number < array.direct_super_blocks() {
        let Some(at) = get(&block.data_blocks, array.direct_place(super_block) + i) else { return Ok(None) };
        if array.pages(super_block) > 0 {
            return Err(paged_directly(at));
        }
        return in_data_block(space, &array, &form, super_block, (i, inside), at);
    }
    let Some(at) = get(&block.super_blocks, super_block.number - array.direct_super_blocks()) else {
        return Ok(None);
    };
    let bytes = space.read(at, array.super_block_len(super_block), WHAT)?;
    let (bitmap, addresses, at) = array.super_block_body(super_block, &bytes, bytes.offset())?;
    let mut r = FieldReader::new(addresses, at, WHAT);
    r.skip(usize::try_from(i * u64::from(space.sizes().offset)).unwrap_or(usize::MAX))?;
    let Some(at) = space.sizes().address(&mut r)? else { return Ok(None) };
    let pages = array.pages(super_block);
    if pages == 0 {
        return in_data_block(space, &array, &form, super_block, (i, inside), at);
    }
    let page = inside / array.page;
    if !bit(bitmap, i * pages + page) {
        return Ok(None);
    }
    let (start, len) = array.page_place(super_block, page);
    let bytes = space.read(offset(at, start)?, len, WHAT)?;
    let body = array.page_body(&bytes, bytes.offset())?;
    element(&form, body, bytes.offset(), array.element, inside % array.page)
}

/// Element `inside` of data block `i` of a super block, where it has no pages.
fn in_data_block(
    space: &FileSpace,
    array: &ExtensibleArray,
    form: &Form,
    block: SuperBlock,
    (i, inside): (u64, u64),
    at: Address,
) -> Result<Option<Stored>> {
    let bytes = space.read(at, array.data_block_len(block), WHAT)?;
    let (body, body_at) = array.data_block_body(block, i, &bytes, bytes.offset())?;
    element(form, body, body_at, array.element, inside)
}
