//! The writer of a new file: raw data goes out in call order, metadata at the end, the superblock last.

use super::addresses::{Addresses, Of};
use super::dataset::DatasetBuilder;
use super::heap::{GlobalHeap, HeapId};
use super::layout::{self, Layout};
use super::options::WriteOptions;
use super::out::{Out, Target as OutTarget};
use super::scales::Scales;
use super::tree::{Attribute, Kind, NodeId, Target, Tracking, Tree, TypeUse, normal};
use super::value::{Data, Value, check_ends, item_size};
use crate::format::Address;
use crate::format::datatype::Datatype;
use crate::format::encode::selection::Region;
use crate::format::encode::superblock::NewSuperblock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::{Disk, DiskFile, Fingerprint, Staged};
use tensilo_core::wire::FieldWriter;
use tensilo_core::{Error, Progress, Result};

/// Bytes kept for the first block of a header whose form is not known yet.
const PINNED: u64 = 40;

/// A finished file.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Length of the file, user block included.
    pub bytes: u64,
    /// All metadata: where each piece is and what it is.
    pub layout: Layout,
    /// What was published; `None` for a file of the caller's.
    pub published: Option<Fingerprint>,
}

/// Writes a new HDF5 file. Nothing stands under its name before [`finish`](Self::finish); dropped, it leaves no
/// file.
///
/// The same calls with the same options make the same bytes, whatever the number of threads: there are no times
/// in the file.
///
/// ```
/// use tensilo_core::io::{Disk, SystemDisk};
/// use tensilo_hdf5::write::{FileWriter, WriteOptions};
/// # let folder = std::env::temp_dir().join(format!("tensilo-write-doc-{}", std::process::id()));
/// # SystemDisk.create_dir(&folder)?;
/// let path = folder.join("a.h5");
/// let mut w = FileWriter::create(SystemDisk::shared(), &path, WriteOptions::default())?;
/// w.attribute("/", "title", "a small file")?;
/// w.dataset("/group/numbers").shape(&[2, 3]).write(&[1_u16, 2, 3, 4, 5, 6])?;
/// w.soft_link("/latest", "/group/numbers")?;
/// let finished = w.finish()?;
/// assert_eq!(finished.bytes, std::fs::metadata(&path).unwrap().len());
/// # SystemDisk.unlink(&path)?;
/// # SystemDisk.remove_dir(&folder)?;
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug)]
pub struct FileWriter<'f> {
    pub(crate) out: Out<'f>,
    pub(crate) tree: Tree,
    pub(crate) options: WriteOptions,
    pub(crate) scales: Scales,
    heap: GlobalHeap,
    path: Option<PathBuf>,
}

impl FileWriter<'static> {
    /// Begins a file that will stand at `path` once it is finished.
    ///
    /// # Errors
    /// `InvalidArgument` for impossible options, `NotFound` without the folder, errors of the disk.
    pub fn create(disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let path = path.as_ref();
        options.check().map_err(|e| e.in_file(path))?;
        let staged = Staged::create(disk, path)?;
        Ok(Self::begin(OutTarget::Staged(staged), options, Some(path.to_path_buf())))
    }
}

impl<'f> FileWriter<'f> {
    /// Writes into a file of the caller's, who also syncs and publishes it; bytes in front of the user block's end
    /// are not touched.
    ///
    /// # Errors
    /// `InvalidArgument` for impossible options.
    pub fn over(file: &'f dyn DiskFile, options: WriteOptions) -> Result<Self> {
        options.check()?;
        Ok(Self::begin(OutTarget::Borrowed(file), options, None))
    }

    fn begin(target: OutTarget<'f>, options: WriteOptions, path: Option<PathBuf>) -> Self {
        let tracking = if options.track_order { Tracking::ALL } else { Tracking::default() };
        let superblock = NewSuperblock::len(options.superblock_version());
        let out = Out::new(target, options.user_block, Addresses::new(superblock, options.file_space.page()));
        Self {
            out,
            tree: Tree::new(tracking),
            options,
            scales: Scales::default(),
            heap: GlobalHeap::default(),
            path,
        }
    }

    fn in_file(&self, e: Error) -> Error {
        match &self.path {
            Some(path) => e.in_file(path),
            None => e,
        }
    }

    pub(crate) fn poll(&self, stage: &'static str, done: u64, total: u64) -> Result<()> {
        self.options.monitor.poll(&Progress { stage, done, total })
    }

    /// The oldest libhdf5 that must open the file.
    pub fn bound(&self) -> super::Bound {
        self.options.bound
    }

    /// Numbers the links of a group that tracks their order: all of them, in the order given.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` when the names are not those of the group's links.
    pub fn order_links<N: AsRef<[u8]>>(&mut self, group: impl AsRef<[u8]>, names: &[N]) -> Result<()> {
        let id = self.tree.find(group.as_ref()).map_err(|e| self.in_file(e))?;
        let wrong = || {
            let path = String::from_utf8_lossy(group.as_ref()).into_owned();
            Error::invalid("the names are not those of the group's links").in_object(path)
        };
        let Kind::Group(links) = &mut self.tree.node_mut(id).kind else { return Err(wrong()) };
        if links.len() != names.len() {
            return Err(wrong());
        }
        for (i, name) in names.iter().enumerate() {
            links.get_mut(name.as_ref()).ok_or_else(wrong)?.order = i as u64;
        }
        Ok(())
    }

    /// Makes a group, and those above it where they are missing.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument` when something on the way is no group.
    pub fn create_group(&mut self, path: impl AsRef<[u8]>) -> Result<()> {
        self.tree.create(path.as_ref(), Kind::Group(BTreeMap::new())).map(|_| ()).map_err(|e| self.in_file(e))
    }

    /// Begins a dataset; the groups above it are made where they are missing.
    pub fn dataset(&mut self, path: impl AsRef<[u8]>) -> DatasetBuilder<'_, 'f> {
        DatasetBuilder::new(self, path.as_ref())
    }

    /// Adds an attribute to an object that was made before.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists`, errors of the disk.
    pub fn attribute(
        &mut self,
        object: impl AsRef<[u8]>,
        name: impl AsRef<[u8]>,
        value: impl Into<Value>,
    ) -> Result<()> {
        let id = self.tree.find(object.as_ref()).map_err(|e| self.in_file(e))?;
        self.add_attribute(id, name.as_ref(), value.into()).map_err(|e| self.in_file(e))
    }

    /// Adds an attribute of a committed datatype.
    ///
    /// # Errors
    /// As [`attribute`](Self::attribute), and `InvalidArgument` when `datatype` is no committed datatype or not
    /// that of the value.
    pub fn attribute_of_type(
        &mut self,
        object: impl AsRef<[u8]>,
        name: impl AsRef<[u8]>,
        datatype: impl AsRef<[u8]>,
        value: Value,
    ) -> Result<()> {
        let committed = self.committed(datatype.as_ref())?;
        if committed.datatype != value.datatype {
            return Err(Error::invalid("the value is not of the committed datatype"));
        }
        let id = self.tree.find(object.as_ref())?;
        self.put_attribute(id, name.as_ref(), value, committed.committed)
    }

    pub(crate) fn add_attribute(&mut self, id: NodeId, name: &[u8], value: Value) -> Result<()> {
        self.put_attribute(id, name, value, None)
    }

    fn put_attribute(
        &mut self,
        id: NodeId,
        name: &[u8],
        value: Value,
        committed: Option<NodeId>,
    ) -> Result<()> {
        if name.is_empty() || name.contains(&0) || name.len() > 65_534 {
            return Err(Error::invalid(
                "an attribute's name is empty, contains a NUL or is longer than 65534 bytes",
            ));
        }
        value.datatype.encode(&mut FieldWriter::new(), self.options.bound)?;
        let data = match value.data {
            Data::Stored(bytes) => bytes,
            Data::Heap(elements) => {
                let item = item_size(&value.datatype)?;
                let mut bytes = Vec::with_capacity(16 * elements.len());
                for e in &elements {
                    check_ends(&value.datatype, e)?;
                    bytes.extend_from_slice(&self.heap_element(e, item)?);
                }
                bytes
            }
        };
        let datatype = TypeUse { datatype: value.datatype, committed };
        let attribute =
            Attribute { name: name.to_vec(), datatype, dataspace: value.dataspace, data, order: 0 };
        self.tree.add_attribute(id, attribute)
    }

    /// Puts an object into the file's global heap and returns its place: for elements that contain
    /// variable-length parts. An empty object takes no place.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn heap_object(&mut self, data: &[u8]) -> Result<HeapId> {
        self.heap.add(data, &mut self.out)
    }

    /// The 16 bytes of a variable-length element whose items are `data`.
    pub(crate) fn heap_element(&mut self, data: &[u8], item: usize) -> Result<[u8; 16]> {
        let items = u32::try_from(data.len() / item)
            .map_err(|_| Error::invalid("an element of 4 Gi items or more"))?;
        Ok(self.heap_object(data)?.element(items))
    }

    /// Makes a datatype an object of the file, for datasets and attributes to share.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`.
    pub fn commit_datatype(&mut self, path: impl AsRef<[u8]>, datatype: Datatype) -> Result<()> {
        self.tree.create(path.as_ref(), Kind::Datatype(datatype)).map(|_| ()).map_err(|e| self.in_file(e))
    }

    pub(crate) fn committed(&self, path: &[u8]) -> Result<TypeUse> {
        let id = self.tree.find(path)?;
        match &self.tree.node(id).kind {
            Kind::Datatype(t) => Ok(TypeUse { datatype: t.clone(), committed: Some(id) }),
            _ => {
                Err(Error::invalid("this is no committed datatype").in_object(String::from_utf8_lossy(path)))
            }
        }
    }

    /// Gives an object a second name.
    ///
    /// # Errors
    /// `NotFound` without the object, `AlreadyExists`.
    pub fn hard_link(&mut self, path: impl AsRef<[u8]>, object: impl AsRef<[u8]>) -> Result<()> {
        let id = self.tree.find(object.as_ref()).map_err(|e| self.in_file(e))?;
        self.tree.create_link(path.as_ref(), Target::Hard(id)).map_err(|e| self.in_file(e))
    }

    /// Makes a link to a path of this file, which need not exist.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`.
    pub fn soft_link(&mut self, path: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Result<()> {
        let target = checked_text(target.as_ref(), "soft link's path")?;
        self.tree.create_link(path.as_ref(), Target::Soft(target)).map_err(|e| self.in_file(e))
    }

    /// Makes a link to an object of another file, which need not exist.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`.
    pub fn external_link(
        &mut self,
        path: impl AsRef<[u8]>,
        file: impl AsRef<[u8]>,
        object: impl AsRef<[u8]>,
    ) -> Result<()> {
        let file = checked_text(file.as_ref(), "external link's file")?;
        let object = checked_text(object.as_ref(), "external link's path")?;
        self.tree.create_link(path.as_ref(), Target::External { file, object }).map_err(|e| self.in_file(e))
    }

    /// Makes a link of a class of the user's own (65 to 255).
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`.
    pub fn user_link(&mut self, path: impl AsRef<[u8]>, class: u8, data: impl Into<Vec<u8>>) -> Result<()> {
        if class < 65 {
            return Err(Error::invalid(format!("link class {class} is the library's own")));
        }
        self.tree
            .create_link(path.as_ref(), Target::User { class, data: data.into() })
            .map_err(|e| self.in_file(e))
    }

    /// Sets the comment of an object.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument`.
    pub fn comment(&mut self, object: impl AsRef<[u8]>, text: impl AsRef<[u8]>) -> Result<()> {
        let text = checked_text(text.as_ref(), "comment")?;
        let id = self.tree.find(object.as_ref()).map_err(|e| self.in_file(e))?;
        self.tree.node_mut(id).comment = Some(text);
        Ok(())
    }

    /// The address of an object's header, which is what an object reference stores. It is fixed by this call.
    ///
    /// # Errors
    /// `NotFound` when the object was not made yet.
    pub fn reference(&mut self, object: impl AsRef<[u8]>) -> Result<Address> {
        let id = self.tree.find(object.as_ref()).map_err(|e| self.in_file(e))?;
        self.pin(id)
    }

    /// Fixes the address of an object's header.
    pub(crate) fn pin(&mut self, id: NodeId) -> Result<Address> {
        if let Some(address) = self.tree.node(id).pinned {
            return Ok(address);
        }
        // As large as any header's first block can have to be, so that its form need not be known yet.
        let address = self.out.allocate(PINNED, Of::Metadata)?;
        self.tree.node_mut(id).pinned = Some(address);
        Ok(address)
    }

    /// The header address of an object that may be made later: for references to what comes behind.
    ///
    /// # Errors
    /// Errors of the disk; [`finish`](Self::finish) fails when the object was never made.
    pub fn reserve(&mut self, object: impl AsRef<[u8]>) -> Result<Address> {
        let path = normal(object.as_ref());
        if self.tree.find(&path).is_ok() {
            return self.reference(path);
        }
        if let Some(address) = self.tree.reserved.get(&path) {
            return Ok(*address);
        }
        let address = self.out.allocate(PINNED, Of::Metadata)?;
        self.tree.reserved.insert(path, address);
        Ok(address)
    }

    /// Sets which orders of making an object that was just made keeps, instead of what the options say.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn track(&mut self, object: impl AsRef<[u8]>, order: Tracking) -> Result<()> {
        let id = self.tree.find(object.as_ref()).map_err(|e| self.in_file(e))?;
        self.tree.node_mut(id).order = order;
        Ok(())
    }

    /// A reference to a part of a dataset, of the kind of HDF5 1.0 to 1.10: the 12 bytes of an element.
    ///
    /// # Errors
    /// As [`reference`](Self::reference), and `Unsupported` for selections that the bound's releases cannot read.
    pub fn region_reference(&mut self, dataset: impl AsRef<[u8]>, region: &Region) -> Result<[u8; 12]> {
        let address = self.reference(dataset)?;
        let mut w = FieldWriter::new();
        w.u64(address.0);
        region.encode(&mut w, self.options.bound)?;
        let id = self.heap_object(w.as_slice())?;
        let mut element = [0; 12];
        element[..8].copy_from_slice(&id.collection.0.to_le_bytes());
        element[8..].copy_from_slice(&id.index.to_le_bytes());
        Ok(element)
    }

    /// Hands to the disk what was joined from small writes, so that it can be read back; nothing becomes durable by it.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Writes bytes of the user block.
    ///
    /// # Errors
    /// `InvalidArgument` when they pass its end, errors of the disk.
    pub fn write_user_block(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let user_block = self.options.user_block;
        if at.checked_add(bytes.len() as u64).is_none_or(|end| end > user_block) {
            return Err(Error::invalid(format!(
                "{} bytes at {at} pass the end of the user block of {user_block}",
                bytes.len()
            )));
        }
        self.out.write_absolute(at, bytes)
    }

    /// Writes the metadata and, last, the superblock; then publishes the file, unless it is the caller's.
    ///
    /// # Errors
    /// `AlreadyExists` when something stands at the path, `InvalidArgument` when a dataset was left unfinished,
    /// `Unsupported` for what the bound cannot express, errors of the disk. After an error there is no file.
    pub fn finish(self) -> Result<Finished> {
        self.finish_as(false)
    }

    /// As [`finish`](Self::finish), but replaces a file of that name.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_replacing(self) -> Result<Finished> {
        self.finish_as(true)
    }

    fn finish_as(self, replace: bool) -> Result<Finished> {
        let path = self.path.clone();
        self.finished(replace).map_err(|e| match path {
            Some(path) => e.in_file(path),
            None => e,
        })
    }

    fn finished(mut self, replace: bool) -> Result<Finished> {
        if self.out.is_broken() {
            return Err(Error::invalid("a write to this file failed or a dataset was left unfinished"));
        }
        self.write_scales()?;
        self.heap.flush(&mut self.out)?;
        if let Some(path) = self.tree.reserved.keys().next() {
            return Err(Error::invalid("its address was reserved, but it was never made")
                .in_object(String::from_utf8_lossy(path)));
        }
        let layout = layout::layout(&self.tree, &self.options, self.out.addresses().clone())?;
        for block in &layout.blocks {
            self.out.write(block.address, &block.bytes)?;
        }
        self.out.end_at(layout.end)?;
        self.poll("writing metadata", layout.end, layout.end)?;
        let superblock = NewSuperblock {
            version: self.options.superblock_version(),
            base: self.options.user_block,
            end: layout.end,
            root: layout.root,
            extension: layout.extension,
        };
        self.out.write(Address(0), &superblock.encode())?;
        self.out.flush()?;
        let bytes = self.options.user_block + layout.end;
        let published = self.out.publish(replace)?;
        Ok(Finished { bytes, layout, published })
    }
}

fn checked_text(text: &[u8], what: &str) -> Result<Vec<u8>> {
    if text.is_empty() || text.contains(&0) || text.len() > 65_000 {
        return Err(Error::invalid(format!(
            "the {what} is empty, contains a NUL or is longer than 65000 bytes"
        )));
    }
    Ok(text.to_vec())
}
