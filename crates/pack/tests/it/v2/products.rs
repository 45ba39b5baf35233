//! Products of format 2 against sums made one by one, and against format 1's of the same source.

use super::stacks::{Stack, inspected, noise, packed, packed_in};
use crate::fixtures::{expected, packs};
use proptest::prelude::*;
use tensilo_core::{ErrorKind, Quiet};
use tensilo_pack::products::{Choice, Counts, ImageValues, Moments};
use tensilo_pack::read::Pack as Pack1;
use tensilo_pack::v2::counts::CountType;
use tensilo_pack::v2::layout::BlockSize;
use tensilo_pack::v2::products::Request;
use tensilo_pack::v2::read::Pack;
use tensilo_testkit::{oracle, strategies};

/// A mask of about `share` of eight pixels.
fn mask(pixels: usize, seed: u64, share: u64) -> Vec<u8> {
    (0..pixels).map(|p| if noise(seed, p as u64) % 8 < share { 1 + (p % 3) as u8 } else { 0 }).collect()
}

fn masked(values: &[i64], mask: &[u8]) -> Vec<u64> {
    let frames = values.chunks_exact(mask.len());
    frames.map(|f| f.iter().zip(mask).filter(|(_, m)| **m != 0).map(|(v, _)| *v as u64).sum()).collect()
}

proptest! {
    #![proptest_config(strategies::fixed(30))]

    #[test]
    fn products_are_the_sums_made_one_by_one(
        scan in prop::collection::vec(1..7_u64, 1..3),
        detector in prop::collection::vec(1..20_u64, 1..3),
        (bytes, seed) in (prop_oneof![Just(1_u32), Just(2), Just(4)], any::<u64>()),
    ) {
        let counts = CountType::new(bytes, false).unwrap();
        let stack = Stack::of(&scan, &detector, counts, |i| (noise(seed, i as u64) >> 40) as i64);
        let dir = oracle::temp_dir();
        let out = dir.path().join("out.h5");
        let block = BlockSize { rows: 3, columns: 4, scans: 4 };
        packed_in(&stack.npy(dir.path()), detector.len(), &out, block, 8).unwrap();
        let pack = Pack::open(&out).unwrap();
        let (values, pixels) = (stack.values(), pack.layout().pixels() as usize);
        let masks: Vec<Vec<u8>> = [0, 2, 8].map(|share| mask(pixels, seed, share)).to_vec();
        let request =
            Request { diffraction_sum: true, diffraction_max: true, moments: true, masks: masks.clone() };
        let p = pack.products(&request, &Quiet).unwrap();
        let column = |pixel: usize| values.iter().skip(pixel).step_by(pixels).map(|v| *v as u64);
        let sums: Vec<u64> = (0..pixels).map(|p| column(p).sum()).collect();
        prop_assert_eq!(p.diffraction_sum.as_ref(), Some(&sums));
        prop_assert_eq!(p.diffraction_max.unwrap(), (0..pixels).map(|p| column(p).max().unwrap()).collect::<Vec<_>>());
        let columns = pack.layout().columns() as usize;
        let weighted = |weight: &dyn Fn(usize) -> usize| -> Vec<u64> {
            let frames = values.chunks_exact(pixels);
            frames.map(|f| f.iter().enumerate().map(|(p, v)| *v as u64 * weight(p) as u64).sum()).collect()
        };
        let m = p.moments.unwrap();
        prop_assert_eq!(m.total, weighted(&|_| 1));
        prop_assert_eq!(m.row, weighted(&|p| p / columns));
        prop_assert_eq!(m.column, weighted(&|p| p % columns));
        for (mask, sums) in masks.iter().zip(p.masks) {
            prop_assert_eq!(sums, masked(&values, mask));
        }
        // Alone, sums come from the codec without decoding.
        let alone = Request { diffraction_sum: true, ..Request::default() };
        prop_assert_eq!(pack.products(&alone, &Quiet).unwrap().diffraction_sum, Some(sums));
        // A detector that moves is always where it would be had it been there from the start.
        let mut detector = pack.virtual_detector(&masks[1], &Quiet).unwrap();
        for step in 0..6 {
            let mut to = detector.mask().to_vec();
            for k in 0..1 + step * step {
                let at = noise(seed, 1000 + step + k) as usize % pixels;
                to[at] = u8::from(to[at] == 0);
            }
            detector.move_to(&to, &Quiet).unwrap();
            prop_assert_eq!(detector.image(), &masked(&values, &to)[..]);
        }
        let planes = pack.planes(&Quiet).unwrap();
        for mask in &masks {
            prop_assert_eq!(planes.virtual_image(mask, &Quiet).unwrap(), masked(&values, mask));
        }
        prop_assert!(planes.virtual_image(&masks[0][1..], &Quiet).is_err());
        let resident = pack.resident(&Quiet).unwrap();
        prop_assert_eq!(resident.virtual_image(&masks[1], &Quiet).unwrap(), masked(&values, &masks[1]));
    }
}

proptest! {
    #![proptest_config(strategies::fixed(20))]

    #[test]
    fn products_of_signed_counts_are_the_sums_made_one_by_one(
        scan in prop::collection::vec(1..7_u64, 1..3),
        detector in prop::collection::vec(1..20_u64, 1..3),
        (bytes, seed, shift) in (prop_oneof![Just(1_u32), Just(2), Just(4)], any::<u64>(), 32..63),
    ) {
        let counts = CountType::new(bytes, true).unwrap();
        let stack = Stack::of(&scan, &detector, counts, |i| (noise(seed, i as u64) >> shift) as i64 - (1_i64 << (62 - shift)));
        let dir = oracle::temp_dir();
        let out = dir.path().join("out.h5");
        let block = BlockSize { rows: 3, columns: 4, scans: 4 };
        packed_in(&stack.npy(dir.path()), detector.len(), &out, block, 8).unwrap();
        let pack = Pack::open(&out).unwrap();
        let (values, pixels) = (stack.values(), pack.layout().pixels() as usize);
        let columns = pack.layout().columns() as usize;
        let frames = || values.chunks_exact(pixels);
        let weighted = |weight: &dyn Fn(usize) -> usize| -> Vec<i64> {
            frames().map(|f| f.iter().enumerate().map(|(p, v)| v * weight(p) as i64).sum()).collect()
        };
        let masks: Vec<Vec<u8>> = [0, 2, 8].map(|share| mask(pixels, seed, share)).to_vec();
        let of_mask = |m: &[u8]| weighted(&|p| usize::from(m[p] != 0));
        let request =
            Request { diffraction_sum: true, diffraction_max: true, moments: true, masks: masks.clone() };
        let p = pack.signed_products(&request, &Quiet).unwrap();
        let column = |pixel: usize| values.iter().skip(pixel).step_by(pixels);
        prop_assert_eq!(p.diffraction_sum.unwrap(), (0..pixels).map(|p| column(p).sum()).collect::<Vec<i64>>());
        prop_assert_eq!(p.diffraction_max.unwrap(), (0..pixels).map(|p| *column(p).max().unwrap()).collect::<Vec<_>>());
        let moments = Moments {
            total: weighted(&|_| 1), row: weighted(&|p| p / columns), column: weighted(&|p| p % columns),
        };
        prop_assert_eq!(p.moments.unwrap(), moments);
        let planes = pack.planes(&Quiet).unwrap();
        let mut detector = pack.signed_virtual_detector(&masks[1], &Quiet).unwrap();
        for (mask, sums) in masks.iter().zip(p.masks) {
            prop_assert_eq!(&sums, &of_mask(mask));
            prop_assert_eq!(&planes.signed_virtual_image(mask, &Quiet).unwrap(), &sums);
            prop_assert_eq!(&pack.signed_virtual_image(mask, &Quiet).unwrap(), &sums);
            detector.move_to(mask, &Quiet).unwrap();
            prop_assert_eq!(detector.image(), &sums[..]);
        }
    }
}

#[test]
fn images_by_name_are_those_of_format_1() {
    let Some(folder) = packs(1) else { return };
    for (name, source) in [("mini", "native_lossless_pack_v1_source.h5"), ("family", "scan_master.h5")] {
        assert!(expected(name).is_object());
        let dir = oracle::temp_dir();
        let out = dir.path().join("out.h5");
        packed(&folder.join(name).join(source), 2, &out, 2).unwrap();
        let choice =
            Choice { rings: [Some((0.0, 12.0)), Some((6.0, 12.0)), Some((15.0, 40.0))], ..Choice::default() };
        let mut old =
            Pack1::open(folder.join(name).join("cache.h5")).unwrap().images(&choice, &Quiet).unwrap();
        let mut new = Pack::open(&out).unwrap().images(&choice, &Quiet).unwrap();
        assert_eq!((old.center, old.counts.map(Counts::wide)), (new.center, new.counts), "{name}");
        old.images.sort_by_key(|i| i.name);
        new.images.sort_by_key(|i| i.name);
        assert_eq!(old.images.len(), 14);
        assert_eq!(new.images.len(), 14);
        for (old, new) in old.images.iter().zip(&new.images) {
            assert_eq!(
                (old.name, old.shape.map(u64::from).to_vec()),
                (new.name, new.shape.clone()),
                "{name}"
            );
            // The same numbers; format 1 bounds a band by the widths of its tiles, format 2 by its sums.
            let wide = |v: &ImageValues| match v {
                ImageValues::U32(v) => v.iter().map(|x| f64::from(*x).to_bits()).collect::<Vec<_>>(),
                ImageValues::U64(v) => v.iter().map(|x| (*x as f64).to_bits()).collect(),
                ImageValues::I64(v) => v.iter().map(|x| (*x as f64).to_bits()).collect(),
                ImageValues::F64(v) => v.iter().map(|x| x.to_bits()).collect(),
            };
            assert_eq!(wide(&old.values), wide(&new.values), "{name} {}", old.name);
        }
    }
}

#[test]
fn impossible_products_are_refused() {
    let dir = oracle::temp_dir();
    let counts = CountType::new(2, true).unwrap();
    let signed = Stack::of(&[4], &[3, 3], counts, |i| -(i as i64)).npy(dir.path());
    let out = dir.path().join("signed.h5");
    packed(&signed, 2, &out, 1).unwrap();
    let pack = Pack::open(&out).unwrap();
    assert_eq!(pack.virtual_image(&[1; 9], &Quiet).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let planes = pack.planes(&Quiet).unwrap();
    assert_eq!(planes.virtual_image(&[1; 9], &Quiet).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(pack.binned(0..5, 1, &Quiet).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(pack.binned(0..1, 0, &Quiet).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let counts = CountType::new(1, false).unwrap();
    let line = Stack::of(&[4], &[3, 3], counts, |i| i as i64).npy(dir.path());
    assert_eq!(inspected(&line, 2).unwrap().scan_shape, [4]);
    let out = dir.path().join("line.h5");
    packed(&line, 2, &out, 1).unwrap();
    let pack = Pack::open(&out).unwrap();
    assert_eq!(pack.signed_virtual_image(&[1; 9], &Quiet).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(pack.virtual_image(&[1; 8], &Quiet).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let only = |name: &str| Choice { only: vec![name.to_owned()], ..Choice::default() };
    let e = pack.images(&only("dpc_row"), &Quiet).unwrap_err();
    assert!(e.message().contains("two axes"), "{e}");
    let all = pack.images(&Choice::default(), &Quiet).unwrap();
    assert_eq!(all.images.len(), 8, "all but DPC and bands");
    assert!(pack.images(&only("bf"), &Quiet).is_err());
}
