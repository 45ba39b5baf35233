//! Format 2: all types, growth, chunks inside slabs, and that no damage passes unseen.

use std::sync::Arc;
use tensilo_core::ErrorKind;
use tensilo_core::Quiet;
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_lanes::{
    LaneElement, LaneSpec, LaneType, OpenOptions, Store, StoreSchema, StoreWriter, TemporaryStore,
    WriterOptions,
};
use tensilo_testkit::TempDir;

fn round_trip<T: LaneElement + PartialEq + std::fmt::Debug>(dtype: LaneType, values: &[T]) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.pts");
    let schema = StoreSchema::new(2, vec![LaneSpec::slab("s", dtype, 3), LaneSpec::flat("f", dtype, 6)]);
    let w = StoreWriter::create_with(&path, schema, WriterOptions::default()).unwrap();
    w.write_slab("s", 0, &values[..3]).unwrap();
    w.write_slab("s", 1, &values[3..]).unwrap();
    w.write_flat("f", values).unwrap();
    w.finish().unwrap();
    let store = Store::open_with(&path, OpenOptions { verify: true, ..OpenOptions::default() }).unwrap();
    assert_eq!(store.typed::<T>("s").unwrap().all().unwrap(), values);
    assert_eq!(store.typed::<T>("f").unwrap().flat().unwrap(), values);
}

#[test]
fn all_twelve_types_round_trip() {
    use half::f16;
    round_trip(LaneType::F16, &[0.5, -1.0, 65504.0, 0.0, 2.0, 1e-7].map(f16::from_f32));
    round_trip(LaneType::F32, &[0.5_f32, -1.0, f32::INFINITY, -0.0, f32::MIN_POSITIVE, 3.0]);
    round_trip(LaneType::F64, &[0.5_f64, -1.0, f64::INFINITY, -0.0, f64::MIN_POSITIVE, 3.0]);
    round_trip(LaneType::I8, &[0_i8, -1, 127, -128, 5, 6]);
    round_trip(LaneType::I16, &[0_i16, -1, i16::MAX, i16::MIN, 5, 6]);
    round_trip(LaneType::I32, &[0_i32, -1, i32::MAX, i32::MIN, 5, 6]);
    round_trip(LaneType::I64, &[0_i64, -1, i64::MAX, i64::MIN, 5, 6]);
    round_trip(LaneType::U8, &[0_u8, 1, 255, 3, 5, 6]);
    round_trip(LaneType::U16, &[0_u16, 1, u16::MAX, 3, 5, 6]);
    round_trip(LaneType::U32, &[0_u32, 1, u32::MAX, 3, 5, 6]);
    round_trip(LaneType::U64, &[0_u64, 1, u64::MAX, 3, 5, 6]);
    round_trip(LaneType::Bool, &[0_u8, 1, 1, 0, 0, 1]);
}

/// A small store with everything in it, as bytes.
fn sample() -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.pts");
    let lanes = vec![
        LaneSpec::slab("a", LaneType::U16, 6)
            .with_shape(&[2, 3])
            .with_chunk(&[2, 2])
            .with_slabs(2)
            .with_reserve(1),
        LaneSpec::slab("b", LaneType::F64, 3),
        LaneSpec::flat("c", LaneType::I8, 5),
    ];
    let schema = StoreSchema::new(3, lanes).with_app(serde_json::json!({"x": [1, 2.5, "é"]}));
    let w = StoreWriter::create_with(&path, schema, WriterOptions::default()).unwrap();
    for k in 0..2 {
        w.write_slab("a", k, &[1_u16, 2, 3, 4, 5, 6]).unwrap();
    }
    w.write_slab("b", 1, &[1.0, 2.0, 3.0]).unwrap();
    w.write_flat("c", &[1_i8, -2, 3, -4, 5]).unwrap();
    w.finish().unwrap();
    let mut w = StoreWriter::append(&path, WriterOptions::default()).unwrap();
    w.append_slabs("a", 3).unwrap();
    for k in 2..5 {
        w.write_slab("a", k, &[k as u16; 6]).unwrap();
    }
    w.finish().unwrap();
    std::fs::read(path).unwrap()
}

fn open(bytes: &[u8]) -> tensilo_core::Result<Store> {
    Store::from_source(
        Arc::new(MemorySource::new(bytes)),
        OpenOptions { verify: true, ..OpenOptions::default() },
    )
}

/// Everything a reader sees.
fn content(store: &Store) -> String {
    let mut text = format!("{} {}", store.nslabs(), store.app());
    for spec in store.lanes() {
        text += &format!("{spec:?}");
        for k in 0..store.slab_count(&spec.name).unwrap() {
            text += &format!(
                "{:?}{}",
                store.raw_bytes(&spec.name, k..k + 1).unwrap(),
                store.is_written(&spec.name, k).unwrap()
            );
        }
    }
    text
}

#[test]
fn every_flipped_bit_is_detected_or_changes_nothing_a_reader_sees() {
    let bytes = sample();
    let expected = content(&open(&bytes).unwrap());
    let (mut refused, mut harmless) = (0, 0);
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match open(&flipped) {
            Err(e) => {
                assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "bit {bit}: {e:?}");
                refused += 1;
            }
            // An older commit record, padding, room that no slab uses.
            Ok(store) => match content(&store) {
                c if c == expected => harmless += 1,
                // The newer record is gone: the commit before it is shown, whole.
                _ => assert!((8 * 512..8 * 576).contains(&bit), "bit {bit} changed what is read"),
            },
        }
    }
    assert!(refused > 1000, "{refused} refused, {harmless} harmless");
}

#[test]
fn every_truncation_is_detected() {
    let bytes = sample();
    for n in 0..bytes.len() {
        assert!(open(&bytes[..n]).is_err(), "cut to {n} bytes");
    }
}

#[test]
fn random_damage_gives_typed_errors() {
    let bytes = sample();
    let mut seed = 1_u64;
    let mut next = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    };
    for _ in 0..20_000 {
        let mut b = bytes.clone();
        for _ in 0..=next(4) {
            let at = next(b.len());
            b[at] = next(256) as u8;
        }
        // Repair the checksums, so that damage reaches the header's own checks.
        for slot in [0, 512] {
            if let Some(record) = b.get(slot..slot + 64).map(<[u8]>::to_vec) {
                let at = u64::from_le_bytes(record[16..24].try_into().unwrap()) as usize;
                let n = u64::from_le_bytes(record[24..32].try_into().unwrap()) as usize;
                if let Some(header) = at.checked_add(n).and_then(|end| b.get(at..end)) {
                    let crc = crc32c::crc32c(header);
                    b[slot + 32..slot + 36].copy_from_slice(&crc.to_le_bytes());
                }
                let crc = crc32c::crc32c(&b[slot..slot + 60]);
                b[slot + 60..slot + 64].copy_from_slice(&crc.to_le_bytes());
            }
        }
        if let Err(e) = open(&b) {
            assert!(
                matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Limit),
                "{e:?}"
            );
        }
    }
}

#[test]
fn appended_slabs_stay_contiguous_inside_the_reserve_and_are_copied_beyond_it() {
    let store = open(&sample()).unwrap();
    let lane = store.typed::<u16>("a").unwrap();
    assert_eq!(lane.slabs(), 5);
    assert_eq!(lane.window(0, 3).unwrap().len(), 3 * 8, "two slabs and the reserved one, in whole chunks");
    assert_eq!(lane.window(2, 4).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut copy = vec![0; 5 * 6];
    lane.read_window(0, 5, &mut copy).unwrap();
    assert_eq!(copy[..6], [1, 2, 3, 4, 5, 6]);
    assert_eq!(copy[12..], [[2; 6], [3; 6], [4; 6]].concat());
    let mut region = vec![0; 2];
    lane.read_region(0, &[0..2, 2..3], &mut region).unwrap();
    assert_eq!(region, [3, 6]);
    assert!(!store.is_written("b", 0).unwrap() && store.is_written("b", 1).unwrap());
}

#[test]
fn a_damaged_slab_is_refused_on_first_touch_and_the_raw_view_says_nothing() {
    let mut bytes = sample();
    let at = bytes.windows(24).position(|w| w == bytemuck::cast_slice::<f64, u8>(&[1.0, 2.0, 3.0])).unwrap();
    bytes[at] ^= 1;
    let store = Store::from_source(Arc::new(MemorySource::new(bytes)), OpenOptions::default()).unwrap();
    let lane = store.typed::<f64>("b").unwrap();
    let e = lane.slab(1).unwrap_err();
    assert_eq!((e.kind(), e.offset(), e.object()), (ErrorKind::Corrupt, Some(at as u64), Some("b")));
    assert!(lane.slab(0).is_ok());
    assert_eq!(lane.raw_window(1, 2).unwrap()[1..], [2.0, 3.0]);
    assert_eq!(store.verify().unwrap().len(), 1);
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    assert_eq!(sample(), sample());
}

#[test]
fn reductions_do_not_depend_on_the_number_of_threads() {
    let folder = TempDir::new().unwrap();
    let schema = StoreSchema::new(17, vec![LaneSpec::slab("v", LaneType::F32, 1001)]);
    let store = TemporaryStore::create(folder.path(), schema, WriterOptions::default(), |w| {
        for k in 0..17 {
            let values: Vec<f32> = (0..1001).map(|i| ((k * 1001 + i) % 977) as f32 * 0.37 - 100.0).collect();
            w.write_slab("v", k, &values)?;
        }
        Ok(())
    })
    .unwrap();
    let lane = store.typed::<f32>("v").unwrap();
    let values = lane.all().unwrap();
    let one = lane.summary(Threads::ONE, &Quiet).unwrap();
    assert_eq!(one, lane.summary(Threads::new(3), &Quiet).unwrap());
    let sum: f64 = values.iter().map(|v| f64::from(*v)).sum();
    assert!((one.sum - sum).abs() < 1e-6 * sum.abs());
    assert_eq!(one.count, 17017);
    assert_eq!(one.min, f64::from(values.iter().copied().fold(f32::MAX, f32::min)));
    let h = lane.histogram(-100.0, 100.0, 40, Threads::new(2), &Quiet).unwrap();
    let inside = values.iter().filter(|v| (-100.0..=100.0).contains(*v)).count() as u64;
    assert_eq!(h.counts.iter().sum::<u64>(), inside);
    assert_eq!(h.outside, 17017 - inside);
    let path = store.path().to_path_buf();
    drop((lane, store));
    assert!(!path.exists(), "a temporary store goes with its owner");
}

#[test]
fn many_threads_read_one_mapping() {
    let folder = TempDir::new().unwrap();
    let schema = StoreSchema::new(8, vec![LaneSpec::slab("v", LaneType::U32, 4096)]);
    let store = TemporaryStore::create(folder.path(), schema, WriterOptions::default(), |w| {
        (0..8).try_for_each(|k| w.write_slab("v", k, &[k as u32; 4096]))
    })
    .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let lane = store.typed::<u32>("v").unwrap();
            scope.spawn(move || {
                for k in 0..8 {
                    assert_eq!(lane.slab(k).unwrap(), [k as u32; 4096]);
                }
            });
        }
    });
}

#[test]
fn slabs_are_gathered_as_records() {
    use tensilo_core::dtype::DType;
    use tensilo_core::gather::{FieldSchema, Schema};
    use tensilo_testkit::{MemoryRecords, conformance};
    let folder = TempDir::new().unwrap();
    for options in [
        WriterOptions::default(),
        WriterOptions { version: tensilo_lanes::FormatVersion::V1, ..WriterOptions::default() },
    ] {
        let v2 = options.version == tensilo_lanes::FormatVersion::V2;
        let a = LaneSpec::slab("a", LaneType::U16, 6);
        let a = if v2 { a.with_shape(&[2, 3]).with_chunk(&[2, 2]) } else { a };
        let lanes = vec![a, LaneSpec::flat("f", LaneType::F64, 2), LaneSpec::slab("b", LaneType::F32, 1)];
        let path = folder.path().join(format!("{v2}.pts"));
        let w = StoreWriter::create_with(&path, StoreSchema::new(5, lanes), options).unwrap();
        let mut records = Vec::new();
        for k in 0..5_u16 {
            let values: Vec<u16> = (0..6).map(|i| 10 * k + i).collect();
            w.write_slab("a", u64::from(k), &values).unwrap();
            w.write_slab("b", u64::from(k), &[f32::from(k)]).unwrap();
            records.push(vec![bytemuck::cast_slice(&values).to_vec(), f32::from(k).to_le_bytes().to_vec()]);
        }
        w.finish().unwrap();
        let shape: &[u64] = if v2 { &[2, 3] } else { &[6] };
        let fields =
            vec![FieldSchema::fixed("a", DType::U16, shape), FieldSchema::fixed("b", DType::F32, [1])];
        let expected = MemoryRecords::new(Schema::new(fields).unwrap(), records);
        conformance::gather(&Store::open(&path).unwrap().records().unwrap(), &expected);
    }
}
