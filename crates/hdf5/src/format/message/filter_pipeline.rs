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

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic fails the test")]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_a_pipeline_say_the_same() {
        // Version 1: names padded to 8 bytes, an odd number of values padded with one more.
        let mut old = vec![1, 2, 0, 0, 0, 0, 0, 0];
        old.extend([2, 0, 8, 0, 1, 0, 1, 0]);
        old.extend(b"shuffle\0");
        old.extend([4, 0, 0, 0, 0, 0, 0, 0]);
        old.extend([0, 0x7d, 8, 0, 0, 0, 2, 0]);
        old.extend(b"lzf\0\0\0\0\0");
        old.extend([4, 0, 0, 0, 5, 0, 0, 0]);
        // Version 2: no name below 256, no padding.
        let mut new = vec![2, 2];
        new.extend([2, 0, 1, 0, 1, 0, 4, 0, 0, 0]);
        new.extend([0, 0x7d, 4, 0, 0, 0, 2, 0]);
        new.extend(b"lzf\0");
        new.extend([4, 0, 0, 0, 5, 0, 0, 0]);
        let (old, new) = (parse(&old, 0).unwrap(), parse(&new, 0).unwrap());
        let plain = |f: &FilterSpec| (f.id, f.flags, f.values.clone());
        let expected = [(2, 1, vec![4]), (32000, 0, vec![4, 5])];
        assert_eq!(old.iter().map(plain).collect::<Vec<_>>(), expected);
        assert_eq!(new.iter().map(plain).collect::<Vec<_>>(), expected);
        assert_eq!((old[1].name.as_deref(), new[1].name.as_deref()), (Some("lzf"), Some("lzf")));
    }

    #[test]
    fn impossible_pipelines_are_corrupt() {
        let bad: [&[u8]; 4] = [
            &[3, 0],
            &[2, 33],
            &[2, 1, 0, 1, 2, 0, 0, 0, 0, 0, b'a', b'b'],
            &[1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 0, 0, b'a', b'b', 0],
        ];
        for body in bad {
            assert_eq!(parse(body, 0).unwrap_err().kind(), tensilo_core::ErrorKind::Corrupt, "{body:?}");
        }
    }
}
