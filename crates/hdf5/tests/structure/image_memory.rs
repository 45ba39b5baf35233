//! What a metadata cache image costs: as much memory as the block, never as much as the file; and nothing is written.
//!
//! Memory is measured in a child process that does nothing else.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tensilo_core::io::{ByteSource, FileSource, MappedSource, OverlaySource};
use tensilo_core::{Budget, Result};
use tensilo_hdf5::object::{self, ObjectHeader};
use tensilo_hdf5::space::{CacheImageState, FileSpace};
use tensilo_testkit::{TempDir, oracle};

const CHILD: &str = "TENSILO_IMAGE_OPENER";
const NAME: &str = "structure::image_memory::an_8_gib_file_with_an_image_opens_in_little_memory";
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

const MAKE: &str = r#"
import ctypes as C, glob, os, sys
import h5py, numpy as np
from h5py import h5p
site = os.path.dirname(os.path.dirname(h5py.__file__))
L = C.CDLL(glob.glob(os.path.join(site, "h5py.libs", "libhdf5-*.so*"))[0])
L.H5Pset_mdc_image_config.argtypes = [C.c_int64, C.c_void_p]

class ImageConfig(C.Structure):
    _fields_ = [("version", C.c_int), ("generate", C.c_bool), ("resize", C.c_bool), ("ageout", C.c_int)]

for name, image in (("image", True), ("plain", False)):
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    if image:
        assert L.H5Pset_mdc_image_config(fapl.id, C.byref(ImageConfig(1, True, False, -1))) >= 0
    f = h5py.File(h5py.h5f.create(os.path.join(sys.argv[1], name + ".h5").encode(), h5py.h5f.ACC_TRUNC, fapl=fapl))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    dcpl.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    h5py.h5d.create(f.id, b"large", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((8 << 30,)), dcpl)
    f["large"][(8 << 30) - 3:] = [7, 8, 9]
    for i in range(1200):
        f.create_group("group %d" % i).attrs["attribute"] = np.arange(60)
    f.close()
sys.stdout.flush()
os._exit(0)
"#;

fn made() -> Option<TempDir> {
    oracle::python()?;
    let folder = oracle::temp_dir();
    oracle::python_stdout(MAKE, [folder.path().as_os_str()], b"");
    Some(folder)
}

/// A line of `/proc/self/status`, in bytes.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("the system's word");
    let line = text.lines().find_map(|l| l.strip_prefix(key)).expect("a line of status");
    let kib: u64 =
        line.trim_start_matches(':').trim().trim_end_matches(" kB").trim().parse().expect("a number");
    kib << 10
}

fn source(opener: &str, path: &Path) -> Arc<dyn ByteSource> {
    match opener {
        "pread" => Arc::new(FileSource::open(path).expect("the file")),
        "mapped" => Arc::new(MappedSource::open_locked(path).expect("the map")),
        "overlay" => Arc::new(OverlaySource::new(Arc::new(FileSource::open(path).expect("the file")))),
        other => panic!("no opener {other}"),
    }
}

/// Opens the file, lists the root group and reads the last bytes of data.
fn use_file(source: Arc<dyn ByteSource>) -> Result<FileSpace> {
    let space = FileSpace::open(source, Budget::default())?;
    let root = ObjectHeader::load(&space, space.root())?;
    let links = object::links(&space, &root)?;
    assert_eq!(links.len(), 1201);
    let group = object::lookup(&space, &root, b"group 77")?.expect("a group");
    let object::LinkTarget::Hard(address) = group.target else { panic!("a hard link") };
    assert_eq!(object::attributes(&space, &ObjectHeader::load(&space, address)?)?.len(), 1);
    Ok(space)
}

#[expect(clippy::print_stdout, reason = "the child's answer")]
fn child(work: &str) {
    let (opener, path) = work.split_once(' ').expect("an opener and a path");
    let before = status("VmRSS");
    let space = use_file(source(opener, Path::new(path))).expect("an open file");
    let image = space.cache_image().map_or(0, |i| i.len());
    println!("grew: {} {image}", status("VmHWM").saturating_sub(before));
}

#[test]
fn an_8_gib_file_with_an_image_opens_in_little_memory() {
    if let Some(work) = std::env::var_os(CHILD) {
        return child(&work.to_string_lossy());
    }
    let Some(folder) = made() else { return oracle::skip("Python with h5py", 1) };
    let path = folder.path().join("image.h5");
    assert!(std::fs::metadata(&path).expect("the file").len() > 8 * GIB);
    for opener in ["pread", "mapped", "overlay"] {
        let out = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{opener} {}", path.display()))
            .output()
            .expect("a child");
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{text}\n{}", String::from_utf8_lossy(&out.stderr));
        let line = text.lines().find_map(|l| l.split_once("grew: ")).expect("an answer").1;
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().expect("a number")).collect();
        let (grew, image) = (numbers[0], numbers[1]);
        assert!(image > MIB / 2, "an image of {image} bytes");
        assert!(grew < 64 * MIB, "{opener} grew by {grew} bytes");
        // The block, lists of its entries, and what the walk itself takes.
        assert!(grew <= 2 * image + 4 * MIB, "{opener} grew by {grew} bytes for an image of {image}");
    }
}

#[test]
fn slices_lie_inside_the_map_with_an_image_and_without() {
    let Some(folder) = made() else { return oracle::skip("Python with h5py", 1) };
    for (name, has_image) in [("image.h5", true), ("plain.h5", false)] {
        let map = Arc::new(MappedSource::open_locked(folder.path().join(name)).expect("the map"));
        let inside = map.bytes().as_ptr_range();
        let space = use_file(map.clone()).expect("an open file");
        match space.cache_image_state() {
            CacheImageState::Loadable(image) => assert!(has_image && !image.is_copied()),
            CacheImageState::None => assert!(!has_image),
            CacheImageState::Refused(e) => panic!("{e}"),
        }
        // Metadata, and raw data where there is no metadata.
        for (address, len) in [(space.root(), 40), (tensilo_hdf5::format::Address(4 * GIB), 4096)] {
            let bytes = space.read(address, len, "a test").expect("bytes");
            assert!(bytes.is_lent());
            assert!(inside.contains(&bytes.as_ptr()), "{name}");
        }
        let root = space.read(space.root(), 4, "a test").expect("the root");
        assert_eq!(&root[..], b"OHDR");
    }
}

#[test]
fn a_private_overlay_changes_neither_the_file_nor_another_reader() {
    let Some(folder) = made() else { return oracle::skip("Python with h5py", 1) };
    let path = folder.path().join("image.h5");
    let written = std::fs::metadata(&path).expect("the file").modified().expect("a time");
    let other = FileSpace::open(source("pread", &path), Budget::default()).expect("an open file");
    let data = tensilo_hdf5::format::Address(5 * GIB);
    let mut overlay = OverlaySource::new(Arc::new(FileSource::open(&path).expect("the file")));
    overlay.insert(5 * GIB, b"changed");
    let mine = use_file(Arc::new(overlay)).expect("an open file");
    assert_eq!(&mine.read(data, 7, "a test").expect("bytes")[..], b"changed");
    assert_eq!(&other.read(data, 7, "a test").expect("bytes")[..], [0; 7]);
    let mut stored = [1; 7];
    FileSource::open(&path).expect("the file").read_at(5 * GIB, &mut stored).expect("bytes");
    assert_eq!(stored, [0; 7]);
    assert_eq!(std::fs::metadata(&path).expect("the file").modified().expect("a time"), written);
}
