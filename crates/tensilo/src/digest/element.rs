//! A datatype compiled for the canonical form: how the stored bytes of one element become canonical bytes.
//!
//! Everything of fixed canonical size is a list of [`Leaf`] copies, joined where neighbours are copied alike;
//! what lies in heaps (strings, sequences, references) is followed through [`Referred`].

use super::reference::{self, Target};
use super::{Refs, Trouble};
use tensilo_core::Error;
use tensilo_hdf5::format::datatype::{ByteOrder, Class, Datatype, ReferenceKind};

/// Most elements of an array datatype that are described.
const MAX_ARRAY: u64 = 1 << 26;
/// Most members of compounds inside one array datatype that are described.
const MAX_MEMBERS: u64 = 1 << 22;

/// What an element may point to, outside its own bytes.
pub(super) trait Referred {
    /// Bytes of a stored address.
    fn address_size(&self) -> usize;

    /// Calls `take` with an object of the global heap.
    fn heap_object(
        &self,
        address: u64,
        index: u32,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Trouble>,
    ) -> Result<(), Trouble>;

    /// The extents of the dataset whose header is at this address; `None` when it cannot be opened.
    fn extents(&self, address: u64) -> Option<Vec<u64>>;

    /// The path that stands for an object, when references are shown as paths.
    fn path(&self, address: u64) -> Target<'_>;
}

/// Takes canonical bytes.
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A run of equal units inside an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Leaf {
    offset: usize,
    unit: usize,
    count: usize,
    reversed: bool,
}

impl Leaf {
    fn bytes(self) -> usize {
        self.unit * self.count
    }
}

#[derive(Debug)]
enum Node {
    Fixed(Vec<Leaf>),
    Compound(Vec<(usize, Element)>),
    Array(usize, Box<Element>),
    VarString,
    VarLen(Box<Element>),
    ObjectReference,
    RegionReference,
    StandardReference,
}

/// One compiled datatype.
#[derive(Debug)]
pub(super) struct Element {
    /// Bytes of an element in the file.
    pub stored: usize,
    /// Bytes of an element in the memory of libhdf5 on a 64-bit host.
    pub memory: u64,
    /// Number of separately described parts, `None` when the canonical size varies.
    pub leaves: Option<u64>,
    /// Does the type hold references of any kind?
    pub has_references: bool,
    node: Node,
}

impl Element {
    /// Compiles a datatype.
    ///
    /// # Errors
    /// [`Trouble::Scope`] for array datatypes larger than the canonical form describes.
    pub(super) fn compile(t: &Datatype, refs: Refs) -> Result<Self, Trouble> {
        let stored = t.size as usize;
        let fixed = |reversed: bool| Self {
            stored,
            memory: u64::from(t.size),
            leaves: Some(1),
            has_references: false,
            node: Node::Fixed(vec![if reversed && stored > 1 {
                Leaf { offset: 0, unit: stored, count: 1, reversed: true }
            } else {
                Leaf { offset: 0, unit: 1, count: stored, reversed: false }
            }]),
        };
        let varying = |memory: u64, has_references: bool, node: Node| Self {
            stored,
            memory,
            leaves: None,
            has_references,
            node,
        };
        Ok(match &t.class {
            Class::Integer { order, .. }
            | Class::Float { order, .. }
            | Class::Time { order, .. }
            | Class::Bitfield { order, .. } => fixed(*order == ByteOrder::Big),
            Class::String { .. } | Class::Opaque { .. } => fixed(false),
            Class::Enum { base, .. } => Self { stored, ..Self::compile(base, refs)? },
            Class::Compound { members } => Self::compound(t, members, refs)?,
            Class::Array { dims, base } => Self::array(stored, dims, base, refs)?,
            Class::Complex { base } => {
                let base = Self::compile(base, refs)?;
                Self { stored, ..Self::repeated(2, base) }
            }
            Class::VarString { .. } => varying(8, false, Node::VarString),
            Class::VarLen { base } => {
                let base = Self::compile(base, refs)?;
                varying(16, base.has_references, Node::VarLen(Box::new(base)))
            }
            Class::Reference(ReferenceKind::Object) => {
                let plain = refs == Refs::Address && stored == 8;
                let node = if plain { fixed(false).node } else { Node::ObjectReference };
                Self { stored, memory: 8, leaves: Some(1), has_references: true, node }
            }
            Class::Reference(ReferenceKind::Region) => varying(12, true, Node::RegionReference),
            Class::Reference(_) => varying(64, true, Node::StandardReference),
        })
    }

    fn compound(
        t: &Datatype,
        members: &[tensilo_hdf5::format::datatype::Member],
        refs: Refs,
    ) -> Result<Self, Trouble> {
        let mut memory = i128::from(t.size);
        let mut leaves = Some(0_u64);
        let mut parts = Vec::new();
        for m in members {
            let e = Self::compile(&m.datatype, refs)?;
            memory += i128::from(e.memory) - e.stored as i128;
            leaves = leaves.zip(e.leaves).map(|(a, b)| a.saturating_add(b));
            let offset = usize::try_from(m.offset)
                .ok()
                .filter(|o| o.checked_add(e.stored).is_some_and(|end| end <= t.size as usize));
            let offset =
                offset.ok_or_else(|| Error::corrupt("a compound member reaches past its compound"))?;
            parts.push((offset, e));
        }
        let has_references = parts.iter().any(|(_, e)| e.has_references);
        let node = if parts.iter().all(|(_, e)| matches!(e.node, Node::Fixed(_))) {
            let mut all = Vec::new();
            for (offset, e) in &parts {
                if let Node::Fixed(l) = &e.node {
                    all.extend(l.iter().map(|l| Leaf { offset: l.offset + offset, ..*l }));
                }
            }
            Node::Fixed(merged(&all))
        } else {
            Node::Compound(parts)
        };
        let memory = u64::try_from(memory).unwrap_or(u64::MAX);
        Ok(Self { stored: t.size as usize, memory, leaves, has_references, node })
    }

    fn array(stored: usize, dims: &[u64], base: &Datatype, refs: Refs) -> Result<Self, Trouble> {
        let base = Self::compile(base, refs)?;
        let count = dims.iter().try_fold(1_u64, |n, d| n.checked_mul(*d)).filter(|n| *n <= MAX_ARRAY);
        let Some(count) = count else {
            return Err(Trouble::Scope(format!("array datatype of more than {MAX_ARRAY} elements")));
        };
        let covered = matches!(&base.node, Node::Fixed(l) if l.len() == 1 && l[0].bytes() == base.stored);
        if let Some(n) = base.leaves
            && !(n == 1 && covered)
            && count.saturating_mul(n) > MAX_MEMBERS
        {
            return Err(Trouble::Scope(format!("array datatype of more than {MAX_MEMBERS} members")));
        }
        let count = count as usize;
        if count.checked_mul(base.stored).is_none_or(|n| n > stored) {
            return Err(Error::corrupt("an array datatype's elements reach past its size").into());
        }
        Ok(Self { stored, ..Self::repeated(count, base) })
    }

    /// `count` elements one after the other.
    fn repeated(count: usize, base: Self) -> Self {
        let stored = base.stored.saturating_mul(count);
        let memory = base.memory.saturating_mul(count as u64);
        let one_run = match &base.node {
            Node::Fixed(l) if l.len() == 1 && l[0].bytes() == base.stored => Some(l[0]),
            _ => None,
        };
        let leaves = match (one_run, base.leaves) {
            (Some(_), Some(1)) => Some(1),
            (_, n) => n.map(|n| n.saturating_mul(count as u64)),
        };
        let has_references = base.has_references;
        let node = match one_run {
            Some(l) => Node::Fixed(vec![Leaf { count: l.count * count, ..l }]),
            None => Node::Array(count, Box::new(base)),
        };
        Self { stored, memory, leaves, has_references, node }
    }

    /// Appends the canonical bytes of `bytes.len() / stored` elements.
    ///
    /// # Errors
    /// What following heap ids and references meets.
    pub(super) fn feed(&self, bytes: &[u8], from: &dyn Referred, out: &mut dyn Sink) -> Result<(), Trouble> {
        if let Node::Fixed(leaves) = &self.node
            && let [l] = leaves.as_slice()
            && !l.reversed
            && l.bytes() == self.stored
        {
            out.put(bytes);
            return Ok(());
        }
        for element in bytes.chunks_exact(self.stored.max(1)) {
            self.feed_one(element, from, out)?;
        }
        Ok(())
    }

    fn feed_one(&self, b: &[u8], from: &dyn Referred, out: &mut dyn Sink) -> Result<(), Trouble> {
        match &self.node {
            Node::Fixed(leaves) => {
                for l in leaves {
                    put_leaf(*l, &b[l.offset..l.offset + l.bytes()], out);
                }
                Ok(())
            }
            Node::Compound(members) => {
                for (offset, e) in members {
                    e.feed(&b[*offset..offset + e.stored], from, out)?;
                }
                Ok(())
            }
            Node::Array(count, base) => base.feed(&b[..count * base.stored], from, out),
            Node::VarString => {
                let mut done = false;
                follow(b, 1, from, &mut |_, bytes| {
                    done = true;
                    let s = bytes.split(|c| *c == 0).next().unwrap_or(bytes);
                    put_string(s, out);
                    Ok(())
                })?;
                if !done {
                    put_string(b"", out);
                }
                Ok(())
            }
            Node::VarLen(base) => {
                let mut done = false;
                follow(b, base.stored as u64, from, &mut |n, bytes| {
                    done = true;
                    out.put(&n.to_le_bytes());
                    base.feed(bytes, from, out)
                })?;
                if !done {
                    out.put(&[0; 8]);
                }
                Ok(())
            }
            Node::ObjectReference => {
                reference::put_target(reference::address(b, from.address_size().min(b.len())), from, out);
                Ok(())
            }
            Node::RegionReference => reference::region(b, from, out),
            Node::StandardReference => reference::standard(b, from, out),
        }
    }
}

/// A length as eight bytes, then the bytes.
pub(super) fn put_string(s: &[u8], out: &mut dyn Sink) {
    out.put(&(s.len() as u64).to_le_bytes());
    out.put(s);
}

fn put_leaf(l: Leaf, bytes: &[u8], out: &mut dyn Sink) {
    if !l.reversed {
        return out.put(bytes);
    }
    let mut turned = [0_u8; 512];
    if l.unit <= turned.len() {
        let per = turned.len() / l.unit * l.unit;
        for part in bytes.chunks(per) {
            for (to, unit) in turned.chunks_exact_mut(l.unit).zip(part.chunks_exact(l.unit)) {
                for (t, u) in to.iter_mut().zip(unit.iter().rev()) {
                    *t = *u;
                }
            }
            out.put(&turned[..part.len()]);
        }
    } else {
        for unit in bytes.chunks_exact(l.unit) {
            for b in unit.iter().rev() {
                out.put(&[*b]);
            }
        }
    }
}

/// Takes the number of elements of a sequence, and their stored bytes.
type TakeSequence<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Trouble> + 'a;

/// Follows a stored sequence (u32 length, heap address, u32 index); `take` is not called for a null one.
fn follow(b: &[u8], unit: u64, from: &dyn Referred, take: &mut TakeSequence<'_>) -> Result<(), Trouble> {
    let width = from.address_size();
    let short = || Trouble::from(Error::corrupt("a variable-length element is shorter than a heap id"));
    let n = u64::from(reference::u32_at(b, 0).ok_or_else(short)?);
    let address = b.get(4..4 + width).map(|a| reference::address(a, width)).ok_or_else(short)?;
    let index = reference::u32_at(b, 4 + width).ok_or_else(short)?;
    if address == 0 {
        return Ok(());
    }
    if n == 0 {
        return take(0, &[]);
    }
    let wanted = n * unit;
    from.heap_object(address, index, &mut |bytes| {
        if bytes.len() as u64 != wanted {
            return Err(Error::corrupt(format!(
                "a sequence of {wanted} bytes is stored as a heap object of {} bytes",
                bytes.len()
            ))
            .into());
        }
        take(n, bytes)
    })
}

/// Joins neighbours that are copied alike.
fn merged(leaves: &[Leaf]) -> Vec<Leaf> {
    let mut out: Vec<Leaf> = Vec::new();
    for l in leaves {
        if let Some(last) = out.last_mut()
            && last.offset + last.bytes() == l.offset
            && last.reversed == l.reversed
            && last.unit == l.unit
        {
            last.count += l.count;
        } else if l.bytes() > 0 {
            out.push(*l);
        }
    }
    out
}
