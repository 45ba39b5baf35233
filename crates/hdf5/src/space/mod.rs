//! The file as bytes at addresses: superblock, base address, budget, checked reads.
//!
//! A [`FileSpace`] is one open file as all floors above see it: addresses go in, checked bytes come out. It finds
//! the superblock, knows the end of the file, and lays a metadata cache image over the bytes where the file has one.

mod block_cache;
mod bytes;
mod cache_image;
mod extension;
mod global_heap;
mod header;
mod members;
mod visits;

pub(crate) use block_cache::Block;
pub use bytes::Bytes;
pub use cache_image::{CacheImage, CacheImageState};
pub use extension::Extension;
pub use global_heap::GlobalHeapObject;
pub use header::{Message, StoredHeader};
pub use members::{Members, is_family};
pub use visits::Visits;

use crate::format::shared_messages::{self, SharedIndex};
use crate::format::superblock::{FLAG_SWMR_WRITE, FLAG_WRITE, MAX_LEN, SIGNATURE, Superblock};
use crate::format::{Address, Sizes};
use std::sync::{Arc, OnceLock};
use tensilo_core::io::ByteSource;
use tensilo_core::{Budget, Error, ErrorKind, Result};

/// The part of a file that a problem with its cache image is filed under.
const CACHE_IMAGE: &str = "(cache image)";

/// How a file is opened as a [`FileSpace`].
#[derive(Debug, Clone, Default)]
pub struct SpaceOptions {
    /// Open the file although its flags say that a writer has it open, or did not close it.
    pub ignore_flags: bool,
    /// The source holds all members of a family or multi file; do not refuse it as a single member.
    pub members_joined: bool,
    /// Open a damaged file as far as that goes: without its superblock extension or cache image where they are damaged,
    /// up to the end of the source where it was cut off. [`FileSpace::problems`] says what is wrong.
    pub salvage: bool,
}

/// One open file: bytes at addresses. Cheap to clone; all clones share budget and caches.
///
/// ```
/// use std::sync::Arc;
/// use tensilo_core::{Budget, io::MemorySource};
/// use tensilo_hdf5::space::FileSpace;
/// let e = FileSpace::open(Arc::new(MemorySource::new(*b"no HDF5 file")), Budget::default()).unwrap_err();
/// assert_eq!(e.to_string(), "not an HDF5 file: no signature at byte 0, 512, 1024, … of 12");
/// ```
#[derive(Debug, Clone)]
pub struct FileSpace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: Arc<dyn ByteSource>,
    budget: Budget,
    superblock: Superblock,
    extension: Extension,
    image: Option<CacheImage>,
    problems: Vec<Problem>,
    shared: OnceLock<Vec<SharedIndex>>,
    global_heap: global_heap::Cache,
    blocks: block_cache::Cache,
}

/// What is wrong with a file that was opened all the same.
#[derive(Debug)]
pub struct Problem {
    /// Which part of the file is damaged.
    pub part: &'static str,
    /// What is wrong with it.
    pub error: Error,
}

impl FileSpace {
    /// Opens a file: finds the superblock at byte 0, 512, 1024, …, checks it, and reads its extension.
    ///
    /// # Errors
    /// `Corrupt` when it is no HDF5 file, or a damaged or truncated one; `Locked` when its flags say that a writer has
    /// it open; `Unsupported` for a single member of a family or multi file.
    pub fn open(source: Arc<dyn ByteSource>, budget: Budget) -> Result<Self> {
        Self::open_with(source, budget, &SpaceOptions::default())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(source: Arc<dyn ByteSource>, budget: Budget, options: &SpaceOptions) -> Result<Self> {
        let path = source.path().map(ToOwned::to_owned);
        Self::open_inner(source, budget, options).map_err(|e| match path {
            Some(path) => e.in_file(path),
            None => e,
        })
    }

    fn open_inner(source: Arc<dyn ByteSource>, budget: Budget, options: &SpaceOptions) -> Result<Self> {
        let mut superblock = find_superblock(&*source)?;
        if options.members_joined {
            // Members of a split or multi file begin far behind the end of the first, which is all that is stated.
            superblock.end_of_file = superblock.end_of_file.max(source.len());
        }
        let mut space = Self::with(source, budget, superblock);
        let mut problems = Vec::new();
        let mut tolerate = |part, error: Error| match options.salvage && error.kind() == ErrorKind::Corrupt {
            true => {
                problems.push(Problem { part, error });
                Ok(())
            }
            false => Err(error),
        };
        let loaded = Extension::load(&space);
        if let (Ok(extension), false) = (&loaded, options.members_joined) {
            extension.check_driver()?;
        }
        let (end, len) = (space.end(), space.source().len());
        if end > len {
            let e = Error::corrupt(format!("truncated: {end} bytes are expected, {len} are there"));
            tolerate("(end of file)", e.hint("the file was cut off, or its writer did not finish").at(len))?;
            space.change(|inner| inner.superblock.end_of_file = len)?;
        }
        match loaded {
            Ok(extension) => space.change(|inner| inner.extension = extension)?,
            Err(e) => tolerate("(superblock extension)", e)?,
        }
        if !options.ignore_flags {
            space.check_flags()?;
        }
        match CacheImage::load(&space, space.extension().cache_image) {
            Ok(image) => space.change(|inner| inner.image = image)?,
            Err(e) => tolerate(CACHE_IMAGE, e)?,
        }
        space.change(|inner| inner.problems = problems)?;
        Ok(space)
    }

    /// Changes what is known while nobody else has the file yet.
    fn change(&mut self, change: impl FnOnce(&mut Inner)) -> Result<()> {
        let inner = Arc::get_mut(&mut self.inner);
        change(inner.ok_or_else(|| Error::invalid("the file is in use while it is opened"))?);
        Ok(())
    }

    fn with(source: Arc<dyn ByteSource>, budget: Budget, superblock: Superblock) -> Self {
        let extension = Extension::of_superblock(&superblock);
        Self {
            inner: Arc::new(Inner {
                source,
                budget,
                superblock,
                extension,
                image: None,
                problems: Vec::new(),
                shared: OnceLock::new(),
                global_heap: global_heap::Cache::default(),
                blocks: block_cache::Cache::default(),
            }),
        }
    }

    fn check_flags(&self) -> Result<()> {
        let s = self.superblock();
        let writer = match s.flags & (FLAG_WRITE | FLAG_SWMR_WRITE) {
            _ if s.version < 3 => return Ok(()),
            0 => return Ok(()),
            FLAG_WRITE => "a writer",
            _ => "a single writer with multiple readers",
        };
        Err(Error::new(ErrorKind::Locked, format!("{writer} has the file open, or did not close it"))
            .hint("clear the flags when no writer is left"))
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.inner.superblock
    }

    /// What the superblock extension adds.
    pub fn extension(&self) -> &Extension {
        &self.inner.extension
    }

    /// The metadata cache image laid over the bytes, if the file has one.
    pub fn cache_image(&self) -> Option<&CacheImage> {
        self.inner.image.as_ref()
    }

    /// What is wrong with the file, where it was opened to be salvaged.
    pub fn problems(&self) -> &[Problem] {
        &self.inner.problems
    }

    /// Has the file a metadata cache image, and can it be used?
    pub fn cache_image_state(&self) -> CacheImageState<'_> {
        match (self.cache_image(), self.problems().iter().find(|p| p.part == CACHE_IMAGE)) {
            (Some(image), _) => CacheImageState::Loadable(image),
            (None, Some(problem)) => CacheImageState::Refused(&problem.error),
            (None, None) => CacheImageState::None,
        }
    }

    /// Widths of addresses and lengths.
    pub fn sizes(&self) -> Sizes {
        self.superblock().sizes
    }

    /// Absolute offset that addresses are relative to.
    pub fn base(&self) -> u64 {
        self.superblock().position
    }

    /// Bytes of the user block in front of the file.
    pub fn user_block(&self) -> u64 {
        self.superblock().position
    }

    /// Absolute end of the file, as the superblock says; never past the source's end.
    pub fn end(&self) -> u64 {
        self.superblock().end_of_file
    }

    /// The budget that reads are charged to.
    pub fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// The source of all bytes.
    pub fn source(&self) -> &Arc<dyn ByteSource> {
        &self.inner.source
    }

    /// Address of the root group's header.
    pub fn root(&self) -> Address {
        self.superblock().root
    }

    /// Adds the file's path to an error.
    #[must_use]
    pub fn locate(&self, e: Error) -> Error {
        match self.source().path() {
            Some(path) => e.in_file(path),
            None => e,
        }
    }

    /// A `Corrupt` error at an absolute offset of this file.
    #[must_use]
    pub fn corrupt(&self, message: impl Into<String>, at: u64) -> Error {
        self.locate(Error::corrupt(message).at(at))
    }

    /// The absolute offset of an address.
    ///
    /// # Errors
    /// `Corrupt` when it is past 64 bits.
    pub fn absolute(&self, a: Address) -> Result<u64> {
        self.base().checked_add(a.0).ok_or_else(|| {
            self.locate(Error::corrupt(format!("address {} and base {} overflow", a.0, self.base())))
        })
    }

    /// Checks that `len` bytes at an address are inside the file, and returns their absolute offset.
    ///
    /// # Errors
    /// `Corrupt`, naming `what`.
    pub fn check_range(&self, a: Address, len: u64, what: &str) -> Result<u64> {
        let at = self.absolute(a)?;
        let end = self.end();
        if at.checked_add(len).is_none_or(|e| e > end) {
            return Err(
                self.corrupt(format!("{what}: {len} bytes reach past the end of the file at {end}"), at)
            );
        }
        Ok(at)
    }

    /// Reads `len` bytes at an address: lent where the source has them in memory, else read and charged. The range is
    /// checked before anything is allocated.
    ///
    /// # Errors
    /// `Corrupt` when they are not inside the file, `Limit`, or what the source answers.
    pub fn read(&self, a: Address, len: u64, what: &'static str) -> Result<Bytes<'_>> {
        let at = self.check_range(a, len, what)?;
        if let Some(image) = &self.inner.image {
            match image.cover(&**self.source(), at, len) {
                cache_image::Cover::None => {}
                cache_image::Cover::All(bytes) => return Ok(Bytes::lent(bytes, at)),
                cache_image::Cover::Part => return self.read_owned(at, len, what),
            }
        }
        match self.source().borrow(at..at.saturating_add(len)) {
            Some(bytes) => Ok(Bytes::lent(bytes, at)),
            None => self.read_owned(at, len, what),
        }
    }

    fn read_owned(&self, at: u64, len: u64, what: &'static str) -> Result<Bytes<'_>> {
        let (mut buf, charge) = self.budget().buffer(len, what).map_err(|e| self.locate(e.at(at)))?;
        self.fill(at, &mut buf).map_err(|e| e.context(what))?;
        Ok(Bytes::owned(buf, charge, at))
    }

    fn fill(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        self.source().read_at(at, buf).map_err(|e| self.locate(e))?;
        if let Some(image) = &self.inner.image {
            image.patch(&**self.source(), at, buf);
        }
        Ok(())
    }

    /// Reads up to `len` bytes at an address, fewer where the file ends before.
    ///
    /// # Errors
    /// As [`read`](Self::read); the address itself must be inside the file.
    pub fn read_up_to(&self, a: Address, len: u64, what: &'static str) -> Result<Bytes<'_>> {
        let at = self.check_range(a, 1, what)?;
        self.read(a, len.min(self.end().saturating_sub(at)), what)
    }

    /// Fills a buffer from an address on.
    ///
    /// # Errors
    /// `Corrupt` when the range is not inside the file, or what the source answers.
    pub fn read_into(&self, a: Address, buf: &mut [u8]) -> Result<()> {
        let at = self.check_range(a, buf.len() as u64, "raw data")?;
        self.fill(at, buf)
    }

    /// Reads a structure of `len` bytes whose last four are a checksum over all before, and verifies it.
    ///
    /// # Errors
    /// As [`read`](Self::read), and `Corrupt` when the checksum does not match.
    pub fn read_checksummed(&self, a: Address, len: u64, what: &'static str) -> Result<Bytes<'_>> {
        let bytes = self.read(a, len, what)?;
        let (covered, stored) = bytes.split_at_checked(bytes.len().saturating_sub(4)).unwrap_or((&[], &[]));
        if tensilo_core::wire::lookup3(covered).to_le_bytes() != stored {
            return Err(self.corrupt(format!("{what}: checksum does not match"), bytes.offset()));
        }
        Ok(bytes)
    }

    /// A guard for one walk over linked structures of this file.
    pub fn visits(&self) -> Visits {
        Visits::new(self.end().saturating_sub(self.base()), self.budget().clone())
    }

    /// The indexes of shared messages; read once.
    ///
    /// # Errors
    /// `Corrupt` when the master table is damaged.
    pub fn shared_indexes(&self) -> Result<&[SharedIndex]> {
        if let Some(found) = self.inner.shared.get() {
            return Ok(found);
        }
        let indexes = match self.extension().shared_messages {
            None => Vec::new(),
            Some(message) => {
                let len = shared_messages::table_len(self.sizes(), message.indexes);
                let bytes = self.read(message.address, len, "shared message table")?;
                shared_messages::table(&bytes, bytes.offset(), self.sizes(), message.indexes)
                    .map_err(|e| self.locate(e))?
            }
        };
        Ok(self.inner.shared.get_or_init(|| indexes))
    }
}

/// Looks for the signature at byte 0, 512, 1024, 2048, … and parses the superblock there.
fn find_superblock(source: &dyn ByteSource) -> Result<Superblock> {
    let len = source.len();
    let mut position = 0_u64;
    while position.checked_add(8).is_some_and(|end| end <= len) {
        let mut head = [0; 8];
        source.read_at(position, &mut head)?;
        if head == SIGNATURE {
            let mut bytes = vec![0; MAX_LEN.min(len - position) as usize];
            source.read_at(position, &mut bytes)?;
            return Superblock::parse(&bytes, position);
        }
        position = if position == 0 { 512 } else { position.saturating_mul(2) };
    }
    Err(Error::corrupt(format!("not an HDF5 file: no signature at byte 0, 512, 1024, … of {len}")))
}
