//! Record stores from and to arrays and folders: everything that can be gathered is imported alike.
//!
//! [`DatasetRows`] shows an HDF5 dataset along its first axis as records, [`PackFrames`] the frames of a pack,
//! [`NpyRows`] the rows of an `.npy` file, [`NpyRagged`] runs of them, and [`Files`] the files of a folder.

use crate::BLOCK;
use crate::lanes::{lane_type, with_type};
use crate::npy::{NpyFile, NpyWriter};
use half::f16;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::dtype::DType;
use tensilo_core::gather::{
    FieldBuffer, FieldSchema, FieldShape, Gather, Locality, Schema, StoreFingerprint, check_buffers,
    check_ids, gather,
};
use tensilo_core::io::{ByteSource, Disk, FileSource};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, Monitor, Progress, Result};
use tensilo_hdf5::read::Dataset;
use tensilo_lanes::LaneType;
use tensilo_pack::read::{Pack, Values};
use tensilo_records::RecordsWriter;
use tensilo_records::store::Column;

/// Records of one field and one shape, read by their number.
trait Rows: Send + Sync + std::fmt::Debug {
    /// Reads consecutive rows.
    fn read(&self, first: u64, rows: u64, out: &mut [u8], monitor: &dyn Monitor) -> Result<()>;
}

fn one_each(store: &dyn Gather, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
    store.schema().field(field)?;
    check_ids(ids, store.len())?;
    if ids.len() != steps.len() {
        return Err(Error::invalid(format!("{} ids and room for {} lengths", ids.len(), steps.len())));
    }
    steps.fill(1);
    Ok(())
}

/// Reads runs of consecutive ids at once, and puts each row in its place.
fn gather_rows(
    store: &dyn Gather,
    rows: &dyn Rows,
    ids: &[u64],
    into: &mut [FieldBuffer<'_>],
    monitor: &dyn Monitor,
) -> Result<()> {
    check_buffers(store, ids, into)?;
    let bytes = store.schema().field(0)?.step_bytes()?;
    let most = (BLOCK / bytes.max(1)).max(1);
    let mut block = Vec::new();
    let mut at = 0;
    while at < ids.len() {
        monitor.poll(&Progress { stage: "gathering", done: at as u64, total: ids.len() as u64 })?;
        let run = ids[at..].iter().zip(ids[at]..).take_while(|(id, want)| **id == *want).count();
        let run = run.min(most as usize).max(1);
        block.resize(run * bytes as usize, 0);
        rows.read(ids[at], run as u64, &mut block, monitor).map_err(|e| e.in_record(ids[at]))?;
        for buffer in into.iter_mut() {
            for i in 0..run {
                let range = buffer.range(at + i, bytes)?;
                buffer.bytes[range].copy_from_slice(&block[i * bytes as usize..(i + 1) * bytes as usize]);
            }
        }
        at += run;
    }
    Ok(())
}

/// The rows of an HDF5 dataset along its first axis.
#[derive(Debug)]
pub struct DatasetRows {
    dataset: Dataset,
    dtype: LaneType,
    schema: Schema,
}

impl DatasetRows {
    /// Shows a dataset of numbers; either byte order, as the values are converted.
    ///
    /// # Errors
    /// `Unsupported` for elements that are no plain numbers; `InvalidArgument` for a scalar.
    pub fn new(name: &str, dataset: Dataset) -> Result<Self> {
        let dtype = lane_type(dataset.datatype()).map_err(|e| e.in_object(name))?;
        let [_, inner @ ..] = dataset.shape() else {
            return Err(Error::invalid("a single value has no rows").in_object(name));
        };
        let element: DType = dtype.numpy().parse()?;
        let schema = Schema::new(vec![FieldSchema::fixed(name, element, inner)])?;
        Ok(Self { dataset, dtype, schema })
    }
}

impl Rows for DatasetRows {
    fn read(&self, first: u64, rows: u64, out: &mut [u8], _monitor: &dyn Monitor) -> Result<()> {
        let mut start = vec![0; self.dataset.shape().len()];
        let mut count = self.dataset.shape().to_vec();
        (start[0], count[0]) = (first, rows);
        let selection = Selection::Hyperslab(Hyperslab::new(start, count));
        with_type!(self.dtype, T => {
            // The caller's bytes need not be aligned.
            let mut values = vec![T::default(); out.len() / size_of::<T>()];
            self.dataset.read_into::<T>(&selection, &mut values)?;
            out.copy_from_slice(bytemuck::cast_slice(&values));
        });
        Ok(())
    }
}

/// The frames of a pack, one record for each scan.
#[derive(Debug)]
pub struct PackFrames {
    pack: Pack,
    values: Values,
    schema: Schema,
}

impl PackFrames {
    /// Shows the working values of a pack.
    ///
    /// # Errors
    /// `Limit` for frames that are too large.
    pub fn new(name: &str, pack: Pack, values: Values) -> Result<Self> {
        let [_, _, rows, columns] = pack.shape().map(u64::from);
        let schema = Schema::new(vec![FieldSchema::fixed(name, DType::U16, [rows, columns])])?;
        Ok(Self { pack, values, schema })
    }
}

impl Rows for PackFrames {
    fn read(&self, first: u64, rows: u64, out: &mut [u8], monitor: &dyn Monitor) -> Result<()> {
        let mut values = vec![0_u16; out.len() / 2];
        self.pack.frames_into(first..first + rows, self.values, &mut values, monitor)?;
        for (to, value) in out.chunks_exact_mut(2).zip(values) {
            to.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }
}

/// The rows of an `.npy` file.
#[derive(Debug)]
pub struct NpyRows {
    npy: NpyFile,
    schema: Schema,
    row: u64,
}

impl NpyRows {
    /// Shows the rows along the first axis.
    ///
    /// # Errors
    /// `Unsupported` for element types that records have not; `InvalidArgument` for a single value.
    pub fn new(name: &str, npy: NpyFile) -> Result<Self> {
        let [_, inner @ ..] = npy.shape() else {
            return Err(Error::invalid("a single value has no rows").in_object(name));
        };
        let schema = Schema::new(vec![FieldSchema::fixed(name, npy.descr().parse()?, inner)])?;
        let row = inner.iter().product();
        Ok(Self { npy, schema, row })
    }
}

impl Rows for NpyRows {
    fn read(&self, first: u64, _rows: u64, out: &mut [u8], _monitor: &dyn Monitor) -> Result<()> {
        let element =
            first.checked_mul(self.row).ok_or_else(|| Error::invalid("a row past 2^64 elements"))?;
        if out.is_empty() { Ok(()) } else { self.npy.read_at(element, out) }
    }
}

macro_rules! gather_by_rows {
    ($type:ty, $kind:literal, $len:expr, $locality:expr, $print:expr) => {
        impl Gather for $type {
            fn schema(&self) -> &Schema {
                &self.schema
            }

            fn len(&self) -> u64 {
                $len(self)
            }

            fn fingerprint(&self) -> Result<StoreFingerprint> {
                let field = &self.schema.fields()[0];
                let print = StoreFingerprint::new($kind)
                    .with(format!("{}{:?}{:?}", field.name, field.dtype, field.shape).as_bytes())
                    .with_number(self.len());
                $print(self, print)
            }

            fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
                one_each(self, field, ids, steps)
            }

            fn gather_into(
                &self,
                ids: &[u64],
                into: &mut [FieldBuffer<'_>],
                _threads: Threads,
                monitor: &dyn Monitor,
            ) -> Result<()> {
                gather_rows(self, self, ids, into, monitor)
            }

            fn locality(&self) -> Locality {
                Locality { block: $locality(self) }
            }
        }
    };
}

/// The contents, from end to end: these stores have no checksums of their own that could be relied on.
fn print_rows(store: &dyn Gather, rows: &dyn Rows, mut print: StoreFingerprint) -> Result<StoreFingerprint> {
    let bytes = store.schema().field(0)?.step_bytes()?;
    let most = (BLOCK / bytes.max(1)).max(1);
    let mut block = Vec::new();
    let mut first = 0;
    while first < store.len() {
        let n = most.min(store.len() - first);
        block.resize((n * bytes) as usize, 0);
        rows.read(first, n, &mut block, &tensilo_core::Quiet)?;
        print = print.with_number(u64::from(crc32c::crc32c(&block)));
        first += n;
    }
    Ok(print)
}

gather_by_rows!(
    DatasetRows,
    "hdf5 rows",
    |s: &DatasetRows| s.dataset.shape().first().copied().unwrap_or(0),
    |s: &DatasetRows| s.dataset.chunk_shape().and_then(|c| c.first().copied()).unwrap_or(1).max(1),
    |s: &DatasetRows, print| print_rows(s, s, print)
);
gather_by_rows!(
    PackFrames,
    "pack frames",
    |s: &PackFrames| u64::from(s.pack.shape()[0]) * u64::from(s.pack.shape()[1]),
    |_: &PackFrames| 32,
    |s: &PackFrames, print| print_rows(s, s, print)
);
gather_by_rows!(
    NpyRows,
    "npy rows",
    |s: &NpyRows| s.npy.shape().first().copied().unwrap_or(0),
    |_: &NpyRows| 1,
    |s: &NpyRows, print| print_rows(s, s, print)
);

/// Runs of rows of an `.npy` file, one for each record, as another file of 64-bit numbers says: a ragged field.
#[derive(Debug)]
pub struct NpyRagged {
    rows: NpyRows,
    /// Where each record begins, in rows; one more than records.
    starts: Vec<u64>,
    schema: Schema,
}

impl NpyRagged {
    /// Shows the rows of `values` cut into runs of the lengths that `lengths` holds.
    ///
    /// # Errors
    /// `InvalidArgument` when the lengths are no 64-bit numbers or do not add up; as [`NpyRows::new`].
    pub fn new(name: &str, values: NpyFile, lengths: &NpyFile) -> Result<Self> {
        let [records] = lengths.shape() else {
            return Err(Error::invalid("the lengths are no list").in_object(name));
        };
        if !matches!(lengths.descr(), "<u8" | "<i8") {
            let message = format!("the lengths are {}, 64-bit integers are wanted", lengths.descr());
            return Err(Error::invalid(message).in_object(name));
        }
        let all = values.shape().first().copied().unwrap_or(0);
        let (mut bytes, _charge) = Budget::default().buffer(records.saturating_mul(8), "the lengths")?;
        lengths.read_at(0, &mut bytes)?;
        let mut starts = vec![0_u64];
        for n in bytes.as_chunks().0 {
            let last = starts.last().copied().unwrap_or(0);
            let next = last.checked_add(u64::from_le_bytes(*n)).filter(|end| *end <= all);
            starts.push(next.ok_or_else(|| Error::invalid(format!("the lengths pass the {all} rows")))?);
        }
        if starts.last() != Some(&all) {
            return Err(
                Error::invalid(format!("the lengths do not add up to the {all} rows")).in_object(name)
            );
        }
        let rows = NpyRows::new(name, values)?;
        let field = rows.schema.field(0)?;
        let (FieldShape::Fixed(inner) | FieldShape::Ragged(inner)) = &field.shape;
        let schema = Schema::new(vec![FieldSchema::ragged(name, field.dtype, inner.clone())])?;
        Ok(Self { rows, starts, schema })
    }
}

impl Gather for NpyRagged {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        let print = self.starts.iter().fold(StoreFingerprint::new("npy runs"), |p, n| p.with_number(*n));
        Ok(print.with_store(self.rows.fingerprint()?))
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        one_each(self, field, ids, steps)?;
        for (id, n) in ids.iter().zip(steps) {
            *n = self.starts[*id as usize + 1] - self.starts[*id as usize];
        }
        Ok(())
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        _threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        check_buffers(self, ids, into)?;
        let bytes = self.schema.field(0)?.step_bytes()?;
        for (i, id) in ids.iter().enumerate() {
            monitor.poll(&Progress { stage: "gathering", done: i as u64, total: ids.len() as u64 })?;
            let (start, end) = (self.starts[*id as usize], self.starts[*id as usize + 1]);
            for buffer in into.iter_mut() {
                let range = buffer.range(i, (end - start) * bytes)?;
                self.rows.read(start, end - start, &mut buffer.bytes[range], monitor)?;
            }
        }
        Ok(())
    }
}

/// The files of a folder and of the folders in it, in the order of their names: each is a record with the fields
/// `name` (the path inside the folder, UTF-8) and the bytes.
#[derive(Debug)]
pub struct Files {
    files: Vec<(String, PathBuf, u64)>,
    schema: Schema,
}

impl Files {
    /// Lists a folder.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `Unsupported` for a name that is no UTF-8.
    pub fn list(name: &str, folder: impl AsRef<Path>) -> Result<Self> {
        fn visit(folder: &Path, inside: &str, files: &mut Vec<(String, PathBuf, u64)>) -> Result<()> {
            let io = |e| Error::io("cannot list folder", e).in_file(folder);
            for entry in std::fs::read_dir(folder).map_err(io)? {
                let entry = entry.map_err(io)?;
                let name = entry.file_name().into_string().map_err(|name| {
                    Error::unsupported(format!("the name {name:?} is no UTF-8")).in_file(folder)
                })?;
                let path = entry.path();
                let meta =
                    std::fs::metadata(&path).map_err(|e| Error::io("cannot examine", e).in_file(&path))?;
                let inside = if inside.is_empty() { name } else { format!("{inside}/{name}") };
                if entry.file_type().map_err(io)?.is_dir() {
                    visit(&path, &inside, files)?;
                } else if meta.is_file() {
                    files.push((inside, path, meta.len()));
                }
            }
            Ok(())
        }
        let mut files = Vec::new();
        visit(folder.as_ref(), "", &mut files)?;
        files.sort();
        let fields =
            vec![FieldSchema::ragged("name", DType::U8, []), FieldSchema::ragged(name, DType::U8, [])];
        Ok(Self { files, schema: Schema::new(fields)? })
    }
}

impl Gather for Files {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len(&self) -> u64 {
        self.files.len() as u64
    }

    fn fingerprint(&self) -> Result<StoreFingerprint> {
        let mut print = StoreFingerprint::new("files");
        for (name, path, _) in &self.files {
            let source = FileSource::open(path)?;
            let mut bytes = vec![0; source.len() as usize];
            source.read_at(0, &mut bytes)?;
            print = print.with(name.as_bytes()).with_number(u64::from(crc32c::crc32c(&bytes)));
        }
        Ok(print)
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        one_each(self, field, ids, steps)?;
        for (id, n) in ids.iter().zip(steps) {
            let (name, _, len) = &self.files[*id as usize];
            *n = if field == 0 { name.len() as u64 } else { *len };
        }
        Ok(())
    }

    fn gather_into(
        &self,
        ids: &[u64],
        into: &mut [FieldBuffer<'_>],
        _threads: Threads,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        check_buffers(self, ids, into)?;
        for (i, id) in ids.iter().enumerate() {
            monitor.poll(&Progress { stage: "gathering", done: i as u64, total: ids.len() as u64 })?;
            let (name, path, len) = &self.files[*id as usize];
            for buffer in into.iter_mut() {
                if buffer.field == 0 {
                    let range = buffer.range(i, name.len() as u64)?;
                    buffer.bytes[range].copy_from_slice(name.as_bytes());
                    continue;
                }
                let source = FileSource::open(path)?;
                if source.len() != *len {
                    return Err(Error::source_changed("the file has another length now").in_file(path));
                }
                let range = buffer.range(i, *len)?;
                source.read_at(0, &mut buffer.bytes[range])?;
            }
        }
        Ok(())
    }
}

/// Appends all records of sources side by side: record `i` has the fields of the sources' records `i`. Bounded in memory;
/// committed at the end. Returns how many.
///
/// # Errors
/// `InvalidArgument` when the sources differ in length or do not fit the store; as reading and writing; the monitor's.
pub fn import(
    sources: &[&dyn Gather],
    writer: &mut RecordsWriter,
    threads: Threads,
    monitor: &dyn Monitor,
) -> Result<u64> {
    let schema = joined_schema(sources)?;
    let into = writer.schema()?;
    let order: Vec<usize> = into.fields().iter().map(|f| schema.position(&f.name)).collect::<Result<_>>()?;
    for (field, at) in into.fields().iter().zip(&order) {
        let given = schema.field(*at)?;
        if given != field || schema.fields().len() != into.fields().len() {
            return Err(Error::invalid(format!(
                "the store has {:?} {} {:?}, the source {:?} {} {:?}",
                field.name, field.dtype, field.shape, given.name, given.dtype, given.shape
            )));
        }
    }
    let total = sources.first().map_or(0, |s| s.len());
    let budget = Budget::default();
    let mut first = 0;
    while first < total {
        monitor.poll(&Progress { stage: "importing", done: first, total })?;
        let ids = block(sources, first)?;
        let mut values = Vec::new();
        for source in sources {
            values.extend(gather(*source, &ids, &[], &budget, threads, monitor)?);
        }
        let steps: Vec<Vec<u64>> =
            values.iter().map(|v| v.offsets.windows(2).map(|w| w[1] - w[0]).collect()).collect();
        let columns: Vec<Column<'_>> = order
            .iter()
            .map(|at| {
                match into.fields().iter().any(|f| f.name == schema.fields()[*at].name && f.is_ragged()) {
                    true => Column::ragged(&values[*at].bytes, &steps[*at]),
                    false => Column::fixed(&values[*at].bytes),
                }
            })
            .collect();
        writer.append(ids.len() as u64, &columns)?;
        first += ids.len() as u64;
    }
    writer.commit()?;
    Ok(total)
}

/// The fields of sources side by side.
///
/// # Errors
/// `InvalidArgument` when the sources differ in length, or two fields have one name.
pub fn joined_schema(sources: &[&dyn Gather]) -> Result<Schema> {
    let Some(first) = sources.first() else { return Err(Error::invalid("there is no source")) };
    for source in sources {
        if source.len() != first.len() {
            return Err(Error::invalid(format!(
                "{:?} has {} records, {:?} has {}",
                first.schema().fields()[0].name,
                first.len(),
                source.schema().fields()[0].name,
                source.len()
            )));
        }
    }
    Schema::new(sources.iter().flat_map(|s| s.schema().fields().to_vec()).collect())
}

/// The next records that make about a block.
fn block(sources: &[&dyn Gather], first: u64) -> Result<Vec<u64>> {
    let Some(len) = sources.first().map(|s| s.len()) else { return Ok(Vec::new()) };
    let ids: Vec<u64> = (first..len.min(first + 65_536)).collect();
    let mut sizes = vec![0_u64; ids.len()];
    let mut steps = vec![0; ids.len()];
    for source in sources {
        for (field, schema) in source.schema().fields().iter().enumerate() {
            source.lengths(field, &ids, &mut steps)?;
            let bytes = schema.step_bytes()?;
            sizes
                .iter_mut()
                .zip(&steps)
                .for_each(|(size, n)| *size = size.saturating_add(n.saturating_mul(bytes)));
        }
    }
    let mut sum = 0_u64;
    let fit = sizes.iter().take_while(|size| {
        let fits = sum < BLOCK;
        sum = sum.saturating_add(**size);
        fits
    });
    let n = fit.count().max(1).min(ids.len());
    Ok(ids[..n].to_vec())
}

/// Writes a field of all records to an `.npy` file: `[records, …]`; of a ragged field the rows one after the other.
///
/// # Errors
/// As reading and writing; `AlreadyExists` unless `replace`; the monitor's.
pub fn field_to_npy(
    store: &dyn Gather,
    field: usize,
    disk: Arc<dyn Disk>,
    path: impl AsRef<Path>,
    replace: bool,
    threads: Threads,
    monitor: &dyn Monitor,
) -> Result<()> {
    let schema = store.schema().field(field)?.clone();
    let (FieldShape::Fixed(inner) | FieldShape::Ragged(inner)) = &schema.shape;
    let mut rows = store.len();
    if schema.is_ragged() {
        rows = 0;
        for_blocks(store, |ids| {
            let mut steps = vec![0; ids.len()];
            store.lengths(field, ids, &mut steps)?;
            rows += steps.iter().sum::<u64>();
            Ok(())
        })?;
    }
    let shape = [&[rows], &inner[..]].concat();
    let mut out = NpyWriter::create(disk, path, &schema.dtype.numpy(), &shape)?;
    let budget = Budget::default();
    for_blocks(store, |ids| {
        monitor.poll(&Progress { stage: "exporting", done: ids[0], total: store.len() })?;
        for value in gather(store, ids, &[field], &budget, threads, monitor)? {
            out.write(&value.bytes)?;
        }
        Ok(())
    })?;
    out.finish(replace)
}

/// Writes the rows of each record in a field to an `.npy` file of 64-bit numbers.
///
/// # Errors
/// As [`field_to_npy`].
pub fn lengths_to_npy(
    store: &dyn Gather,
    field: usize,
    disk: Arc<dyn Disk>,
    path: impl AsRef<Path>,
    replace: bool,
) -> Result<()> {
    let mut out = NpyWriter::create(disk, path, "<u8", &[store.len()])?;
    for_blocks(store, |ids| {
        let mut steps = vec![0; ids.len()];
        store.lengths(field, ids, &mut steps)?;
        out.write(&steps.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>())
    })?;
    out.finish(replace)
}

fn for_blocks(store: &dyn Gather, mut work: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
    let mut first = 0;
    while first < store.len() {
        let ids = block(&[store], first)?;
        work(&ids)?;
        first += ids.len() as u64;
    }
    Ok(())
}
