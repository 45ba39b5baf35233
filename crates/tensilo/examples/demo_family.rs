//! Makes the demonstration family in `examples/family`: a master and three data files of a synthetic 4D-STEM scan.
//!
//! `cargo run -p tensilo --example demo_family -- FOLDER` writes `demo_master.h5` and `demo_data_00000N.h5`. The
//! same bytes come out every time and everywhere: all arithmetic is on integers, and the noise has a fixed seed.
//!
//! The specimen is a ring with a bar across it. Where there is material the bright disk fades and moves against
//! the slope, and six weaker disks appear around it.

use std::error::Error;
use std::path::Path;
use tensilo::core::io::SystemDisk;
use tensilo::hdf5::write::{FileWriter, Filters, Value, WriteOptions};

const SCAN_ROWS: i64 = 16;
const SCAN_COLUMNS: i64 = 32;
const SIDE: i64 = 64;
const PIXELS: usize = (SIDE * SIDE) as usize;
/// Frames of each data file; tiles of 32 scans straddle them.
const MEMBERS: [usize; 3] = [200, 200, 112];
/// Defective pixels: row, column, mask code, and the count that they always show.
const DEFECTS: [(usize, usize, u32, u16); 5] =
    [(3, 60, 1, 65535), (20, 31, 2, 0), (32, 33, 16, 65535), (47, 8, 8, 3), (63, 0, 1 << 31, 65535)];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: demo_family FOLDER")?;
    let folder = Path::new(&folder);
    let mut scan = 0;
    for (i, frames) in MEMBERS.into_iter().enumerate() {
        let mut counts = Vec::with_capacity(frames * PIXELS);
        for _ in 0..frames {
            counts.extend(frame(scan));
            scan += 1;
        }
        member(&folder.join(format!("demo_data_{:06}.h5", i + 1)), scan - frames as i64, &counts)?;
    }
    master(&folder.join("demo_master.h5"))
}

/// One data file: a stack of frames, each a chunk.
fn member(path: &Path, first: i64, counts: &[u16]) -> Result<(), Box<dyn Error>> {
    let frames = counts.len() / PIXELS;
    let side = SIDE as u64;
    let mut w = FileWriter::create(SystemDisk::shared(), path, WriteOptions::default())?;
    w.create_group("/entry")?;
    w.attribute("/entry", "NX_class", "NXentry")?;
    w.create_group("/entry/data")?;
    w.attribute("/entry/data", "NX_class", "NXdata")?;
    w.dataset("/entry/data/data")
        .shape(&[frames as u64, side, side])
        .max_shape(&[None, Some(side), Some(side)])
        .chunk(&[1, side, side])
        .filters(Filters::bitshuffle_lz4())
        .attribute("image_nr_low", Value::scalar(first as i32 + 1))
        .attribute("image_nr_high", Value::scalar(first as i32 + frames as i32))
        .write(counts)?;
    w.finish()?;
    Ok(())
}

/// The file that names the others, with mask, scan shape and calibration.
fn master(path: &Path) -> Result<(), Box<dyn Error>> {
    let frames: usize = MEMBERS.iter().sum();
    let mut w = FileWriter::create(SystemDisk::shared(), path, WriteOptions::default())?;
    for (group, class) in [
        ("/entry", "NXentry"),
        ("/entry/data", "NXdata"),
        ("/entry/instrument", "NXinstrument"),
        ("/entry/instrument/detector", "NXdetector"),
        ("/entry/instrument/detector/detectorSpecific", "NXcollection"),
        ("/entry/instrument/scan", "NXcollection"),
    ] {
        w.create_group(group)?;
        w.attribute(group, "NX_class", class)?;
    }
    w.attribute("/entry/data", "scan_shape", Value::array(&[SCAN_ROWS, SCAN_COLUMNS], &[2])?)?;
    for i in 1..=MEMBERS.len() {
        w.external_link(
            format!("/entry/data/data_{i:06}"),
            format!("demo_data_{i:06}.h5"),
            "/entry/data/data",
        )?;
    }
    let detector = "/entry/instrument/detector";
    w.dataset(format!("{detector}/description")).write_value(Value::fixed_text("synthetic demonstration"))?;
    w.dataset(format!("{detector}/bit_depth_image")).write_value(Value::scalar(16_u16))?;
    for (name, metres) in [("detector_distance", 0.1), ("y_pixel_size", 0.000_1), ("x_pixel_size", 0.000_1)] {
        w.dataset(format!("{detector}/{name}"))
            .attribute("units", "m")
            .write_value(Value::scalar::<f64>(metres))?;
    }
    let mut mask = vec![0_u32; PIXELS];
    for (row, column, code, _) in DEFECTS {
        mask[row * SIDE as usize + column] = code;
    }
    let specific = format!("{detector}/detectorSpecific");
    w.dataset(format!("{specific}/pixel_mask")).shape(&[SIDE as u64, SIDE as u64]).write(&mask)?;
    w.dataset(format!("{specific}/ntrigger")).write_value(Value::scalar(frames as u64))?;
    w.dataset(format!("{specific}/nimages")).write_value(Value::scalar(1_u64))?;
    w.dataset(format!("{specific}/compression")).write_value(Value::fixed_text("bslz4"))?;
    for name in ["y_pixel_size", "x_pixel_size"] {
        w.dataset(format!("/entry/instrument/scan/{name}"))
            .attribute("units", "nm")
            .write_value(Value::scalar(0.25_f64))?;
    }
    w.finish()?;
    Ok(())
}

/// The counts of one scan position.
fn frame(scan: i64) -> Vec<u16> {
    let (row, column) = (scan / SCAN_COLUMNS, scan % SCAN_COLUMNS);
    let thickness = thickness(row, column);
    // Centre of the bright disk in quarters of a pixel: it moves against the slope.
    let down = thickness_step(row, column, 1, 0);
    let right = thickness_step(row, column, 0, 1);
    let centre = (2 * (SIDE - 1) - down, 2 * (SIDE - 1) - right);
    // Six spots on a hexagon of radius 20 pixels, in quarters of a pixel.
    let spots = [(0, 80), (69, 40), (69, -40), (0, -80), (-69, -40), (-69, 40)];
    let mut noise = Noise(0x7465_6e73_696c_6f00 + scan as u64);
    let mut counts = Vec::with_capacity(PIXELS);
    for y in 0..SIDE {
        for x in 0..SIDE {
            // Mean in 1/256 counts.
            let mut mean = 10;
            if disk(4 * y - centre.0, 4 * x - centre.1, 40) {
                mean += (90 - 5 * thickness) * 256;
            }
            for (dy, dx) in spots {
                if disk(4 * y - centre.0 - dy, 4 * x - centre.1 - dx, 16) {
                    mean += thickness * 384;
                }
            }
            counts.push(noise.counts(mean));
        }
    }
    for (row, column, _, count) in DEFECTS {
        counts[row * SIDE as usize + column] = count;
    }
    counts
}

/// Does this distance lie in a disk?
fn disk(dy: i64, dx: i64, radius: i64) -> bool {
    dy * dy + dx * dx <= radius * radius
}

/// Thickness of the specimen, 0 to 12: a ring of radius 6 scans, and a bar.
fn thickness(row: i64, column: i64) -> i64 {
    let (y, x) = (2 * row - (SCAN_ROWS - 1), 2 * column - (SCAN_COLUMNS - 1));
    let from_centre = y * y + x * x;
    // Squared radii in half scans: 6 ± 2 scans.
    let ring = if (64..=256).contains(&from_centre) { 12 - (from_centre - 144).abs() / 20 } else { 0 };
    let bar = if y.abs() <= 3 && x.abs() < 28 { 9 } else { 0 };
    ring.max(bar).clamp(0, 12)
}

/// How much thicker it is behind than before, along one direction.
fn thickness_step(row: i64, column: i64, down: i64, right: i64) -> i64 {
    thickness(row + down, column + right) - thickness(row - down, column - right)
}

/// Reproducible noise: SplitMix64.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Counts of a mean given in 1/256, spread like a Poisson distribution of it: the number of ones in 4 m random
    /// bits has the variance m.
    fn counts(&mut self, mean: i64) -> u16 {
        let whole = mean >> 8;
        let part = i64::from((self.next() & 255) < (mean & 255) as u64);
        let mut bits = 4 * whole;
        let mut ones = 0;
        while bits > 0 {
            let n = bits.min(64);
            ones += i64::from((self.next() >> (64 - n)).count_ones());
            bits -= n;
        }
        (whole + part + ones - 2 * whole).max(0) as u16
    }
}
