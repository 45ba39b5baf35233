//! `records get`.

use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use tensilo::core::dtype::DType;
use tensilo::core::gather::{FieldSchema, FieldShape, Gather};
use tensilo::{Error, Result};

/// Values that are shown of a field.
const SHOWN: usize = 12;

/// Arguments of `records get`.
#[derive(Debug, Args)]
pub struct GetArguments {
    /// The store.
    pub store: PathBuf,

    /// The records; negative ones count from the end.
    #[arg(required = true, allow_negative_numbers = true, value_name = "ID")]
    pub ids: Vec<i64>,

    /// One field only.
    #[arg(long, value_name = "NAME")]
    pub field: Option<String>,

    /// Write the bytes of the field of one record to stdout, as they are.
    #[arg(long, requires = "field")]
    pub raw: bool,
}

#[derive(Serialize)]
struct RecordView {
    id: u64,
    fields: Vec<FieldView>,
}

#[derive(Serialize)]
struct FieldView {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    bytes: u64,
    values: serde_json::Value,
}

/// Shows records.
pub fn run(a: &GetArguments, out: &mut Output) -> Outcome {
    let store = super::open(&a.store)?;
    let all = store.schema().fields();
    let fields = match &a.field {
        Some(name) => vec![store.schema().position(name)?],
        None => (0..all.len()).collect(),
    };
    let ids = a.ids.iter().map(|id| resolve(*id, store.len())).collect::<Result<Vec<u64>>>();
    let ids = ids.map_err(|e| e.in_file(&a.store))?;
    if a.raw {
        let ([id], [field]) = (&ids[..], &fields[..]) else {
            return Err(Error::invalid("--raw writes one field of one record").into());
        };
        out.raw().write_all(&store.get(*id, *field)?)?;
        return Ok(Answer::Yes);
    }
    for id in ids {
        let mut views = Vec::new();
        for field in &fields {
            views.push(view(&all[*field], &store.get(id, *field)?, out.is_json())?);
        }
        if out.is_json() {
            out.json("tensilo.records.record/1", &RecordView { id, fields: views })?;
            continue;
        }
        for v in views {
            let values = v.values.as_array().map_or_else(
                || plain(&v.values),
                |list| list.iter().map(plain).collect::<Vec<_>>().join(" "),
            );
            let shape = human::shape(&v.shape);
            out.line(format_args!("{id}  {}  {} {shape}  {values}", human::name(&v.name), v.dtype))?;
        }
    }
    Ok(Answer::Yes)
}

/// A value as text, without the quotes that JSON has.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn resolve(id: i64, len: u64) -> Result<u64> {
    let found = if id < 0 { len.checked_sub(id.unsigned_abs()) } else { Some(id.unsigned_abs()) };
    found
        .filter(|id| *id < len)
        .ok_or_else(|| Error::invalid(format!("there is no record {id}, there are {len}")))
}

fn view(field: &FieldSchema, bytes: &[u8], all: bool) -> Result<FieldView> {
    let shape = match &field.shape {
        FieldShape::Fixed(dims) => dims.clone(),
        FieldShape::Ragged(dims) => [&[bytes.len() as u64 / field.step_bytes()?.max(1)], &dims[..]].concat(),
    };
    let size = field.dtype.size().max(1) as usize;
    let elements = bytes.chunks_exact(size);
    let total = elements.len();
    let most = if all { total } else { SHOWN };
    let mut values: Vec<serde_json::Value> = elements.take(most).map(|e| value(field.dtype, e)).collect();
    if most < total {
        values.push("…".into());
    }
    let values = if shape.is_empty() { values.pop().unwrap_or_default() } else { values.into() };
    Ok(FieldView {
        name: field.name.clone(),
        dtype: field.dtype.name(),
        shape,
        bytes: bytes.len() as u64,
        values,
    })
}

/// An element as JSON: numbers as numbers, what JSON has no number for as text, anything else in hexadecimal digits.
fn value(dtype: DType, e: &[u8]) -> serde_json::Value {
    let mut wide = [0; 8];
    wide.iter_mut().zip(e).for_each(|(to, from)| *to = *from);
    let unsigned = u64::from_le_bytes(wide);
    let signed = |bits: u32| (unsigned << (64 - bits)).cast_signed() >> (64 - bits);
    let float = |x: f64| serde_json::Number::from_f64(x).map_or_else(|| x.to_string().into(), Into::into);
    match dtype {
        DType::Bool => (unsigned != 0).into(),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => unsigned.into(),
        DType::I8 => signed(8).into(),
        DType::I16 => signed(16).into(),
        DType::I32 => signed(32).into(),
        DType::I64 => signed(64).into(),
        DType::F32 => float(f32::from_bits(unsigned as u32).into()),
        DType::F64 => float(f64::from_bits(unsigned)),
        _ => e.iter().map(|b| format!("{b:02x}")).collect::<String>().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_shown_as_numbers() {
        assert_eq!(value(DType::I16, &(-5_i16).to_le_bytes()), -5);
        assert_eq!(value(DType::U64, &u64::MAX.to_le_bytes()), u64::MAX);
        assert_eq!(value(DType::F32, &1.5_f32.to_le_bytes()), 1.5);
        assert_eq!(value(DType::F64, &f64::NAN.to_le_bytes()), "NaN");
        assert_eq!(value(DType::Bytes(3), &[1, 2, 255]), "0102ff");
        assert_eq!(["NaN".into(), 5.into(), false.into()].each_ref().map(plain), ["NaN", "5", "false"]);
        assert_eq!((resolve(-1, 5).unwrap(), resolve(4, 5).unwrap()), (4, 4));
        assert!(resolve(5, 5).is_err() && resolve(-6, 5).is_err());
    }
}
