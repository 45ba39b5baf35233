//! An index from text: what stands between NumPy's brackets, such as `0:10, :, -1, ..., [1, 5], None`.

use super::numpy::{IndexItem, NumpyIndex};
use crate::error::{Error, Result};
use std::str::FromStr;

/// Lists inside lists inside lists, at most; NumPy has no more dimensions.
const DEEPEST: usize = 64;

impl FromStr for NumpyIndex {
    type Err = Error;

    /// Parses the text between NumPy's brackets; empty text wants everything.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |e: Error| Error::invalid(format!("selection {text:?}: {}", e.message()));
        items(text).and_then(Self::new).map_err(bad)
    }
}

fn items(text: &str) -> Result<Vec<IndexItem>> {
    let mut items = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (item, after) = if rest.starts_with('[') { list(rest)? } else { word(rest)? };
        items.push(item);
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if after.is_empty() => after,
            None => return Err(Error::invalid("',' expected behind ']'")),
        };
    }
    Ok(items)
}

/// An item up to the next comma.
fn word(text: &str) -> Result<(IndexItem, &str)> {
    let (word, _) = text.split_once(',').unwrap_or((text, ""));
    let after = &text[word.len()..];
    let item = match word.trim() {
        "..." | "Ellipsis" => Some(IndexItem::Ellipsis),
        "None" | "newaxis" | "np.newaxis" => Some(IndexItem::NewAxis),
        "True" => Some(IndexItem::Mask { shape: Vec::new(), values: vec![true] }),
        "False" => Some(IndexItem::Mask { shape: Vec::new(), values: vec![false] }),
        word if word.contains(':') => slice(word),
        word => number(word).map(IndexItem::Integer),
    };
    let item = item.ok_or_else(|| Error::invalid("not an integer, slice, list, None or '...'"))?;
    Ok((item, after))
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn slice(text: &str) -> Option<IndexItem> {
    let mut parts = text.split(':').map(|p| match p.trim() {
        "" => Some(None),
        n => number(n).map(Some),
    });
    let (start, stop, step) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(None))?);
    parts.next().is_none().then_some(IndexItem::Slice { start, stop, step: step.unwrap_or(1) })
}

/// Numbers or truth values in brackets, which may be nested.
#[derive(Default)]
struct Nested {
    /// Extents found so far, by depth.
    shape: Vec<Option<u64>>,
    /// The depth of values.
    leaves: Option<usize>,
    numbers: Vec<i64>,
    truths: Vec<bool>,
}

fn list(text: &str) -> Result<(IndexItem, &str)> {
    let mut nested = Nested::default();
    let after = nested.level(text, 0)?;
    let shape: Vec<u64> = nested.shape.iter().map(|n| n.unwrap_or(0)).collect();
    let item = if nested.truths.is_empty() {
        IndexItem::Array { shape, values: nested.numbers }
    } else if nested.numbers.is_empty() {
        IndexItem::Mask { shape, values: nested.truths }
    } else {
        return Err(Error::invalid("a list holds integers or truth values, not both"));
    };
    Ok((item, after))
}

impl Nested {
    /// Reads one bracket; `text` begins with it. Returns what follows.
    fn level<'t>(&mut self, text: &'t str, depth: usize) -> Result<&'t str> {
        if depth >= DEEPEST {
            return Err(Error::invalid("lists are nested too deep"));
        }
        if self.shape.len() <= depth {
            self.shape.push(None);
        }
        let mut rest = text.strip_prefix('[').unwrap_or(text).trim_start();
        let mut found = 0;
        loop {
            if let Some(after) = rest.strip_prefix(']') {
                rest = after;
                break;
            }
            rest =
                if rest.starts_with('[') { self.level(rest, depth + 1)? } else { self.value(rest, depth)? };
            found += 1;
            rest = rest.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(more) => more.trim_start(),
                None if rest.starts_with(']') => rest,
                None => return Err(Error::invalid("'[' is not closed")),
            };
        }
        match self.shape[depth].replace(found) {
            Some(other) if other != found => {
                Err(Error::invalid("lists inside a list have different lengths"))
            }
            _ => Ok(rest),
        }
    }

    fn value<'t>(&mut self, text: &'t str, depth: usize) -> Result<&'t str> {
        let end = text.find([',', ']']).ok_or_else(|| Error::invalid("'[' is not closed"))?;
        if *self.leaves.get_or_insert(depth) != depth {
            return Err(Error::invalid("values and lists stand side by side in a list"));
        }
        match text[..end].trim() {
            "True" => self.truths.push(true),
            "False" => self.truths.push(false),
            word => {
                let n =
                    number(word).ok_or_else(|| Error::invalid("a list holds integers or truth values"))?;
                self.numbers.push(n);
            }
        }
        Ok(&text[end..])
    }
}
