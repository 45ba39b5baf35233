//! All objects, from the root group on: headers, links, attributes, data.

use super::Check;
use crate::format::Address;
use crate::object::{self, ObjectHeader, ObjectKind};
use std::collections::HashSet;
use tensilo_core::Result;

const ATTRIBUTE_NAMES: u8 = 8;
const ATTRIBUTE_ORDER: u8 = 9;

impl Check<'_> {
    /// Checks every object that a chain of hard links leads to.
    pub(super) fn objects(&mut self) -> Result<()> {
        let root = self.space.root();
        let mut seen = HashSet::from([root]);
        let mut todo = vec![(String::from("/"), root)];
        while let Some((path, address)) = todo.pop() {
            self.poll()?;
            let children = self.object(&path, address)?;
            self.space.budget().items(seen.len() as u64, "objects")?;
            let base = if path == "/" { "" } else { &path };
            for (name, address) in children.into_iter().rev() {
                if seen.insert(address) {
                    todo.push((format!("{base}/{}", String::from_utf8_lossy(&name)), address));
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, path: &str, address: Address) -> Result<Vec<super::groups::Child>> {
        self.report.enter(path);
        self.report.summary.objects += 1;
        let space = self.space.clone();
        let at = space.base().saturating_add(address.0);
        let Some(header) = self.structure(ObjectHeader::load(&space, address), at)? else {
            return Ok(Vec::new());
        };
        self.attributes(&header, at)?;
        for checked in [header.comment().map(drop), header.modification_time().map(drop)] {
            self.sound(checked, at)?;
        }
        match self.sound(header.kind(), at)? {
            Some(ObjectKind::Group) => {
                self.sound(header.group_info(), at)?;
                self.links(&header, at)
            }
            Some(ObjectKind::Dataset) => self.dataset(path, &header, at).map(|()| Vec::new()),
            Some(ObjectKind::Datatype) => {
                self.sound(header.datatype(), at)?;
                Ok(Vec::new())
            }
            None => Ok(Vec::new()),
        }
    }

    fn attributes(&mut self, header: &ObjectHeader, at: u64) -> Result<()> {
        let info = self.sound(header.attribute_info(), at)?.flatten();
        if let Some(info) = info {
            if let Some(heap) = info.heap {
                self.fractal_heap(heap)?;
            }
            if let Some(names) = info.names {
                self.tree(names, &[ATTRIBUTE_NAMES])?;
            }
            if let Some(order) = info.order {
                self.tree(order, &[ATTRIBUTE_ORDER])?;
            }
        }
        let space = self.space.clone();
        let Some(list) = self.sound(object::attributes(&space, header), at)? else { return Ok(()) };
        for attribute in list {
            self.report.summary.attributes += 1;
            match attribute {
                Ok(a) if !self.metadata_only => self.values(&a.datatype, &a.data, a.offset)?,
                Ok(_) => {}
                Err(damaged) => {
                    let name = damaged.name.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                    let e = damaged.error.context(format_args!("attribute {name:?}"));
                    self.report.found(&e, at)?;
                }
            }
        }
        Ok(())
    }
}
