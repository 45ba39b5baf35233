//! `tensilo pack unpack`: the exact counts again, as .npy or as HDF5 of the source's layout.

use super::{format2, is_2};
use crate::exit::{Answer, Outcome};
use crate::output::{Output, human};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::Error;
use tensilo::convert::npy::NpyWriter;
use tensilo::core::io::SystemDisk;
use tensilo::core::threads::Threads;
use tensilo::pack::Sha256Sum;
use tensilo::pack::read::{Pack, ReadOptions, Values};

/// Arguments of `pack unpack`.
#[derive(Debug, Args)]
pub struct UnpackArguments {
    /// The pack.
    pub pack: PathBuf,

    /// The file to write: .npy for one array of four dimensions, .h5 or .hdf5 for a stack of bitshuffle/LZ4 frames as
    /// in the source.
    pub output: PathBuf,

    /// Set excluded pixels to 0 instead of restoring them.
    #[arg(long)]
    pub masked: bool,

    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,

    /// Threads to use; 0 means all cores.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub threads: usize,
}

/// Unpacks.
pub fn run(a: &UnpackArguments, out: &mut Output) -> Outcome {
    if is_2(&a.pack) {
        return format2::unpack(a, out);
    }
    let options = ReadOptions { threads: Threads::new(a.threads), ..ReadOptions::default() };
    let pack = Pack::open_with(&a.pack, options)?;
    let values = if a.masked { Values::Masked } else { Values::Raw };
    let extension = a.output.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let monitor = out.monitor();
    let exported = match extension {
        "npy" => {
            let shape = pack.shape().map(u64::from);
            let mut npy = NpyWriter::create(Arc::new(SystemDisk), &a.output, "<u2", &shape)?;
            let mut bytes = Vec::new();
            let exported = pack.export(values, &monitor, &mut |frames| {
                bytes.clear();
                bytes.extend(frames.iter().flat_map(|v| v.to_le_bytes()));
                npy.write(&bytes)
            })?;
            npy.finish(a.force)?;
            exported
        }
        "h5" | "hdf5" => pack.export_hdf5(Arc::new(SystemDisk), &a.output, values, a.force, &monitor)?,
        _ => {
            let e = format!("{} ends neither in .npy nor in .h5 or .hdf5", a.output.display());
            return Err(Error::invalid(e).into());
        }
    };
    drop(monitor);
    report(a, out, exported.frames, &exported.sha256, exported.proven)
}

/// What was written.
pub(super) fn report(
    a: &UnpackArguments,
    out: &mut Output,
    frames: u64,
    sha256: &Sha256Sum,
    proven: bool,
) -> Outcome {
    if out.is_json() {
        let mut body = serde_json::Map::new();
        body.insert("output".into(), a.output.display().to_string().into());
        body.insert("frames".into(), frames.into());
        body.insert("logicalSHA256".into(), sha256.to_string().into());
        body.insert("proven".into(), proven.into());
        out.json("tensilo.pack.unpack/1", &body)?;
        return Ok(Answer::Yes);
    }
    out.line(format_args!("file        {}", human::name(&a.output.display().to_string())))?;
    out.line(format_args!("frames      {frames}"))?;
    let proof = if proven { "as the pack states" } else { "the pack states none" };
    out.line(format_args!("counts      {sha256} ({proof})"))?;
    Ok(Answer::Yes)
}
