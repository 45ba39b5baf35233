//! The cases that loaderx's own tests of its store cover, each once more here.

use super::*;
use tensilo_core::ErrorKind;
use tensilo_records::v1::code_of;
use tensilo_testkit::oracle;

#[test]
fn fixed_records_survive_reopening_and_are_gathered_in_any_order() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let bytes: Vec<u8> = (0..100).flat_map(|i| record(i, 784)).collect();
    let items = Items::Fixed { bytes: &bytes, stride: 784, len: 784, count: 100 };
    for codec in [Codec::Raw, Codec::Flate] {
        let store = Zrecord::open_or_create(&folder, options()).unwrap();
        let first = store.append(items, Some(codec)).unwrap();
        drop(store);
        let store = Zrecord::open(&folder, options()).unwrap();
        let ids: Vec<u64> = (0..100).map(|i| first + i * 37 % 100).collect();
        let mut got = vec![0; bytes.len()];
        store.gather(&ids, &mut got, Places::Stride(784), Threads::new(2), &Quiet).unwrap();
        for (i, id) in ids.iter().enumerate() {
            let at = (id - first) as usize * 784;
            assert_eq!(got[i * 784..][..784], bytes[at..][..784]);
        }
    }
}

#[test]
fn noise_falls_back_to_raw_and_short_records_are_never_compressed() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), options()).unwrap();
    let records =
        [record(1, 1000), record(2, 1000), vec![0; 16], vec![0; 17], vec![7; 1], vec![0; 4], vec![0; 12]];
    append(&store, &records, Some(Codec::Flate)).unwrap();
    assert_eq!(all(&store).unwrap(), records);
    let snapshot = store.snapshot().unwrap();
    let stored: Vec<_> = (0..7).map(|id| snapshot.stored(id).unwrap()).collect();
    let codecs: Vec<_> = stored.iter().map(|(_, codec)| *codec).collect();
    use Codec::{Flate, Raw};
    assert_eq!(codecs, [Raw, Flate, Raw, Flate, Raw, Raw, Raw]);
    assert!(stored.iter().zip(&records).all(|((n, c), r)| (*c == Raw) == (*n as usize == r.len())));
}

#[test]
fn ragged_records_read_back_and_can_be_deleted() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), options()).unwrap();
    let records: Vec<_> = (0..50).map(|i| record(i, 1 + (i as usize * 97) % 1000)).collect();
    append(&store, &records, None).unwrap();
    assert_eq!(all(&store).unwrap(), records);
    let gone = [49, 3, 3, 17, 0];
    store.delete(&gone).unwrap();
    assert_eq!(all(&store).unwrap(), without(records, &gone));
}

#[test]
fn appends_of_several_sessions_do_not_overlap() {
    let temp = oracle::temp_dir();
    let mut records = Vec::new();
    for session in 0..4 {
        let store = Zrecord::open_or_create(temp.path().join("s"), options()).unwrap();
        let more: Vec<_> = (0..5).map(|i| record(session * 5 + i, 300)).collect();
        assert_eq!(append(&store, &more, None).unwrap(), records.len() as u64);
        records.extend(more);
        assert_eq!(all(&store).unwrap(), records);
    }
}

#[test]
fn records_roll_over_to_further_chunks_without_overlap() {
    let temp = oracle::temp_dir();
    for codec in [Codec::Raw, Codec::Flate] {
        let folder = temp.path().join(format!("{codec:?}"));
        let store = Zrecord::create(&folder, small()).unwrap();
        let mut records = Vec::new();
        for call in 0..6_u64 {
            let more: Vec<_> =
                (0..20).map(|i| record(call * 20 + i, 100 + (call * 20 + i) as usize * 7)).collect();
            append(&store, &more, Some(codec)).unwrap();
            records.extend(more);
        }
        let fixed: Vec<u8> = (0..40).flat_map(|i| record(i, 900)).collect();
        store.append(Items::Fixed { bytes: &fixed, stride: 900, len: 900, count: 40 }, Some(codec)).unwrap();
        records.extend(fixed.chunks(900).map(<[u8]>::to_vec));
        assert_eq!(all(&store).unwrap(), records);
        assert!(store.stats().unwrap().chunk_bytes > 40_000);
        drop(store);
        assert_eq!(all(&Zrecord::open(&folder, small()).unwrap()).unwrap(), records);
    }
}

#[test]
fn delete_keeps_ids_dense_and_the_old_last_one_is_out_of_range() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), options()).unwrap();
    let records: Vec<_> = (0..20).map(|i| record(i, 40)).collect();
    append(&store, &records, None).unwrap();
    store.delete(&[19, 5, 5, 11]).unwrap();
    assert_eq!(store.len(), 17);
    assert_eq!(all(&store).unwrap(), without(records.clone(), &[19, 5, 11]));
    assert_eq!(code_of(&get(&store, &[17]).unwrap_err()), -3);
    assert_eq!(code_of(&store.delete(&[0, 17]).unwrap_err()), -3);
    assert_eq!(store.len(), 17, "an id that does not exist changes nothing");
    assert_eq!(append(&store, &[record(99, 40)], None).unwrap(), 17, "appends go on at the new length");
    assert_eq!(get(&store, &[17]).unwrap(), [record(99, 40)]);
}

#[test]
fn a_store_that_lost_all_records_compacts_to_nothing_and_takes_new_ones() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), small()).unwrap();
    append(&store, &(0..50).map(|i| record(i, 900)).collect::<Vec<_>>(), Some(Codec::Raw)).unwrap();
    store.delete(&(0..50).collect::<Vec<_>>()).unwrap();
    store.compact(&Quiet).unwrap();
    assert_eq!(store.stats().unwrap().chunk_bytes, 0);
    append(&store, &[record(7, 9)], None).unwrap();
    assert_eq!(all(&store).unwrap(), [record(7, 9)]);
}

#[test]
fn compaction_over_chunks_keeps_contents_is_idempotent_and_survives_reopening() {
    let temp = oracle::temp_dir();
    let folder = temp.path().join("s");
    let store = Zrecord::create(&folder, small()).unwrap();
    let records: Vec<_> = (0..120).map(|i| record(i, 200 + i as usize * 5)).collect();
    append(&store, &records, Some(Codec::Raw)).unwrap();
    let gone: Vec<u64> = (0..120).filter(|i| i % 3 == 0).collect();
    store.delete(&gone).unwrap();
    let kept = without(records, &gone);
    let before = store.stats().unwrap();
    store.compact(&Quiet).unwrap();
    let after = store.stats().unwrap();
    assert_eq!(all(&store).unwrap(), kept);
    assert_eq!(before.live_bytes, after.live_bytes);
    let chunks = after.chunk_bytes / SMALL.chunk_bytes;
    assert!(after.reclaimable() <= chunks * 800, "{after:?}");
    assert!(after.chunk_bytes < before.chunk_bytes);
    store.compact(&Quiet).unwrap();
    assert_eq!(store.stats().unwrap(), after);
    append(&store, &[record(500, 333)], None).unwrap();
    drop(store);
    let store = Zrecord::open(&folder, small()).unwrap();
    assert_eq!(all(&store).unwrap(), [&kept[..], &[record(500, 333)]].concat());
}

#[test]
fn compression_shrinks_what_the_store_takes() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), options()).unwrap();
    append(&store, &(0..50).map(|i| record(i * 2, 2000)).collect::<Vec<_>>(), None).unwrap();
    assert!(store.stats().unwrap().live_bytes < 50 * 2000 / 2);
}

#[test]
fn records_of_impossible_lengths_and_too_many_are_refused_before_anything_is_written() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), small()).unwrap();
    let long = vec![0; (1 << 20) + 1];
    let fixed = |bytes, len, count| store.append(Items::Fixed { bytes, stride: len, len, count }, None);
    assert_eq!(code_of(&fixed(&long, long.len(), 1).unwrap_err()), -4);
    assert_eq!(code_of(&fixed(&[], 0, 1).unwrap_err()), -4);
    assert_eq!(code_of(&fixed(&long, 100, 20_000).unwrap_err()), -6);
    let e = fixed(&long, 10, 1001).unwrap_err();
    assert_eq!((code_of(&e), e.kind()), (-5, ErrorKind::Limit));
    assert_eq!((store.len(), store.stats().unwrap().chunk_bytes), (0, 0));
    assert_eq!(fixed(&long, 10, 1000).unwrap(), 0);
    assert_eq!(code_of(&fixed(&long, 10, 1).unwrap_err()), -5);
    assert_eq!(fixed(&[], 10, 0).unwrap(), 1000, "nothing fits always");
}

#[test]
fn lists_of_lengths_that_do_not_agree_are_refused() {
    let temp = oracle::temp_dir();
    let store = Zrecord::create(temp.path().join("s"), options()).unwrap();
    append(&store, &[record(0, 30), record(1, 30)], None).unwrap();
    let e = store.append(Items::Ragged { bytes: &[0; 9], starts: &[0], lens: &[1, 2] }, None).unwrap_err();
    assert_eq!(code_of(&e), -6);
    let gather = |places, room: usize| {
        let e = store.gather(&[0, 1], &mut vec![0; room], places, Threads::ONE, &Quiet).unwrap_err();
        assert_eq!((code_of(&e), e.kind()), (-6, ErrorKind::InvalidArgument), "{places:?}");
    };
    gather(Places::Stride(30), 59);
    gather(Places::Stride(29), 100);
    gather(Places::Stride(u64::MAX), 100);
    gather(Places::Starts(&[0]), 100);
    gather(Places::Starts(&[29, 0]), 100);
    gather(Places::Starts(&[0, 71]), 100);
    assert_eq!(store.lengths(&[0], &mut [0; 2]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}
