//! Walks a fixed array.

use super::{ChunkIndex, Gather, Stored, Visit, node, offset};
use crate::format::Address;
use crate::format::index::bit;
use crate::format::index::fixed_array::FixedArray;
use crate::format::index::record::Form;
use crate::space::{FileSpace, Visits};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

const WHAT: &str = "fixed array";

fn open(index: &ChunkIndex, space: &FileSpace, at: Address) -> Result<(FixedArray, Form)> {
    let bytes = space.read(at, FixedArray::header_len(space.sizes()), WHAT)?;
    let array = FixedArray::parse(&bytes, bytes.offset(), space.sizes())?;
    let form = index.form(space, array.filtered, array.element, 0).map_err(|e| e.at(bytes.offset()))?;
    Ok((array, form))
}

pub(super) fn walk(
    index: &ChunkIndex,
    space: &FileSpace,
    at: Address,
    visits: &mut Visits,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let (array, form) = open(index, space, at)?;
    let Some(block_at) = array.block else { return Ok(()) };
    let block = node(space, visits, block_at, array.block_len(), WHAT)?;
    let (body, body_at) = array.block_body(&block, block.offset())?;
    let mut coords = index.origin();
    if !array.is_paged() {
        return elements(index, &form, body, body_at, 0, &mut coords, visit);
    }
    let mut gather = Gather::default();
    for page in (0..array.pages()).filter(|p| bit(body, *p)) {
        let (start, len) = array.page_place(page);
        let bytes = gather.tolerate(node(space, visits, offset(block_at, start)?, len, WHAT))?;
        let Some(bytes) = bytes else { continue };
        let body = array.page_body(&bytes, bytes.offset())?;
        elements(index, &form, body, bytes.offset(), page * array.page, &mut coords, visit)?;
    }
    gather.finish()
}

/// Visits every stored chunk of a run of elements, the first of which has number `first`.
pub(super) fn elements(
    index: &ChunkIndex,
    form: &Form,
    body: &[u8],
    at: u64,
    first: u64,
    coords: &mut [u64],
    visit: &mut Visit<'_>,
) -> Result<()> {
    let mut r = FieldReader::new(body, at, "chunk index element");
    let mut number = first;
    while r.remaining() > 0 {
        if let Some(stored) = form.parse(&mut r)?
            && index.geometry.coords(number, coords)
        {
            visit(coords, stored)?;
        }
        number += 1;
    }
    Ok(())
}

/// The `i`th element of a run.
pub(super) fn element(form: &Form, body: &[u8], at: u64, size: u64, i: u64) -> Result<Option<Stored>> {
    let mut r = FieldReader::new(body, at, "chunk index element");
    r.skip(usize::try_from(i.saturating_mul(size)).unwrap_or(usize::MAX))?;
    form.parse(&mut r)
}

pub(super) fn find(
    index: &ChunkIndex,
    space: &FileSpace,
    at: Address,
    coords: &[u64],
) -> Result<Option<Stored>> {
    let (array, form) = open(index, space, at)?;
    let number = index.geometry.number(coords).filter(|n| *n < array.elements);
    let (Some(block_at), Some(number)) = (array.block, number) else { return Ok(None) };
    let block = space.read(block_at, array.block_len(), WHAT)?;
    let (body, body_at) = array.block_body(&block, block.offset())?;
    if !array.is_paged() {
        return element(&form, body, body_at, array.element, number);
    }
    let page = number / array.page;
    if !bit(body, page) {
        return Ok(None);
    }
    let (start, len) = array.page_place(page);
    let bytes = space.read(offset(block_at, start)?, len, WHAT)?;
    let body = array.page_body(&bytes, bytes.offset())?;
    element(&form, body, bytes.offset(), array.element, number % array.page)
}
