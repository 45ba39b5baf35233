//! Attribute message (specification IV.A.2.m): a name, a datatype, a dataspace and the data itself.
//!
//! Datatype and dataspace may be references to shared messages; [`object`](crate::object) resolves them. Here the
//! message is cut into its parts.

use crate::format::datatype::CharacterSet;
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// The parts of an attribute message, not yet interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeParts<'a> {
    /// Name without its NUL.
    pub name: &'a [u8],
    /// Character set of the name.
    pub charset: CharacterSet,
    /// Datatype message, or a reference to one.
    pub datatype: Part<'a>,
    /// Dataspace message, or a reference to one.
    pub dataspace: Part<'a>,
    /// All bytes behind.
    pub data: &'a [u8],
    /// Absolute offset of `data`.
    pub data_at: u64,
}

/// A message within an attribute message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Is it a reference to a shared message?
    pub shared: bool,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its absolute offset.
    pub at: u64,
}

impl<'a> AttributeParts<'a> {
    /// Cuts an attribute message, versions 1 to 3.
    ///
    /// # Errors
    /// `Corrupt` when a field is impossible.
    pub fn parse(body: &'a [u8], at: u64) -> Result<Self> {
        let mut r = FieldReader::new(body, at, "attribute message");
        let version = r.u8()?;
        if !(1..=3).contains(&version) {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let flags = r.u8()?;
        let flags = if version == 1 { 0 } else { flags };
        if flags & !3 != 0 {
            return Err(r.corrupt(format_args!("unknown flags {flags:#x}")));
        }
        let lens = [r.u16()?, r.u16()?, r.u16()?].map(usize::from);
        let charset = match if version == 3 { r.u8()? } else { 0 } {
            0 => CharacterSet::Ascii,
            1 => CharacterSet::Utf8,
            n => CharacterSet::Other(n),
        };
        let mut part = |len: usize| -> Result<(&'a [u8], u64)> {
            let at = r.offset();
            let bytes = r.bytes(len)?;
            if version == 1 {
                r.skip(len.wrapping_neg() & 7)?;
            }
            Ok((bytes, at))
        };
        let [name_len, type_len, space_len] = lens;
        let (raw_name, name_at) = part(name_len)?;
        let datatype = part(type_len)?;
        let dataspace = part(space_len)?;
        let name = raw_name.split(|b| *b == 0).next().unwrap_or(raw_name);
        if name.len().checked_add(1) != Some(raw_name.len()) {
            return Err(FieldReader::new(raw_name, name_at, "attribute message")
                .corrupt("the name's length is not what is stored"));
        }
        Ok(Self {
            name,
            charset,
            datatype: Part { shared: flags & 1 != 0, bytes: datatype.0, at: datatype.1 },
            dataspace: Part { shared: flags & 2 != 0, bytes: dataspace.0, at: dataspace.1 },
            data_at: r.offset(),
            data: r.rest(),
        })
    }
}
