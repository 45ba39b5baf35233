//! One element as text.

use super::{Dump, escape, quoted};
use crate::hdf5::{Class, Datatype, Reference};
use crate::value::{Value, decode};
use crate::view::FileHeap;
use tensilo_core::{Error, Result};
use tensilo_hdf5::format::datatype::StringPadding;
use tensilo_hdf5::format::selection::StoredSelection;

/// A number of a type as text; bytes in hexadecimal where it is none.
pub(super) fn number_text(t: &Datatype, bytes: &[u8]) -> String {
    match decode(t, bytes, &NoHeap) {
        Ok(Value::Float32(v)) => general(f64::from(v)),
        Ok(Value::Float64(v)) => general(v),
        Ok(Value::Integer(v)) if matches!(t.class, Class::Bitfield { .. }) => {
            format!("0x{v:0width$x}", width = 2 * t.size as usize)
        }
        Ok(Value::Integer(v)) => v.to_string(),
        _ => format!("0x{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()),
    }
}

/// Numbers need no heap.
struct NoHeap;

impl crate::value::Heap for NoHeap {
    fn address_size(&self) -> usize {
        8
    }

    fn object(&self, _: u64, _: u32) -> Result<Vec<u8>> {
        Err(Error::corrupt("a number has nothing in a heap"))
    }
}

/// Six significant digits, as C's `%g` prints them.
pub(super) fn general(v: f64) -> String {
    if v.is_nan() {
        return if v.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if v.is_infinite() {
        return if v > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{v:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let short = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => s.to_owned(),
    };
    if (-4..6).contains(&exponent) || v == 0.0 {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return short(&format!("{v:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", short(digits), exponent.abs())
}

impl Dump<'_> {
    /// One element; `column` is where a compound or array that needs several lines begins.
    pub(super) fn element(&self, t: &Datatype, bytes: &[u8], column: usize) -> Result<String> {
        let b = bytes.get(..t.size as usize).ok_or_else(|| Error::corrupt("an element is cut short"))?;
        let pad = |n: usize| " ".repeat(n);
        Ok(match &t.class {
            Class::Compound { members } => {
                let mut parts = Vec::with_capacity(members.len());
                for m in members {
                    let at = usize::try_from(m.offset).ok().and_then(|o| b.get(o..));
                    let at = at.ok_or_else(|| Error::corrupt("a member lies outside its compound"))?;
                    parts.push(format!("{}{}", pad(column + 3), self.element(&m.datatype, at, column + 3)?));
                }
                format!("{{\n{}\n{}}}", parts.join(",\n"), pad(column))
            }
            Class::Array { dims, base } => {
                let row = dims.last().and_then(|d| usize::try_from(*d).ok()).unwrap_or(1).max(1);
                let items = self.elements(base, b, column)?;
                let rows: Vec<String> = items.chunks(row).map(|r| r.join(", ")).collect();
                format!("[ {} ]", rows.join(&format!(",\n{}", pad(column + 3))))
            }
            Class::Enum { base, members } => match members.iter().find(|(_, v)| v == b) {
                Some((name, _)) => escape(name),
                None => number_text(base, b),
            },
            Class::String { padding, .. } => quoted_string(b, *padding),
            Class::Opaque { .. } => b.iter().map(|c| format!("{c:02x}")).collect::<Vec<_>>().join(":"),
            Class::Complex { .. } | Class::VarString { .. } => match decode(t, b, &FileHeap(self.file))? {
                Value::Text(_) if b.iter().all(|c| *c == 0) => "NULL".to_owned(),
                Value::Text(text) => quoted(text.as_bytes()),
                Value::Complex(re, im) => {
                    let im = plain(&im);
                    let sign = if im.starts_with('-') { "" } else { "+" };
                    format!("{}{sign}{im}i", plain(&re))
                }
                other => other.to_string(),
            },
            Class::VarLen { base } => {
                let items = tensilo_hdf5::read::vlen::resolve(self.file, b, t)?;
                format!("({})", self.elements(base, &items, column)?.join(", "))
            }
            Class::Reference(kind) => self.reference(&self.file.reference(b, *kind)?),
            _ => number_text(t, b),
        })
    }

    fn elements(&self, base: &Datatype, bytes: &[u8], column: usize) -> Result<Vec<String>> {
        bytes.chunks_exact((base.size as usize).max(1)).map(|e| self.element(base, e, column)).collect()
    }

    fn reference(&self, reference: &Reference) -> String {
        let object = |address| {
            let word = match self.file.dereference(&Reference::Object(address)) {
                Ok(Some(crate::hdf5::Object::Group(_))) => "GROUP",
                Ok(Some(crate::hdf5::Object::Dataset(_))) => "DATASET",
                Ok(Some(_)) => "DATATYPE",
                _ => "OBJECT",
            };
            format!("{word} {}", quoted(&self.names.path(address)))
        };
        match reference {
            Reference::Null => "NULL".to_owned(),
            Reference::Object(address) => object(*address),
            Reference::Region(address, region) => format!("{} {}", object(*address), selection(&region.0)),
            Reference::Attribute(address, name) => {
                format!("{} ATTRIBUTE {}", object(*address), quoted(name))
            }
            Reference::Elsewhere(file) => format!("FILE {}", quoted(file)),
            other => format!("{other:?}"),
        }
    }
}

fn plain(v: &Value) -> String {
    match v {
        Value::Float32(v) => general(f64::from(*v)),
        Value::Float64(v) => general(*v),
        other => other.to_string(),
    }
}

/// A string of fixed size: NULs that pad it are shown, those behind a terminator are not.
fn quoted_string(b: &[u8], padding: StringPadding) -> String {
    match padding {
        StringPadding::NullTerminated => quoted(b.split(|c| *c == 0).next().unwrap_or(b)),
        _ => quoted(b),
    }
}

/// The elements that a region selects.
fn selection(s: &StoredSelection) -> String {
    let point = |c: &[u64]| format!("({})", c.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
    match s {
        StoredSelection::None => "{REGION_TYPE NONE}".to_owned(),
        StoredSelection::All => "{REGION_TYPE ALL}".to_owned(),
        StoredSelection::Points { rank, coords } => {
            let points: Vec<String> = coords.chunks_exact((*rank).max(1)).map(point).collect();
            format!("{{REGION_TYPE POINT  {}}}", points.join(", "))
        }
        StoredSelection::Boxes(boxes) => {
            let boxes: Vec<String> =
                boxes.iter().map(|(low, high)| format!("{}-{}", point(low), point(high))).collect();
            format!("{{REGION_TYPE BLOCK  {}}}", boxes.join(", "))
        }
        StoredSelection::Regular(dimensions) => {
            let each = dimensions.iter().map(|d| {
                let text = |n: Option<u64>| n.map_or_else(|| "unlimited".to_owned(), |n| n.to_string());
                format!("{}:{}:{}:{}", d.start, d.stride, text(d.count), text(d.block))
            });
            format!("{{REGION_TYPE REGULAR  {}}}", each.collect::<Vec<_>>().join(", "))
        }
    }
}
