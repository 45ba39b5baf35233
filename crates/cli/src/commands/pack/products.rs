//! `tensilo pack products`: all exact products of a pack in one pass, as .npy files and pictures.

use super::read::{pair, ring};
use super::{format2, is_2};
use crate::exit::{Answer, Outcome};
use crate::output::picture::{Picture, Scale};
use crate::output::progress::Bar;
use crate::output::{Output, human};
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::convert::npy::NpyWriter;
use tensilo::core::io::{Disk, SystemDisk};
use tensilo::core::threads::Threads;
use tensilo::pack::products::{Choice, Counts, ImageValues};
use tensilo::pack::read::{Pack, ReadOptions};
use tensilo::pack::v2;
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

/// Centre that the bands had, and the counts in all.
type Made = ([f64; 2], Option<Counts<i128>>);

/// An image of either format.
type Image = (&'static str, Vec<u64>, ImageValues);

/// A pack of either format.
enum AnyPack {
    One(Pack),
    Two(v2::read::Pack),
}

impl AnyPack {
    fn open(path: &Path, threads: usize) -> Result<Self> {
        if is_2(path) {
            return format2::open(path, threads).map(Self::Two);
        }
        let options = ReadOptions { threads: Threads::new(threads), ..ReadOptions::default() };
        Pack::open_with(path, options).map(Self::One)
    }

    fn images(&self, choice: &Choice, monitor: &Bar) -> Result<(Vec<Image>, Made)> {
        Ok(match self {
            Self::One(pack) => {
                let made = pack.images(choice, monitor)?;
                let images =
                    made.images.into_iter().map(|i| (i.name, i.shape.map(u64::from).to_vec(), i.values));
                (images.collect(), (made.center, made.counts.map(Counts::wide)))
            }
            Self::Two(pack) => {
                let made = pack.images(choice, monitor)?;
                let images = made.images.into_iter().map(|i| (i.name, i.shape, i.values));
                (images.collect(), (made.center, made.counts))
            }
        })
    }

    /// Shape and type of the bins of all frames.
    fn binned_shape(&self, factor: u32) -> Result<(Vec<u64>, &'static str)> {
        match self {
            Self::One(_) if factor == 0 => Err(Error::invalid("bins of 0 pixels")),
            Self::One(pack) => {
                let [scan_rows, scan_columns, rows, columns] = pack.shape().map(u64::from);
                let [rows, columns] = [rows, columns].map(|n| n.div_ceil(factor.into()));
                Ok((vec![scan_rows, scan_columns, rows, columns], "<u4"))
            }
            Self::Two(pack) => pack.binned_shape(factor),
        }
    }

    /// Writes binned frames, some scans at a time.
    fn write_binned(&self, npy: &mut NpyWriter, factor: u32, monitor: &Bar) -> Result<()> {
        let (scans, step) = match self {
            Self::One(pack) => {
                (pack.geometry().scans(), u64::from(pack.index().cut.scans_per_shard).min(512))
            }
            Self::Two(pack) => (pack.layout().scans(), 2 * u64::from(pack.layout().block().scans)),
        };
        for first in (0..scans).step_by(step as usize) {
            let part = first..scans.min(first + step);
            let values = match self {
                Self::One(pack) => ImageValues::U32(pack.binned(part, factor, monitor)?.values),
                Self::Two(pack) => pack.binned(part, factor, monitor)?.values,
            };
            npy.write(&values.to_bytes())?;
        }
        Ok(())
    }
}

/// Makes and writes them.
pub fn run(a: &ProductsArguments, out: &mut Output) -> Outcome {
    let bin_named = a.only.iter().any(|n| n == BINNED);
    if bin_named && a.bin.is_none() {
        return Err(Error::invalid("binned needs --bin N").into());
    }
    let choice = Choice {
        only: a.only.iter().filter(|n| *n != BINNED).cloned().collect(),
        rings: [a.bf, a.abf, a.adf],
        center: a.center.map(|(row, column)| [row, column]),
    };
    let pack = AnyPack::open(&a.pack, a.threads)?;
    let bins = match a.bin.filter(|_| a.only.is_empty() || bin_named) {
        Some(factor) => Some((factor, pack.binned_shape(factor)?)),
        None => None,
    };
    let monitor = out.monitor();
    let only_bins = bin_named && choice.only.is_empty();
    let (images, made) = match only_bins {
        true => (Vec::new(), None),
        false => pack.images(&choice, &monitor).map(|(images, made)| (images, Some(made)))?,
    };
    SystemDisk.create_dir(&a.output).or_else(|e| if a.output.is_dir() { Ok(()) } else { Err(e) })?;
    let (mut written, mut arrays, mut pictures) = (Vec::new(), Vec::new(), Vec::new());
    let scale = if a.log { Scale::Logarithmic } else { Scale::Linear };
    // Every array is complete before the first gets its name.
    for (name, shape, values) in &images {
        let path = a.output.join(format!("{name}.npy"));
        refuse_existing(&path, a.force)?;
        let descr = values.descr();
        let mut npy = NpyWriter::create(Arc::new(SystemDisk), &path, descr, shape)?;
        npy.write(&values.to_bytes())?;
        arrays.push(npy);
        written.push(entry(&path, name, descr, shape));
        if a.png {
            let path = a.output.join(format!("{name}.png"));
            refuse_existing(&path, a.force)?;
            pictures.push((path, Picture::new(format2::flat(shape)?, &values.to_f64(), scale)));
        }
    }
    if let Some((factor, (shape, descr))) = bins {
        let path = a.output.join("binned.npy");
        refuse_existing(&path, a.force)?;
        let mut npy = NpyWriter::create(Arc::new(SystemDisk), &path, descr, &shape)?;
        pack.write_binned(&mut npy, factor, &monitor)?;
        arrays.push(npy);
        written.push(entry(&path, BINNED, descr, &shape));
    }
    arrays.into_iter().try_for_each(|npy| npy.finish(a.force).map(|_| ()))?;
    pictures.iter().try_for_each(|(path, picture)| picture.save(path, a.force))?;
    drop(monitor);
    report(out, made, &written, &pictures)
}

fn entry(path: &Path, name: &str, dtype: &str, shape: &[u64]) -> Value {
    json!({ "file": path.display().to_string(), "name": name, "dtype": dtype, "shape": shape })
}

/// A sum as JSON; as a float where it passes 64 bits.
fn number(sum: i128) -> Value {
    match (u64::try_from(sum), i64::try_from(sum)) {
        (Ok(n), _) => n.into(),
        (_, Ok(n)) => n.into(),
        _ => (sum as f64).into(),
    }
}

fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    if !force && path.symlink_metadata().is_ok() {
        return Err(Error::already_exists("the file exists").in_file(path).hint("--force replaces it"));
    }
    Ok(())
}

fn report(
    out: &mut Output,
    made: Option<Made>,
    written: &[Value],
    pictures: &[(PathBuf, Picture)],
) -> Outcome {
    let counts = made.and_then(|(_, counts)| counts);
    if out.is_json() {
        let mut body = Map::new();
        body.insert("center".into(), json!(made.map(|(center, _)| center)));
        if let Some(c) = counts {
            body.insert("totalCounts".into(), number(c.total));
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
