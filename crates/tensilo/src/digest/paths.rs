//! What references lead to: heap objects, extents of datasets, and the paths of objects.

use super::element::Referred;
use super::reference::Target;
use super::{Refs, Trouble};
use crate::hdf5::{File, Object};
use std::borrow::Cow;
use std::collections::HashMap;
use tensilo_core::{Monitor, Progress, Result};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::object::LinkTarget;

/// For each object, by the address of its header: the address of the group and the name of the link that lead to it
/// first; the root has no group.
type Found = HashMap<u64, (Option<u64>, Vec<u8>)>;

/// An open file, as far as elements may point into it.
pub(super) struct Pointers<'a> {
    file: &'a File,
    /// `None` when references are shown as addresses.
    found: Option<Found>,
}

impl<'a> Pointers<'a> {
    pub(super) fn new(file: &'a File, refs: Refs, monitor: &dyn Monitor) -> Result<Self> {
        let found = match refs {
            Refs::Address => None,
            Refs::Path => Some(name_all(file, monitor)?),
        };
        Ok(Self { file, found })
    }
}

/// The traversal of the digest without a look at data: every object with the link that leads to it first.
fn name_all(file: &File, monitor: &dyn Monitor) -> Result<Found> {
    let mut found = Found::new();
    let mut todo = vec![(file.space().root(), None, Vec::new())];
    while let Some((address, parent, name)) = todo.pop() {
        monitor.poll(&Progress { stage: "naming objects", done: found.len() as u64, total: 0 })?;
        if found.contains_key(&address.0) {
            continue;
        }
        let Ok(object) = file.object_at(address, "") else { continue };
        found.insert(address.0, (parent, name));
        if let Object::Group(group) = object
            && let Ok(mut links) = group.links()
        {
            links.sort_by(|a, b| b.name().cmp(a.name()));
            for link in links {
                if let LinkTarget::Hard(target) = link.target() {
                    todo.push((*target, Some(address.0), link.name().to_vec()));
                }
            }
        }
    }
    Ok(found)
}

impl Referred for Pointers<'_> {
    fn address_size(&self) -> usize {
        usize::from(self.file.space().sizes().offset)
    }

    fn heap_object(
        &self,
        address: u64,
        index: u32,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        take(&self.file.space().global_heap_object(Address(address), index)?)
    }

    fn extents(&self, address: u64) -> Option<Vec<u64>> {
        match self.file.object_at(Address(address), "").ok()? {
            Object::Dataset(dataset) => Some(dataset.shape().to_vec()),
            _ => None,
        }
    }

    fn path(&self, address: u64) -> Target<'_> {
        let Some(found) = &self.found else { return Target::Address };
        if address == 0 {
            return Target::Path(Cow::Borrowed(b""));
        }
        let mut names = Vec::new();
        let mut at = Some(address);
        while let Some(address) = at {
            let Some((parent, name)) = found.get(&address) else {
                return Target::Path(Cow::Borrowed(b"?"));
            };
            names.push(name.as_slice());
            at = *parent;
        }
        names.reverse();
        let path = names.join(&b'/');
        Target::Path(if path.is_empty() { Cow::Borrowed(b"/") } else { Cow::Owned(path) })
    }
}
