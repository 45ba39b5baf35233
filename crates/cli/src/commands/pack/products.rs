//! `tensilo pack products`: all exact products of a pack in one pass, as .npy files and pictures.

use super::read::{pair, ring};
use super::{format2, is_2};
use crate::exit::{Answer, Outcome};
use crate::output::picture::{Picture, Scale};
use crate::output::{Output, human};
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::convert::npy::NpyWriter;
use tensilo::core::io::{Disk, SystemDisk};
use tensilo::core::threads::Threads;
use tensilo::pack::products::{Choice, Counts};
use tensilo::pack::read::{Pack, ReadOptions};
use tensilo::{Error, Result};

/// Arguments of `pack products`.
#[derive(Debug, Args)]
pub struct ProductsArguments {
    /// The pack.
    pub pack: PathBuf,

    /// The folder to write to; it is made if it does not exist.
    #[arg(long, short, value_name = "FOLDER")]
    pub output: PathBuf,

    /// Bright field: a disk of OUTER pixels, or a ring INNER:OUTER.
    #[arg(long, value_name = "[INNER:]OUTER", value_parser = ring)]
    pub bf: Option<(f64, f64)>,

    /// Annular bright field.
    #[arg(long, value_name = "INNER:OUTER", value_parser = ring)]
    pub abf: Option<(f64, f64)>,

    /// Annular dark field.
    #[arg(long, value_name = "INNER:OUTER", value_parser = ring)]
    pub adf: Option<(f64, f64)>,

    /// Centre of the bands in pixels; what the pack states, or the middle of the detector, if not given.
    #[arg(long, value_name = "ROW,COLUMN", value_parser = pair::<f64>)]
    pub center: Option<(f64, f64)>,

    /// Also all frames with blocks of N by N pixels summed.
    #[arg(long, value_name = "N")]
    pub bin: Option<u32>,

    /// Only these files, by name without .npy, with commas between.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Also a PNG picture of each image.
    #[arg(long)]
    pub png: bool,

    /// Brightness of pictures by the logarithm.
    #[arg(long, requires = "png")]
    pub log: bool,

    /// Replace files that exist.
    #[arg(long)]
    pub force: bool,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,
}

/// The name of what `--bin` makes.
const BINNED: &str = "binned";

/// Makes and writes them.
pub fn run(a: &ProductsArguments, out: &mut Output) -> Outcome {
    if is_2(&a.pack) {
        return format2::products(a, out);
    }
    let bin_named = a.only.iter().any(|n| n == BINNED);
    if bin_named && a.bin.is_none() {
        return Err(Error::invalid("binned needs --bin N").into());
    }
    let choice = Choice {
        only: a.only.iter().filter(|n| *n != BINNED).cloned().collect(),
        rings: [a.bf, a.abf, a.adf],
        center: a.center.map(|(row, column)| [row, column]),
    };
    let options = ReadOptions { threads: Threads::new(a.threads), ..ReadOptions::default() };
    let pack = Pack::open_with(&a.pack, options)?;
    let monitor = out.monitor();
    let only_bins = bin_named && choice.only.is_empty();
    let made = if only_bins { None } else { Some(pack.images(&choice, &monitor)?) };
    let images = made.as_ref().map_or(&[][..], |m| &m.images);
    SystemDisk.create_dir(&a.output).or_else(|e| match a.output.is_dir() {
        true => Ok(()),
        false => Err(e),
    })?;
    let mut written = Vec::new();
    // Every array is complete before the first gets its name.
    let mut arrays = Vec::new();
    for image in images {
        let path = a.output.join(format!("{}.npy", image.name));
        refuse_existing(&path, a.force)?;
        let (descr, shape) = (image.values.descr(), image.shape.map(u64::from));
        let mut npy = NpyWriter::create(Arc::new(SystemDisk), &path, descr, &shape)?;
        npy.write(&image.values.to_bytes())?;
        arrays.push(npy);
        written.push(entry(&path, image.name, descr, &shape));
    }
    if let Some(factor) = a.bin.filter(|_| a.only.is_empty() || bin_named) {
        let path = a.output.join("binned.npy");
        refuse_existing(&path, a.force)?;
        let (npy, shape) = binned(&pack, &path, factor, &monitor)?;
        arrays.push(npy);
        written.push(entry(&path, BINNED, "<u4", &shape));
    }
    let scale = if a.log { Scale::Logarithmic } else { Scale::Linear };
    let mut pictures = Vec::new();
    for image in images.iter().filter(|_| a.png) {
        let path = a.output.join(format!("{}.png", image.name));
        refuse_existing(&path, a.force)?;
        pictures.push((path, Picture::new(image.shape, &image.values.to_f64(), scale)));
    }
    for npy in arrays {
        npy.finish(a.force)?;
    }
    for (path, picture) in &pictures {
        picture.save(path, a.force)?;
    }
    drop(monitor);
    report(out, made.map(|m| (m.center, m.counts)), &written, &pictures)
}

pub(super) fn entry(path: &Path, name: &str, dtype: &str, shape: &[u64]) -> Value {
    json!({ "file": path.display().to_string(), "name": name, "dtype": dtype, "shape": shape })
}

/// Binned frames, some scans at a time.
fn binned(
    pack: &Pack,
    path: &Path,
    factor: u32,
    monitor: &crate::output::progress::Bar,
) -> Result<(NpyWriter, [u64; 4])> {
    let [scan_rows, scan_columns, rows, columns] = pack.shape().map(u64::from);
    if factor == 0 {
        return Err(Error::invalid("bins of 0 pixels"));
    }
    let factor64 = u64::from(factor);
    let shape = [scan_rows, scan_columns, rows.div_ceil(factor64), columns.div_ceil(factor64)];
    let mut npy = NpyWriter::create(Arc::new(SystemDisk), path, "<u4", &shape)?;
    let (scans, step) = (scan_rows * scan_columns, u64::from(pack.index().cut.scans_per_shard).min(512));
    for first in (0..scans).step_by(step as usize) {
        let part = pack.binned(first..scans.min(first + step), factor, monitor)?;
        let bytes: Vec<u8> = part.values.iter().flat_map(|v| v.to_le_bytes()).collect();
        npy.write(&bytes)?;
    }
    Ok((npy, shape))
}

pub(super) fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    if !force && path.symlink_metadata().is_ok() {
        return Err(Error::already_exists("the file exists").in_file(path).hint("--force replaces it"));
    }
    Ok(())
}

pub(super) fn report(
    out: &mut Output,
    made: Option<([f64; 2], Option<Counts>)>,
    written: &[Value],
    pictures: &[(PathBuf, Picture)],
) -> Outcome {
    let counts = made.and_then(|(_, counts)| counts);
    if out.is_json() {
        let mut body = Map::new();
        body.insert("center".into(), json!(made.map(|(center, _)| center)));
        if let Some(c) = counts {
            body.insert("totalCounts".into(), c.total.into());
            body.insert("meanCountsPerPattern".into(), json!(c.mean_per_pattern));
        }
        let pictures: Vec<String> = pictures.iter().map(|(p, _)| p.display().to_string()).collect();
        body.insert("arrays".into(), written.into());
        body.insert("pictures".into(), json!(pictures));
        out.json("tensilo.pack.products/1", &body)?;
        return Ok(Answer::Yes);
    }
    if let Some(c) = counts {
        out.line(format_args!("counts      {} in all, {:.3} for a pattern", c.total, c.mean_per_pattern))?;
    }
    let text = |v: &Value| v.as_str().map(human::name).unwrap_or_default();
    let rows: Vec<Vec<String>> = written
        .iter()
        .map(|w| vec![text(&w["name"]), text(&w["dtype"]), w["shape"].to_string(), text(&w["file"])])
        .collect();
    for line in human::columns(&rows) {
        out.line(line)?;
    }
    Ok(Answer::Yes)
}
