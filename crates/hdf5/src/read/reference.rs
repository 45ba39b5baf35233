//! References: from a stored element to the object, region or attribute that it refers to.
//!
//! | stored element | bytes |
//! |---|---|
//! | object, HDF5 1.0 to 1.10 | address |
//! | region, HDF5 1.0 to 1.10 | heap collection, index (4); the heap object: address, selection |
//! | 1.12 and later | kind (1), flags (1), then the token of an object (its size first), or size (4), heap collection, index (4) of the rest |
//!
//! What of the newer form lies in a heap: token; the name of the file (2 for its length) where it is another; then of
//! regions size and rank (4 each) and the selection, of attributes the name.

use super::{File, Object};
use crate::format::Address;
use crate::format::datatype::ReferenceKind;
use crate::format::selection::StoredSelection;
use tensilo_core::array::{Hyperslab, Points, Selection};
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

/// The flag of a reference into another file.
const ELSEWHERE: u8 = 1;
const OBJECT: u8 = 2;
const REGION: u8 = 3;
const ATTRIBUTE: u8 = 4;

/// What a reference refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reference {
    /// Nothing.
    Null,
    /// An object, by the address of its header.
    Object(Address),
    /// Elements of a dataset.
    Region(Address, Region),
    /// An attribute of an object: its name, raw bytes.
    Attribute(Address, Vec<u8>),
    /// Something in another file, whose name this is, raw bytes; it is not followed.
    Elsewhere(Vec<u8>),
}

/// The elements that a region reference selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region(pub StoredSelection);

impl Region {
    /// The region as a selection of a dataset of this shape, its elements in C order (points in stored order).
    ///
    /// # Errors
    /// `Corrupt` when it does not fit the shape; `Unsupported` when it has no end.
    pub fn selection(&self, shape: &[u64]) -> Result<Selection> {
        let rank = shape.len();
        let fits = |n: usize| match n == rank {
            true => Ok(()),
            false => Err(Error::corrupt(format!("a region of rank {n} in a dataset of rank {rank}"))),
        };
        match &self.0 {
            StoredSelection::None => Ok(Selection::from(Hyperslab::new(vec![0; rank], vec![0; rank]))),
            StoredSelection::All => Ok(Selection::All),
            StoredSelection::Points { rank: n, coords } => {
                fits(*n)?;
                Points::new(rank, coords.clone()).map(Selection::Points)
            }
            StoredSelection::Regular(dimensions) => {
                fits(dimensions.len())?;
                let endless = || Error::unsupported("a region without an end");
                let counts = dimensions.iter().map(|d| d.count.ok_or_else(endless)).collect::<Result<_>>()?;
                let blocks = dimensions.iter().map(|d| d.block.ok_or_else(endless)).collect::<Result<_>>()?;
                let too_far = |_| Error::corrupt("a region with a stride past 63 bits");
                let strides = dimensions
                    .iter()
                    .map(|d| i64::try_from(d.stride).map_err(too_far))
                    .collect::<Result<_>>()?;
                let starts = dimensions.iter().map(|d| d.start).collect();
                Ok(Selection::from(Hyperslab::new(starts, counts).with_stride(strides).with_block(blocks)))
            }
            StoredSelection::Boxes(boxes) => {
                boxes.iter().try_for_each(|(low, _)| fits(low.len()))?;
                union(boxes)
            }
        }
    }
}

/// Boxes as one selection.
fn union(boxes: &[(Vec<u64>, Vec<u64>)]) -> Result<Selection> {
    let slab = |(low, high): &(Vec<u64>, Vec<u64>)| {
        let each = low.iter().zip(high).map(|(l, h)| h.checked_sub(*l).and_then(|d| d.checked_add(1)));
        let counts = each.collect::<Option<Vec<u64>>>();
        let counts = counts.ok_or_else(|| Error::corrupt("a region's box ends before it begins"))?;
        Ok(Hyperslab::new(low.clone(), counts))
    };
    match boxes {
        [one] => slab(one).map(Selection::from),
        many => many.iter().map(slab).collect::<Result<_>>().map(Selection::Union),
    }
}

impl File {
    /// What a stored reference refers to; nothing is opened.
    ///
    /// # Errors
    /// `Corrupt` when the element or its heap object is damaged.
    pub fn reference(&self, element: &[u8], kind: ReferenceKind) -> Result<Reference> {
        let sizes = self.space().sizes();
        let mut r = FieldReader::new(element, 0, "reference");
        match kind {
            ReferenceKind::Object => Ok(match sizes.address(&mut r)? {
                None | Some(Address(0)) => Reference::Null,
                Some(address) => Reference::Object(address),
            }),
            ReferenceKind::Region => {
                let heap = sizes.address(&mut r)?;
                let index = r.u32()?;
                let Some(heap) = heap.filter(|a| a.0 != 0) else { return Ok(Reference::Null) };
                let object = self.space().global_heap_object(heap, index)?;
                let mut r = FieldReader::new(&object, object.offset(), "region reference");
                let Some(address) = sizes.address(&mut r)? else { return Ok(Reference::Null) };
                Ok(Reference::Region(address, Region(StoredSelection::parse(&mut r)?)))
            }
            ReferenceKind::Object2 | ReferenceKind::Region2 | ReferenceKind::Attribute => self.newer(r),
        }
    }

    fn newer(&self, mut r: FieldReader<'_>) -> Result<Reference> {
        let (kind, flags) = (r.u8()?, r.u8()?);
        if !(OBJECT..=ATTRIBUTE).contains(&kind) {
            return Ok(Reference::Null);
        }
        if kind == OBJECT && flags & ELSEWHERE == 0 {
            return token(&mut r).map(Reference::Object);
        }
        r.skip(4)?;
        let heap = self.space().sizes().address(&mut r)?;
        let index = r.u32()?;
        let Some(heap) = heap.filter(|a| a.0 != 0) else { return Ok(Reference::Null) };
        let object = self.space().global_heap_object(heap, index)?;
        let mut r = FieldReader::new(&object, object.offset(), "reference");
        let address = token(&mut r)?;
        if flags & ELSEWHERE != 0 {
            return Ok(Reference::Elsewhere(name(&mut r)?));
        }
        match kind {
            REGION => {
                r.skip(8)?;
                Ok(Reference::Region(address, Region(StoredSelection::parse(&mut r)?)))
            }
            _ => Ok(Reference::Attribute(address, name(&mut r)?)),
        }
    }

    /// Opens the object that a reference leads to; `None` where it leads nowhere.
    ///
    /// # Errors
    /// `Corrupt` when there is no object; `Unsupported` for a reference into another file.
    pub fn dereference(&self, reference: &Reference) -> Result<Option<Object>> {
        match reference {
            Reference::Null => Ok(None),
            Reference::Object(a) | Reference::Region(a, _) | Reference::Attribute(a, _) => {
                self.object_at(*a, &format!("(object {})", a.0)).map(Some)
            }
            Reference::Elsewhere(file) => Err(Error::unsupported(format!(
                "a reference into another file, {:?}",
                String::from_utf8_lossy(file)
            ))),
        }
    }
}

/// A token: its size, then its bytes, of which the address is the head.
fn token(r: &mut FieldReader<'_>) -> Result<Address> {
    let size = usize::from(r.u8()?);
    let bytes = r.bytes(size)?;
    Ok(Address(bytes.iter().take(8).rev().fold(0, |n, b| n << 8 | u64::from(*b))))
}

fn name(r: &mut FieldReader<'_>) -> Result<Vec<u8>> {
    let len = usize::from(r.u16()?);
    Ok(r.bytes(len)?.to_vec())
}
