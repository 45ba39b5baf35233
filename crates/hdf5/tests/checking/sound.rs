//! Files that other programs wrote and read are found sound.

use crate::structure::generated;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::Quiet;
use tensilo_core::io::FileSource;
use tensilo_hdf5::check::{CheckOptions, Finding, Summary, Verdict, check};
use tensilo_testkit::oracle;

pub(crate) fn findings(path: &Path) -> (Summary, Vec<Finding>) {
    let mut found = Vec::new();
    let source = Arc::new(FileSource::open(path).expect("a file"));
    let summary = check(source, &CheckOptions::default(), &Quiet, &mut |f| {
        found.push(f.clone());
        Ok(())
    });
    (summary.unwrap_or_else(|e| panic!("{}: {e}", path.display())), found)
}

#[test]
fn generated_files_of_every_structure_are_found_sound() {
    let Some(folder) = generated::folder() else {
        return oracle::skip("Python with h5py and h5digest.py", 1);
    };
    let (mut files, mut structures) = (0, 0);
    for path in generated::files(folder) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("basic_") && !name.contains("earliest") && name.ends_with("_2") {
            continue; // heaps that libhdf5 wrote, in lengths of 2 bytes, but does not read itself
        }
        let (summary, found) = findings(&path);
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
        structures += summary.structures;
        files += 1;
    }
    assert!(files >= 80, "{files} files");
    assert!(structures > 2_000, "{structures} structures");
}

/// Files in which one thing is damaged, with the reason.
const DAMAGED: [(&str, &str); 1] = [(
    "jhdf/var-length-strings-reused.hdf5",
    "a global heap that is too small, which libhdf5 does not read either",
)];

#[test]
fn corpus_files_that_libhdf5_reads_are_found_sound() {
    let Some(corpus) = oracle::corpus() else { return oracle::skip("the corpus", 1) };
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).expect("the manifest");
    let (mut checked, mut wrong) = (0, Vec::new());
    for line in manifest.lines().skip(1).filter(|l| l.ends_with("\tvalid")) {
        let name = line.split('\t').next().expect("a name");
        let path = corpus.join(name);
        let mut found = Vec::new();
        let Ok(source) = FileSource::open(&path) else { continue };
        let summary = check(Arc::new(source), &CheckOptions::default(), &Quiet, &mut |f| {
            found.push(f.clone());
            Ok(())
        });
        checked += 1;
        found.retain(|f| f.verdict == Verdict::Damaged);
        let excused = DAMAGED.iter().any(|(file, _)| *file == name);
        if summary.is_ok() && found.is_empty() == excused {
            wrong.push(format!("{name}: {found:#?}"));
        }
    }
    assert!(checked > 150, "only {checked} files");
    assert!(wrong.is_empty(), "{} of {checked} files:\n{}", wrong.len(), wrong.join("\n"));
}
