//! Every file of the corpus, against the digests that libhdf5 made of it.

use super::walker::{describe, structure_of};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tensilo_testkit::oracle;

struct Entry {
    name: String,
    kind: String,
}

fn manifest(corpus: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).expect("the manifest");
    text.lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            Entry { name: fields[0].to_owned(), kind: fields[fields.len() - 1].to_owned() }
        })
        .collect()
}

fn expected(corpus: &Path, name: &str) -> Option<Vec<Value>> {
    let folder = corpus.with_file_name("corpus-expected");
    let text = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).ok()?;
    Some(text.lines().map(|l| serde_json::from_str(l).expect("a JSON line")).collect())
}

/// The lines of a file that differ, as text.
fn differences(path: PathBuf, expected: &[Value]) -> Vec<String> {
    let described = describe(&path);
    let found: Vec<Value> = described.iter().map(structure_of).collect();
    let wanted: Vec<Value> = expected.iter().filter(|l| l["kind"] != "end").map(structure_of).collect();
    let mut out = Vec::new();
    if found.len() != wanted.len() {
        out.push(format!("{} lines, {} expected", found.len(), wanted.len()));
    }
    for ((f, w), d) in found.iter().zip(&wanted).zip(&described) {
        if f != w {
            out.push(format!("  found    {f} {}\n  expected {w}", d["detail"]));
        }
    }
    out
}

#[test]
fn the_structure_of_every_valid_corpus_file_is_what_libhdf5_says() {
    let Some(corpus) = oracle::corpus() else { return oracle::skip("the corpus", 1) };
    let mut wrong = Vec::new();
    let mut checked = 0;
    for entry in manifest(&corpus).iter().filter(|e| e.kind == "valid" || e.kind == "special") {
        let Some(expected) = expected(&corpus, &entry.name) else { continue };
        checked += 1;
        let found = differences(corpus.join(&entry.name), &expected);
        if !found.is_empty() {
            wrong.push(format!("{}:\n{}", entry.name, found[..found.len().min(3)].join("\n")));
        }
    }
    assert!(checked > 150, "only {checked} files have an expected digest");
    assert!(wrong.is_empty(), "{} of {checked} files differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Malformed files in which libhdf5 refuses a structure and we refuse none, with the reason.
const READ_ALL_THE_SAME: [(&str, &str); 8] = [
    ("cve_hdf5/cvefiles/cve-2018-11202.h5", "chunks of a scalar dataset: a matter of reading data"),
    ("cve_hdf5/cvefiles/cve-2024-29162.h5", "3 significant bits in 4 bytes are unusual, not wrong"),
    (
        "cve_hdf5/cvefiles/cve-2024-32610.h5",
        "contiguous data shorter than the dataspace: a matter of reading data",
    ),
    ("cve_hdf5/cvefiles/cve-2024-33874.h5", "a damaged modification time harms nothing else"),
    ("cve_hdf5/cvefiles/cve-2024-33877.h5", "a fill value of another size: a matter of reading data"),
    ("hdf5-pure/dense_attrs_colliding_v0_28_0.h5", "names of equal hash are found in any order"),
    ("hdf5/tmisc38b.h5", "32 significant bits in 1000 bytes are unusual, not wrong"),
    ("hdf5/filter_error.h5", "a damaged chunk: a matter of reading data"),
];

/// Is a structure refused in these lines? Data that cannot be read does not count.
fn refuses(lines: &[Value]) -> bool {
    let failed = |l: &Value| l["status"] == "error";
    lines.iter().any(|l| {
        let attributes =
            l["attrs"].as_array().is_some_and(|a| a.iter().any(|a| failed(a) && a.get("space").is_none()));
        attributes || (failed(l) && l.get("space").is_none())
    })
}

#[test]
fn what_libhdf5_refuses_in_malformed_corpus_files_is_refused() {
    let Some(corpus) = oracle::corpus() else { return oracle::skip("the corpus", 1) };
    let (mut checked, mut wrong) = (0, Vec::new());
    for entry in manifest(&corpus).iter().filter(|e| e.kind == "malformed") {
        let described = describe(&corpus.join(&entry.name));
        let Some(expected) = expected(&corpus, &entry.name) else { continue };
        checked += 1;
        let excused = READ_ALL_THE_SAME.iter().any(|(name, _)| *name == entry.name);
        if refuses(&expected) && !refuses(&described) && !excused {
            wrong.push(entry.name.clone());
        }
    }
    assert!(checked > 50, "only {checked} malformed files");
    assert!(wrong.is_empty(), "read without complaint: {wrong:?}");
}
