//! Inspecting a source: files, shape, mask, calibration, identity; no value is decoded.

use crate::digest::Sha256Sum;
use crate::geometry::Geometry;
use crate::identity::{self, MaskOrigin};
use crate::source::calibration::Calibration;
use std::path::PathBuf;
use tensilo_core::{Error, Result};

/// What a file is to its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Names the data files; holds mask, calibration and scan shape.
    Master,
    /// Holds frames.
    Data,
}

impl Role {
    /// The contract's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Data => "data",
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
}
