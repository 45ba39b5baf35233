//! The objects of a file being written: groups, datasets and committed datatypes, their links and attributes.
//!
//! Raw data is on the disk already when an object enters the tree; what is here becomes metadata at the end.

use super::external_data::ExternalData;
use super::heap::HeapId;
use super::index::Chunks;
use crate::format::Address;
use crate::format::datatype::{CharacterSet, Datatype};
use crate::format::message::dataspace::Dataspace;
use crate::format::message::fill_value::FillMessage;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tensilo_core::{Error, Result};
use tensilo_filters::FilterSpec;

/// Most bytes in the name of a link. The format knows no limit, but has 64 KiB for names that stand in headers.
const MOST_NAME: usize = 16 << 20;

/// Fewer attributes are looked through for a name.
const FEW: usize = 16;

/// Number of an object, in the order of their making; 0 is the root group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) usize);

impl NodeId {
    pub(crate) const ROOT: Self = Self(0);
}

/// Where a link leads.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Hard(NodeId),
    Soft(Vec<u8>),
    External { file: Vec<u8>, object: Vec<u8> },
    User { class: u8, data: Vec<u8> },
}

/// A link of a group.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) target: Target,
    pub(crate) order: u64,
}

/// A datatype, perhaps one that stands in the file as an object of its own.
#[derive(Debug, Clone)]
pub(crate) struct TypeUse {
    pub(crate) datatype: Datatype,
    pub(crate) committed: Option<NodeId>,
}

/// An attribute, its data as it will stand in the file.
#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub(crate) name: Vec<u8>,
    pub(crate) datatype: TypeUse,
    pub(crate) dataspace: Dataspace,
    pub(crate) data: Vec<u8>,
    pub(crate) order: u16,
}

/// Where a dataset's elements are.
#[derive(Debug, Clone)]
pub(crate) enum Storage {
    Compact(Vec<u8>),
    Contiguous {
        address: Option<Address>,
        size: u64,
    },
    Chunked(Chunks),
    /// The list of sources, in a global heap.
    Virtual(HeapId),
    External {
        pieces: Vec<ExternalData>,
        size: u64,
    },
}

/// A dataset.
#[derive(Debug, Clone)]
pub(crate) struct Dataset {
    pub(crate) datatype: TypeUse,
    pub(crate) dataspace: Dataspace,
    pub(crate) fill: FillMessage,
    pub(crate) filters: Vec<FilterSpec>,
    pub(crate) storage: Storage,
}

/// What an object is.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Group(BTreeMap<Vec<u8>, Link>),
    Dataset(Box<Dataset>),
    Datatype(Datatype),
}

/// Which orders of making an object keeps: `None` is none, `Some(true)` an indexed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tracking {
    /// Of the links of a group.
    pub links: Option<bool>,
    /// Of the attributes.
    pub attributes: Option<bool>,
}

impl Tracking {
    /// Both orders, indexed.
    pub const ALL: Self = Self { links: Some(true), attributes: Some(true) };
}

/// One object.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The path it was made under, for messages.
    pub(crate) path: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) attributes: Vec<Attribute>,
    /// Their names, once they are too many to look through.
    attribute_names: Option<HashSet<Vec<u8>>>,
    /// Hard links to it, and uses of a committed datatype.
    pub(crate) links: u32,
    /// Are its links, and are its attributes, numbered in the order they were made? And is that order indexed?
    pub(crate) order: Tracking,
    /// Address of its header, where something had to know it beforehand.
    pub(crate) pinned: Option<Address>,
    pub(crate) comment: Option<Vec<u8>>,
}

impl Node {
    fn new(path: Arc<str>, kind: Kind, order: Tracking) -> Self {
        Self {
            path,
            kind,
            attributes: Vec::new(),
            attribute_names: None,
            links: 1,
            order,
            pinned: None,
            comment: None,
        }
    }

    /// Is there no attribute of this name yet? Notes it.
    fn is_new_attribute(&mut self, name: &[u8]) -> bool {
        let attributes = &self.attributes;
        if attributes.len() < FEW {
            return attributes.iter().all(|a| a.name != name);
        }
        let names = || attributes.iter().map(|a| a.name.clone()).collect();
        self.attribute_names.get_or_insert_with(names).insert(name.to_vec())
    }
}

/// All objects of a file.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// Orders that new objects keep.
    pub(crate) tracking: Tracking,
    /// Header addresses of objects that are yet to be made.
    pub(crate) reserved: BTreeMap<Vec<u8>, Address>,
}

/// The character set of a name: ASCII where it suffices.
pub(crate) fn charset_of(name: &[u8]) -> CharacterSet {
    if !name.is_ascii() && std::str::from_utf8(name).is_ok() {
        CharacterSet::Utf8
    } else {
        CharacterSet::Ascii
    }
}

fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.starts_with('/') { text.into_owned() } else { format!("/{text}") }
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|b| *b == b'/').filter(|c| !c.is_empty() && *c != b".")
}

/// A path with one slash in front of each name.
pub(crate) fn normal(path: &[u8]) -> Vec<u8> {
    components(path).flat_map(|c| std::iter::once(&b'/').chain(c)).copied().collect()
}

impl Tree {
    pub(crate) fn new(tracking: Tracking) -> Self {
        let root = Node::new("/".into(), Kind::Group(BTreeMap::new()), tracking);
        Self { nodes: vec![root], tracking, reserved: BTreeMap::new() }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0]
    }

    /// Finds an object by hard links.
    pub(crate) fn find(&self, path: &[u8]) -> Result<NodeId> {
        let mut at = NodeId::ROOT;
        for name in components(path) {
            at = match &self.node(at).kind {
                Kind::Group(links) => match links.get(name).map(|l| &l.target) {
                    Some(Target::Hard(id)) => *id,
                    Some(_) => {
                        return Err(Error::unsupported("the path leads through a soft or external link")
                            .in_object(shown(path)));
                    }
                    None => {
                        return Err(Error::not_found("no such object was made").in_object(shown(path)));
                    }
                },
                _ => return Err(not_a_group(self.node(at))),
            };
        }
        Ok(at)
    }

    /// The group that will hold the last name of a path, made with its ancestors where missing, and that name.
    fn parent_of<'p>(&mut self, path: &'p [u8]) -> Result<(NodeId, &'p [u8])> {
        let mut names = components(path);
        let Some(mut last) = names.next() else {
            return Err(Error::already_exists("the root group is there from the beginning").in_object("/"));
        };
        let mut at = NodeId::ROOT;
        for next in names {
            let name = std::mem::replace(&mut last, next);
            at = match &self.node(at).kind {
                Kind::Group(links) => match links.get(name).map(|l| &l.target) {
                    Some(Target::Hard(id)) => *id,
                    Some(_) => {
                        return Err(Error::unsupported("the path leads through a soft or external link")
                            .in_object(shown(path)));
                    }
                    None => self.add(at, name, Kind::Group(BTreeMap::new()))?,
                },
                _ => return Err(not_a_group(self.node(at))),
            };
        }
        Ok((at, last))
    }

    fn add(&mut self, parent: NodeId, name: &[u8], kind: Kind) -> Result<NodeId> {
        let id = NodeId(self.nodes.len());
        let (above, shown) = (self.node(parent).path.trim_end_matches('/'), String::from_utf8_lossy(name));
        let path = [above, "/", &shown].concat().into();
        self.link(parent, name, Target::Hard(id))?;
        self.nodes.push(Node::new(path, kind, self.tracking));
        Ok(id)
    }

    fn link(&mut self, parent: NodeId, name: &[u8], target: Target) -> Result<()> {
        if name.contains(&0) || name.len() > MOST_NAME {
            return Err(Error::invalid("a link's name contains a NUL or is longer than 16 MiB"));
        }
        let node = self.node_mut(parent);
        let Kind::Group(links) = &mut node.kind else { return Err(not_a_group(node)) };
        let order = links.len() as u64;
        match links.entry(name.to_vec()) {
            Entry::Vacant(place) => {
                place.insert(Link { target, order });
                Ok(())
            }
            Entry::Occupied(_) => {
                let path = format!("{}/{}", node.path.trim_end_matches('/'), String::from_utf8_lossy(name));
                Err(Error::already_exists("a link of this name was already made").in_object(path))
            }
        }
    }

    /// Makes an object, and the groups above it where they are missing.
    pub(crate) fn create(&mut self, path: &[u8], kind: Kind) -> Result<NodeId> {
        let (parent, name) = self.parent_of(path)?;
        let id = self.add(parent, name, kind)?;
        if !self.reserved.is_empty() {
            self.node_mut(id).pinned = self.reserved.remove(&normal(path));
        }
        Ok(id)
    }

    /// Would [`create`](Self::create) succeed?
    pub(crate) fn check_free(&self, path: &[u8]) -> Result<()> {
        let mut at = NodeId::ROOT;
        for name in components(path) {
            at = match &self.node(at).kind {
                Kind::Group(links) => match links.get(name).map(|l| &l.target) {
                    Some(Target::Hard(id)) => *id,
                    None => return Ok(()),
                    // Says why.
                    Some(_) => return self.find(path).map(|_| ()),
                },
                _ => return Err(not_a_group(self.node(at))),
            };
        }
        Err(Error::already_exists("an object of this name was already made").in_object(shown(path)))
    }

    /// Makes a link.
    pub(crate) fn create_link(&mut self, path: &[u8], target: Target) -> Result<()> {
        let (parent, name) = self.parent_of(path)?;
        if let Target::Hard(id) = &target {
            let id = *id;
            self.link(parent, name, target)?;
            self.node_mut(id).links += 1;
            return Ok(());
        }
        self.link(parent, name, target)
    }

    /// Counts a use of a committed datatype: who deletes the last use and the last link deletes the datatype.
    pub(crate) fn uses(&mut self, committed: Option<NodeId>) {
        if let Some(id) = committed {
            self.node_mut(id).links += 1;
        }
    }

    /// Adds an attribute to an object.
    pub(crate) fn add_attribute(&mut self, id: NodeId, mut attribute: Attribute) -> Result<()> {
        let committed = attribute.datatype.committed;
        let node = self.node_mut(id);
        attribute.order = u16::try_from(node.attributes.len()).map_err(|_| {
            Error::invalid("an object can have at most 65536 attributes").in_object(&*node.path)
        })?;
        if !node.is_new_attribute(&attribute.name) {
            let name = String::from_utf8_lossy(&attribute.name);
            return Err(
                Error::already_exists(format!("attribute {name:?} was already made")).in_object(&*node.path)
            );
        }
        node.attributes.push(attribute);
        self.uses(committed);
        Ok(())
    }
}

fn not_a_group(node: &Node) -> Error {
    Error::invalid("this is no group").in_object(&*node.path)
}
