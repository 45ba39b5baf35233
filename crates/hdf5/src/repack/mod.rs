//! Repacking: a whole file written again, under another bound or with other filters, without its garbage.
//!
//! Layouts, chunk extents, creation order, fill values, links and attributes are kept. Chunks whose filters stay
//! the same are copied as they are stored; other ones are decoded and encoded once. References lead to the
//! copies of the objects they led to, and variable-length data moves into new heaps.

mod change;
mod dataset;
mod pieces;
mod settings;
mod translate;
mod walk;

use crate::format::Address;
use crate::read::{Attribute, DamagedAttribute, File, Object};
use crate::write::{FileWriter, Tracking, Value, normal};
pub use change::{Change, NewLayout, RepackOptions};
pub use settings::like;
use std::collections::BTreeMap;
use tensilo_core::{Error, Result};
use translate::Translator;
use walk::{Entry, Walk};

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repacked {
    /// Groups, the root included.
    pub groups: u64,
    /// Datasets.
    pub datasets: u64,
    /// Committed datatypes.
    pub datatypes: u64,
    /// Chunks copied as they were stored.
    pub chunks_copied: u64,
    /// Chunks decoded and encoded again.
    pub chunks_encoded: u64,
    /// References to objects that no link leads to; they become null references.
    pub dangling: u64,
}

/// Writes all objects of `source` into a new file.
///
/// ```no_run
/// use tensilo_core::io::SystemDisk;
/// use tensilo_hdf5::{read::File, repack::{RepackOptions, repack}, write::{Bound, FileWriter, WriteOptions}};
/// let source = File::open("old.h5")?;
/// let options = WriteOptions::default().bound(Bound::V110);
/// let mut w = FileWriter::create(SystemDisk::shared(), "new.h5", options)?;
/// repack(&source, &mut w, &RepackOptions::default())?;
/// w.finish()?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` for a damaged source, `Unsupported` for what the bound (or this version) cannot write, errors of
/// the disk. The writer must not be finished after an error.
pub fn repack(source: &File, writer: &mut FileWriter<'_>, options: &RepackOptions) -> Result<Repacked> {
    let root = Object::Group(source.root()?);
    all(source, Walk::of(source, root, b"/")?, writer, options)
}

/// Writes one object of `source`, a group with all that hard links lead to from there, as `path` of the new file.
///
/// References to objects that are not copied become null; committed datatypes outside become plain ones.
///
/// # Errors
/// As [`repack`]; `NotFound` without the object, `AlreadyExists` when something has that path.
pub fn copy_object(
    source: &File,
    object: impl AsRef<[u8]>,
    writer: &mut FileWriter<'_>,
    path: impl AsRef<[u8]>,
    options: &RepackOptions,
) -> Result<Repacked> {
    let path = normal(path.as_ref());
    if path.is_empty() {
        return Err(Error::invalid("a copy needs a name of its own"));
    }
    let top = source.object(object)?;
    all(source, Walk::of(source, top, &path)?, writer, options)
}

/// Makes all that was found.
fn all(source: &File, walk: Walk, writer: &mut FileWriter<'_>, options: &RepackOptions) -> Result<Repacked> {
    options.check(&walk.entries)?;
    let mut run = Run { source, paths: &walk.paths, writer, options, done: Repacked::default() };
    // What others refer to is made first.
    for entry in &walk.entries {
        run.container(entry)?;
    }
    for entry in &walk.entries {
        run.content(entry)?;
    }
    for entry in &walk.entries {
        run.link(entry)?;
    }
    for entry in &walk.entries {
        run.attributes(entry)?;
    }
    for (group, names) in &walk.ordered {
        run.writer.order_links(group, names)?;
    }
    Ok(run.done)
}

struct Run<'a, 'f> {
    source: &'a File,
    paths: &'a BTreeMap<Address, Vec<u8>>,
    writer: &'a mut FileWriter<'f>,
    options: &'a RepackOptions,
    done: Repacked,
}

/// Which orders the header of an object keeps.
fn tracking(header: &crate::object::ObjectHeader, group: bool) -> Result<Tracking> {
    let links = match header.link_info()? {
        Some(info) if group && info.tracked => Some(info.indexed),
        _ => None,
    };
    // Bits 2 and 3 of a version 2 header's flags: attribute order tracked, and indexed.
    let flags = header.flags();
    let attributes = (header.version >= 2 && flags & 0x04 != 0).then_some(flags & 0x08 != 0);
    Ok(Tracking { links, attributes })
}

impl Run<'_, '_> {
    /// Makes groups and committed datatypes.
    fn container(&mut self, entry: &Entry) -> Result<()> {
        match entry {
            Entry::Object { path, object: Object::Group(g) } => {
                self.done.groups += 1;
                if path.as_slice() != b"/" {
                    self.writer.create_group(path)?;
                }
                self.writer.track(path, tracking(g.header(), true)?)?;
                self.comment(path, g.header())
            }
            Entry::Object { path, object: Object::Datatype(t) } => {
                self.done.datatypes += 1;
                self.writer.commit_datatype(path, t.datatype().clone())?;
                self.writer.track(path, tracking(t.header(), false)?)?;
                self.comment(path, t.header())
            }
            _ => Ok(()),
        }
    }

    fn comment(&mut self, path: &[u8], header: &crate::object::ObjectHeader) -> Result<()> {
        match header.comment()? {
            Some(text) if !text.is_empty() => self.writer.comment(path, text),
            _ => Ok(()),
        }
    }

    /// Makes datasets.
    fn content(&mut self, entry: &Entry) -> Result<()> {
        let Entry::Object { path, object: Object::Dataset(d) } = entry else { return Ok(()) };
        self.done.datasets += 1;
        self.dataset(path, d).map_err(|e| e.in_object(String::from_utf8_lossy(path)))?;
        self.writer.track(path, tracking(d.header(), false)?)?;
        self.comment(path, d.header())
    }

    /// Makes all links but those that objects were made with.
    fn link(&mut self, entry: &Entry) -> Result<()> {
        match entry {
            Entry::Object { .. } => Ok(()),
            Entry::Hard { path, to } => self.writer.hard_link(path, to),
            Entry::Soft { path, to } => self.writer.soft_link(path, to),
            Entry::External { path, file, object } => self.writer.external_link(path, file, object),
            Entry::User { path, class, data } => self.writer.user_link(path, *class, data.clone()),
        }
    }

    fn attributes(&mut self, entry: &Entry) -> Result<()> {
        let Entry::Object { path, object } = entry else { return Ok(()) };
        let mut all: Vec<Attribute> = match object {
            Object::Group(g) => g.attributes()?,
            Object::Dataset(d) => d.attributes()?,
            Object::Datatype(t) => t.attributes()?,
        }
        .into_iter()
        .collect::<Result<_, DamagedAttribute>>()
        .map_err(|damaged| damaged.error.in_object(String::from_utf8_lossy(path)))?;
        all.sort_by_key(|a| a.data().creation_order);
        for a in &all {
            self.attribute(path, a).map_err(|e| {
                e.context(format_args!("attribute {:?}", a.text())).in_object(String::from_utf8_lossy(path))
            })?;
        }
        Ok(())
    }

    fn attribute(&mut self, path: &[u8], a: &Attribute) -> Result<()> {
        let mut data = a.read_bytes().to_vec();
        let mut translator = Translator::new(self.source, self.paths);
        translator.all(a.datatype(), &mut data, self.writer)?;
        self.done.dangling += translator.dangling;
        let value = Value::stored(a.datatype().clone(), a.dataspace().clone(), data)?;
        match a.data().committed.and_then(|address| self.paths.get(&address)) {
            Some(datatype) => self.writer.attribute_of_type(path, a.name(), datatype, value),
            None => self.writer.attribute(path, a.name(), value),
        }
    }
}
