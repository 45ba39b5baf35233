//! The index in an HDF5 file: `docs/formats/vectors-v1.md`.

use crate::build::BuildOptions;
use crate::graph::{Graph, lists};
use crate::index::{LONGEST, VectorIndex, check_shape};
use crate::metric::{Metric, check_elements};
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::{Disk, SystemDisk};
use tensilo_core::limits::Budget;
use tensilo_core::{Error, Result};
use tensilo_hdf5::read::{Dataset, Element, File, Group, OpenOptions};
use tensilo_hdf5::write::{FileWriter, Value, WriteOptions};

const FORMAT: &str = "tensilo vectors";
const VERSION: u32 = 1;

const VECTORS: &str = "vectors";
const LEVELS: &str = "levels";
const STARTS: &str = "starts";
const NEIGHBOURS: &str = "neighbours";

/// How an index is saved.
#[derive(Debug, Clone, Default)]
pub struct SaveOptions {
    /// May a file that stands there be replaced?
    pub replace: bool,
    /// How the HDF5 file is written.
    pub write: WriteOptions,
}

impl VectorIndex {
    /// Saves the index in a new file; nothing stands under its name before it is whole and durable.
    ///
    /// Vectors and graph are written from where they are, without a copy.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound` without the folder, errors of the disk.
    pub fn save_to_hdf5(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_with(SystemDisk::shared(), path, SaveOptions::default())
    }

    /// As [`save_to_hdf5`](Self::save_to_hdf5), with options and onto any disk.
    ///
    /// # Errors
    /// As [`save_to_hdf5`](Self::save_to_hdf5), and `InvalidArgument` for impossible options.
    pub fn save_with(&self, disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: SaveOptions) -> Result<()> {
        let mut w = FileWriter::create(disk, path, options.write)?;
        self.write_into(&mut w, "/")?;
        if options.replace {
            w.finish_replacing()?
        } else {
            w.finish()?
        };
        Ok(())
    }

    /// Writes the index into a group of a file that is being written.
    ///
    /// # Errors
    /// `AlreadyExists` for what the group has already, errors of the disk.
    pub fn write_into(&self, w: &mut FileWriter<'_>, group: &str) -> Result<()> {
        let group = group.trim_matches('/');
        let at = |name: &str| if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
        if !group.is_empty() {
            w.create_group(group)?;
        }
        let object = if group.is_empty() { "/" } else { group };
        let (graph, options) = (self.graph(), self.options());
        for (name, value) in [
            ("format", Value::fixed_text(FORMAT)),
            ("version", VERSION.into()),
            ("metric", Value::fixed_text(self.metric().name())),
            ("m", graph.m.into()),
            ("ef_construction", options.ef_construction.into()),
            ("entry", graph.entry.into()),
        ] {
            w.attribute(object, name, value)?;
        }
        w.dataset(at(VECTORS)).shape(&[self.len(), self.vector_length() as u64]).write(self.vectors())?;
        w.dataset(at(LEVELS)).write(&graph.levels)?;
        w.dataset(at(STARTS)).write(&graph.starts)?;
        w.dataset(at(NEIGHBOURS)).write(&graph.neighbours)?;
        Ok(())
    }

    /// Opens a file that holds an index in its root group, and reads it into memory.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` for another format or version; `Corrupt` for a graph that does not fit the vectors;
    /// `Limit`; `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// As [`open`](Self::open); `options` limit what the file may make us allocate.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        File::open_with(path, options).and_then(|f| Self::from_group(&f.root()?)).map_err(|e| e.in_file(path))
    }

    /// Reads the index that a group holds, charging its memory, about what its datasets take, to the limits of the file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_group(group: &Group) -> Result<Self> {
        let metric = described(group)?;
        let options =
            BuildOptions { m: number(group, "m")?, ef_construction: number(group, "ef_construction")? };
        options.check().map_err(|e| Error::corrupt(e.message()))?;
        let entry = number(group, "entry")?;
        let budget = Budget::new(group.file().options().limits.clone());

        let vectors = group.dataset(VECTORS)?;
        let &[rows, length] = vectors.shape() else {
            return Err(wrong(
                VECTORS,
                format!("the shape is {:?}, which has not two axes", vectors.shape()),
            ));
        };
        let length = usize::try_from(length).ok().filter(|n| *n <= LONGEST).unwrap_or(0);
        let elements = usize::try_from(vectors.elements()).unwrap_or(usize::MAX);
        check_shape(elements, length).map_err(|e| wrong(VECTORS, e.message().to_owned()))?;

        // Everything that follows is charged before it is read.
        let mut charges = Vec::new();
        let mut charge = |n: u64, what: &str| budget.bytes(n, what).map(|c| charges.push(c));
        let levels = group.dataset(LEVELS)?;
        one_axis(&levels, LEVELS, rows)?;
        // Inverse lengths and first lists are ours, not the file's.
        charge(rows.saturating_mul(1 + 4 + 8), "levels of vectors")?;
        let levels: Vec<u8> = all(&levels, LEVELS)?;

        let starts = group.dataset(STARTS)?;
        one_axis(&starts, STARTS, lists(&levels) + 1)?;
        charge((lists(&levels) + 1).saturating_mul(8), "starts of lists")?;
        let starts: Vec<u64> = all(&starts, STARTS)?;

        let neighbours = group.dataset(NEIGHBOURS)?;
        let last = starts.last().copied().unwrap_or(0);
        one_axis(&neighbours, NEIGHBOURS, last)?;
        charge(last.saturating_mul(4), "neighbours")?;
        let neighbours: Vec<u32> = all(&neighbours, NEIGHBOURS)?;
        let graph = Graph::new(options.m, entry, levels, starts, neighbours)?;

        charge((elements as u64).saturating_mul(4), "vectors")?;
        let vectors: Vec<f32> = all(&vectors, VECTORS)?;
        check_elements(&vectors, length).map_err(|e| wrong(VECTORS, e.message().to_owned()))?;
        Ok(Self::of(vectors, length, metric, options, graph))
    }
}

/// Checks format and version, and returns the metric.
fn described(group: &Group) -> Result<Metric> {
    let text = |name: &str| group.attribute(name).and_then(|a| a.read_string());
    let format =
        text("format").map_err(|e| Error::unsupported("the group holds no vector index").with_source(e))?;
    let version: u32 = number(group, "version")?;
    if format != FORMAT || version != VERSION {
        return Err(Error::unsupported(format!(
            "the group holds {format:?}, version {version}; {FORMAT:?}, version {VERSION} can be read"
        )));
    }
    let metric = text("metric")?;
    Metric::of_name(&metric)
        .ok_or_else(|| Error::unsupported(format!("metric {metric:?}; l2 and cosine are known")))
}

fn number<T: Element>(group: &Group, name: &str) -> Result<T> {
    group.attribute(name)?.read_one().map_err(|e| e.context(format!("attribute {name}")))
}

fn one_axis(dataset: &Dataset, name: &str, wanted: u64) -> Result<()> {
    if dataset.shape() == [wanted] {
        return Ok(());
    }
    Err(wrong(name, format!("the shape is {:?}, not [{wanted}]", dataset.shape())))
}

fn all<T: Element>(dataset: &Dataset, name: &str) -> Result<Vec<T>> {
    dataset.read().map_err(|e| e.in_object(name))
}

fn wrong(name: &str, what: String) -> Error {
    Error::corrupt(what).in_object(name)
}
