//! Values of variable length: what they refer to in the global heap must be there, and long enough.

use super::Check;
use crate::format::datatype::{Class, Datatype};
use tensilo_core::Error;
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

/// Does an element of this type hold something that lies in a global heap?
pub(super) fn has_heap(t: &Datatype) -> bool {
    match &t.class {
        Class::VarLen { .. } | Class::VarString { .. } => true,
        Class::Array { base, .. } => has_heap(base),
        Class::Compound { members } => members.iter().any(|m| has_heap(&m.datatype)),
        _ => false,
    }
}

impl Check<'_> {
    /// Follows all elements of `data`, whose first byte is at `at`, into the heap.
    pub(super) fn values(&mut self, t: &Datatype, data: &[u8], at: u64) -> Result<()> {
        if has_heap(t) { self.elements(t, data, at, 0) } else { Ok(()) }
    }

    fn elements(&mut self, t: &Datatype, data: &[u8], at: u64, depth: u64) -> Result<()> {
        let size = (t.size as usize).max(1);
        for (i, element) in data.chunks_exact(size).enumerate() {
            if i % 4096 == 4095 {
                self.poll()?;
            }
            self.element(t, element, at.saturating_add((i * size) as u64), depth)?;
        }
        Ok(())
    }

    fn element(&mut self, t: &Datatype, element: &[u8], at: u64, depth: u64) -> Result<()> {
        match &t.class {
            Class::Array { base, .. } if has_heap(base) => self.elements(base, element, at, depth),
            Class::Compound { members } => {
                for m in members.iter().filter(|m| has_heap(&m.datatype)) {
                    let start = usize::try_from(m.offset).unwrap_or(usize::MAX);
                    let end = start.saturating_add(m.datatype.size as usize);
                    let Some(part) = element.get(start..end) else { continue };
                    self.element(&m.datatype, part, at.saturating_add(m.offset), depth)?;
                }
                Ok(())
            }
            Class::VarString { .. } => self.sequence(None, element, at, depth),
            Class::VarLen { base } => self.sequence(Some(base), element, at, depth),
            _ => Ok(()),
        }
    }

    fn sequence(&mut self, base: Option<&Datatype>, id: &[u8], at: u64, depth: u64) -> Result<()> {
        let space = self.space.clone();
        let mut r = FieldReader::new(id, at, "variable-length element");
        let mut place = || Ok((r.u32()?, space.sizes().address(&mut r)?, r.u32()?));
        let Some((count, address, index)) = self.sound(place(), at)? else { return Ok(()) };
        let Some(address) = address.filter(|a| a.0 != 0 && count > 0) else { return Ok(()) };
        self.collection(address)?;
        let object = space.global_heap_object(address, index).and_then(|object| {
            let wanted = u64::from(count).saturating_mul(base.map_or(1, |b| u64::from(b.size)));
            match usize::try_from(wanted).ok().and_then(|n| object.get(..n)) {
                Some(bytes) => Ok((bytes.to_vec(), object.offset())),
                None => Err(Error::corrupt(format!(
                    "variable-length element: {wanted} bytes are needed, the heap's object has {}",
                    object.len()
                ))
                .at(at)),
            }
        });
        let Some((bytes, object_at)) = self.sound(object, at)? else { return Ok(()) };
        match base {
            Some(base) if has_heap(base) => {
                let deeper = space.budget().depth(depth + 1, "variable-length values inside each other");
                match self.sound(deeper, at)? {
                    Some(()) => self.elements(base, &bytes, object_at, depth + 1),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
