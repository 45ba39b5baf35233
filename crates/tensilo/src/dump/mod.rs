//! A whole file, or one object, as text: the data description language that `h5dump` prints, in its layout.
//!
//! It differs from h5dump where that loses something: text is printed as UTF-8, and references are printed in place of
//! the whole data that they lead to.
//!
//! ```
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! use tensilo::core::Quiet;
//! use tensilo::dump::{DumpOptions, dump};
//! let file = tensilo::hdf5::File::open("examples/family/demo_master.h5")?;
//! let options = DumpOptions { header_only: true, ..DumpOptions::default() };
//! let mut text = String::new();
//! dump(&file, &options, &Quiet, &mut |line| {
//!     text.push_str(line);
//!     text.push('\n');
//!     Ok(())
//! })?;
//! assert!(text.contains("GROUP \"entry\" {"));
//! # Ok::<(), tensilo::Error>(())
//! ```

mod data;
mod datatype;
mod element;
mod names;

use crate::hdf5::{Attribute, DamagedAttribute, Dataset, File, Group, LinkInfo, NumpyIndex, Object};
use names::Names;
use std::collections::HashSet;
use tensilo_core::{Monitor, Progress, Result};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::format::message::dataspace::Dataspace;
use tensilo_hdf5::object::LinkTarget;

pub use datatype::type_lines;

/// What is printed.
#[derive(Debug, Clone, Default)]
pub struct DumpOptions {
    /// Print no data, neither of datasets nor of attributes.
    pub header_only: bool,
    /// Print data of attributes, but not of datasets.
    pub attributes_only: bool,
    /// Which object; without it the whole file.
    pub path: Option<String>,
    /// Which elements of a dataset.
    pub select: Option<NumpyIndex>,
}

/// Prints the file line by line.
///
/// # Errors
/// `NotFound` for an object that is not there, `InvalidArgument` for a selection that does not fit, and what `line` or
/// the monitor answer. Damage inside is printed in its place, as a comment.
pub fn dump(
    file: &File,
    options: &DumpOptions,
    monitor: &dyn Monitor,
    line: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    let names = Names::new(file, monitor)?;
    let name = file.path().map_or_else(String::new, |p| p.display().to_string());
    let mut dump = Dump { file, options, monitor, line, names, seen: HashSet::new(), depth: 0 };
    dump.put(&format!("HDF5 {} {{", quoted(name.as_bytes())))?;
    match &options.path {
        None => dump.group(&file.root()?, b"/")?,
        Some(path) => {
            let object = file.object(path)?;
            dump.object(&object, path.as_bytes())?;
        }
    }
    dump.put("}")
}

struct Dump<'a> {
    file: &'a File,
    options: &'a DumpOptions,
    monitor: &'a dyn Monitor,
    line: &'a mut dyn FnMut(&str) -> Result<()>,
    names: Names,
    seen: HashSet<Address>,
    depth: usize,
}

impl Dump<'_> {
    fn put(&mut self, text: &str) -> Result<()> {
        let indent = 3 * self.depth;
        (self.line)(&format!("{:indent$}{text}", ""))
    }

    fn open(&mut self, text: &str) -> Result<()> {
        self.put(&format!("{text} {{"))?;
        self.depth += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.depth -= 1;
        self.put("}")
    }

    /// What cannot be read, in its place.
    fn damaged(&mut self, e: &tensilo_core::Error) -> Result<()> {
        use tensilo_core::ErrorKind::{Cancelled, Io, Missing};
        if matches!(e.kind(), Cancelled | Io | Missing) {
            return Err(tensilo_core::Error::new(e.kind(), e.message()));
        }
        self.put(&format!("# unreadable: {}", escape(e.message().as_bytes())))
    }

    fn object(&mut self, object: &Object, name: &[u8]) -> Result<()> {
        self.monitor.poll(&Progress { stage: "dumping", done: self.seen.len() as u64, total: 0 })?;
        let word = match object {
            Object::Group(_) => "GROUP",
            Object::Dataset(_) => "DATASET",
            _ => "DATATYPE",
        };
        if self.seen.contains(&object.address()) {
            let path = self.names.path(object.address());
            self.open(&format!("{word} {}", quoted(name)))?;
            self.put(&format!("HARDLINK {}", quoted(&path)))?;
            return self.close();
        }
        match object {
            Object::Group(g) => self.group(g, name),
            Object::Dataset(d) => self.dataset(d, name),
            Object::Datatype(t) => {
                self.seen.insert(t.address());
                let lines = type_lines(t.datatype());
                self.put(&format!("DATATYPE {} {}", quoted(name), lines[0]))?;
                for l in &lines[1..] {
                    self.put(l)?;
                }
                let attributes = t.attributes();
                self.attributes(attributes)
            }
            other => self.damaged(&tensilo_core::Error::unsupported(format!("an unknown object: {other:?}"))),
        }
    }

    fn group(&mut self, group: &Group, name: &[u8]) -> Result<()> {
        self.seen.insert(group.address());
        self.open(&format!("GROUP {}", quoted(name)))?;
        self.comment(group.header().comment())?;
        self.attributes(group.attributes())?;
        match group.links() {
            Ok(mut links) => {
                links.sort_by(|a, b| a.name().cmp(b.name()));
                for link in &links {
                    self.link(group, link)?;
                }
            }
            Err(e) => self.damaged(&e)?,
        }
        self.close()
    }

    fn link(&mut self, group: &Group, link: &LinkInfo) -> Result<()> {
        let name = quoted(link.name());
        match link.target() {
            LinkTarget::Hard(_) => match group.open_link(link) {
                Ok(object) => return self.object(&object, link.name()),
                Err(e) => {
                    self.open(&format!("OBJECT {name}"))?;
                    self.damaged(&e)?;
                }
            },
            LinkTarget::Soft(target) => {
                self.open(&format!("SOFTLINK {name}"))?;
                self.put(&format!("LINKTARGET {}", quoted(target)))?;
            }
            LinkTarget::External { file, object } => {
                self.open(&format!("EXTERNAL_LINK {name}"))?;
                self.put(&format!("TARGETFILE {}", quoted(file)))?;
                self.put(&format!("TARGETPATH {}", quoted(object)))?;
            }
            LinkTarget::UserDefined { class, .. } => {
                self.open(&format!("USERDEFINED_LINK {name}"))?;
                self.put(&format!("LINKCLASS {class}"))?;
            }
        }
        self.close()
    }

    fn comment(&mut self, comment: Result<Option<Vec<u8>>>) -> Result<()> {
        match comment {
            Ok(Some(text)) => self.put(&format!("COMMENT {}", quoted(&text))),
            Ok(None) => Ok(()),
            Err(e) => self.damaged(&e),
        }
    }

    fn attributes(&mut self, list: Result<Vec<Result<Attribute, DamagedAttribute>>>) -> Result<()> {
        let mut list = match list {
            Ok(list) => list,
            Err(e) => return self.damaged(&e),
        };
        list.sort_by_key(|a| match a {
            Ok(a) => a.name().to_vec(),
            Err(d) => d.name.clone().unwrap_or_default(),
        });
        for attribute in list {
            match attribute {
                Ok(a) => self.attribute(&a)?,
                Err(d) => {
                    self.open(&format!("ATTRIBUTE {}", quoted(d.name.as_deref().unwrap_or(b"?"))))?;
                    self.damaged(&d.error)?;
                    self.close()?;
                }
            }
        }
        Ok(())
    }

    fn attribute(&mut self, a: &Attribute) -> Result<()> {
        self.open(&format!("ATTRIBUTE {}", quoted(a.name())))?;
        self.datatype(a.datatype(), a.data().committed)?;
        self.dataspace(a.dataspace())?;
        if !self.options.header_only {
            self.open("DATA")?;
            self.depth -= 1;
            let shape = a.shape().to_vec();
            data::print(self, a.datatype(), a.read_bytes(), &shape)?;
            self.put("}")?;
        }
        self.close()
    }

    fn datatype(&mut self, t: &crate::hdf5::Datatype, committed: Option<Address>) -> Result<()> {
        if let Some(path) = committed.map(|a| self.names.path(a)).filter(|p| p != b"?") {
            return self.put(&format!("DATATYPE  {}", quoted(&path)));
        }
        let lines = type_lines(t);
        self.put(&format!("DATATYPE  {}", lines[0]))?;
        lines[1..].iter().try_for_each(|l| self.put(l))
    }

    fn dataspace(&mut self, space: &Dataspace) -> Result<()> {
        let text = match space {
            Dataspace::Null => "NULL".to_owned(),
            Dataspace::Scalar => "SCALAR".to_owned(),
            Dataspace::Simple { dims, max } => {
                let now: Vec<String> = dims.iter().map(u64::to_string).collect();
                let most =
                    max.iter().map(|m| m.map_or_else(|| "H5S_UNLIMITED".to_owned(), |m| m.to_string()));
                format!("SIMPLE {{ ( {} ) / ( {} ) }}", now.join(", "), most.collect::<Vec<_>>().join(", "))
            }
        };
        self.put(&format!("DATASPACE  {text}"))
    }

    fn dataset(&mut self, d: &Dataset, name: &[u8]) -> Result<()> {
        self.seen.insert(d.address());
        self.open(&format!("DATASET {}", quoted(name)))?;
        self.comment(d.header().comment())?;
        let committed = d.header().committed_datatype().unwrap_or(None);
        self.datatype(d.datatype(), committed)?;
        self.dataspace(d.dataspace())?;
        if !self.options.header_only && !self.options.attributes_only {
            self.data(d)?;
        }
        self.attributes(d.attributes())?;
        self.close()
    }
}

/// Text in quotes, what cannot be printed escaped.
fn quoted(text: &[u8]) -> String {
    format!("\"{}\"", escape(text))
}

/// Text as it stands between quotes: control characters and bytes that are no UTF-8 escaped.
fn escape(text: &[u8]) -> String {
    let mut out = String::new();
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if c.is_control() => {
                    let mut utf8 = [0; 4];
                    for b in c.encode_utf8(&mut utf8).bytes() {
                        out.push_str(&format!("\\{b:03o}"));
                    }
                }
                c => out.push(c),
            }
        }
        for b in chunk.invalid() {
            out.push_str(&format!("\\{b:03o}"));
        }
    }
    out
}
