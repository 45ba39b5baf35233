//! Split and placement against a slow reference that computes every element's place on its own.

use super::*;
use crate::Budget;
use crate::array::{Axis, ChunkGrid, Hyperslab, Points, Selection, Zipped, strides};

/// A small generator with a fixed seed; the crate needs no dependency for it.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n.max(1)
    }
}

/// Row-major element numbers that a selection wants, worked out position by position.
fn reference(selection: &Selection, shape: &[u64]) -> Vec<u64> {
    let positions = |axis: &Axis| match axis {
        Axis::List(at) => at.clone(),
        Axis::Regular { start, stride, count, block } => (0..*count)
            .flat_map(|i| (0..*block).map(move |j| (*start as i64 + i as i64 * stride) as u64 + j))
            .collect(),
    };
    let product = |axes: Vec<Vec<u64>>| {
        axes.iter().zip(shape).fold(vec![0_u64], |base, (axis, n)| {
            base.iter().flat_map(|b| axis.iter().map(move |i| b * n + i)).collect()
        })
    };
    let slab = |s: &Hyperslab| {
        let axis = |i: usize| Axis::Regular {
            start: s.start[i],
            stride: s.stride[i],
            count: s.count[i],
            block: s.block[i],
        };
        product((0..s.rank()).map(|i| positions(&axis(i))).collect())
    };
    match selection {
        Selection::All => (0..shape.iter().product()).collect(),
        Selection::Hyperslab(s) => slab(s),
        Selection::Axes(axes) => product(axes.iter().map(positions).collect()),
        Selection::Points(p) => {
            p.iter().map(|p| p.iter().zip(shape).fold(0, |n, (c, s)| n * s + c)).collect()
        }
        Selection::Zipped(z) => {
            let steps = strides(shape).unwrap();
            let along = |(d, axis): &(usize, Axis)| positions(axis).iter().map(|i| i * steps[*d]).collect();
            let mut order: Vec<Vec<u64>> = z.axes().iter().map(along).collect();
            let n = z.lists().first().map_or(0, |l| l.1.len());
            let tuple = |i: usize| z.lists().iter().map(|(d, list)| list[i] * steps[*d]).sum();
            order.insert(z.place(), (0..n).map(tuple).collect());
            order.iter().fold(vec![0], |base, part| {
                base.iter().flat_map(|b| part.iter().map(move |p| b + p)).collect()
            })
        }
        Selection::Union(slabs) => {
            slabs.iter().flat_map(slab).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
        }
    }
}

fn random_axis(r: &mut Random, extent: u64) -> Axis {
    match r.below(5) {
        0 => Axis::all(extent),
        1 => Axis::List((0..r.below(6)).map(|_| r.below(extent)).collect()),
        2 => {
            let (start, stride) = (r.below(extent), 1 + r.below(3));
            Axis::Regular {
                start,
                stride: -(stride as i64),
                count: 1 + r.below(start / stride + 1),
                block: 1,
            }
        }
        _ => {
            let (start, block) = (r.below(extent), 1 + r.below(3));
            let stride = block + r.below(3);
            let room = extent - start;
            if room < block {
                return Axis::Regular { start, stride: 1, count: room, block: 1 };
            }
            Axis::Regular {
                start,
                stride: stride as i64,
                count: 1 + r.below((room - block) / stride + 1),
                block,
            }
        }
    }
}

fn random_selection(r: &mut Random, shape: &[u64]) -> Selection {
    let slab = |r: &mut Random| {
        let mut slab = Hyperslab::new(Vec::new(), Vec::new());
        for extent in shape {
            let axis = loop {
                match random_axis(r, *extent) {
                    Axis::Regular { start, stride, count, block } if stride > 0 => {
                        break (start, stride, count, block);
                    }
                    _ => {}
                }
            };
            slab.start.push(axis.0);
            slab.stride.push(axis.1);
            slab.count.push(axis.2);
            slab.block.push(axis.3);
        }
        slab
    };
    match r.below(8) {
        0 => Selection::All,
        1 => Selection::Hyperslab(slab(r)),
        2 if !shape.is_empty() => {
            let n = r.below(20);
            let coords = (0..n).flat_map(|_| shape.iter().map(|s| r.below(*s)).collect::<Vec<_>>()).collect();
            Selection::Points(Points::new(shape.len(), coords).unwrap())
        }
        4 | 5 if !shape.is_empty() => random_zipped(r, shape),
        3 if !shape.is_empty() => Selection::Union((0..r.below(4)).map(|_| slab(r)).collect()),
        _ => Selection::Axes(shape.iter().map(|n| random_axis(r, *n)).collect()),
    }
}

fn random_zipped(r: &mut Random, shape: &[u64]) -> Selection {
    let n = r.below(7);
    let (mut lists, mut axes) = (Vec::new(), Vec::new());
    for (dimension, extent) in shape.iter().enumerate() {
        if r.below(2) == 0 || (lists.is_empty() && dimension + 1 == shape.len()) {
            lists.push((dimension, (0..n).map(|_| r.below(*extent)).collect()));
        } else {
            axes.push((dimension, random_axis(r, *extent)));
        }
    }
    let place = r.below(axes.len() as u64 + 1) as usize;
    Zipped::new(n, lists, axes, place).unwrap().into()
}

/// The chunk's bytes: of element number n, `width` bytes that depend on n; 0xEE outside the array.
fn chunk_bytes(grid: &ChunkGrid, coords: &[u64], width: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..grid.chunk_elements() {
        let inside = ChunkGrid::new(grid.chunk(), &vec![1; coords.len()]).unwrap().coords(i);
        let at: Vec<u64> = inside.iter().zip(coords).zip(grid.chunk()).map(|((i, c), n)| c * n + i).collect();
        let lies_in = at.iter().zip(grid.shape()).all(|(a, s)| a < s);
        let number = at.iter().zip(grid.shape()).fold(0, |n, (a, s)| n * s + a);
        out.extend((0..width).map(|b| if lies_in { element_byte(number, b) } else { 0xEE }));
    }
    out
}

fn element_byte(number: u64, byte: usize) -> u8 {
    (number.wrapping_mul(31) >> (8 * (byte % 3))) as u8 ^ byte as u8
}

fn place_safely(moves: &Moves, src: &[u8], dst: &mut [u8]) {
    moves.each(&mut |m| copy_safely(&m, src, dst));
}

#[test]
fn every_selection_reads_what_the_reference_reads_fast_safe_and_by_parts() {
    let mut r = Random(7);
    for round in 0..3000 {
        let rank = r.below(5) as usize;
        let shape: Vec<u64> = (0..rank).map(|_| 1 + r.below(9)).collect();
        let chunk: Vec<u64> = shape.iter().map(|s| 1 + r.below(s + 2)).collect();
        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let selection = random_selection(&mut r, &shape);
        let width = [1, 2, 3, 4, 8, 16, 5][r.below(7) as usize];
        let split = Split::new(&selection, &grid, &Budget::default()).unwrap();
        let numbers = reference(&selection, &shape);
        let expected: Vec<u8> =
            numbers.iter().flat_map(|n| (0..width).map(move |b| element_byte(*n, b))).collect();
        assert_eq!(split.elements(), numbers.len() as u64, "round {round}: {selection:?} of {shape:?}");

        let (mut fast, mut safe, mut parts) =
            (vec![0xAA; expected.len()], vec![0xAA; expected.len()], Vec::new());
        parts.resize(expected.len(), 0xAA);
        let canvas = Canvas::new(&split, &mut fast, width).unwrap();
        let by_parts = Canvas::new(&split, &mut parts, width).unwrap();
        let mut seen = 0;
        for part in (0..split.parts()).rev() {
            let bytes = chunk_bytes(&grid, &split.chunk(part), width);
            let reach = split.ranges_in_chunk(part, width, usize::MAX)[0].clone();
            assert_eq!(split.ranges_in_chunk(part, width, usize::MAX).len(), 1);
            canvas.tile(part).unwrap().place(&bytes[reach.clone()], reach.start).unwrap();
            place_safely(&Moves::new(&split, part, width, Side::Result, Side::Chunk), &bytes, &mut safe);
            // Only the needed ranges of the chunk may be looked at.
            let mut holes = vec![0x55; bytes.len()];
            for range in split.ranges_in_chunk(part, width, 3) {
                holes[range.clone()].copy_from_slice(&bytes[range]);
            }
            let n = split.elements_of(part) as usize;
            let mut compact = vec![0; n * width];
            split.gather(part, width, &holes[reach.clone()], reach.start, &mut compact).unwrap();
            let mut tile = by_parts.tile(part).unwrap();
            match tile.contiguous() {
                Some(run) => run.copy_from_slice(&compact),
                None => tile.place_part(&compact).unwrap(),
            }
            if let Some(range) = split.run_in_chunk(part, width) {
                assert_eq!(bytes[range], compact);
            }
            assert!(by_parts.tile(part).is_none());
            seen += n;
        }
        assert_eq!(seen, numbers.len());
        drop((canvas, by_parts));
        assert_eq!(fast, expected, "round {round}: {selection:?} of {shape:?} in {chunk:?}, width {width}");
        assert_eq!(safe, expected, "round {round}: safe twin");
        assert_eq!(parts, expected, "round {round}: by parts");
    }
}

#[test]
fn filling_all_parts_fills_the_destination_and_nothing_else() {
    let mut r = Random(11);
    for _ in 0..500 {
        let shape: Vec<u64> = (0..1 + r.below(3)).map(|_| 1 + r.below(9)).collect();
        let chunk: Vec<u64> = shape.iter().map(|s| 1 + r.below(s + 2)).collect();
        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let split = Split::new(&random_selection(&mut r, &shape), &grid, &Budget::default()).unwrap();
        let value: &[u8] = if r.below(2) == 0 { &[1, 2, 3] } else { &[9, 9] };
        let mut buffer = vec![0; split.elements() as usize * value.len()];
        let canvas = Canvas::new(&split, &mut buffer, value.len()).unwrap();
        for part in 0..split.parts() {
            canvas.tile(part).unwrap().fill(value).unwrap();
        }
        drop(canvas);
        assert!(buffer.chunks_exact(value.len()).all(|e| e == value));
    }
}

#[test]
fn threads_write_one_canvas_at_once() {
    let grid = ChunkGrid::new(&[200, 130], &[7, 16]).unwrap();
    let split = Split::new(&Selection::All, &grid, &Budget::default()).unwrap();
    let mut buffer = vec![0; 200 * 130 * 2];
    let canvas = Canvas::new(&split, &mut buffer, 2).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for part in 0..split.parts() {
                    if let Some(mut tile) = canvas.tile(part) {
                        tile.place(&chunk_bytes(&grid, &split.chunk(part), 2), 0).unwrap();
                    }
                }
            });
        }
    });
    drop(canvas);
    let expected: Vec<u8> = (0..200 * 130).flat_map(|n| [element_byte(n, 0), element_byte(n, 1)]).collect();
    assert!(buffer == expected);
}

#[test]
fn short_buffers_are_refused() {
    let grid = ChunkGrid::new(&[4, 4], &[2, 2]).unwrap();
    let split = Split::new(&Selection::All, &grid, &Budget::default()).unwrap();
    assert!(Canvas::new(&split, &mut [0; 15], 1).is_err());
    let mut buffer = [0; 16];
    let canvas = Canvas::new(&split, &mut buffer, 1).unwrap();
    assert!(canvas.tile(4).is_none());
    let mut tile = canvas.tile(3).unwrap();
    assert!(tile.place(&[1, 2, 3], 0).is_err());
    assert!(tile.place_part(&[1, 2, 3]).is_err());
    assert!(tile.fill(&[1, 2]).is_err());
    assert!(split.gather(0, 1, &[0; 3], 0, &mut [0; 4]).is_err());
}

#[test]
fn a_small_selection_of_a_huge_array_costs_nothing() {
    let grid = ChunkGrid::new(&[1 << 60, 4], &[1 << 20, 4]).unwrap();
    let slab = Hyperslab::new(vec![1 << 59, 0], vec![3, 4]);
    let split = Split::new(&slab.into(), &grid, &Budget::default()).unwrap();
    assert_eq!(split.parts(), 1);
    let all = Split::new(&Selection::All, &grid, &Budget::default());
    assert_eq!(all.unwrap_err().kind(), crate::ErrorKind::Limit);
}
