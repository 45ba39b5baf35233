//! The schema block: UTF-8 JSON that names the fields,
//! `{"fields":[{"name":…,"dtype":…,"shape":[…],"ragged":…,"encoding":…}]}`. The encoding is what writers use unless told
//! otherwise; readers need it not, as every record says how it is stored.

use super::codec::Encoding;
use super::state::MOST_FIELDS;
use serde::{Deserialize, Serialize};
use tensilo_core::dtype::DType;
use tensilo_core::gather::{FieldSchema, FieldShape, Schema};
use tensilo_core::{Error, Result};

/// Most bytes of a schema block.
pub(crate) const LARGEST_SCHEMA: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    fields: Vec<Field>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    ragged: bool,
    encoding: String,
}

/// Reads a schema block.
///
/// # Errors
/// `Corrupt`; `Unsupported` for an element type that is not known.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Schema, Vec<String>)> {
    let bad = |e: &dyn std::fmt::Display| Error::corrupt(format!("schema: {e}"));
    let block: Block = serde_json::from_slice(bytes).map_err(|e| bad(&e))?;
    if block.fields.len() > MOST_FIELDS {
        return Err(bad(&format_args!("{} fields", block.fields.len())));
    }
    let mut encodings = Vec::with_capacity(block.fields.len());
    let mut field = |f: Field| {
        encodings.push(f.encoding);
        let dtype: DType = f.dtype.parse().map_err(|_| {
            Error::unsupported(format!("field {:?}: element type {:?} is not known", f.name, f.dtype))
        })?;
        let shape = if f.ragged { FieldShape::Ragged(f.shape) } else { FieldShape::Fixed(f.shape) };
        Ok(FieldSchema { name: f.name, dtype, shape })
    };
    let fields = block.fields.into_iter().map(&mut field).collect::<Result<Vec<_>>>()?;
    let schema = Schema::new(fields).map_err(|e| bad(&e))?;
    check(&schema).map_err(|e| bad(&e))?;
    Ok((schema, encodings))
}

/// The schema's block.
///
/// # Errors
/// `InvalidArgument`, `Limit` for schemas that a store cannot have.
pub(crate) fn encode(schema: &Schema, encodings: &[Encoding]) -> Result<Vec<u8>> {
    check(schema)?;
    let fields = schema
        .fields()
        .iter()
        .zip(encodings)
        .map(|(f, encoding)| {
            let (FieldShape::Fixed(shape) | FieldShape::Ragged(shape)) = &f.shape;
            Field {
                name: f.name.clone(),
                dtype: f.dtype.name(),
                shape: shape.clone(),
                ragged: f.is_ragged(),
                encoding: encoding.to_string(),
            }
        })
        .collect();
    let bytes = serde_json::to_vec(&Block { fields }).map_err(|e| Error::invalid(format!("schema: {e}")))?;
    if bytes.len() as u64 > LARGEST_SCHEMA {
        return Err(Error::limit(format!("a schema of {} bytes", bytes.len())));
    }
    Ok(bytes)
}

fn check(schema: &Schema) -> Result<()> {
    if schema.fields().len() > MOST_FIELDS {
        return Err(Error::limit(format!(
            "{} fields, at most {MOST_FIELDS} are possible",
            schema.fields().len()
        )));
    }
    for field in schema.fields() {
        let bytes = field.step_bytes()?;
        if bytes > super::entry::LARGEST_CELL {
            return Err(Error::limit(format!(
                "field {:?}: {bytes} bytes, at most 2^32 are possible",
                field.name
            )));
        }
        if field.is_ragged() && bytes == 0 {
            return Err(Error::invalid(format!("ragged field {:?} has steps of 0 bytes", field.name)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensilo_core::ErrorKind;

    #[test]
    fn schemas_read_back_and_strange_ones_are_refused() {
        let schema = Schema::new(vec![
            FieldSchema::fixed("image", DType::Bf16, [3, 4]),
            FieldSchema::ragged("text", DType::U8, []),
            FieldSchema::fixed("label", DType::Bytes(7), []),
        ])
        .unwrap();
        let encodings = ["raw", "zstd:3", "shuffle+deflate:1"].map(|e| e.parse().unwrap());
        let text = encode(&schema, &encodings).unwrap();
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            r#"{"fields":[{"name":"image","dtype":"bfloat16","shape":[3,4],"ragged":false,"encoding":"raw"},{"name":"text","dtype":"uint8","shape":[],"ragged":true,"encoding":"zstd:3"},{"name":"label","dtype":"void56","shape":[],"ragged":false,"encoding":"shuffle+deflate:1"}]}"#
        );
        assert_eq!(parse(&text).unwrap().0, schema);
        for (text, kind) in [
            (r#"{"fields":[]}"#, ErrorKind::Corrupt),
            (
                r#"{"fields":[{"name":"a","dtype":"uint8","shape":[18446744073709551615,2],"ragged":false,"encoding":"raw"}]}"#,
                ErrorKind::Corrupt,
            ),
            (
                r#"{"fields":[{"name":"a","dtype":"uint8","shape":[0],"ragged":true,"encoding":"raw"}]}"#,
                ErrorKind::Corrupt,
            ),
            (
                r#"{"fields":[{"name":"a","dtype":"uint9","shape":[],"ragged":true,"encoding":"raw"}]}"#,
                ErrorKind::Unsupported,
            ),
            (
                r#"{"fields":[{"name":"a","dtype":"uint8","shape":[],"ragged":true,"encoding":"raw","x":1}]}"#,
                ErrorKind::Corrupt,
            ),
            ("", ErrorKind::Corrupt),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().kind(), kind, "{text}");
        }
    }
}
