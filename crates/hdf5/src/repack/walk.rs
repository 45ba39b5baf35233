//! Everything that is in a file, in the order in which it will be made.

use crate::format::Address;
use crate::object::LinkTarget;
use crate::read::{File, Object};
use std::collections::BTreeMap;
use tensilo_core::Result;

/// Something to be made.
pub(super) enum Entry {
    Object { path: Vec<u8>, object: Object },
    Hard { path: Vec<u8>, to: Vec<u8> },
    Soft { path: Vec<u8>, to: Vec<u8> },
    External { path: Vec<u8>, file: Vec<u8>, object: Vec<u8> },
    User { path: Vec<u8>, class: u8, data: Vec<u8> },
}

/// The objects and links of a file.
pub(super) struct Walk {
    pub(super) entries: Vec<Entry>,
    /// For each object, the first path that leads to it.
    pub(super) paths: BTreeMap<Address, Vec<u8>>,
    /// Groups that number their links, and the names in that order.
    pub(super) ordered: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl Walk {
    /// Visits all objects that hard links lead to from `top` on, each once, parents before children; `path` is
    /// that of `top` in the new file.
    pub(super) fn of(source: &File, top: Object, path: &[u8]) -> Result<Self> {
        let mut walk = Self { entries: Vec::new(), paths: BTreeMap::new(), ordered: Vec::new() };
        walk.paths.insert(top.address(), path.to_vec());
        let mut waiting = vec![(path.to_vec(), top)];
        let mut visited = 0_u64;
        while let Some((path, object)) = waiting.pop() {
            visited += 1;
            source.space().budget().items(visited, "objects")?;
            if let Object::Group(group) = &object {
                let mut links = group.links()?;
                if group.header().link_info()?.is_some_and(|info| info.tracked) {
                    links.sort_by_key(|l| l.0.creation_order);
                    walk.ordered.push((path.clone(), links.iter().map(|l| l.name().to_vec()).collect()));
                }
                let mut children = Vec::new();
                for link in &links {
                    let mut here = path.clone();
                    if here.as_slice() != b"/" {
                        here.push(b'/');
                    }
                    here.extend_from_slice(link.name());
                    let entry = match link.target() {
                        LinkTarget::Hard(address) => {
                            if let Some(to) = walk.paths.get(address) {
                                Entry::Hard { path: here, to: to.clone() }
                            } else {
                                walk.paths.insert(*address, here.clone());
                                let object = group.open_link(link)?;
                                children.push((here, object));
                                continue;
                            }
                        }
                        LinkTarget::Soft(to) => Entry::Soft { path: here, to: to.clone() },
                        LinkTarget::External { file, object } => {
                            Entry::External { path: here, file: file.clone(), object: object.clone() }
                        }
                        LinkTarget::UserDefined { class, data } => {
                            Entry::User { path: here, class: *class, data: data.clone() }
                        }
                    };
                    walk.entries.push(entry);
                }
                waiting.extend(children.into_iter().rev());
            }
            walk.entries.push(Entry::Object { path, object });
        }
        Ok(walk)
    }
}
