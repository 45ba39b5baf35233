//! `diff` against h5diff, `chunks` against h5py, `plan` against a source that counts.

use crate::program::{run, sample};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tensilo::core::io::FileSource;
use tensilo::hdf5::{File, NumpyIndex, OpenOptions};
use tensilo_testkit::{CountingSource, oracle};

const PAIRS: usize = 200;

fn has_h5diff() -> bool {
    let mut h5diff = Command::new("h5diff");
    h5diff.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    h5diff.status().is_ok_and(|s| s.success())
}

#[test]
fn diff_exits_as_h5diff_does_on_two_hundred_pairs() {
    if oracle::python().is_none() || !has_h5diff() {
        return oracle::skip("Python with h5py, and h5diff", 1);
    }
    let folder = oracle::temp_dir();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/pairs.py");
    let at = folder.path().to_str().unwrap();
    let said = oracle::python_stdout(&script, [at, "h5diff", &PAIRS.to_string(), "31"], b"");
    let (mut pairs, mut codes, mut wrong) = (0, [0; 2], Vec::new());
    for line in String::from_utf8(said).unwrap().lines() {
        let [number, code, apart, changes] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let (a, b) = (format!("a-{number}.h5"), format!("b-{number}.h5"));
        let code: i32 = code.parse().unwrap();
        let mut check = |args: &[&str], wanted: i32| {
            let out = run(folder.path(), &[&["diff", &a, &b], args].concat());
            if out.status.code() != Some(wanted) {
                let (text, e) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
                wrong.push(format!(
                    "{number} {changes} {args:?}: {:?}, not {wanted}: {text}{e}",
                    out.status.code()
                ));
            }
        };
        // What h5diff cannot compare it calls no difference; that is asked for here, and elsewhere is one.
        check(&["--skip-incomparable"], code);
        if apart == "0" {
            check(&["--quiet"], code);
        }
        codes[code as usize] += 1;
        pairs += 1;
    }
    assert_eq!(pairs, PAIRS);
    assert!(codes.iter().all(|n| *n > 40), "answers are mixed: {codes:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_cannot_be_compared_differs_unless_it_is_passed_over() {
    let Some(python) = oracle::python() else { return oracle::skip("Python with h5py", 1) };
    let folder = oracle::temp_dir();
    let code = "import h5py, numpy as np\n\
                x = np.arange(6)\n\
                for name, data in [('a', x), ('shape', x[:5]), ('type', x.astype('f8')), ('sign', x.astype('u8'))]:\n\
                \x20   with h5py.File(name + '.h5', 'w') as f: f['x'] = data\n";
    assert!(Command::new(python).args(["-c", code]).current_dir(folder.path()).status().unwrap().success());
    for (other, what) in [("shape.h5", "shape"), ("type.h5", "type"), ("sign.h5", "type")] {
        let out = run(folder.path(), &["diff", "a.h5", other, "--json"]);
        assert_eq!(out.status.code(), Some(1));
        let line: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!((&line["path"], &line["what"]), (&"/x".into(), &what.into()));
        assert_eq!(
            run(folder.path(), &["diff", "a.h5", other, "--skip-incomparable"]).status.code(),
            Some(0)
        );
    }
    let out = run(folder.path(), &["diff", "a.h5", "none.h5"]);
    assert_eq!(out.status.code(), Some(2));
    let out = run(folder.path(), &["diff", "a.h5", "a.h5", "/x", "/y"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(run(folder.path(), &["diff", "a.h5", "shape.h5", "/x", "/x", "-q"]).status.code(), Some(1));
}

/// Datasets of every chunk index, with masks, holes and a user block.
const CHUNKED: &str = r"
import h5py, json, sys
import numpy as np
out = []
for low, high in [('earliest', 'v108'), ('v110', 'v110'), ('v200', 'v200')]:
    name = f'{low}.h5'
    with h5py.File(name, 'w', libver=(low, high), userblock_size=1024) as f:
        x = np.arange(35 * 22, dtype='i4').reshape(35, 22)
        f.create_dataset('single', data=x, chunks=(35, 22), compression='gzip')
        f.create_dataset('fixed', data=x, chunks=(4, 5), compression='gzip', shuffle=True)
        f.create_dataset('plain', data=x, chunks=(4, 5))
        f.create_dataset('grows', data=x, chunks=(4, 5), maxshape=(None, 30), compression='gzip')
        f.create_dataset('both', data=x, chunks=(9, 5), maxshape=(None, None))
        d = f.create_dataset('holes', (35, 22), 'i4', chunks=(6, 7), compression='lzf')
        d[13:20, 8:] = x[13:20, 8:]
        d = f.create_dataset('masked', (8, 4), 'i4', chunks=(4, 4), compression='gzip', shuffle=True)
        d.id.write_direct_chunk((0, 0), bytes(64), 3)
        f.create_dataset('none', (8, 4), 'i4', chunks=(4, 4))
    with h5py.File(name) as f:
        for path, d in f.items():
            chunks = [d.id.get_chunk_info(i) for i in range(d.id.get_num_chunks())]
            rows = sorted([list(map(int, c.chunk_offset)), c.byte_offset, c.size, c.filter_mask] for c in chunks)
            out.append([name, path, rows])
json.dump(out, sys.stdout)
";

#[test]
fn chunks_are_those_of_get_chunk_info() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let folder = oracle::temp_dir();
    let code = format!("import os; os.chdir({:?})\n{CHUNKED}", folder.path());
    let said: Value = serde_json::from_slice(&oracle::python_stdout(&code, [""; 0], b"")).unwrap();
    let mut listed = 0;
    for case in said.as_array().unwrap() {
        let (file, path, wanted) = (case[0].as_str().unwrap(), case[1].as_str().unwrap(), &case[2]);
        let out = run(folder.path(), &["chunks", file, path, "--json"]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let mut found: Vec<Value> = Vec::new();
        for line in String::from_utf8(out.stdout).unwrap().lines() {
            let c: Value = serde_json::from_str(line).unwrap();
            assert_eq!(c["schema"], "tensilo.chunk/1");
            found.push([&c["start"], &c["offset"], &c["size"], &c["mask"]].map(Clone::clone).to_vec().into());
        }
        listed += found.len();
        assert_eq!(&Value::from(found), wanted, "{file} {path}");
    }
    assert!(listed > 400, "{listed} chunks");
}

#[test]
fn a_plan_asks_for_what_a_counting_source_sees() {
    let Some(python) = oracle::python() else { return oracle::skip("Python with h5py", 1) };
    let folder = oracle::temp_dir();
    let code = format!("import os; os.chdir({:?})\n{CHUNKED}", folder.path());
    let made = Command::new(python).args(["-c", &code]).stdout(Stdio::null()).status().unwrap();
    assert!(made.success());
    for file in ["earliest.h5", "v110.h5", "v200.h5"] {
        let options = OpenOptions { chunk_cache: 0, ..OpenOptions::default() };
        let source = Arc::new(CountingSource::new(FileSource::open(folder.path().join(file)).unwrap()));
        let opened = File::from_source(source.clone(), options).unwrap();
        for path in ["single", "fixed", "plain", "grows", "both", "holes", "none"] {
            let data = opened.dataset(path).unwrap();
            data.chunks().unwrap();
            for select in
                ["", "3", "::2, 1:9", "[1, 33, 2], :", "::-1, [0, 21]", "[1, 2], [3, 4]", "..., None, 5:6"]
            {
                if path == "none" && select.contains("33") {
                    continue;
                }
                let out = run(folder.path(), &["plan", file, path, "--select", select, "--json"]);
                if path == "none" && !out.status.success() {
                    continue; // a position past its four columns
                }
                assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
                let plan: Value = serde_json::from_slice(&out.stdout).unwrap();
                source.reset();
                let wanted = select.parse::<NumpyIndex>().unwrap().resolve(data.shape()).unwrap();
                let bytes = data.read_bytes(&wanted.selection).unwrap();
                assert_eq!(plan["result_bytes"], bytes.len(), "{file} {path} [{select}]");
                assert_eq!(plan["fetched_bytes"], source.bytes(), "{file} {path} [{select}]");
                assert_eq!(
                    plan["ranges"].as_array().unwrap().len(),
                    source.reads(),
                    "{file} {path} [{select}]"
                );
                assert_eq!(plan["chunks"], plan["steps"].as_array().unwrap().len());
            }
        }
    }
}

#[test]
fn every_numpy_index_is_read_as_numpy_reads_it() {
    let Some(python) = oracle::python() else { return oracle::skip("Python with NumPy", 1) };
    let (folder, _) = sample();
    for (i, select) in [
        "[1, 0], :, ::-1",
        "[0, 1], [2, 0]",
        "0, :, [1, 3]",
        "None, ..., [True, False, False, True]",
        "[[0, 1], [1, 1]], 2",
        "1, [[True, False, True, False], [False, False, False, True], [True, True, True, True]]",
        "True",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{i}.npy");
        let out = run(folder.path(), &["read", "sample.h5", "/scan/counts", "-s", select, "-o", &name]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let code = format!(
            "import numpy as np\n\
             a = np.load({name:?})\n\
             b = np.arange(24, dtype='u2').reshape(2, 3, 4)[{select}]\n\
             assert a.shape == b.shape and (a == b).all(), (a, b)\n"
        );
        let status = Command::new(&python).args(["-c", &code]).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{select}");
    }
}

/// Pairs of files whose numbers are near one another, and what h5diff says to each tolerance: number, option, tolerance,
/// exit code.
const NEAR: &str = r#"
import os, subprocess, sys
import h5py
import numpy as np
rng = np.random.default_rng(77)
TYPES = ["i1", "<i4", ">i8", "u2", "u8", "f4", ">f8", "record", "array", "attribute", "vlen", "enum", "bool"]
LIMITS = [("-d", 0.25), ("-d", 2), ("-d", 1e-9), ("-p", 0.01), ("-p", 0.5), ("-p", 1e-12)]
def write(name, kind, x):
    with h5py.File(name, "w") as f:
        if kind == "record":
            r = np.zeros(len(x), [("n", "<i4"), ("x", ">f4"), ("s", "S2")])
            r["n"], r["x"] = np.round(x), x
            f["x"] = r
        elif kind == "array":
            f.create_dataset("x", (len(x) // 2,), np.dtype(("f8", (2,))))[...] = x.reshape(-1, 2)
        elif kind == "attribute":
            f["x"] = 1
            f["x"].attrs["a"] = x.astype("f4")
        elif kind == "vlen":
            d = f.create_dataset("x", (2,), h5py.vlen_dtype("f8"))
            d[0], d[1] = x[:3], x[3:]
        elif kind == "enum":
            f.create_dataset("x", data=np.round(x).astype("i2") % 3, dtype=h5py.enum_dtype({"A": 0, "B": 1, "C": 2}, "i2"))
        elif kind == "bool":
            f["x"] = np.round(x).astype("i2") % 2 == 1
        else:
            f["x"] = np.round(x).astype(kind) if kind[-2] in "iu" else x.astype(kind)
for i in range(65):
    kind = TYPES[i % len(TYPES)]
    x = rng.integers(0, 400, 6) / 4
    if kind != "u8" and kind != "u2":
        x *= rng.choice([-1, 1], 6)
    y = x.copy()
    change = int(rng.integers(0, 6))
    at = int(rng.integers(0, 6))
    if change == 1:
        y[at] += 0.25
    elif change == 2:
        y += rng.choice([1, 2, 3])
    elif change == 3:
        y *= 1 + rng.choice([0.001, 0.01, 0.4, 0.6])
    elif change == 4:
        x[at], y[at] = 0, rng.choice([0, 1e-10, 1])
    elif change == 5 and kind[-2:] in ("f4", "f8"):
        x[at], y[at] = np.nan, rng.choice([np.nan, 1])
    write(f"a-{i}.h5", kind, x)
    write(f"b-{i}.h5", kind, y)
    for option, limit in LIMITS:
        code = subprocess.run(["h5diff", option, str(limit), f"a-{i}.h5", f"b-{i}.h5"], capture_output=True).returncode
        print(i, option, limit, code, kind)
"#;

#[test]
fn numbers_within_a_tolerance_are_the_same_where_h5diff_says_so() {
    if oracle::python().is_none() || !has_h5diff() {
        return oracle::skip("Python with h5py, and h5diff", 1);
    }
    let folder = oracle::temp_dir();
    let code = format!("import os; os.chdir({:?})\n{NEAR}", folder.path());
    let said = oracle::python_stdout(&code, [""; 0], b"");
    let (mut codes, mut wrong) = ([0; 2], Vec::new());
    for line in String::from_utf8(said).unwrap().lines() {
        let [number, option, limit, code, kind] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let (a, b) = (format!("a-{number}.h5"), format!("b-{number}.h5"));
        let out = run(folder.path(), &["diff", "-q", option, limit, &a, &b]);
        let code: i32 = code.parse().unwrap();
        if out.status.code() != Some(code) {
            wrong.push(format!("{number} {kind} {option} {limit}: {:?}, not {code}", out.status.code()));
        }
        codes[code as usize] += 1;
    }
    assert_eq!(codes[0] + codes[1], 390, "pairs times tolerances");
    assert!(codes.iter().all(|n| *n > 80), "answers are mixed: {codes:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    for bad in [["-d", "0"], ["-d", "-1"], ["-p", "x"], ["-p", "inf"]] {
        let out = run(folder.path(), &["diff", bad[0], bad[1], "a-0.h5", "b-0.h5"]);
        assert_eq!(out.status.code(), Some(2), "{bad:?}");
    }
    let both = run(folder.path(), &["diff", "-d", "1", "-p", "1", "a-0.h5", "b-0.h5"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn a_plan_of_a_virtual_dataset_lists_what_its_sources_are_asked_for() {
    let Some(python) = oracle::python() else { return oracle::skip("Python with h5py", 1) };
    let folder = oracle::temp_dir();
    let code = "import h5py, numpy as np\n\
                x = np.arange(24, dtype='i4')\n\
                f = h5py.File('virtual.h5', 'w', libver='latest')\n\
                v = h5py.VirtualLayout((5, 24), 'i4')\n\
                for i in range(4):\n\
                \x20   f.create_dataset(f's{i}', data=x + 100 * i, chunks=(7,), compression='gzip' if i % 2 else None)\n\
                \x20   v[i] = h5py.VirtualSource('.', f's{i}', (24,))\n\
                v[4] = h5py.VirtualSource('.', 'missing', (24,))\n\
                f.create_virtual_dataset('v', v, fillvalue=-1)\n\
                w = h5py.VirtualLayout((24,), 'i4')\n\
                w[:] = h5py.VirtualSource('.', 'v', (5, 24))[2]\n\
                f.create_virtual_dataset('w', w)\n\
                f.close()\n";
    assert!(Command::new(python).args(["-c", code]).current_dir(folder.path()).status().unwrap().success());
    // What the sources are asked for is counted in the tests of the crate that reads.
    for (path, select, sources) in [("v", ":4", 4), ("v", "1:3, 5", 2), ("w", "3:9", 1)] {
        let out = run(folder.path(), &["plan", "virtual.h5", path, "--select", select, "--json"]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let plan: Value = serde_json::from_slice(&out.stdout).unwrap();
        let listed = plan["sources"].as_array().unwrap();
        assert_eq!(listed.len(), sources, "{path} [{select}]");
        let below = |s: &Value| s["fetched_bytes"].as_u64().unwrap();
        assert_eq!(listed.iter().map(below).sum::<u64>(), below(&plan), "{path} [{select}]");
        assert!(below(&plan) > 0);
    }
    // A source that does not exist is asked for nothing.
    let out = run(folder.path(), &["plan", "virtual.h5", "v", "--select", "4", "--json"]);
    let plan: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&plan["fetched_bytes"], &plan["sources"]), (&0.into(), &Value::Null));
    let out = run(folder.path(), &["plan", "virtual.h5", "w", "--summary"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("sources    1") && text.contains("/s2"), "{text}");
}
