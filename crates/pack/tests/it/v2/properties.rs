//! Random stacks: what comes out is what went in, whatever shape, type, mask, split and selection.

use super::stacks::{Stack, noise, packed, packed_in};
use proptest::prelude::*;
use tensilo_core::Quiet;
use tensilo_core::array::{Axis, Points, Selection};
use tensilo_pack::Sha256Sum;
use tensilo_pack::read::Values;
use tensilo_pack::v2::counts::CountType;
use tensilo_pack::v2::layout::BlockSize;
use tensilo_pack::v2::read::Pack;
use tensilo_pack::v2::verify::{VerifyOptions, verify};
use tensilo_testkit::{oracle, strategies};

/// How counts are spread.
fn spread(kind: u32, counts: CountType, seed: u64) -> impl FnMut(usize) -> i64 {
    let bits = 8 * counts.bytes() as u32;
    move |i| {
        let x = noise(seed, i as u64);
        match kind {
            0 => 0,
            1 => -1,
            // Sparse, with a rare outlier.
            2 => match x % 40 {
                0 => 1,
                1 => i64::from(counts.is_signed()) * -2 + 2,
                2 if x.is_multiple_of(4000) => (x >> 32) as i64,
                _ => 0,
            },
            3 => (x % 80) as i64,
            _ => (x & ((1 << bits) - 1)) as i64,
        }
    }
}

fn stacks() -> impl Strategy<Value = Stack> {
    let axes = |most: u64, n| prop::collection::vec(1..=most, 1..=n);
    let shapes = (axes(9, 3), prop_oneof![axes(40, 1), axes(12, 2), axes(5, 3), Just(vec![9, 67])]);
    let types = (prop_oneof![Just(1_u32), Just(2), Just(4)], any::<bool>());
    (shapes, types, 0..5_u32, any::<u64>()).prop_map(|((scan, detector), (bytes, signed), kind, seed)| {
        let counts = CountType::new(bytes, signed).unwrap();
        Stack::of(&scan, &detector, counts, spread(kind, counts, seed))
    })
}

/// What one axis of a selection wants.
fn axis(side: u64, seed: u64) -> Axis {
    let (a, b) = (noise(seed, 1) % side, noise(seed, 2) % side);
    match seed % 4 {
        0 => Axis::all(side),
        1 => Axis::Regular { start: a.min(b), stride: 1, count: a.max(b) - a.min(b) + 1, block: 1 },
        2 => Axis::List(vec![a, b, a]),
        _ => Axis::Regular { start: a.max(b), stride: -1, count: a.max(b) - a.min(b) + 1, block: 1 },
    }
}

/// The selected values of a row-major array, one by one.
fn slowly(values: &[i64], shape: &[u64], axes: &[Axis]) -> Vec<i64> {
    let mut at = vec![0_u64];
    for (axis, side) in axes.iter().zip(shape) {
        let here: Vec<u64> = axis.positions().collect();
        at = at.iter().flat_map(|a| here.iter().map(move |h| a * side + h)).collect();
    }
    at.iter().map(|i| values[*i as usize]).collect()
}

fn numbers(counts: CountType, bytes: &[u8]) -> Vec<i64> {
    Stack { scan: vec![], detector: vec![], counts, bytes: bytes.to_vec() }.values()
}

fn select(pack: &Pack, selection: &Selection, values: Values) -> Vec<i64> {
    let n = selection.elements(&pack.shape()).unwrap() as usize;
    let mut out = vec![0; n * pack.layout().counts().bytes()];
    pack.read_bytes_into(selection, values, &mut out, &Quiet).unwrap();
    numbers(pack.layout().counts(), &out)
}

fn comes_back(stack: &Stack, seed: u64) {
    let dir = oracle::temp_dir();
    let source = stack.npy(dir.path());
    let (one, two) = (dir.path().join("one.h5"), dir.path().join("two.h5"));
    let made = packed(&source, stack.detector.len(), &one, 1).unwrap();
    assert_eq!(made.receipt.source_raw_logical_sha256, Sha256Sum::of(&stack.bytes));
    packed(&source, stack.detector.len(), &two, 3).unwrap();
    assert!(std::fs::read(&one).unwrap() == std::fs::read(&two).unwrap(), "threads change the bytes");
    let v = verify(&one, &VerifyOptions { deep: true, ..VerifyOptions::default() }, &Quiet).unwrap();
    assert_eq!(v.findings, []);
    let small = dir.path().join("small.h5");
    let block = BlockSize { rows: 2, columns: 3, scans: 4 };
    packed_in(&source, stack.detector.len(), &small, block, 8).unwrap();
    for path in [one, small] {
        reads_back(stack, &Pack::open(path).unwrap(), seed);
    }
}

fn reads_back(stack: &Stack, pack: &Pack, seed: u64) {
    let v = pack.export(Values::Raw, &Quiet, &mut |_| Ok(())).unwrap();
    assert!(v.proven);
    assert_eq!(pack.shape(), stack.shape());
    let (values, shape) = (stack.values(), stack.shape());
    assert_eq!(select(pack, &Selection::All, Values::Raw), values);
    for round in 0..4 {
        let axes: Vec<Axis> =
            shape.iter().enumerate().map(|(i, side)| axis(*side, noise(seed ^ round, i as u64))).collect();
        let expected = slowly(&values, &shape, &axes);
        assert_eq!(select(pack, &Selection::Axes(axes), Values::Raw), expected);
    }
    let coords: Vec<u64> = (0..5)
        .flat_map(|i| shape.iter().enumerate().map(move |(k, side)| noise(seed, i * 31 + k as u64) % side))
        .collect();
    let expected: Vec<i64> = coords
        .chunks_exact(shape.len())
        .map(|at| values[at.iter().zip(&shape).fold(0, |n, (a, side)| n * side + a) as usize])
        .collect();
    let points = Points::new(shape.len(), coords).unwrap();
    assert_eq!(select(pack, &points.into(), Values::Raw), expected);
}

proptest! {
    #![proptest_config(strategies::fixed(40))]

    #[test]
    fn any_stack_comes_back_through_any_selection(stack in stacks(), seed in any::<u64>()) {
        comes_back(&stack, seed);
    }

    #[test]
    fn masked_pixels_of_any_family_are_cleared_or_restored_exactly(
        frames in prop::collection::vec(1..5_u64, 1..4),
        detector in prop::collection::vec(2..11_u64, 2),
        (chunk, kind, seed) in (1..3_u64, 0..5_u32, any::<u64>()),
        (bytes, signed) in (prop_oneof![Just(1_u32), Just(2), Just(4)], any::<bool>()),
        // All pixels, or one of five.
        often in prop_oneof![1 => Just(1_u64), 4 => Just(5)],
    ) {
        let counts = CountType::new(bytes, signed).unwrap();
        let total: u64 = frames.iter().sum();
        let pixels = detector.iter().product::<u64>() as usize;
        let mask: Vec<u32> = (0..pixels)
            .map(|p| match p {
                _ if !noise(seed, p as u64).is_multiple_of(often) => 0,
                0 if often > 1 => 0,
                p => 1 + p as u32,
            })
            .collect();
        let mut value = spread(kind, counts, seed);
        // Some excluded pixels are constant, some are not.
        let stack = Stack::of(&[total], &detector, counts, |i| match mask[i % pixels] {
            code if code % 2 == 1 => 77,
            _ => value(i),
        });
        let dir = oracle::temp_dir();
        let source = stack.family(dir.path(), &frames, chunk, Some(&mask));
        let out = dir.path().join("out.h5");
        let made = packed(&source, 2, &out, 2).unwrap();
        prop_assert_eq!(made.receipt.source_raw_logical_sha256, Sha256Sum::of(&stack.bytes));
        let options = VerifyOptions { deep: true, source: Some(source), ..VerifyOptions::default() };
        prop_assert_eq!(verify(&out, &options, &Quiet).unwrap().findings, []);
        let pack = Pack::open(&out).unwrap();
        prop_assert_eq!(pack.mask_codes().unwrap(), Some(mask.clone()));
        let values = stack.values();
        prop_assert_eq!(select(&pack, &Selection::All, Values::Raw), values.clone());
        let cleared: Vec<i64> =
            values.iter().enumerate().map(|(i, v)| if mask[i % pixels] == 0 { *v } else { 0 }).collect();
        prop_assert_eq!(select(&pack, &Selection::All, Values::Masked), cleared.clone());
        let shape = stack.shape();
        for (kind, all) in [(Values::Raw, &values), (Values::Masked, &cleared)] {
            let axes: Vec<Axis> =
                shape.iter().enumerate().map(|(i, side)| axis(*side, noise(seed, i as u64))).collect();
            let expected = slowly(all, &shape, &axes);
            prop_assert_eq!(select(&pack, &Selection::Axes(axes), kind), expected);
        }
    }
}

#[test]
fn stacks_of_several_tiles_and_shards_come_back() {
    for (scan, detector, bytes, signed) in [
        (&[23_u64, 31][..], &[20_u64, 45][..], 2, false),
        (&[600], &[7], 4, true),
        (&[5, 130], &[3, 5, 40], 1, false),
    ] {
        let counts = CountType::new(bytes, signed).unwrap();
        let stack = Stack::of(scan, detector, counts, spread(2, counts, 11));
        comes_back(&stack, 5);
    }
}
