//! Memory of a filtered write that is larger than what is held: chunks are made one by one and compressed with shuffle
//! and zstd 3, and the highest resident size of a process of its own is taken, less what it was before.

use super::shown;
use crate::report::Report;
use std::path::Path;
use std::process::Command;
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::read::File;
use tensilo_hdf5::write::{FileWriter, Filters, WriteOptions};

/// The argument that makes this program the process that is measured.
const CHILD: &str = "write-once";

/// Frames of 512 × 512 counts, 512 KiB.
const FRAME: usize = 512 * 512;

/// What may be held beyond the input.
const GOAL_MIB: f64 = 128.0;

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// A frame of counts below 8, cheap to make and not too easy to compress.
fn frame(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(2 * FRAME);
    for _ in 0..FRAME / 16 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Sixteen counts of four bits, mostly 0 and 1.
        let bits = state & (state >> 1) & 0x3333_3333_3333_3333 | (state & 0x1111_1111_1111_1111);
        for i in 0..16 {
            out.extend_from_slice(&(((bits >> (4 * i)) & 7) as u16).to_le_bytes());
        }
    }
    out
}

/// Writes so many frames and prints the growth in KiB, when the arguments say that this is that process.
pub fn child(args: &[String]) -> bool {
    let [name, path, frames] = args else { return false };
    if name != CHILD {
        return false;
    }
    let frames: u64 = frames.parse().expect("a number of frames");
    drop(frame(0));
    let before = status("VmRSS");
    let mut w = FileWriter::create(SystemDisk::shared(), path, WriteOptions::default()).expect("a new file");
    let d = w.dataset("counts").element::<u16>().shape(&[frames, 512, 512]).chunk(&[1, 512, 512]);
    let mut chunks = d.filters(Filters::new().shuffle().zstd(3)).chunk_writer().expect("a dataset");
    for i in 0..frames {
        chunks.write_chunk(&[i, 0, 0], frame(i)).expect("a chunk");
    }
    chunks.finish().expect("a dataset");
    w.finish().expect("a file");
    println!("{}", status("VmHWM").saturating_sub(before));
    true
}

/// Measures a write of 10 GB, or of 1 GB.
pub fn run(report: &mut Report, full: bool) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("large.h5");
    let frames = if full { 10_000_000_000 } else { 1_000_000_000_u64 }.div_ceil(2 * FRAME as u64);
    let begun = std::time::Instant::now();
    let out = Command::new(&this).args([CHILD, &shown(&path), &frames.to_string()]).output();
    let seconds = begun.elapsed().as_secs_f64();
    let out = out.map_err(|e| e.to_string())?;
    let held: f64 = String::from_utf8_lossy(&out.stdout).trim().parse().map_err(|_| {
        format!("the process that is measured failed: {}", String::from_utf8_lossy(&out.stderr))
    })?;
    let held = held / 1024.0;
    let stored = compare(&path, frames)?;
    report.note(format!(
        "memory of a filtered write of {:.2} GB in chunks, shuffle and zstd 3, {:.2} GB stored, {seconds:.1} s: {held:.1} MiB beyond the input (goal {GOAL_MIB}, {})",
        (frames * 2 * FRAME as u64) as f64 / 1e9,
        stored as f64 / 1e9,
        if held < GOAL_MIB { "reached" } else { "missed" }
    ));
    Ok(())
}

/// Reads some frames back; returns the file's length.
fn compare(path: &Path, frames: u64) -> Result<u64, String> {
    let file = File::open(path).and_then(|f| f.dataset("counts")).map_err(|e| e.to_string())?;
    for i in (0..frames).step_by(97).chain([frames - 1]) {
        let slab = tensilo_core::array::Hyperslab::new(vec![i, 0, 0], vec![1, 512, 512]);
        let read = file.read_bytes(&slab.into()).map_err(|e| e.to_string())?;
        if read != frame(i) {
            return Err(format!("frame {i} is read otherwise than it was written"));
        }
    }
    std::fs::metadata(path).map(|m| m.len()).map_err(|e| e.to_string())
}
