//! `tensilo pack read`: a frame, the diffraction sum or a virtual detector, as an array or a picture.

use super::{format2, is_2};
use crate::exit::{Answer, Outcome};
use crate::output::Output;
use crate::output::picture::{Picture, Scale};
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::Error;
use tensilo::convert::npy::NpyWriter;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::pack::products::{Bands, Request, Ring, middle};
use tensilo::pack::read::{Pack, ReadOptions};

/// Arguments of `pack read`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["frame", "scan", "diffraction", "disk"])))]
pub struct ReadArguments {
    /// The pack.
    pub pack: PathBuf,

    /// One diffraction frame: the scan's ROW,COLUMN.
    #[arg(long, value_name = "ROW,COLUMN", value_parser = pair::<u32>)]
    pub frame: Option<(u32, u32)>,

    /// One diffraction frame of a scan with any number of axes, for packs of format 2.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub scan: Option<Vec<u64>>,

    /// Restore the excluded pixels of the frame.
    #[arg(long, conflicts_with_all = ["diffraction", "disk"])]
    pub raw: bool,

    /// The sum of all frames.
    #[arg(long)]
    pub diffraction: bool,

    /// A virtual detector: the sum of every frame inside a disk of OUTER pixels, or in a ring INNER:OUTER.
    #[arg(long, value_name = "[INNER:]OUTER", value_parser = ring)]
    pub disk: Option<(f64, f64)>,

    /// Centre of the virtual detector in pixels; the middle of the detector if not given.
    #[arg(long, value_name = "ROW,COLUMN", value_parser = pair::<f64>, requires = "disk")]
    pub center: Option<(f64, f64)>,

    /// The file to write: .npy for the exact numbers, .png for a picture.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,

    /// Brightness of a picture by the logarithm of the counts.
    #[arg(long)]
    pub log: bool,

    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,
}

pub(super) fn pair<T: std::str::FromStr>(text: &str) -> Result<(T, T), String> {
    let wanted = || format!("two numbers with a comma between are wanted, such as 3,4, not {text:?}");
    let (a, b) = text.split_once(',').ok_or_else(wanted)?;
    Ok((a.trim().parse().map_err(|_| wanted())?, b.trim().parse().map_err(|_| wanted())?))
}

pub(super) fn ring(text: &str) -> Result<(f64, f64), String> {
    let (inner, outer) = text.split_once(':').unwrap_or(("0", text));
    let parsed = (inner.trim().parse::<f64>(), outer.trim().parse::<f64>());
    match parsed {
        (Ok(i), Ok(o)) if i >= 0.0 && o >= i && o.is_finite() => Ok((i, o)),
        _ => Err(format!("a radius such as 12, or a ring such as 12:30, is wanted, not {text:?}")),
    }
}

/// Reads.
pub fn run(a: &ReadArguments, out: &mut Output) -> Outcome {
    if is_2(&a.pack) {
        return format2::read(a, out);
    }
    if a.scan.is_some() {
        return Err(Error::invalid("--scan is for packs of format 2").hint("--frame ROW,COLUMN").into());
    }
    let options = ReadOptions { threads: Threads::new(a.threads), ..ReadOptions::default() };
    let pack = Pack::open_with(&a.pack, options)?;
    let [scan_rows, scan_columns, rows, columns] = pack.shape();
    let monitor = out.monitor();
    if let Some((row, column)) = a.frame {
        let scan = pack.scan(row, column)?;
        let frame = if a.raw { pack.raw_frame(scan)? } else { pack.frame(scan)? };
        let bytes: Vec<u8> = frame.iter().flat_map(|v| v.to_le_bytes()).collect();
        let values: Vec<f64> = frame.iter().map(|v| f64::from(*v)).collect();
        return save(a, "<u2", [rows, columns], &bytes, &values);
    }
    if a.diffraction {
        let request = Request { diffraction: true, ..Request::default() };
        let sum = pack.products(&request, &monitor)?.diffraction_sum.unwrap_or_default();
        return save_sums(a, [rows, columns], &sum);
    }
    let (inner, outer) = a.disk.unwrap_or_default();
    let center = a.center.map_or_else(|| middle(pack.geometry()), |(r, c)| [r, c]);
    let bands = Bands::rings(pack.geometry(), &[Ring { center, inner, outer }])?;
    let products = pack.products(&Request { bands: Some(bands), ..Request::default() }, &monitor)?;
    let sums = products.bands.map(|[first, ..]| first.to_u64()).unwrap_or_default();
    save_sums(a, [scan_rows, scan_columns], &sums)
}

fn save_sums(a: &ReadArguments, shape: [u32; 2], sums: &[u64]) -> Outcome {
    let bytes: Vec<u8> = sums.iter().flat_map(|v| v.to_le_bytes()).collect();
    let values: Vec<f64> = sums.iter().map(|v| *v as f64).collect();
    save(a, "<u8", shape, &bytes, &values)
}

fn save(a: &ReadArguments, descr: &str, shape: [u32; 2], bytes: &[u8], values: &[f64]) -> Outcome {
    let extension = a.output.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension {
        "npy" => {
            let mut npy = NpyWriter::create(Arc::new(SystemDisk), &a.output, descr, &shape.map(u64::from))?;
            npy.write(bytes)?;
            npy.finish(a.force)?;
        }
        "png" => {
            let scale = if a.log { Scale::Logarithmic } else { Scale::Linear };
            Picture::new(shape, values, scale).save(&a.output, a.force)?;
        }
        _ => {
            return Err(
                Error::invalid(format!("{} ends neither in .npy nor in .png", a.output.display())).into()
            );
        }
    }
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_rings_are_read() {
        assert_eq!(pair::<u32>("3, 4"), Ok((3, 4)));
        assert!(pair::<u32>("3").is_err() && pair::<u32>("-1,2").is_err());
        assert_eq!(ring("12"), Ok((0.0, 12.0)));
        assert_eq!(ring("2.5:9"), Ok((2.5, 9.0)));
        assert!(ring("9:2").is_err() && ring("nan").is_err() && ring("-1").is_err());
    }
}
