//! Where things are: the root, the crates, the files that git tracks.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the root `Cargo.toml`.
pub fn root() -> PathBuf {
    // Cargo says it anew in every run: a target folder may be shared between checkouts, or move with one.
    let here =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or(env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().unwrap_or(&here).to_path_buf()
}

/// The folder that cargo builds into.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|v| !v.is_empty()) {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// A command that runs in the root.
pub fn command(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut c = Command::new(program);
    c.args(args).current_dir(root());
    c
}

/// Cargo, as it called us.
pub fn cargo(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args)
}

/// One package of the workspace.
#[derive(Debug)]
pub struct Package {
    /// Folder name: `hdf5`, `python`.
    pub folder: String,
    /// Absolute folder.
    pub path: PathBuf,
    /// Text of its `Cargo.toml`.
    pub manifest: String,
}

/// The folders of `crates/`, and `python/` once it exists, by name.
pub fn packages() -> Result<Vec<Package>, String> {
    let root = root();
    let mut folders: Vec<PathBuf> = list(&root.join("crates"))?;
    folders.push(root.join("python"));
    let mut found = Vec::new();
    for path in folders {
        let Ok(manifest) = std::fs::read_to_string(path.join("Cargo.toml")) else { continue };
        let folder = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.push(Package { folder, path, manifest });
    }
    Ok(found)
}

/// The entries of a folder, by name.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    Ok(paths)
}

/// All Rust files below a folder, by name.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in list(folder).unwrap_or_default() {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files
}

/// What git tracks, and what it would: files that are neither tracked nor ignored count too.
pub fn tree() -> Result<Vec<PathBuf>, String> {
    let out = command("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .map_err(|e| format!("git does not start: {e}"))?;
    if !out.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&out.stderr).trim()));
    }
    let names = String::from_utf8_lossy(&out.stdout);
    let mut paths: Vec<PathBuf> = names.split('\0').filter(|n| !n.is_empty()).map(PathBuf::from).collect();
    paths.retain(|p| root().join(p).is_file());
    paths.sort();
    paths.dedup();
    Ok(paths)
}
