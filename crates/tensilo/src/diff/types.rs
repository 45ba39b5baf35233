//! Which types can be compared element by element: those whose values mean the same kind of thing, whatever their
//! width or byte order.

use crate::digest::type_name;
use tensilo_hdf5::format::datatype::{Class, Datatype, ReferenceKind};

/// A type as people read it.
pub fn name(t: &Datatype) -> String {
    type_name(t)
}

/// Can values of the two be compared?
pub fn comparable(a: &Datatype, b: &Datatype) -> bool {
    match (&a.class, &b.class) {
        (Class::Integer { signed: x, .. }, Class::Integer { signed: y, .. }) => x == y,
        (Class::Float { .. }, Class::Float { .. })
        | (Class::Bitfield { .. }, Class::Bitfield { .. })
        | (Class::String { .. }, Class::String { .. })
        | (Class::VarString { .. }, Class::VarString { .. }) => true,
        (Class::Time { .. }, Class::Time { .. }) | (Class::Opaque { .. }, Class::Opaque { .. }) => a == b,
        (Class::Compound { members: x }, Class::Compound { members: y }) => {
            x.len() == y.len()
                && x.iter().zip(y).all(|(x, y)| x.name == y.name && comparable(&x.datatype, &y.datatype))
        }
        (Class::Enum { base: p, members: x }, Class::Enum { base: q, members: y }) => {
            // Of the same width, names must stand for the same values; else only the names can be held together.
            let names = x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x.0 == y.0);
            names
                && (p.size != q.size || x.iter().zip(y).all(|(x, y)| x.1 == y.1) || p != q)
                && comparable(p, q)
        }
        (Class::Array { dims: x, base: p }, Class::Array { dims: y, base: q }) => x == y && comparable(p, q),
        (Class::VarLen { base: p }, Class::VarLen { base: q })
        | (Class::Complex { base: p }, Class::Complex { base: q }) => comparable(p, q),
        // What other references lead to is not followed.
        (Class::Reference(ReferenceKind::Object), Class::Reference(ReferenceKind::Object)) => true,
        _ => false,
    }
}

/// Do equal stored bytes mean equal values in any file?
pub fn stands_alone(t: &Datatype) -> bool {
    match &t.class {
        Class::VarString { .. } | Class::VarLen { .. } | Class::Reference(_) => false,
        Class::Compound { members } => members.iter().all(|m| stands_alone(&m.datatype)),
        Class::Array { base, .. } | Class::Enum { base, .. } | Class::Complex { base } => stands_alone(base),
        _ => true,
    }
}
