//! Files that a file names: which may be opened, and each of them once.

use super::file::FileInner;
use super::{ExternalLinks, File};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use tensilo_core::io::FileSource;
use tensilo_core::{Error, Result};

/// All files that were opened through each other's names, by canonical path. They share one budget.
#[derive(Debug, Clone, Default)]
pub(super) struct Family(Arc<Mutex<HashMap<PathBuf, Weak<FileInner>>>>);

impl File {
    /// Opens a file by the name that this file gives it, under the policy for such names.
    ///
    /// # Errors
    /// `NotFound` naming it; `Limit` where the policy forbids it.
    pub(super) fn named(&self, name: &[u8]) -> Result<File> {
        let path = self.named_path(name)?;
        let known =
            self.0.family.0.lock().unwrap_or_else(|p| p.into_inner()).get(&path).and_then(Weak::upgrade);
        if let Some(inner) = known {
            return Ok(File(inner));
        }
        let family = self.0.family.clone();
        let source = Arc::new(FileSource::open(&path)?);
        let opened = File::assemble(source, self.0.options.clone(), self.0.space.budget().clone(), family)?;
        let mut files = self.0.family.0.lock().unwrap_or_else(|p| p.into_inner());
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(path, Arc::downgrade(&opened.0));
        Ok(opened)
    }

    /// The path that a name in this file stands for, symbolic links resolved.
    ///
    /// # Errors
    /// `NotFound` naming it; `Limit` where the policy forbids it.
    pub(super) fn named_path(&self, name: &[u8]) -> Result<PathBuf> {
        let shown = String::from_utf8_lossy(name).into_owned();
        let policy = self.0.options.links;
        if policy == ExternalLinks::Refuse {
            return Err(forbidden(&shown, "names of other files are not followed"));
        }
        let folder = self.folder().ok_or_else(|| {
            Error::unsupported(format!(
                "the file {shown:?} is named, but this source has no folder to look in"
            ))
        })?;
        let wanted = to_path(name)?;
        let missing = |e: std::io::Error| {
            Error::io(format_args!("the file {shown:?}, named in this one, cannot be opened"), e)
        };
        let folder = folder.canonicalize().map_err(missing)?;
        let direct = folder.join(&wanted);
        // An absolute name that leads nowhere is looked for beside the naming file, as libhdf5 does.
        let beside = wanted.file_name().map(|n| folder.join(n)).filter(|_| wanted.is_absolute());
        let allowed = |p: &Path| policy == ExternalLinks::Anywhere || p.starts_with(&folder);
        let found = match direct.canonicalize() {
            Ok(path) if allowed(&path) => return Ok(path),
            Ok(_) => Err(forbidden(&shown, "it lies outside the folder of the file that names it")),
            Err(e) => Err(missing(e)),
        };
        match beside.and_then(|p| p.canonicalize().ok()).filter(|p| allowed(p)) {
            Some(path) => Ok(path),
            None => found,
        }
    }
}

fn forbidden(name: &str, why: &str) -> Error {
    Error::limit(format!("the file {name:?} may not be opened: {why}"))
        .hint("allow it when opening, if the file is trusted: OpenOptions::links")
}

#[cfg(unix)]
fn to_path(name: &[u8]) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    if name.is_empty() || name.contains(&0) {
        return Err(Error::corrupt("an empty file name, or one with a NUL byte"));
    }
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(name)))
}

#[cfg(not(unix))]
fn to_path(name: &[u8]) -> Result<PathBuf> {
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() && !name.contains('\0') => Ok(PathBuf::from(name)),
        _ => Err(Error::corrupt("a file name that is empty, not UTF-8, or holds a NUL byte")),
    }
}
