//! What the program prints, word for word.

use crate::program::{sample, transcript};
use std::path::PathBuf;
use tensilo::core::io::SystemDisk;
use tensilo::hdf5::write::{FileWriter, Filters, WriteOptions};
use tensilo_testkit::{TempDir, oracle};

fn snapshot(name: &str, args: &[&str]) {
    let (folder, _) = sample();
    insta::with_settings!({ prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, transcript(folder.path(), args));
    });
}

#[test]
fn ls_lists_links_by_name() {
    snapshot("ls", &["ls", "sample.h5"]);
    snapshot("ls-recursive", &["ls", "sample.h5", "--recursive"]);
    snapshot("ls-json", &["ls", "sample.h5", "/scan", "--json"]);
}

#[test]
fn info_describes_files_datasets_and_attributes() {
    snapshot("info-file", &["info", "sample.h5"]);
    snapshot("info-dataset", &["info", "sample.h5", "/scan/counts"]);
    snapshot("info-json", &["info", "sample.h5", "/scan/counts", "--json"]);
}

#[test]
fn read_prints_rows() {
    snapshot("read-text", &["read", "sample.h5", "/latest", "--select", "-1, 1:"]);
    snapshot("read-strings", &["read", "sample.h5", "names"]);
    snapshot("read-json", &["read", "sample.h5", "/scan/counts", "--select", "0, ::2, -1", "--json"]);
}

#[test]
fn plan_chunks_and_diff_say_what_they_found() {
    snapshot("plan", &["plan", "sample.h5", "/scan/counts", "--select", "1, [0, 2], ::-1"]);
    snapshot("plan-json", &["plan", "sample.h5", "/scan/counts", "--select", "1", "--json"]);
    snapshot("chunks", &["chunks", "sample.h5", "/scan/counts"]);
    snapshot("diff-same", &["diff", "sample.h5", "sample.h5"]);
    snapshot("diff-other", &["diff", "sample.h5", "sample.h5", "/scan/counts", "/names"]);
    snapshot("error-chunks", &["chunks", "sample.h5", "/scan/angle"]);
}

#[test]
fn errors_are_one_line_with_a_hint() {
    snapshot("error-no-object", &["info", "sample.h5", "/scan/nothing"]);
    snapshot("error-no-object-json", &["info", "sample.h5", "/scan/nothing", "--json"]);
    snapshot("error-no-file", &["ls", "none.h5", "--verbose"]);
    snapshot("error-not-a-group", &["ls", "sample.h5", "/scan/angle"]);
    snapshot("error-selection", &["read", "sample.h5", "/scan/counts", "--select", "7"]);
    snapshot("error-outside", &["info", "sample.h5", "/elsewhere"]);
}

#[test]
fn help_names_every_command() {
    snapshot("help", &["--help"]);
}

#[test]
fn check_says_what_is_damaged_and_where() {
    snapshot("check", &["check", "sample.h5"]);
    snapshot("check-json", &["check", "sample.h5", "--json"]);
    let (folder, path) = damaged();
    assert!(path.is_file());
    insta::with_settings!({ prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("check-damaged", transcript(folder.path(), &["check", "damaged.h5"]));
        insta::assert_snapshot!("check-damaged-json", transcript(folder.path(), &["check", "damaged.h5", "--json"]));
    });
}

/// A file with a chunk whose checksum does not match.
#[expect(clippy::disallowed_methods, reason = "test set-up")]
fn damaged() -> (TempDir, PathBuf) {
    let folder = oracle::temp_dir();
    let path = folder.path().join("damaged.h5");
    let mut w = FileWriter::create(SystemDisk::shared(), &path, WriteOptions::default()).unwrap();
    let d = w.dataset("/scan/counts").shape(&[4, 6]).chunk(&[2, 6]).filters(Filters::new().fletcher32());
    d.write(&[7_u16; 24]).unwrap();
    w.finish().unwrap();
    let dataset = tensilo::hdf5::File::open(&path).unwrap().dataset("/scan/counts").unwrap();
    let chunk = dataset.chunk(&[1, 0]).unwrap().unwrap();
    let at = dataset.file_offset(&chunk).unwrap() as usize;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn dump_prints_the_data_description_language() {
    snapshot("dump", &["dump", "sample.h5"]);
    snapshot("dump-header", &["dump", "sample.h5", "--header"]);
    snapshot("dump-attributes", &["dump", "sample.h5", "/scan", "--attributes"]);
    snapshot("dump-selection", &["dump", "sample.h5", "/scan/counts", "--select", "1, ::2"]);
    snapshot("dump-json", &["dump", "sample.h5", "--json"]);
    snapshot("dump-selection-json", &["dump", "sample.h5", "/scan/counts", "--select", "0, 1", "--json"]);
    snapshot("error-dump-selection", &["dump", "sample.h5", "/scan/counts", "--select", "9"]);
}
