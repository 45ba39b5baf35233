//! What HDF5 files say about a stack: which dataset it is, and the shape of its scan.

use super::stack::Piece;
use crate::source::{family, member};
use crate::v2::counts::CountType;
use std::path::{Path, PathBuf};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Limits, Result};
use tensilo_hdf5::read::{Dataset, File, OpenOptions};

/// How files of a source are opened.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub limits: Limits,
    pub threads: Threads,
    /// Bytes of decoded chunks that are kept for the next read.
    pub chunk_cache: usize,
}

impl Opening {
    pub fn open(&self, path: &Path) -> Result<File> {
        let options = OpenOptions {
            limits: self.limits.clone(),
            threads: self.threads,
            chunk_cache: self.chunk_cache,
            ..OpenOptions::default()
        };
        File::open_with(path, options)
    }
}

/// A stack in an HDF5 file.
#[derive(Debug)]
pub(crate) struct Found {
    pub dataset: Dataset,
    pub counts: CountType,
    /// Scan axes, of which there may be none for a single frame.
    pub scan: Vec<u64>,
    pub detector: Vec<u64>,
    /// Frames that a layer of chunks holds: what has to be decoded together. 1 without chunks.
    pub period: u64,
    /// Bytes of one decoded chunk; 0 without chunks.
    pub chunk_bytes: u64,
    /// Bytes of the decoded chunks of a layer.
    pub layer_bytes: u64,
    /// Other files that hold the counts.
    pub named: Vec<PathBuf>,
    /// Are counts put together from several datasets?
    pub gathered: bool,
}

impl Found {
    pub fn frames(&self) -> u64 {
        self.scan.iter().product()
    }

    pub fn piece(self) -> Piece {
        let scan_axes = self.scan.len();
        Piece::Hdf5 { dataset: self.dataset, scan_axes }
    }
}

/// Finds the stack of a file: the object of this name, or what a detector's file holds.
///
/// # Errors
/// `NotFound` without a stack, `Unsupported` for what is no stack of integer counts, `InvalidArgument` for too few axes.
pub(crate) fn find(
    opening: &Opening,
    path: &Path,
    object: Option<&str>,
    detector_axes: usize,
) -> Result<Found> {
    let file = opening.open(path)?;
    let unnamed = |e: Error| match (object, e.kind()) {
        (None, ErrorKind::NotFound | ErrorKind::Unsupported) if e.hint_text().is_none() => {
            e.hint("name the dataset that holds the counts with --object")
        }
        _ => e,
    };
    let dataset = match object {
        Some(object) => file.dataset(object),
        None => member::find_stack(&file),
    };
    let dataset = dataset.map_err(|e| outside(unnamed(e.in_file(path))))?;
    let name = String::from_utf8_lossy(dataset.path()).into_owned();
    describe(&file, dataset, detector_axes).map_err(|e| unnamed(e.in_object(name).in_file(path)))
}

fn describe(file: &File, dataset: Dataset, detector_axes: usize) -> Result<Found> {
    let counts = CountType::of_datatype(dataset.datatype())?;
    let shape = dataset.shape().to_vec();
    let Some(scan_axes) = shape.len().checked_sub(detector_axes) else {
        return Err(Error::invalid(format!("shape {shape:?}, but a detector of {detector_axes} axes")));
    };
    if shape.contains(&0) {
        return Err(Error::invalid(format!("shape {shape:?} holds no counts")));
    }
    let (scan, detector) = (shape[..scan_axes].to_vec(), shape[scan_axes..].to_vec());
    let origins = dataset.origins().map_err(outside)?;
    let named = named_files(file, &origins)?;
    let gathered = origins.len() > 1;
    let (mut period, mut chunk_bytes, mut layer_bytes) = (1, 0, 0);
    for origin in origins.iter().filter(|_| gathered) {
        let chunk = origin.chunk_shape().unwrap_or_default();
        let width = u64::from(origin.datatype().size);
        let bytes = chunk.iter().try_fold(width, |n, c| n.checked_mul(*c)).unwrap_or(u64::MAX);
        chunk_bytes = chunk_bytes.max(if chunk.is_empty() { 0 } else { bytes });
    }
    if let Some(chunk) = dataset.chunk_shape() {
        let split = chunk.iter().zip(&shape).take(scan_axes).position(|(c, _)| *c > 1);
        if let Some(axis) = split {
            let inner = scan[axis + 1..].iter().try_fold(1_u64, |n, d| n.checked_mul(*d));
            period = inner.and_then(|n| n.checked_mul(chunk[axis].min(scan[axis]))).unwrap_or(u64::MAX);
        }
        let width = counts.bytes() as u64;
        chunk_bytes = chunk.iter().try_fold(width, |n, c| n.checked_mul(*c)).unwrap_or(u64::MAX);
        let within = chunk.iter().zip(&shape).skip(split.map_or(scan_axes, |axis| axis + 1));
        let chunks: u64 = within.map(|(c, d)| d.div_ceil(*c)).product();
        layer_bytes = chunk_bytes.saturating_mul(chunks);
    }
    Ok(Found { dataset, counts, scan, detector, period, chunk_bytes, layer_bytes, named, gathered })
}

/// The other files that hold the counts, each once, in the order in which they are named.
fn named_files(file: &File, origins: &[Dataset]) -> Result<Vec<PathBuf>> {
    let own = file.path().and_then(|p| p.canonicalize().ok());
    let mut named: Vec<PathBuf> = Vec::new();
    for origin in origins {
        let Some(holder) = origin.file().path().and_then(|p| p.canonicalize().ok()) else {
            return Err(Error::unsupported("counts that are in no file"));
        };
        let raw = origin.external_files().map_err(outside)?;
        for path in std::iter::once(holder).chain(raw) {
            if Some(&path) != own.as_ref() && !named.contains(&path) {
                named.push(path);
            }
        }
    }
    Ok(named)
}

/// What can be done where a file may not be opened.
fn outside(e: Error) -> Error {
    match e.kind() {
        ErrorKind::Limit => e.hint("put the files that it names into its folder, or pack them by themselves"),
        _ => e,
    }
}

/// The shape of a scan of so many frames whose stack says `own`: a stated `scan_shape` of any rank that fits, the stack's
/// own axes where it has several, a square, or one axis.
///
/// # Errors
/// `InvalidArgument` when what the detector counted contradicts the frames.
pub(crate) fn scan_shape(file: &File, frames: u64, own: &[u64]) -> Result<Vec<u64>> {
    for path in ["/entry/data/data", "/entry/data"] {
        let Some(attribute) = family::attribute(file, path, "scan_shape")? else { continue };
        let shape = attribute.read::<u64>().unwrap_or_default();
        if !shape.is_empty() && shape.iter().try_fold(1_u64, |n, d| n.checked_mul(*d)) == Some(frames) {
            return Ok(shape);
        }
    }
    if own.len() > 1 {
        return Ok(own.to_vec());
    }
    let specific = "/entry/instrument/detector/detectorSpecific";
    let [triggers, images] =
        ["ntrigger", "nimages"].map(|n| family::number(file, &format!("{specific}/{n}")));
    let (triggers, images) = (triggers?.map(|(n, _)| n), images?.map(|(n, _)| n));
    if let Some(counted) = triggers.or(images) {
        // Some detectors take several images per trigger.
        let product = triggers.zip(images).map(|(t, i)| t * i);
        if counted != frames as f64 && product != Some(frames as f64) {
            return Err(Error::invalid(format!(
                "{frames} frames, but the detector counted {counted}, and no scan_shape fits"
            ))
            .hint("state the shape of the scan with --scan-shape"));
        }
    }
    let side = frames.isqrt();
    Ok(if side * side == frames { vec![side, side] } else { vec![frames] })
}
