//! Blocks of format 2 decoded by a program of its own in Python, written from the format's page.

use std::path::Path;
use tensilo_pack::v2::codec::{BlockShape, Count, EncodeScratch, Layout, encode};
use tensilo_testkit::oracle;

/// Numbers that depend on the seed only.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A count of this mean, spread out about as a Poisson count is.
    fn count(&mut self, mean: f64) -> u32 {
        let trials = (4.0 * mean).ceil().max(1.0);
        (0..trials as u32).filter(|_| f64::from(self.next()) < mean / trials * 4_294_967_296.0).count() as u32
    }
}

fn block_of<T: Count>(shape: BlockShape, mut count: impl FnMut(usize, usize) -> u32) -> (Vec<u8>, Vec<u8>) {
    let counts: Vec<T> = (0..shape.counts())
        .map(|i| T::narrow(count(i % shape.pixels, i / shape.pixels).min(T::MOST)))
        .collect();
    let mut block = Vec::new();
    encode(&counts, Layout::flat(shape), shape, &mut EncodeScratch::default(), &mut block).expect("a block");
    (block, counts.iter().flat_map(|v| v.widen().to_le_bytes()[..T::BYTES].to_vec()).collect())
}

fn decoded(block: &[u8], width: usize, shape: BlockShape) -> Vec<u8> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/pack_v2_block.py");
    oracle::python_stdout(&script, [width, shape.pixels, shape.scans].map(|n| n.to_string()), block)
}

#[test]
fn a_program_written_from_the_formats_page_decodes_every_kind_of_block() {
    if oracle::python().is_none() {
        return oracle::skip("Python with h5py", 1);
    }
    let large = BlockShape { pixels: 256, scans: 40 };
    let small = BlockShape { pixels: 43, scans: 300 };
    for (number, mean) in [0.0, 0.004, 0.05, 0.3, 0.9, 5.0, 30.0, 3000.0].into_iter().enumerate() {
        for shape in [large, small] {
            let mut random = Random(number as u64);
            // A hot pixel, and neighbours whose means differ.
            let count = |pixel: usize, _: usize| match pixel {
                33 => 70_000 + random.next() % 9,
                _ => random.count(mean * if pixel > 100 { 3.0 } else { 1.0 }),
            };
            let (block, counts) = block_of::<u16>(shape, count);
            assert!(decoded(&block, 2, shape) == counts, "mean {mean}, {shape:?}, 16 bits");
        }
        let mut random = Random(number as u64);
        let (block, counts) = block_of::<u8>(small, |_, _| random.count(mean));
        assert!(decoded(&block, 1, small) == counts, "mean {mean}, 8 bits");
        let (block, counts) = block_of::<u32>(large, |pixel, scan| match (pixel, scan) {
            (9, _) => u32::MAX - random.next() % 2,
            (pixel, 7) => 100_000 * pixel as u32,
            _ => random.count(mean),
        });
        assert!(decoded(&block, 4, large) == counts, "mean {mean}, 32 bits");
    }
}
