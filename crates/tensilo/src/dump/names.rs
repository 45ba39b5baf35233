//! The first path that leads to each object, in the order in which the dump walks.

use crate::hdf5::{File, Object};
use std::collections::HashMap;
use tensilo_core::{Monitor, Progress, Result};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::object::LinkTarget;

/// Paths by the address of the object header.
pub(super) struct Names(HashMap<Address, Vec<u8>>);

impl Names {
    pub(super) fn new(file: &File, monitor: &dyn Monitor) -> Result<Self> {
        let mut found = HashMap::new();
        let mut todo = vec![(file.space().root(), b"/".to_vec())];
        while let Some((address, path)) = todo.pop() {
            monitor.poll(&Progress { stage: "naming objects", done: found.len() as u64, total: 0 })?;
            if found.contains_key(&address) {
                continue;
            }
            file.space().budget().items(found.len() as u64, "objects")?;
            found.insert(address, path.clone());
            let Ok(Object::Group(group)) = file.object_at(address, "") else { continue };
            let Ok(mut links) = group.links() else { continue };
            links.sort_by(|a, b| b.name().cmp(a.name()));
            let base = if path == b"/" { Vec::new() } else { path };
            for link in links {
                if let LinkTarget::Hard(target) = link.target() {
                    todo.push((*target, [&base, link.name()].join(&b'/')));
                }
            }
        }
        Ok(Self(found))
    }

    /// The path of an object, `?` where no link leads to it.
    pub(super) fn path(&self, address: Address) -> Vec<u8> {
        self.0.get(&address).cloned().unwrap_or_else(|| b"?".to_vec())
    }
}
