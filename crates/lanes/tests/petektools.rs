//! Format 1 against files that petektools 0.2.15 wrote (`fixtures/`; made with that crate, expectations too).

use std::path::{Path, PathBuf};
use tensilo_core::ErrorKind;
use tensilo_lanes::{
    FormatVersion, LaneKind, LaneSpec, LaneType, OpenOptions, Store, StoreSchema, StoreWriter, WriterOptions,
};
use tensilo_testkit::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn expected(name: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(fixtures().join(format!("{name}.expected.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn open(name: &str, lenient: bool) -> tensilo_core::Result<Store> {
    Store::open_with(
        fixtures().join(format!("{name}.pts")),
        OpenOptions { lenient, ..OpenOptions::default() },
    )
}

/// The lanes as petektools returned them.
fn assert_lanes_equal(store: &Store, expected: &serde_json::Value) {
    assert_eq!(store.nslabs(), expected["nslabs"].as_u64().unwrap());
    assert_eq!(store.app(), &expected["app"]);
    let lanes = expected["lanes"].as_array().unwrap();
    assert_eq!(store.lanes().len(), lanes.len());
    for (spec, e) in store.lanes().zip(lanes) {
        assert_eq!(spec.name, e["name"].as_str().unwrap());
        assert_eq!(spec.dtype.name(), e["dtype"].as_str().unwrap());
        let (kind, elems) = match spec.kind {
            LaneKind::Slab { elems } => ("slab", elems),
            LaneKind::Flat { len } => ("flat", len),
        };
        assert_eq!((kind, elems), (e["kind"].as_str().unwrap(), e["elems"].as_u64().unwrap()));
        let bytes = store.raw_bytes(&spec.name, 0..store.slab_count(&spec.name).unwrap()).unwrap();
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, e["hex_le"].as_str().unwrap(), "lane {}", spec.name);
    }
}

const WELL_FORMED: [&str; 10] = [
    "all_dtypes",
    "fb_off",
    "fb_on",
    "hdr_mod64_0",
    "hdr_mod64_1",
    "model_app",
    "names",
    "odd_u16",
    "sealed_partly_written",
    "zero_lanes",
];

#[test]
fn well_formed_stores_read_to_the_expected_lanes() {
    for name in WELL_FORMED {
        assert_lanes_equal(&open(name, false).unwrap(), &expected(name));
    }
}

#[test]
fn well_formed_stores_are_created_again_byte_for_byte() {
    let folder = TempDir::new().unwrap();
    for name in WELL_FORMED {
        let store = open(name, false).unwrap();
        let schema =
            StoreSchema::new(store.nslabs(), store.lanes().cloned().collect()).with_app(store.app().clone());
        let path = folder.path().join(format!("{name}.pts"));
        let writer = StoreWriter::create(&path, schema).unwrap().with_flush_behind(name == "fb_on");
        for spec in store.lanes() {
            copy_lane(&store, &writer, spec);
        }
        writer.finalize().unwrap();
        let (made, original) =
            (std::fs::read(&path).unwrap(), std::fs::read(fixtures().join(format!("{name}.pts"))).unwrap());
        assert!(made == original, "{name}: {} bytes against {}", made.len(), original.len());
    }
}

fn copy_lane(store: &Store, writer: &StoreWriter, spec: &LaneSpec) {
    macro_rules! copy {
        ($t:ty) => {{
            let lane = store.typed::<$t>(&spec.name).unwrap();
            match spec.kind {
                LaneKind::Flat { .. } => writer.write_flat(&spec.name, lane.flat().unwrap()).unwrap(),
                LaneKind::Slab { .. } => {
                    for k in (0..lane.slabs()).rev() {
                        writer.slab_mut::<$t>(&spec.name, k).unwrap().copy_from_slice(lane.slab(k).unwrap());
                    }
                }
            }
        }};
    }
    match spec.dtype {
        LaneType::F32 => copy!(f32),
        LaneType::F64 => copy!(f64),
        LaneType::U16 => copy!(u16),
        LaneType::U32 => copy!(u32),
        other => panic!("format 1 has no {other:?}"),
    }
}

#[test]
fn refused_stores_are_refused_with_the_field() {
    // Which field each file breaks, from the fixtures' README.
    let cases = [
        ("bad_magic", "signature"),
        ("bad_newer_version", "version"),
        ("bad_seal_magic", "signature"),
        ("bad_seal_nslabs", "nslabs"),
        ("bad_seal_data_end", "data end"),
        ("bad_header_truncated", "header length"),
        ("bad_truncated_half", "seal"),
        ("bad_truncated_last_byte", "seal"),
        ("hand_bad_dtype", "dtype"),
        ("hand_bad_kind", "kind"),
        ("hand_dup_key", "nslabs"),
        ("hand_elems_float", "floating point"),
    ];
    for (name, word) in cases {
        for lenient in [false, true] {
            let e = open(name, lenient).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{name}: {e:?}");
            assert!(e.to_string().contains(word), "{name}: {e}");
            assert!(e.to_string().contains(&format!("{name}.pts")), "{name}: {e}");
        }
    }
    let mut refused = 0;
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|e| e == "pts") && expected(&name)["open"] == "error" {
            refused += 1;
            let e = open(&name, true).unwrap_err();
            assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{name}: {e:?}");
        }
    }
    assert_eq!(refused, 15);
}

#[test]
fn questionable_stores_have_a_stated_decision() {
    // (file, error word when strict or "" when accepted, accepted when lenient)
    let cases = [
        ("version0_accepted", "version byte 0", true),
        ("trailing_garbage", "stand behind", true),
        ("bit_flip_in_data_accepted", "", true),
        ("hand_nslabs0", "nslabs is 0", true),
        ("hand_dup_names", "two lanes", true),
        ("hand_overflow_wrap", "2^64", false),
        ("hand_slab_with_len_too", "elems_per_slab only", true),
        ("hand_whitespace_reordered_extra", "", true),
    ];
    for (name, word, lenient) in cases {
        match open(name, false) {
            Ok(_) => assert_eq!(word, "", "{name}"),
            Err(e) => assert!(!word.is_empty() && e.to_string().contains(word), "{name}: {e}"),
        }
        assert_eq!(open(name, true).is_ok(), lenient, "{name}");
    }
    for name in
        ["version0_accepted", "trailing_garbage", "bit_flip_in_data_accepted", "hand_slab_with_len_too"]
    {
        assert_lanes_equal(&open(name, true).unwrap(), &expected(name));
    }
}

#[test]
fn wrong_use_is_a_typed_error_on_both_sides() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.pts");
    let lanes = || vec![LaneSpec::slab("s", LaneType::F32, 3), LaneSpec::flat("f", LaneType::U16, 2)];
    let w = StoreWriter::create(&path, StoreSchema::new(2, lanes())).unwrap();
    let kind = |r: tensilo_core::Result<()>| r.unwrap_err().kind();
    assert_eq!(kind(w.write_slab_f64("s", 0, &[0.0; 3])), ErrorKind::InvalidArgument);
    assert_eq!(kind(w.write_slab_f32("s", 0, &[0.0; 2])), ErrorKind::InvalidArgument);
    assert_eq!(kind(w.write_slab_f32("s", 2, &[0.0; 3])), ErrorKind::InvalidArgument);
    assert_eq!(kind(w.write_flat_f32("s", &[0.0; 3])), ErrorKind::InvalidArgument);
    assert_eq!(kind(w.write_slab_u16("f", 0, &[0; 2])), ErrorKind::InvalidArgument);
    assert_eq!(kind(w.write_slab_f32("x", 0, &[0.0; 3])), ErrorKind::NotFound);
    assert_eq!(kind(w.flush_behind_slab("f", 0)), ErrorKind::InvalidArgument);
    w.finish().unwrap();
    let s = Store::open(&path).unwrap();
    assert_eq!(s.slab_f64("s", 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(s.slab_f32("s", 2).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(s.window_f32("s", 1, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(s.flat_f32("s").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(s.slab_u16("f", 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(s.slab_f32("x", 0).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(s.window_f32("s", 1, 1).unwrap().is_empty());
    for (nslabs, lanes, word) in [
        (0, lanes(), "at least one slab"),
        (2, vec![LaneSpec::flat("", LaneType::F32, 1)], "name"),
        (2, vec![LaneSpec::flat("a", LaneType::F32, 0)], "element"),
        (2, vec![LaneSpec::flat("a", LaneType::F32, 1), LaneSpec::flat("a", LaneType::F32, 1)], "two lanes"),
        (1 << 62, vec![LaneSpec::slab("a", LaneType::U32, 4)], "2^64"),
        (2, vec![LaneSpec::slab("a", LaneType::I8, 4)], "format 1"),
    ] {
        let e =
            StoreWriter::create(folder.path().join("b.pts"), StoreSchema::new(nslabs, lanes)).unwrap_err();
        assert!(e.to_string().contains(word), "{e}");
    }
    assert_eq!(
        StoreWriter::create(&path, StoreSchema::new(2, lanes())).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn an_unfinished_store_never_appears() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.pts");
    let w =
        StoreWriter::create(&path, StoreSchema::new(2, vec![LaneSpec::slab("s", LaneType::F32, 3)])).unwrap();
    w.write_slab_f32("s", 0, &[1.0; 3]).unwrap();
    drop(w);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_store_is_overwritten_in_place_draw_after_draw() {
    let folder = TempDir::new().unwrap();
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let path = folder.path().join(format!("{version:?}.pts"));
        let schema = StoreSchema::new(3, vec![LaneSpec::slab("s", LaneType::F64, 5)]);
        let options = || WriterOptions { version, ..WriterOptions::default() };
        StoreWriter::create_with(&path, schema, options()).unwrap().finish().unwrap();
        let len = std::fs::metadata(&path).unwrap().len();
        for draw in 0..4 {
            let w = StoreWriter::overwrite(&path, options()).unwrap();
            // Nobody can open it meanwhile: the lock is held, and the seal is gone.
            assert_eq!(Store::open(&path).unwrap_err().kind(), ErrorKind::Locked);
            for k in 0..3 {
                w.write_slab("s", k, &[f64::from(draw); 5]).unwrap();
            }
            w.finish().unwrap();
            let s = Store::open_with(&path, OpenOptions { verify: true, ..OpenOptions::default() }).unwrap();
            assert_eq!(s.lane_f64("s").unwrap(), [f64::from(draw); 15]);
            assert_eq!(StoreWriter::overwrite(&path, options()).unwrap_err().kind(), ErrorKind::Locked);
        }
        assert!(std::fs::metadata(&path).unwrap().len().abs_diff(len) < 16, "{version:?}");
        drop(StoreWriter::overwrite(&path, options()).unwrap());
        let e = Store::open(&path).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "an interrupted rewrite is no store: {e}");
    }
}
