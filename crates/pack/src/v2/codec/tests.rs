//! Blocks of many shapes and kinds of counts, at every level, whole and damaged.

use super::block_sums::{all_at, masked_at};
use super::level::levels;
use super::*;
use proptest::prelude::*;

/// Numbers that depend on the seed only.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A Poisson count.
    fn count(&mut self, mean: f64) -> u32 {
        if mean > 30.0 {
            // Sums of uniform numbers are near enough to it.
            let sum: f64 = (0..12).map(|_| f64::from(self.next()) / 4_294_967_296.0).sum();
            return (mean + (sum - 6.0) * mean.sqrt()).round().max(0.0) as u32;
        }
        let (mut n, mut product) = (0, f64::from(self.next()) / 4_294_967_296.0);
        while product > (-mean).exp() {
            product *= f64::from(self.next()) / 4_294_967_296.0;
            n += 1;
        }
        n
    }
}

/// Kinds of counts.
const KINDS: u32 = 12;

/// The count of a kind at a pixel and scan.
fn value(kind: u32, random: &mut Random, pixel: usize, scan: usize) -> u32 {
    let hot = pixel % 37 == 5;
    match kind {
        0 => 0,
        1 => 7,
        2 => random.count(0.001),
        3 => random.count(0.05),
        4 => random.count(0.6),
        5 => random.count(3.0 + (pixel / 8) as f64 * 0.5),
        6 => random.count(40.0),
        7 => random.count(1e5) + (pixel as u32) * 1000,
        8 => random.next(),
        9 if hot => u32::MAX - random.next() % 3,
        9 => random.count(0.1),
        10 => random.count(if (scan / 50).is_multiple_of(2) { 0.1 } else { 9.0 }),
        _ => random.next() >> (random.next() % 32),
    }
}

fn counts<T: Count>(kind: u32, seed: u64, shape: BlockShape) -> Vec<T> {
    let mut random = Random(seed);
    let place = |i| (i % shape.pixels, i / shape.pixels);
    (0..shape.counts())
        .map(|i| {
            let (pixel, scan) = place(i);
            let v = value(kind, &mut random, pixel, scan);
            // What does not fit is cut at the top, as detectors do, or below, which leaves noise.
            T::narrow(if kind < 8 || kind == 9 { v.min(T::MOST) } else { v })
        })
        .collect()
}

/// Encodes at every level to the same bytes, decodes them at every level to the same counts.
fn round_trip<T: Count>(kind: u32, seed: u64, shape: BlockShape, columns: usize, gap: usize) {
    let flat = counts::<T>(kind, seed, shape);
    let rows = shape.pixels.div_ceil(columns);
    let layout = Layout { columns, row_stride: columns + gap, scan_stride: rows * (columns + gap) + gap };
    let mut cube = vec![T::narrow(T::MOST); layout.scan_stride * shape.scans];
    for (i, v) in flat.iter().enumerate() {
        cube[layout.at(i / shape.pixels, i % shape.pixels)] = *v;
    }
    let mut blocks = Vec::new();
    let (mut encoding, mut decoding) = (EncodeScratch::default(), DecodeScratch::default());
    for level in levels() {
        // Twice with the same scratch, behind other bytes.
        for _ in 0..2 {
            let mut block = vec![9];
            let part = Part { first: 0, layout, shape };
            each_at(level, &cube, &[part], &mut encoding, &mut block, |_| ()).unwrap();
            assert_eq!(block.remove(0), 9);
            blocks.push(block);
        }
    }
    let block = &blocks[0];
    assert!(blocks.iter().all(|b| b == block), "levels encode alike: kind {kind}, {shape:?}");
    assert!(block.len() <= shape.most_bytes::<T>());
    for level in levels() {
        let marked = T::narrow(0x5a);
        let mut out = vec![marked; cube.len()];
        decode_at(level, block, shape, 0..shape.scans, &mut out, layout, &mut decoding).unwrap();
        for (i, v) in flat.iter().enumerate() {
            let at = layout.at(i / shape.pixels, i % shape.pixels);
            assert_eq!(out[at], *v, "kind {kind}, {shape:?}, {level:?}, count {i}");
            out[at] = marked;
        }
        assert!(out.iter().all(|v| *v == marked), "nothing else is touched");
        let scans = shape.scans / 3..shape.scans / 3 + shape.scans.div_ceil(2);
        let mut part = vec![marked; scans.len() * shape.pixels];
        let part_layout = Layout::flat(shape);
        decode_at(level, block, shape, scans.clone(), &mut part, part_layout, &mut decoding).unwrap();
        assert_eq!(part, flat[scans.start * shape.pixels..scans.end * shape.pixels]);
    }
    let mask: Vec<u8> = (0..shape.pixels).map(|p| (seed >> (p % 61)) as u8 & 1).collect();
    for (mask, level) in [mask, vec![1; shape.pixels], vec![0; shape.pixels]]
        .iter()
        .flat_map(|mask| levels().into_iter().map(move |level| (mask, level)))
    {
        let mut sums = vec![3; shape.scans];
        let masked = Masked { bytes: block, pixels: shape.pixels, mask };
        masked_at::<T>(level, masked, shape.scans, &mut sums, &mut decoding).unwrap();
        for (sum, row) in sums.iter().zip(flat.chunks_exact(shape.pixels)) {
            let chosen = row.iter().zip(mask).filter(|(_, m)| **m != 0);
            assert_eq!(
                *sum,
                3 + chosen.map(|(v, _)| u64::from(v.widen())).sum::<u64>(),
                "kind {kind}, {shape:?}"
            );
        }
    }
    let mut sums = vec![5; shape.pixels];
    add_pixel_sums::<T>(block, shape, &mut sums, &mut decoding).unwrap();
    for (pixel, sum) in sums.iter().enumerate() {
        let series = flat.iter().skip(pixel).step_by(shape.pixels);
        assert_eq!(*sum, 5 + series.map(|v| u64::from(v.widen())).sum::<u64>(), "kind {kind}, {shape:?}");
    }
}

#[test]
fn every_kind_of_counts_comes_back_from_usual_blocks() {
    for kind in 0..KINDS {
        for (pixels, scans) in [(256, 256), (100, 300), (8, 20)] {
            let shape = BlockShape { pixels, scans };
            round_trip::<u8>(kind, 1, shape, 32, 3);
            round_trip::<u16>(kind, 2, shape, 32, 0);
            round_trip::<u32>(kind, 3, shape, 32, 64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn blocks_of_any_shape_come_back(
        kind in 0..KINDS, seed: u64, pixels in 1_usize..90, scans in 1_usize..90, columns in 1_usize..100,
        gap in 0_usize..9, element in 0..3,
    ) {
        let shape = BlockShape { pixels, scans };
        match element {
            0 => round_trip::<u8>(kind, seed, shape, columns, gap),
            1 => round_trip::<u16>(kind, seed, shape, columns, gap),
            _ => round_trip::<u32>(kind, seed, shape, columns, gap),
        }
    }

    #[test]
    fn any_bytes_are_decoded_alike_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 1..300), first in 0_u8..3, few in 1_u8..6,
        pixels in 1_usize..40, scans in 1_usize..40,
    ) {
        bytes[0] = first;
        if let [_, flags, classes, ..] = &mut bytes[..] {
            *flags &= 0x2f;
            *classes = few;
        }
        alike(&bytes, BlockShape { pixels, scans });
    }
}

/// Every level gives the same counts, or every one refuses; sums don't panic.
fn alike(bytes: &[u8], shape: BlockShape) -> bool {
    let mut scratch = DecodeScratch::default();
    let mut results = Vec::new();
    for level in levels() {
        let mut out = vec![0_u16; shape.counts()];
        let done =
            decode_at(level, bytes, shape, 0..shape.scans, &mut out, Layout::flat(shape), &mut scratch)
                .is_ok();
        results.push(done.then_some(out));
    }
    assert!(results.iter().all(|r| *r == results[0]));
    let sums = add_pixel_sums::<u16>(bytes, shape, &mut vec![0; shape.pixels], &mut scratch);
    let masked =
        add_masked_sums::<u16>(bytes, shape, &vec![1; shape.pixels], &mut vec![0; shape.scans], &mut scratch);
    assert_eq!([sums.is_ok(), masked.is_ok()], [results[0].is_some(); 2]);
    results[0].is_some()
}

/// Blocks of a cube encoded together, at every level, are what each is by itself.
fn one_after_the_other<T: Count>(seed: u64, rows: usize, scans: usize, widths: &[usize]) {
    let width: usize = widths.iter().sum();
    let layout = Layout { scan_stride: rows * (width + 5), columns: width, row_stride: width + 5 };
    let mut cube = vec![T::narrow(T::MOST); layout.scan_stride * scans];
    let mut parts = Vec::new();
    let mut expected = Vec::new();
    for (i, columns) in widths.iter().enumerate() {
        let shape = BlockShape { pixels: rows * columns, scans };
        let flat = counts::<T>((seed as u32 + i as u32) % KINDS, seed, shape);
        let part =
            Part { first: widths[..i].iter().sum(), layout: Layout { columns: *columns, ..layout }, shape };
        for (i, v) in flat.iter().enumerate() {
            cube[part.first + part.layout.at(i / shape.pixels, i % shape.pixels)] = *v;
        }
        let mut block = Vec::new();
        encode(&flat, Layout::flat(shape), shape, &mut EncodeScratch::default(), &mut block).unwrap();
        expected.push(block);
        parts.push(part);
    }
    for level in levels() {
        let (mut out, mut ends) = (Vec::new(), Vec::new());
        each_at(level, &cube, &parts, &mut EncodeScratch::default(), &mut out, |end| ends.push(end)).unwrap();
        assert_eq!(ends.len(), parts.len());
        assert!(out == expected.concat(), "seed {seed}, {rows} rows, {scans} scans, {widths:?}, {level:?}");
        // Sums of all of them together: every second pixel.
        let masks: Vec<Vec<u8>> =
            parts.iter().map(|p| (0..p.shape.pixels).map(|i| u8::from(i % 2 == 0)).collect()).collect();
        let blocks = expected.iter().zip(&masks);
        let mut blocks: Vec<_> =
            blocks.map(|(bytes, mask)| Masked { bytes, pixels: mask.len(), mask }).collect();
        let mut sums = vec![0; scans];
        all_at::<T>(level, &blocks, &mut sums, &mut DecodeScratch::default()).unwrap();
        for (scan, sum) in sums.iter().enumerate() {
            let of_part = |p: &Part| -> u64 {
                let places = (0..p.shape.pixels).step_by(2).map(|i| p.first + p.layout.at(scan, i));
                places.map(|at| u64::from(cube[at].widen())).sum()
            };
            assert_eq!(*sum, parts.iter().map(of_part).sum::<u64>(), "{level:?}, scan {scan}");
        }
        for i in 0..blocks.len() {
            let whole = blocks[i].bytes;
            blocks[i].bytes = &whole[..whole.len() - 1];
            let done = all_at::<T>(level, &blocks, &mut sums, &mut DecodeScratch::default());
            assert_eq!(done.unwrap_err().0, i, "{level:?}");
            blocks[i].bytes = whole;
        }
        let last = ends.windows(2).zip(&expected[1..]);
        assert!(last.into_iter().all(|(ends, block)| ends[1] - ends[0] == block.len()));
    }
    let short = &cube[..cube.len() - layout.row_stride];
    let scratch = &mut EncodeScratch::default();
    let mut out = vec![9];
    assert!(encode_each(short, &parts, scratch, &mut out, |_| ()).is_err());
    assert_eq!(out, [9], "nothing is appended");
}

#[test]
fn blocks_encoded_together_are_what_each_is_by_itself() {
    for seed in 0..u64::from(KINDS) {
        one_after_the_other::<u16>(seed, 4, 41, &[64, 96, 32, 40, 8]);
        one_after_the_other::<u16>(seed, 2, 256, &[96, 96, 13]);
        one_after_the_other::<u8>(seed, 3, 40, &[32, 32, 96]);
        one_after_the_other::<u32>(seed, 3, 258, &[32, 64]);
        one_after_the_other::<u32>(seed, 8, 255, &[64, 32]);
    }
}

#[test]
fn every_cut_block_is_refused_and_no_damage_panics() {
    for kind in 0..KINDS {
        let shape = BlockShape { pixels: 44, scans: 40 };
        let flat = counts::<u16>(kind, 9, shape);
        let mut block = Vec::new();
        encode(&flat, Layout::flat(shape), shape, &mut EncodeScratch::default(), &mut block).unwrap();
        for len in 0..block.len() {
            assert!(!alike(&block[..len], shape), "kind {kind}: {len} of {} bytes", block.len());
        }
        for bit in 0..8 * block.len().min(400) {
            block[bit / 8] ^= 1 << (bit % 8);
            alike(&block, shape);
            block[bit / 8] ^= 1 << (bit % 8);
        }
        block.push(0);
        assert!(!alike(&block, shape), "kind {kind}: a byte too many");
        for other in [BlockShape { pixels: 43, scans: 40 }, BlockShape { pixels: 64, scans: 90 }] {
            alike(&block[..block.len() - 1], other);
        }
    }
}

#[test]
fn a_constant_block_takes_a_few_bytes_and_noise_one_more_than_itself() {
    let shape = BlockShape { pixels: BLOCK_PIXELS, scans: BLOCK_SCANS };
    let len = |values: &[u16]| {
        let mut block = Vec::new();
        encode(values, Layout::flat(shape), shape, &mut EncodeScratch::default(), &mut block).unwrap();
        block.len()
    };
    assert!(len(&vec![0; shape.counts()]) <= 12);
    assert!(len(&vec![60_000; shape.counts()]) <= 24);
    assert_eq!(len(&counts::<u16>(8, 4, shape)), 1 + 2 * shape.counts());
}

#[test]
fn shapes_and_slices_that_do_not_fit_are_refused() {
    let shape = BlockShape { pixels: 10, scans: 10 };
    let mut block = Vec::new();
    let scratch = &mut EncodeScratch::default();
    let flat = Layout::flat(shape);
    assert!(encode(&[0_u16; 99], flat, shape, scratch, &mut block).is_err());
    assert!(encode(&[0_u16; 100], Layout { columns: 0, ..flat }, shape, scratch, &mut block).is_err());
    assert!(
        encode(&[0_u16; 100], Layout { scan_stride: usize::MAX, ..flat }, shape, scratch, &mut block)
            .is_err()
    );
    for (pixels, scans) in [(0, 1), (1, 0), (MOST_PIXELS + 1, 1), (MOST_PIXELS, usize::MAX)] {
        assert!(encode(&[0_u16; 100], flat, BlockShape { pixels, scans }, scratch, &mut block).is_err());
    }
    encode(&[1_u16; 100], flat, shape, scratch, &mut block).unwrap();
    let scratch = &mut DecodeScratch::default();
    assert!(decode(&block, shape, &mut [0_u16; 99], flat, scratch).is_err());
    for scans in [0..0, 3..11] {
        assert!(decode_scans(&block, shape, scans, &mut [0_u16; 200], flat, scratch).is_err());
    }
    assert!(add_pixel_sums::<u16>(&block, shape, &mut [0; 9], scratch).is_err());
    assert!(add_masked_sums::<u16>(&block, shape, &[1; 9], &mut [0; 10], scratch).is_err());
}

/// Blocks of several kinds and widths side by side, decoded at once into a slice of `len` counts.
fn side_by_side<T: Count>(seed: u64, rows: usize, scans: usize, widths: &[usize], len: usize) {
    let width: usize = widths.iter().sum();
    let (gap, n) = (3, widths.len());
    let layout = Layout { scan_stride: rows * (width + gap), columns: width, row_stride: width + gap };
    let mut expected = vec![T::narrow(0x5a); len.max(layout.scan_stride * scans)];
    let (mut blocks, mut column) = (Vec::new(), 0);
    for (i, columns) in widths.iter().enumerate() {
        let shape = BlockShape { pixels: rows * columns, scans };
        let flat = counts::<T>((seed as u32 + i as u32) % KINDS, seed, shape);
        let place = Layout { columns: *columns, ..layout };
        for (i, v) in flat.iter().enumerate() {
            expected[column + place.at(i / shape.pixels, i % shape.pixels)] = *v;
        }
        let mut block = Vec::new();
        encode(&flat, Layout::flat(shape), shape, &mut EncodeScratch::default(), &mut block).unwrap();
        blocks.push(block);
        column += columns;
    }
    let (of_scans, mut scratch) = (scans, DecodeScratch::default());
    for level in levels() {
        let beside = |blocks: &[Vec<u8>], scans: Range<usize>, out: &mut [T], scratch: &mut DecodeScratch| {
            let blocks = blocks.iter().zip(widths);
            let blocks: Vec<_> = blocks.map(|(bytes, columns)| Beside { bytes, columns: *columns }).collect();
            beside_at(level, &blocks, [rows, of_scans], scans, out, layout, scratch)
        };
        let mut out = vec![T::narrow(0x5a); expected.len()];
        beside(&blocks, 0..scans, &mut out, &mut scratch).unwrap();
        assert!(out == expected, "{level:?}, {widths:?}, {rows} rows, {scans} scans");
        // Some scans, of which only those before their end are decoded.
        for some in [0..1, scans / 2..scans / 2 + 1, scans / 3..scans - 1] {
            let mut out = vec![T::narrow(0x5a); expected.len()];
            beside(&blocks, some.clone(), &mut out, &mut scratch).unwrap();
            let scan = |scan: usize| layout.scan_stride * scan..layout.scan_stride * (scan + 1);
            assert!(out[..scan(some.len()).start] == expected[scan(some.start).start..scan(some.end).start]);
            assert!(out[scan(some.len()).start..].iter().all(|v| *v == T::narrow(0x5a)));
        }
        // A block that ends too early is named, whichever it is.
        for damaged in 0..n {
            let mut blocks = blocks.clone();
            blocks[damaged].pop();
            let (named, _) = beside(&blocks, 0..scans, &mut out, &mut scratch).unwrap_err();
            assert_eq!(named, damaged, "{level:?}");
        }
    }
}

#[test]
fn blocks_side_by_side_are_decoded_as_one_after_the_other() {
    for seed in 0..12 {
        side_by_side::<u16>(seed, 4, 40, &[64, 64, 64], 0);
        side_by_side::<u16>(seed, 3, 70, &[16, 32, 8, 24, 40], 0);
        side_by_side::<u16>(seed, 2, 9, &[16, 13], 0);
        side_by_side::<u8>(seed, 4, 33, &[32, 32], 0);
        side_by_side::<u32>(seed, 1, 33, &[8, 8, 9, 56, 64], 0);
    }
    // A cube that is too large for the caches is written around them.
    side_by_side::<u16>(3, 8, 300, &[32, 64, 32, 64, 8], FAR / 2);
    let scratch = &mut DecodeScratch::default();
    let layout = Layout { scan_stride: 16, columns: 8, row_stride: 8 };
    let one = [Beside { bytes: &[0; 33], columns: 8 }];
    for (rows, scans, len) in [(2, 0..0, 16), (2, 0..2, 16), (3, 0..1, 16), (2, 0..1, 15)] {
        let out = &mut vec![0_u16; len];
        assert!(decode_beside(&one, rows, 1, scans, out, layout, scratch).is_err());
    }
    decode_beside(&one, 2, 1, 0..1, &mut [0_u16; 16], layout, scratch).unwrap();
    assert!(decode_beside(&[], 2, 1, 0..1, &mut [0_u16; 16], layout, scratch).is_err());
}
