//! Datasets and attributes element by element, box by box, so that memory is needed for two boxes only.

use super::How;
use super::element::Elements;
use super::types::stands_alone;
use crate::hdf5::{Dataset, Dataspace, File, Hyperslab};
use crate::value::decode;
use crate::view::FileHeap;
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::format::datatype::Datatype;

/// What a monitor hears that is done.
pub(super) const STAGE: &str = "comparing";

/// Elements of one side.
#[derive(Debug)]
pub(super) struct Side<'a> {
    pub(super) file: &'a File,
    pub(super) datatype: &'a Datatype,
}

impl<'a> Side<'a> {
    pub(super) fn new(file: &'a File, datatype: &'a Datatype) -> Self {
        Self { file, datatype }
    }

    fn width(&self) -> usize {
        (self.datatype.size as usize).max(1)
    }

    fn shown(&self, element: &[u8]) -> String {
        let shown = decode(self.datatype, element, &FileHeap(self.file));
        let text = shown.map_or_else(|e| e.to_string(), |v| v.to_string());
        if text.chars().count() > 80 { text.chars().take(79).chain(['…']).collect() } else { text }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) differ: u64,
    pub(super) of: u64,
    /// Place and values of the first difference.
    pub(super) first: Option<(Vec<u64>, String, String)>,
}

/// A dataspace as people read it; two that read the same can be compared.
pub(super) fn shape_text(space: &Dataspace) -> String {
    match space {
        Dataspace::Null => "null".to_owned(),
        Dataspace::Scalar => "scalar".to_owned(),
        Dataspace::Simple { dims, .. } => format!("{dims:?}"),
    }
}

/// Coordinates of an element from its row-major number.
pub(super) fn coordinates(mut number: u64, shape: &[u64]) -> Vec<u64> {
    let mut out = vec![0; shape.len()];
    for (c, n) in out.iter_mut().zip(shape).rev() {
        *c = number % (*n).max(1);
        number /= (*n).max(1);
    }
    out
}

/// Compares two datasets of one shape and comparable types.
pub(super) fn datasets(a: &Dataset, b: &Dataset, how: How<'_>, monitor: &dyn Monitor) -> Result<Count> {
    let sides = (Side::new(a.file(), a.datatype()), Side::new(b.file(), b.datatype()));
    let mut found = Count::default();
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let width = u64::from(a.datatype().size);
    let total = a.elements().saturating_mul(width);
    // Boxes of whichever has larger ones: the other's decoded chunks are kept meanwhile.
    let by_first =
        a.chunk_grid().map_or(0, |g| g.chunk_elements()) >= b.chunk_grid().map_or(0, |g| g.chunk_elements());
    let boxes: Box<dyn Iterator<Item = Hyperslab>> =
        if by_first { Box::new(a.boxes()) } else { Box::new(b.boxes()) };
    for part in boxes {
        let progress = Progress { stage: STAGE, done: found.of.saturating_mul(width), total };
        monitor.poll(&progress)?;
        let quiet = StopOnly { monitor, progress };
        let n: u64 = part.shape()?.iter().product();
        let _charges = (fit(&mut x, n, a)?, fit(&mut y, n, b)?);
        let (origin, extents) = (part.start.clone(), part.count.clone());
        let selection = part.into();
        a.read_bytes_into_with(&selection, &mut x, &quiet)?;
        b.read_bytes_into_with(&selection, &mut y, &quiet)?;
        let at = |n: u64| coordinates(n, &extents).iter().zip(&origin).map(|(c, o)| c + o).collect();
        elements(&sides, (&x, &y), how, monitor, &at, &mut found)?;
    }
    Ok(found)
}

/// Makes a buffer for `n` elements.
fn fit(buffer: &mut Vec<u8>, n: u64, of: &Dataset) -> Result<tensilo_core::limits::Charge> {
    let bytes = n.checked_mul(u64::from(of.datatype().size));
    let bytes = bytes.ok_or_else(|| Error::limit("a chunk does not fit in 64 bits"))?;
    let charge = of.file().space().budget().bytes(bytes, "a chunk to compare")?;
    let bytes = usize::try_from(bytes).map_err(|_| Error::limit("a chunk does not fit in memory"))?;
    buffer.resize(bytes, 0);
    Ok(charge)
}

/// Lets a monitor stop a read, but says only how far the comparison is.
struct StopOnly<'a> {
    monitor: &'a dyn Monitor,
    progress: Progress,
}

impl Monitor for StopOnly<'_> {
    fn poll(&self, _: &Progress) -> Result<()> {
        self.monitor.poll(&self.progress)
    }
}

/// Compares two runs of elements; `at` gives the coordinates of one by its number in the run.
pub(super) fn elements(
    (first, second): &(Side<'_>, Side<'_>),
    (a, b): (&[u8], &[u8]),
    how: How<'_>,
    monitor: &dyn Monitor,
    at: &dyn Fn(u64) -> Vec<u64>,
    found: &mut Count,
) -> Result<()> {
    found.of += (a.len() / first.width()) as u64;
    let alone = first.datatype == second.datatype && stands_alone(first.datatype);
    if alone && a == b {
        return Ok(());
    }
    let compare = Elements { first, second, refs: how.refs, tolerance: how.tolerance, monitor };
    for (n, (x, y)) in (0..).zip(a.chunks_exact(first.width()).zip(b.chunks_exact(second.width()))) {
        if (alone && x == y) || compare.same(x, y)? {
            continue;
        }
        found.differ += 1;
        found.first.get_or_insert_with(|| (at(n), first.shown(x), second.shown(y)));
    }
    Ok(())
}
