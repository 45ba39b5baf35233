//! Opening every data file and its prepared index; a stale or damaged index is rebuilt and kept again.

use crate::source::authentication::examine;
use crate::source::inspect::InspectOptions;
use crate::source::member;
use crate::source::qh5_index::{Bound, PreparedIndex};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tensilo_core::io::{ByteSource, Disk, FileSource, Fingerprint, Staged};
use tensilo_core::{Budget, Error, ErrorKind, Monitor, Result};

/// Where prepared indexes are kept.
#[derive(Debug, Clone)]
pub(crate) struct IndexFolder {
    folder: Option<PathBuf>,
    /// Was the folder named by the caller? Then a failure to write there is an error.
    asked_for: bool,
    disk: Arc<dyn Disk>,
}

impl IndexFolder {
    /// The caller's folder, or the user's cache folder.
    pub fn choose(given: Option<&Path>, disk: &Arc<dyn Disk>) -> Self {
        let folder = given.map(Path::to_path_buf).or_else(user_cache);
        Self { folder, asked_for: given.is_some(), disk: disk.clone() }
    }
}

/// `$XDG_CACHE_HOME/tensilo`, else `~/.cache/tensilo`.
fn user_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache"))).map(|p| p.join("tensilo"))
}

/// A data file with its index.
pub(crate) struct Prepared {
    pub path: PathBuf,
    pub now: Fingerprint,
    pub index: PreparedIndex,
    /// Bytes of the stored index.
    pub bytes: u64,
    /// Where it is kept, if it could be.
    pub kept: Option<PathBuf>,
}

/// Prepares all data files of a dataset, in order; several at a time.
///
/// # Errors
/// As [`inspect`](super::inspect::inspect); the first failing file is reported.
pub(crate) fn prepare<'a>(
    data: impl Iterator<Item = &'a Path>,
    id: &str,
    folder: &IndexFolder,
    options: &InspectOptions,
    monitor: &dyn Monitor,
) -> Result<Vec<Prepared>> {
    let paths: Vec<&Path> = data.collect();
    let done: Vec<Mutex<Option<Prepared>>> = paths.iter().map(|_| Mutex::new(None)).collect();
    let work = |i: usize, monitor: &dyn Monitor| -> Result<()> {
        let prepared = one(paths[i], id, folder, options, monitor)?;
        *done[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(prepared);
        Ok(())
    };
    if paths.len() == 1 || options.threads.get() == 1 {
        for i in 0..paths.len() {
            work(i, monitor)?;
        }
    } else {
        // The caller's thread asks its monitor between files; other threads cannot.
        let total = paths.len() as u64;
        options.threads.for_each(
            paths.len(),
            monitor,
            "indexing source",
            total,
            || (),
            |(), i, done| {
                work(i, &tensilo_core::Quiet)?;
                done.add(1);
                Ok(())
            },
        )?;
    }
    done.into_iter()
        .map(|slot| {
            let prepared = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            prepared.ok_or_else(|| Error::invalid("a data file was not prepared"))
        })
        .collect()
}

fn one(
    path: &Path,
    id: &str,
    folder: &IndexFolder,
    options: &InspectOptions,
    monitor: &dyn Monitor,
) -> Result<Prepared> {
    let now = examine(path)?;
    let file = member::open(path, &options.limits)?;
    let stack = member::stack(&file, path)?;
    let bound = Bound { path, now };
    let kept = folder.folder.as_ref().map(|f| f.join(id).join(index_name(path)));
    let stored = kept.as_deref().and_then(|p| read_whole(p, &options.limits));
    let believed = stored.and_then(|bytes| {
        Some((PreparedIndex::decode(&bytes, &bound, stack.shape, &stack.chunks)?, bytes.len() as u64))
    });
    if let Some((index, bytes)) = believed {
        return Ok(Prepared { path: path.to_path_buf(), now, index, bytes, kept });
    }
    let source = FileSource::open(path)?;
    let budget = Budget::new(options.limits.clone());
    let index = PreparedIndex::build(&source, stack.shape, &stack.chunks, &budget, monitor)
        .map_err(|e| e.in_file(path))?;
    if examine(path)? != now || source.fingerprint()? != now {
        return Err(Error::source_changed("the file changed while it was indexed").in_file(path));
    }
    let encoded = index.encode(&bound);
    let kept = match kept.map(|p| keep(&p, &encoded, &folder.disk).map(|()| p)).transpose() {
        Ok(kept) => kept,
        Err(e) if folder.asked_for => {
            return Err(e
                .context("cannot keep the prepared index")
                .hint("choose another folder for indexes"));
        }
        Err(_) => None,
    };
    Ok(Prepared { path: path.to_path_buf(), now, index, bytes: encoded.len() as u64, kept })
}

fn index_name(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(".qh5idx");
    name.into()
}

/// A stored index, if there is one that may be believed to be one.
fn read_whole(path: &Path, limits: &tensilo_core::Limits) -> Option<Vec<u8>> {
    let source = FileSource::open(path).ok()?;
    let n = usize::try_from(source.len()).ok().filter(|n| *n as u64 <= limits.bytes)?;
    let mut bytes = vec![0; n];
    source.read_at(0, &mut bytes).ok()?;
    Some(bytes)
}

fn keep(path: &Path, bytes: &[u8], disk: &Arc<dyn Disk>) -> Result<()> {
    if let Some(folder) = path.parent() {
        create_folders(folder, &**disk)?;
    }
    let staged = Staged::create(disk.clone(), path)?;
    staged.write_at(0, bytes)?;
    staged.publish_replace()?;
    Ok(())
}

/// Creates a folder and those above it.
pub(crate) fn create_folders(folder: &Path, disk: &dyn Disk) -> Result<()> {
    if folder.as_os_str().is_empty() || disk.list(folder).is_ok() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        create_folders(above, disk)?;
    }
    match disk.create_dir(folder) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}
