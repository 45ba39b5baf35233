//! However h5py stores a stack, it is packed; every file that holds its counts is in the source's identity.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::stacks::{inspected, packed};
use std::collections::BTreeMap;
use std::path::Path;
use tensilo_core::{ErrorKind, Quiet};
use tensilo_pack::Sha256Sum;
use tensilo_pack::read::Values;
use tensilo_pack::v2::read::Pack;
use tensilo_pack::v2::verify::{Verification, VerifyOptions, verify};
use tensilo_testkit::oracle;

/// Type, shape, SHA-256 of the counts, files that hold them.
type Written = (String, Vec<u64>, String, Vec<String>);

fn written(folder: &Path) -> Option<BTreeMap<String, Written>> {
    if oracle::python().is_none() {
        oracle::skip("Python with h5py", 1);
        return None;
    }
    let text = oracle::python_stdout(include_str!("pack_v2_sources.py"), [folder], b"");
    Some(serde_json::from_slice(&text).unwrap())
}

fn proven(pack: &Path, source: &Path) -> Verification {
    let options =
        VerifyOptions { deep: true, source: Some(source.to_path_buf()), ..VerifyOptions::default() };
    verify(pack, &options, &Quiet).unwrap()
}

#[test]
fn every_storage_that_h5py_writes_is_packed_to_what_h5py_reads() {
    let dir = oracle::temp_dir();
    let Some(all) = written(dir.path()) else { return };
    assert!(all.len() > 45, "{}", all.len());
    for (name, (dtype, shape, sum, files)) in &all {
        let source = dir.path().join(name);
        let out = dir.path().join(format!("{name}.pack"));
        let made = packed(&source, 2, &out, 2).unwrap_or_else(|e| panic!("{name}: {e}"));
        let r = &made.receipt;
        assert_eq!(r.source_raw_logical_sha256.to_string(), *sum, "{name}");
        assert_eq!(r.source_dtype, *dtype, "{name}");
        assert_eq!(r.detector_shape, shape[1..], "{name}");
        // The file itself, then those that hold its counts.
        let names: Vec<&str> =
            r.source_members[1..].iter().map(|m| m.path.rsplit('/').next().unwrap()).collect();
        let expected: Vec<&str> = files.iter().map(|f| f.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, expected, "{name}");
        assert!(r.source_members[1..].iter().all(|m| m.role == "named"));
        for m in &r.source_members {
            assert_eq!(m.sha256, Sha256Sum::of(&std::fs::read(&m.path).unwrap()), "{name} {}", m.path);
        }
        let v = proven(&out, &source);
        assert_eq!(v.findings, [], "{name}");
        assert!(v.source_checked);
        let mut bytes = Vec::new();
        let take = &mut |frames: &[u8]| {
            bytes.extend_from_slice(frames);
            Ok(())
        };
        Pack::open(&out).unwrap().export(Values::Raw, &Quiet, take).unwrap();
        assert_eq!(Sha256Sum::of(&bytes).to_string(), *sum, "{name}");
    }
}

#[test]
fn a_change_of_any_file_that_holds_counts_is_seen() {
    let dir = oracle::temp_dir();
    let Some(all) = written(dir.path()) else { return };
    for name in ["external.h5", "virtual.h5", "link.h5"] {
        let (source, out) = (dir.path().join(name), dir.path().join("out.pack"));
        let inspection = inspected(&source, 2).unwrap();
        packed(&source, 2, &out, 1).unwrap();
        for file in &all[name].3 {
            let file = dir.path().join(file);
            let whole = std::fs::read(&file).unwrap();
            let mut changed = whole.clone();
            // Raw data changes in its last count; an HDF5 file behind its end, which changes no count.
            match file.extension().unwrap() == "bin" {
                true => *changed.last_mut().unwrap() ^= 1,
                false => changed.push(0),
            }
            std::fs::write(&file, &changed).unwrap();
            assert_ne!(inspected(&source, 2).unwrap().source_identity, inspection.source_identity);
            let found = proven(&out, &source).findings;
            assert!(found.iter().any(|f| f.subject == "source"), "{name} {}: {found:?}", file.display());
            // What was inspected is not what is there now.
            let plan = super::stacks::planned(&inspection, &dir.path().join("later.pack"), 1);
            let e = tensilo_pack::v2::produce::produce(&inspection, &plan, &Default::default(), &Quiet);
            assert_eq!(e.unwrap_err().kind(), ErrorKind::SourceChanged, "{name}");
            std::fs::write(&file, &whole).unwrap();
            // Without it there would be fill values, or nothing.
            let away = file.with_extension("away");
            std::fs::rename(&file, &away).unwrap();
            let e = inspected(&source, 2).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::NotFound, "{name} {}: {e}", file.display());
            std::fs::rename(&away, &file).unwrap();
        }
        assert_eq!(proven(&out, &source).findings, [], "{name}");
        std::fs::remove_file(&out).unwrap();
        std::fs::remove_file(tensilo_pack::receipt_path(&out)).unwrap();
    }
}

#[test]
fn counts_outside_the_folder_are_refused_with_a_way_out() {
    let dir = oracle::temp_dir();
    if written(dir.path()).is_none() {
        return;
    }
    let inside = dir.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let moved = inside.join("part-0.h5");
    std::fs::rename(dir.path().join("part-0.h5"), &moved).unwrap();
    let link = inside.join("deeper");
    std::fs::create_dir(&link).unwrap();
    std::os::unix::fs::symlink(&moved, dir.path().join("part-0.h5")).unwrap();
    // Through a symbolic link that stays within the folder, the same file is found.
    assert!(inspected(&dir.path().join("link.h5"), 2).is_ok());
    std::fs::copy(dir.path().join("link.h5"), link.join("link.h5")).unwrap();
    std::os::unix::fs::symlink(&moved, link.join("part-0.h5")).unwrap();
    let e = inspected(&link.join("link.h5"), 2).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Limit, "{e}");
    assert!(e.hint_text().unwrap().contains("into its folder"), "{e:?}");
}
