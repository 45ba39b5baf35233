//! From format 2 back to format 1, where that can hold the counts. The other way is [`produce`](super::produce::produce)
//! with a pack of format 1 as its source.

use super::read::Pack;
use crate::plan::{PlanOptions, plan};
use crate::produce::{ProduceOptions, Produced, produce};
use crate::read::Values;
use crate::source::catalog;
use crate::source::inspect::{InspectOptions, inspect};
use std::path::Path;
use tensilo_core::{Error, Monitor, Result};

/// Makes a pack of format 1 by way of an HDF5 file of the source's layout beside the destination, `.<name>.unpacked.h5`,
/// which is removed again; the receipt names it as the source. Calibration is not carried over.
///
/// # Errors
/// `Unsupported` when format 1 cannot hold the counts; `AlreadyExists`; as unpacking and producing. After an error there is
/// neither pack nor receipt.
pub fn to_format_1(
    pack: &Pack,
    destination: &Path,
    plan_options: &PlanOptions,
    options: &ProduceOptions,
    monitor: &dyn Monitor,
) -> Result<Produced> {
    let l = pack.layout();
    let refuse = |what: String| {
        Err(pack.in_file(Error::unsupported(format!(
            "{what}; format 1 takes uint16 counts of a scan and a detector of two axes each"
        ))))
    };
    if l.counts().name() != "uint16" {
        return refuse(format!("the counts are {}", l.counts()));
    }
    if l.scan_shape().len() != 2 || l.detector_shape().len() != 2 {
        return refuse(format!("the shape is {:?} scans of {:?} pixels", l.scan_shape(), l.detector_shape()));
    }
    let destination = catalog::normal(destination)?;
    let name = destination.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unpacked = destination.with_file_name(format!(".{name}.unpacked.h5"));
    pack.export_hdf5(options.disk.clone(), &unpacked, Values::Raw, false, monitor)?;
    let made = pack_again(&unpacked, &destination, plan_options, options, monitor);
    let removed = options.disk.unlink(&unpacked);
    let made = made?;
    removed?;
    Ok(made)
}

fn pack_again(
    unpacked: &Path,
    destination: &Path,
    plan_options: &PlanOptions,
    options: &ProduceOptions,
    monitor: &dyn Monitor,
) -> Result<Produced> {
    let inspect_options = InspectOptions {
        index_dir: options.index_dir.clone(),
        threads: plan_options.threads,
        limits: options.limits.clone(),
        disk: options.disk.clone(),
        ..InspectOptions::default()
    };
    let inspection = inspect(unpacked, &inspect_options, monitor)?;
    let plan = plan(&inspection, destination, plan_options, &*options.disk)?;
    produce(&inspection, &plan, options, monitor)
}
