//! Finding datasets: which files of a folder, or around a file, make one acquisition (contract, 5.1).
//!
//! Data files `<stem>_data_NNNNNN.h5` beside the master, in name order, win over the links that the master holds. A
//! data file is promoted to its master where there is one. Folders are walked without following symbolic links or
//! entering hidden ones. Where a folder has no master at all, its `_data_` families without one count.

use std::path::{Component, Path, PathBuf};
use tensilo_core::{Error, Limits, Result};

/// One acquisition that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// The stem of its files: what a caller chooses it by.
    pub name: String,
    /// The file that names the others and holds mask, calibration and scan shape.
    pub master: Option<PathBuf>,
    /// Data files beside it, by name; empty when the master's links have to be followed.
    pub siblings: Vec<PathBuf>,
}

impl Dataset {
    /// The path that stands for it.
    pub fn path(&self) -> &Path {
        self.master.as_deref().or(self.siblings.first().map(|p| &**p)).unwrap_or(Path::new(""))
    }
}

/// Lists the datasets of a source: a master, a data file, or a folder.
///
/// # Errors
/// `NotFound`, `InvalidArgument` for a symbolic link, `Limit` for a folder of too many entries, `Io`.
pub fn catalog(source: &Path) -> Result<Vec<Dataset>> {
    let source = normal(source)?;
    let meta =
        std::fs::symlink_metadata(&source).map_err(|e| Error::io("cannot examine", e).in_file(&source))?;
    if meta.is_symlink() {
        return Err(Error::invalid("the source is a symbolic link").in_file(&source));
    }
    if !meta.is_dir() {
        return Ok(vec![of_file(&source)?]);
    }
    let files = walk(&source)?;
    let mut found = Vec::new();
    for file in &files {
        if master_stem(file).is_some() {
            found.push(of_file(file)?);
        }
    }
    if found.is_empty() {
        for file in files.iter().filter(|f| data_stem(f).is_some()) {
            let dataset = of_file(file)?;
            if !found.contains(&dataset) {
                found.push(dataset);
            }
        }
    }
    Ok(found)
}

/// Chooses the one dataset of a source; `wanted` is its name or the path of one of its files.
///
/// # Errors
/// `NotFound` when there is none, or not the wanted one; `InvalidArgument`, naming them, when there are several.
pub fn choose(source: &Path, wanted: Option<&str>) -> Result<Dataset> {
    let mut found = catalog(source)?;
    let names = |found: &[Dataset]| {
        found.iter().map(|d| d.path().display().to_string()).collect::<Vec<_>>().join(", ")
    };
    if let Some(wanted) = wanted {
        let as_path = normal(Path::new(wanted)).ok();
        let inside = normal(&source.join(wanted)).ok();
        let is_wanted = |d: &Dataset| {
            d.name == wanted
                || d.master
                    .iter()
                    .chain(&d.siblings)
                    .any(|p| Some(p) == as_path.as_ref() || Some(p) == inside.as_ref())
        };
        let chosen: Vec<Dataset> = found.iter().filter(|d| is_wanted(d)).cloned().collect();
        if chosen.is_empty() {
            return Err(Error::not_found(format!("no dataset {wanted:?}; there are: {}", names(&found)))
                .in_file(source));
        }
        found = chosen;
    }
    match found.len() {
        0 => Err(Error::not_found("no *_master.h5 and no *_data_NNNNNN.h5 in this folder").in_file(source)),
        1 => Ok(found.remove(0)),
        n => Err(Error::invalid(format!("{n} datasets, exactly one is needed: {}", names(&found)))
            .in_file(source)
            .hint("choose one by name or path with the dataset option")),
    }
}

/// An absolute path without `.` and `..`, by its text alone.
pub fn normal(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path).map_err(|e| Error::io("cannot examine", e).in_file(path))?;
    let mut normal = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    Ok(normal)
}

fn of_file(file: &Path) -> Result<Dataset> {
    if let Some(stem) = data_stem(file) {
        let master = file.with_file_name(format!("{stem}_master.h5"));
        if std::fs::symlink_metadata(&master).is_ok() {
            return of_file(&master);
        }
        let siblings = siblings(file, stem)?;
        return Ok(Dataset { name: stem.to_owned(), master: None, siblings });
    }
    match master_stem(file) {
        Some(stem) => {
            let siblings = siblings(file, stem)?;
            Ok(Dataset { name: stem.to_owned(), master: Some(file.to_path_buf()), siblings })
        }
        None => {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Dataset { name, master: None, siblings: vec![file.to_path_buf()] })
        }
    }
}

/// The data files of a stem beside a file, by name.
fn siblings(file: &Path, stem: &str) -> Result<Vec<PathBuf>> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut found: Vec<PathBuf> =
        entries(folder)?.into_iter().map(|(path, _)| path).filter(|p| data_stem(p) == Some(stem)).collect();
    found.sort();
    Ok(found)
}

/// `<stem>` of `<stem>_master.h5`; the ending in any case.
fn master_stem(path: &Path) -> Option<&str> {
    strip_ending(path.file_name()?.to_str()?, "_master.h5")
}

/// `<stem>` of `<stem>_data_NNNNNN.h5`.
fn data_stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_suffix(".h5")?;
    let (rest, digits) = name.split_at_checked(name.len().checked_sub(6)?)?;
    let stem = rest.strip_suffix("_data_").filter(|s| !s.is_empty())?;
    digits.bytes().all(|b| b.is_ascii_digit()).then_some(stem)
}

fn strip_ending<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    let (stem, end) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
    (end.eq_ignore_ascii_case(ending) && !stem.is_empty()).then_some(stem)
}

/// Regular files of a folder and below, sorted by path; hidden names and symbolic links are passed over.
fn walk(folder: &Path) -> Result<Vec<PathBuf>> {
    let most = Limits::default().items;
    let (mut files, mut folders, mut seen) = (Vec::new(), vec![folder.to_path_buf()], 0);
    while let Some(folder) = folders.pop() {
        for (path, kind) in entries(&folder)? {
            seen += 1;
            if seen > most {
                return Err(Error::limit(format!("more than {most} entries")).in_file(folder));
            }
            let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
            if hidden || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<(PathBuf, std::fs::FileType)>> {
    let fail = |e| Error::io("cannot list the folder", e).in_file(folder);
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        all.push((entry.path(), entry.file_type().map_err(fail)?));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "test set-up")]
    use super::*;

    fn folder(files: &[&str]) -> tensilo_testkit::oracle::TempDir {
        let dir = tensilo_testkit::oracle::temp_dir();
        for f in files {
            let path = dir.path().join(f);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        dir
    }

    #[test]
    fn names_are_cut_at_the_exact_endings() {
        assert_eq!(data_stem(Path::new("/a/s_data_000001.h5")), Some("s"));
        assert_eq!(data_stem(Path::new("x_u8_data_000001.h5")), Some("x_u8"));
        for no in [
            "s_data_00001.h5",
            "s_data_0000011.h5",
            "s_data_00000a.h5",
            "_data_000001.h5",
            "s_data_000001.H5",
        ] {
            assert_eq!(data_stem(Path::new(no)), None, "{no}");
        }
        assert_eq!(master_stem(Path::new("s_MASTER.H5")), Some("s"));
        assert_eq!(master_stem(Path::new("_master.h5")), None);
        assert_eq!(master_stem(Path::new("é.h5")), None);
    }

    #[test]
    fn a_data_file_is_promoted_to_its_master_and_siblings_are_sorted() {
        let d = folder(&["s_master.h5", "s_data_000002.h5", "s_data_000001.h5", "t_data_000001.h5"]);
        let at = |n: &str| normal(&d.path().join(n)).unwrap();
        let by_data = choose(&at("s_data_000002.h5"), None).unwrap();
        assert_eq!(by_data.master, Some(at("s_master.h5")));
        assert_eq!(by_data.siblings, [at("s_data_000001.h5"), at("s_data_000002.h5")]);
        assert_eq!(choose(&at("s_master.h5"), None).unwrap(), by_data);
        // In a folder a family without master does not compete with one that has it.
        assert_eq!(choose(d.path(), None).unwrap(), by_data);
        let alone = choose(&at("t_data_000001.h5"), None).unwrap();
        assert_eq!((alone.master, alone.siblings), (None, vec![at("t_data_000001.h5")]));
    }

    #[test]
    fn several_datasets_are_named_and_one_can_be_chosen() {
        let d = folder(&["a_master.h5", "sub/b_master.h5", ".hidden/c_master.h5"]);
        let e = choose(d.path(), None).unwrap_err();
        assert!(e.message().contains("a_master.h5") && e.message().contains("b_master.h5"), "{e}");
        assert!(!e.message().contains("c_master.h5"), "{e}");
        assert_eq!(choose(d.path(), Some("b")).unwrap().name, "b");
        assert_eq!(choose(d.path(), Some("sub/b_master.h5")).unwrap().name, "b");
        assert_eq!(choose(d.path(), Some("c")).unwrap_err().kind(), tensilo_core::ErrorKind::NotFound);
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let d = folder(&["real/a_master.h5"]);
        std::os::unix::fs::symlink(d.path().join("real"), d.path().join("link")).unwrap();
        assert_eq!(catalog(d.path()).unwrap().len(), 1);
        assert!(catalog(&d.path().join("link")).unwrap_err().message().contains("symbolic link"));
    }

    #[test]
    fn an_empty_folder_has_no_dataset() {
        let d = folder(&["readme.txt"]);
        assert_eq!(choose(d.path(), None).unwrap_err().kind(), tensilo_core::ErrorKind::NotFound);
    }
}
