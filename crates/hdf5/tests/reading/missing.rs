//! Sources that start empty and are filled by whoever holds the bytes: everything is read as from a file, in few
//! rounds that ask for few bytes.

use super::oracle;
use std::collections::HashSet;
use std::sync::Arc;
use tensilo_core::array::Selection;
use tensilo_core::io::{ByteSource, FileSource, MemorySource, SparseSource, fetch_until_done};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Limits, Result};
use tensilo_hdf5::read::{File, Group, Object, OpenOptions};
use tensilo_testkit::oracle::{corpus, skip};

fn options() -> OpenOptions {
    let limits = Limits::default().with_bytes(256 << 20);
    OpenOptions { threads: Threads::new(2), limits, ..OpenOptions::default() }
}

/// Notes a value or an error that is an answer; what is missing is none.
fn note<T: std::fmt::Debug>(out: &mut Vec<String>, found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(e) if e.kind() == ErrorKind::Missing => Err(e),
        Err(e) => {
            out.push(format!("{}: {e}", e.kind().name()));
            Ok(None)
        }
        Ok(value) => Ok(Some(value)),
    }
}

/// All that a file says: links, attributes, data; errors as their text.
fn everything(source: Arc<dyn ByteSource>) -> Result<Vec<String>> {
    let mut out = Vec::new();
    let opened = File::from_source(source, options());
    let Some(file) = note(&mut out, opened)? else { return Ok(out) };
    let root = file.root();
    let Some(root) = note(&mut out, root)? else { return Ok(out) };
    let mut seen = HashSet::from([root.address()]);
    let mut todo = vec![root];
    while let Some(group) = todo.pop() {
        attributes(&mut out, group.attributes())?;
        let links = group.links();
        for link in note(&mut out, links)?.unwrap_or_default() {
            out.push(format!("{:?}", link.text()));
            object(&mut out, &group, &link, &mut seen, &mut todo)?;
        }
    }
    Ok(out)
}

fn object(
    out: &mut Vec<String>,
    group: &Group,
    link: &tensilo_hdf5::read::LinkInfo,
    seen: &mut HashSet<tensilo_hdf5::format::Address>,
    todo: &mut Vec<Group>,
) -> Result<()> {
    let opened = group.open_link(link);
    let Some(object) = note(out, opened)? else { return Ok(()) };
    if !seen.insert(object.address()) {
        return Ok(());
    }
    match object {
        Object::Group(group) => todo.push(group),
        Object::Dataset(data) => {
            attributes(out, data.attributes())?;
            let bytes = data.read_bytes(&Selection::All);
            if let Some(bytes) = note(out, bytes)? {
                out.push(format!("{} bytes, {:x}", bytes.len(), tensilo_core::wire::lookup3(&bytes)));
            }
        }
        Object::Datatype(t) => attributes(out, t.attributes())?,
        _ => {}
    }
    Ok(())
}

type Attributes = Vec<Result<tensilo_hdf5::read::Attribute, tensilo_hdf5::read::DamagedAttribute>>;

fn attributes(out: &mut Vec<String>, found: Result<Attributes>) -> Result<()> {
    for attribute in note(out, found)?.unwrap_or_default() {
        match attribute {
            Ok(a) => out.push(format!("{:?} {:?}", a.text(), a.data().data)),
            Err(damaged) => drop(note::<()>(out, Err(damaged.error))?),
        }
    }
    Ok(())
}

#[test]
fn a_source_that_is_filled_when_asked_reads_every_generated_file() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    for name in ["layouts-earliest-v108.h5", "layouts-v110-v110.h5", "deep-v110-filtered.h5", "sizes-0.h5"] {
        let Ok(bytes) = std::fs::read(oracle.folder.join(name)) else { panic!("no {name}") };
        let remote = MemorySource::new(bytes);
        let local = Arc::new(SparseSource::new(remote.len()).with_block(4096));
        let found = fetch_until_done(&local, &remote, || everything(local.clone())).unwrap();
        assert!(found == everything(Arc::new(remote)).unwrap(), "{name}");
    }
}

#[test]
fn a_source_that_is_filled_when_asked_reads_every_file_of_the_corpus() {
    let Some(corpus) = corpus() else { return skip("the corpus", 1) };
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).expect("the manifest");
    let (mut files, mut most) = (0, 0);
    for name in manifest.lines().skip(1).filter_map(|l| l.split('\t').next()) {
        let remote = MemorySource::new(std::fs::read(corpus.join(name)).expect("a file of the corpus"));
        let local = Arc::new(SparseSource::new(remote.len()).with_block(4096));
        let found = fetch_until_done(&local, &remote, || everything(local.clone()));
        let found = found.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(found == everything(Arc::new(remote.clone())).unwrap(), "{name}");
        assert!(local.held_bytes() == local.fetched_bytes(), "{name}: bytes were fetched twice");
        most = most.max(local.rounds());
        files += 1;
    }
    assert!(files > 150, "{files} files");
    assert!(most > 1);
}

#[test]
fn one_of_two_thousand_datasets_needs_few_rounds_and_bytes() {
    let Some(oracle) = oracle() else { return skip("Python with h5py", 1) };
    let mut report = Vec::new();
    for name in ["many-earliest.h5", "many-v110.h5"] {
        let remote = FileSource::open(oracle.folder.join(name)).unwrap();
        let local = Arc::new(SparseSource::new(remote.len()).with_block(8192));
        let mut asked = Vec::new();
        let read = || {
            let file = File::from_source(local.clone(), OpenOptions::default())?;
            file.dataset("d1234")?.read::<i32>()
        };
        let values = fetch_until_done(&local, &remote, || {
            read().inspect_err(|e: &Error| asked.push(e.missing_ranges().to_vec()))
        });
        assert_eq!(values.unwrap(), (1234..1244).collect::<Vec<i32>>());
        report.push((name, local.rounds(), local.fetched_bytes(), asked));
    }
    let few = report.iter().all(|(_, rounds, bytes, _)| *rounds <= 6 && *bytes < 64 << 10);
    assert!(few, "{report:#?}");
}
