//! The walk: depth first along hard links, parents before children, names in ascending order of their bytes.

use super::data::{self, Hash};
use super::element::Element;
use super::paths::Pointers;
use super::text::{Line, text};
use super::{DigestOptions, Trouble, storage, type_name};
use crate::hdf5::{Dataset, File, Group, LinkInfo, NamedDatatype, Object};
use std::collections::HashMap;
use std::vec::IntoIter;
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::object::{self, AttributeData, LinkTarget, ObjectHeader};

/// A group whose links are being visited.
struct Level {
    path: String,
    links: IntoIter<LinkInfo>,
}

struct Walk<'a> {
    file: &'a File,
    options: &'a DigestOptions,
    pointers: Pointers<'a>,
    monitor: &'a dyn Monitor,
    sink: &'a mut dyn FnMut(&str) -> Result<()>,
    /// Address of an object header, and the path it was described at.
    seen: HashMap<u64, String>,
    objects: u64,
    bad: u64,
}

/// Calls `sink` with all lines but the first and the last; the number of lines, and of bad items.
pub(super) fn run(
    file: &File,
    options: &DigestOptions,
    monitor: &dyn Monitor,
    sink: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<(u64, u64)> {
    let pointers = Pointers::new(file, options.refs, monitor)?;
    let mut walk = Walk { file, options, pointers, monitor, sink, seen: HashMap::new(), objects: 0, bad: 0 };
    let mut levels = Vec::new();
    levels.extend(walk.object(file.space().root(), "/".to_owned())?);
    while let Some(level) = levels.last_mut() {
        let Some(link) = level.links.next() else {
            levels.pop();
            continue;
        };
        let base = if level.path == "/" { "" } else { &level.path };
        let path = format!("{base}/{}", text(link.name()));
        let below = match link.target() {
            LinkTarget::Hard(address) => walk.object(*address, path)?,
            other => {
                walk.link(&path, other)?;
                None
            }
        };
        levels.extend(below);
    }
    Ok((walk.objects, walk.bad))
}

/// Bytes before the first NUL.
fn until_nul(b: &[u8]) -> &[u8] {
    b.split(|c| *c == 0).next().unwrap_or(b)
}

impl Walk<'_> {
    fn emit(&mut self, line: Line) -> Result<()> {
        self.objects += 1;
        (self.sink)(&line.finish())
    }

    fn link(&mut self, path: &str, target: &LinkTarget) -> Result<()> {
        let mut line = Line::new();
        line.string("path", path);
        match target {
            LinkTarget::Soft(to) => line.string("kind", "softlink").string("target", &text(until_nul(to))),
            LinkTarget::External { file, object } => line
                .string("kind", "extlink")
                .string("file", &text(until_nul(file)))
                .string("target", &text(until_nul(object))),
            LinkTarget::UserDefined { class, .. } => {
                line.string("kind", "udlink").number("class", u64::from(*class))
            }
            LinkTarget::Hard(_) => &mut line,
        };
        self.emit(line)
    }

    /// Describes an object; of a group met for the first time, the links to visit next.
    fn object(&mut self, address: Address, path: String) -> Result<Option<Level>> {
        self.monitor.poll(&Progress { stage: "reading structure", done: self.objects, total: 0 })?;
        let mut line = Line::new();
        line.string("path", &path);
        if let Some(first) = self.seen.get(&address.0) {
            line.string("kind", "alias").string("target", first);
            self.emit(line)?;
            return Ok(None);
        }
        let object = match self.file.object_at(address, &path) {
            Ok(object) => object,
            Err(e) => {
                line.string("kind", "object");
                self.bad(Trouble::Error(e), &mut line)?;
                self.emit(line)?;
                return Ok(None);
            }
        };
        self.seen.insert(address.0, path.clone());
        let mut below = None;
        match &object {
            Object::Group(group) => below = self.group(group, path, &mut line)?,
            Object::Dataset(dataset) => self.dataset(dataset, &mut line)?,
            Object::Datatype(datatype) => self.datatype(datatype, &mut line)?,
            other => {
                line.string("kind", "object");
                let e = Error::unsupported(format!("an object of an unknown kind: {other:?}"));
                self.bad(Trouble::Error(e), &mut line)?;
            }
        }
        self.emit(line)?;
        Ok(below)
    }

    /// Counts and appends what went wrong with an item.
    fn bad(&mut self, trouble: Trouble, line: &mut Line) -> Result<()> {
        self.bad += 1;
        trouble.report(line)
    }

    fn group(&mut self, group: &Group, path: String, line: &mut Line) -> Result<Option<Level>> {
        line.string("kind", "group");
        let links = match group.links() {
            Ok(mut links) => {
                line.number("nlinks", links.len() as u64);
                links.sort_by(|a, b| a.name().cmp(b.name()));
                links
            }
            Err(e) => {
                self.bad(Trouble::Error(e), line)?;
                Vec::new()
            }
        };
        self.attributes(group.header(), line)?;
        Ok((!links.is_empty()).then(|| Level { path, links: links.into_iter() }))
    }

    fn datatype(&mut self, datatype: &NamedDatatype, line: &mut Line) -> Result<()> {
        line.string("kind", "datatype");
        match Element::compile(datatype.datatype(), self.options.refs) {
            Ok(_) => {
                line.string("dtype", &type_name(datatype.datatype()));
            }
            Err(trouble) => self.bad(trouble, line)?,
        }
        self.attributes(datatype.header(), line)
    }

    fn dataset(&mut self, dataset: &Dataset, line: &mut Line) -> Result<()> {
        line.string("kind", "dataset");
        match self.data(dataset, line) {
            Ok(hash) => hash.report(line),
            Err(trouble) => self.bad(trouble, line)?,
        }
        self.attributes(dataset.header(), line)
    }

    fn data(&self, dataset: &Dataset, line: &mut Line) -> Result<Hash, Trouble> {
        let element = Element::compile(dataset.datatype(), self.options.refs)?;
        line.string("dtype", &type_name(dataset.datatype()));
        space(dataset.dataspace(), true, line);
        if self.options.storage {
            storage::describe(dataset, &element, &self.pointers, line)?;
        }
        data::dataset(dataset, &element, self.options, &self.pointers, self.monitor)
    }

    fn attributes(&mut self, header: &ObjectHeader, line: &mut Line) -> Result<()> {
        let mut items: Vec<(Vec<u8>, String)> = Vec::new();
        match self.listed(header) {
            Err(e) => {
                let mut item = Line::new();
                self.bad(Trouble::Error(e), &mut item)?;
                items.push((Vec::new(), item.finish()));
            }
            Ok(list) => {
                for attribute in list {
                    let mut item = Line::new();
                    let name = match attribute {
                        Ok(a) => {
                            item.string("name", &text(&a.name));
                            match self.attribute(&a, &mut item) {
                                Ok(hash) => hash.report(&mut item),
                                Err(trouble) => self.bad(trouble, &mut item)?,
                            }
                            a.name
                        }
                        Err((name, e)) => {
                            item.string("name", &text(&name));
                            self.bad(Trouble::Error(e), &mut item)?;
                            name
                        }
                    };
                    items.push((name, item.finish()));
                }
            }
        }
        items.sort_by(|a, b| a.0.cmp(&b.0));
        let items: Vec<String> = items.into_iter().map(|(_, item)| item).collect();
        line.json("attrs", &format!("[{}]", items.join(",")));
        Ok(())
    }

    /// The attributes; an error when one of them has no name, for then they cannot be listed.
    #[expect(clippy::type_complexity, reason = "a list of attributes or of what is wrong with them")]
    fn listed(&self, header: &ObjectHeader) -> Result<Vec<Result<AttributeData, (Vec<u8>, Error)>>> {
        object::attributes(self.file.space(), header)?
            .into_iter()
            .map(|a| match a {
                Ok(a) => Ok(Ok(a)),
                Err(damaged) => match damaged.name {
                    Some(name) => Ok(Err((name, damaged.error))),
                    None => Err(damaged.error),
                },
            })
            .collect()
    }

    fn attribute(&self, a: &AttributeData, item: &mut Line) -> Result<Hash, Trouble> {
        let element = Element::compile(&a.datatype, self.options.refs)?;
        item.string("dtype", &type_name(&a.datatype));
        space(&a.dataspace, false, item);
        let mut hash = Hash::new();
        element.feed(&a.data, &self.pointers, &mut hash)?;
        Ok(hash)
    }
}

fn space(space: &Dataspace, of_dataset: bool, line: &mut Line) {
    match space {
        Dataspace::Null => line.string("space", "null"),
        Dataspace::Scalar => line.string("space", "scalar"),
        Dataspace::Simple { dims, max } => {
            line.string("space", "simple").numbers("shape", dims.iter().copied().map(Some));
            if of_dataset {
                line.numbers("maxshape", max.iter().copied());
            }
            line
        }
    };
}
