//! What the files of a family say about the whole: members, scan shape, calibration (contract, 4 and 5.1).

use crate::source::calibration::{Calibration, metres};
use crate::source::catalog::{Dataset, normal};
use crate::source::inspect::Role;
use crate::source::member;
use std::path::{Component, Path, PathBuf};
use tensilo_core::{Error, ErrorKind, Limits, Result};
use tensilo_hdf5::object::LinkTarget;
use tensilo_hdf5::read::{Attribute, File, Object};

/// The files of a dataset, master first.
///
/// # Errors
/// `NotFound`, naming the files that are not there; `InvalidArgument` when the master names files outside its folder.
pub(crate) fn files(dataset: &Dataset, limits: &Limits) -> Result<Vec<(Role, PathBuf)>> {
    let mut files = Vec::new();
    let mut data = dataset.siblings.clone();
    if let Some(master) = &dataset.master {
        files.push((Role::Master, master.clone()));
        if data.is_empty() {
            data = linked(master, limits)?;
        }
    }
    let missing: Vec<String> = data
        .iter()
        .filter(|p| std::fs::symlink_metadata(p).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound))
        .map(|p| p.display().to_string())
        .collect();
    if !missing.is_empty() {
        let e = Error::not_found(format!("data files are missing: {}", missing.join(", ")));
        return Err(e.in_file(dataset.path()));
    }
    files.extend(data.into_iter().map(|p| (Role::Data, p)));
    Ok(files)
}

/// The files that a master's external links in `/entry/data` name, by link name; the links' object paths do not
/// matter.
fn linked(master: &Path, limits: &Limits) -> Result<Vec<PathBuf>> {
    let file = member::open(master, limits)?;
    let none =
        || Error::not_found("the master has no data files beside it and links to none").in_file(master);
    let group = match file.group("/entry/data") {
        Ok(group) => group,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => return Err(none()),
        Err(e) => return Err(e),
    };
    let mut links = group.links()?;
    links.sort_by(|a, b| a.name().cmp(b.name()));
    let folder = master.parent().unwrap_or(Path::new("/"));
    let mut data: Vec<PathBuf> = Vec::new();
    for link in &links {
        let LinkTarget::External { file: name, .. } = link.target() else { continue };
        let name = std::str::from_utf8(name)
            .map_err(|_| Error::unsupported("a link names a file that is no UTF-8").in_file(master))?;
        let inside =
            Path::new(name).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if !inside {
            return Err(Error::invalid(format!(
                "link {} names {name:?}, which is outside the master's folder",
                link.text()
            ))
            .in_file(master));
        }
        let path = normal(&folder.join(name))?;
        if !data.contains(&path) {
            data.push(path);
        }
    }
    if data.is_empty() { Err(none()) } else { Ok(data) }
}

/// Scan rows and columns: a `scan_shape` that fits the frames, else their square root, if what the detector counted
/// does not contradict it.
///
/// # Errors
/// `InvalidArgument` when the frames fit neither.
pub(crate) fn scan_shape(file: &File, frames: u64) -> Result<[u64; 2]> {
    for path in ["/entry/data/data", "/entry/data"] {
        let Some(attribute) = attribute(file, path, "scan_shape")? else { continue };
        if let [rows, columns] = attribute.read::<u64>().unwrap_or_default()[..]
            && rows.checked_mul(columns) == Some(frames)
        {
            return Ok([rows, columns]);
        }
    }
    let specific = "/entry/instrument/detector/detectorSpecific";
    let [triggers, images] = ["ntrigger", "nimages"].map(|n| number(file, &format!("{specific}/{n}")));
    let (triggers, images) = (triggers?.map(|(n, _)| n), images?.map(|(n, _)| n));
    if let Some(counted) = triggers.or(images) {
        // Some detectors take several images per trigger.
        let product = triggers.zip(images).map(|(t, i)| t * i);
        if counted != frames as f64 && product != Some(frames as f64) {
            return Err(Error::invalid(format!(
                "{frames} frames, but the detector counted {counted}, and no scan_shape fits"
            )));
        }
    }
    let side = frames.isqrt();
    if side * side != frames {
        return Err(Error::invalid(format!("{frames} frames are no square, and no scan_shape fits them")));
    }
    Ok([side, side])
}

/// Sampling of scan and detector.
pub(crate) fn calibration(file: &File) -> Result<Calibration> {
    let scan_step = |axis: char| -> Result<Option<f64>> {
        for path in [
            format!("/entry/instrument/scan/{axis}_pixel_size"),
            format!("/entry/instrument/scan/step_{axis}"),
            format!("/entry/measurement/scan_step_{axis}"),
            format!("/entry/scan/{axis}_pixel_size"),
        ] {
            // A scan step without units is not known.
            if let Some((value, Some(unit))) = number(file, &path)?
                && let Some(factor) = metres(&unit)
                && let Some(nanometres) = sampling((value * factor) * 1e9)
            {
                return Ok(Some(nanometres));
            }
        }
        Ok(None)
    };
    let detector = |name: &str| -> Result<Option<f64>> {
        let found = number(file, &format!("/entry/instrument/detector/{name}"))?;
        Ok(found.and_then(|(value, unit)| Some(value * unit.as_deref().map_or(Some(1.0), metres)?)))
    };
    let distance = detector("detector_distance")?.and_then(sampling);
    let angle = |pixel: Option<f64>| sampling((pixel? / distance?).atan() * 1000.0);
    let detector_row_sampling = angle(detector("y_pixel_size")?);
    let detector_column_sampling = angle(detector("x_pixel_size")?);
    let known = detector_row_sampling.is_some() || detector_column_sampling.is_some();
    Ok(Calibration {
        scan_row_sampling_nm: scan_step('y')?,
        scan_column_sampling_nm: scan_step('x')?,
        detector_row_sampling,
        detector_column_sampling,
        detector_sampling_unit: known.then(|| "mrad".to_owned()),
    })
}

/// A sampling is finite and positive.
fn sampling(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

/// The only value of a numeric dataset, and its units.
pub(crate) fn number(file: &File, path: &str) -> Result<Option<(f64, Option<String>)>> {
    let Some(dataset) = member::find(file, path)? else { return Ok(None) };
    if dataset.elements() != 1 {
        return Ok(None);
    }
    // Text, say, where a number is expected, is no number.
    let Ok(values) = dataset.read::<f64>() else { return Ok(None) };
    let units = match dataset.attribute("units") {
        Ok(units) => units.read_string().ok(),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    Ok(values.first().map(|v| (*v, units)))
}

pub(crate) fn attribute(file: &File, path: &str, name: &str) -> Result<Option<Attribute>> {
    let object = match file.object(path) {
        Ok(object) => object,
        // A link to a file that is not there, say.
        Err(_) => return Ok(None),
    };
    let found = match &object {
        Object::Dataset(d) => d.attribute(name),
        Object::Group(g) => g.attribute(name),
        _ => return Ok(None),
    };
    match found {
        Ok(attribute) => Ok(Some(attribute)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
