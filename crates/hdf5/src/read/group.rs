//! Groups, their links, and committed datatypes.

use super::path::{self, Located, join};
use super::{Attribute, DamagedAttribute, Dataset, File, Object, attribute};
use crate::format::Address;
use crate::format::datatype::Datatype;
use crate::object::{self, Link, ObjectHeader};
use std::borrow::Cow;
use std::sync::Arc;
use tensilo_core::{Error, Result};

/// A group. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Group {
    file: File,
    header: Arc<ObjectHeader>,
    path: Arc<[u8]>,
}

/// A link of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkInfo(pub Link);

impl LinkInfo {
    /// The name as stored.
    pub fn name(&self) -> &[u8] {
        &self.0.name
    }

    /// The name as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0.name)
    }

    /// What it points to.
    pub fn target(&self) -> &object::LinkTarget {
        &self.0.target
    }
}

impl Group {
    pub(super) fn new(file: File, header: Arc<ObjectHeader>, path: &[u8]) -> Self {
        Self { file, header, path: path.into() }
    }

    /// The path it was opened by.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The file it is in.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The address of its object header.
    pub fn address(&self) -> Address {
        self.header.address
    }

    /// Its object header.
    pub fn header(&self) -> &ObjectHeader {
        &self.header
    }

    /// All links, in the order in which the file stores them.
    ///
    /// # Errors
    /// `Corrupt` when the group is damaged.
    pub fn links(&self) -> Result<Vec<LinkInfo>> {
        let links = object::links(&self.file.0.space, &self.header);
        Ok(self.here(links)?.into_iter().map(LinkInfo).collect())
    }

    /// One link by its name; `None` when there is none.
    ///
    /// # Errors
    /// `Corrupt` when the group is damaged.
    pub fn link(&self, name: impl AsRef<[u8]>) -> Result<Option<LinkInfo>> {
        let link = object::lookup(&self.file.0.space, &self.header, name.as_ref());
        Ok(self.here(link)?.map(LinkInfo))
    }

    /// Opens the object at a path relative to this group; links are followed.
    ///
    /// # Errors
    /// As [`File::object`].
    pub fn open(&self, path: impl AsRef<[u8]>) -> Result<Object> {
        let start = Located { file: self.file.clone(), address: self.address(), path: self.path.to_vec() };
        self.file.whole(path::resolve(start, path.as_ref()).and_then(Located::open))
    }

    /// Opens the object of one of this group's links.
    ///
    /// # Errors
    /// As [`File::object`].
    pub fn open_link(&self, link: &LinkInfo) -> Result<Object> {
        match link.0.target {
            object::LinkTarget::Hard(address) => {
                let path = join(&self.path, &link.0.name);
                self.file.whole(Located { file: self.file.clone(), address, path }.open())
            }
            _ => self.open(&link.0.name),
        }
    }

    /// Opens a dataset by its path relative to this group.
    ///
    /// # Errors
    /// As [`File::dataset`].
    pub fn dataset(&self, path: impl AsRef<[u8]>) -> Result<Dataset> {
        self.open(path)?.into_dataset()
    }

    /// Opens a group by its path relative to this group.
    ///
    /// # Errors
    /// As [`File::group`].
    pub fn group(&self, path: impl AsRef<[u8]>) -> Result<Group> {
        self.open(path)?.into_group()
    }

    /// All attributes; a damaged one is an error in its place.
    ///
    /// # Errors
    /// `Corrupt` when the list itself is damaged.
    pub fn attributes(&self) -> Result<Vec<Result<Attribute, DamagedAttribute>>> {
        attribute::all(&self.file, &self.header, &self.path)
    }

    /// One attribute by its name.
    ///
    /// # Errors
    /// `NotFound` when there is none; `Corrupt` when it is damaged.
    pub fn attribute(&self, name: impl AsRef<[u8]>) -> Result<Attribute> {
        attribute::one(&self.file, &self.header, &self.path, name.as_ref())
    }

    fn here<T>(&self, result: Result<T>) -> Result<T> {
        self.file.whole(result.map_err(|e| e.in_object(String::from_utf8_lossy(&self.path))))
    }
}

/// A committed datatype. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NamedDatatype {
    file: File,
    header: Arc<ObjectHeader>,
    path: Arc<[u8]>,
    datatype: Arc<Datatype>,
}

impl NamedDatatype {
    pub(super) fn new(file: File, header: Arc<ObjectHeader>, path: &[u8]) -> Result<Self> {
        let datatype = header.datatype()?;
        let datatype = datatype.ok_or_else(|| Error::corrupt("a committed datatype without a datatype"))?;
        Ok(Self { file, header, path: path.into(), datatype: Arc::new(datatype) })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The file it is in.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The address of its object header.
    pub fn address(&self) -> Address {
        self.header.address
    }

    /// Its object header.
    pub fn header(&self) -> &ObjectHeader {
        &self.header
    }

    /// The datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// All attributes; a damaged one is an error in its place.
    ///
    /// # Errors
    /// `Corrupt` when the list itself is damaged.
    pub fn attributes(&self) -> Result<Vec<Result<Attribute, DamagedAttribute>>> {
        attribute::all(&self.file, &self.header, &self.path)
    }
}
