//! What the program prints, word for word.

use crate::program::{sample, transcript};

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
