//! How our time grows with size, chunks, objects and points: measured at powers of ten, printed with the slope on
//! logarithmic axes (1 is linear), and drawn.

use crate::data::Random;
use crate::plot::Plot;
use crate::report::Report;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tensilo_core::array::{Points, Selection};
use tensilo_core::io::SystemDisk;
use tensilo_hdf5::read::File;
use tensilo_hdf5::write::{FileWriter, Filters, WriteOptions};

type Series = Vec<(f64, f64)>;

/// Seconds of the fastest of a few calls.
fn time(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    for round in 0..9 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
        if round >= 2 && begin.elapsed().as_secs_f64() > 2.0 {
            break;
        }
    }
    best
}

fn writer(path: &Path) -> Result<FileWriter<'_>, String> {
    FileWriter::create(SystemDisk::shared(), path, WriteOptions::default()).map_err(|e| e.to_string())
}

fn text(e: tensilo_core::Error) -> String {
    e.to_string()
}

fn open(path: &Path) -> File {
    File::open(path).expect("a file of ours")
}

/// A file with one dataset of `n` doubles in `chunks` chunks, shuffled and deflated or plain.
fn dataset(folder: &Path, n: u64, chunks: u64, filtered: bool) -> Result<PathBuf, String> {
    let path = folder.join(format!("scale-{n}-{chunks}-{filtered}.h5"));
    if path.exists() {
        return Ok(path); // made for another series
    }
    let mut random = Random(5);
    let values: Vec<f64> = (0..n).map(|i| (i / 7) as f64 + (random.next() % 4) as f64).collect();
    let mut w = writer(&path)?;
    let mut d = w.dataset("/x").shape(&[n]).chunk(&[n.div_ceil(chunks)]);
    if filtered {
        d = d.filters(Filters::new().shuffle().deflate(4));
    }
    d.write(&values).map_err(text)?;
    w.finish().map_err(text)?;
    Ok(path)
}

fn by_size(folder: &Path) -> Result<Series, String> {
    let mut series = Vec::new();
    for mib in [1_u64, 4, 16, 64, 256] {
        let path = dataset(folder, mib << 17, (mib * 4).max(1), true)?;
        let read = || drop(open(&path).dataset("x").and_then(|d| d.read::<f64>()).expect("whole"));
        series.push((mib as f64, time(read)));
    }
    Ok(series)
}

fn by_chunks(folder: &Path) -> Result<Series, String> {
    let mut series = Vec::new();
    for chunks in [10, 100, 1000, 10_000, 100_000, 1_000_000] {
        let path = dataset(folder, chunks * 8, chunks, false)?;
        let read = || drop(open(&path).dataset("x").and_then(|d| d.read::<f64>()).expect("whole"));
        series.push((chunks as f64, time(read)));
    }
    Ok(series)
}

fn by_objects(folder: &Path) -> Result<(Series, Series), String> {
    let (mut walk, mut one) = (Vec::new(), Vec::new());
    for objects in [10, 100, 1000, 10_000, 100_000_u64] {
        let path = folder.join(format!("scale-objects-{objects}.h5"));
        let mut w = writer(&path)?;
        for i in 0..objects {
            w.dataset(format!("/d{i}")).shape(&[4]).write(&[i as f64; 4]).map_err(text)?;
        }
        w.finish().map_err(text)?;
        let name = |i: u64| format!("d{i}");
        let read = |file: &File, i| drop(file.dataset(name(i)).and_then(|d| d.read::<f64>()).expect("whole"));
        walk.push((
            objects as f64,
            time(|| {
                let file = open(&path);
                (0..objects).for_each(|i| read(&file, i));
            }),
        ));
        one.push((objects as f64, time(|| read(&open(&path), objects / 2))));
    }
    Ok((walk, one))
}

fn by_points(folder: &Path) -> Result<Series, String> {
    let n = 1 << 23;
    let path = dataset(folder, n, 256, true)?;
    let mut series = Vec::new();
    for points in [10, 100, 1000, 10_000, 100_000, 1_000_000] {
        let mut random = Random(9);
        let wanted = (0..points).map(|_| random.next() % n).collect();
        let selection = Selection::from(Points::new(1, wanted).map_err(text)?);
        let read = || {
            drop(open(&path).dataset("x").and_then(|d| d.read_selection::<f64>(&selection)).expect("whole"));
        };
        series.push((points as f64, time(read)));
    }
    Ok(series)
}

/// The slope between the last two decades on logarithmic axes.
fn slope(series: &Series) -> f64 {
    match series.as_slice() {
        [.., (x, t), _, (y, u)] => (u / t).ln() / (y / x).ln(),
        _ => f64::NAN,
    }
}

/// Measures all four, and draws them.
pub fn run(folder: &Path, report: &mut Report) -> Result<(), String> {
    let (walk, one) = by_objects(folder)?;
    let all = [
        ("size", "MiB, shuffle + gzip 4", by_size(folder)?),
        ("chunks", "chunks of 64 bytes", by_chunks(folder)?),
        ("objects", "datasets walked", walk),
        ("one object", "datasets beside the one that is opened", one),
        ("points", "points of 64 MiB in 256 chunks", by_points(folder)?),
    ];
    for (name, unit, series) in &all {
        let steps: Vec<String> = series.iter().map(|(x, t)| format!("{x}: {:.3} ms", t * 1e3)).collect();
        report.note(format!(
            "time by {name} ({unit}): {}; slope at the end {:.2}",
            steps.join(", "),
            slope(series)
        ));
    }
    for (name, unit, series) in all {
        report.plot(Plot::new(format!("hdf5-read-{}", name.replace(' ', "-")), unit, series));
    }
    Ok(())
}
