//! An open file.

use super::cache::ChunkCache;
use super::external::Family;
use super::names::Names;
use super::path::{self, Located};
use super::{Dataset, ExternalLinks, Group, NamedDatatype, OpenOptions};
use crate::format::Address;
use crate::object::{ObjectHeader, ObjectKind};
use crate::space::{CacheImageState, FileSpace, Members, SpaceOptions, is_family};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::{ByteSource, FileSource, MappedSource};
use tensilo_core::{Budget, Error, ErrorKind, Result};

/// An HDF5 file that is open for reading. Cheap to clone; all clones, and everything opened through them, share
/// one byte source and one budget, and may be used from several threads at once.
///
/// ```no_run
/// let file = tensilo_hdf5::read::File::open("scan.h5")?;
/// let data = file.dataset("/entry/data")?;
/// println!("{:?}", data.shape());
/// let values: Vec<f32> = data.read()?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct File(pub(super) Arc<FileInner>);

#[derive(Debug)]
pub(super) struct FileInner {
    pub(super) space: FileSpace,
    pub(super) options: OpenOptions,
    pub(super) family: Family,
    pub(super) chunks: ChunkCache,
    pub(super) names: Names,
}

/// An object of a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Object {
    /// A group.
    Group(Group),
    /// A dataset.
    Dataset(Dataset),
    /// A committed datatype.
    Datatype(NamedDatatype),
}

impl File {
    /// Opens a file with default options.
    ///
    /// # Errors
    /// `NotFound` or `Io` from the system; `Corrupt` when it is no HDF5 file or is damaged; `Unsupported`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens a file. A family of files is opened by its pattern, such as `part%05d.h5`; a split or multi file by the
    /// member that holds the superblock, where the options allow that a file names others.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        if is_family(path) {
            return Self::from_members(Members::family(path)?, options);
        }
        let alone = Self::from_source(Arc::new(FileSource::open(path)?), options.clone());
        let refused = match alone {
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::Corrupt) => e,
            other => return other,
        };
        if options.links == ExternalLinks::Refuse {
            return Err(refused);
        }
        match Members::multi(path) {
            Ok(Some(members)) => Self::from_members(members, options),
            Ok(None) => Err(refused),
            Err(e) if e.kind() == ErrorKind::Corrupt => Err(refused),
            Err(e) => Err(e),
        }
    }

    fn from_members(members: Members, options: OpenOptions) -> Result<Self> {
        let how = SpaceOptions { members_joined: true, ..SpaceOptions::default() };
        let budget = Budget::new(options.limits.clone());
        Ok(Self::from_space(FileSpace::open_with(Arc::new(members), budget, &how)?, options))
    }

    /// Has the file a metadata cache image? An image that cannot be used keeps a file from being opened, unless it is
    /// opened to be salvaged ([`SpaceOptions`]).
    pub fn cache_image(&self) -> CacheImageState<'_> {
        self.0.space.cache_image_state()
    }

    /// Opens a file through a map under a shared lock, so that [`Dataset::view`] can show data without a copy.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`MappedSource::open_locked`].
    pub fn open_mapped(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        Self::from_source(Arc::new(MappedSource::open_locked(path)?), options)
    }

    /// Opens whatever a byte source holds.
    ///
    /// # Errors
    /// As [`open`](Self::open), and the source's own.
    pub fn from_source(source: Arc<dyn ByteSource>, options: OpenOptions) -> Result<Self> {
        let budget = Budget::new(options.limits.clone());
        Self::assemble(source, options, budget, Family::default())
    }

    /// Handles for a file that is already open as a space of addresses; it keeps its own budget.
    pub fn from_space(space: FileSpace, options: OpenOptions) -> Self {
        let chunks = ChunkCache::new(options.chunk_cache);
        Self(Arc::new(FileInner {
            space,
            options,
            family: Family::default(),
            chunks,
            names: Names::default(),
        }))
    }

    pub(super) fn assemble(
        source: Arc<dyn ByteSource>,
        options: OpenOptions,
        budget: Budget,
        family: Family,
    ) -> Result<Self> {
        let path = source.path().map(Path::to_path_buf);
        let space = FileSpace::open(source, budget).map_err(|e| in_file(e, path.as_deref()))?;
        let chunks = ChunkCache::new(options.chunk_cache);
        Ok(Self(Arc::new(FileInner { space, options, family, chunks, names: Names::default() })))
    }

    /// The path, where the source has one.
    pub fn path(&self) -> Option<&Path> {
        self.0.space.source().path()
    }

    /// The file as bytes at addresses.
    pub fn space(&self) -> &FileSpace {
        &self.0.space
    }

    /// The options it was opened with.
    pub fn options(&self) -> &OpenOptions {
        &self.0.options
    }

    /// The root group.
    ///
    /// # Errors
    /// `Corrupt` when its object header is damaged.
    pub fn root(&self) -> Result<Group> {
        self.object_at(self.0.space.superblock().root, "/")?.into_group()
    }

    /// Opens the object at a path; soft and external links are followed.
    ///
    /// # Errors
    /// `NotFound`, naming the part of the path that does not exist; `Limit` where links go in circles or a file
    /// may not be opened; `Corrupt` and the rest.
    pub fn object(&self, path: impl AsRef<[u8]>) -> Result<Object> {
        let root = Located::root(self.clone());
        self.whole(path::resolve(root, path.as_ref()).and_then(Located::open))
    }

    /// Opens the group at a path.
    ///
    /// # Errors
    /// As [`object`](Self::object), and `InvalidArgument` when it is no group.
    pub fn group(&self, path: impl AsRef<[u8]>) -> Result<Group> {
        self.object(path)?.into_group()
    }

    /// Opens the dataset at a path.
    ///
    /// # Errors
    /// As [`object`](Self::object), and `InvalidArgument` when it is no dataset.
    pub fn dataset(&self, path: impl AsRef<[u8]>) -> Result<Dataset> {
        self.object(path)?.into_dataset()
    }

    /// Opens the object whose header is at an address (as object references hold them); `name` is used in
    /// messages and as its path.
    ///
    /// # Errors
    /// `Corrupt` when there is no object header.
    pub fn object_at(&self, address: Address, name: &str) -> Result<Object> {
        self.whole(Located { file: self.clone(), address, path: name.as_bytes().to_vec() }.open())
    }

    /// Adds the file's path to an error.
    pub(super) fn whole<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|e| in_file(e, self.path()))
    }

    pub(super) fn folder(&self) -> Option<PathBuf> {
        let path = self.path()?;
        match path.parent()? {
            p if p.as_os_str().is_empty() => Some(PathBuf::from(".")),
            p => Some(p.to_path_buf()),
        }
    }
}

/// The bytes of the file at `path`, all members of it where it has several; and whether it has.
///
/// # Errors
/// As [`File::open_with`], as far as that looks for members.
pub fn open_source(path: impl AsRef<Path>, links: ExternalLinks) -> Result<(Arc<dyn ByteSource>, bool)> {
    let path = path.as_ref();
    if is_family(path) {
        return Ok((Arc::new(Members::family(path)?), true));
    }
    let alone: Arc<dyn ByteSource> = Arc::new(FileSource::open(path)?);
    if links == ExternalLinks::Refuse {
        return Ok((alone, false));
    }
    match Members::multi(path) {
        Ok(Some(members)) => Ok((Arc::new(members), true)),
        Ok(None) => Ok((alone, false)),
        Err(e) if e.kind() == ErrorKind::Corrupt => Ok((alone, false)),
        Err(e) => Err(e),
    }
}

fn in_file(e: Error, path: Option<&Path>) -> Error {
    match path {
        Some(path) => e.in_file(path),
        None => e,
    }
}

impl Located {
    /// Loads the object header and makes the right handle.
    pub(super) fn open(self) -> Result<Object> {
        let Self { file, address, path } = self;
        let made = || {
            let header = Arc::new(ObjectHeader::load(&file.0.space, address)?);
            match header.kind()? {
                ObjectKind::Group => Ok(Object::Group(Group::new(file.clone(), header, &path))),
                ObjectKind::Dataset => Dataset::new(file.clone(), header, &path).map(Object::Dataset),
                ObjectKind::Datatype => NamedDatatype::new(file.clone(), header, &path).map(Object::Datatype),
            }
        };
        made().map_err(|e: Error| e.in_object(String::from_utf8_lossy(&path)))
    }
}

impl Object {
    /// The path it was opened by.
    pub fn path(&self) -> &[u8] {
        match self {
            Self::Group(o) => o.path(),
            Self::Dataset(o) => o.path(),
            Self::Datatype(o) => o.path(),
        }
    }

    /// The address of its object header.
    pub fn address(&self) -> Address {
        match self {
            Self::Group(o) => o.address(),
            Self::Dataset(o) => o.address(),
            Self::Datatype(o) => o.address(),
        }
    }

    /// The group, if it is one.
    ///
    /// # Errors
    /// `InvalidArgument` when it is something else.
    pub fn into_group(self) -> Result<Group> {
        match self {
            Self::Group(group) => Ok(group),
            other => Err(other.is_no("group")),
        }
    }

    /// The dataset, if it is one.
    ///
    /// # Errors
    /// `InvalidArgument` when it is something else.
    pub fn into_dataset(self) -> Result<Dataset> {
        match self {
            Self::Dataset(dataset) => Ok(dataset),
            other => Err(other.is_no("dataset")),
        }
    }

    fn is_no(&self, wanted: &str) -> Error {
        let is = match self {
            Self::Group(_) => "group",
            Self::Dataset(_) => "dataset",
            Self::Datatype(_) => "committed datatype",
        };
        Error::invalid(format!("is a {is}, not a {wanted}")).in_object(String::from_utf8_lossy(self.path()))
    }
}
