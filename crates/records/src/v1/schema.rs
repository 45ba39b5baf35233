//! `schema.json`, which loaderx's `Dataset` puts beside the table: what type and shape every record has.

use super::files::Handle;
use std::path::Path;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{FieldSchema, Schema};
use tensilo_core::io::Disk;
use tensilo_core::{Error, ErrorKind, Result};

/// Name of the file.
pub const SCHEMA_FILE: &str = "schema.json";
/// What its key `format` says.
pub const SCHEMA_FORMAT: &str = "loaderx-zrecord";
/// Longest file that is read.
const LONGEST: u64 = 1 << 16;

/// The name of the one field.
const FIELD: &str = "data";

/// Records of bytes without a type.
pub(super) fn untyped() -> Result<Schema> {
    Schema::new(vec![FieldSchema::ragged(FIELD, DType::U8, vec![])])
}

/// The schema that a store's folder states; bytes when it states none, or a type that there is none for here.
pub(super) fn of_folder(disk: &dyn Disk, folder: &Path, read_only: bool) -> Result<Schema> {
    let path = folder.join(SCHEMA_FILE);
    let file = match Handle::open(disk, &path, read_only) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return untyped(),
        Err(e) => return Err(e),
    };
    let len = file.len()?;
    if len > LONGEST {
        return Err(Error::corrupt(format!("a schema of {len} bytes")).in_file(path));
    }
    let mut text = vec![0; len as usize];
    file.read_at(0, &mut text)?;
    parse(&text).map_err(|e| e.in_file(path))
}

fn parse(text: &[u8]) -> Result<Schema> {
    let bad = |what: &str| Error::corrupt(format!("the schema has no valid {what}"));
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|e| Error::corrupt("the schema is no JSON").with_source(e))?;
    if value.get("format").and_then(|f| f.as_str()) != Some(SCHEMA_FORMAT) {
        return Err(bad("format"));
    }
    let dtype = value.get("dtype").and_then(|d| d.as_str()).ok_or_else(|| bad("dtype"))?;
    let shape = value.get("shape").and_then(|s| s.as_array()).ok_or_else(|| bad("shape"))?;
    let dims: Vec<u64> =
        shape.iter().map(|d| d.as_u64()).collect::<Option<_>>().ok_or_else(|| bad("shape"))?;
    match dtype.parse::<DType>() {
        Ok(dtype) => Schema::new(vec![FieldSchema::fixed(FIELD, dtype, dims)]),
        Err(_) => untyped(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_core::gather::FieldShape;

    #[test]
    fn schemas_of_loaderx_are_understood() {
        let schema = parse(
            br#"{"format": "loaderx-zrecord", "version": 1, "dtype": "<f4", "shape": [3, 8, 8], "codec": "flate"}"#,
        )
        .unwrap();
        assert_eq!(schema.fields()[0].dtype, DType::F32);
        assert_eq!(schema.fields()[0].shape, FieldShape::Fixed(vec![3, 8, 8]));
        let foreign = parse(br#"{"format": "other", "dtype": "<f4", "shape": []}"#).unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::Corrupt);
        let text = parse(br#"{"format": "loaderx-zrecord", "dtype": "<U5", "shape": []}"#).unwrap();
        assert_eq!(text, untyped().unwrap());
    }
}
