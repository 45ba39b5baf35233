//! Repacked files say the same as their sources: random trees through our reader, the corpus through libhdf5.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use tensilo_core::ErrorKind;
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::format::datatype::{Class, Datatype};
use tensilo_hdf5::read::File;
use tensilo_hdf5::repack::{Change, NewLayout, RepackOptions, Repacked, repack};
use tensilo_hdf5::write::{Bound, FileWriter, Filters, WriteOptions};
use tensilo_testkit::oracle::{corpus, python_has, python_stdout, shared_dir, skip, temp_dir};

fn copy(
    source: &std::path::Path,
    target: &std::path::Path,
    bound: Bound,
    options: &RepackOptions,
) -> tensilo_core::Result<Repacked> {
    let file = File::open(source)?;
    let user_block = file.space().user_block();
    let write = WriteOptions::default().bound(bound).user_block(user_block);
    let mut w = FileWriter::create(SystemDisk::shared(), target, write)?;
    let done = repack(&file, &mut w, options)?;
    w.finish()?;
    Ok(done)
}

/// What a judge of `judges.py` says of copies, lines `bound TAB source TAB copy`: problems and, last, counts.
fn judged(mode: &str, pairs: &str) -> Vec<String> {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/writing/judges.py");
    let digest = shared_dir().expect("the oracles").join("oracle/h5digest.py");
    let arguments = [std::ffi::OsStr::new(mode), digest.as_os_str()];
    let out = python_stdout(&script, arguments, pairs.as_bytes());
    String::from_utf8_lossy(&out).lines().map(str::to_owned).collect()
}

/// Files and bounds that are refused: file, bounds, reason.
const REFUSALS: &str = include_str!("repack-refusals.tsv");

/// The reason for which a file is refused under a bound.
fn refusal(file: &str, bound: Bound) -> Option<&'static str> {
    let wanted = |line: &&str| {
        let mut fields = line.split('\t');
        fields.next() == Some(file) && fields.next().is_some_and(|b| b.split(',').any(|b| b == bound.name()))
    };
    REFUSALS.lines().find(wanted).and_then(|line| line.rsplit('\t').next())
}

/// Makes the files beside `source` look as if they were in `folder`: copies name them relative to themselves.
fn link_neighbours(source: &std::path::Path, folder: &std::path::Path) {
    std::fs::create_dir(folder).expect("a folder");
    for neighbour in std::fs::read_dir(source.parent().expect("a folder")).expect("listed") {
        let neighbour = neighbour.expect("listed");
        std::os::unix::fs::symlink(neighbour.path(), folder.join(neighbour.file_name())).expect("a link");
    }
}

/// What the judges said, for whoever runs the test with `--nocapture`.
#[expect(clippy::print_stdout, reason = "the counts are what the long run is for")]
fn report(counts: &[String]) {
    println!("{}", counts.join("\n"));
}

/// With `TENSILO_REPACK=all`, every file goes under every bound, with another value those whose names contain it;
/// else small files under one of six each.
#[test]
fn the_corpus_repacked_under_old_and_new_bounds_has_the_same_digest() {
    let (Some(corpus), Some(_)) = (corpus(), shared_dir()) else { return skip("the corpus", 1) };
    if !python_has("hdf5plugin") {
        return skip("Python with hdf5plugin", 1);
    }
    let mut judges = vec!["2.0"];
    if python_has("netCDF4") {
        judges.push("2.2");
    } else {
        skip("Python with netCDF4", 1);
    }
    if std::process::Command::new("h5diff").arg("--version").output().is_ok() {
        judges.push("1.10");
    } else {
        skip("h5diff", 1);
    }
    let wanted = std::env::var("TENSILO_REPACK").ok();
    let is_wanted = |name: &str| wanted.as_ref().is_some_and(|w| w == "all" || name.contains(w.as_str()));
    let folder = temp_dir();
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).expect("the manifest");
    let (mut pairs, mut wrong, mut copies, mut refused) = (String::new(), Vec::new(), 0, 0);
    for (i, line) in manifest.lines().skip(1).enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let small = fields.get(6).and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n < 1 << 20);
        if fields.last() != Some(&"valid") || !(if wanted.is_some() { is_wanted(fields[0]) } else { small }) {
            continue;
        }
        let source = corpus.join(fields[0]);
        let beside = folder.path().join(i.to_string());
        link_neighbours(&source, &beside);
        for (b, bound) in Bound::ALL.into_iter().enumerate().filter(|(b, _)| wanted.is_some() || i % 6 == *b)
        {
            let target = beside.join(format!("copy-{b}.h5"));
            let found = copy(&source, &target, bound, &RepackOptions::default());
            match (found, refusal(fields[0], bound)) {
                (Ok(_), None) => {
                    copies += 1;
                    pairs.push_str(&format!("{bound}\t{}\t{}\n", source.display(), target.display()));
                }
                (Err(e), Some(reason)) if e.to_string().contains(reason) => {
                    refused += 1;
                }
                (Ok(_), Some(_)) => {
                    wrong.push(format!("{}\t{}\tis no longer refused", fields[0], bound.name()))
                }
                (Err(e), _) => {
                    wrong.push(format!("{}\t{}\t{} {e}", fields[0], bound.name(), e.kind().name()))
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{copies} copies, {refused} refused; {wrong:#?}");
    let (mut counts, mut problems) = (vec![format!("{copies} copies, {refused} refused")], Vec::new());
    for mode in judges {
        let mut said = judged(mode, &pairs);
        counts.push(format!("libhdf5 {mode}: {}", said.pop().unwrap_or_default()));
        problems.append(&mut said);
    }
    report(&counts);
    assert!(problems.is_empty(), "{counts:#?}\n{}", problems.join("\n"));
    assert!(copies >= 60 || wanted.is_some(), "{copies} copies, {refused} refused");
}

#[test]
fn unchanged_pipelines_are_copied_and_changed_ones_encoded_once() {
    let folder = temp_dir();
    let (a, b, c) = (folder.path().join("a.h5"), folder.path().join("b.h5"), folder.path().join("c.h5"));
    let values: Vec<u16> = (0..5000_u32).map(|i| (i % 251) as u16).collect();
    super::write_with(WriteOptions::default(), &a, |w| {
        let d =
            w.dataset("x/d").shape(&[50, 100]).chunk(&[7, 30]).filters(Filters::new().shuffle().deflate(4));
        d.write(&values).expect("dataset");
        w.dataset("texts").write_texts(&["a", "bb", ""]).expect("dataset");
        let own = w.reference("texts").expect("reference");
        w.dataset("reference").datatype(Datatype::object_reference()).write(&[own.0, 0]).expect("dataset");
    });
    let kept = copy(&a, &b, Bound::V110, &RepackOptions::default()).expect("copied");
    assert_eq!((kept.chunks_copied, kept.chunks_encoded, kept.datasets, kept.groups), (32, 0, 3, 2));
    let changed = RepackOptions::with_filters(Filters::bitshuffle_lz4());
    let changed = copy(&a, &c, Bound::Earliest, &changed).expect("copied");
    // The two datasets without chunks get one each.
    assert_eq!((changed.chunks_copied, changed.chunks_encoded), (0, 34));
    for path in [&b, &c] {
        let file = File::open(path).expect("opened");
        assert_eq!(file.dataset("x/d").expect("there").read::<u16>().expect("read"), values);
        assert_eq!(file.dataset("texts").expect("there").read_strings().expect("read"), ["a", "bb", ""]);
        let references = file.dataset("reference").expect("there");
        let bytes = references.read_bytes(&tensilo_core::array::Selection::All).expect("read");
        let texts = file.object("texts").expect("there").address();
        assert_eq!(bytes[..8], texts.0.to_le_bytes());
        assert_eq!(bytes[8..], [0; 8]);
    }
}

#[test]
fn layouts_and_filters_change_for_all_datasets_or_named_ones() {
    let folder = temp_dir();
    let (a, b) = (folder.path().join("a.h5"), folder.path().join("b.h5"));
    let values: Vec<u16> = (0..4000).map(|i| i % 97).collect();
    super::write_with(WriteOptions::default(), &a, |w| {
        w.dataset("plain").shape(&[40, 100]).write(&values).expect("dataset");
        w.dataset("g/cut").shape(&[40, 100]).chunk(&[7, 100]).write(&values).expect("dataset");
        w.dataset("g/small").shape(&[4000]).chunk(&[33]).write(&values).expect("dataset");
        w.dataset("g/grows")
            .shape(&[4000])
            .chunk(&[4000])
            .max_shape(&[None])
            .write(&values)
            .expect("dataset");
        w.dataset("scalar").write_value(7_u8.into()).expect("dataset");
    });
    let all = Change { layout: Some(NewLayout::Contiguous), filters: None };
    let mut options = RepackOptions { all, ..RepackOptions::default() };
    let named = |layout, filters| Change { layout: Some(layout), filters };
    let soff = Filters::new().scale_offset(0).fletcher32();
    options.objects.insert(b"/plain".to_vec(), named(NewLayout::Chunked(vec![16, 33]), Some(soff)));
    options.objects.insert(b"/g/small".to_vec(), named(NewLayout::Compact, None));
    copy(&a, &b, Bound::Earliest, &options).expect("copied");
    let file = File::open(&b).expect("opened");
    for name in ["plain", "g/cut", "g/small", "g/grows"] {
        assert_eq!(file.dataset(name).expect("there").read::<u16>().expect("read"), values, "{name}");
    }
    let chunk = |name| file.dataset(name).expect("there").chunk_shape().map(<[u64]>::to_vec);
    assert_eq!((chunk("plain"), chunk("g/cut"), chunk("g/small")), (Some(vec![16, 33]), None, None));
    assert_eq!(chunk("g/grows"), Some(vec![4000]), "what can grow keeps its chunks");
    if shared_dir().is_some() && python_has("hdf5plugin") {
        let pair = format!("earliest\t{}\t{}\n", a.display(), b.display());
        assert_eq!(judged("2.0", &pair), ["same=1"], "libhdf5 sees the same");
    }
    for (name, layout) in [("/scalar", NewLayout::Chunked(vec![1])), ("/g/grows", NewLayout::Contiguous)] {
        let mut options = RepackOptions::default();
        options.objects.insert(name.as_bytes().to_vec(), named(layout, None));
        let e = copy(&a, &folder.path().join("c.h5"), Bound::V110, &options).expect_err("impossible");
        assert_eq!((e.kind(), e.object()), (ErrorKind::InvalidArgument, Some(name)));
    }
    let mut options = RepackOptions::default();
    options.objects.insert(b"/nothing".to_vec(), Change::default());
    let e = copy(&a, &folder.path().join("c.h5"), Bound::V110, &options).expect_err("no such dataset");
    assert_eq!(e.kind(), ErrorKind::NotFound);
}

#[test]
fn codecs_of_numbers_pass_by_datasets_of_other_elements_unless_they_are_named() {
    let folder = temp_dir();
    let (a, b) = (folder.path().join("a.h5"), folder.path().join("b.h5"));
    let values: Vec<u16> = (0..4000).map(|i| i % 97).collect();
    super::write_with(WriteOptions::default(), &a, |w| {
        w.dataset("numbers").shape(&[40, 100]).write(&values).expect("dataset");
        w.dataset("texts").write_texts(&["a", "bb"]).expect("dataset");
        w.dataset("kept")
            .shape(&[4000])
            .chunk(&[4])
            .filters(Filters::new().deflate(1))
            .write(&values)
            .expect("kept");
        let opaque = Datatype { size: 3, class: Class::Opaque { tag: Vec::new() } };
        w.dataset("opaque").datatype(opaque).shape(&[20]).chunk(&[5]).write_bytes(&[7; 60]).expect("dataset");
    });
    let ids = |file: &File, name| {
        file.dataset(name).expect("there").filters().iter().map(|f| f.id).collect::<Vec<u16>>()
    };
    let cases: [(Filters, [&[u16]; 4]); 3] = [
        // Blocks of 16 pixels are more than a chunk of "kept" holds.
        (Filters::new().szip(16, true), [&[4], &[], &[1], &[]]),
        (Filters::new().scale_offset(0), [&[6], &[], &[6], &[]]),
        (Filters::new().szip(16, false).fletcher32(), [&[4, 3], &[3], &[3], &[3]]),
    ];
    for (filters, expected) in cases {
        copy(&a, &b, Bound::Earliest, &RepackOptions::with_filters(filters.clone())).expect("copied");
        let file = File::open(&b).expect("opened");
        let found = ["numbers", "texts", "kept", "opaque"].map(|name| ids(&file, name));
        assert_eq!(found.each_ref().map(Vec::as_slice), expected);
        if shared_dir().is_some() && python_has("hdf5plugin") {
            let pair = format!("earliest\t{}\t{}\n", a.display(), b.display());
            assert_eq!(judged("2.0", &pair), ["same=1"], "libhdf5 sees the same");
        }
        std::fs::remove_file(&b).expect("removed");
    }
    for name in ["/texts", "/kept", "/opaque"] {
        let mut options = RepackOptions::default();
        let change = Change { layout: None, filters: Some(Filters::new().szip(16, true)) };
        options.objects.insert(name.as_bytes().to_vec(), change);
        let e = copy(&a, &b, Bound::Earliest, &options).expect_err("impossible");
        assert_eq!((e.kind(), e.object()), (ErrorKind::InvalidArgument, Some(name)));
    }
}
