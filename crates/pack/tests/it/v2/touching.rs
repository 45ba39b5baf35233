//! A read touches the blocks that hold what was asked, and no others.

use super::stacks::{Stack, packed_in};
use std::sync::Arc;
use tensilo_core::Quiet;
use tensilo_core::array::{Axis, Selection};
use tensilo_core::io::MemorySource;
use tensilo_pack::read::Values;
use tensilo_pack::v2::counts::CountType;
use tensilo_pack::v2::layout::BlockSize;
use tensilo_pack::v2::read::{Pack, ReadOptions};
use tensilo_testkit::{CountingSource, oracle};

/// Detector of 6 x 10 pixels in rectangles of 2 x 5, 5 x 7 scans in tiles of 4: 6 rectangles, 9 tiles, 5 shards.
fn pack() -> (Arc<CountingSource<MemorySource>>, Pack) {
    let counts = CountType::new(2, false).unwrap();
    let stack = Stack::of(&[5, 7], &[6, 10], counts, |i| (i % 1000) as i64);
    let dir = oracle::temp_dir();
    let out = dir.path().join("out.h5");
    packed_in(&stack.npy(dir.path()), 2, &out, BlockSize { rows: 2, columns: 5, scans: 4 }, 8).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let source = Arc::new(CountingSource::new(MemorySource::new(bytes)));
    let pack = Pack::from_source(source.clone(), ReadOptions::default()).unwrap();
    // All tables are read once.
    let _: Vec<u16> = pack.read(&Selection::All, Values::Raw).unwrap();
    (source, pack)
}

fn part(start: u64, count: u64) -> Axis {
    Axis::Regular { start, stride: 1, count, block: 1 }
}

#[test]
fn reads_touch_only_the_blocks_that_hold_what_was_asked() {
    let (source, pack) = pack();
    let blocks = |axes: [Axis; 4]| {
        source.reset();
        let _: Vec<u16> = pack.read(&Selection::Axes(axes.to_vec()), Values::Raw).unwrap();
        source.reads()
    };
    let all = [5, 7, 6, 10].map(Axis::all);
    let [rows, columns, y, x] = all.clone();
    // Of whole frames, blocks beside each other are one read.
    assert_eq!(blocks(all), 3 * 9, "everything");
    assert_eq!(blocks([part(2, 1), part(3, 1), y.clone(), x.clone()]), 3, "one frame");
    assert_eq!(blocks([rows.clone(), columns.clone(), part(3, 1), part(4, 1)]), 9, "one pixel's series");
    assert_eq!(blocks([rows.clone(), columns, part(2, 2), part(5, 5)]), 9, "one rectangle");
    assert_eq!(
        blocks([rows, part(0, 1), part(1, 2), part(4, 2)]),
        5 * 4,
        "a corner of four rectangles, 5 lines"
    );
    assert_eq!(blocks([part(1, 1), part(1, 2), part(0, 1), part(0, 1)]), 1, "scans 8 and 9 are in one tile");
}

#[test]
fn a_virtual_detector_touches_the_rectangles_where_its_mask_is_and_changes() {
    let (source, pack) = pack();
    let mut mask = vec![0; 60];
    // Rectangles 0 and 3.
    for pixel in [0, 1, 10, 25, 26, 35] {
        mask[pixel] = 1;
    }
    source.reset();
    let mut detector = pack.virtual_detector(&mask, &Quiet).unwrap();
    assert_eq!(source.reads(), 2 * 9);
    mask[36] = 1;
    source.reset();
    detector.move_to(&mask, &Quiet).unwrap();
    assert_eq!(source.reads(), 9, "one rectangle changed");
    source.reset();
    detector.move_to(&mask, &Quiet).unwrap();
    assert_eq!(source.reads(), 0, "nothing changed");
    assert_eq!(detector.image(), pack.virtual_image(&mask, &Quiet).unwrap());
}
