//! More than ten thousand szip streams, each way, between libaec and us.

use crate::cases;
use std::path::Path;
use tensilo_filters::{FilterSpec, Pipeline, Registry, Scratch};
use tensilo_testkit::oracle;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/szip.py");
const SEED: &str = "20260802";

#[test]
#[expect(clippy::print_stdout, reason = "how much was compared")]
fn ten_thousand_szip_streams_go_both_ways_with_libaec() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let dir = oracle::temp_dir();
    let (path, reply) = (dir.path().join("cases"), dir.path().join("replies"));
    let (path_text, reply_text) = (path.to_str().unwrap(), reply.to_str().unwrap());
    let made = oracle::run_python(Path::new(SCRIPT), ["generate", path_text, SEED], b"");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let cases = cases::read(&std::fs::read(&path).unwrap());

    let mut scratch = Scratch::default();
    let mut decoded = 0;
    let mut wrong = vec![];
    let mut replies = (cases.len() as u32).to_le_bytes().to_vec();
    for case in &cases {
        let pipeline = Pipeline::new(&case.specs, &Registry::default()).unwrap();
        let mut out = vec![0xA5; case.raw.len()];
        match pipeline.decode(&mut scratch, &case.stored, case.mask, &mut out) {
            Ok(()) if out == case.raw => decoded += usize::from(case.mask == 0),
            Ok(()) => wrong.push(format!("{}: other values than h5py wrote", case.label)),
            Err(e) => wrong.push(format!("{}: {e}", case.label)),
        }
        // Mandatory, so that noise is coded too.
        let specs = [FilterSpec { flags: 0, ..case.specs[0].clone() }];
        let (stored, mask) = Pipeline::new(&specs, &Registry::default())
            .unwrap()
            .encode(&mut scratch, &case.raw, &case.info)
            .unwrap();
        assert_eq!(mask, 0);
        replies.extend((stored.len() as u32).to_le_bytes());
        replies.extend(stored);
    }
    write(&reply, &replies);
    let read = oracle::run_python(Path::new(SCRIPT), ["check", reply_text, SEED], b"");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let report = String::from_utf8_lossy(&read.stdout).into_owned();
    wrong.extend(report.lines().filter(|l| l.starts_with("WRONG")).map(str::to_owned));
    assert!(
        wrong.is_empty(),
        "{} of {} streams\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert!(report.contains(&format!("{} streams read by h5py", cases.len())), "{report}");
    assert!(cases.len() >= 10_000 && decoded >= 10_000, "{decoded} of {} streams decoded", cases.len());
    println!("szip: {decoded} streams of libaec's decoded here, {} of ours by libaec", cases.len());
}

#[expect(clippy::disallowed_methods, reason = "test set-up")]
fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}
