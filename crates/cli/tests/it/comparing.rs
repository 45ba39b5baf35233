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
