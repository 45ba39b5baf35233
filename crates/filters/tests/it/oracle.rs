//! Chunks written by h5py are decoded here, and chunks encoded here are read by h5py, filter by filter.

use crate::cases;
use std::collections::BTreeSet;
use std::path::Path;
use tensilo_filters::{FilterSpec, Pipeline, Registry, Scratch};
use tensilo_testkit::oracle;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/oracle.py");
const SEED: &str = "20260801";

/// Generates `count` datasets of a group, decodes every chunk, encodes it again and has h5py read that.
#[expect(clippy::print_stdout, reason = "how much was compared")]
fn both_ways(group: &str, count: usize) {
    let plugin = if group == "vbz" { "vbz_h5py_plugin" } else { "hdf5plugin" };
    if !oracle::python_has(plugin) {
        return oracle::skip(&format!("Python with h5py and {plugin}"), 1);
    }
    let dir = oracle::temp_dir();
    let (path, reply) = (dir.path().join("cases"), dir.path().join("replies"));
    let (path_text, reply_text) = (path.to_str().unwrap(), reply.to_str().unwrap());
    let count = count.to_string();
    let script = Path::new(SCRIPT);
    let made = oracle::run_python(script, ["generate", path_text, SEED, &count, group], b"");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let cases = cases::read(&std::fs::read(&path).unwrap());
    assert!(cases.len() >= count.parse::<usize>().unwrap(), "only {} chunks", cases.len());
    every_type_meets_every_shape(&cases);

    let mut scratch = Scratch::default();
    let mut wrong = vec![];
    let mut encoded = vec![];
    for (i, case) in cases.iter().enumerate() {
        let pipeline = Pipeline::new(&case.specs, &Registry::default()).unwrap();
        let mut out = vec![0xA5; case.raw.len()];
        match pipeline.decode(&mut scratch, &case.stored, case.mask, &mut out) {
            Ok(()) if out == case.raw => {}
            Ok(()) => {
                wrong.push(format!("{}: other values than h5py reads (mask {})", case.label, case.mask))
            }
            Err(e) => wrong.push(format!("{}: {e}", case.label)),
        }
        match pipeline.encode(&mut scratch, &case.raw, &case.info) {
            Ok((stored, mask)) => encoded.push((i, mask, stored)),
            Err(e) => wrong.push(format!("{}: does not encode: {e}", case.label)),
        }
        // What optional filters left as it was, because it did not shrink, is encoded all the same.
        if encoded.last().is_some_and(|(last, mask, _)| *last == i && *mask != 0) {
            let mandatory: Vec<_> = case.specs.iter().map(|s| FilterSpec { flags: 0, ..s.clone() }).collect();
            let pipeline = Pipeline::new(&mandatory, &Registry::default()).unwrap();
            if let Ok((stored, mask)) = pipeline.encode(&mut scratch, &case.raw, &case.info) {
                encoded.push((i, mask, stored));
            }
        }
    }
    write(&reply, &cases::replies(&encoded));
    let read = oracle::run_python(script, ["check", path_text, reply_text, SEED, &count, group], b"");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let report = String::from_utf8_lossy(&read.stdout).into_owned();
    wrong.extend(report.lines().filter(|l| l.starts_with("WRONG")).map(str::to_owned));
    assert!(report.contains(&format!("{} chunks read by h5py", encoded.len())), "{report}");
    assert!(
        wrong.is_empty(),
        "{} of {} cases\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    println!("{group}: {} chunks of h5py's read here, {} of ours read by h5py", cases.len(), encoded.len());
}

/// Labels are "number: group #number type shape in chunk options"; libhdf5 itself refuses a few combinations.
fn every_type_meets_every_shape(cases: &[cases::Case]) {
    const SHAPES: usize = 12;
    let (mut types, mut pairs) = (BTreeSet::new(), BTreeSet::new());
    for case in cases {
        let of = case.label.split(' ').nth(3).unwrap();
        types.insert(of);
        pairs.insert((of, &case.info.chunk_dims));
    }
    assert!(types.len() >= 4, "{types:?}");
    let all = types.len() * SHAPES;
    assert!(10 * pairs.len() >= 9 * all, "{} of {all} types and shapes", pairs.len());
}

#[test]
#[expect(clippy::print_stdout, reason = "how much was compared")]
fn filtered_chunks_of_the_corpus_decode_to_what_h5py_reads() {
    let Some(corpus) = oracle::corpus().filter(|_| oracle::python_has("hdf5plugin")) else {
        return oracle::skip("the corpus, and Python with h5py and hdf5plugin", 1);
    };
    let dir = oracle::temp_dir();
    let path = dir.path().join("cases");
    let made = oracle::run_python(Path::new(SCRIPT), [Path::new("corpus"), &path, &corpus], b"");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let cases = cases::read(&std::fs::read(&path).unwrap());
    assert!(cases.len() >= 300, "only {} chunks", cases.len());
    let mut scratch = Scratch::default();
    let (mut wrong, mut refused) = (vec![], 0);
    for case in &cases {
        // Compressors that nobody but their own library implements.
        if case.specs.iter().any(|s| [32017, 32018, 32024, 32028].contains(&s.id)) {
            refused += 1;
            continue;
        }
        let pipeline = Pipeline::new(&case.specs, &Registry::default()).unwrap();
        let mut out = vec![0xA5; case.chunk_bytes()];
        match pipeline.decode(&mut scratch, &case.stored, case.mask, &mut out) {
            Ok(()) if case.cut(&out) == case.raw => {}
            Ok(()) => wrong.push(format!("{}: other values than h5py reads", case.label)),
            Err(e) => wrong.push(format!("{}: {e}", case.label)),
        }
    }
    assert!(wrong.is_empty(), "{} of {} chunks\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    println!(
        "corpus: {} filtered chunks equal, {refused} of SZ, FCIDECOMP, SZ3, SPERR left out",
        cases.len() - refused
    );
}

#[expect(clippy::disallowed_methods, reason = "test set-up")]
fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

macro_rules! groups {
    ($($(#[$only:meta])? $test:ident: $group:literal, $count:literal;)*) => { $(
        $(#[$only])?
        #[test]
        fn $test() {
            both_ways($group, $count);
        }
    )* };
}

groups! {
    deflate_goes_both_ways_with_h5py: "deflate", 200;
    shuffle_goes_both_ways_with_h5py: "shuffle", 200;
    fletcher32_goes_both_ways_with_h5py: "fletcher32", 200;
    lzf_goes_both_ways_with_h5py: "lzf", 200;
    lz4_goes_both_ways_with_h5py: "lz4", 200;
    zstandard_goes_both_ways_with_h5py: "zstd", 200;
    bitshuffle_goes_both_ways_with_h5py: "bitshuffle", 600;
    bzip2_goes_both_ways_with_h5py: "bzip2", 200;
    szip_goes_both_ways_with_h5py: "szip", 800;
    nbit_goes_both_ways_with_h5py: "nbit", 600;
    scale_offset_goes_both_ways_with_h5py: "scaleoffset", 600;
    blosc_goes_both_ways_with_h5py: "blosc", 600;
    blosc2_goes_both_ways_with_h5py: "blosc2", 600;
    #[cfg(feature = "zfp")]
    zfp_goes_both_ways_with_h5py: "zfp", 400;
    vbz_goes_both_ways_with_h5py: "vbz", 400;
    chains_go_both_ways_with_h5py: "chain", 800;
}
