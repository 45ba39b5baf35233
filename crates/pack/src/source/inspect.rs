//! Inspecting a source: files, shape, mask, calibration, identity; no value is decoded.

use crate::digest::Sha256Sum;
use crate::geometry::Geometry;
use crate::identity::{self, MaskOrigin};
use crate::leftovers::{self, Leftovers};
use crate::source::authentication::{self, examine};
use crate::source::calibration::Calibration;
use crate::source::catalog::{self, Dataset};
use crate::source::prepare::{self, IndexFolder};
use crate::source::{family, mask, member};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::{Disk, Fingerprint, SystemDisk};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Limits, Monitor, Result};

/// What a file is to its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Names the data files; holds mask, calibration and scan shape.
    Master,
    /// Holds frames.
    Data,
    /// Holds counts that the data file before it names: raw data, or a source of its virtual dataset.
    Named,
}

impl Role {
    /// The contract's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Data => "data",
            Self::Named => "named",
        }
    }
}

/// One file of a family, hashed whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceMember {
    /// Master or data.
    pub role: Role,
    /// Absolute path.
    pub path: PathBuf,
    /// Length.
    pub bytes: u64,
    /// Hash of the whole file.
    pub sha256: Sha256Sum,
}

/// What inspection found.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// The dataset's name: the stem of its files.
    pub dataset: String,
    /// Twenty hexadecimal digits of what the files are now; names the folder of prepared indexes.
    pub id: String,
    /// The files, master first.
    pub members: Vec<SourceMember>,
    /// Identity of the source.
    pub source_identity: Sha256Sum,
    /// Shape of the acquisition.
    pub geometry: Geometry,
    /// Element type of the source: `uint16` or `uint8`.
    pub source_dtype: &'static str,
    /// Frames of each data file, in order.
    pub frames: Vec<u64>,
    /// Bytes of all prepared indexes.
    pub prepared_index_bytes: u64,
    /// Bytes of the largest LZ4 block.
    pub maximum_compressed_block_bytes: u64,
    /// Excluded flat pixels, ascending.
    pub excluded: Vec<u32>,
    /// Hash of that list.
    pub excluded_sha256: Sha256Sum,
    /// Hash of the complete mask.
    pub mask_sha256: Sha256Sum,
    /// Where the mask came from.
    pub mask_origin: MaskOrigin,
    /// Sampling.
    pub calibration: Calibration,
    /// The prepared index of each data file, where it could be kept.
    pub index_files: Vec<PathBuf>,
    /// What dead runs left behind where this run looks.
    pub leftovers: Leftovers,
}

/// How a source is inspected.
#[derive(Debug, Clone)]
pub struct InspectOptions {
    /// Which dataset, by name or path, where the source has several.
    pub dataset: Option<String>,
    /// Where prepared indexes are kept; the user's cache folder when absent, and then only if it can be written.
    pub index_dir: Option<PathBuf>,
    /// Also look here for what dead runs left: a destination, or a folder of packs.
    pub destination: Option<PathBuf>,
    /// Most threads.
    pub threads: Threads,
    /// What the files may make us allocate.
    pub limits: Limits,
    /// Where prepared indexes are written.
    pub disk: Arc<dyn Disk>,
}

impl Default for InspectOptions {
    fn default() -> Self {
        Self {
            dataset: None,
            index_dir: None,
            destination: None,
            threads: Threads::default(),
            limits: Limits::default(),
            disk: SystemDisk::shared(),
        }
    }
}

/// Inspects a source: a master, a data file, or a folder with exactly one dataset.
///
/// Every file is hashed whole. No logical volume is allocated: memory is bounded by the prepared index.
///
/// # Errors
/// `InvalidArgument` for several datasets or impossible shapes, `NotFound`, naming files or datasets that are not
/// there, `Unsupported` for frames that packing does not take, `Corrupt`, `SourceChanged`, `Io`, the monitor's.
pub fn inspect(source: &Path, options: &InspectOptions, monitor: &dyn Monitor) -> Result<Inspection> {
    let dataset = catalog::choose(source, options.dataset.as_deref())?;
    let folder = IndexFolder::choose(options.index_dir.as_deref(), &options.disk);
    let mut inspection = inspect_dataset(&dataset, &folder, options, monitor)?;
    let beside = if source.is_dir() { Some(source) } else { None };
    for place in beside.into_iter().chain(options.destination.as_deref()) {
        inspection.leftovers.add(leftovers::find(place, &*options.disk)?);
    }
    Ok(inspection)
}

fn inspect_dataset(
    dataset: &Dataset,
    folder: &IndexFolder,
    options: &InspectOptions,
    monitor: &dyn Monitor,
) -> Result<Inspection> {
    let files = family::files(dataset, &options.limits)?;
    let snapshots = snapshots(&files)?;
    let id = identity::dataset_id(snapshots.iter().map(|(p, f)| (&**p, *f)));
    let data = || files.iter().filter(|(role, _)| *role == Role::Data).map(|(_, p)| p.as_path());
    let prepared = prepare::prepare(data(), &id, folder, options, monitor)?;
    let first = prepared.first().ok_or_else(|| Error::not_found("the dataset has no data file"))?;
    let shape = first.index.shape();
    for other in &prepared[1..] {
        let s = other.index.shape();
        if (s.detector, s.value_bytes) != (shape.detector, shape.value_bytes) {
            return Err(Error::invalid(format!(
                "frames of {:?} and {} bytes per value, those of the first member are {:?} and {}",
                s.detector, s.value_bytes, shape.detector, shape.value_bytes
            ))
            .in_file(&other.path));
        }
    }
    let frames: Vec<u64> = prepared.iter().map(|p| p.index.shape().frames).collect();
    let total = frames.iter().try_fold(0_u64, |n, f| n.checked_add(*f));
    let total = total.ok_or_else(|| Error::invalid("2^64 frames or more"))?;
    // Where there is no master, the first data file holds what a master would.
    let describing = &files[0].1;
    let file = member::open(describing, &options.limits)?;
    let located = |e: Error| e.in_file(describing);
    let scan = family::scan_shape(&file, total).map_err(located)?;
    let [rows, columns] = shape.detector;
    let geometry = Geometry::new([scan[0], scan[1], rows.into(), columns.into()]).map_err(located)?;
    let mask = mask::read(&file, &geometry).map_err(located)?;
    let calibration = family::calibration(&file).map_err(located)?;
    drop(file);
    let hashed = authentication::hash_members(&files, options.threads, monitor, "hashing source")?;
    if hashed.iter().map(|(_, f)| f).ne(snapshots.iter().map(|(_, f)| f)) {
        return Err(Error::source_changed("a member changed while it was inspected").in_file(describing));
    }
    let members: Vec<SourceMember> = hashed.into_iter().map(|(m, _)| m).collect();
    let sums = |role| members.iter().filter(move |m| m.role == role).map(|m| m.sha256);
    let data_sums: Vec<Sha256Sum> = sums(Role::Data).collect();
    Ok(Inspection {
        dataset: dataset.name.clone(),
        id,
        source_identity: identity::source_identity(sums(Role::Master).next().as_ref(), &data_sums),
        geometry,
        source_dtype: if shape.value_bytes == 1 { "uint8" } else { "uint16" },
        frames,
        prepared_index_bytes: prepared.iter().map(|p| p.bytes).sum(),
        maximum_compressed_block_bytes: prepared
            .iter()
            .map(|p| u64::from(p.index.largest_block()))
            .max()
            .unwrap_or(0),
        excluded_sha256: Sha256Sum::of_u32(&mask.excluded),
        excluded: mask.excluded,
        mask_sha256: mask.sha256,
        mask_origin: mask.origin,
        calibration,
        index_files: prepared.into_iter().filter_map(|p| p.kept).collect(),
        members,
        leftovers: Leftovers::default(),
    })
}

fn snapshots(files: &[(Role, PathBuf)]) -> Result<Vec<(PathBuf, Fingerprint)>> {
    files.iter().map(|(_, path)| Ok((path.clone(), examine(path)?))).collect()
}

impl Inspection {
    /// Is this inspection one that inspecting could have made?
    ///
    /// # Errors
    /// `InvalidArgument`, naming what contradicts itself.
    pub fn check_consistency(&self) -> Result<()> {
        let fail = |what: &str| Err(Error::invalid(format!("the inspection contradicts itself: {what}")));
        let masters = self.members.iter().filter(|m| m.role == Role::Master).count();
        if masters > 1 || (masters == 1 && self.members[0].role != Role::Master) {
            return fail("a master is not the first member");
        }
        let master = self.members.first().filter(|m| m.role == Role::Master).map(|m| &m.sha256);
        let data: Vec<Sha256Sum> = self.members[masters..].iter().map(|m| m.sha256).collect();
        if data.is_empty() || data.len() != self.frames.len() {
            return fail("data files and their frames");
        }
        if identity::source_identity(master, &data) != self.source_identity {
            return fail("the source identity is not that of its members");
        }
        if self.frames.iter().try_fold(0_u64, |n, f| n.checked_add(*f)) != Some(self.geometry.scans()) {
            return fail("the members' frames do not make the scan");
        }
        let pixels = self.geometry.pixels();
        let ordered = self.excluded.windows(2).all(|w| w[0] < w[1])
            && self.excluded.last().is_none_or(|e| u64::from(*e) < pixels);
        if !ordered || self.excluded.len() as u64 >= pixels {
            return fail("the excluded pixels");
        }
        if Sha256Sum::of_u32(&self.excluded) != self.excluded_sha256 {
            return fail("the excluded pixels and their hash");
        }
        if self.mask_origin == MaskOrigin::Implicit
            && (!self.excluded.is_empty() || self.mask_sha256 != identity::implicit_mask_sha256(pixels))
        {
            return fail("the implicit mask");
        }
        Ok(())
    }

    /// The files that hold frames, in order.
    pub(crate) fn data_files(&self) -> impl Iterator<Item = &SourceMember> {
        self.members.iter().filter(|m| m.role == Role::Data)
    }

    /// Roles and paths, master first.
    pub(crate) fn files(&self) -> Vec<(Role, PathBuf)> {
        self.members.iter().map(|m| (m.role, m.path.clone())).collect()
    }

    /// The inspection as JSON, with the contract's names.
    pub fn to_json(&self) -> Value {
        let calibration = self.calibration.receipt_object();
        json!({
            "dataset": self.dataset,
            "datasetID": self.id,
            "sourceMembers": self.members.iter().map(SourceMember::to_json).collect::<Vec<_>>(),
            "sourceIdentitySHA256": self.source_identity,
            "sourceShape": self.geometry.shape(),
            "sourceDtype": self.source_dtype,
            "sourceLogicalBytes": u64::try_from(self.geometry.logical_bytes()).unwrap_or(u64::MAX),
            "preparedIndexBytes": self.prepared_index_bytes,
            "preparedIndexFiles": self.index_files,
            "maximumCompressedBlockBytes": self.maximum_compressed_block_bytes,
            "badPixelIndices": self.excluded,
            "badPixelIdentitySHA256": self.excluded_sha256,
            "detectorMaskIdentitySHA256": self.mask_sha256,
            "detectorMaskIdentityOrigin": self.mask_origin.name(),
            "calibration": calibration,
            "leftovers": self.leftovers.to_json(),
        })
    }
}

impl SourceMember {
    /// The receipt's form.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "role": self.role.name(),
            "path": self.path,
            "bytes": self.bytes,
            "sha256": self.sha256,
        })
    }
}
