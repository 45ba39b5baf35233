//! `tensilo pack` and format 2: chosen by hand or by the program, and every command on its packs.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::program::run;
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use tensilo_testkit::oracle;

fn master() -> String {
    oracle::workspace_root().join("examples/family/demo_master.h5").display().to_string()
}

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

fn done(folder: &Path, args: &[&str]) -> String {
    let out = run(folder, args);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out));
    text(&out)
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let out = run(folder, &[args, &["--json"]].concat());
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The data of a .npy file.
fn array(path: &Path) -> (String, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    let n = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    (String::from_utf8_lossy(&bytes[10..n]).trim().to_owned(), bytes[n..].to_vec())
}

/// A stack of 5 x 7 scans of 6 x 4 pixels, int16.
fn stack(folder: &Path) {
    let text = "{'descr': '<i2', 'fortran_order': False, 'shape': (5, 7, 6, 4), }";
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(text.len() as u16).to_le_bytes());
    file.extend_from_slice(text.as_bytes());
    file.extend((0..5 * 7 * 6 * 4).flat_map(|i: i16| (i % 300 - 40).to_le_bytes()));
    std::fs::write(folder.join("stack.npy"), file).unwrap();
}

#[test]
fn both_formats_of_one_source_give_the_same_arrays_through_every_command() {
    let folder = oracle::temp_dir();
    let f = folder.path();
    let source = master();
    done(f, &["pack", "produce", &source, "one.h5", "--index-dir", "index"]);
    assert!(done(f, &["pack", "plan", &source, "two.h5", "--format", "2"]).contains("decoded once"));
    done(f, &["pack", "produce", &source, "two.h5", "--format", "2"]);
    for args in [
        &["pack", "verify", "two.h5"][..],
        &["pack", "verify", "two.h5", "--deep", "--source", &source],
        &["pack", "verify", "two.h5", "--no-receipt"],
        &["pack", "verify", "two.h5", "--shard", "0"],
    ] {
        assert!(done(f, args).contains("proven"), "{args:?}");
    }
    for name in ["one", "two"] {
        let pack = format!("{name}.h5");
        let to = |what: &str| format!("{name}-{what}.npy");
        done(f, &["pack", "unpack", &pack, &to("all")]);
        done(f, &["pack", "read", &pack, "--frame", "3,4", "--raw", "-o", &to("frame")]);
        done(f, &["pack", "read", &pack, "--diffraction", "-o", &to("sum")]);
        done(f, &["pack", "read", &pack, "--disk", "9.5", "-o", &to("disk")]);
        done(f, &["pack", "products", &pack, "-o", name, "--only", "com_row,idpc,diffraction_max"]);
        std::fs::rename(f.join(name).join("com_row.npy"), f.join(to("com"))).unwrap();
        std::fs::rename(f.join(name).join("idpc.npy"), f.join(to("idpc"))).unwrap();
        std::fs::rename(f.join(name).join("diffraction_max.npy"), f.join(to("max"))).unwrap();
    }
    for what in ["all", "frame", "sum", "disk", "com", "idpc", "max"] {
        let of = |name: &str| array(&f.join(format!("{name}-{what}.npy")));
        assert!(of("one") == of("two"), "{what}: {} and {}", of("one").0, of("two").0);
    }
    done(f, &["pack", "read", "two.h5", "--scan", "3,4", "--raw", "-o", "scan.npy"]);
    assert!(array(&f.join("scan.npy")) == array(&f.join("two-frame.npy")));
    done(f, &["pack", "read", "two.h5", "--disk", "9.5", "-o", "disk.png"]);
    let info = json(f, &["pack", "info", "two.h5"]);
    assert_eq!(json(f, &["pack", "inspect", "two.h5"]), info);
    assert_eq!(run(f, &["pack", "plan", "two.h5", "x.h5"]).status.code(), Some(2));
    assert_eq!((&info["format"], &info["receipt"]), (&2.into(), &true.into()));
    assert_eq!(info["receiptDifferences"], Value::Array(vec![]));
    assert!(done(f, &["pack", "info", "two.h5"]).contains("receipt     agrees"));
    // One becomes two, and two becomes one.
    done(f, &["pack", "produce", "one.h5", "from-one.h5", "--format", "2"]);
    done(f, &["pack", "produce", "two.h5", "from-two.h5", "--index-dir", "index"]);
    for pack in ["from-one.h5", "from-two.h5"] {
        done(f, &["pack", "verify", pack]);
        done(f, &["pack", "unpack", pack, "again.npy", "--force"]);
        assert!(array(&f.join("again.npy")) == array(&f.join("one-all.npy")), "{pack}");
    }
}

#[test]
fn any_stack_is_packed_and_damage_is_an_answer() {
    let folder = oracle::temp_dir();
    let f = folder.path();
    stack(f);
    let found = json(f, &["pack", "inspect", "stack.npy", "--format", "2"]);
    assert_eq!(found["scanShape"], serde_json::json!([5, 7]));
    done(f, &["pack", "produce", "stack.npy", "out.h5", "--format", "2"]);
    done(f, &["pack", "unpack", "out.h5", "again.npy"]);
    assert!(array(&f.join("again.npy")).1 == array(&f.join("stack.npy")).1);
    done(f, &["pack", "unpack", "out.h5", "again.h5"]);
    done(f, &["pack", "produce", "again.h5", "out-2.h5", "--format", "2", "--object", "/entry/data/data"]);
    let out = run(f, &["pack", "read", "out.h5", "--scan", "3", "-o", "x.npy"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
    done(
        f,
        &[
            "pack",
            "produce",
            "stack.npy",
            "flat.h5",
            "--format",
            "2",
            "--scan-shape",
            "35",
            "--detector-axes",
            "2",
        ],
    );
    assert_eq!(json(f, &["pack", "info", "flat.h5"])["scanShape"], serde_json::json!([35]));
    done(f, &["pack", "read", "flat.h5", "--scan", "34", "-o", "last.npy"]);
    // Another source is no error, but an answer; what is in the way is not replaced.
    done(f, &["pack", "read", "out.h5", "--scan", "1,2", "-o", "frame.npy"]);
    let out = run(f, &["pack", "verify", "out.h5", "--source", "frame.npy"]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    assert!(text(&out).contains("frames do not make a scan"), "{}", text(&out));
    let out = run(f, &["pack", "produce", "stack.npy", "out.h5", "--format", "2"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
    assert!(text(&out).contains("hint: choose another destination"), "{}", text(&out));
    let mut bytes = std::fs::read(f.join("out.h5")).unwrap();
    bytes[700] ^= 1;
    std::fs::write(f.join("out.h5"), bytes).unwrap();
    let out = run(f, &["pack", "verify", "out.h5"]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    assert!(text(&out).contains("NOT proven"));
}

#[test]
fn sums_and_bins_of_signed_counts_are_signed() {
    let folder = oracle::temp_dir();
    let f = folder.path();
    stack(f);
    done(f, &["pack", "produce", "stack.npy", "out.h5", "--format", "2"]);
    let made = json(f, &["pack", "products", "out.h5", "-o", "p", "--bin", "4", "--bf", "2", "--png"]);
    let names: Vec<_> = made["arrays"].as_array().unwrap().iter().map(|a| a["name"].clone()).collect();
    assert!(names.contains(&"binned".into()) && names.contains(&"bf".into()), "{names:?}");
    let counts: Vec<i64> = (0..5 * 7 * 6 * 4_i64).map(|i| i % 300 - 40).collect();
    assert_eq!(made["totalCounts"], counts.iter().sum::<i64>());
    let ints = |name: &str| -> (String, Vec<i64>) {
        let (head, data) = array(&f.join("p").join(name));
        (head, data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect())
    };
    let (head, total) = ints("total_per_scan.npy");
    assert!(head.contains("<i8") && head.contains("(5, 7)"), "{head}");
    assert_eq!(total, counts.chunks(24).map(|f| f.iter().sum::<i64>()).collect::<Vec<_>>());
    let (head, binned) = ints("binned.npy");
    assert!(head.contains("<i8") && head.contains("(5, 7, 2, 1)"), "{head}");
    let expected: Vec<i64> =
        counts.chunks(24).flat_map(|f| [f[..16].iter().sum::<i64>(), f[16..].iter().sum()]).collect();
    assert_eq!(binned, expected);
    done(f, &["pack", "products", "out.h5", "-o", "only", "--bin", "2", "--only", "binned"]);
    assert_eq!(std::fs::read_dir(f.join("only")).unwrap().count(), 1);
    for args in [&["--bin", "0"][..], &["--only", "binned"]] {
        let out = run(f, &[&["pack", "products", "out.h5", "-o", "p"], args].concat());
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", text(&out));
    }
    done(f, &["pack", "read", "out.h5", "--diffraction", "-o", "sum.npy"]);
    assert!(array(&f.join("sum.npy")) == array(&f.join("p/diffraction_sum.npy")));
}

#[test]
fn the_program_chooses_a_format_and_says_why() {
    let folder = oracle::temp_dir();
    let f = folder.path();
    stack(f);
    let source = master();
    let said = done(f, &["pack", "produce", &source, "one.h5", "--format", "auto", "--index-dir", "index"]);
    assert!(said.contains("format 1: it takes the source"), "{said}");
    assert_eq!(json(f, &["pack", "info", "one.h5"])["format"], Value::Null);
    let said =
        done(f, &["pack", "produce", "stack.npy", "two.h5", "--format", "auto", "--index-dir", "index"]);
    assert!(said.contains("format 2, as format 1 refuses"), "{said}");
    assert_eq!(json(f, &["pack", "info", "two.h5"])["format"], 2);
    // A refusal of format 1 ends with the way out.
    let out = run(f, &["pack", "produce", "stack.npy", "three.h5", "--index-dir", "index"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out).trim_end().ends_with("--format 2"), "{}", text(&out));
    let out = run(f, &["pack", "produce", &source, "three.h5", "--scan-shape", "512"]);
    assert!(text(&out).trim_end().ends_with("--format 2"), "{}", text(&out));
}
