//! NumPy's `.npz` files: zip archives of `.npy` files, stored or deflated, read and written as streams.
//!
//! An array `a/b` of HDF5 is the member `a/b.npy`, as `numpy.savez` and `numpy.load` name it. Members that are no arrays,
//! are encrypted or compressed otherwise, and names that HDF5 cannot have are refused.

use crate::hdf5::{each_slab, write_stream};
use std::cell::{Cell, RefCell};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tensilo_core::array::npy::NpyHeader;
use tensilo_core::io::{ByteSource, Disk, FileSource, Staged};
use tensilo_core::{Budget, Error, Monitor, Result};
use tensilo_hdf5::format::datatype::Datatype;
use tensilo_hdf5::read::Dataset;
use tensilo_hdf5::write::{DatasetBuilder, Written};
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

const SUFFIX: &str = ".npy";

/// Small writes to an archive are joined up to this many bytes.
const JOINED: usize = 1 << 20;

/// A source as the archive's reader wants it.
#[derive(Debug)]
struct Positioned {
    source: Arc<dyn ByteSource>,
    at: u64,
}

impl Read for Positioned {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.source.len().saturating_sub(self.at).min(out.len() as u64) as usize;
        self.source.read_at(self.at, &mut out[..n]).map_err(std::io::Error::other)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Positioned {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.at = moved(self.at, self.source.len(), to)?;
        Ok(self.at)
    }
}

/// The position that is sought.
fn moved(at: u64, len: u64, to: SeekFrom) -> std::io::Result<u64> {
    let found = match to {
        SeekFrom::Start(n) => Some(n),
        SeekFrom::Current(n) => at.checked_add_signed(n),
        SeekFrom::End(n) => len.checked_add_signed(n),
    };
    found.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::InvalidInput))
}

/// Our own error where there is one beneath; everything else a reader says is about the archive's bytes.
fn damaged(e: std::io::Error) -> Error {
    match e.downcast::<Error>() {
        Ok(e) => e,
        Err(e) => Error::corrupt("the archive cannot be read").with_source(e),
    }
}

fn refused(e: ZipError) -> Error {
    match e {
        ZipError::Io(e) => damaged(e),
        ZipError::InvalidPassword => Error::unsupported("the member is encrypted"),
        ZipError::UnsupportedArchive(what) => Error::unsupported(what),
        ZipError::CompressionMethodNotSupported(n) => Error::unsupported(format!(
            "members compressed with zip's method {n}; stored and deflated ones can be read"
        )),
        e => Error::corrupt("the archive cannot be read").with_source(e),
    }
}

/// An open `.npz` file.
#[derive(Debug)]
pub struct NpzFile {
    archive: ZipArchive<Positioned>,
    /// Names of the arrays, in the order of the members.
    names: Vec<String>,
}

impl NpzFile {
    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` for what is no zip archive; `Unsupported` for members that are no arrays, and for names
    /// that HDF5 cannot have.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::from_source(Arc::new(FileSource::open(path)?)).map_err(|e| e.in_file(path))
    }

    /// Opens a file held by a source.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(source: Arc<dyn ByteSource>) -> Result<Self> {
        let archive = ZipArchive::new(Positioned { source, at: 0 }).map_err(refused)?;
        if archive.has_duplicate_names() {
            return Err(Error::unsupported("two members have the same name"));
        }
        let mut names = Vec::with_capacity(archive.len());
        for i in 0..archive.len() {
            let raw = archive.name_for_index(i).transpose().map_err(refused)?.unwrap_or_default();
            let name = raw.strip_suffix(SUFFIX).filter(|name| {
                !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
            });
            let name = name.ok_or_else(|| {
                Error::unsupported("the member is no array that HDF5 could name").in_object(raw.clone())
            })?;
            names.push(name.to_owned());
        }
        Ok(Self { archive, names })
    }

    /// Names of the arrays, in the order of the members.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// An array, by its number among the [`names`](Self::names).
    ///
    /// # Errors
    /// `InvalidArgument` past the last one; `Corrupt`; `Unsupported` for encrypted members, other compressions than
    /// deflate, Fortran order, structured and object types.
    pub fn array(&mut self, number: usize) -> Result<NpzArray<'_>> {
        let count = self.names.len();
        let name =
            self.names.get(number).ok_or_else(|| Error::invalid(format!("array {number} of {count}")))?;
        let method = self.archive.by_index_raw(number).map_err(refused)?.compression();
        if !matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated) {
            let e = format!("members compressed by {method}; stored and deflated ones can be read");
            return Err(Error::unsupported(e).in_object(name.clone()));
        }
        let opened = self.archive.by_index(number).map_err(refused).and_then(|mut member| {
            let header =
                NpyHeader::read_front(&mut |out: &mut [u8]| member.read_exact(out).map_err(damaged))?;
            Ok((member, header))
        });
        let (member, header) = opened.map_err(|e| e.in_object(name.clone()))?;
        Ok(NpzArray { name, header, member })
    }
}

/// One array of an archive, read up to its first element.
pub struct NpzArray<'a> {
    name: &'a str,
    header: NpyHeader,
    member: ZipFile<'a, Positioned>,
}

impl std::fmt::Debug for NpzArray<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NpzArray")
            .field("name", &self.name)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl NpzArray<'_> {
    /// NumPy type string: `<f4`.
    pub fn descr(&self) -> &str {
        &self.header.descr
    }

    /// Extents, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.header.shape
    }

    /// Writes the array as a dataset of this datatype: in one piece, or in these chunks. The archive's checksum of the
    /// member is compared.
    ///
    /// Memory is one piece of 8 MiB, or twice the rows of one chunk's height, charged to `budget`, beside the window of
    /// the writer's options.
    ///
    /// # Errors
    /// `InvalidArgument` when the datatype has another size; `Corrupt` when the member ends early, goes on behind its
    /// array or fails its checksum; `Limit`; errors of the writer.
    pub fn write(
        self,
        dataset: DatasetBuilder<'_, '_>,
        datatype: Datatype,
        chunk: Option<&[u64]>,
        budget: &Budget,
    ) -> Result<Written> {
        let Self { name, header, mut member } = self;
        if u64::from(datatype.size) != header.item {
            return Err(Error::invalid(format!(
                "a datatype of {} bytes for {}",
                datatype.size, header.descr
            )));
        }
        // A scalar and an array of no axes have no chunks.
        let chunk = chunk.filter(|_| !header.shape.is_empty());
        let mut left = header.bytes;
        let mut next = |out: &mut [u8]| -> Result<()> {
            member.read_exact(out).map_err(damaged)?;
            left -= out.len() as u64;
            if left > 0 {
                return Ok(());
            }
            // The checksum is known behind the last byte.
            match member.read(&mut [0]).map_err(damaged)? {
                0 => Ok(()),
                _ => Err(Error::corrupt("the member goes on behind its array")),
            }
        };
        if header.bytes == 0 {
            next(&mut []).map_err(|e| e.in_object(name))?;
        }
        write_stream(&mut next, datatype, &header.shape, dataset, chunk, budget)
            .map_err(|e| e.in_object(name))
    }
}

/// A staged file as the archive's writer wants it.
#[derive(Debug)]
struct Growing {
    staged: Staged,
    at: u64,
    len: u64,
    state: Rc<State>,
}

/// What [`Growing`] and [`NpzWriter`] tell each other behind the archive's writer, which is told of no failure: it
/// writes more when it is dropped, and takes its own state for broken where a write of it failed half way.
#[derive(Debug, Default)]
struct State {
    /// Nothing is written any more: the archive will not be finished.
    given_up: Cell<bool>,
    /// The first failure, until somebody asks.
    failed: RefCell<Option<Error>>,
}

impl State {
    fn check(&self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if !self.state.given_up.get()
            && let Err(e) = self.staged.write_at(self.at, bytes)
        {
            self.state.given_up.set(true);
            self.state.failed.replace(Some(e));
        }
        self.at += bytes.len() as u64;
        self.len = self.len.max(self.at);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Growing {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.at = moved(self.at, self.len, to)?;
        Ok(self.at)
    }
}

/// A `.npz` file being written member by member under a temporary name.
///
/// The same datasets make the same bytes: members carry the date 1980-01-01.
pub struct NpzWriter {
    /// `None` once it is finished.
    archive: Option<ZipWriter<BufWriter<Growing>>>,
    state: Rc<State>,
    deflate: bool,
}

impl std::fmt::Debug for NpzWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NpzWriter").field("deflate", &self.deflate).finish_non_exhaustive()
    }
}

impl NpzWriter {
    /// Starts a file whose members are stored, or deflated at level 6.
    ///
    /// # Errors
    /// `InvalidArgument`, `NotFound` without the folder, errors of the disk.
    pub fn create(disk: Arc<dyn Disk>, path: impl AsRef<Path>, deflate: bool) -> Result<Self> {
        let state = Rc::<State>::default();
        let staged = Staged::create(disk, path)?;
        let file = Growing { staged, at: 0, len: 0, state: Rc::clone(&state) };
        let archive = ZipWriter::new(BufWriter::with_capacity(JOINED, file));
        Ok(Self { archive: Some(archive), state, deflate })
    }

    /// Adds the stored elements of a dataset behind `head`, the header of its `.npy` file.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is there already; `Unsupported` for elements that lead into the file; errors
    /// of reading, of the monitor and of the disk. After an error the file cannot be finished.
    pub fn add(&mut self, name: &str, head: &[u8], dataset: &Dataset, monitor: &dyn Monitor) -> Result<()> {
        let deflate = self.deflate;
        let state = Rc::clone(&self.state);
        let archive = self.archive().map_err(|e| e.in_object(name))?;
        let total = dataset.elements().saturating_mul(u64::from(dataset.datatype().size));
        // A member of 4 GiB needs longer fields, which are there before its length is known.
        let options = SimpleFileOptions::default()
            .compression_method(if deflate { CompressionMethod::Deflated } else { CompressionMethod::Stored })
            .last_modified_time(DateTime::DEFAULT)
            .large_file(total.saturating_add(head.len() as u64) >= 1 << 31);
        let mut added = || {
            archive
                .start_file(format!("{}{SUFFIX}", name.trim_start_matches('/')), options)
                .map_err(unfinished)?;
            archive.write_all(head).map_err(not_written)?;
            each_slab(dataset, monitor, &mut |bytes| {
                archive.write_all(bytes).map_err(not_written)?;
                state.check()
            })
        };
        added().map_err(|e| {
            state.given_up.set(true);
            e.in_object(name)
        })
    }

    fn archive(&mut self) -> Result<&mut ZipWriter<BufWriter<Growing>>> {
        self.state.check()?;
        match &mut self.archive {
            Some(archive) if !self.state.given_up.get() => Ok(archive),
            _ => Err(Error::invalid("an earlier member failed; the file cannot be finished")),
        }
    }

    /// Writes the list of members, makes the file durable and gives it its name; returns its length.
    ///
    /// # Errors
    /// `InvalidArgument` after an error; `AlreadyExists` unless `replace`; errors of the disk.
    pub fn finish(mut self, replace: bool) -> Result<u64> {
        self.archive()?;
        let Some(archive) = self.archive.take() else {
            return Err(Error::invalid("it was finished already"));
        };
        let buffered = archive.finish().map_err(unfinished)?;
        let file = buffered.into_inner().map_err(|e| not_written(e.into_error()))?;
        self.state.check()?;
        let len = file.len;
        if replace {
            file.staged.publish_replace()?
        } else {
            file.staged.publish_no_replace()?
        };
        Ok(len)
    }
}

impl Drop for NpzWriter {
    fn drop(&mut self) {
        self.state.given_up.set(true);
    }
}

/// Our own error where there is one beneath.
fn not_written(e: std::io::Error) -> Error {
    e.downcast::<Error>().unwrap_or_else(|e| Error::io("writing the archive", e))
}

fn unfinished(e: ZipError) -> Error {
    match e {
        ZipError::Io(e) => not_written(e),
        e => Error::invalid("the member cannot be added").with_source(e),
    }
}
