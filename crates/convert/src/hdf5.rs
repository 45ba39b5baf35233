//! Arrays in files (`.npy` or raw bytes) become HDF5 datasets and back, a window at a time.

use std::path::Path;
use std::sync::Arc;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::io::{ByteSource, Disk, MemorySource, Staged};
use tensilo_core::{Budget, Error, Monitor, Progress, Result};
use tensilo_hdf5::format::Address;
use tensilo_hdf5::format::datatype::Datatype;
use tensilo_hdf5::object::LinkTarget;
use tensilo_hdf5::read::{Dataset, File, Group, Object};
use tensilo_hdf5::write::{DatasetBuilder, Written};

/// Bytes that are moved at one time.
const PIECE: u64 = 8 << 20;

/// An array whose elements lie in C order in a file.
#[derive(Debug, Clone)]
pub struct StoredArray {
    /// Where the bytes are.
    pub source: Arc<dyn ByteSource>,
    /// Position of the first element.
    pub at: u64,
    /// The type of an element.
    pub datatype: Datatype,
    /// Extents, slowest first.
    pub shape: Vec<u64>,
}

impl StoredArray {
    /// Raw bytes from position `at` on.
    ///
    /// # Errors
    /// `InvalidArgument` when the file is too short for the shape.
    pub fn new(source: Arc<dyn ByteSource>, at: u64, datatype: Datatype, shape: Vec<u64>) -> Result<Self> {
        let array = Self { source, at, datatype, shape };
        let end = array.bytes().and_then(|n| n.checked_add(at));
        if end.is_none_or(|end| end > array.source.len()) {
            return Err(Error::invalid(format!(
                "the shape {:?} of elements of {} bytes needs more than the {} bytes behind position {at}",
                array.shape,
                array.datatype.size,
                array.source.len().saturating_sub(at)
            )));
        }
        Ok(array)
    }

    fn bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(u64::from(self.datatype.size), |n, d| n.checked_mul(*d))
    }

    /// Writes the array as a dataset: in one piece, or in these chunks.
    ///
    /// Memory is one piece of 8 MiB, or the window of the writer's options.
    ///
    /// # Errors
    /// As the builder's own `write_bytes`; errors of the source.
    pub fn write(&self, dataset: DatasetBuilder<'_, '_>, chunk: Option<&[u64]>) -> Result<Written> {
        let dataset = dataset.datatype(self.datatype.clone()).shape(&self.shape);
        match chunk {
            Some(chunk) => self.write_chunks(dataset, chunk),
            None => self.write_run(dataset),
        }
    }

    fn write_run(&self, dataset: DatasetBuilder<'_, '_>) -> Result<Written> {
        let mut out = dataset.contiguous_writer()?;
        let total = self.bytes().unwrap_or(0);
        let mut piece = Vec::new();
        let mut done = 0;
        while done < total {
            piece.resize(PIECE.min(total - done) as usize, 0);
            self.source.read_at(self.at + done, &mut piece)?;
            out.write(&piece)?;
            done += piece.len() as u64;
        }
        out.finish()
    }

    fn write_chunks(&self, dataset: DatasetBuilder<'_, '_>, chunk: &[u64]) -> Result<Written> {
        let mut out = dataset.chunk(chunk).chunk_writer()?;
        let grid = out.grid().to_vec();
        let size = out.chunk_bytes();
        let mut coords = vec![0; grid.len()];
        if !grid.contains(&0) {
            loop {
                let mut raw = vec![0; size];
                self.gather(chunk, &coords, &mut raw)?;
                out.write_chunk(&coords, raw)?;
                if !next(&mut coords, &grid) {
                    break;
                }
            }
        }
        out.finish()
    }

    /// Fills a chunk from the array; what reaches over the end stays zero.
    fn gather(&self, chunk: &[u64], coords: &[u64], raw: &mut [u8]) -> Result<()> {
        let size = u64::from(self.datatype.size);
        let start: Vec<u64> = coords.iter().zip(chunk).map(|(c, n)| c * n).collect();
        let ends = start.iter().zip(chunk).zip(&self.shape);
        let extent: Vec<u64> = ends.map(|((s, n), end)| (*n).min(end - s)).collect();
        // Dimensions from `whole` on are complete in chunk and array: one run goes over all of them.
        let mut whole = chunk.len();
        while whole > 1 && extent[whole - 1] == self.shape[whole - 1] && chunk[whole - 1] == extent[whole - 1]
        {
            whole -= 1;
        }
        let inner = |dims: &[u64], from: usize| dims[from..].iter().product::<u64>();
        let last = whole - 1;
        let run = (extent[last] * inner(chunk, whole) * size) as usize;
        let mut row = vec![0; last];
        loop {
            let (mut from, mut to) = (0, 0);
            for i in 0..last {
                from += (start[i] + row[i]) * inner(&self.shape, i + 1);
                to += row[i] * inner(chunk, i + 1);
            }
            from += start[last] * inner(&self.shape, whole);
            let to = (to * size) as usize;
            self.source.read_at(self.at + from * size, &mut raw[to..to + run])?;
            if !next(&mut row, &extent[..last]) {
                return Ok(());
            }
        }
    }
}

/// Writes an array whose bytes come front to back as a dataset: in one piece, or in these chunks.
///
/// Memory is one piece of 8 MiB, or the rows of one chunk's height, charged to `budget`, beside the window of the
/// writer's options.
pub(crate) fn write_stream(
    next: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    datatype: Datatype,
    shape: &[u64],
    dataset: DatasetBuilder<'_, '_>,
    chunk: Option<&[u64]>,
    budget: &Budget,
) -> Result<Written> {
    let size = u64::from(datatype.size);
    let dataset = dataset.datatype(datatype.clone()).shape(shape);
    let Some(chunk) = chunk else {
        let mut out = dataset.contiguous_writer()?;
        let mut left = shape.iter().try_fold(size, |n, d| n.checked_mul(*d)).unwrap_or(0);
        let mut piece = Vec::new();
        while left > 0 {
            piece.resize(PIECE.min(left) as usize, 0);
            next(&mut piece)?;
            out.write(&piece)?;
            left -= piece.len() as u64;
        }
        return out.finish();
    };
    let mut out = dataset.chunk(chunk).chunk_writer()?;
    let grid = out.grid().to_vec();
    // An empty array has no chunks, a chunked one at least one axis.
    for band in 0..if grid.contains(&0) { 0 } else { grid[0] } {
        let mut rows = shape.to_vec();
        rows[0] = chunk[0].min(shape[0] - band * chunk[0]);
        let bytes = rows.iter().try_fold(size, |n, d| n.checked_mul(*d)).unwrap_or(u64::MAX);
        // Held twice while the band is handed on.
        let _charge = budget.bytes(bytes.saturating_mul(2), "rows of one chunk's height")?;
        let mut buffer = vec![0; bytes as usize];
        next(&mut buffer)?;
        let source = Arc::new(MemorySource::new(buffer));
        let array = StoredArray { source, at: 0, datatype: datatype.clone(), shape: rows };
        let mut coords = vec![0; grid.len()];
        loop {
            let mut raw = vec![0; out.chunk_bytes()];
            array.gather(chunk, &coords, &mut raw)?;
            let mut place = coords.clone();
            place[0] = band;
            out.write_chunk(&place, raw)?;
            if !next_in_band(&mut coords, &grid) {
                break;
            }
        }
    }
    out.finish()
}

/// Goes on to the next coordinates with the same first one.
fn next_in_band(coords: &mut [u64], grid: &[u64]) -> bool {
    next(&mut coords[1..], &grid[1..])
}

/// Goes on to the next coordinates, the last dimension fastest; false behind the last ones.
fn next(coords: &mut [u64], grid: &[u64]) -> bool {
    for (c, n) in coords.iter_mut().zip(grid).rev() {
        *c += 1;
        if *c < *n {
            return true;
        }
        *c = 0;
    }
    false
}

/// Writes the stored elements of a dataset into a file, behind `head`; returns the file's length.
///
/// The array is read in slabs of rows of about 8 MiB, whole chunks of the first dimension each.
///
/// # Errors
/// `AlreadyExists` unless the file may be replaced, `Unsupported` for elements that lead into the file (strings of
/// variable length, references), errors of reading and of the disk.
pub fn dataset_to_file(
    dataset: &Dataset,
    head: &[u8],
    disk: Arc<dyn Disk>,
    path: &Path,
    replace: bool,
    monitor: &dyn Monitor,
) -> Result<u64> {
    let staged = Staged::create(disk, path)?;
    staged.write_at(0, head)?;
    let mut at = head.len() as u64;
    each_slab(dataset, monitor, &mut |bytes| {
        staged.write_at(at, bytes)?;
        at += bytes.len() as u64;
        Ok(())
    })?;
    published(staged, replace, at)
}

/// Gives the stored elements of a dataset front to back, in slabs of rows of about 8 MiB.
pub(crate) fn each_slab(
    dataset: &Dataset,
    monitor: &dyn Monitor,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let shape = dataset.shape();
    let total = dataset.elements().saturating_mul(u64::from(dataset.datatype().size));
    let Some((rows, inner)) = shape.split_first() else {
        return if total > 0 { take(&dataset.read_bytes(&Selection::All)?) } else { Ok(()) };
    };
    let row = inner.iter().fold(u64::from(dataset.datatype().size).max(1), |n, d| n.saturating_mul(*d));
    let along = dataset.chunk_shape().and_then(|c| c.first().copied()).unwrap_or(1).max(1);
    let step = (PIECE / row.max(1) / along).max(1) * along;
    let (mut first, mut done) = (0, 0);
    while first < *rows && total > 0 {
        monitor.poll(&Progress { stage: "converting", done, total })?;
        let mut start = vec![0; shape.len()];
        start[0] = first;
        let mut count = shape.to_vec();
        count[0] = step.min(rows - first);
        first += count[0];
        let bytes = dataset.read_bytes(&Selection::from(Hyperslab::new(start, count)))?;
        take(&bytes)?;
        done += bytes.len() as u64;
    }
    Ok(())
}

/// All datasets of a file with their paths, groups first by name; a second hard link to a dataset gives it twice.
///
/// # Errors
/// As reading does; `Unsupported` for names that are no UTF-8.
pub fn datasets(file: &File) -> Result<Vec<(String, Dataset)>> {
    let root = file.root()?;
    let (mut above, mut found) = (vec![root.address()], Vec::new());
    below(&root, "", &mut above, &mut found)?;
    Ok(found)
}

/// `above` holds the groups on the way, which ends circles of hard links.
fn below(
    group: &Group,
    path: &str,
    above: &mut Vec<Address>,
    found: &mut Vec<(String, Dataset)>,
) -> Result<()> {
    for link in group.links()? {
        if !matches!(link.target(), LinkTarget::Hard(_)) {
            continue;
        }
        let name = std::str::from_utf8(link.name()).map_err(|e| {
            Error::unsupported("a name that is no UTF-8").in_object(link.text()).with_source(e)
        })?;
        let here = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        match group.open_link(&link)? {
            Object::Dataset(dataset) => found.push((here, dataset)),
            Object::Group(inner) if !above.contains(&inner.address()) => {
                above.push(inner.address());
                below(&inner, &here, above, found)?;
                above.pop();
            }
            _ => {}
        }
    }
    Ok(())
}

fn published(staged: Staged, replace: bool, bytes: u64) -> Result<u64> {
    if replace {
        staged.publish_replace()?
    } else {
        staged.publish_no_replace()?
    };
    Ok(bytes)
}
