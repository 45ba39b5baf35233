//! Are two elements the same? Numbers by value and [`Tolerance`], text without its padding, what lies in a heap by what is there, references by the objects they lead to.

use super::data::Side;
use super::{References, Tolerance};
use crate::value::decode;
use crate::view::FileHeap;
use tensilo_core::{Error, Monitor, Result};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::format::datatype::{Class, Datatype};
use tensilo_hdf5::read::{trim, vlen};

/// Deepest nesting of types that is followed.
const DEEPEST: u32 = 64;

/// How two elements are compared.
pub(super) struct Elements<'a> {
    pub(super) first: &'a Side<'a>,
    pub(super) second: &'a Side<'a>,
    pub(super) refs: &'a References,
    pub(super) tolerance: Tolerance,
    pub(super) monitor: &'a dyn Monitor,
}

impl Elements<'_> {
    pub(super) fn same(&self, a: &[u8], b: &[u8]) -> Result<bool> {
        self.of((self.first.datatype, a), (self.second.datatype, b), 0)
    }

    fn of(&self, (s, a): (&Datatype, &[u8]), (t, b): (&Datatype, &[u8]), level: u32) -> Result<bool> {
        if level > DEEPEST {
            return Err(Error::limit("types are nested too deep to be compared"));
        }
        let part = |x: &Datatype, bytes: &'_ [u8], at: u64| -> Result<std::ops::Range<usize>> {
            let start = usize::try_from(at).ok();
            let range = start.and_then(|s| Some(s..s.checked_add(x.size as usize)?));
            range
                .filter(|r| r.end <= bytes.len())
                .ok_or_else(|| Error::corrupt("a part lies outside its element"))
        };
        match (&s.class, &t.class) {
            (Class::String { padding: p, .. }, Class::String { padding: q, .. }) => {
                Ok(trim(a, *p) == trim(b, *q))
            }
            (Class::VarString { .. }, _) => {
                Ok(vlen::resolve(self.first.file, a, s)? == vlen::resolve(self.second.file, b, t)?)
            }
            (Class::VarLen { base: p }, Class::VarLen { base: q }) => {
                let (x, y) = (vlen::resolve(self.first.file, a, s)?, vlen::resolve(self.second.file, b, t)?);
                self.lists((p, &x), (q, &y), level)
            }
            (Class::Array { base: p, .. }, Class::Array { base: q, .. })
            | (Class::Complex { base: p }, Class::Complex { base: q }) => self.lists((p, a), (q, b), level),
            (Class::Enum { base: p, .. }, Class::Enum { base: q, .. }) => {
                // Names have no distance.
                let exact = Elements { tolerance: Tolerance::Exact, ..*self };
                exact.of((p, a), (q, b), level + 1)
            }
            (Class::Compound { members: x }, Class::Compound { members: y }) => {
                for (x, y) in x.iter().zip(y) {
                    let (r, w) = (part(&x.datatype, a, x.offset)?, part(&y.datatype, b, y.offset)?);
                    if !self.of((&x.datatype, &a[r]), (&y.datatype, &b[w]), level + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Class::Reference(_), _) => self.references(a, b),
            _ => {
                let x = decode(s, a, &FileHeap(self.first.file))?;
                let y = decode(t, b, &FileHeap(self.second.file))?;
                let numbers = matches!(s.class, Class::Integer { .. } | Class::Float { .. });
                let tolerance = if numbers { self.tolerance } else { Tolerance::Exact };
                Ok(tolerance.same(&x, &y))
            }
        }
    }

    fn lists(&self, (p, a): (&Datatype, &[u8]), (q, b): (&Datatype, &[u8]), level: u32) -> Result<bool> {
        let (x, y) = (a.chunks_exact((p.size as usize).max(1)), b.chunks_exact((q.size as usize).max(1)));
        if x.len() != y.len() {
            return Ok(false);
        }
        for (a, b) in x.zip(y) {
            if !self.of((p, a), (q, b), level + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn references(&self, a: &[u8], b: &[u8]) -> Result<bool> {
        let address = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |n, c| n << 8 | u64::from(*c));
        match (address(a), address(b)) {
            (0, 0) => Ok(true),
            (0, _) | (_, 0) => Ok(false),
            (x, y) => {
                let first = self.first.file.object_at(Address(x), "(referred to)")?;
                let second = self.second.file.object_at(Address(y), "(referred to)")?;
                self.refs.same(&first, &second, self.tolerance, self.monitor)
            }
        }
    }
}
