//! Whole packs of both formats, made of one stack and read in every way: what `pack-v2` says beside h5py's files.
#![expect(clippy::disallowed_methods, reason = "files that live as long as a measurement")]

use crate::family::{self, PIXELS, SIDE};
use crate::pack_v2::{one_frame, seconds, verdict};
use crate::pack_v2_data::{Stack, bright_field};
use std::path::{Path, PathBuf};
use tensilo_core::array::{Axis, Selection};
use tensilo_core::io::SystemDisk;
use tensilo_core::threads::Threads;
use tensilo_core::{Quiet, Result, buffer};
use tensilo_pack::read::{Region, Values};
use tensilo_pack::{products, read, v2};

/// Corner of the region of 8 × 8 pixels.
pub const CORNER: [usize; 2] = [64, 96];
/// Radius of the bright-field disk.
pub const RADIUS: f64 = 34.23;

/// Ratio of a file, and seconds of what is done with it; not a number where it was not.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub ratio: f64,
    /// Making the file of a source, and reading all of it, by one thread and by two.
    pub make: [f64; 2],
    pub cube: [f64; 2],
    pub frame: f64,
    pub region: f64,
    /// A bright-field image from the file, by two threads where there are two.
    pub image: f64,
    /// The same from the packed bytes in memory, and from planes in memory.
    pub resident: f64,
    pub planes: f64,
}

impl Row {
    pub fn head() {
        println!(
            "  {:27} {:>9} {:>8} {:>8} {:>8} {:>8}  GB/s {:>8} {:>8} {:>8} {:>8} {:>8}  ms",
            "whole files",
            "ratio",
            "make",
            "on two",
            "read",
            "on two",
            "frame",
            "region",
            "BF",
            "resident",
            "planes"
        );
    }

    /// Says it; `gb` are the counts' gigabytes.
    pub fn say(&self, name: &str, gb: f64) {
        let text = |v: f64, digits: usize| match v {
            v if v.is_finite() => format!("{v:8.digits$}"),
            _ => format!("{:>8}", "–"),
        };
        let speeds = [self.make[0], self.make[1], self.cube[0], self.cube[1]].map(|s| text(gb / s, 2));
        let times =
            [self.frame, self.region, self.image, self.resident, self.planes].map(|s| text(s * 1e3, 2));
        println!("  {name:27}  {} {}       {}", text(self.ratio, 2), speeds.join(" "), times.join(" "));
    }
}

/// Makes and reads packs of both formats.
pub fn packs(stack: &Stack, scans: usize, folder: &Path) -> std::result::Result<Row, String> {
    let gb = 2e-9 * stack.counts.len() as f64;
    let source = folder.join("source");
    std::fs::create_dir(&source).map_err(|e| e.to_string())?;
    let rows = 1 << (scans.ilog2() / 2);
    let scan = [rows, scans as u64 / rows];
    let master = family::write_stack(&source, scan, &stack.counts).map_err(|e| e.to_string())?;
    Row::head();
    let two = second(stack, &master, folder).map_err(|e| e.to_string())?;
    two.say("format 2 pack", gb);
    match first(stack, &master, folder) {
        Ok(one) => one.say("format 1 pack", gb),
        Err(e) => println!("  format 1 pack: refused: {e}"),
    }
    Ok(two)
}

fn threads() -> [Threads; 2] {
    [Threads::new(1), Threads::new(2)]
}

/// Removes a pack and its receipt.
fn remove(path: &Path) {
    // Before the first one there is nothing to remove.
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_file(tensilo_pack::receipt_path(path));
}

fn ratio(stack: &Stack, path: &Path) -> f64 {
    2.0 * stack.counts.len() as f64 / std::fs::metadata(path).map_or(f64::NAN, |m| m.len() as f64)
}

/// The sums over the bright-field disk.
fn expected_image(stack: &Stack) -> Vec<u64> {
    let mask = bright_field();
    let sum = |f: &[u16]| f.iter().zip(&mask).map(|(v, m)| u64::from(*v) * u64::from(*m)).sum();
    stack.counts.chunks_exact(PIXELS).map(sum).collect()
}

fn expected_region(stack: &Stack) -> Vec<u16> {
    let of_frame = |f: &[u16]| -> Vec<u16> {
        (0..64).map(|i| f[(CORNER[0] + i / 8) * SIDE + CORNER[1] + i % 8]).collect()
    };
    stack.counts.chunks_exact(PIXELS).flat_map(of_frame).collect()
}

fn second(stack: &Stack, master: &Path, folder: &Path) -> Result<Row> {
    let path = folder.join("two.h5");
    let make = threads().map(|threads| {
        remove(&path);
        let mut done = Ok(());
        let time = seconds(1, || done = made_second(master, &path, threads));
        done.map(|()| time)
    });
    let [one, two] = make;
    let make = [one?, two?];
    let mut cube: Vec<u16> = buffer::zeroed_vec(stack.counts.len())?;
    let open =
        |threads| v2::read::Pack::open_with(&path, v2::read::ReadOptions { threads, ..Default::default() });
    let mut times = [f64::NAN; 2];
    for (time, threads) in times.iter_mut().zip(threads()) {
        let pack = open(threads)?;
        let all = 0..pack.layout().scans();
        let mut read =
            || pack.frames_into(all.clone(), Values::Raw, bytemuck::cast_slice_mut(&mut cube), &Quiet);
        read()?;
        *time = seconds(5, || read().expect("what was read can be read"));
        assert!(cube == stack.counts, "the pack has the counts");
        cube.fill(1);
    }
    let pack = open(threads()[1])?;
    let wanted = one_frame(stack.counts.len() / PIXELS);
    let mut frame = vec![0_u16; PIXELS];
    let one = wanted as u64..wanted as u64 + 1;
    let frame_time = seconds(9, || {
        let bytes = bytemuck::cast_slice_mut(&mut frame);
        pack.frames_into(one.clone(), Values::Raw, bytes, &Quiet).expect("a frame");
    });
    assert!(frame == stack.counts[wanted * PIXELS..][..PIXELS]);
    let axis = |start: usize| Axis::Regular { start: start as u64, stride: 1, count: 8, block: 1 };
    let shape = pack.shape();
    let scan = shape[..2].iter().map(|n| Axis::all(*n));
    let region = Selection::Axes(scan.chain(CORNER.map(axis)).collect());
    let mut found = Vec::new();
    let region_time = seconds(5, || found = pack.read::<u16>(&region, Values::Raw).expect("a region"));
    assert!(found == expected_region(stack));
    let (mask, expected) = (bright_field(), expected_image(stack));
    let mut image = Vec::new();
    let from_file = seconds(5, || image = pack.virtual_image(&mask, &Quiet).expect("an image"));
    assert!(image == expected);
    let resident = pack.resident(&Quiet)?;
    let from_memory = seconds(5, || image = resident.virtual_image(&mask, &Quiet).expect("an image"));
    assert!(image == expected);
    let planes = pack.planes(&Quiet)?;
    println!("  planes in memory: {:.2} : 1", 2.0 * stack.counts.len() as f64 / planes.bytes() as f64);
    let from_planes = seconds(9, || image = planes.virtual_image(&mask, &Quiet).expect("an image"));
    assert!(image == expected);
    Ok(Row {
        ratio: ratio(stack, &path),
        make,
        cube: times,
        frame: frame_time,
        region: region_time,
        image: from_file,
        resident: from_memory,
        planes: from_planes,
    })
}

pub fn made_second(master: &Path, path: &Path, threads: Threads) -> Result<()> {
    use v2::{plan, produce, source::inspect};
    let options = inspect::InspectOptions { threads, ..Default::default() };
    let inspection = inspect::inspect(master, &options, &Quiet)?;
    let options = plan::PlanOptions { threads, ..Default::default() };
    let plan = plan::plan(&inspection, path, &options, &SystemDisk)?;
    produce::produce(&inspection, &plan, &produce::ProduceOptions::default(), &Quiet)?;
    Ok(())
}

fn first(stack: &Stack, master: &Path, folder: &Path) -> Result<Row> {
    let path: PathBuf = folder.join("one.h5");
    let make = threads().map(|threads| {
        remove(&path);
        let mut done = Ok(());
        let time = seconds(1, || done = made_first(master, folder, &path, threads));
        done.map(|()| time)
    });
    let [one, two] = make;
    let make = [one?, two?];
    let mut cube: Vec<u16> = buffer::zeroed_vec(stack.counts.len())?;
    let open = |threads| read::Pack::open_with(&path, read::ReadOptions { threads, ..Default::default() });
    let mut times = [f64::NAN; 2];
    for (time, threads) in times.iter_mut().zip(threads()) {
        let pack = open(threads)?;
        let all = 0..pack.geometry().scans();
        let mut read = || pack.frames_into(all.clone(), Values::Raw, &mut cube, &Quiet);
        read()?;
        *time = seconds(5, || read().expect("what was read can be read"));
        assert!(cube == stack.counts, "the pack has the counts");
        cube.fill(1);
    }
    let pack = open(threads()[1])?;
    let wanted = one_frame(stack.counts.len() / PIXELS);
    let mut frame = vec![0_u16; PIXELS];
    let frame_time = seconds(9, || pack.frame_into(wanted as u64, Values::Raw, &mut frame).expect("a frame"));
    assert!(frame == stack.counts[wanted * PIXELS..][..PIXELS]);
    let [rows, columns] = CORNER.map(|at| at as u32..at as u32 + 8);
    let region = Region::all(pack.shape()).detector(rows, columns);
    let mut found = Vec::new();
    let region_time = seconds(5, || found = pack.raw_region(&region).expect("a region"));
    assert!(found == expected_region(stack));
    let ring = products::Ring::centered(pack.geometry(), 0.0, RADIUS);
    let bands = products::Bands::rings(pack.geometry(), &[ring])?;
    let request = products::Request { bands: Some(bands), ..Default::default() };
    // Opened anew, so that shards come from the file.
    let from_file = seconds(5, || {
        let pack = open(threads()[1]).expect("a pack");
        std::hint::black_box(pack.products(&request, &Quiet).expect("an image"));
    });
    let resident = pack.resident(&Quiet)?;
    let from_memory = seconds(5, || {
        std::hint::black_box(resident.products(&request, &Quiet).expect("an image"));
    });
    Ok(Row {
        ratio: ratio(stack, &path),
        make,
        cube: times,
        frame: frame_time,
        region: region_time,
        image: from_file,
        resident: from_memory,
        planes: f64::NAN,
    })
}

pub fn made_first(master: &Path, folder: &Path, path: &Path, threads: Threads) -> Result<()> {
    use tensilo_pack::{plan, produce, source::inspect};
    let index_dir = Some(folder.join("index"));
    let options = inspect::InspectOptions { index_dir: index_dir.clone(), threads, ..Default::default() };
    let inspection = inspect::inspect(master, &options, &Quiet)?;
    let options = plan::PlanOptions { threads, ..Default::default() };
    let plan = plan::plan(&inspection, path, &options, &SystemDisk)?;
    produce::produce(
        &inspection,
        &plan,
        &produce::ProduceOptions { index_dir, ..Default::default() },
        &Quiet,
    )?;
    Ok(())
}

/// Says which goals of reading are met. `chunk` is h5py's frame from a chunk of its own, `image` its best image, seconds.
pub fn judge(ours: &Row, chunk: f64, image: f64) {
    let met = ours.frame <= 3e-3 || ours.frame <= 4.0 * chunk;
    let times = ours.frame / chunk;
    println!(
        "  one frame {:.2} ms (goal 3), {times:.1} × h5py's (goal 4): {}",
        ours.frame * 1e3,
        verdict(met)
    );
    for (what, time, goal) in [("the file", ours.image, 10.0), ("planes in memory", ours.planes, 100.0)] {
        let times = image / time;
        println!(
            "  × h5py's bright field, from {what:23} {times:6.1} (goal {goal}): {}",
            verdict(times >= goal)
        );
    }
}
