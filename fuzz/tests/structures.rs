//! Every file that parses something of an HDF5 file has a target of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tensilo_fuzz::TARGETS;

/// Files of `crates/hdf5/src/format` whose target is not called like them.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("datatype/decode", "datatype"),
    ("heap/local", "local_heap"),
    ("heap/global", "global_heap"),
    ("heap/fractal", "fractal_heap"),
    ("index/record", "chunk_record"),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path());
    entries.flat_map(|p| if p.is_dir() { files(&p) } else { vec![p] }).collect()
}

/// The target of a file, which is named from `format/` on and without its ending.
fn target_of(name: &str) -> String {
    if let Some((_, target)) = OTHER_NAMES.iter().find(|(file, _)| *file == name) {
        return (*target).to_owned();
    }
    match name.split_once('/') {
        Some(("message", message)) => format!("message_{message}"),
        Some((_, file)) => file.to_owned(),
        None => name.to_owned(),
    }
}

#[test]
fn every_structure_has_a_target_with_seeds_and_an_entry_for_libfuzzer() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let format = here.join("../crates/hdf5/src/format");
    let manifest = std::fs::read_to_string(here.join("Cargo.toml")).expect("the manifest");
    let names: BTreeSet<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let mut structures = 0;
    for file in files(&format) {
        let text = std::fs::read_to_string(&file).expect("a source file");
        let name = file.strip_prefix(&format).expect("below format").with_extension("");
        let name = name.to_string_lossy().into_owned();
        // What only writes, and what only gathers, parses nothing.
        let parses = text.contains("FieldReader::new(") || text.contains("FieldReader<'_>");
        if !parses || name.ends_with("mod") || name.contains("encode") || name.ends_with("tests") {
            continue;
        }
        let target = target_of(&name);
        assert!(names.contains(target.as_str()), "format/{name}.rs has no target {target}");
        structures += 1;
    }
    assert!(structures >= 25, "only {structures} structures");
    for name in names {
        let entry = here.join("fuzz_targets").join(name).with_extension("rs");
        assert!(entry.is_file(), "{name} has no entry for libFuzzer");
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name} is not in the manifest");
        assert!(here.join("corpus").join(name).is_dir(), "{name} has no seeds");
    }
}
