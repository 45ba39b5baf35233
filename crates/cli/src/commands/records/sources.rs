//! What records are made from, as the command line names it.

use std::path::{Path, PathBuf};
use tensilo::convert::npy::NpyFile;
use tensilo::convert::records::{DatasetRows, Files, NpyRagged, NpyRows, PackFrames};
use tensilo::core::gather::Gather;
use tensilo::hdf5::File;
use tensilo::pack::read::{Pack, Values};
use tensilo::{Error, Result};

const DATASET: &str = "name a dataset of an HDF5 file as FILE.h5:/path/of/dataset";

/// Where a field comes from.
#[derive(Debug, Clone)]
pub struct Source {
    name: Option<String>,
    file: PathBuf,
    dataset: Option<String>,
    lengths: Option<PathBuf>,
}

/// Reads `[NAME=]SOURCE`.
///
/// # Errors
/// Never; what the source is, is seen when it is opened.
pub fn source(text: &str) -> std::result::Result<Source, String> {
    let (name, rest) = match text.split_once('=') {
        Some((name, rest)) if !name.is_empty() && !name.contains('/') => (Some(name.to_owned()), rest),
        _ => (None, text),
    };
    if let Some((values, lengths)) = rest.split_once(',')
        && values.ends_with(".npy")
    {
        return Ok(Source { name, file: values.into(), dataset: None, lengths: Some(lengths.into()) });
    }
    let (file, dataset) = match rest.rsplit_once(":/") {
        Some((file, path)) if !file.is_empty() => (file, Some(format!("/{path}"))),
        _ => (rest, None),
    };
    Ok(Source { name, file: file.into(), dataset, lengths: None })
}

impl Source {
    /// Opens it.
    ///
    /// # Errors
    /// As the reader of its kind; `Unsupported` for a kind that is not known.
    pub fn open(&self) -> Result<Box<dyn Gather>> {
        self.open_kind().map_err(|e| {
            let e = e.in_file(&self.file);
            let colon = self.dataset.is_none() && self.file.to_string_lossy().contains(':');
            if colon && e.kind() == tensilo::ErrorKind::NotFound { e.hint(DATASET) } else { e }
        })
    }

    fn open_kind(&self) -> Result<Box<dyn Gather>> {
        let name = self.name.as_deref().unwrap_or("data");
        if let Some(path) = &self.dataset {
            return Ok(Box::new(DatasetRows::new(name, File::open(&self.file)?.dataset(path)?)?));
        }
        if let Some(lengths) = &self.lengths {
            let (values, lengths) = (NpyFile::open(&self.file)?, NpyFile::open(lengths)?);
            return Ok(Box::new(NpyRagged::new(name, values, &lengths)?));
        }
        if self.file.is_dir() {
            return Ok(Box::new(Files::list(name, &self.file)?));
        }
        if has_extension(&self.file, "npy") {
            return Ok(Box::new(NpyRows::new(name, NpyFile::open(&self.file)?)?));
        }
        match Pack::open(&self.file) {
            Ok(pack) => Ok(Box::new(PackFrames::new(name, pack, Values::Masked)?)),
            Err(e) if matches!(e.kind(), tensilo::ErrorKind::Corrupt | tensilo::ErrorKind::Unsupported) => {
                Err(Error::unsupported("the source is no .npy file, folder or pack").hint(DATASET))
            }
            Err(e) => Err(e),
        }
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_with_and_without_names() {
        let s = source("image=a/b.h5:/entry/data").unwrap();
        assert_eq!(
            (s.name.as_deref(), s.file.to_str(), s.dataset.as_deref()),
            (Some("image"), Some("a/b.h5"), Some("/entry/data"))
        );
        let s = source("text=values.npy,lengths.npy").unwrap();
        assert_eq!(
            (s.name.as_deref(), s.lengths.as_deref().and_then(Path::to_str)),
            (Some("text"), Some("lengths.npy"))
        );
        let s = source("folder/with=sign").unwrap();
        assert_eq!((s.name, s.file.to_str()), (None, Some("folder/with=sign")));
        assert!(source("plain.npy").unwrap().dataset.is_none());
    }
}
