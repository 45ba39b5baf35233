//! Blocks of pack format 2 against bitshuffle with zstd and LZ4, by h5py and natively, and against blosc2: ratio,
//! encoding, decoding, one frame, a detector region, a bright-field image.
//!
//! `bench pack-v2 [--scans N] [--no-python] [KIND…]`; a kind is named by its beginning. `--family` and `--full` pack a
//! detector family in both formats instead. Every decoder's
//! output is compared before it is timed.
#![expect(clippy::disallowed_methods, reason = "files that live as long as a measurement")]

use crate::family::{PIXELS, SIDE};
use crate::h5py::Python;
use crate::pack_v2_data::{KINDS, Stack, bright_field, stack};
use crate::pack_v2_file::{CORNER, Row, judge as judge_file, packs};
use crate::second_core;
use std::path::Path;
use std::time::Instant;
use tensilo_core::buffer;
use tensilo_filters::bitshuffle;
use tensilo_pack::v2::codec::{
    BLOCK_COLUMNS, BLOCK_ROWS, BLOCK_SCANS, Beside, BlockShape, DecodeScratch, EncodeScratch, Layout, Part,
    add_masked_sums, decode, decode_beside, decode_scans, encode_each,
};
use zstd::bulk::{Compressor, Decompressor};

/// Bytes that a container's index needs for a block: offset, length, checksum.
const INDEX: usize = 16;
const MIB: usize = 1 << 20;
/// Times that encoders and decoders are timed.
const ROUNDS: usize = 7;
const ACROSS: usize = SIDE / BLOCK_COLUMNS;
const TILES: usize = SIDE / BLOCK_ROWS * ACROSS;

/// What is wanted of a kind: times the best ratio of the peers, times the entropy at most, times the native decoder and
/// encoder.
struct Goals {
    over_peers: f64,
    over_entropy: f64,
    decode: f64,
    encode: f64,
}

/// Runs the comparison.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut scans = 1024;
    let (mut python, mut kinds) = (true, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--scans" => scans = args.next().and_then(|n| n.parse().ok()).ok_or("--scans takes a number")?,
            "--no-python" => python = false,
            "--family" | "--full" => return crate::pack_v2_full::run(arg == "--full"),
            word => kinds.push(word.to_owned()),
        }
    }
    let chosen = |k: &&&str| kinds.is_empty() || kinds.iter().any(|w| k.starts_with(w.as_str()));
    let python = if python { Python::start() } else { None };
    if let Some(python) = &python {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/pack_v2.py");
        python.run(&format!("exec(open({script:?}).read(), globals())"));
    }
    println!(
        "{scans} scans of {SIDE} × {SIDE} uint16; GB are 10^9 uncompressed bytes; one thread unless said"
    );
    for kind in KINDS.iter().filter(chosen) {
        compare(kind, &stack(kind, scans), scans, python.as_ref())?;
    }
    Ok(())
}

/// Median seconds of some calls.
pub fn seconds(times: usize, mut work: impl FnMut()) -> f64 {
    let all = (0..times)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed().as_secs_f64()
        })
        .collect();
    median(all)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

pub fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn compare(kind: &str, stack: &Stack, scans: usize, python: Option<&Python>) -> Result<(), String> {
    let bytes = 2.0 * stack.counts.len() as f64;
    let gb = bytes / 1e9;
    let bits = 8.0 * bytes / stack.entropy;
    println!(
        "\n{kind}: {:.4} bits a count, at most {bits:.2} : 1",
        stack.entropy / stack.counts.len() as f64
    );
    println!(
        "{:28} {:>9} {:>8} {:>8} {:>8} {:>8}  GB/s",
        "", "ratio", "encode", "on two", "decode", "on two"
    );
    let row = |name: &str, ratio: f64, speeds: [f64; 4]| {
        let text =
            speeds.map(|s| if s.is_finite() { format!("{:8.2}", gb / s) } else { format!("{:>8}", "–") });
        println!("{name:28} {ratio:9.2} {}", text.join(" "));
    };
    let mut out: Vec<u16> = buffer::zeroed_vec(stack.counts.len()).map_err(|e| e.to_string())?;
    let ours = Blocks::encode(&stack.counts, scans, 1);
    ours.decode(&mut out, 1);
    assert!(out == stack.counts, "what we decode is what was encoded");
    out.fill(1);
    assert!(Blocks::encode(&stack.counts, scans, 2).bytes() == ours.bytes());
    let native = Native::encode(&stack.counts, 1);
    native.decode(&mut out, 1);
    assert!(out == stack.counts, "what bitshuffle and zstd decode is what was encoded");
    // In turn, so that a slow moment of the machine hits both.
    let mut times: [[Vec<f64>; 4]; 2] = Default::default();
    let mut arithmetic: [Vec<f64>; 2] = Default::default();
    for _ in 0..ROUNDS {
        arithmetic.iter_mut().zip(second_core::measure()).for_each(|(all, s)| all.push(s));
        for (i, threads) in [(0, 1), (1, 2)] {
            times[0][i].push(seconds(1, || drop(Blocks::encode(&stack.counts, scans, threads))));
            times[1][i].push(seconds(1, || drop(Native::encode(&stack.counts, threads))));
            times[0][2 + i].push(seconds(1, || ours.decode(&mut out, threads)));
            times[1][2 + i].push(seconds(1, || native.decode(&mut out, threads)));
        }
    }
    let [of_ours, of_native] = times.map(|t| t.map(median));
    let ratio = bytes / ours.bytes() as f64;
    let native_ratio = bytes / native.bytes() as f64;
    row("format 2 blocks", ratio, of_ours);
    row("bitshuffle/zstd 1 MiB native", native_ratio, of_native);
    let mut best = native_ratio;
    let folder =
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).map_err(|e| e.to_string())?;
    if let Some(python) = python {
        std::fs::write(folder.path().join("stack.u16"), bytemuck::cast_slice(&stack.counts))
            .map_err(|e| e.to_string())?;
        std::fs::write(folder.path().join("mask.u8"), bright_field()).map_err(|e| e.to_string())?;
        python.run(&format!("setup({:?}, {scans}, {SIDE})", folder.path()));
        for name in python.ask("names()").split(',') {
            let [theirs, wrote, read] = numbers(&python.ask(&format!("*measure({name:?})")));
            best = best.max(theirs);
            row(name, theirs, [wrote, f64::NAN, read, f64::NAN]);
        }
    }
    judge(kind, ratio, best, bits, of_ours, of_native);
    let [one, two] = arithmetic.map(median);
    println!("  meanwhile arithmetic by two threads is {:.2} × one's", 2.0 * one / two);
    access(&ours, stack, scans);
    files(stack, scans, python, folder.path())
}

fn numbers<const N: usize>(text: &str) -> [f64; N] {
    let all: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    all.try_into().expect("as many numbers as asked for")
}

/// Says which goals are met.
fn judge(kind: &str, ratio: f64, best: f64, bound: f64, ours: [f64; 4], native: [f64; 4]) {
    let goals = match kind {
        "constant" => return println!("constant: {ratio:.0} : 1, goal 1000: {}", verdict(ratio >= 1000.0)),
        "incompressible" => {
            let grown = (1.0 / ratio - 1.0) * 100.0;
            return println!("incompressible: grown by {grown:.3} %, goal 0.1: {}", verdict(grown <= 0.1));
        }
        "sparse 0.05" => Goals { over_peers: 1.07, over_entropy: 1.25, decode: 2.0, encode: 2.0 },
        "dense 40" => Goals { over_peers: 1.07, over_entropy: 1.10, decode: 1.2, encode: 1.5 },
        _ => Goals { over_peers: 1.07, over_entropy: 1.10, decode: 2.0, encode: 2.0 },
    };
    let line = |what: &str, found: f64, goal: f64, met: bool| {
        println!("  {what:38} {found:6.2} (goal {goal}): {}", verdict(met));
    };
    line("× the best peer's ratio", ratio / best, goals.over_peers, ratio / best >= goals.over_peers);
    line("× the entropy", bound / ratio, goals.over_entropy, bound / ratio <= goals.over_entropy);
    let (decode, encode) = (native[2] / ours[2], native[0] / ours[0]);
    line("× native decoding", decode, goals.decode, decode >= goals.decode);
    line("× native encoding", encode, goals.encode, encode >= goals.encode);
    line("× one thread's decoding, by two", ours[2] / ours[3], 1.8, ours[2] / ours[3] >= 1.8);
}

/// A frame in the middle of its block: the first ones of a block take less time, the last ones more.
pub fn one_frame(scans: usize) -> usize {
    (scans / 2 + BLOCK_SCANS / 2 + 3).min(scans - 1)
}

/// Single blocks: one frame, a region, a bright-field image, by one thread.
fn access(ours: &Blocks, stack: &Stack, scans: usize) {
    let mut scratch = DecodeScratch::default();
    let mut frame = vec![0_u16; PIXELS];
    let wanted = one_frame(scans);
    let one = seconds(5, || ours.frame(wanted, &mut frame, &mut scratch));
    assert!(frame == stack.counts[wanted * PIXELS..][..PIXELS]);
    let mut region = vec![0_u16; 64 * scans];
    let [row, column] = CORNER;
    let eight = seconds(5, || ours.region(row, column, scans, &mut region, &mut scratch));
    let expected =
        (0..scans).flat_map(|s| (0..64).map(move |i| s * PIXELS + (row + i / 8) * SIDE + column + i % 8));
    assert!(region.iter().copied().eq(expected.map(|at| stack.counts[at])));
    let mask = bright_field();
    let image = ours.masked(&mask, scans, 1);
    let sum =
        |frame: &[u16]| frame.iter().zip(&mask).map(|(v, m)| u64::from(*v) * u64::from(*m)).sum::<u64>();
    assert!(image.iter().copied().eq(stack.counts.chunks_exact(PIXELS).map(sum)));
    let bf = [1, 2].map(|threads| seconds(5, || drop(ours.masked(&mask, scans, threads))));
    let [one, eight, bf, by_two] = [one, eight, bf[0], bf[1]].map(|s| s * 1e3);
    println!("  blocks: frame {one:.2} ms, region {eight:.2}, bright field {bf:.2}, {by_two:.2} by two");
}

/// Files: packs of both formats, and what h5py wrote.
fn files(stack: &Stack, scans: usize, python: Option<&Python>, folder: &Path) -> Result<(), String> {
    let ours = packs(stack, scans, folder)?;
    let Some(python) = python else { return Ok(()) };
    let gb = 2e-9 * stack.counts.len() as f64;
    let (mut chunk, mut best) = (f64::NAN, f64::INFINITY);
    let mask = bright_field();
    let sum =
        |frame: &[u16]| frame.iter().zip(&mask).map(|(v, m)| u64::from(*v) * u64::from(*m)).sum::<u64>();
    let image: Vec<u64> = stack.counts.chunks_exact(PIXELS).map(sum).collect();
    for name in ["h5py bitshuffle/LZ4", "h5py bitshuffle/zstd", "h5py bitshuffle/zstd 1 MiB"] {
        let [frame, region, theirs] = numbers(&python.ask(&format!("*random_access({name:?})")));
        let found = std::fs::read(folder.join("bright-field.u64")).map_err(|e| e.to_string())?;
        let found = found.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes")));
        assert!(image.iter().copied().eq(found));
        let none = f64::NAN;
        let row = Row {
            ratio: none,
            make: [none; 2],
            cube: [none; 2],
            frame,
            region,
            image: theirs,
            resident: none,
            planes: none,
        };
        row.say(name, gb);
        // One frame a chunk: the first two; the denser of them is what a pack competes with.
        if name == "h5py bitshuffle/zstd" {
            chunk = frame;
        }
        best = best.min(theirs);
    }
    judge_file(&ours, chunk, best);
    Ok(())
}

/// A stack as blocks, scans first.
struct Blocks {
    /// For each part that one thread made: where its blocks end, and their bytes.
    parts: Vec<(Vec<usize>, Vec<u8>)>,
}

const LAYOUT: Layout = Layout { scan_stride: PIXELS, columns: BLOCK_COLUMNS, row_stride: SIDE };

fn shape(scans: usize) -> BlockShape {
    BlockShape { pixels: BLOCK_ROWS * BLOCK_COLUMNS, scans }
}

/// First pixel of a tile.
fn corner(tile: usize) -> usize {
    let across = SIDE / BLOCK_COLUMNS;
    tile / across * BLOCK_ROWS * SIDE + tile % across * BLOCK_COLUMNS
}

impl Blocks {
    fn encode(counts: &[u16], scans: usize, threads: usize) -> Self {
        let part = scans.div_ceil(threads).next_multiple_of(BLOCK_SCANS);
        let work = |counts: &[u16]| {
            let (mut ends, mut bytes, mut scratch) = (Vec::new(), Vec::new(), EncodeScratch::default());
            for slab in counts.chunks(BLOCK_SCANS * PIXELS) {
                let part =
                    |tile| Part { first: corner(tile), layout: LAYOUT, shape: shape(slab.len() / PIXELS) };
                let parts: [Part; TILES] = std::array::from_fn(part);
                encode_each(slab, &parts, &mut scratch, &mut bytes, |end| ends.push(end)).expect("blocks");
            }
            (ends, bytes)
        };
        Self { parts: in_parts(counts.chunks(part * PIXELS), work) }
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(|(ends, bytes)| bytes.len() + ends.len() * INDEX).sum()
    }

    /// The block of a tile in a slab of scans. There must be one part.
    fn block(&self, slab: usize, tile: usize) -> &[u8] {
        let (ends, bytes) = &self.parts[0];
        let i = slab * TILES + tile;
        &bytes[if i == 0 { 0 } else { ends[i - 1] }..ends[i]]
    }

    fn decode(&self, out: &mut [u16], threads: usize) {
        let slabs = out.len().div_ceil(BLOCK_SCANS * PIXELS).div_ceil(threads);
        in_parts(out.chunks_mut(slabs * BLOCK_SCANS * PIXELS).enumerate(), |(part, out)| {
            let mut scratch = DecodeScratch::default();
            for (slab, out) in out.chunks_mut(BLOCK_SCANS * PIXELS).enumerate() {
                let scans = out.len() / PIXELS;
                for band in 0..SIDE / BLOCK_ROWS {
                    let block = |i| Beside {
                        bytes: self.block(part * slabs + slab, band * ACROSS + i),
                        columns: BLOCK_COLUMNS,
                    };
                    let blocks: [Beside<'_>; ACROSS] = std::array::from_fn(block);
                    let out = &mut out[band * BLOCK_ROWS * SIDE..];
                    let rows = Layout { columns: SIDE, ..LAYOUT };
                    decode_beside(&blocks, BLOCK_ROWS, scans, 0..scans, out, rows, &mut scratch)
                        .expect("blocks");
                }
            }
        });
    }

    fn frame(&self, scan: usize, out: &mut [u16], scratch: &mut DecodeScratch) {
        for tile in 0..TILES {
            let block = self.block(scan / BLOCK_SCANS, tile);
            let scan = scan % BLOCK_SCANS;
            decode_scans(
                block,
                shape(BLOCK_SCANS),
                scan..scan + 1,
                &mut out[corner(tile)..],
                LAYOUT,
                scratch,
            )
            .expect("a block");
        }
    }

    /// Eight by eight pixels whose columns lie in one tile, over all scans.
    fn region(&self, row: usize, column: usize, scans: usize, out: &mut [u16], scratch: &mut DecodeScratch) {
        let mut counts = vec![0_u16; BLOCK_SCANS * BLOCK_ROWS * BLOCK_COLUMNS];
        for (slab, out) in out.chunks_mut(64 * BLOCK_SCANS).enumerate() {
            let shape = shape(BLOCK_SCANS.min(scans - slab * BLOCK_SCANS));
            for band in row / BLOCK_ROWS..(row + 8).div_ceil(BLOCK_ROWS) {
                let block = self.block(slab, band * ACROSS + column / BLOCK_COLUMNS);
                decode(block, shape, &mut counts, Layout::flat(shape), scratch).expect("a block");
                for (out, scan) in out.chunks_exact_mut(64).zip(counts.chunks_exact(shape.pixels)) {
                    for r in row.max(band * BLOCK_ROWS)..(row + 8).min((band + 1) * BLOCK_ROWS) {
                        let from = (r - band * BLOCK_ROWS) * BLOCK_COLUMNS + column % BLOCK_COLUMNS;
                        out[(r - row) * 8..][..8].copy_from_slice(&scan[from..][..8]);
                    }
                }
            }
        }
    }

    fn masked(&self, mask: &[u8], scans: usize, threads: usize) -> Vec<u64> {
        let tiles: Vec<(usize, Vec<u8>)> = (0..TILES)
            .map(|tile| {
                let pixel = |p: usize| mask[corner(tile) + p / BLOCK_COLUMNS * SIDE + p % BLOCK_COLUMNS];
                (tile, (0..BLOCK_ROWS * BLOCK_COLUMNS).map(pixel).collect::<Vec<u8>>())
            })
            .filter(|(_, mask)| mask.iter().any(|m| *m != 0))
            .collect();
        let mut sums = vec![0; scans];
        let slabs = scans.div_ceil(BLOCK_SCANS).div_ceil(threads);
        in_parts(sums.chunks_mut(slabs * BLOCK_SCANS).enumerate(), |(part, sums)| {
            let mut scratch = DecodeScratch::default();
            for (slab, sums) in sums.chunks_mut(BLOCK_SCANS).enumerate() {
                for (tile, mask) in &tiles {
                    let block = self.block(part * slabs + slab, *tile);
                    add_masked_sums::<u16>(block, shape(sums.len()), mask, sums, &mut scratch)
                        .expect("a block");
                }
            }
        });
        sums
    }
}

/// Each part in a thread of its own; the results in order.
fn in_parts<P: Send, R: Send>(parts: impl Iterator<Item = P>, work: impl Fn(P) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let mut parts = parts;
        let first = parts.next();
        let others: Vec<_> = parts.map(|p| scope.spawn(move || work(p))).collect();
        let mut out: Vec<R> = first.map(work).into_iter().collect();
        out.extend(others.into_iter().map(|o| o.join().expect("a thread that ends well")));
        out
    })
}

/// Bitshuffle in blocks of 1 MiB, each a zstd frame of level 3; one context for all.
struct Native {
    frames: Vec<Vec<Vec<u8>>>,
}

impl Native {
    fn encode(counts: &[u16], threads: usize) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(counts);
        let part = bytes.len().div_ceil(threads).next_multiple_of(MIB);
        let frames = in_parts(bytes.chunks(part), |bytes| {
            let mut context = Compressor::new(3).expect("a context");
            let (mut shuffled, mut frame) = (vec![0; MIB], vec![0; zstd::zstd_safe::compress_bound(MIB)]);
            let blocks = bytes.chunks(MIB).map(|block| {
                bitshuffle::shuffle_block(block, &mut shuffled[..block.len()], 2);
                let n = context.compress_to_buffer(&shuffled[..block.len()], &mut frame).expect("a frame");
                frame[..n].to_vec()
            });
            blocks.collect()
        });
        Self { frames }
    }

    fn bytes(&self) -> usize {
        self.frames.iter().flatten().map(Vec::len).sum()
    }

    fn decode(&self, out: &mut [u16], threads: usize) {
        let frames: Vec<&Vec<u8>> = self.frames.iter().flatten().collect();
        let out: &mut [u8] = bytemuck::cast_slice_mut(out);
        let part = frames.len().div_ceil(threads);
        in_parts(frames.chunks(part).zip(out.chunks_mut(part * MIB)), |(frames, out)| {
            let mut context = Decompressor::new().expect("a context");
            let mut shuffled = vec![0; MIB];
            for (frame, out) in frames.iter().zip(out.chunks_mut(MIB)) {
                context.decompress_to_buffer(frame, &mut shuffled[..out.len()]).expect("a frame");
                bitshuffle::unshuffle_block(&shuffled[..out.len()], out, 2);
            }
        });
    }
}
