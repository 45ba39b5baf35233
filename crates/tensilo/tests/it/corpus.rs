//! The digest of every corpus file equals what the same rules give over libhdf5, or is refused for a listed reason.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tensilo::core::threads::Threads;
use tensilo::core::{Limits, Quiet};
use tensilo::digest::{DigestOptions, digest};
use tensilo::hdf5::OpenOptions;
use tensilo_testkit::oracle;

/// Fewest files that must be equal as a whole.
const FEWEST_EQUAL: usize = 90;
/// Files that are refused, each with a part of the reason that the error gives: path, tab, reason.
const REFUSED: &str = include_str!("refused.txt");
/// Files that need what the oracle lacked: path, tab, a part of the oracle's reason.
const BEYOND: &str = include_str!("beyond.txt");

/// Every line but a comment: path and reason.
fn listed(list: &str) -> BTreeMap<String, String> {
    list.lines()
        .filter(|l| !l.starts_with('#') && !l.trim().is_empty())
        .map(|l| {
            let (path, reason) = l.split_once('\t').expect("path, tab, reason");
            (path.to_owned(), reason.to_owned())
        })
        .collect()
}

/// Paths of the manifest with their kind: `valid`, `malformed`, `sidecar` or `special`.
fn manifest(corpus: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).expect("the corpus has a manifest");
    text.lines()
        .skip(1)
        .map(|l| {
            let columns: Vec<&str> = l.split('\t').collect();
            (columns[0].to_owned(), columns[7].to_owned())
        })
        .collect()
}

fn lines_of(file: &Path) -> Vec<String> {
    let options = DigestOptions {
        storage: true,
        open: OpenOptions {
            limits: Limits::default().with_bytes(400 << 20),
            threads: Threads::ONE,
            ..OpenOptions::default()
        },
        ..DigestOptions::default()
    };
    let mut lines = Vec::new();
    digest(file, &options, &Quiet, &mut |line| {
        lines.push(line.to_owned());
        Ok(())
    })
    .expect("a file that exists has a digest, if only of its error");
    lines
}

/// Takes out what two implementations may say differently.
fn without_details(v: &mut Value) {
    if let Value::Object(map) = v {
        map.remove("detail");
        map.remove("format");
        if let Some(Value::Array(attrs)) = map.get_mut("attrs") {
            attrs.iter_mut().for_each(without_details);
        }
    }
}

/// All details of a line, its own and its attributes'.
fn details(v: &Value, out: &mut Vec<String>) {
    if let Value::Object(map) = v {
        if let Some(Value::String(d)) = map.get("detail") {
            out.push(d.clone());
        }
        if let Some(Value::Array(attrs)) = map.get("attrs") {
            attrs.iter().for_each(|a| details(a, out));
        }
    }
}

fn same(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    if !theirs.contains("\"detail\":") {
        return false; // where nothing failed, not a byte may differ
    }
    let parse = |l: &str| {
        let mut v: Value = serde_json::from_str(l).expect("a line of JSON");
        without_details(&mut v);
        v
    };
    parse(ours) == parse(theirs)
}

enum Verdict {
    Equal,
    /// Our errors that name something unsupported.
    Refused(Vec<String>),
    /// The oracle's reasons on lines where we have no error.
    Beyond(Vec<String>),
    Differs(String),
}

fn judge(ours: &[String], theirs: &[String]) -> Verdict {
    if let [only] = theirs
        && ours.len() > 1
    {
        let mut found = Vec::new();
        details(&serde_json::from_str(only).expect("a line of JSON"), &mut found);
        return Verdict::Beyond(found); // the oracle did not open the file at all
    }
    let (mut refusals, mut beyond) = (Vec::new(), Vec::new());
    let mut difference = None;
    let short = |l: Option<&String>| l.map_or_else(String::new, |l| l.chars().take(600).collect());
    for i in 0..ours.len().max(theirs.len()) {
        let (a, b) = (ours.get(i), theirs.get(i));
        if let (Some(a), Some(b)) = (a, b)
            && same(a, b)
        {
            continue;
        }
        let details_of = |line: Option<&String>| {
            let mut found = Vec::new();
            if let Some(v) = line.and_then(|l| serde_json::from_str(l).ok()) {
                details(&v, &mut found);
            }
            found
        };
        let (mut here, there) = (details_of(a), details_of(b));
        here.retain(|d| d.starts_with("unsupported: "));
        let ends = a.is_some_and(|a| a.starts_with("{\"kind\":\"end\""));
        if !here.is_empty() {
            refusals.append(&mut here);
        } else if !there.is_empty() && details_of(a).is_empty() {
            beyond.extend(there);
        } else if !(ends && (!refusals.is_empty() || !beyond.is_empty())) && difference.is_none() {
            difference = Some(format!("line {}\n    ours   {}\n    theirs {}", i + 1, short(a), short(b)));
        }
    }
    match difference {
        Some(d) => Verdict::Differs(d),
        None if !refusals.is_empty() => Verdict::Refused(refusals),
        None if !beyond.is_empty() => Verdict::Beyond(beyond),
        None => Verdict::Equal,
    }
}

fn expected(shared: &Path, name: &str) -> Option<Vec<String>> {
    let path: PathBuf = shared.join("corpus-expected").join(format!("{name}.jsonl"));
    Some(std::fs::read_to_string(path).ok()?.lines().map(str::to_owned).collect())
}

#[test]
fn every_valid_corpus_file_has_the_digest_of_libhdf5_or_is_refused_for_a_listed_reason() {
    let (Some(shared), Some(corpus)) = (oracle::shared_dir(), oracle::corpus()) else {
        return oracle::skip("the corpus", 1);
    };
    let files: Vec<String> = manifest(&corpus)
        .into_iter()
        .filter(|(_, kind)| kind == "valid" || kind == "special")
        .map(|(name, _)| name)
        .collect();
    let verdicts: Mutex<BTreeMap<String, Verdict>> = Mutex::new(BTreeMap::new());
    Threads::default()
        .for_each(
            files.len(),
            &Quiet,
            "digesting",
            0,
            || (),
            |_, i, _| {
                let name = &files[i];
                let theirs = expected(&shared, name).expect("every valid file has an expected digest");
                let verdict = judge(&lines_of(&corpus.join(name)), &theirs);
                verdicts.lock().unwrap().insert(name.clone(), verdict);
                Ok(())
            },
        )
        .unwrap();
    let (refused, better) = (listed(REFUSED), listed(BEYOND));
    let listed_for = |list: &BTreeMap<String, String>, name: &str, why: &[String]| {
        list.get(name).is_some_and(|reason| why.iter().all(|w| w.contains(reason.as_str())))
    };
    let (mut equal, mut refusals, mut beyond, mut wrong) = (0, 0, 0, Vec::new());
    for (name, verdict) in verdicts.into_inner().unwrap() {
        match verdict {
            Verdict::Equal if refused.contains_key(&name) || better.contains_key(&name) => {
                wrong.push(format!("{name}: is equal, but listed as an exception"));
            }
            Verdict::Equal => equal += 1,
            Verdict::Refused(why) if listed_for(&refused, &name, &why) => refusals += 1,
            Verdict::Beyond(why) if listed_for(&better, &name, &why) => beyond += 1,
            Verdict::Refused(why) => wrong.push(format!("{name}: refused\t{}", why.join("\n    "))),
            Verdict::Beyond(why) => wrong.push(format!("{name}: beyond the oracle\t{}", why.join("\n    "))),
            Verdict::Differs(d) => wrong.push(format!("{name}: {d}")),
        }
    }
    let count = format!(
        "corpus: {equal} whole files equal, {refusals} refused for a listed reason, {beyond} beyond the oracle, \
         {} wrong\n",
        wrong.len()
    );
    // Past the test's captured output: this count is wanted.
    std::io::stderr().write_all(count.as_bytes()).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(equal >= FEWEST_EQUAL, "{count}");
}

#[test]
fn every_other_corpus_file_ends_in_an_error_or_a_digest() {
    let Some(corpus) = oracle::corpus() else { return oracle::skip("the corpus", 1) };
    let files: Vec<String> = manifest(&corpus)
        .into_iter()
        .filter(|(_, kind)| kind != "valid" && kind != "special")
        .map(|(name, _)| name)
        .collect();
    for name in &files {
        let lines = lines_of(&corpus.join(name));
        let last: Value = serde_json::from_str(lines.last().expect("at least one line")).unwrap();
        assert!(last["kind"] == "end" || last["status"] == "error", "{name}: {last}");
    }
    assert!(files.len() > 80, "{} files", files.len());
}
