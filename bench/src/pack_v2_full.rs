//! A detector family packed in both formats, beside each other: `pack-v2 --family`, and `pack-v2 --full` at the reference
//! size of 512 × 512 scans (19.3 GB of counts). Producing and verifying run in processes of their own.
#![expect(clippy::disallowed_methods, reason = "files that live as long as a measurement")]

use crate::clock::{self, Spent};
use crate::family::{self, PIXELS};
use crate::pack::{frames, scan};
use crate::pack_v2::seconds;
use crate::pack_v2_data::bright_field;
use crate::pack_v2_file::{RADIUS, made_first, made_second};
use std::path::Path;
use tensilo_core::threads::Threads;
use tensilo_core::{Quiet, Result};
use tensilo_pack::read::Values;
use tensilo_pack::{products, read, v2, verify};

/// Workers of both formats.
const WORKERS: usize = 2;

/// Compares both formats at a size.
pub fn run(full: bool) -> std::result::Result<(), String> {
    let text = |e: tensilo_core::Error| e.to_string();
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).map_err(|e| e.to_string())?;
    let folder = folder.path();
    let source = folder.join("source");
    std::fs::create_dir(&source).map_err(|e| e.to_string())?;
    let [rows, columns] = scan(full);
    let logical = 2 * rows * columns * PIXELS as u64;
    let (master, made) = clock::in_this_process(|| {
        let pool = family::pool(frames(full));
        family::write(&source, [rows, columns], &pool)
    });
    let master = master?;
    println!(
        "{rows} x {columns} scans, {:.2} GB of counts, {:.2} GB as stored; made in {:.0} s",
        logical as f64 / 1e9,
        size(&source) as f64 / 1e9,
        made.wall
    );
    println!(
        "{:10} {:>8} {:>30} {:>30} {:>9} {:>9} {:>9}",
        "",
        "ratio",
        "produce: wall, CPU s, MiB",
        "verify: wall, CPU s, MiB",
        "frame ms",
        "BF ms",
        "in memory"
    );
    for format in ["1", "2"] {
        let path = folder.join(format!("format{format}.h5"));
        let [produced, produced_memory] = child("produce", format, folder, &master, &path)?;
        let [verified, verified_memory] = child("verify", format, folder, &master, &path)?;
        let [frame, file, resident] = match format {
            "1" => first(&path),
            _ => second(&path),
        }
        .map_err(text)?;
        let ratio = logical as f64 / std::fs::metadata(&path).map_or(f64::NAN, |m| m.len() as f64);
        let step = |[wall, cpu]: [f64; 2], memory: [f64; 2]| {
            format!("{wall:8.2} {cpu:8.2} {:8.0}", memory[0] / f64::from(1 << 20))
        };
        println!(
            "format {format:3} {ratio:8.2} {:>30} {:>30} {:9.2} {:9.1} {:9.1}",
            step(produced, produced_memory),
            step(verified, verified_memory),
            frame * 1e3,
            file * 1e3,
            resident * 1e3
        );
        std::fs::remove_file(&path).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Bytes of the files in a folder.
fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum()
}

/// Wall and CPU seconds, then bytes of memory, of a step in a process of its own.
fn child(
    what: &str,
    format: &str,
    folder: &Path,
    master: &Path,
    path: &Path,
) -> std::result::Result<[[f64; 2]; 2], String> {
    let out = std::process::Command::new(std::env::current_exe().map_err(|e| e.to_string())?)
        .args(["pack-v2-child", what, format])
        .args([folder, master, path])
        .output()
        .map_err(|e| e.to_string())?;
    if !out.status.success() {
        return Err(format!("{what} of format {format}: {}", String::from_utf8_lossy(&out.stderr)));
    }
    let text = String::from_utf8_lossy(&out.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [wall, cpu, memory] => Ok([[wall, cpu], [memory, 0.0]]),
        _ => Err(format!("{what} said {text}")),
    }
}

/// What the processes of [`run`] do.
pub fn in_child(args: &[String]) -> std::result::Result<(), String> {
    let [what, format, folder, master, path] = args else {
        return Err("pack-v2-child is for `pack-v2 --full`".into());
    };
    let (folder, master, path) = (Path::new(folder), Path::new(master), Path::new(path));
    let threads = Threads::new(WORKERS);
    let work = || -> Result<bool> {
        match (what.as_str(), format.as_str()) {
            ("produce", "1") => made_first(master, folder, path, threads).map(|()| true),
            ("produce", _) => made_second(master, path, threads).map(|()| true),
            (_, "1") => {
                let options = verify::VerifyOptions { threads, ..Default::default() };
                Ok(verify::verify(path, &options, &Quiet)?.is_proven())
            }
            _ => {
                let options = v2::verify::VerifyOptions { threads, ..Default::default() };
                Ok(v2::verify::verify(path, &options, &Quiet)?.is_proven())
            }
        }
    };
    let (done, Spent { wall, cpu }) = clock::in_this_process(work);
    if !done.map_err(|e| e.to_string())? {
        return Err("what was packed is not proven".into());
    }
    println!("{wall} {cpu} {}", clock::peak_resident());
    Ok(())
}

/// Seconds of one frame, and of a bright-field image from the file and from memory (packed; planes of format 2).
fn first(path: &Path) -> Result<[f64; 3]> {
    let options =
        || read::ReadOptions { threads: Threads::new(WORKERS), cached_bytes: 0, ..Default::default() };
    let pack = read::Pack::open_with(path, options())?;
    let mut frame = vec![0_u16; PIXELS];
    let mut scan = 0;
    let one = seconds(5, || {
        // Another shard each time.
        scan = (scan + 4099) % pack.geometry().scans();
        pack.frame_into(scan, Values::Raw, &mut frame).expect("a frame");
    });
    let ring = products::Ring::centered(pack.geometry(), 0.0, RADIUS);
    let bands = products::Bands::rings(pack.geometry(), &[ring])?;
    let request = products::Request { bands: Some(bands), ..Default::default() };
    let file = seconds(1, || {
        std::hint::black_box(pack.products(&request, &Quiet).expect("an image"));
    });
    let pack = pack.resident(&Quiet)?;
    let memory = seconds(3, || {
        std::hint::black_box(pack.products(&request, &Quiet).expect("an image"));
    });
    Ok([one, file, memory])
}

fn second(path: &Path) -> Result<[f64; 3]> {
    let options = v2::read::ReadOptions { threads: Threads::new(WORKERS), ..Default::default() };
    let pack = v2::read::Pack::open_with(path, options)?;
    let mut frame = vec![0_u16; PIXELS];
    let mut scan = 0;
    let one = seconds(5, || {
        scan = (scan + 4099) % pack.layout().scans();
        let bytes = bytemuck::cast_slice_mut(&mut frame);
        pack.frames_into(scan..scan + 1, Values::Raw, bytes, &Quiet).expect("a frame");
    });
    let mask = bright_field();
    let file = seconds(1, || drop(pack.virtual_image(&mask, &Quiet).expect("an image")));
    let pack = pack.planes(&Quiet)?;
    let memory = seconds(3, || drop(pack.virtual_image(&mask, &Quiet).expect("an image")));
    Ok([one, file, memory])
}
