//! From a path to an object: through groups, soft links and external links.

use super::File;
use crate::format::Address;
use crate::object::{self, LinkTarget, ObjectHeader, ObjectKind};
use tensilo_core::{Error, Result};

/// An object that was found but not opened.
#[derive(Debug, Clone)]
pub(super) struct Located {
    pub(super) file: File,
    pub(super) address: Address,
    /// Absolute path in its own file, as far as it is known.
    pub(super) path: Vec<u8>,
}

impl Located {
    pub(super) fn root(file: File) -> Self {
        let address = file.0.space.superblock().root;
        Self { file, address, path: b"/".to_vec() }
    }
}

/// `parent/name`.
pub(super) fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = parent.to_vec();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Names of a path, the last one first; empty ones and `.` mean nothing.
fn names(path: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    path.split(|b| *b == b'/').filter(|n| !n.is_empty() && *n != b".").rev().map(<[u8]>::to_vec)
}

/// Follows a path from `start`, or from the root group where the path begins with `/`.
///
/// # Errors
/// `NotFound` naming the first part that does not exist; `Limit` after too many links in a row.
pub(super) fn resolve(start: Located, path: &[u8]) -> Result<Located> {
    let mut here = if path.starts_with(b"/") { Located::root(start.file) } else { start };
    let mut todo: Vec<Vec<u8>> = names(path).collect();
    let mut links = 0;
    while let Some(name) = todo.pop() {
        let Some(target) = look_up(&here, &name).map_err(|e| e.in_object(text(&here.path)))? else {
            return Err(Error::not_found(format!("no object {:?} in this group", text(&name)))
                .in_object(text(&here.path)));
        };
        let path = join(&here.path, &name);
        if !matches!(target, LinkTarget::Hard(_)) {
            links += 1;
            here.file.0.space.budget().depth(links, "a chain of links")?;
        }
        here = match target {
            LinkTarget::Hard(address) => Located { file: here.file, address, path },
            LinkTarget::Soft(target) => {
                todo.extend(names(&target));
                if target.starts_with(b"/") { Located::root(here.file) } else { here }
            }
            LinkTarget::External { file, object } => {
                let opened = here.file.named(&file).map_err(|e| e.in_object(text(&path)))?;
                todo.extend(names(&object));
                Located::root(opened)
            }
            LinkTarget::UserDefined { class, .. } => {
                return Err(Error::unsupported(format!("a user-defined link of class {class}"))
                    .in_object(text(&path)));
            }
        };
    }
    Ok(here)
}

/// Where a name leads in the group that is here.
fn look_up(here: &Located, name: &[u8]) -> Result<Option<LinkTarget>> {
    let (space, names) = (&here.file.0.space, &here.file.0.names);
    if let Some(known) = names.find(here.address, name) {
        return Ok(known);
    }
    let header = ObjectHeader::load(space, here.address)?;
    if header.kind()? != ObjectKind::Group {
        return Err(Error::not_found(format!("no object {:?} in something that is no group", text(name))));
    }
    names.count(space, &header);
    object::lookup(space, &header, name).map(|link| link.map(|l| l.target))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
