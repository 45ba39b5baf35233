//! Are two files, or two objects, the same? Names, kinds, links, attributes, types, shapes and values are compared;
//! how they are stored (layout, chunks, filters, byte order, widths) is not.
//!
//! ```
//! use tensilo::diff::{Finding, diff};
//! use tensilo::hdf5::File;
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! let first = File::open("examples/family/demo_data_000001.h5")?.object("/")?;
//! let second = File::open("examples/family/demo_data_000002.h5")?.object("/")?;
//! let mut found = Vec::new();
//! diff(&first, &second, &tensilo::core::Quiet, &mut |f: &Finding| Ok(found.push(f.clone())))?;
//! assert_eq!(found[0].path, "/entry/data/data");
//! assert_eq!(found[0].what, "values");
//! # Ok::<(), tensilo::Error>(())
//! ```

mod data;
mod element;
mod tolerance;
mod types;

use crate::hdf5::{Attribute, DamagedAttribute, Dataset, Group, LinkInfo, Object};
use data::Side;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::object::LinkTarget;

pub use tolerance::Tolerance;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Path of the object.
    pub path: String,
    /// The attribute of it that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// `only in first`, `only in second`, `kind`, `link`, `type`, `shape` or `values`.
    pub what: &'static str,
    /// What the first has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// What the second has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<String>,
    /// Elements that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// Elements that were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// Coordinates of the first element that differs; `first` and `second` are its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Vec<u64>>,
}

impl Finding {
    /// Could the two not be compared element by element, because they are of different kinds, types or shapes?
    pub fn is_incomparable(&self) -> bool {
        matches!(self.what, "kind" | "type" | "shape")
    }
}

/// Takes each difference as it is found.
type Each<'e> = dyn FnMut(&Finding) -> Result<()> + 'e;

/// Compares two objects with everything in and below them; `each` is called for every difference, in the order of
/// the paths of the first.
///
/// # Errors
/// What stops either from being read, the monitor's, and those of `each`.
pub fn diff(first: &Object, second: &Object, monitor: &dyn Monitor, each: &mut Each<'_>) -> Result<()> {
    diff_within(first, second, Tolerance::Exact, monitor, each)
}

/// As [`diff`], but integers and floats (of datasets and attributes, also inside compounds, arrays and sequences) that
/// are near enough are the same.
///
/// # Errors
/// As [`diff`].
pub fn diff_within(
    first: &Object,
    second: &Object,
    tolerance: Tolerance,
    monitor: &dyn Monitor,
    each: &mut Each<'_>,
) -> Result<()> {
    let how = How { refs: &References::default(), tolerance };
    let mut comparison = Comparison { monitor, each, how, seen: HashSet::new(), level: 0 };
    comparison.objects(first, second)
}

/// How elements are compared.
#[derive(Debug, Clone, Copy)]
struct How<'a> {
    refs: &'a References,
    tolerance: Tolerance,
}

/// Verdicts on pairs of objects that elements refer to, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct References(std::cell::RefCell<HashMap<(u64, u64), bool>>);

struct Comparison<'a> {
    monitor: &'a dyn Monitor,
    each: &'a mut Each<'a>,
    how: How<'a>,
    /// Pairs of objects that were compared, or are being compared.
    seen: HashSet<(u64, u64)>,
    level: u64,
}

impl References {
    /// Are two objects that elements refer to the same? A pair that is being compared already is taken for the same.
    fn same(
        &self,
        first: &Object,
        second: &Object,
        tolerance: Tolerance,
        monitor: &dyn Monitor,
    ) -> Result<bool> {
        let pair = (first.address().0, second.address().0);
        if let Some(known) = self.0.borrow().get(&pair) {
            return Ok(*known);
        }
        self.0.borrow_mut().insert(pair, true);
        let mut same = true;
        let mut each = |_: &Finding| {
            same = false;
            Err(Error::cancelled())
        };
        let how = How { refs: self, tolerance };
        let mut comparison = Comparison { monitor, each: &mut each, how, seen: HashSet::new(), level: 0 };
        let compared = comparison.objects(first, second);
        if same {
            compared?;
        }
        self.0.borrow_mut().insert(pair, same);
        Ok(same)
    }
}

fn finding(path: &[u8], what: &'static str, first: impl ToString, second: impl ToString) -> Finding {
    Finding {
        path: text(path),
        attribute: None,
        what,
        first: Some(first.to_string()),
        second: Some(second.to_string()),
        elements: None,
        of: None,
        at: None,
    }
}

fn one_sided(path: String, attribute: Option<String>, what: &'static str) -> Finding {
    Finding { path, attribute, what, first: None, second: None, elements: None, of: None, at: None }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// The path of a link of a group.
fn below(group: &[u8], name: &[u8]) -> String {
    let mut path = text(group);
    if !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(&text(name));
    path
}

fn kind(object: &Object) -> &'static str {
    match object {
        Object::Group(_) => "group",
        Object::Dataset(_) => "dataset",
        Object::Datatype(_) => "committed datatype",
        _ => "object",
    }
}

impl Comparison<'_> {
    fn objects(&mut self, first: &Object, second: &Object) -> Result<()> {
        self.monitor.poll(&Progress { stage: data::STAGE, done: 0, total: 0 })?;
        if !self.seen.insert((first.address().0, second.address().0)) {
            return Ok(());
        }
        match (first, second) {
            (Object::Group(a), Object::Group(b)) => {
                self.attributes(a.path(), a.attributes()?, b.attributes()?)?;
                self.groups(a, b)
            }
            (Object::Dataset(a), Object::Dataset(b)) => {
                self.datasets(a, b)?;
                self.attributes(a.path(), a.attributes()?, b.attributes()?)
            }
            (Object::Datatype(a), Object::Datatype(b)) => {
                if a.datatype() != b.datatype() {
                    let (x, y) = (types::name(a.datatype()), types::name(b.datatype()));
                    (self.each)(&finding(a.path(), "values", x, y))?;
                }
                self.attributes(a.path(), a.attributes()?, b.attributes()?)
            }
            (a, b) => {
                (self.each)(&finding(a.path(), "kind", kind(a), kind(b)))?;
                // What is inside a group is then on one side only.
                for (object, what) in [(a, "only in first"), (b, "only in second")] {
                    let Object::Group(group) = object else { continue };
                    for link in group.links()? {
                        (self.each)(&one_sided(below(a.path(), link.name()), None, what))?;
                    }
                }
                Ok(())
            }
        }
    }

    fn groups(&mut self, a: &Group, b: &Group) -> Result<()> {
        let mut names: BTreeMap<Vec<u8>, (Option<LinkInfo>, Option<LinkInfo>)> = BTreeMap::new();
        for link in a.links()? {
            let name = link.name().to_vec();
            names.entry(name).or_default().0 = Some(link);
        }
        for link in b.links()? {
            let name = link.name().to_vec();
            names.entry(name).or_default().1 = Some(link);
        }
        a.file().space().budget().depth(self.level, "groups")?;
        self.level += 1;
        for (name, links) in names {
            let path = below(a.path(), &name);
            match links {
                (Some(x), Some(y)) => self.links((a, &x), (b, &y), path)?,
                (Some(_), None) => (self.each)(&one_sided(path, None, "only in first"))?,
                (None, _) => (self.each)(&one_sided(path, None, "only in second"))?,
            }
        }
        self.level -= 1;
        Ok(())
    }

    /// Soft, external and user-defined links are compared by what they say, hard ones by what they lead to.
    fn links(&mut self, a: (&Group, &LinkInfo), b: (&Group, &LinkInfo), path: String) -> Result<()> {
        let (x, y) = (a.1.target(), b.1.target());
        match (x, y) {
            (LinkTarget::Hard(_), LinkTarget::Hard(_)) => {
                self.objects(&a.0.open_link(a.1)?, &b.0.open_link(b.1)?)
            }
            _ if std::mem::discriminant(x) != std::mem::discriminant(y) => {
                (self.each)(&finding(path.as_bytes(), "kind", target(x), target(y)))
            }
            _ if x == y => Ok(()),
            _ => (self.each)(&finding(path.as_bytes(), "link", target(x), target(y))),
        }
    }

    fn datasets(&mut self, a: &Dataset, b: &Dataset) -> Result<()> {
        let shapes = (data::shape_text(a.dataspace()), data::shape_text(b.dataspace()));
        if shapes.0 != shapes.1 {
            return (self.each)(&finding(a.path(), "shape", shapes.0, shapes.1));
        }
        if !types::comparable(a.datatype(), b.datatype()) {
            let (x, y) = (types::name(a.datatype()), types::name(b.datatype()));
            return (self.each)(&finding(a.path(), "type", x, y));
        }
        let located = |e: Error| e.in_object(text(a.path()));
        let found = data::datasets(a, b, self.how, self.monitor).map_err(located)?;
        self.report(a.path(), None, found)
    }

    fn report(&mut self, path: &[u8], attribute: Option<&str>, found: data::Count) -> Result<()> {
        let Some((at, first, second)) = found.first else { return Ok(()) };
        (self.each)(&Finding {
            path: text(path),
            attribute: attribute.map(str::to_owned),
            what: "values",
            first: Some(first),
            second: Some(second),
            elements: Some(found.differ),
            of: Some(found.of),
            at: Some(at),
        })
    }

    fn attributes(
        &mut self,
        path: &[u8],
        first: Vec<Result<Attribute, DamagedAttribute>>,
        second: Vec<Result<Attribute, DamagedAttribute>>,
    ) -> Result<()> {
        let mut names: BTreeMap<Vec<u8>, (Option<Attribute>, Option<Attribute>)> = BTreeMap::new();
        for attribute in first {
            let attribute = attribute.map_err(|damaged| damaged.error)?;
            let name = attribute.name().to_vec();
            names.entry(name).or_default().0 = Some(attribute);
        }
        for attribute in second {
            let attribute = attribute.map_err(|damaged| damaged.error)?;
            let name = attribute.name().to_vec();
            names.entry(name).or_default().1 = Some(attribute);
        }
        for (name, sides) in names {
            let name = text(&name);
            match sides {
                (Some(a), Some(b)) => self.attribute(path, &name, &a, &b)?,
                (Some(_), None) => (self.each)(&one_sided(text(path), Some(name), "only in first"))?,
                (None, _) => (self.each)(&one_sided(text(path), Some(name), "only in second"))?,
            }
        }
        Ok(())
    }

    fn attribute(&mut self, path: &[u8], name: &str, a: &Attribute, b: &Attribute) -> Result<()> {
        let mut differ = |what, x: String, y: String| {
            let found = Finding { attribute: Some(name.to_owned()), ..finding(path, what, x, y) };
            (self.each)(&found)
        };
        let shapes = (data::shape_text(a.dataspace()), data::shape_text(b.dataspace()));
        if shapes.0 != shapes.1 {
            return differ("shape", shapes.0, shapes.1);
        }
        if !types::comparable(a.datatype(), b.datatype()) {
            return differ("type", types::name(a.datatype()), types::name(b.datatype()));
        }
        let sides = (Side::new(a.file(), a.datatype()), Side::new(b.file(), b.datatype()));
        let mut found = data::Count::default();
        let at = |n: u64| data::coordinates(n, a.shape());
        data::elements(&sides, (a.read_bytes(), b.read_bytes()), self.how, self.monitor, &at, &mut found)?;
        self.report(path, Some(name), found)
    }
}

fn target(target: &LinkTarget) -> String {
    match target {
        LinkTarget::Hard(_) => "hard link".to_owned(),
        LinkTarget::Soft(to) => format!("soft link to {}", text(to)),
        LinkTarget::External { file, object } => {
            format!("external link to {} in {}", text(object), text(file))
        }
        LinkTarget::UserDefined { class, .. } => format!("user-defined link of class {class}"),
    }
}
