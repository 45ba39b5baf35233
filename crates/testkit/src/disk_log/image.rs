//! A disk as a value: folders, files and names, to which operations are applied whole or in part.

use super::Op;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Identity of a file or folder, for the whole life of a model disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The root folder.
    pub const ROOT: Self = Self(1);
}

/// Blocks in which space is counted.
pub(super) const BLOCK: u64 = 4096;

/// A file or folder.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Dir(BTreeMap<OsString, NodeId>),
    File(FileData),
}

/// The bytes of a file; a clone shares them until one changes.
#[derive(Debug, Clone, Default)]
pub(super) struct FileData {
    pub(super) bytes: Arc<Vec<u8>>,
}

/// How much of an operation reached the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// Of a write: the bytes below this position in the file.
    Below(u64),
    /// Of a write: the bytes from this position on; the size as after the whole.
    From(u64),
    /// Of a write: the bytes outside these positions.
    Outside(u64, u64),
    /// Of a write: the new size, no data.
    SizeOnly,
    /// Of a write: the data, but the old size.
    DataOnly,
}

/// A disk as a value.
#[derive(Debug, Clone)]
pub struct Image {
    nodes: BTreeMap<NodeId, Node>,
}

impl Default for Image {
    fn default() -> Self {
        Self { nodes: BTreeMap::from([(NodeId::ROOT, Node::Dir(BTreeMap::new()))]) }
    }
}

/// The folders and name of a path; `/` and `.` do not count.
pub(super) fn components(path: &Path) -> Option<Vec<&OsStr>> {
    path.components()
        .filter(|c| !matches!(c, Component::RootDir | Component::CurDir))
        .map(|c| if let Component::Normal(name) = c { Some(name) } else { None })
        .collect()
}

impl Image {
    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    pub(super) fn insert(&mut self, id: NodeId, node: Node) {
        self.nodes.insert(id, node);
    }

    pub(super) fn last_id(&self) -> NodeId {
        self.nodes.keys().next_back().copied().unwrap_or(NodeId::ROOT)
    }

    pub(super) fn dir(&self, id: NodeId) -> Option<&BTreeMap<OsString, NodeId>> {
        match self.nodes.get(&id) {
            Some(Node::Dir(names)) => Some(names),
            _ => None,
        }
    }

    pub(super) fn data(&self, id: NodeId) -> Option<&Arc<Vec<u8>>> {
        match self.nodes.get(&id) {
            Some(Node::File(data)) => Some(&data.bytes),
            _ => None,
        }
    }

    /// What a path names.
    pub(super) fn find(&self, path: &Path) -> Option<NodeId> {
        components(path)?.iter().try_fold(NodeId::ROOT, |at, name| self.dir(at)?.get(*name).copied())
    }

    /// The bytes of the file of this path.
    pub fn bytes(&self, path: &Path) -> Option<&[u8]> {
        Some(self.data(self.find(path)?)?.as_slice())
    }

    /// All files that have a name, with their bytes, in the order of their paths (from the root, which is `/`).
    pub fn files(&self) -> Vec<(PathBuf, Arc<Vec<u8>>)> {
        let mut files = Vec::new();
        self.walk(NodeId::ROOT, Path::new("/"), 0, &mut |path, node| {
            if let Node::File(data) = node {
                files.push((path.to_path_buf(), data.bytes.clone()));
            }
        });
        files
    }

    /// All folders below the root, parents first.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        self.walk(NodeId::ROOT, Path::new("/"), 0, &mut |path, node| {
            if matches!(node, Node::Dir(_)) {
                folders.push(path.to_path_buf());
            }
        });
        folders
    }

    fn walk(&self, dir: NodeId, at: &Path, depth: usize, visit: &mut dyn FnMut(&Path, &Node)) {
        // A subset of renames could make a folder its own ancestor; no real disk shows that.
        let Some(names) = self.dir(dir).filter(|_| depth < 64) else { return };
        for (name, id) in names {
            let path = at.join(name);
            if let Some(node) = self.nodes.get(id) {
                visit(&path, node);
                self.walk(*id, &path, depth + 1, visit);
            }
        }
    }

    fn names_mut(&mut self, dir: NodeId) -> &mut BTreeMap<OsString, NodeId> {
        let node = self.nodes.entry(dir).or_insert_with(|| Node::Dir(BTreeMap::new()));
        match node {
            Node::Dir(names) => names,
            Node::File(_) => unreachable!("node {} is a file", dir.0),
        }
    }

    fn bytes_mut(&mut self, id: NodeId) -> &mut Vec<u8> {
        match self.nodes.entry(id).or_insert_with(|| Node::File(FileData::default())) {
            Node::File(data) => Arc::make_mut(&mut data.bytes),
            Node::Dir(_) => unreachable!("node {} is a folder", id.0),
        }
    }

    fn remove_name(&mut self, dir: NodeId, name: &OsStr, node: NodeId) {
        let names = self.names_mut(dir);
        if names.get(name) == Some(&node) {
            names.remove(name);
        }
    }

    /// Applies one operation, as far as `part` says. Operations that it builds on may be absent.
    pub(super) fn apply(&mut self, op: &Op, part: Part) {
        match op {
            Op::Create { dir, name, node } => {
                self.bytes_mut(*node);
                self.names_mut(*dir).insert(name.clone(), *node);
            }
            Op::Mkdir { dir, name, node } => {
                self.names_mut(*node);
                self.names_mut(*dir).insert(name.clone(), *node);
            }
            Op::Link { dir, name, node } => {
                self.bytes_mut(*node);
                self.names_mut(*dir).insert(name.clone(), *node);
            }
            Op::Rename { from_dir, from, to_dir, to, node } => {
                self.nodes.entry(*node).or_insert_with(|| Node::File(FileData::default()));
                self.remove_name(*from_dir, from, *node);
                self.names_mut(*to_dir).insert(to.clone(), *node);
            }
            Op::Unlink { dir, name, node } | Op::Rmdir { dir, name, node } => {
                self.remove_name(*dir, name, *node);
            }
            Op::Write { node, offset, data } => write(self.bytes_mut(*node), *offset, data, part),
            Op::SetLen { node, len } => self.bytes_mut(*node).resize(*len as usize, 0),
            Op::Allocate { node, offset, len } => {
                let bytes = self.bytes_mut(*node);
                let end = (offset + len) as usize;
                if end > bytes.len() {
                    bytes.resize(end, 0);
                }
            }
            Op::Punch { node, offset, len } => {
                let bytes = self.bytes_mut(*node);
                let end = (offset + len).min(bytes.len() as u64) as usize;
                if let Some(hole) = bytes.get_mut(*offset as usize..end) {
                    hole.fill(0);
                }
            }
            Op::Sync { .. } | Op::SyncDir { .. } | Op::Mark(_) => {}
        }
    }

    /// A number that two images share when every path shows the same bytes (and else hardly ever).
    pub(super) fn visible_hash(&self, hash_of: &mut dyn FnMut(&Arc<Vec<u8>>) -> u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.walk(NodeId::ROOT, Path::new("/"), 0, &mut |path, node| {
            path.hash(&mut hasher);
            match node {
                Node::Dir(_) => u64::MAX.hash(&mut hasher),
                Node::File(data) => (data.bytes.len(), hash_of(&data.bytes)).hash(&mut hasher),
            }
        });
        hasher.finish()
    }
}

/// Writes the part of `data` that reached the disk into a file's bytes.
fn write(bytes: &mut Vec<u8>, offset: u64, data: &[u8], part: Part) {
    let old_len = bytes.len();
    let start = offset as usize;
    let end = start + data.len();
    if data.is_empty() {
        return;
    }
    if end > old_len {
        bytes.resize(end, 0);
    }
    let mut put = |from: u64, to: u64| {
        let (from, to) = ((from as usize).clamp(start, end), (to as usize).clamp(start, end));
        if from < to {
            bytes[from..to].copy_from_slice(&data[from - start..to - start]);
        }
    };
    match part {
        Part::Whole | Part::DataOnly => put(offset, end as u64),
        Part::Below(cut) => put(offset, cut),
        Part::From(cut) => put(cut, end as u64),
        Part::Outside(a, b) => {
            put(offset, a);
            put(b, end as u64);
        }
        Part::SizeOnly => {}
    }
    match part {
        Part::Below(cut) => bytes.truncate(old_len.max((cut as usize).clamp(start, end))),
        Part::DataOnly => bytes.truncate(old_len),
        _ => {}
    }
}
