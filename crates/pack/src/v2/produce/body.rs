//! The HDF5 file around payload and index: what a person finds who opens a pack with h5py.
//!
//! | object | what |
//! |---|---|
//! | `/tensilo_pack/payload` | u8, the shards |
//! | `/tensilo_pack/index` | u8, the index |
//! | `/tensilo_pack` | attributes: format version, shapes, element type, cut, hashes |
//! | `/mask/excluded`, `/mask/codes` | excluded flat pixels; the mask's codes where the source has them |
//! | `/calibration` | attributes, as far as they are known |
//! | `/provenance` | file names, lengths, hashes and roles of the source's files; attributes: kind, identity |

use crate::v2::format::index::PackIndex;
use crate::v2::format::preamble::Extent;
use crate::v2::source::inspect::{Inspection, SourceKind};
use tensilo_core::{Error, Result};
use tensilo_hdf5::write::{ContiguousWriter, FileWriter, Filters, Value};

const GROUP: &str = "/tensilo_pack";
/// Where the payload is for HDF5.
pub(crate) const PAYLOAD: &str = "/tensilo_pack/payload";
/// Where the index is for HDF5.
pub(crate) const INDEX: &str = "/tensilo_pack/index";
/// Where the mask's codes are.
pub(crate) const CODES: &str = "/mask/codes";

/// Writes the payload, whose length is known at its end.
pub(super) fn payload<T>(
    writer: &mut FileWriter<'_>,
    fill: impl FnOnce(&mut ContiguousWriter<'_, '_>) -> Result<(T, u64)>,
) -> Result<(T, Extent)> {
    let mut to = writer.dataset(PAYLOAD).element::<u8>().shape(&[0]).growing_writer()?;
    let offset = to.offset().ok_or_else(|| Error::invalid("the payload has no place"))?;
    let (made, bytes) = fill(&mut to)?;
    to.finish()?;
    Ok((made, Extent { offset, bytes }))
}

/// Writes everything else; returns where the index is.
pub(super) fn describe(
    writer: &mut FileWriter<'_>,
    inspection: &Inspection,
    index: &PackIndex,
    encoded: &[u8],
) -> Result<Extent> {
    let length = encoded.len() as u64;
    let mut to = writer.dataset(INDEX).element::<u8>().shape(&[length]).contiguous_writer()?;
    let offset = to.offset().ok_or_else(|| Error::invalid("the index has no place"))?;
    to.write(encoded)?;
    to.finish()?;
    let l = &index.layout;
    let block = l.block();
    let list = |values: &[u64]| Value::array(values, &[values.len() as u64]);
    let attributes = [
        ("format", Value::fixed_text("tensilo pack")),
        ("format_version", Value::scalar(2_u32)),
        ("scan_shape", list(l.scan_shape())?),
        ("detector_shape", list(l.detector_shape())?),
        ("dtype", Value::fixed_text(l.counts().name())),
        ("block", list(&[block.rows.into(), block.columns.into(), block.scans.into()])?),
        ("scans_per_shard", Value::scalar(l.shard_scans())),
        ("shards", Value::scalar(l.shards())),
        ("excluded_pixels", Value::scalar(index.excluded.len() as u64)),
        ("logical_sha256", Value::fixed_text(&index.raw_sha256.to_string())),
    ];
    for (name, value) in attributes {
        writer.attribute(GROUP, name, value)?;
    }
    mask(writer, inspection, index)?;
    calibration(writer, inspection)?;
    provenance(writer, inspection)?;
    Ok(Extent { offset, bytes: length })
}

fn mask(writer: &mut FileWriter<'_>, inspection: &Inspection, index: &PackIndex) -> Result<()> {
    let shape = index.layout.detector_shape();
    writer.create_group("/mask")?;
    writer.attribute("/mask", "origin", Value::fixed_text(index.mask_origin.name()))?;
    writer.attribute("/mask", "sha256", Value::fixed_text(&index.mask_sha256.to_string()))?;
    if !index.excluded.is_empty() {
        writer.dataset("/mask/excluded").shape(&[index.excluded.len() as u64]).write(&index.excluded)?;
    }
    if let Some(codes) = &inspection.mask {
        let filters = Filters::new().shuffle().deflate(4);
        writer.dataset(CODES).shape(shape).chunk(shape).filters(filters).write(codes)?;
    }
    Ok(())
}

fn calibration(writer: &mut FileWriter<'_>, inspection: &Inspection) -> Result<()> {
    let c = &inspection.calibration;
    writer.create_group("/calibration")?;
    writer.attribute("/calibration", "sha256", Value::fixed_text(&c.sha256().to_string()))?;
    for (name, value) in [
        ("scan_row_sampling_nm", c.scan_row_sampling_nm),
        ("scan_column_sampling_nm", c.scan_column_sampling_nm),
        ("detector_row_sampling", c.detector_row_sampling),
        ("detector_column_sampling", c.detector_column_sampling),
    ] {
        if let Some(value) = value {
            writer.attribute("/calibration", name, Value::scalar(value))?;
        }
    }
    if let Some(unit) = &c.detector_sampling_unit {
        writer.attribute("/calibration", "detector_sampling_unit", Value::fixed_text(unit))?;
    }
    Ok(())
}

/// File names only: a path says something about a machine, not about a source.
fn provenance(writer: &mut FileWriter<'_>, inspection: &Inspection) -> Result<()> {
    let members = &inspection.members;
    let texts = |of: fn(&crate::source::inspect::SourceMember) -> String| -> Vec<String> {
        members.iter().map(of).collect()
    };
    let names = texts(|m| m.path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let (roles, sums) = (texts(|m| m.role.name().to_owned()), texts(|m| m.sha256.to_string()));
    let n = [members.len() as u64];
    for (name, texts) in [("member_names", names), ("member_roles", roles), ("member_sha256", sums)] {
        writer.dataset(format!("/provenance/{name}")).shape(&n).write_texts(&texts)?;
    }
    let bytes: Vec<u64> = members.iter().map(|m| m.bytes).collect();
    writer.dataset("/provenance/member_bytes").shape(&n).write(&bytes)?;
    writer
        .dataset("/provenance/member_frames")
        .shape(&[inspection.frames.len() as u64])
        .write(&inspection.frames)?;
    writer.attribute("/provenance", "source_kind", Value::fixed_text(inspection.kind.name()))?;
    if let SourceKind::Hdf5 { object } = &inspection.kind {
        writer.attribute("/provenance", "source_object", Value::fixed_text(object))?;
    }
    let identity = inspection.source_identity.to_string();
    writer.attribute("/provenance", "source_identity_sha256", Value::fixed_text(&identity))
}
