//! `tensilo pack` on the demonstration family: made, proven, read, and never overwritten.
#![expect(clippy::disallowed_methods, reason = "test set-up")]

use crate::program::{command, run};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tensilo::core::io::SystemDisk;
use tensilo::hdf5::write::{FileWriter, Filters, WriteOptions};
use tensilo_testkit::oracle;

fn master() -> String {
    oracle::workspace_root().join("examples/family/demo_master.h5").display().to_string()
}

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder with `demo.tensilo` and its receipt in it.
fn packed() -> oracle::TempDir {
    let folder = oracle::temp_dir();
    let out = run(folder.path(), &["pack", "produce", &master(), "demo.tensilo", "--index-dir", "index"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    folder
}

#[test]
fn a_produced_pack_is_proven_with_its_receipt_and_its_source() {
    let folder = packed();
    assert_eq!(names(folder.path()), ["demo.tensilo", "demo.tensilo.receipt.json", "index"]);
    let source = master();
    for args in [
        &["pack", "verify", "demo.tensilo"][..],
        &["pack", "verify", "demo.tensilo", "--no-receipt"],
        &["pack", "verify", "demo.tensilo", "--source", &source],
    ] {
        let out = run(folder.path(), args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out));
    }
    let out = run(folder.path(), &["pack", "verify", "demo.tensilo", "--json"]);
    let line = String::from_utf8(out.stdout).unwrap();
    let view: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(view["schema"], "tensilo.pack.verify/1");
    assert_eq!(view["proven"], true);
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn a_changed_pack_is_not_proven_and_that_is_an_answer() {
    let folder = packed();
    let path = folder.path().join("demo.tensilo");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let out = run(folder.path(), &["pack", "verify", "demo.tensilo"]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    let out = run(folder.path(), &["pack", "verify", "nowhere.tensilo"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
}

#[test]
fn pack_and_receipt_are_never_overwritten() {
    let folder = packed();
    let before = std::fs::read(folder.path().join("demo.tensilo")).unwrap();
    let produce = ["pack", "produce", &master(), "demo.tensilo", "--index-dir", "index"];
    let out = run(folder.path(), &produce);
    assert_eq!(out.status.code(), Some(2));
    let told: Vec<String> = text(&out).lines().map(str::to_owned).collect();
    assert!(told.len() == 2 && told[0].contains("demo.tensilo") && told[1].starts_with("hint: "), "{told:?}");
    assert_eq!(std::fs::read(folder.path().join("demo.tensilo")).unwrap(), before);
    let out = run(folder.path(), &[&produce[..], &["--force"]].concat());
    assert_eq!(out.status.code(), Some(2), "there is no --force");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let folder = oracle::temp_dir();
    let source = master();
    for extra in [
        &["--backend", "metal"][..],
        &["--backend", "cuda"],
        &["--backend", "vulkan"],
        &["--backend", "webgpu"],
        &["--memory", "1MiB"],
        &["--available-disk", "1MiB"],
        &["--dataset", "other"],
    ] {
        let args = [&["pack", "produce", &source, "x/demo.tensilo", "--index-dir", "index"], extra].concat();
        let out = run(folder.path(), &args);
        assert_eq!(out.status.code(), Some(2), "{extra:?}: {}", text(&out));
        assert!(!folder.path().join("x").exists(), "{extra:?}");
    }
}

#[test]
fn frames_and_virtual_detectors_are_numpys() {
    let Some(python) = oracle::python() else { return oracle::skip("Python with h5py", 1) };
    if !oracle::python_has("hdf5plugin") {
        return oracle::skip("hdf5plugin", 1);
    }
    let folder = packed();
    for args in [
        &["--frame", "15,31", "-o", "frame.npy"][..],
        &["--frame", "0,0", "--raw", "-o", "raw.npy"],
        &["--diffraction", "-o", "sum.npy"],
        &["--disk", "11", "-o", "disk.npy"],
        &["--disk", "12:30", "--center", "30,33.5", "-o", "ring.npy"],
        &["--diffraction", "--log", "-o", "sum.png"],
        &["--disk", "11", "-o", "disk.png"],
    ] {
        let out = run(folder.path(), &[&["pack", "read", "demo.tensilo"], args].concat());
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out));
    }
    let code = r"
import sys, h5py, hdf5plugin, numpy as np
source, out = sys.argv[1:]
with h5py.File(source + '/demo_master.h5') as f:
    raw = np.concatenate([f['entry/data/data_%06d' % i][()] for i in (1, 2, 3)])
    mask = f['entry/instrument/detector/detectorSpecific/pixel_mask'][()]
work = np.where(mask == 0, raw, 0)
r, c = np.mgrid[:64, :64].astype(float)
def inside(center, inner, outer):
    d = (r - center[0]) ** 2 + (c - center[1]) ** 2
    return (d <= outer ** 2) & (d >= inner ** 2)
def same(name, expected):
    got = np.load(out + '/' + name)
    assert got.shape == expected.shape and (got == expected).all(), name
same('frame.npy', work[511])
same('raw.npy', raw[0])
same('sum.npy', work.sum(0, dtype='u8'))
same('disk.npy', (work * inside((31.5, 31.5), 0, 11)).sum((1, 2), dtype='u8').reshape(16, 32))
same('ring.npy', (work * inside((30, 33.5), 12, 30)).sum((1, 2), dtype='u8').reshape(16, 32))
import zlib, struct
for name, width, height in [('sum.png', 512, 512), ('disk.png', 512, 256)]:
    b = open(out + '/' + name, 'rb').read()
    assert b[:8] == b'\x89PNG\r\n\x1a\n' and struct.unpack('>II', b[16:24]) == (width, height), name
";
    let family = PathBuf::from(master()).parent().unwrap().to_path_buf();
    let status = Command::new(python).args(["-c", code]).arg(family).arg(folder.path()).status().unwrap();
    assert!(status.success());
}

/// Runs Python code with the family's folder and another; `false` without an oracle.
fn numpy_agrees(code: &str, folder: &Path) -> bool {
    let Some(python) = oracle::python() else {
        oracle::skip("Python with h5py", 1);
        return false;
    };
    if !oracle::python_has("hdf5plugin") {
        oracle::skip("hdf5plugin", 1);
        return false;
    }
    let family = PathBuf::from(master()).parent().unwrap().to_path_buf();
    let status = Command::new(python).args(["-c", code]).arg(family).arg(folder).status().unwrap();
    assert!(status.success());
    true
}

const LOAD: &str = r"
import sys, h5py, hdf5plugin, numpy as np
source, out = sys.argv[1:]
with h5py.File(source + '/demo_master.h5') as f:
    raw = np.concatenate([f['entry/data/data_%06d' % i][()] for i in (1, 2, 3)])
    mask = f['entry/instrument/detector/detectorSpecific/pixel_mask'][()]
work = np.where(mask == 0, raw, 0)
r, c = np.mgrid[:64, :64].astype(float)
def same(name, expected, dtype):
    got = np.load(out + '/' + name)
    assert got.shape == expected.shape and got.dtype == dtype, (name, got.shape, got.dtype)
    assert np.array_equal(got, expected.astype(dtype), equal_nan=got.dtype.kind == 'f'), name
";

#[test]
fn an_unpacked_pack_is_the_source_again() {
    let folder = packed();
    for args in [
        &["demo.tensilo", "all.npy"][..],
        &["demo.tensilo", "masked.npy", "--masked"],
        &["demo.tensilo", "again.h5", "--threads", "2"],
    ] {
        let out = run(folder.path(), &[&["pack", "unpack"], args].concat());
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out));
        let again = run(folder.path(), &[&["pack", "unpack"], args].concat());
        assert_eq!(again.status.code(), Some(2), "{args:?}: an existing file is not replaced");
        let again = run(folder.path(), &[&["pack", "unpack"], args, &["--force"]].concat());
        assert_eq!(again.status.code(), Some(0), "{args:?}: {}", text(&again));
    }
    let receipt = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.path().join(name)).unwrap()).unwrap()
    };
    let out = run(folder.path(), &["pack", "produce", "again.h5", "again.tensilo", "--index-dir", "index"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let (first, second) = (receipt("demo.tensilo.receipt.json"), receipt("again.tensilo.receipt.json"));
    for key in ["sourceRawLogicalSHA256", "workingLogicalSHA256", "badPixelIndices", "sourceShape", "shards"]
    {
        assert_eq!(first[key], second[key], "{key}");
    }
    let out = run(folder.path(), &["pack", "unpack", "demo.tensilo", "all.npy", "--force", "--json"]);
    let view: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(view["schema"], "tensilo.pack.unpack/1");
    assert_eq!(view["logicalSHA256"], first["sourceRawLogicalSHA256"]);
    assert_eq!(view["proven"], true);
    let code = r"
same('all.npy', raw.reshape(16, 32, 64, 64), '<u2')
same('masked.npy', work.reshape(16, 32, 64, 64), '<u2')
with h5py.File(out + '/again.h5') as f:
    d = f['entry/data/data']
    assert d.chunks == (1, 64, 64) and '32008' in d._filters and d.dtype == 'u2'
    assert (d[()] == raw).all() and tuple(d.attrs['scan_shape']) == (16, 32)
    assert ((f['entry/instrument/detector/detectorSpecific/pixel_mask'][()] != 0) == (mask != 0)).all()
";
    numpy_agrees(&format!("{LOAD}{code}"), folder.path());
}

#[test]
fn all_products_are_numpys_and_none_is_overwritten() {
    let folder = packed();
    let args = [
        "pack",
        "products",
        "demo.tensilo",
        "-o",
        "out",
        "--bf",
        "10",
        "--abf",
        "5:10",
        "--adf",
        "14:28",
        "--bin",
        "5",
        "--png",
        "--log",
    ];
    let out = run(folder.path(), &args);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert_eq!(names(&folder.path().join("out")).len(), 15 + 14);
    let out = run(folder.path(), &args);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
    let out = run(folder.path(), &[&args[..], &["--force", "--json"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let view: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(view["schema"], "tensilo.pack.products/1");
    let code = r"
from fractions import Fraction
w = work.astype('u8')
scan = (16, 32)
same('diffraction_sum.npy', w.sum(0), '<u8')
same('diffraction_max.npy', w.max(0), '<u8')
same('diffraction_mean.npy', w.sum(0) / 512, '<f8')
total, row, col = w.sum((1, 2)), (w * r.astype('u8')).sum((1, 2)), (w * c.astype('u8')).sum((1, 2))
same('total_per_scan.npy', total.reshape(scan), '<u8')
same('detector_row_moment_per_scan.npy', row.reshape(scan), '<u8')
same('detector_column_moment_per_scan.npy', col.reshape(scan), '<u8')
same('com_row.npy', (row / total).reshape(scan), '<f8')
same('com_column.npy', (col / total).reshape(scan), '<f8')
def ring(inner, outer):
    d = (r - 31.5) ** 2 + (c - 31.5) ** 2
    return (w * ((d <= outer ** 2) & (d >= inner ** 2))).sum((1, 2)).reshape(scan)
same('bf.npy', ring(0, 10), '<u4')
same('abf.npy', ring(5, 10), '<u4')
same('adf.npy', ring(14, 28), '<u4')
bins = np.add.reduceat(np.add.reduceat(w, range(0, 64, 5), axis=1), range(0, 64, 5), axis=2)
same('binned.npy', bins.reshape(16, 32, 13, 13), '<u4')
y, x = (row / total).reshape(scan), (col / total).reshape(scan)
y, x = y - y.mean(), x - x.mean()
close = lambda name, expected: np.testing.assert_allclose(np.load(out + '/' + name), expected, atol=1e-9)
close('dpc_row.npy', y)
close('dpc_column.npy', x)
ky, kx = np.fft.fftfreq(16)[:, None], np.fft.fftfreq(32)[None]
k2 = ky ** 2 + kx ** 2
k2[0, 0] = 1
f = (ky * np.fft.fft2(y) + kx * np.fft.fft2(x)) / (2j * np.pi * k2)
f[0, 0] = 0
close('idpc.npy', np.fft.ifft2(f).real)
";
    let made = folder.path().join("out");
    numpy_agrees(&format!("{LOAD}{code}"), &made);
}

#[test]
fn only_named_products_are_made_and_a_name_must_make_sense() {
    let folder = packed();
    let products = ["pack", "products", "demo.tensilo", "-o", "some"];
    let out = run(
        folder.path(),
        &[&products[..], &["--only", "com_row,bf", "--bf", "9", "--center", "30,30"]].concat(),
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert_eq!(names(&folder.path().join("some")), ["bf.npy", "com_row.npy"]);
    for (extra, complaint) in [
        (&["--only", "bf"][..], "bf needs its ring"),
        (&["--only", "binned"], "binned needs --bin N"),
        (&["--only", "sums"], "no product \"sums\""),
    ] {
        let out = run(folder.path(), &[&products[..], extra].concat());
        assert_eq!(out.status.code(), Some(2), "{extra:?}");
        assert!(text(&out).contains(complaint), "{extra:?}: {}", text(&out));
    }
}

#[test]
fn a_pack_describes_itself_and_tells_whether_its_receipt_agrees() {
    let folder = packed();
    let info = |args: &[&str]| run(folder.path(), &[&["pack", "info", "demo.tensilo"], args].concat());
    let out = info(&[]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let said = text(&out);
    assert!(said.contains("16 × 32 scans of 64 × 64 pixels") && said.contains("agrees"), "{said}");
    let view: serde_json::Value = serde_json::from_slice(&info(&["--json"]).stdout).unwrap();
    let receipt: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("demo.tensilo.receipt.json")).unwrap())
            .unwrap();
    assert_eq!(view["schema"], "tensilo.pack.info/1");
    assert_eq!(view["shape"], receipt["sourceShape"]);
    assert_eq!(view["sourceRawLogicalSHA256"], receipt["sourceRawLogicalSHA256"]);
    assert_eq!(view["fileBytes"], receipt["outputBytes"]);
    assert_eq!(view["packedBytes"], receipt["observedPackedResidentBytes"]);
    let path = folder.path().join("demo.tensilo.receipt.json");
    let mut changed = receipt.clone();
    changed["outputBytes"] = 5.into();
    std::fs::write(&path, serde_json::to_vec(&changed).unwrap()).unwrap();
    assert!(text(&info(&[])).contains("differs"));
    std::fs::remove_file(&path).unwrap();
    assert!(text(&info(&[])).contains("missing"));
}

#[test]
fn ctrl_c_leaves_neither_pack_nor_partial_file() {
    let folder = oracle::temp_dir();
    // Enough frames of nothing that packing takes a while.
    let frames = 32_768;
    let mut w =
        FileWriter::create(SystemDisk::shared(), folder.path().join("zeros.h5"), WriteOptions::default())
            .unwrap();
    w.dataset("/entry/data/data")
        .shape(&[frames, 64, 64])
        .chunk(&[1, 64, 64])
        .filters(Filters::bitshuffle_lz4())
        .attribute("scan_shape", tensilo::hdf5::write::Value::array(&[128_i64, 256], &[2]).unwrap())
        .write(&vec![0_u16; frames as usize * 64 * 64])
        .unwrap();
    w.finish().unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let mut child = command(folder.path())
        .args(["pack", "produce", "zeros.h5", "out/zeros.tensilo", "--index-dir", "index", "--threads", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while names(&out).is_empty() && begun.elapsed() < Duration::from_secs(60) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it began to write");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(names(&out), [""; 0]);
}
