//! Each chunk is encoded exactly once, in a bounded window, whatever bound, thread count or way of writing.

#![expect(clippy::disallowed_methods, reason = "test set-up")]

use super::write_with;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Result};
use tensilo_filters::{ChunkInfo, Codecs, Decoded, Encoded, Filter, FilterSpec, Registry};
use tensilo_hdf5::write::{Bound, FileWriter, Filters, WriteOptions};
use tensilo_testkit::oracle::temp_dir;

/// Inverts all bits, counts its calls, and fails for chunks that begin with a given byte.
#[derive(Default)]
struct Inverting {
    calls: AtomicUsize,
    seen: Mutex<Vec<u8>>,
    refuses: Option<u8>,
    panics: bool,
}

const ID: u16 = 400;

impl Filter for Inverting {
    fn id(&self) -> u16 {
        ID
    }

    fn name(&self) -> &str {
        "inverting"
    }

    fn decode(&self, _: &[u32], _: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        for (d, s) in dst.iter_mut().zip(src) {
            *d = !s;
        }
        Ok(Decoded::Written(src.len()))
    }

    fn encode(
        &self,
        _: &[u32],
        _: &ChunkInfo,
        _: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.seen.lock().expect("no panic").push(src[0]);
        if self.refuses == Some(src[0]) {
            assert!(!self.panics, "the filter panics");
            return Err(Error::invalid("this chunk is refused"));
        }
        dst.extend(src.iter().map(|b| !b));
        Ok(Encoded::Written)
    }
}

fn options(filter: &Arc<Inverting>, bound: Bound, threads: usize) -> WriteOptions {
    let mut registry = Registry::default();
    registry.register(filter.clone());
    WriteOptions {
        registry: Arc::new(registry),
        window: 300,
        ..WriteOptions::default().bound(bound).threads(Threads::new(threads))
    }
}

fn inverting() -> Filters {
    Filters::new().then(FilterSpec::new(ID, vec![]))
}

/// 26 chunks of 40 bytes, each of its own byte.
fn array() -> Vec<u8> {
    (0..26 * 40).map(|i| (i / 40) as u8).collect()
}

fn whole(w: &mut FileWriter<'_>) {
    w.dataset("a").shape(&[26, 40]).chunk(&[1, 40]).filters(inverting()).write(&array()).expect("dataset");
}

fn one_by_one(w: &mut FileWriter<'_>) {
    let d = w.dataset("a").shape(&[26, 40]).chunk(&[1, 40]).filters(inverting()).element::<u8>();
    let mut chunks = d.chunk_writer().expect("dataset");
    for i in 0..26 {
        chunks.write_chunk(&[i, 0], vec![i as u8; 40]).expect("chunk");
    }
    chunks.finish().expect("dataset");
}

#[test]
fn each_chunk_is_encoded_once_and_the_bytes_are_the_same() {
    let folder = temp_dir();
    for bound in Bound::ALL {
        let mut files = Vec::new();
        for (i, threads) in [1, 2, 3, 8].into_iter().enumerate() {
            for (j, way) in [whole as fn(&mut FileWriter<'_>), one_by_one].into_iter().enumerate() {
                let filter = Arc::new(Inverting::default());
                let path = folder.path().join(format!("{bound}-{i}-{j}.h5"));
                files.push(write_with(options(&filter, bound, threads), &path, way));
                let mut seen = filter.seen.lock().expect("no panic").clone();
                seen.sort_unstable();
                assert_eq!(seen, (0..26).collect::<Vec<u8>>(), "{bound}, {threads} threads");
            }
        }
        assert!(files.iter().all(|f| *f == files[0]), "{bound}");
    }
}

#[test]
fn the_lowest_failing_chunk_is_reported_and_no_file_is_left() {
    let folder = temp_dir();
    for threads in [1, 2, 5] {
        let filter = Arc::new(Inverting { refuses: Some(11), ..Inverting::default() });
        let path = folder.path().join("a.h5");
        let mut w = FileWriter::create(
            tensilo_core::io::SystemDisk::shared(),
            &path,
            options(&filter, Bound::Earliest, threads),
        )
        .expect("a new file");
        let d = w.dataset("a").shape(&[26, 40]).chunk(&[1, 40]).filters(inverting());
        let e = d.write(&array()).expect_err("chunk 11 is refused");
        assert!(e.to_string().contains("this chunk is refused"), "{e}");
        let e = w.finish().expect_err("a dataset was left unfinished");
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0);
    }
}

#[test]
fn a_panicking_filter_does_not_hang_the_other_threads() {
    let folder = temp_dir();
    let filter = Arc::new(Inverting { refuses: Some(3), panics: true, ..Inverting::default() });
    let path = folder.path().join("a.h5");
    let options = options(&filter, Bound::Earliest, 4);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write_with(options, &path, whole)));
    assert!(result.is_err());
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0);
}

#[test]
fn the_monitor_stops_the_work_and_no_file_is_left() {
    let folder = temp_dir();
    let stop_at = |n: usize, threads: usize| {
        let polls = Arc::new(AtomicUsize::new(0));
        let counter = polls.clone();
        let monitor = move |_: &tensilo_core::Progress| {
            if counter.fetch_add(1, Ordering::Relaxed) >= n { Err(Error::cancelled()) } else { Ok(()) }
        };
        let filter = Arc::new(Inverting::default());
        let mut options = options(&filter, Bound::V110, threads);
        options.monitor = Arc::new(monitor);
        let path = folder.path().join("a.h5");
        let mut w = FileWriter::create(tensilo_core::io::SystemDisk::shared(), &path, options).expect("file");
        let wrote =
            w.dataset("a").shape(&[26, 40]).chunk(&[1, 40]).filters(inverting()).write(&array()).map(|_| ());
        let done = wrote.and_then(|()| w.finish().map(|_| ()));
        (done, polls.load(Ordering::Relaxed))
    };
    let (done, polls) = stop_at(usize::MAX, 1);
    done.expect("nothing stops it");
    assert!(polls > 26, "polled between chunks: {polls}");
    std::fs::remove_file(folder.path().join("a.h5")).expect("removed");
    for n in 0..polls {
        let (done, _) = stop_at(n, 1);
        assert_eq!(done.expect_err("stopped").kind(), ErrorKind::Cancelled);
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0, "poll {n}");
    }
}
