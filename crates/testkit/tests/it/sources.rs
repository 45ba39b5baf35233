//! Mapped, overlaid and sparse sources show the bytes that plain ones show; near reads are merged.

use proptest::prelude::*;
use std::cell::Cell;
use std::sync::Arc;
use tensilo_core::io::{
    ByteSource, Coalesce, Disk, FileSource, LockKind, MappedSource, MemorySource, OverlaySource,
    SparseSource, SystemDisk, coalesce, fetch_until_done, read_coalesced,
};
use tensilo_core::{Error, ErrorKind};
use tensilo_testkit::oracle::{skip, temp_dir};
use tensilo_testkit::{CountingSource, TempDir, conformance};

fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(11),
        ..Default::default()
    }
}

fn new_file(temp: &TempDir, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = temp.path().join(name);
    SystemDisk.create_new(&path).unwrap().write_at(0, bytes).unwrap();
    path
}

/// Can files of the temporary folder be mapped safely?
fn mappable(temp: &TempDir, tests: usize) -> bool {
    let path = new_file(temp, "probe", b"x");
    let refused = MappedSource::open_locked(&path).err();
    if refused.as_ref().map(Error::kind) == Some(ErrorKind::Unsupported) {
        skip("a temporary folder on a local file system", tests);
        return false;
    }
    assert!(refused.is_none(), "{refused:?}");
    true
}

#[test]
fn mapped_files_conform_and_equal_files_that_are_read() {
    let temp = temp_dir();
    if !mappable(&temp, 1) {
        return;
    }
    let count = Cell::new(0);
    conformance::byte_source(|bytes| {
        count.set(count.get() + 1);
        let path = new_file(&temp, &count.get().to_string(), bytes);
        let mapped = MappedSource::open_locked(&path).unwrap();
        let read = FileSource::open(&path).unwrap();
        assert_eq!(mapped.fingerprint().unwrap(), read.fingerprint().unwrap());
        assert_eq!(mapped.path(), read.path());
        let mut again = vec![0; bytes.len()];
        read.read_at(0, &mut again).unwrap();
        assert_eq!(mapped.borrow(0..bytes.len() as u64), Some(&again[..]));
        mapped.advise_random();
        mapped.will_need(0..u64::MAX);
        mapped.will_need(5000..5001);
        mapped
    });
}

#[test]
fn a_map_and_a_writer_in_place_exclude_each_other() {
    let temp = temp_dir();
    if !mappable(&temp, 1) {
        return;
    }
    let path = new_file(&temp, "f", b"bytes");
    let map = MappedSource::open_locked(&path).unwrap();
    let second = MappedSource::open_locked(&path).unwrap();
    let writer = SystemDisk.open(&path).unwrap();
    assert_eq!(writer.try_lock(LockKind::Exclusive).unwrap_err().kind(), ErrorKind::Locked);
    drop((map, second));
    writer.try_lock(LockKind::Exclusive).unwrap();
    assert_eq!(MappedSource::open_locked(&path).unwrap_err().kind(), ErrorKind::Locked);
    drop(writer);
    assert_eq!(MappedSource::open_locked(&path).unwrap().bytes(), b"bytes");
}

#[test]
fn pages_that_were_dropped_are_read_again() {
    let temp = temp_dir();
    if !mappable(&temp, 1) {
        return;
    }
    let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i % 253) as u8).collect();
    let path = new_file(&temp, "f", &bytes);
    SystemDisk.open(&path).unwrap().sync().unwrap();
    let map = MappedSource::open_locked(&path).unwrap();
    map.advise_sequential();
    assert_eq!(map.bytes(), bytes);
    assert!(map.resident_bytes(0..100_000).unwrap() >= 98_304);
    map.drop_cached(5000..u64::MAX);
    assert!(map.resident_bytes(0..100_000).unwrap() <= 102_400);
    assert_eq!(map.bytes(), bytes);
    assert_eq!(map.resident_bytes(0..100_001).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn folders_and_missing_files_are_not_mapped() {
    let temp = temp_dir();
    assert_eq!(MappedSource::open_locked(temp.path()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let error = MappedSource::open_locked(temp.path().join("no")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// The bytes inside a frame of other bytes, laid over with patches until they show.
fn overlaid(bytes: &[u8]) -> OverlaySource {
    let half = bytes.len() / 2;
    let mut below: Vec<u8> = bytes.iter().map(|b| b ^ 0xff).collect();
    below[..half].copy_from_slice(&bytes[..half]);
    below.extend([9; 10]);
    let mut overlay = OverlaySource::new(Arc::new(MemorySource::new(below)));
    for (i, piece) in bytes[half..].chunks(501).enumerate() {
        overlay.insert((half + i * 501) as u64, piece);
    }
    overlay.set_len(bytes.len() as u64);
    overlay
}

#[test]
fn overlays_conform() {
    conformance::byte_source(overlaid);
    conformance::byte_source(|bytes| OverlaySource::new(Arc::new(MemorySource::new(bytes))));
}

#[test]
fn a_filled_sparse_source_conforms() {
    conformance::byte_source(|bytes| {
        let sparse = SparseSource::new(bytes.len() as u64);
        for (i, piece) in bytes.chunks(700).enumerate().collect::<Vec<_>>().into_iter().rev() {
            sparse.insert(i as u64 * 700, piece);
        }
        sparse
    });
    conformance::byte_source(|bytes| CountingSource::new(MemorySource::new(bytes)));
}

#[test]
fn an_overlay_borrows_where_no_patch_cuts_through() {
    let mut overlay = OverlaySource::new(Arc::new(MemorySource::new(*b"0123456789")));
    assert_eq!(overlay.borrow(0..10), Some(&b"0123456789"[..]));
    let before = overlay.fingerprint().unwrap();
    overlay.insert(4, b"abc");
    assert_ne!(overlay.fingerprint().unwrap(), before);
    let twin = overlay.clone();
    assert_eq!(twin.fingerprint().unwrap(), overlay.fingerprint().unwrap());
    assert_eq!(overlay.borrow(0..4), Some(&b"0123"[..]));
    assert_eq!(overlay.borrow(5..7), Some(&b"bc"[..]));
    assert_eq!(overlay.borrow(7..10), Some(&b"789"[..]));
    assert_eq!((overlay.borrow(3..5), overlay.borrow(6..8)), (None, None));
    overlay.insert(12, b"z");
    assert_eq!(overlay.borrow(9..11), None, "what lies past the source below is nowhere in memory");
    assert_eq!(overlay.patched_bytes(), 4);
}

#[test]
fn an_overlay_passes_missing_ranges_of_all_its_gaps_on_at_once() {
    let below = Arc::new(SparseSource::new(100));
    let mut overlay = OverlaySource::new(below.clone());
    overlay.insert(40, &[1; 20]);
    let mut all = [7; 100];
    let error = overlay.read_at(0, &mut all).unwrap_err();
    assert_eq!(error.missing_ranges(), [0..40, 60..100]);
    below.insert(0, &[2; 100]);
    overlay.read_at(0, &mut all).unwrap();
    assert!(all[..40].iter().chain(&all[60..]).all(|b| *b == 2) && all[40..60] == [1; 20]);
}

#[derive(Debug, Clone)]
enum Change {
    Insert(u64, Vec<u8>),
    SetLen(u64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        5 => (0..90_u64, proptest::collection::vec(1..=255_u8, 0..30)).prop_map(|(o, b)| Change::Insert(o, b)),
        1 => (0..100_u64).prop_map(Change::SetLen),
    ]
}

proptest! {
    #![proptest_config(fixed(2000))]

    #[test]
    fn an_overlay_equals_a_changed_vector(changes in proptest::collection::vec(change(), 0..12), ranges in
        proptest::collection::vec((0..130_usize, 0..40_usize), 1..6)) {
        let start: Vec<u8> = (0..50).collect();
        let mut overlay = OverlaySource::new(Arc::new(MemorySource::new(start.clone())));
        let mut model = start;
        for change in &changes {
            match change {
                Change::Insert(offset, bytes) => {
                    overlay.insert(*offset, bytes);
                    let end = *offset as usize + bytes.len();
                    if !bytes.is_empty() {
                        model.resize(model.len().max(end), 0);
                        model[*offset as usize..end].copy_from_slice(bytes);
                    }
                }
                Change::SetLen(len) => {
                    overlay.set_len(*len);
                    model.resize(*len as usize, 0);
                }
            }
        }
        prop_assert_eq!(overlay.len(), model.len() as u64);
        let mut last = 0;
        for (offset, bytes) in overlay.patches() {
            prop_assert!(offset >= last && !bytes.is_empty());
            last = offset + bytes.len() as u64;
        }
        let mut bufs: Vec<Vec<u8>> = ranges.iter().map(|(_, n)| vec![0xee; *n]).collect();
        let mut wanted: Vec<_> = ranges.iter().zip(&mut bufs).map(|((o, _), b)| (*o as u64, &mut b[..])).collect();
        let inside = ranges.iter().all(|(o, n)| o + n <= model.len());
        prop_assert_eq!(overlay.read_ranges(&mut wanted).is_ok(), inside);
        for ((offset, n), buf) in ranges.iter().zip(&bufs) {
            if inside {
                prop_assert_eq!(buf, &model[*offset..offset + n]);
            }
            if let Some(borrowed) = overlay.borrow(*offset as u64..(offset + n) as u64) {
                prop_assert_eq!(borrowed, &model[*offset..offset + n]);
            }
        }
    }

    #[test]
    fn a_sparse_source_misses_exactly_what_was_not_inserted(
        inserts in proptest::collection::vec((0..100_u64, 0..40_usize), 0..10), read in (0..100_u64, 1..60_u64), block in 1..9_u64) {
        let truth: Vec<u8> = (0..100).collect();
        let sparse = SparseSource::new(100).with_block(block);
        let mut there = [false; 100];
        for (offset, n) in inserts {
            let end = (offset as usize + n).min(100);
            sparse.insert(offset, &truth[offset as usize..end]);
            there[offset as usize..end].fill(true);
        }
        prop_assert_eq!(sparse.held_bytes(), there.iter().filter(|t| **t).count() as u64);
        let (start, end) = (read.0, (read.0 + read.1).min(100));
        let mut buf = vec![0; (end - start) as usize];
        match sparse.read_at(start, &mut buf) {
            Ok(()) => {
                prop_assert!(there[start as usize..end as usize].iter().all(|t| *t));
                prop_assert_eq!(&buf, &truth[start as usize..end as usize]);
            }
            Err(e) => {
                let missing = e.missing_ranges();
                prop_assert!(missing.windows(2).all(|w| w[0].end < w[1].start));
                for m in missing {
                    prop_assert!(m.start % block == 0 && (m.end % block == 0 || m.end == 100));
                }
                for at in start..end {
                    let asked = missing.iter().any(|m| m.contains(&at));
                    prop_assert!(asked || there[at as usize], "{at} is lacking and not asked for");
                    prop_assert!(block > 1 || asked != there[at as usize], "{at} is there and asked for");
                }
                // One round brings all of it.
                sparse.fetch_from(&MemorySource::new(truth.clone()), missing).unwrap();
                sparse.read_at(start, &mut buf).unwrap();
                prop_assert_eq!(&buf, &truth[start as usize..end as usize]);
            }
        }
    }

    #[test]
    fn merged_fetches_cover_every_range_once_and_keep_the_rule(
        wanted in proptest::collection::vec((0..5000_u64, 0..300_u64), 0..40), max_gap in 0..200_u64, max_size in 1..2000_u64) {
        let rule = Coalesce { max_gap, max_size };
        let fetches = coalesce(&wanted, rule).unwrap();
        let mut seen = vec![0; wanted.len()];
        for fetch in &fetches {
            let mut end = fetch.range.start;
            for i in &fetch.wanted {
                let (start, len) = wanted[*i];
                seen[*i] += 1;
                prop_assert!(start >= fetch.range.start && start + len <= fetch.range.end);
                prop_assert!(start <= end + max_gap);
                end = end.max(start + len);
            }
            prop_assert_eq!(end, fetch.range.end);
            let longest = fetch.wanted.iter().map(|i| wanted[*i].1).max().unwrap();
            prop_assert!(fetch.range.end - fetch.range.start <= max_size.max(longest));
        }
        prop_assert!(fetches.windows(2).all(|w| w[0].range.start <= w[1].range.start));
        prop_assert!(seen.iter().zip(&wanted).all(|(n, (_, len))| *n == u32::from(*len > 0)));

        let bytes: Vec<u8> = (0..5300_u32).map(|i| (i * 7 % 251) as u8).collect();
        let source = CountingSource::new(MemorySource::new(bytes.clone()));
        let mut bufs: Vec<_> = wanted.iter().map(|(_, n)| vec![0xee; *n as usize]).collect();
        let mut ranges: Vec<_> = wanted.iter().zip(&mut bufs).map(|((o, _), b)| (*o, &mut b[..])).collect();
        read_coalesced(&source, &mut ranges, rule).unwrap();
        for ((offset, n), buf) in wanted.iter().zip(&bufs) {
            prop_assert_eq!(buf, &bytes[*offset as usize..(offset + n) as usize]);
        }
        prop_assert_eq!(source.ranges(), fetches.into_iter().map(|f| f.range).collect::<Vec<_>>());
    }
}

#[test]
fn near_ranges_are_read_together_and_far_ones_are_not() {
    let source = CountingSource::new(MemorySource::new(vec![5; 100_000]));
    let mut bufs = [[0; 100]; 4];
    let [a, b, c, d] = &mut bufs;
    let rule = Coalesce { max_gap: 1000, max_size: 10_000 };
    read_coalesced(&source, &mut [(50_000, &mut *a), (200, &mut *b), (0, &mut *c), (1200, &mut *d)], rule)
        .unwrap();
    assert_eq!(source.ranges(), [0..1300, 50_000..50_100]);
    assert!(bufs.iter().flatten().all(|b| *b == 5));
}

#[test]
fn impossible_ranges_are_refused_and_missing_ones_all_named() {
    let whole = u64::MAX;
    assert_eq!(coalesce(&[(whole, 2)], Coalesce::default()).unwrap_err().kind(), ErrorKind::Corrupt);
    let sparse = SparseSource::new(1 << 20);
    sparse.insert(5, b"x");
    let (mut a, mut b, mut c) = ([0; 10], [0; 10], [0; 1]);
    let mut wanted = [(500_000, &mut a[..]), (0, &mut b[..]), (5, &mut c[..])];
    let error = read_coalesced(&sparse, &mut wanted, Coalesce::default()).unwrap_err();
    assert_eq!(error.missing_ranges(), [0..5, 6..10, 500_000..500_010]);
}

#[test]
fn fetching_stops_when_the_other_side_brings_nothing_new() {
    let local = SparseSource::new(100);
    let remote = MemorySource::new(vec![1; 100]);
    let mut calls = 0;
    let answer = fetch_until_done(&local, &remote, || {
        calls += 1;
        Err::<(), _>(Error::missing(std::iter::once(0..10).collect()))
    });
    assert_eq!((answer.unwrap_err().kind(), calls), (ErrorKind::Missing, 2));
    let short = MemorySource::new(vec![1; 5]);
    let error = fetch_until_done(&SparseSource::new(100), &short, || {
        Err::<(), _>(Error::missing(std::iter::once(0..10).collect()))
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt);
}
