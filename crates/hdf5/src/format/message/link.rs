//! Link message (specification IV.A.2.g): one link of a new-style group, in its header or its fractal heap.

use crate::format::datatype::CharacterSet;
use crate::format::{Address, Sizes};
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// One link of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Name, raw bytes.
    pub name: Vec<u8>,
    /// Where it leads.
    pub target: LinkTarget,
    /// Creation order, if tracked.
    pub creation_order: Option<i64>,
    /// Character set of the name.
    pub charset: CharacterSet,
}

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// To the object whose header is at this address.
    Hard(Address),
    /// To a path in the same file, raw bytes.
    Soft(Vec<u8>),
    /// To a path in another file.
    External {
        /// Name of the file, raw bytes.
        file: Vec<u8>,
        /// Path in it, raw bytes.
        object: Vec<u8>,
    },
    /// Whatever a link class registered by a user makes of the data. Class 64 stands here only when its data is
    /// no valid external link.
    UserDefined {
        /// Number of the class.
        class: u8,
        /// Its data.
        data: Vec<u8>,
    },
}

impl Link {
    /// Parses a link message.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "link message");
        let version = r.u8()?;
        if version != 1 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let flags = r.u8()?;
        if flags & 0xe0 != 0 {
            return Err(r.corrupt(format_args!("unknown flags {flags:#x}")));
        }
        let class = if flags & 0x08 != 0 { r.u8()? } else { 0 };
        if (2..64).contains(&class) {
            return Err(r.corrupt(format_args!("link type {class} is not known")));
        }
        let creation_order = if flags & 0x04 != 0 { Some(i64::from_le_bytes(r.array()?)) } else { None };
        let charset = match if flags & 0x10 != 0 { r.u8()? } else { 0 } {
            0 => CharacterSet::Ascii,
            1 => CharacterSet::Utf8,
            n => return Err(r.corrupt(format_args!("character set {n} is not known"))),
        };
        let len = r.uint([1, 2, 4, 8].get(usize::from(flags & 3)).copied().unwrap_or(8))?;
        if len == 0 {
            return Err(r.corrupt("an empty name"));
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let name = r.bytes(len)?.to_vec();
        let target = match class {
            0 => LinkTarget::Hard(
                sizes.address(&mut r)?.ok_or_else(|| r.corrupt("a hard link without an address"))?,
            ),
            1 => {
                let len = usize::from(r.u16()?);
                if len == 0 {
                    return Err(r.corrupt("a soft link without a target"));
                }
                LinkTarget::Soft(r.bytes(len)?.to_vec())
            }
            _ => {
                let len = usize::from(r.u16()?);
                let data = r.bytes(len)?;
                (class == 64)
                    .then(|| external(data))
                    .flatten()
                    .unwrap_or_else(|| LinkTarget::UserDefined { class, data: data.to_vec() })
            }
        };
        Ok(Self { name, target, creation_order, charset })
    }
}

/// The data of an external link: version and flags (both 0), file name, object path, each with its NUL.
fn external(data: &[u8]) -> Option<LinkTarget> {
    let (first, rest) = data.split_first()?;
    if *first != 0 {
        return None;
    }
    let end = rest.iter().position(|b| *b == 0)?;
    let (file, rest) = rest.split_at_checked(end)?;
    let rest = rest.get(1..)?;
    let object = rest.split(|b| *b == 0).next()?;
    if rest.len() == object.len() {
        return None; // the path has no NUL
    }
    Some(LinkTarget::External { file: file.to_vec(), object: object.to_vec() })
}
