//! Shared header messages, and how the space of a file is managed, judged by h5py, h5stat and h5dump.

use super::small_files::{expected, something_of_everything};
use super::{assert_lines, h5dump_reads, h5py_lines, write_with};
use std::path::Path;
use std::process::Command;
use tensilo_core::ErrorKind;
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::read::File;
use tensilo_hdf5::repack::{RepackOptions, like, repack};
use tensilo_hdf5::write::{
    Bound, FileSpaceOptions, FileWriter, Filters, SharedKind, SpaceStrategy, Value, WriteOptions,
};
use tensilo_testkit::oracle::{python, python_stdout, skip, temp_dir};

/// Prints what libhdf5 says of the file as a whole, then changes the file with it and reads it again.
const SETTINGS: &str = r#"
import ctypes as C, re, shutil, sys, h5py, numpy as np
L = None
for line in open("/proc/self/maps"):
    m = re.search(r"(/\S*/libhdf5[-.][^/\s]*)$", line)
    if m:
        L = C.CDLL(m.group(1)); break
path = sys.argv[1]
with h5py.File(path) as f:
    p = f.id.get_create_plist()
    n = C.c_uint()
    assert L.H5Pget_shared_mesg_nindexes(C.c_int64(p.id), C.byref(n)) >= 0
    indexes = []
    for i in range(n.value):
        flags, least = C.c_uint(), C.c_uint()
        assert L.H5Pget_shared_mesg_index(C.c_int64(p.id), C.c_uint(i), C.byref(flags), C.byref(least)) >= 0
        indexes.append((hex(flags.value), least.value))
    strategy, persist, threshold = p.get_file_space_strategy()
    print(indexes, strategy, persist, threshold, p.get_file_space_page_size())
changed = path + ".changed"
shutil.copy(path, changed)
with h5py.File(changed, "r+", libver=("v108", "latest")) as f:
    whole = f["/entry/deflate"][()]
    del f["/entry/contiguous"], f["/many/set000"]
    f["/entry/plain"].attrs["units"] = np.bytes_("counts")
    f["/entry/deflate"].attrs["added"] = [1, 2, 3]
    f.create_dataset("/new/deflate", data=whole, chunks=(2, 17, 60), compression=4, shuffle=True, fletcher32=True)
    for i in range(70):
        f["/many/set%03d" % (i + 1)].attrs["number"] = "the number %d" % i
with h5py.File(changed) as f:
    assert (f["/new/deflate"][()] == whole).all() and (f["/entry/deflate"][()] == whole).all()
    assert f["/entry/deflate"].attrs["units"] == "counts" and list(f["/entry/deflate"].attrs["added"]) == [1, 2, 3]
    assert f["/many/set042"].attrs["number"] == "the number 41" and f["/many/set299"][0] == 299
    assert "set000" not in f["/many"]
if strategy == 1:
    # Through a page buffer, which takes each small piece for part of one page.
    with h5py.File(path, page_buf_size=64 * p.get_file_space_page_size()) as f:
        assert (f["/entry/deflate"][()] == whole).all() and len(f["/many"]) == 300
        f.visititems(lambda _, o: dict(o.attrs))
"#;

fn settings(path: &Path) -> Option<String> {
    python()?;
    Some(String::from_utf8_lossy(&python_stdout(SETTINGS, [path], b"")).trim().to_owned())
}

/// Writes something of everything and more than a list's worth of shared messages, and reads it in every way.
fn judge(options: &WriteOptions, path: &Path, wanted: &str) {
    write_with(options.clone(), path, something_of_everything);
    let bound = options.bound;
    let (Some(found), Some(lines)) = (settings(path), h5py_lines(path)) else {
        return skip("Python with h5py", 1);
    };
    assert_eq!(found, wanted, "{bound}");
    assert_lines(&lines, &expected());
    let found = crate::checking::findings(path).1;
    assert!(found.is_empty(), "{bound}: {found:#?}");
    if bound <= Bound::V110 && h5dump_reads(path).is_none() {
        skip("h5dump", 1);
    }
}

const ALL: &str = "0x182a";

#[test]
fn shared_messages_are_stored_once_and_read_by_libhdf5() {
    let folder = temp_dir();
    let other = folder.path().join("other.h5");
    write_with(WriteOptions::default(), &other, |w| {
        w.dataset("/data").write(&[1_u8]).expect("dataset");
    });
    for bound in Bound::ALL {
        let path = folder.path().join(format!("{bound}.h5"));
        let options = WriteOptions::default().bound(bound).share(&SharedKind::ALL, 1);
        judge(&options, &path, &format!("[('{ALL}', 1)] 0 0 1 4096"));
    }
    for bound in [Bound::Earliest, Bound::V18] {
        let two = WriteOptions::default()
            .bound(bound)
            .share(&[SharedKind::Datatype, SharedKind::Attribute], 40)
            .share(&[SharedKind::Filters, SharedKind::FillValue, SharedKind::Dataspace], 16);
        let path = folder.path().join(format!("{bound}-two.h5"));
        judge(&two, &path, "[('0x1008', 40), ('0x822', 16)] 0 0 1 4096");
    }
    let sizes = |shared: bool| {
        let path = folder.path().join(format!("many-{shared}.h5"));
        let mut options = WriteOptions::default().bound(Bound::V18);
        if shared {
            options = options.share(&SharedKind::ALL, 20);
        }
        write_with(options, &path, |w| {
            for i in 0..400 {
                let d = w.dataset(format!("d{i}")).shape(&[2, 3, 4]).chunk(&[2, 3, 4]);
                let d = d.filters(Filters::new().shuffle().deflate(4).fletcher32());
                let d = d.attribute("a long attribute", Value::fixed_text("that all datasets have alike"));
                d.element::<f64>().create().expect("dataset");
            }
        })
        .len()
    };
    let (apart, together) = (sizes(false), sizes(true));
    assert!(together * 3 < apart * 2, "{together} of {apart} bytes");
}

#[test]
fn dense_attributes_and_hundreds_of_messages_are_shared() {
    let folder = temp_dir();
    let mut missing = 0;
    for bound in Bound::ALL {
        let path = folder.path().join(format!("{bound}.h5"));
        let mut options = WriteOptions::default().bound(bound).share(&SharedKind::ALL, 1);
        options.track_order = true;
        write_with(options, &path, |w| {
            for group in ["a", "b"] {
                w.create_group(group).expect("group");
                for i in 0..200_u32 {
                    w.attribute(group, format!("name {i}"), i).expect("attribute");
                }
                let large: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
                w.attribute(group, "large", large.as_slice()).expect("attribute");
                w.attribute(group, "middle", &large[..6000]).expect("attribute");
            }
        });
        let code = r#"
import sys, h5py
with h5py.File(sys.argv[1], "r+") as f:
    for g in "ab":
        a = f[g].attrs
        assert len(a) == 202 and all(a["name %d" % i] == i for i in range(200))
        assert list(a["large"][:3]) == [0, 1, 2] and a["large"].size == 100000 and a["middle"].size == 6000
        assert list(a)[:2] == ["name 0", "name 1"]
    for i in range(150):
        del f["a"].attrs["name %d" % i]
    del f["a"].attrs["large"]
with h5py.File(sys.argv[1]) as f:
    assert len(f["a"].attrs) == 51 and f["b"].attrs["name 7"] == 7 and f["b"].attrs["large"].size == 100000
print("same")
"#;
        match python() {
            Some(_) => assert_eq!(python_stdout(code, [&path], b""), b"same\n", "{bound}"),
            None => missing += 1,
        }
    }
    if missing > 0 {
        skip("Python with h5py", missing);
    }
}

#[test]
fn pages_hold_what_libhdf5_expects_of_them() {
    let folder = temp_dir();
    let other = folder.path().join("other.h5");
    write_with(WriteOptions::default(), &other, |w| {
        w.dataset("/data").write(&[1_u8]).expect("dataset");
    });
    for (bound, page, persist) in [
        (Bound::Earliest, 512, false),
        (Bound::V200, 512, false),
        (Bound::V18, 4096, true),
        (Bound::V110, 4096, false),
        (Bound::Earliest, 65_536, false),
    ] {
        let path = folder.path().join(format!("{bound}-{page}.h5"));
        let space = FileSpaceOptions { persist, ..FileSpaceOptions::paged(page) };
        let mut options = WriteOptions::default().bound(bound).file_space(space);
        if page == 512 {
            options = options.share(&SharedKind::ALL, 1).user_block(1024);
        }
        let shared = if page == 512 { format!("[('{ALL}', 1)]") } else { "[]".to_owned() };
        judge(&options, &path, &format!("{shared} 1 {} 1 {page}", u8::from(persist)));
        let (file, user) = (File::open(&path).expect("opened"), options.user_block);
        assert!((file.space().source().len() - user).is_multiple_of(page), "{bound} {page}");
        if bound > Bound::V110 {
            continue;
        }
        if let Ok(out) = Command::new("h5stat").arg("-S").arg(&path).output() {
            assert!(out.status.success() && out.stderr.is_empty(), "{bound} {page}: {out:?}");
        }
    }
}

#[test]
fn datasets_of_unknown_length_have_pages_of_their_own() {
    let folder = temp_dir();
    for elements in [0_u64, 3, 128, 1000] {
        let path = folder.path().join(format!("{elements}.h5"));
        let options = WriteOptions::default().bound(Bound::V110).file_space(FileSpaceOptions::paged(512));
        let values: Vec<u32> = (0..elements as u32).collect();
        write_with(options, &path, |w| {
            w.dataset("before").write(&[1_u8, 2]).expect("dataset");
            let mut grows =
                w.dataset("grows").element::<u32>().shape(&[0]).growing_writer().expect("dataset");
            for v in values.chunks(7) {
                grows.write(bytemuck::cast_slice(v)).expect("written");
            }
            grows.finish().expect("dataset");
            w.dataset("behind").write(&[3_u8]).expect("dataset");
        });
        let code = r#"
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], page_buf_size=1 << 16) as f:
    assert f["before"][()].tolist() == [1, 2] and f["behind"][()].tolist() == [3]
    assert (f["grows"][()] == np.arange(int(sys.argv[2]))).all() and f["grows"].shape == (int(sys.argv[2]),)
    at = f["grows"].id.get_offset()
    assert at is None or at % 512 == 0 and f["behind"].id.get_offset() < at, at
print("same")
"#;
        let arguments = [path.display().to_string(), elements.to_string()];
        match python() {
            Some(_) => assert_eq!(python_stdout(code, arguments, b""), b"same\n", "{elements}"),
            None => skip("Python with h5py", 1),
        }
        let found = crate::checking::findings(&path).1;
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn strategies_and_thresholds_are_stated_and_kept_by_repacking() {
    let folder = temp_dir();
    for (strategy, number, persist) in [
        (SpaceStrategy::Managers, 0, true),
        (SpaceStrategy::Aggregation, 2, false),
        (SpaceStrategy::Nothing, 3, false),
        (SpaceStrategy::Pages, 1, true),
    ] {
        let space = FileSpaceOptions { strategy, persist, threshold: 7, page_size: 1024 };
        let options = WriteOptions::default().file_space(space).share(&[SharedKind::Attribute], 30);
        let (a, b) =
            (folder.path().join(format!("{number}.h5")), folder.path().join(format!("{number}b.h5")));
        let wanted = format!("[('0x1000', 30)] {number} {} 7 1024", u8::from(persist));
        judge(&options, &a, &wanted);
        let source = File::open(&a).expect("opened");
        let kept = like(&source, WriteOptions::default().bound(Bound::V110)).expect("settings");
        assert_eq!((kept.file_space, &kept.shared), (space, &options.shared));
        let mut w = FileWriter::create(SystemDisk::shared(), &b, kept).expect("a new file");
        repack(&source, &mut w, &RepackOptions::default()).expect("copied");
        w.finish().expect("finished");
        if let Some(found) = settings(&b) {
            assert_eq!(found, wanted);
        }
    }
}

#[test]
fn impossible_settings_are_refused() {
    let folder = temp_dir();
    let paged = |page| WriteOptions::default().file_space(FileSpaceOptions::paged(page));
    let space =
        FileSpaceOptions { strategy: SpaceStrategy::Nothing, persist: true, ..FileSpaceOptions::default() };
    let mut nine = WriteOptions::default();
    for _ in 0..9 {
        nine = nine.share(&[SharedKind::Dataspace], 1);
    }
    for (options, wanted) in [
        (paged(511), "512 to 1 GiB"),
        (paged(1 << 31), "512 to 1 GiB"),
        (WriteOptions::default().file_space(space), "can remember"),
        (nine, "8 are possible"),
        (WriteOptions::default().share(&[], 1), "without a kind"),
        (WriteOptions::default().share(&[SharedKind::Filters; 2], 1), "shared twice"),
    ] {
        let e = FileWriter::create(SystemDisk::shared(), folder.path().join("a.h5"), options)
            .expect_err("impossible");
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert!(e.to_string().contains(wanted), "{e}");
    }
}
