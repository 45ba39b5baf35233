//! What every disk, byte source and record store must do, as functions that any crate's tests can call.

use crate::MemoryRecords;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::gather::{FieldBuffer, Gather, Places, gather as collect};
use tensilo_core::io::{ByteSource, Disk, LockKind};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, ErrorKind, Quiet, Result};

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|e| e.kind())
}

fn read(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path).expect("a file to read");
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_at(0, &mut bytes).expect("readable bytes");
    bytes
}

/// Checks the contract of [`Disk`]; `make` gives a disk and an empty folder on it.
///
/// # Panics
/// When the disk breaks it.
pub fn disk(make: impl Fn() -> (Arc<dyn Disk>, PathBuf)) {
    let (disk, folder) = make();
    files(&*disk, &folder);
    let (disk, folder) = make();
    names(&*disk, &folder);
    let (disk, folder) = make();
    folders(&*disk, &folder);
    let (disk, folder) = make();
    locks(&*disk, &folder);
}

fn files(disk: &dyn Disk, folder: &Path) {
    let path = folder.join("file");
    let file = disk.create_new(&path).expect("a new file");
    assert!(file.is_empty().expect("a length"));
    file.write_at(3, b"abc").expect("a write past the end");
    assert_eq!(read(disk, &path), b"\0\0\0abc", "a gap reads as zeros");
    file.write_at(100, b"").expect("an empty write");
    assert_eq!(file.len().expect("a length"), 6, "an empty write changes nothing");
    file.write_at(1, b"XY").expect("a write inside");
    assert_eq!(read(disk, &path), b"\0XYabc");
    file.set_len(4).expect("a cut");
    file.set_len(6).expect("an extension");
    assert_eq!(read(disk, &path), b"\0XYa\0\0", "what was cut off stays away");
    let mut four = [9; 4];
    assert_eq!(kind(file.read_at(3, &mut four)), Some(ErrorKind::Io), "reading past the end fails");
    file.read_at(6, &mut []).expect("reading nothing at the end");

    file.allocate(4, 5000).expect("space");
    assert_eq!(file.len().expect("a length"), 5004, "reserving extends");
    file.allocate(0, 10).expect("space inside");
    file.allocate(0, 0).expect("no space");
    assert_eq!(file.len().expect("a length"), 5004, "reserving never cuts");
    file.write_at(0, &vec![7; 20_000]).expect("a long write");
    file.punch(4096, 8192).expect("a hole");
    file.punch(0, 0).expect("no hole");
    let bytes = read(disk, &path);
    assert_eq!(bytes.len(), 20_000, "a hole keeps the length");
    assert!(bytes[..4096].iter().chain(&bytes[12_288..]).all(|b| *b == 7));
    assert!(bytes[4096..12_288].iter().all(|b| *b == 0), "a hole reads as zeros");
    file.sync().expect("a sync");

    let before = file.fingerprint().expect("a fingerprint");
    assert_eq!(before, disk.open(&path).and_then(|f| f.fingerprint()).expect("a fingerprint"));
    file.set_len(1).expect("a cut");
    let after = file.fingerprint().expect("a fingerprint");
    assert_ne!(before, after);
    assert_eq!((before.device, before.inode), (after.device, after.inode));
}

fn names(disk: &dyn Disk, folder: &Path) {
    let [a, b, c] = ["a", "b", "c"].map(|n| folder.join(n));
    let file = disk.create_new(&a).expect("a new file");
    file.write_at(0, b"one").expect("a write");
    assert_eq!(kind(disk.create_new(&a)), Some(ErrorKind::AlreadyExists));
    assert_eq!(kind(disk.open(&b)), Some(ErrorKind::NotFound));
    assert_eq!(kind(disk.create_new(&folder.join("no/file"))), Some(ErrorKind::NotFound));
    assert_eq!(kind(disk.unlink(&b)), Some(ErrorKind::NotFound));
    assert_eq!(kind(disk.rename(&b, &c)), Some(ErrorKind::NotFound));
    assert_eq!(kind(disk.link(&b, &c)), Some(ErrorKind::NotFound));

    disk.link(&a, &b).expect("a second name");
    assert_eq!(kind(disk.link(&a, &b)), Some(ErrorKind::AlreadyExists));
    let same = |x: &Path, y: &Path| {
        let of = |p: &Path| disk.open(p).and_then(|f| f.fingerprint()).expect("a fingerprint").inode;
        of(x) == of(y)
    };
    assert!(same(&a, &b));
    disk.rename(&a, &b).expect("renaming onto itself");
    assert!(same(&a, &b), "renaming one name of a file onto another does nothing");
    disk.unlink(&a).expect("one name goes");
    assert_eq!(read(disk, &b), b"one");

    disk.create_new(&c).expect("a new file").write_at(0, b"two").expect("a write");
    assert_eq!(kind(disk.rename_no_replace(&b, &c)), Some(ErrorKind::AlreadyExists));
    assert_eq!(read(disk, &c), b"two", "nothing was replaced");
    disk.rename_no_replace(&b, &a).expect("a free name");
    disk.rename(&a, &c).expect("a replacement");
    assert_eq!(read(disk, &c), b"one");
    assert_eq!(kind(disk.open(&a)), Some(ErrorKind::NotFound));

    disk.unlink(&c).expect("the last name goes");
    file.write_at(3, b"!").expect("a file without a name");
    assert_eq!(file.len().expect("a length"), 4, "an open file outlives its name");
    assert!(disk.list(folder).expect("a list").is_empty());
}

fn folders(disk: &dyn Disk, folder: &Path) {
    let [x, y, z] = ["x", "y", "z"].map(|n| folder.join(n));
    disk.create_dir(&x).expect("a folder");
    assert_eq!(kind(disk.create_dir(&x)), Some(ErrorKind::AlreadyExists));
    assert_eq!(kind(disk.create_dir(&folder.join("no/folder"))), Some(ErrorKind::NotFound));
    assert!(disk.open(&x).is_err() && disk.unlink(&x).is_err() && disk.link(&x, &y).is_err());
    let inner = x.join("f");
    drop(disk.create_new(&inner).expect("a file inside"));
    assert!(disk.remove_dir(&x).is_err(), "a folder with something in it stays");
    disk.create_dir(&y).expect("a folder");
    assert!(disk.rename(&y, &x).is_err(), "only an empty folder is replaced");
    assert_eq!(kind(disk.rename_no_replace(&x, &y)), Some(ErrorKind::AlreadyExists));
    disk.rename(&x, &y).expect("an empty folder is replaced");
    drop(disk.open(&y.join("f")).expect("the file inside came along"));
    drop(disk.create_new(&z).expect("a file"));
    assert!(disk.rename(&z, &y).is_err() && disk.rename(&y, &z).is_err() && disk.remove_dir(&z).is_err());
    assert!(disk.create_new(&z.join("f")).is_err(), "a file is no folder");
    disk.sync_dir(folder).expect("durable names");
    assert!(disk.sync_dir(&folder.join("no")).is_err());
    assert_eq!(disk.list(folder).expect("a list"), ["y", "z"], "names are sorted");
    assert_eq!(kind(disk.list(&x)), Some(ErrorKind::NotFound));
    disk.unlink(&y.join("f")).expect("a file goes");
    disk.remove_dir(&y).expect("an empty folder goes");
    assert_eq!(kind(disk.remove_dir(&y)), Some(ErrorKind::NotFound));
    assert!(disk.free_space(folder).expect("free space") > 0);
    disk.free_space(&folder.join("not/yet")).expect("the space of the folder above");
}

fn locks(disk: &dyn Disk, folder: &Path) {
    let path = folder.join("file");
    let one = disk.create_new(&path).expect("a file");
    let two = disk.open(&path).expect("the file again");
    one.try_lock(LockKind::Shared).expect("a shared lock");
    two.try_lock(LockKind::Shared).expect("a second shared lock");
    assert_eq!(kind(one.try_lock(LockKind::Exclusive)), Some(ErrorKind::Locked));
    two.unlock().expect("an unlock");
    one.unlock().expect("an unlock");
    one.try_lock(LockKind::Exclusive).expect("an exclusive lock");
    assert_eq!(kind(two.try_lock(LockKind::Shared)), Some(ErrorKind::Locked));
    assert_eq!(kind(two.try_lock(LockKind::Exclusive)), Some(ErrorKind::Locked));
    drop(one);
    two.try_lock(LockKind::Exclusive).expect("a lock goes with its handle");
}

/// Checks the contract of [`ByteSource`]; `make` gives a source that shows these bytes.
///
/// # Panics
/// When the source breaks it.
pub fn byte_source<S: ByteSource>(make: impl Fn(&[u8]) -> S) {
    let empty = make(&[]);
    assert!(empty.is_empty() && empty.len() == 0);
    empty.read_at(0, &mut []).expect("reading nothing from nothing");
    assert_eq!(kind(empty.read_at(0, &mut [0])), Some(ErrorKind::Corrupt));

    let bytes: Vec<u8> = (0..10_007_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let source = make(&bytes);
    let n = bytes.len() as u64;
    assert_eq!(source.len(), n);
    assert_eq!(source.fingerprint().expect("a fingerprint"), source.fingerprint().expect("a fingerprint"));
    for (start, end) in [(0, bytes.len()), (0, 1), (17, 17), (4095, 4097), (10_000, 10_007), (10_007, 10_007)]
    {
        let mut buf = vec![0xee; end - start];
        source.read_at(start as u64, &mut buf).expect("a read inside");
        assert_eq!(buf, bytes[start..end], "bytes {start}..{end}");
        if let Some(borrowed) = source.borrow(start as u64..end as u64) {
            assert_eq!(borrowed, &bytes[start..end], "borrowed bytes {start}..{end}");
        }
    }
    for (offset, len) in [(n, 1), (n - 1, 2), (u64::MAX, 1), (u64::MAX - 1, 4), (n + 5, 0)] {
        let got = source.read_at(offset, &mut vec![0; len]);
        assert_eq!(kind(got), Some(ErrorKind::Corrupt), "{len} bytes at {offset}");
    }
    assert!(source.borrow(n - 1..n + 1).is_none() && source.borrow(u64::MAX - 1..u64::MAX).is_none());
    #[expect(clippy::reversed_empty_ranges, reason = "a caller's mistake must not panic")]
    let reversed = source.borrow(5..3);
    assert!(reversed.is_none());

    let (mut a, mut b, mut c) = (vec![0; 100], vec![0; 0], vec![0; 3000]);
    source
        .read_ranges(&mut [(9000, &mut a), (5, &mut b), (50, &mut c)])
        .expect("several ranges in any order");
    assert!(a == bytes[9000..9100] && c == bytes[50..3050]);
    let past = source.read_ranges(&mut [(0, &mut b), (n - 1, &mut a)]);
    assert_eq!(kind(past), Some(ErrorKind::Corrupt));

    std::thread::scope(|scope| {
        for t in 0..4_usize {
            let (source, bytes) = (&source, &bytes);
            scope.spawn(move || {
                for start in (t..9000).step_by(997) {
                    let mut buf = vec![0; 1000];
                    source.read_at(start as u64, &mut buf).expect("a read beside others");
                    assert_eq!(buf, bytes[start..start + 1000]);
                }
            });
        }
    });
}

/// Checks the contract of [`Gather`] against the records that the store must show.
///
/// # Panics
/// When the store breaks it.
pub fn gather(store: &dyn Gather, expected: &MemoryRecords) {
    assert_eq!(store.schema(), expected.schema());
    assert_eq!((store.len(), store.is_empty()), (expected.len(), expected.is_empty()));
    let print = || store.fingerprint().expect("a fingerprint");
    assert_eq!(print(), print());
    let n = store.len();
    let lists: Vec<Vec<u64>> = if n == 0 {
        vec![vec![]]
    } else {
        let mixed = |count: u64| (0..count).map(|i| i.wrapping_mul(2_654_435_761) % n).collect();
        vec![vec![], (0..n).collect(), (0..n).rev().collect(), vec![n - 1; 3], mixed(100), mixed(7)]
    };
    for ids in &lists {
        gathers_as_expected(store, expected, ids);
    }
    refuses_what_does_not_fit(store);
}

fn gathers_as_expected(store: &dyn Gather, expected: &MemoryRecords, ids: &[u64]) {
    for threads in [Threads::ONE, Threads::new(3)] {
        let [got, wanted] = [store, expected as &dyn Gather]
            .map(|s| collect(s, ids, &[], &Budget::default(), threads, &Quiet).expect("gathered records"));
        assert!(got == wanted, "records {ids:?}");
    }
    let fields = store.schema().fields();
    for (field, schema) in fields.iter().enumerate() {
        let (mut got, mut wanted) = (vec![9; ids.len()], vec![8; ids.len()]);
        store.lengths(field, ids, &mut got).expect("lengths");
        expected.lengths(field, ids, &mut wanted).expect("lengths");
        assert_eq!(got, wanted, "lengths of {ids:?} in {schema:?}");
        // Backwards and with gaps of 3 bytes, which must stay as they are.
        let bytes = schema.step_bytes().expect("a size");
        let mut starts = vec![0; ids.len()];
        let mut end = 3;
        for i in (0..ids.len()).rev() {
            starts[i] = end;
            end += wanted[i] * bytes + 3;
        }
        let [mut ours, mut theirs] = [vec![0xa5; end as usize], vec![0xa5; end as usize]];
        for (s, bytes) in [(store, &mut ours), (expected as &dyn Gather, &mut theirs)] {
            let mut into = [FieldBuffer { field, bytes, places: Places::Starts(&starts) }];
            s.gather_into(ids, &mut into, Threads::new(2), &Quiet).expect("records in chosen places");
        }
        assert!(ours == theirs, "records {ids:?} of {schema:?} at {starts:?}");
        if !schema.is_ragged() {
            let stride = bytes + 5;
            let [mut ours, mut theirs] = [0, 1].map(|_| vec![0xa5; ids.len() * stride as usize]);
            for (s, bytes) in [(store, &mut ours), (expected as &dyn Gather, &mut theirs)] {
                let mut into = [FieldBuffer { field, bytes, places: Places::Stride(stride) }];
                s.gather_into(ids, &mut into, Threads::ONE, &Quiet).expect("records with a stride");
            }
            assert!(ours == theirs, "records {ids:?} of {schema:?} with stride {stride}");
        }
    }
}

fn refuses_what_does_not_fit(store: &dyn Gather) {
    let invalid = Some(ErrorKind::InvalidArgument);
    let n = store.len();
    let mut bytes = vec![0; 1 << 16];
    for (field, schema) in store.schema().fields().iter().enumerate() {
        assert_eq!(kind(store.lengths(field, &[n], &mut [0])), invalid, "an id past the end");
        assert_eq!(kind(store.lengths(field, &[], &mut [0])), invalid, "more lengths than ids");
        let mut try_places = |ids: &[u64], places, room: usize| {
            let mut into = [FieldBuffer { field, bytes: &mut bytes[..room], places }];
            kind(store.gather_into(ids, &mut into, Threads::ONE, &Quiet))
        };
        for id in [n, n + 1, u64::MAX] {
            assert_eq!(try_places(&[id], Places::Starts(&[0]), 1 << 16), invalid, "id {id}");
        }
        let mut steps = vec![0; n.min(100) as usize];
        let ids: Vec<u64> = (0..steps.len() as u64).collect();
        store.lengths(field, &ids, &mut steps).expect("lengths");
        let step = schema.step_bytes().expect("a size");
        if let Some(id) = (0..steps.len()).find(|i| steps[*i] * step > 1) {
            let (id, len) = (id as u64, (steps[id] * step) as usize);
            assert_eq!(try_places(&[id], Places::Starts(&[0]), len - 1), invalid, "a buffer too small");
            assert_eq!(try_places(&[id], Places::Starts(&[u64::MAX]), len), invalid, "a place outside");
            assert_eq!(try_places(&[id], Places::Starts(&[]), len), invalid, "no place");
            assert_eq!(
                try_places(&[id, id], Places::Starts(&[0, 1]), len + 1),
                invalid,
                "overlapping places"
            );
        }
    }
    let field = store.schema().fields().len();
    assert_eq!(kind(store.lengths(field, &[], &mut [])), invalid, "a field that does not exist");
    let mut into = [FieldBuffer { field, bytes: &mut [], places: Places::Stride(0) }];
    assert_eq!(kind(store.gather_into(&[], &mut into, Threads::ONE, &Quiet)), invalid);
}
