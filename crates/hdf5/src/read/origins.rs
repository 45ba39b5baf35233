//! Where a dataset's elements come from: other datasets, and files of raw data.

use super::Dataset;
use super::dataset::Storage;
use std::collections::HashSet;
use std::path::PathBuf;
use tensilo_core::Result;

impl Dataset {
    /// The datasets that all elements come from or by way of, each once: this one, then the sources of a virtual dataset and
    /// theirs.
    ///
    /// # Errors
    /// `NotFound` where a source does not exist and its elements would be the fill value; `Limit` where a file may not be
    /// opened or virtual datasets stand in each other too deeply; as opening the sources.
    pub fn origins(&self) -> Result<Vec<Dataset>> {
        let mut found = vec![self.clone()];
        let mut seen = HashSet::from([self.place()]);
        let (mut at, mut level, mut level_ends) = (0, 0, 1);
        while at < found.len() {
            if at == level_ends {
                (level, level_ends) = (level + 1, found.len());
            }
            let data = found[at].0.clone();
            if let Storage::Virtual(parts) = &data.storage {
                data.file.space().budget().depth(level + 1, "a virtual dataset made of virtual datasets")?;
                for source in found[at].located(|| parts.sources(&data))? {
                    if seen.insert(source.place()) {
                        found.push(source);
                    }
                }
            }
            at += 1;
        }
        Ok(found)
    }

    /// The files that hold the elements, where they are raw data in other files; none elsewhere.
    ///
    /// # Errors
    /// `NotFound` naming a file; `Limit` where the policy forbids it; `Corrupt`.
    pub fn external_files(&self) -> Result<Vec<PathBuf>> {
        let files = self.header().external_files()?;
        self.located(|| files.iter().map(|f| self.0.file.named_path(&f.name)).collect())
    }

    /// What no other dataset has.
    fn place(&self) -> (Option<PathBuf>, u64) {
        (self.0.file.path().map(Into::into), self.0.address())
    }
}
