//! Superblock, versions 0 to 3 (specification II.A): sizes, base address, end of file, root group.
//!
//! | bytes (versions 0, 1) | field | bytes (versions 2, 3) | field |
//! |---|---|---|---|
//! | 8 | signature | 8 | signature |
//! | 1, 1, 1, 1 | version, free space, root entry versions, 0 | 1 | version |
//! | 1, 1, 1, 1 | shared message version, offset size, length size, 0 | 1, 1, 1 | offset size, length size, flags |
//! | 2, 2, 4 | leaf K, internal K, flags | 4 × O | base, extension, end of file, root header |
//! | 2, 2 | chunk K, 0 (version 1) | 4 | checksum |
//! | 4 × O | base, free space, end of file, driver info | | |
//! | entry | root symbol table entry | | |

use super::symbol_entry::SymbolEntry;
use super::{Address, Sizes};
use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, Result};

/// The eight bytes every superblock begins with.
pub const SIGNATURE: [u8; 8] = [0x89, b'H', b'D', b'F', b'\r', b'\n', 0x1a, b'\n'];

/// Flag: a writer has the file open.
pub const FLAG_WRITE: u8 = 1;
/// Flag: a single-writer-multiple-readers writer has the file open.
pub const FLAG_SWMR_WRITE: u8 = 4;

/// Most bytes a superblock can have (offsets and lengths of 32 bytes).
pub const MAX_LEN: u64 = 512;

/// What the superblock of a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Version, 0 to 3.
    pub version: u8,
    /// Widths of addresses and lengths.
    pub sizes: Sizes,
    /// Absolute offset of the signature. Addresses are relative to it: where the stored base address differs,
    /// something was put in front of the file since.
    pub position: u64,
    /// The base address as stored.
    pub stored_base: u64,
    /// Absolute end of the file, corrected by the difference of `position` and `stored_base`.
    pub end_of_file: u64,
    /// File consistency flags.
    pub flags: u8,
    /// Half the most symbols in a group's leaf (versions 0 and 1).
    pub group_leaf_k: Option<u16>,
    /// Half the most children of a group's B-tree node (versions 0 and 1).
    pub group_internal_k: Option<u16>,
    /// Half the most children of a chunk B-tree node (version 1).
    pub chunk_internal_k: Option<u16>,
    /// Address of the superblock extension's object header (versions 2 and 3).
    pub extension: Option<Address>,
    /// Address of the driver information block (versions 0 and 1).
    pub driver_info: Option<Address>,
    /// Address of the root group's object header.
    pub root: Address,
    /// The root group's symbol table entry (versions 0 and 1).
    pub root_entry: Option<SymbolEntry>,
    /// Length of the superblock in bytes.
    pub len: u64,
}

fn width(r: &mut FieldReader<'_>, what: &str) -> Result<u8> {
    let w = r.u8()?;
    if matches!(w, 2 | 4 | 8 | 16 | 32) {
        Ok(w)
    } else {
        Err(r.corrupt(format_args!("bad size of {what}: {w}")))
    }
}

impl Superblock {
    /// Parses `bytes`, which begin with the signature at absolute offset `position`; more bytes than the
    /// superblock has may be given.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible or the checksum does not match; `Unsupported` for numbers past 64 bits.
    pub fn parse(bytes: &[u8], position: u64) -> Result<Self> {
        let mut r = FieldReader::new(bytes, position, "superblock");
        r.signature(&SIGNATURE)?;
        let version = r.u8()?;
        match version {
            0 | 1 => Self::parse_old(r, version, position),
            2 | 3 => Self::parse_new(r, bytes, version, position),
            v => Err(r.corrupt(format_args!("version {v} is not known"))),
        }
    }

    fn parse_old(mut r: FieldReader<'_>, version: u8, position: u64) -> Result<Self> {
        for what in ["free space", "root group entry"] {
            if r.u8()? != 0 {
                return Err(r.corrupt(format_args!("bad {what} version")));
            }
        }
        r.skip(1)?;
        if r.u8()? != 0 {
            return Err(r.corrupt("bad shared message version"));
        }
        let sizes = Sizes { offset: width(&mut r, "offsets")?, length: width(&mut r, "lengths")? };
        r.skip(1)?;
        let (leaf, internal) = (r.u16()?, r.u16()?);
        if leaf == 0 || internal == 0 {
            return Err(r.corrupt("a group B-tree rank of 0"));
        }
        let Ok(flags) = u8::try_from(r.u32()?) else {
            return Err(r.corrupt("bad file consistency flags"));
        };
        let mut chunk_internal_k = None;
        if version == 1 {
            let k = r.u16()?;
            if k == 0 {
                return Err(r.corrupt("a chunk B-tree rank of 0"));
            }
            chunk_internal_k = Some(k);
            r.skip(2)?;
        }
        let stored_base = defined(sizes.address(&mut r)?, &r, "base address")?;
        // The free space address of these versions was never used; libhdf5 takes it for an extension and refuses.
        if sizes.address(&mut r)?.is_some() {
            return Err(r.corrupt("an extension address is not allowed in this version"));
        }
        let stored_eof = defined(sizes.address(&mut r)?, &r, "end of file address")?;
        let driver_info = sizes.address(&mut r)?;
        let entry = SymbolEntry::parse(&mut r, sizes)?;
        let root = entry.header.ok_or_else(|| r.corrupt("the root group has no address"))?;
        Ok(Self {
            version,
            sizes,
            position,
            stored_base,
            end_of_file: corrected_end(stored_eof, stored_base, position)?,
            flags,
            group_leaf_k: Some(leaf),
            group_internal_k: Some(internal),
            chunk_internal_k,
            extension: None,
            driver_info,
            root,
            root_entry: Some(entry),
            len: r.position() as u64,
        })
    }

    fn parse_new(mut r: FieldReader<'_>, bytes: &[u8], version: u8, position: u64) -> Result<Self> {
        let sizes = Sizes { offset: width(&mut r, "offsets")?, length: width(&mut r, "lengths")? };
        let flags = r.u8()?;
        // Bit 1 said in old libraries that the file was closed well; it is still allowed.
        let known = if version == 3 { FLAG_WRITE | 2 | FLAG_SWMR_WRITE } else { 0xff };
        let base = sizes.address(&mut r)?;
        let extension = sizes.address(&mut r)?;
        let eof = sizes.address(&mut r)?;
        let root = sizes.address(&mut r)?;
        let covered = bytes.get(..r.position()).unwrap_or(bytes);
        if lookup3(covered) != r.u32()? {
            return Err(Error::corrupt("superblock: checksum does not match").at(position));
        }
        if flags & !known != 0 {
            return Err(r.corrupt(format_args!("bad file consistency flags {flags:#x}")));
        }
        let stored_base = defined(base, &r, "base address")?;
        let stored_eof = defined(eof, &r, "end of file address")?;
        let root = root.ok_or_else(|| r.corrupt("the root group has no address"))?;
        Ok(Self {
            version,
            sizes,
            position,
            stored_base,
            end_of_file: corrected_end(stored_eof, stored_base, position)?,
            flags,
            group_leaf_k: None,
            group_internal_k: None,
            chunk_internal_k: None,
            extension,
            driver_info: None,
            root,
            root_entry: None,
            len: r.position() as u64,
        })
    }
}

fn defined(a: Option<Address>, r: &FieldReader<'_>, what: &str) -> Result<u64> {
    a.map(|a| a.0).ok_or_else(|| r.corrupt(format_args!("the {what} is undefined")))
}

/// The stored end of file counts from the file's start as it was when the base address was stored.
fn corrected_end(stored: u64, base: u64, position: u64) -> Result<u64> {
    let end = if position < base {
        stored.checked_sub(base.saturating_sub(position))
    } else {
        stored.checked_add(position.saturating_sub(base))
    };
    end.filter(|e| *e >= position).ok_or_else(|| {
        Error::corrupt(format!("superblock: end of file {stored} and base {base} do not fit together"))
            .at(position)
    })
}
