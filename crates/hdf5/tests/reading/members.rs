//! Family, split and multi files, made by libhdf5, are read as one.

use std::path::Path;
use tensilo_core::{ErrorKind, Quiet};
use tensilo_hdf5::check::{CheckOptions, check};
use tensilo_hdf5::read::{ExternalLinks, File, OpenOptions, open_source};
use tensilo_testkit::{TempDir, oracle};

const MAKE: &str = r#"
import ctypes as C, glob, os, sys
import h5py, numpy as np
from h5py import h5p
os.chdir(sys.argv[1])
site = os.path.dirname(os.path.dirname(h5py.__file__))
L = C.CDLL(glob.glob(os.path.join(site, "h5py.libs", "libhdf5-*.so*"))[0])
L.H5Pset_fapl_multi.argtypes = [C.c_int64, C.c_void_p, C.c_void_p, C.c_void_p, C.c_void_p, C.c_bool]

def fill(f):
    f["numbers"] = np.arange(3000)
    f["texts"] = np.array(["one", "two"], dtype=h5py.string_dtype())
    f.create_dataset("group/chunks", data=np.arange(100, dtype="i4"), chunks=(7,), compression="gzip", fletcher32=True)
    f["group"].attrs["a"] = 5
    f.close()

for version in ("earliest", "latest"):
    fill(h5py.File("family_%s_%%05d.h5" % version, "w", driver="family", memb_size=4096, libver=version))
    fill(h5py.File("small_%s_%%d.h5" % version, "w", driver="family", memb_size=1 << 20, libver=version))
    fill(h5py.File("split_" + version, "w", driver="split", meta_ext=b"-m.h5", raw_ext=b"-r.h5", libver=version))
    fapl = h5p.create(h5p.FILE_ACCESS)
    if version == "latest":
        fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    assert L.H5Pset_fapl_multi(fapl.id, None, None, None, None, True) >= 0
    fill(h5py.File(h5py.h5f.create(("multi_" + version).encode(), h5py.h5f.ACC_TRUNC, fapl=fapl)))
"#;

fn made() -> Option<TempDir> {
    oracle::python()?;
    let folder = oracle::temp_dir();
    oracle::python_stdout(MAKE, [folder.path().as_os_str()], b"");
    Some(folder)
}

fn is_whole(path: &Path) {
    let file = File::open(path).unwrap_or_else(|e| panic!("{e}"));
    let numbers: Vec<i64> = file.dataset("/numbers").unwrap().read().unwrap();
    assert_eq!(numbers, (0..3000).collect::<Vec<_>>());
    assert_eq!(file.dataset("/texts").unwrap().read_strings().unwrap(), ["one", "two"]);
    let chunks: Vec<i32> = file.dataset("/group/chunks").unwrap().read().unwrap();
    assert_eq!(chunks, (0..100).collect::<Vec<_>>());
    assert_eq!(file.group("/group").unwrap().attribute("a").unwrap().read_one::<i64>().unwrap(), 5);
    let (source, members_joined) = open_source(path, ExternalLinks::SameFolderTree).unwrap();
    let options = CheckOptions { members_joined, ..CheckOptions::default() };
    let summary = check(source, &options, &Quiet, &mut |f| panic!("{}: {f:?}", path.display())).unwrap();
    assert_eq!((summary.objects, summary.chunks), (5, 15));
}

#[test]
fn family_split_and_multi_files_are_read_as_one_file() {
    let Some(folder) = made() else { return oracle::skip("Python with h5py", 1) };
    for version in ["earliest", "latest"] {
        for name in
            ["family_VERSION_%05d.h5", "small_VERSION_%d.h5", "split_VERSION-m.h5", "multi_VERSION-s.h5"]
        {
            is_whole(&folder.path().join(name.replace("VERSION", version)));
        }
    }
    assert!(folder.path().join("family_latest_00005.h5").is_file(), "more than one member");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "test set-up")]
fn members_that_are_missing_or_of_another_size_are_named() {
    let Some(folder) = made() else { return oracle::skip("Python with h5py", 1) };
    let family = folder.path().join("family_latest_%05d.h5");
    // A member alone says what it is.
    let e = File::open(folder.path().join("family_latest_00000.h5")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    std::fs::remove_file(folder.path().join("family_latest_00003.h5")).unwrap();
    let e = File::open(&family).unwrap_err();
    assert!(e.kind() == ErrorKind::Corrupt && e.message().contains("truncated"), "{e}");
    let member = folder.path().join("family_latest_00001.h5");
    let bytes = std::fs::read(&member).unwrap();
    std::fs::write(&member, &bytes[..bytes.len() - 1]).unwrap();
    let e = File::open(&family).unwrap_err();
    assert_eq!(e.message(), "a member of 4095 bytes in a family of 4096");
    assert!(e.file().is_some_and(|f| f.ends_with("family_latest_00001.h5")));
    std::fs::remove_file(folder.path().join("split_latest-r.h5")).unwrap();
    let e = File::open(folder.path().join("split_latest-m.h5")).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.to_string().contains("split_latest-r.h5"), "{e}");
    // Other files are opened only where that is allowed.
    let closed = OpenOptions { links: ExternalLinks::Refuse, ..OpenOptions::default() };
    let e = File::open_with(folder.path().join("split_earliest-m.h5"), closed).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    let e = File::open(folder.path().join("none%d.h5")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
}
