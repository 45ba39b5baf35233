//! Strings: fixed ones without their padding, variable ones from their heap.

use super::{File, vlen};
use crate::format::datatype::{Class, Datatype, StringPadding};
use tensilo_core::{Error, Result};

/// Is this a type of strings?
pub(super) fn check(datatype: &Datatype) -> Result<()> {
    match datatype.class {
        Class::String { .. } | Class::VarString { .. } => Ok(()),
        _ => Err(Error::invalid(format!("elements of type {datatype} are no strings"))),
    }
}

/// Text of a string's bytes; what is no UTF-8 is replaced.
pub(super) fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// One fixed string without its padding.
pub fn trim(bytes: &[u8], padding: StringPadding) -> &[u8] {
    match padding {
        StringPadding::NullPadded => trim_end(bytes, 0),
        StringPadding::SpacePadded => trim_end(bytes, b' '),
        StringPadding::NullTerminated | StringPadding::Other(_) => {
            bytes.split(|b| *b == 0).next().unwrap_or(bytes)
        }
    }
}

fn trim_end(bytes: &[u8], pad: u8) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b != pad).map_or(0, |i| i + 1);
    &bytes[..end]
}

/// All strings of a run of elements.
pub(super) fn decode(file: &File, datatype: &Datatype, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let width = usize::try_from(datatype.size).unwrap_or(usize::MAX).max(1);
    let elements = bytes.chunks_exact(width);
    let list = (elements.len() as u64).saturating_mul(size_of::<Vec<u8>>() as u64);
    let _charge = file.space().budget().bytes(list.saturating_add(bytes.len() as u64), "strings")?;
    match &datatype.class {
        Class::String { padding, .. } => Ok(elements.map(|e| trim(e, *padding).to_vec()).collect()),
        Class::VarString { .. } => {
            let mut held = Vec::new();
            elements
                .map(|e| {
                    let string = vlen::resolve(file, e, datatype)?;
                    held.push(file.space().budget().bytes(string.len() as u64, "strings")?);
                    Ok(string)
                })
                .collect()
        }
        _ => Err(Error::invalid(format!("elements of type {datatype} are no strings"))),
    }
}
