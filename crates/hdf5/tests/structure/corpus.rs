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
    let found: Vec<Value> = describe(&path).iter().map(structure_of).collect();
    let wanted: Vec<Value> = expected.iter().filter(|l| l["kind"] != "end").map(structure_of).collect();
    let mut out = Vec::new();
    if found.len() != wanted.len() {
        out.push(format!("{} lines, {} expected", found.len(), wanted.len()));
    }
    for (f, w) in found.iter().zip(&wanted) {
        if f != w {
            out.push(format!("  found    {f}\n  expected {w}"));
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

#[test]
fn malformed_corpus_files_are_described_or_refused_without_panic() {
    let Some(corpus) = oracle::corpus() else { return oracle::skip("the corpus", 1) };
    let mut report = Vec::new();
    let mut checked = 0;
    for entry in manifest(&corpus).iter().filter(|e| e.kind == "malformed") {
        checked += 1;
        let Some(expected) = expected(&corpus, &entry.name) else { continue };
        let found = differences(corpus.join(&entry.name), &expected);
        if !found.is_empty() {
            report.push(format!("{}:\n{}", entry.name, found.join("\n")));
        }
    }
    assert!(checked > 50, "only {checked} malformed files");
    if std::env::var_os("SHOW_MALFORMED").is_some() {
        panic!("{} of {checked} differ:\n{}", report.len(), report.join("\n"));
    }
}
