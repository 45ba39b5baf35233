//! Elements that contain addresses: references and variable-length parts, moved to where their targets are in the
//! new file.

use crate::format::datatype::{Class, Datatype, ReferenceKind};
use crate::format::{Address, Sizes};
use crate::object::heap::global_heap_object;
use crate::read::File;
use crate::write::FileWriter;
use std::collections::BTreeMap;
use tensilo_core::{Error, Result};

/// Moves elements from one file to another.
pub(super) struct Translator<'a> {
    source: &'a File,
    paths: &'a BTreeMap<Address, Vec<u8>>,
    /// References that led to no object with a path.
    pub(super) dangling: u64,
}

/// Do elements of this type contain addresses?
pub(super) fn has_addresses(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::VarLen { .. } | Class::VarString { .. } | Class::Reference(_) => true,
        Class::Array { base, .. } => has_addresses(base),
        Class::Compound { members } => members.iter().any(|m| has_addresses(&m.datatype)),
        _ => false,
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

impl<'a> Translator<'a> {
    pub(super) fn new(source: &'a File, paths: &'a BTreeMap<Address, Vec<u8>>) -> Self {
        Self { source, paths, dangling: 0 }
    }

    /// Translates all elements in place.
    pub(super) fn all(
        &mut self,
        datatype: &Datatype,
        bytes: &mut [u8],
        w: &mut FileWriter<'_>,
    ) -> Result<()> {
        if !has_addresses(datatype) {
            return Ok(());
        }
        if self.source.space().sizes() != Sizes::EIGHT {
            return Err(Error::unsupported(
                "moving references or variable-length data out of a file with addresses of other than 8 bytes",
            ));
        }
        for element in bytes.chunks_exact_mut(datatype.size as usize) {
            self.element(datatype, element, w, 0)?;
        }
        Ok(())
    }

    fn element(
        &mut self,
        datatype: &Datatype,
        bytes: &mut [u8],
        w: &mut FileWriter<'_>,
        depth: u64,
    ) -> Result<()> {
        self.source.space().budget().depth(depth, "a datatype")?;
        match &datatype.class {
            Class::Array { base, .. } if has_addresses(base) => {
                for item in bytes.chunks_exact_mut(base.size as usize) {
                    self.element(base, item, w, depth + 1)?;
                }
            }
            Class::Compound { members } => {
                for m in members.iter().filter(|m| has_addresses(&m.datatype)) {
                    let start = usize::try_from(m.offset).unwrap_or(usize::MAX);
                    let end = start.saturating_add(m.datatype.size as usize);
                    let part = bytes
                        .get_mut(start..end)
                        .ok_or_else(|| Error::corrupt("a member reaches past the end of its compound"))?;
                    self.element(&m.datatype, part, w, depth + 1)?;
                }
            }
            Class::VarString { .. } => self.variable(None, bytes, w, depth)?,
            Class::VarLen { base } => self.variable(Some(base), bytes, w, depth)?,
            Class::Reference(ReferenceKind::Object) => self.reference(bytes, w)?,
            Class::Reference(ReferenceKind::Region) => self.region(bytes, w)?,
            Class::Reference(_) => self.newer(bytes, w)?,
            _ => {}
        }
        Ok(())
    }

    /// Count (4), heap address (8), index (4).
    fn variable(
        &mut self,
        base: Option<&Datatype>,
        bytes: &mut [u8],
        w: &mut FileWriter<'_>,
        depth: u64,
    ) -> Result<()> {
        let (count, address, index) = (number(&bytes[..4]), number(&bytes[4..12]), number(&bytes[12..16]));
        if count == 0 || address == 0 || address == u64::MAX {
            bytes.fill(0);
            return Ok(());
        }
        let width = base.map_or(1, |b| u64::from(b.size));
        let object = global_heap_object(self.source.space(), Address(address), index as u32)?;
        let wanted = usize::try_from(count * width).unwrap_or(usize::MAX);
        let items = object.get(..wanted).ok_or_else(|| {
            Error::corrupt(format!("a heap object of {} bytes where {wanted} are needed", object.len()))
        })?;
        let id = match base {
            Some(base) if has_addresses(base) => {
                let mut items = items.to_vec();
                for item in items.chunks_exact_mut(base.size as usize) {
                    self.element(base, item, w, depth + 1)?;
                }
                w.heap_object(&items)?
            }
            _ => w.heap_object(items)?,
        };
        bytes[..16].copy_from_slice(&id.element(count as u32));
        Ok(())
    }

    /// The new address of an object; `None` when nothing leads to it.
    fn moved(&mut self, address: u64, w: &mut FileWriter<'_>) -> Result<Option<Address>> {
        match self.paths.get(&Address(address)) {
            Some(path) => w.reserve(path).map(Some),
            None => {
                self.dangling += 1;
                Ok(None)
            }
        }
    }

    fn reference(&mut self, bytes: &mut [u8], w: &mut FileWriter<'_>) -> Result<()> {
        let address = number(&bytes[..8]);
        if address != 0 && address != u64::MAX {
            let moved = self.moved(address, w)?.map_or(0, |a| a.0);
            bytes[..8].copy_from_slice(&moved.to_le_bytes());
        }
        Ok(())
    }

    /// Heap address (8), index (4); the heap object begins with the address of the dataset.
    fn region(&mut self, bytes: &mut [u8], w: &mut FileWriter<'_>) -> Result<()> {
        let (address, index) = (number(&bytes[..8]), number(&bytes[8..12]));
        if address == 0 || address == u64::MAX {
            return Ok(());
        }
        let object = global_heap_object(self.source.space(), Address(address), index as u32)?;
        let mut object = object.to_vec();
        if object.len() < 8 {
            return Err(Error::corrupt(format!("a region reference of {} bytes", object.len())));
        }
        match self.moved(number(&object[..8]), w)? {
            None => bytes.fill(0),
            Some(dataset) => {
                object[..8].copy_from_slice(&dataset.0.to_le_bytes());
                let id = w.heap_object(&object)?;
                bytes[..8].copy_from_slice(&id.collection.0.to_le_bytes());
                bytes[8..12].copy_from_slice(&id.index.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Kind (1), flags (1), then of objects of this file a token, of all else size (4), heap address (8), index (4);
    /// the heap object begins with the token. What refers into another file stays as it is.
    fn newer(&mut self, bytes: &mut [u8], w: &mut FileWriter<'_>) -> Result<()> {
        const OBJECT: u8 = 2;
        const ATTRIBUTE: u8 = 4;
        const ELSEWHERE: u8 = 1;
        if bytes.len() < 18 {
            return Err(Error::corrupt(format!("references of {} bytes", bytes.len())));
        }
        let (kind, elsewhere) = (bytes[0], bytes[1] & ELSEWHERE != 0);
        if !(OBJECT..=ATTRIBUTE).contains(&kind) {
            bytes.fill(0);
            return Ok(());
        }
        if kind == OBJECT && !elsewhere {
            let (address, size) = token(&bytes[2..])?;
            match self.moved(address, w)? {
                Some(object) => bytes[2..2 + size].copy_from_slice(&new_token(object)),
                None => bytes.fill(0),
            }
            return Ok(());
        }
        let (heap, index) = (number(&bytes[6..14]), number(&bytes[14..18]));
        if heap == 0 || heap == u64::MAX {
            return Ok(());
        }
        let object = global_heap_object(self.source.space(), Address(heap), index as u32)?;
        let mut object = object.to_vec();
        if !elsewhere {
            let (address, size) = token(&object)?;
            let Some(moved) = self.moved(address, w)? else {
                bytes.fill(0);
                return Ok(());
            };
            object[..size].copy_from_slice(&new_token(moved));
        }
        let id = w.heap_object(&object)?;
        bytes[6..14].copy_from_slice(&id.collection.0.to_le_bytes());
        bytes[14..18].copy_from_slice(&id.index.to_le_bytes());
        Ok(())
    }
}

/// The address in a token, and the bytes that the token takes: its size (1), which is 8, and the address.
fn token(bytes: &[u8]) -> Result<(u64, usize)> {
    match bytes {
        [8, rest @ ..] if rest.len() >= 8 => Ok((number(&rest[..8]), 9)),
        _ => Err(Error::corrupt("a reference whose token is not an address of 8 bytes")),
    }
}

fn new_token(object: Address) -> [u8; 9] {
    let mut token = [8; 9];
    token[1..].copy_from_slice(&object.0.to_le_bytes());
    token
}
