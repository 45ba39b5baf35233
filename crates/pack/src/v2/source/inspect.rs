//! Inspecting a source for format 2: files, shape, element type, mask, calibration, identity; no count is decoded.

use super::family::{self, Opening};
use super::npy::NpyStack;
use super::stack::{Frames, Piece};
use crate::digest::Sha256Sum;
use crate::geometry::Geometry;
use crate::identity::{self, MaskOrigin};
use crate::leftovers::{self, Leftovers};
use crate::read::{Pack, ReadOptions};
use crate::source::authentication;
use crate::source::calibration::Calibration;
use crate::source::inspect::{Role, SourceMember};
use crate::source::{catalog, family as v1_family, mask};
use crate::v2::counts::CountType;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::{ByteSource, Disk, FileSource, SystemDisk};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Limits, Monitor, Result};
use tensilo_hdf5::read::File;

/// What a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceKind {
    /// A detector's files, or a file of the same layout.
    Family,
    /// One dataset of an HDF5 file.
    Hdf5 {
        /// Its path in the file.
        object: String,
    },
    /// A `.npy` file.
    Npy,
    /// A pack of format 1.
    PackV1,
}

impl SourceKind {
    /// Its name in JSON and in the pack's provenance.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Family => "detector-family",
            Self::Hdf5 { .. } => "hdf5-dataset",
            Self::Npy => "npy",
            Self::PackV1 => "pack-format-1",
        }
    }
}

/// How a source is inspected.
#[derive(Debug, Clone)]
pub struct InspectOptions {
    /// Which dataset of a folder, by name or path.
    pub dataset: Option<String>,
    /// Path of the stack in an HDF5 file; the detector's own places when absent.
    pub object: Option<String>,
    /// Shape of the scan; what the source says when absent.
    pub scan_shape: Option<Vec<u64>>,
    /// How many of the last axes are the detector's.
    pub detector_axes: usize,
    /// Also look here for what dead runs left.
    pub destination: Option<PathBuf>,
    /// Most threads.
    pub threads: Threads,
    /// What the files may make us allocate.
    pub limits: Limits,
    /// Where leftovers are looked for.
    pub disk: Arc<dyn Disk>,
}

impl Default for InspectOptions {
    fn default() -> Self {
        Self {
            dataset: None,
            object: None,
            scan_shape: None,
            detector_axes: 2,
            destination: None,
            threads: Threads::default(),
            limits: Limits::default(),
            disk: SystemDisk::shared(),
        }
    }
}

/// What inspection found.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// The dataset's name: the stem of its files.
    pub dataset: String,
    /// What the source is.
    pub kind: SourceKind,
    /// The files, master first, hashed whole; behind a data file, those that it names and that hold its counts.
    pub members: Vec<SourceMember>,
    /// Identity of the source.
    pub source_identity: Sha256Sum,
    /// Shape of the scan.
    pub scan_shape: Vec<u64>,
    /// Shape of the detector.
    pub detector_shape: Vec<u64>,
    /// Element type.
    pub counts: CountType,
    /// Frames of each data file, in order.
    pub frames: Vec<u64>,
    /// Frames that the source's chunks make us decode together.
    pub period: u64,
    /// Bytes of the largest decoded chunk.
    pub chunk_bytes: u64,
    /// Bytes of the decoded chunks that hold `period` frames.
    pub layer_bytes: u64,
    /// Are counts put together from several datasets, in memory beside the counts?
    pub gathered: bool,
    /// Excluded flat pixels, ascending.
    pub excluded: Vec<u32>,
    /// The mask's codes, where the source has them.
    pub mask: Option<Vec<u32>>,
    /// Hash of the mask's codes; of zeros without a mask.
    pub mask_sha256: Sha256Sum,
    /// Where the mask came from.
    pub mask_origin: MaskOrigin,
    /// Sampling.
    pub calibration: Calibration,
    /// What dead runs left behind where this run looks.
    pub leftovers: Leftovers,
    detector_axes: usize,
}

/// Inspects a source: a master, a data file, a folder with one dataset, any HDF5 file with integer counts, a `.npy` file,
/// or a pack of format 1. Every file is hashed whole; no count is decoded.
///
/// # Errors
/// `NotFound`, naming what is not there; `InvalidArgument` for shapes that contradict each other; `Unsupported` for values
/// that are no counts; `Corrupt`, `SourceChanged`, `Io`, the monitor's.
pub fn inspect(source: &Path, options: &InspectOptions, monitor: &dyn Monitor) -> Result<Inspection> {
    look(source, options, Identify::Hash(monitor))
}

/// What a source is, if format 2 would take it. Nothing is hashed or decoded.
pub(crate) fn accepts(source: &Path, options: &InspectOptions) -> Option<SourceKind> {
    let found = look(source, options, Identify::No).ok()?;
    crate::v2::plan::cut(&found).is_ok().then_some(found.kind)
}

/// Are files hashed?
#[derive(Clone, Copy)]
enum Identify<'m> {
    Hash(&'m dyn Monitor),
    /// They are not; every hash is that of nothing.
    No,
}

fn look(source: &Path, options: &InspectOptions, identify: Identify<'_>) -> Result<Inspection> {
    if options.detector_axes == 0 {
        return Err(Error::invalid("a detector has at least one axis"));
    }
    let source = catalog::normal(source)?;
    let mut found = match kind_of(&source, options)? {
        SourceKind::Npy => of_npy(&source, options, identify)?,
        SourceKind::PackV1 => of_pack(&source, options, identify)?,
        _ => of_hdf5(&source, options, identify)?,
    };
    if let Some(shape) = &options.scan_shape {
        let frames: u64 = found.scan_shape.iter().product();
        if shape.is_empty() || shape.iter().try_fold(1_u64, |n, d| n.checked_mul(*d)) != Some(frames) {
            return Err(
                Error::invalid(format!("{frames} frames do not make a scan of {shape:?}")).in_file(&source)
            );
        }
        found.scan_shape.clone_from(shape);
    }
    let beside = if source.is_dir() { Some(&*source) } else { None };
    for place in beside.into_iter().chain(options.destination.as_deref()) {
        found.leftovers.add(leftovers::find(place, &*options.disk)?);
    }
    Ok(found)
}

fn kind_of(source: &Path, options: &InspectOptions) -> Result<SourceKind> {
    if source.is_dir() || options.object.is_some() {
        return Ok(SourceKind::Family);
    }
    let file = FileSource::open(source)?;
    let mut head = [0; 8];
    let n = file.len().min(8) as usize;
    file.read_at(0, &mut head[..n])?;
    Ok(if head.starts_with(b"\x93NUMPY") {
        SourceKind::Npy
    } else if head == crate::v2::format::preamble::MAGIC {
        return Err(Error::invalid("the source is a pack of format 2 already").in_file(source));
    } else if head == crate::format::prelude::MAGIC {
        SourceKind::PackV1
    } else {
        SourceKind::Family
    })
}

/// The members of a source, hashed.
fn hashed(
    files: &[(Role, PathBuf)],
    options: &InspectOptions,
    identify: Identify<'_>,
) -> Result<(Vec<SourceMember>, Sha256Sum)> {
    let Identify::Hash(monitor) = identify else {
        return Ok((Vec::new(), Sha256Sum([0; 32])));
    };
    let members = authentication::hash_members(files, options.threads, monitor, "hashing source")?;
    let members: Vec<SourceMember> = members.into_iter().map(|(m, _)| m).collect();
    let (masters, data): (Vec<_>, Vec<_>) =
        members.iter().map(|m| (m.role == Role::Master, m.sha256)).partition(|(master, _)| *master);
    let data: Vec<Sha256Sum> = data.into_iter().map(|(_, sum)| sum).collect();
    let identity = identity::source_identity(masters.first().map(|(_, sum)| sum), &data);
    Ok((members, identity))
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn of_npy(path: &Path, options: &InspectOptions, identify: Identify<'_>) -> Result<Inspection> {
    let npy = NpyStack::open(path)?;
    let Some(scan_axes) = npy.shape.len().checked_sub(options.detector_axes) else {
        let e = format!("shape {:?}, but a detector of {} axes", npy.shape, options.detector_axes);
        return Err(Error::invalid(e).in_file(path));
    };
    if npy.shape.contains(&0) {
        return Err(Error::invalid(format!("shape {:?} holds no counts", npy.shape)).in_file(path));
    }
    let (members, source_identity) = hashed(&[(Role::Data, path.to_path_buf())], options, identify)?;
    let (scan, detector) = npy.shape.split_at(scan_axes);
    Ok(Inspection {
        dataset: name_of(path),
        kind: SourceKind::Npy,
        members,
        source_identity,
        scan_shape: if scan.is_empty() { vec![1] } else { scan.to_vec() },
        detector_shape: detector.to_vec(),
        counts: npy.counts,
        frames: vec![scan.iter().product()],
        period: 1,
        chunk_bytes: 0,
        layer_bytes: 0,
        gathered: false,
        excluded: Vec::new(),
        mask: None,
        mask_sha256: identity::implicit_mask_sha256(detector.iter().product()),
        mask_origin: MaskOrigin::Implicit,
        calibration: Calibration::default(),
        leftovers: Leftovers::default(),
        detector_axes: options.detector_axes,
    })
}

fn of_pack(path: &Path, options: &InspectOptions, identify: Identify<'_>) -> Result<Inspection> {
    let pack = Pack::open(path)?;
    if !pack.has_raw() {
        return Err(
            Error::unsupported("the pack does not know the values of its excluded pixels").in_file(path)
        );
    }
    let [scan_rows, scan_columns, rows, columns] = pack.shape().map(u64::from);
    let (members, _) = hashed(&[(Role::Data, path.to_path_buf())], options, identify)?;
    let manifest = pack.manifest();
    let implicit = crate::format::manifest::implicit_mask(manifest, pack.index());
    Ok(Inspection {
        dataset: name_of(path),
        kind: SourceKind::PackV1,
        members,
        source_identity: pack.index().source_identity,
        scan_shape: vec![scan_rows, scan_columns],
        detector_shape: vec![rows, columns],
        counts: CountType::new(2, false)?,
        frames: vec![scan_rows * scan_columns],
        period: 1,
        chunk_bytes: 0,
        layer_bytes: 0,
        gathered: false,
        excluded: pack.excluded().to_vec(),
        mask: None,
        mask_sha256: manifest.mask_sha256,
        mask_origin: if implicit { MaskOrigin::Implicit } else { MaskOrigin::Source },
        calibration: manifest.calibration.clone().map(|(c, _)| c).unwrap_or_default(),
        leftovers: Leftovers::default(),
        detector_axes: 2,
    })
}

fn of_hdf5(source: &Path, options: &InspectOptions, identify: Identify<'_>) -> Result<Inspection> {
    let opening = Opening { limits: options.limits.clone(), threads: options.threads, chunk_cache: 0 };
    let (name, files) = match &options.object {
        Some(_) => (name_of(source), vec![(Role::Data, source.to_path_buf())]),
        None => {
            let dataset = catalog::choose(source, options.dataset.as_deref())?;
            (dataset.name.clone(), v1_family::files(&dataset, &options.limits)?)
        }
    };
    let object = options.object.as_deref();
    let (mut pieces, mut frames) = (Vec::new(), Vec::new());
    for (_, path) in files.iter().filter(|(role, _)| *role == Role::Data) {
        let piece = family::find(&opening, path, object, options.detector_axes)?;
        frames.push(piece.frames());
        pieces.push((path, piece));
    }
    let Some((_, first)) = pieces.first() else {
        return Err(Error::not_found("the dataset has no data file").in_file(source));
    };
    for (path, piece) in &pieces[1..] {
        if (&piece.detector, piece.counts) != (&first.detector, first.counts) {
            return Err(Error::invalid(format!(
                "frames of {:?} {}, those of the first member are {:?} {}",
                piece.detector, piece.counts, first.detector, first.counts
            ))
            .in_file(path));
        }
    }
    let total = frames.iter().try_fold(0_u64, |n, f| n.checked_add(*f));
    let total = total.ok_or_else(|| Error::invalid("2^64 frames or more").in_file(source))?;
    // Where there is no master, the first data file holds what a master would.
    let describing = &files[0].1;
    let file = opening.open(describing)?;
    let located = |e: Error| e.in_file(describing);
    let own = if pieces.len() == 1 { &first.scan[..] } else { &[] };
    let scan_shape = match &options.scan_shape {
        Some(_) => vec![total],
        None if object.is_some() && !own.is_empty() => own.to_vec(),
        None => family::scan_shape(&file, total, own).map_err(located)?,
    };
    let mask = mask_of(&file, &first.detector).map_err(located)?;
    let calibration = v1_family::calibration(&file).map_err(located)?;
    drop(file);
    let (members, source_identity) = hashed(&with_named(&files, &pieces), options, identify)?;
    Ok(Inspection {
        dataset: name,
        kind: match object {
            Some(object) => SourceKind::Hdf5 { object: object.to_owned() },
            None => SourceKind::Family,
        },
        members,
        source_identity,
        scan_shape,
        detector_shape: first.detector.clone(),
        counts: first.counts,
        frames,
        period: pieces.iter().map(|(_, p)| p.period).max().unwrap_or(1),
        chunk_bytes: pieces.iter().map(|(_, p)| p.chunk_bytes).max().unwrap_or(0),
        layer_bytes: pieces.iter().map(|(_, p)| p.layer_bytes).max().unwrap_or(0),
        gathered: pieces.iter().any(|(_, p)| p.gathered),
        excluded: mask.0.excluded,
        mask: mask.1,
        mask_sha256: mask.0.sha256,
        mask_origin: mask.0.origin,
        calibration,
        leftovers: Leftovers::default(),
        detector_axes: options.detector_axes,
    })
}

/// The files, and behind each data file those that it names and that are not among them.
fn with_named(files: &[(Role, PathBuf)], pieces: &[(&PathBuf, family::Found)]) -> Vec<(Role, PathBuf)> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut seen: Vec<PathBuf> = files.iter().map(|(_, path)| real(path)).collect();
    let mut all = Vec::new();
    for (role, path) in files {
        all.push((*role, path.clone()));
        let named = pieces.iter().filter(|(of, _)| *of == path).flat_map(|(_, piece)| &piece.named);
        for path in named.filter(|_| *role == Role::Data) {
            if !seen.contains(path) {
                seen.push(path.clone());
                all.push((Role::Named, path.clone()));
            }
        }
    }
    all
}

/// The mask and its codes; a detector of other than two axes has none.
fn mask_of(file: &File, detector: &[u64]) -> Result<(mask::Mask, Option<Vec<u32>>)> {
    let pixels = detector.iter().try_fold(1_u64, |n, d| n.checked_mul(*d)).unwrap_or(u64::MAX);
    if let [rows, columns] = *detector {
        let geometry = Geometry::new([1, 1, rows, columns])?;
        return mask::read_codes(file, &geometry);
    }
    if pixels > crate::v2::layout::MOST_PIXELS {
        return Err(Error::invalid(format!("a detector of {detector:?} has more than 2^31 pixels")));
    }
    let sha256 = identity::implicit_mask_sha256(pixels);
    Ok((mask::Mask { excluded: Vec::new(), sha256, origin: MaskOrigin::Implicit }, None))
}

impl Inspection {
    /// Shape of the whole: scan axes, then detector axes.
    pub fn shape(&self) -> Vec<u64> {
        [&self.scan_shape[..], &self.detector_shape].concat()
    }

    /// Bytes of all counts, unpacked.
    pub fn logical_bytes(&self) -> u64 {
        self.shape().iter().fold(self.counts.bytes() as u64, |n, d| n.saturating_mul(*d))
    }

    /// Roles and paths, master first.
    pub(crate) fn files(&self) -> Vec<(Role, PathBuf)> {
        self.members.iter().map(|m| (m.role, m.path.clone())).collect()
    }

    /// Opens what was inspected.
    pub(crate) fn open(&self, opening: &Opening) -> Result<Frames> {
        let changed = |path: &Path| Error::source_changed("the file is not what was inspected").in_file(path);
        let data = self.members.iter().filter(|m| m.role == Role::Data);
        let mut pieces = Vec::new();
        for (member, frames) in data.zip(&self.frames) {
            let (path, as_inspected) = (&member.path, (&self.detector_shape, self.counts, *frames));
            let piece = match &self.kind {
                SourceKind::Npy => {
                    let npy = NpyStack::open(path)?;
                    if npy.counts != self.counts || npy.shape.iter().product::<u64>() != self.elements() {
                        return Err(changed(path));
                    }
                    Piece::Npy(npy)
                }
                SourceKind::PackV1 => {
                    let options = ReadOptions {
                        limits: opening.limits.clone(),
                        threads: opening.threads,
                        ..ReadOptions::default()
                    };
                    let pack = Pack::open_with(path, options)?;
                    if pack.index().source_identity != self.source_identity {
                        return Err(changed(path));
                    }
                    Piece::Packed(pack)
                }
                SourceKind::Family | SourceKind::Hdf5 { .. } => {
                    let object = match &self.kind {
                        SourceKind::Hdf5 { object } => Some(object.as_str()),
                        _ => None,
                    };
                    let found = family::find(opening, path, object, self.detector_axes)?;
                    let known = |p: &PathBuf| {
                        self.members.iter().any(|m| m.path.canonicalize().is_ok_and(|m| m == *p))
                    };
                    if (&found.detector, found.counts, found.frames()) != as_inspected
                        || !found.named.iter().all(known)
                    {
                        return Err(changed(path));
                    }
                    found.piece()
                }
            };
            pieces.push((*frames, piece));
        }
        let pixels = self.detector_shape.iter().product::<u64>() as usize;
        Ok(Frames::new(self.counts, pixels, pieces))
    }

    fn elements(&self) -> u64 {
        self.shape().iter().fold(1, |n, d| n.saturating_mul(*d))
    }

    /// The inspection as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "format": 2,
            "dataset": self.dataset,
            "sourceKind": self.kind.name(),
            "sourceObject": match &self.kind { SourceKind::Hdf5 { object } => Some(object), _ => None },
            "sourceMembers": self.members.iter().map(SourceMember::to_json).collect::<Vec<_>>(),
            "sourceIdentitySHA256": self.source_identity,
            "sourceShape": self.shape(),
            "scanShape": self.scan_shape,
            "detectorShape": self.detector_shape,
            "sourceDtype": self.counts.name(),
            "sourceLogicalBytes": self.logical_bytes(),
            "badPixelIndices": self.excluded,
            "detectorMaskIdentitySHA256": self.mask_sha256,
            "detectorMaskIdentityOrigin": self.mask_origin.name(),
            "calibration": self.calibration.receipt_object(),
            "leftovers": self.leftovers.to_json(),
        })
    }
}
