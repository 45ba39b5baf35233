//! A disk in memory that implements [`Disk`] fully: names, bytes, locks, and running out of space.

use super::Op;
use super::image::{BLOCK, FileData, Image, Node, NodeId, components};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tensilo_core::io::{Disk, DiskFile, Fingerprint, LockKind, MemorySource};
use tensilo_core::{Error, ErrorKind, Result};

/// Longest file of a model disk; longer ones are refused as a full disk would.
const LONGEST: u64 = 1 << 30;
/// What an unlimited model disk says is free.
const UNLIMITED: u64 = 1 << 60;
const DEVICE: u64 = 0x7e57;

/// A disk in memory. Clones are handles to the same disk.
///
/// Paths are taken from its root, whether or not they start with `/`; `..` is refused.
#[derive(Debug, Clone)]
pub struct ModelDisk(Arc<Mutex<State>>);

#[derive(Debug)]
pub(super) struct State {
    pub(super) image: Image,
    /// Where operations are recorded, when they are.
    pub(super) log: Option<Vec<Op>>,
    last_id: NodeId,
    last_handle: u64,
    clock: i128,
    space: Option<u64>,
    handles: BTreeMap<NodeId, usize>,
    locks: BTreeMap<NodeId, BTreeMap<u64, LockKind>>,
    changed: BTreeMap<NodeId, i128>,
    blocks: BTreeMap<NodeId, BTreeSet<u64>>,
}

fn io_error(doing: &str, path: &Path, kind: io::ErrorKind) -> Error {
    Error::io(doing, kind.into()).in_file(path)
}

impl Default for ModelDisk {
    fn default() -> Self {
        Self::from_image(Image::default())
    }
}

impl ModelDisk {
    /// An empty disk without a limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty disk with space for this many bytes, counted in blocks of 4096.
    pub fn with_space(bytes: u64) -> Self {
        let disk = Self::new();
        disk.lock().space = Some(bytes);
        disk
    }

    /// A disk that holds this image.
    pub fn from_image(image: Image) -> Self {
        let last_id = image.last_id();
        let mut blocks = BTreeMap::new();
        for id in (1..=last_id.0).map(NodeId) {
            if let Some(bytes) = image.data(id) {
                blocks.insert(id, (0..(bytes.len() as u64).div_ceil(BLOCK)).collect());
            }
        }
        Self(Arc::new(Mutex::new(State {
            image,
            log: None,
            last_id,
            last_handle: 0,
            clock: 0,
            space: None,
            handles: BTreeMap::new(),
            locks: BTreeMap::new(),
            changed: BTreeMap::new(),
            blocks,
        })))
    }

    /// Sets the space in bytes that files may take together; `None` for no limit.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.lock().space = bytes;
    }

    /// Puts a file there, with its folders, replacing what has that name; for setting a test up.
    ///
    /// # Panics
    /// When a file is in the way of a folder.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        let path = path.as_ref();
        let folder = path.parent().unwrap_or(Path::new("/"));
        self.create_dir_all(folder);
        self.unlink(path).ok();
        let file = self.create_new(path).expect("a place for the file");
        file.write_at(0, &bytes.into()).expect("room for the file");
    }

    /// Creates a folder and all above it.
    ///
    /// # Panics
    /// When a file is in the way.
    pub fn create_dir_all(&self, path: &Path) {
        let mut at = PathBuf::from("/");
        for name in components(path).expect("a plain path") {
            at.push(name);
            match self.create_dir(&at) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => panic!("{e}"),
                _ => {}
            }
        }
    }

    /// A copy of all it holds.
    pub fn image(&self) -> Image {
        self.lock().image.clone()
    }

    /// The bytes of a file now.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.lock().image.bytes(path.as_ref()).map(<[u8]>::to_vec)
    }

    /// The bytes of a file now, as a source for readers.
    pub fn source(&self, path: impl AsRef<Path>) -> Option<MemorySource> {
        self.bytes(path).map(MemorySource::new)
    }

    /// Does anything have this name?
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.lock().image.find(path.as_ref()).is_some()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, state: &mut State, node: NodeId, path: &Path) -> Box<dyn DiskFile> {
        state.last_handle += 1;
        *state.handles.entry(node).or_default() += 1;
        Box::new(ModelFile { disk: self.clone(), node, handle: state.last_handle, path: path.to_path_buf() })
    }

    fn rename_as(&self, from: &Path, to: &Path, replace: bool) -> Result<()> {
        let mut state = self.lock();
        let (from_dir, from_name) = state.place(from)?;
        let (to_dir, to_name) = state.place(to)?;
        let node = state
            .named(from_dir, &from_name)
            .ok_or_else(|| io_error("cannot publish", to, io::ErrorKind::NotFound))?;
        if let Some(there) = state.named(to_dir, &to_name) {
            if !replace {
                return Err(io_error("cannot publish", to, io::ErrorKind::AlreadyExists));
            }
            if there == node {
                return Ok(());
            }
            let refused = match (state.image.dir(node), state.image.dir(there)) {
                (None, Some(_)) => Some(io::ErrorKind::IsADirectory),
                (Some(_), None) => Some(io::ErrorKind::NotADirectory),
                (Some(_), Some(names)) if !names.is_empty() => Some(io::ErrorKind::DirectoryNotEmpty),
                _ => None,
            };
            if let Some(kind) = refused {
                return Err(io_error("cannot publish", to, kind));
            }
        }
        state.apply(Op::Rename { from_dir, from: from_name, to_dir, to: to_name, node });
        Ok(())
    }
}

impl State {
    /// The folder and last name of a path; the name need not exist.
    fn place(&self, path: &Path) -> Result<(NodeId, OsString)> {
        let names = components(path)
            .ok_or_else(|| Error::invalid("a model disk takes no '..' in paths").in_file(path))?;
        let (name, folders) =
            names.split_last().ok_or_else(|| io_error("cannot use", path, io::ErrorKind::AlreadyExists))?;
        let mut dir = NodeId::ROOT;
        for folder in folders {
            dir = self
                .named(dir, folder)
                .ok_or_else(|| io_error("no such folder", path, io::ErrorKind::NotFound))?;
            if self.image.dir(dir).is_none() {
                return Err(io_error("cannot use", path, io::ErrorKind::NotADirectory));
            }
        }
        Ok((dir, name.to_os_string()))
    }

    fn named(&self, dir: NodeId, name: &std::ffi::OsStr) -> Option<NodeId> {
        self.image.dir(dir)?.get(name).copied()
    }

    /// What a path names; the error tells a missing folder from a file in its place.
    fn find(&self, doing: &str, path: &Path) -> Result<NodeId> {
        if components(path).is_some_and(|names| names.is_empty()) {
            return Ok(NodeId::ROOT);
        }
        let (dir, name) = self.place(path)?;
        self.named(dir, &name).ok_or_else(|| io_error(doing, path, io::ErrorKind::NotFound))
    }

    fn folder(&self, path: &Path) -> Result<NodeId> {
        let node = self.find("no such folder", path)?;
        match self.image.node(node) {
            Some(Node::Dir(_)) => Ok(node),
            _ => Err(io_error("cannot use", path, io::ErrorKind::NotADirectory)),
        }
    }

    pub(super) fn apply(&mut self, op: Op) {
        self.image.apply(&op, super::image::Part::Whole);
        if let Some(node) = op.data_node() {
            self.clock += 1;
            self.changed.insert(node, self.clock);
        }
        self.record(op);
    }

    pub(super) fn record(&mut self, op: Op) {
        if let Some(log) = &mut self.log {
            log.push(op);
        }
    }

    fn new_id(&mut self) -> NodeId {
        self.last_id.0 += 1;
        self.last_id
    }

    /// Blocks that are free; files that have neither a name nor a handle take none.
    fn free_blocks(&mut self) -> u64 {
        let Some(space) = self.space else { return UNLIMITED / BLOCK };
        let mut alive: BTreeSet<NodeId> = self.handles.keys().copied().collect();
        let mut folders = vec![NodeId::ROOT];
        while let Some(names) = folders.pop().and_then(|f| self.image.dir(f)) {
            for id in names.values() {
                alive.insert(*id);
                if self.image.dir(*id).is_some() {
                    folders.push(*id);
                }
            }
        }
        self.blocks.retain(|id, _| alive.contains(id));
        let used: u64 = self.blocks.values().map(|b| b.len() as u64).sum();
        (space / BLOCK).saturating_sub(used)
    }
}

impl Disk for ModelDisk {
    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let mut state = self.lock();
        let (dir, name) = state.place(path)?;
        if state.named(dir, &name).is_some() {
            return Err(io_error("cannot create", path, io::ErrorKind::AlreadyExists));
        }
        let node = state.new_id();
        state.apply(Op::Create { dir, name, node });
        Ok(self.handle(&mut state, node, path))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let mut state = self.lock();
        let node = state.find("cannot open", path)?;
        if state.image.data(node).is_none() {
            return Err(io_error("cannot open", path, io::ErrorKind::IsADirectory));
        }
        Ok(self.handle(&mut state, node, path))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.lock();
        let (dir, name) = state.place(path)?;
        if state.named(dir, &name).is_some() {
            return Err(io_error("cannot create folder", path, io::ErrorKind::AlreadyExists));
        }
        let node = state.new_id();
        state.apply(Op::Mkdir { dir, name, node });
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.lock();
        let node = state.find("cannot publish", from)?;
        let (dir, name) = state.place(to)?;
        if state.named(dir, &name).is_some() {
            return Err(io_error("cannot publish", to, io::ErrorKind::AlreadyExists));
        }
        if state.image.dir(node).is_some() {
            return Err(io_error("cannot publish", to, io::ErrorKind::PermissionDenied));
        }
        state.apply(Op::Link { dir, name, node });
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.rename_as(from, to, true)
    }

    fn rename_no_replace(&self, from: &Path, to: &Path) -> Result<()> {
        self.rename_as(from, to, false)
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        let mut state = self.lock();
        let (dir, name) = state.place(path)?;
        let node = state
            .named(dir, &name)
            .ok_or_else(|| io_error("cannot remove", path, io::ErrorKind::NotFound))?;
        if state.image.dir(node).is_some() {
            return Err(io_error("cannot remove", path, io::ErrorKind::IsADirectory));
        }
        state.apply(Op::Unlink { dir, name, node });
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.lock();
        let (dir, name) = state.place(path)?;
        let node = state
            .named(dir, &name)
            .ok_or_else(|| io_error("cannot remove folder", path, io::ErrorKind::NotFound))?;
        let refused = match state.image.dir(node) {
            None => Some(io::ErrorKind::NotADirectory),
            Some(names) if !names.is_empty() => Some(io::ErrorKind::DirectoryNotEmpty),
            Some(_) => None,
        };
        if let Some(kind) = refused {
            return Err(io_error("cannot remove folder", path, kind));
        }
        state.apply(Op::Rmdir { dir, name, node });
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.lock();
        let dir = state.folder(path)?;
        state.record(Op::SyncDir { dir });
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>> {
        let state = self.lock();
        let dir = state.folder(path)?;
        Ok(state.image.dir(dir).map(|names| names.keys().cloned().collect()).unwrap_or_default())
    }

    fn free_space(&self, _path: &Path) -> Result<u64> {
        Ok(self.lock().free_blocks() * BLOCK)
    }
}

/// A file of a [`ModelDisk`], which stays usable when it loses its name.
#[derive(Debug)]
struct ModelFile {
    disk: ModelDisk,
    node: NodeId,
    handle: u64,
    path: PathBuf,
}

impl ModelFile {
    fn full(&self, doing: &str) -> Error {
        io_error(doing, &self.path, io::ErrorKind::StorageFull)
    }

    fn bytes(&self, state: &State) -> Arc<Vec<u8>> {
        state.image.data(self.node).cloned().unwrap_or_default()
    }

    /// How many bytes from `offset` on find space, which they take.
    fn take_space(&self, state: &mut State, offset: u64, len: u64) -> u64 {
        let mut free = state.free_blocks();
        let blocks = state.blocks.entry(self.node).or_default();
        for block in offset / BLOCK..(offset + len).div_ceil(BLOCK) {
            if !blocks.contains(&block) {
                if free == 0 {
                    return (block * BLOCK).saturating_sub(offset);
                }
                free -= 1;
                blocks.insert(block);
            }
        }
        len
    }

    fn in_range(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= LONGEST)
    }
}

impl DiskFile for ModelFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.disk.lock();
        let doing = format!("cannot write {} bytes", data.len());
        if !self.in_range(offset, data.len() as u64) {
            return Err(self.full(&doing).at(offset));
        }
        let fits = self.take_space(&mut state, offset, data.len() as u64) as usize;
        if fits > 0 {
            state.apply(Op::Write { node: self.node, offset, data: data[..fits].into() });
        }
        if fits < data.len() { Err(self.full(&doing).at(offset)) } else { Ok(()) }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let bytes = self.bytes(&self.disk.lock());
        let end = offset.checked_add(buf.len() as u64).filter(|e| *e <= bytes.len() as u64);
        let Some(end) = end else {
            let doing = format!("cannot read {} bytes", buf.len());
            return Err(io_error(&doing, &self.path, io::ErrorKind::UnexpectedEof).at(offset));
        };
        if !buf.is_empty() {
            buf.copy_from_slice(&bytes[offset as usize..end as usize]);
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes(&self.disk.lock()).len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut state = self.disk.lock();
        if len > LONGEST {
            return Err(self.full("cannot set the length"));
        }
        state.blocks.entry(self.node).or_default().retain(|b| b * BLOCK < len);
        state.apply(Op::SetLen { node: self.node, len });
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let mut state = self.disk.lock();
        if len == 0 {
            return Ok(());
        }
        let before = state.blocks.get(&self.node).cloned().unwrap_or_default();
        if !self.in_range(offset, len) || self.take_space(&mut state, offset, len) < len {
            state.blocks.insert(self.node, before);
            return Err(self.full("cannot reserve space"));
        }
        state.apply(Op::Allocate { node: self.node, offset, len });
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        let mut state = self.disk.lock();
        if len == 0 {
            return Ok(());
        }
        let end = offset.saturating_add(len);
        state
            .blocks
            .entry(self.node)
            .or_default()
            .retain(|b| b * BLOCK < offset || b.saturating_add(1) * BLOCK > end);
        state.apply(Op::Punch { node: self.node, offset, len });
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.disk.lock().record(Op::Sync { node: self.node });
        Ok(())
    }

    fn try_lock(&self, kind: LockKind) -> Result<()> {
        let mut state = self.disk.lock();
        let locks = state.locks.entry(self.node).or_default();
        let clash = locks
            .iter()
            .any(|(h, k)| *h != self.handle && (kind == LockKind::Exclusive || *k == LockKind::Exclusive));
        if clash {
            return Err(
                Error::new(ErrorKind::Locked, "another process or handle holds a lock").in_file(&self.path)
            );
        }
        locks.insert(self.handle, kind);
        Ok(())
    }

    fn unlock(&self) -> Result<()> {
        if let Some(locks) = self.disk.lock().locks.get_mut(&self.node) {
            locks.remove(&self.handle);
        }
        Ok(())
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        let state = self.disk.lock();
        Ok(Fingerprint {
            device: DEVICE,
            inode: self.node.0,
            bytes: self.bytes(&state).len() as u64,
            mtime_ns: state.changed.get(&self.node).copied().unwrap_or(0),
        })
    }
}

impl Drop for ModelFile {
    fn drop(&mut self) {
        self.unlock().ok();
        let mut state = self.disk.lock();
        if let Some(count) = state.handles.get_mut(&self.node) {
            *count -= 1;
            if *count == 0 {
                state.handles.remove(&self.node);
            }
        }
    }
}

/// Copies a real folder into an image; its root is that folder.
pub(super) fn load_folder(folder: &Path) -> io::Result<Image> {
    let mut image = Image::default();
    let mut last = NodeId::ROOT;
    let mut waiting = vec![(folder.to_path_buf(), NodeId::ROOT)];
    while let Some((path, dir)) = waiting.pop() {
        let mut names = BTreeMap::new();
        let mut entries = std::fs::read_dir(&path)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            last.0 += 1;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                waiting.push((entry.path(), last));
            } else if kind.is_file() {
                let bytes = Arc::new(std::fs::read(entry.path())?);
                image.insert(last, Node::File(FileData { bytes }));
            } else {
                continue;
            }
            names.insert(entry.file_name(), last);
        }
        image.insert(dir, Node::Dir(names));
    }
    Ok(image)
}
