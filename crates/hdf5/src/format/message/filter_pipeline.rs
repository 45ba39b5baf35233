//! Filter pipeline message (specification IV.A.2.l): the filters every chunk passes.

use tensilo_core::Result;
use tensilo_core::wire::FieldReader;
use tensilo_filters::FilterSpec;

/// Most filters in a pipeline.
pub const MAX_FILTERS: u8 = 32;

/// Parses a filter pipeline message, versions 1 and 2.
///
/// # Errors
/// `Corrupt` when a field is impossible.
pub fn parse(body: &[u8], at: u64) -> Result<Vec<FilterSpec>> {
    let mut r = FieldReader::new(body, at, "filter pipeline message");
    let version = r.u8()?;
    if version != 1 && version != 2 {
        return Err(r.corrupt(format_args!("version {version} is not known")));
    }
    let count = r.u8()?;
    if count > MAX_FILTERS {
        return Err(r.corrupt(format_args!("{count} filters are more than {MAX_FILTERS}")));
    }
    if version == 1 {
        r.skip(6)?;
    }
    (0..count).map(|_| filter(&mut r, version)).collect()
}

fn filter(r: &mut FieldReader<'_>, version: u8) -> Result<FilterSpec> {
    let id = r.u16()?;
    // Version 2 stores no name for the filters of the library itself.
    let name_len = if version == 1 || id >= 256 { usize::from(r.u16()?) } else { 0 };
    if version == 1 && name_len & 7 != 0 {
        return Err(r.corrupt(format_args!("name length {name_len} is no multiple of 8")));
    }
    let flags = r.u16()?;
    let count = r.u16()?;
    let raw = r.bytes(name_len)?;
    let name = if raw.is_empty() {
        None
    } else {
        let end = raw.iter().position(|b| *b == 0).ok_or_else(|| r.corrupt("a name without its NUL"))?;
        Some(String::from_utf8_lossy(raw.get(..end).unwrap_or(raw)).into_owned())
    };
    let values = (0..count).map(|_| r.u32()).collect::<Result<Vec<u32>>>()?;
    if version == 1 && count & 1 == 1 {
        r.skip(4)?;
    }
    Ok(FilterSpec { id, name, flags, values })
}
