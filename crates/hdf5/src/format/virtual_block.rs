//! The global heap block of a virtual dataset (specification III.F): which parts of which datasets it is made of.
//!
//! | field | bytes |
//! |---|---|
//! | version, 0 or 1 | 1 |
//! | number of mappings | size of lengths |
//! | mappings: flags (version 1 only, 1), source file, source dataset, source selection, virtual selection | |
//! | checksum over all before | 4 |
//!
//! Names end with a NUL. Flag bit 0: the file is that of an earlier mapping, whose number stands in its place (size
//! of lengths); bit 1: so is the dataset; bit 2: the file is this one, and no name is stored.

use super::Sizes;
use super::selection::StoredSelection;
use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, ErrorKind, Result};

/// One mapping of a virtual dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Source file, raw bytes; `.` is the file of the virtual dataset.
    pub file: Vec<u8>,
    /// Path of the source dataset, raw bytes.
    pub dataset: Vec<u8>,
    /// What of the source is mapped.
    pub source: StoredSelection,
    /// Where in the virtual dataset it appears.
    pub target: StoredSelection,
}

const FILE_SHARED: u8 = 1;
const DATASET_SHARED: u8 = 2;
const SAME_FILE: u8 = 4;

/// Parses the block and verifies its checksum.
///
/// # Errors
/// `Corrupt` when it is damaged; `Unsupported` for versions that are not known.
pub fn parse(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Vec<Mapping>> {
    parse_mappings(bytes, at, sizes).map_err(|e| {
        let (body, sum) = bytes.split_at_checked(bytes.len().saturating_sub(4)).unwrap_or((bytes, &[]));
        // What is damaged is not merely unknown.
        if e.kind() == ErrorKind::Corrupt || lookup3(body).to_le_bytes() == sum {
            return e;
        }
        Error::corrupt("virtual dataset block: checksum does not match").at(at)
    })
}

fn parse_mappings(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Vec<Mapping>> {
    let mut r = FieldReader::new(bytes, at, "virtual dataset block");
    let version = r.u8()?;
    if version > 1 {
        return Err(r.unsupported(format_args!("version {version}")));
    }
    let count = sizes.length(&mut r)?;
    let mut mappings: Vec<Mapping> = Vec::new();
    for _ in 0..count {
        let flags = if version == 1 { r.u8()? } else { 0 };
        let file = if flags & SAME_FILE != 0 {
            b".".to_vec()
        } else if flags & FILE_SHARED != 0 {
            shared(&mut r, sizes, &mappings)?.file.clone()
        } else {
            name(&mut r)?
        };
        let dataset = if flags & DATASET_SHARED != 0 {
            shared(&mut r, sizes, &mappings)?.dataset.clone()
        } else {
            name(&mut r)?
        };
        let source = StoredSelection::parse(&mut r)?;
        let target = StoredSelection::parse(&mut r)?;
        mappings.push(Mapping { file, dataset, source, target });
    }
    let covered = bytes.get(..r.position()).unwrap_or(bytes);
    if lookup3(covered) != r.u32()? {
        return Err(Error::corrupt("virtual dataset block: checksum does not match").at(at));
    }
    Ok(mappings)
}

fn shared<'m>(r: &mut FieldReader<'_>, sizes: Sizes, mappings: &'m [Mapping]) -> Result<&'m Mapping> {
    let n = sizes.length(r)?;
    usize::try_from(n)
        .ok()
        .and_then(|n| mappings.get(n))
        .ok_or_else(|| r.corrupt(format_args!("a name of mapping {n}, which does not come before")))
}

fn name(r: &mut FieldReader<'_>) -> Result<Vec<u8>> {
    let mut name = Vec::new();
    loop {
        match r.u8()? {
            0 => return Ok(name),
            byte => name.push(byte),
        }
    }
}
