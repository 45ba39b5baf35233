//! Writing a store: create, fill, finish; re-open in place; append.
//!
//! A new store grows under a temporary name and appears, complete and durable, when
//! [`finish`](StoreWriter::finish) publishes it. Every change goes through [`Disk`], and room is reserved
//! before the first slab, so that a full disk is an error of `create`, never a signal in the middle.

mod append;

use crate::chunked;
use crate::examine::examine;
use crate::lane_type::LaneElement;
use crate::place::{ALIGN, LanePlace, Placement, SlabState};
use crate::schema::{FormatVersion, LaneKind, LaneSpec, StoreSchema};
use crate::slab_mut::SlabMut;
use crate::v1;
use crate::v2::commit_record::{CommitRecord, DATA_BASE, SLOTS, State};
use crate::v2::header;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tensilo_core::io::{ByteSource, Disk, DiskFile, Fingerprint, LockKind, Staged, SystemDisk};
use tensilo_core::{Error, Result};

/// Bytes written between two hints to drop what was written before.
const WRITE_BEHIND: u64 = 8 << 20;
/// Hints that are repeated, for pages that were not on the disk yet.
const KEPT_BEHIND: usize = 8;

/// How a store is written.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// On-disk format.
    pub version: FormatVersion,
    /// Replace an existing file when the store is finished; otherwise an existing file is an error.
    pub replace: bool,
    /// Send written slabs to the disk early and drop them from the page cache, so that building a store larger
    /// than memory does not push everything else out.
    pub write_behind: bool,
    /// The disk written to.
    pub disk: Arc<dyn Disk>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { version: FormatVersion::V2, replace: false, write_behind: false, disk: Arc::new(SystemDisk) }
    }
}

#[derive(Debug)]
enum Target {
    /// A new file under a temporary name.
    Staged(Staged),
    /// An existing file, locked.
    Open(Box<dyn DiskFile>),
}

impl Target {
    fn file(&self) -> &dyn DiskFile {
        match self {
            Self::Staged(s) => s.file(),
            Self::Open(f) => &**f,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Create,
    Overwrite,
    Append,
}

/// What changes while slabs are written, from any thread.
#[derive(Debug, Default)]
struct Progress {
    tables: Vec<Vec<SlabState>>,
    /// Ranges written since the last hint, and those of the hints before.
    written: Vec<(u64, u64)>,
    behind: VecDeque<Vec<(u64, u64)>>,
    pending: u64,
    /// First error of a guard that was dropped.
    failed: Option<Error>,
}

/// A store being written. Slabs may be written in any order and from several threads.
#[derive(Debug)]
pub struct StoreWriter {
    target: Target,
    path: PathBuf,
    placement: Placement,
    schema: StoreSchema,
    options: WriterOptions,
    mode: Mode,
    /// The committed record of an existing format 2 store, and its slot.
    committed: Option<(CommitRecord, usize)>,
    /// Slabs of each lane that were there before an append.
    kept: Vec<u64>,
    progress: Mutex<Progress>,
}

/// Reads an open, locked file while its writer examines it.
#[derive(Debug)]
struct Opened<'a>(&'a dyn DiskFile, u64);

impl ByteSource for Opened<'_> {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.1) {
            return Err(Error::corrupt("the file ends before the structure read").at(offset));
        }
        self.0.read_at(offset, buf)
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        self.0.fingerprint()
    }
}

impl StoreWriter {
    /// Starts a new store of format 1, as petektools writes it.
    ///
    /// # Errors
    /// As [`create_with`](Self::create_with).
    pub fn create(path: impl AsRef<Path>, schema: StoreSchema) -> Result<Self> {
        Self::create_with(
            path,
            schema,
            WriterOptions { version: FormatVersion::V1, ..WriterOptions::default() },
        )
    }

    /// Starts a new store under a temporary name and reserves its room.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad schema; `Unsupported` when format 1 cannot hold it; `AlreadyExists`;
    /// `InsufficientDisk`; `Io`.
    pub fn create_with(path: impl AsRef<Path>, schema: StoreSchema, options: WriterOptions) -> Result<Self> {
        let path = path.as_ref();
        schema.validate().map_err(|e| e.in_file(path))?;
        if !options.replace && path.symlink_metadata().is_ok() {
            return Err(Error::already_exists("the file exists")
                .in_file(path)
                .hint("remove it, or allow replacing"));
        }
        let (placement, head, tail) = match options.version {
            FormatVersion::V1 => {
                if let Some(lane) = schema.lanes.iter().find(|l| !l.is_v1()) {
                    return Err(Error::unsupported(
                        "format 1 has f32, f64, u16 and u32, one slab count and no chunks",
                    )
                    .in_object(&lane.name)
                    .in_file(path)
                    .hint("write format 2"));
                }
                let head = v1::header::encode(&schema)?;
                let base = v1::header::data_base(head.len() as u64 - v1::header::FIXED)?;
                let placement =
                    Placement::lay_out(schema.nslabs, &schema.lanes, schema.app.clone(), base, false)?;
                (placement, head, v1::seal::LEN + 7)
            }
            FormatVersion::V2 => {
                let app = schema.app.clone();
                (Placement::lay_out(schema.nslabs, &schema.lanes, app, DATA_BASE, true)?, Vec::new(), 0)
            }
        };
        let staged = Staged::create(options.disk.clone(), path)?;
        staged.file().allocate(0, placement.data_end.saturating_add(tail))?;
        staged.write_at(0, &head)?;
        Ok(Self::new(Target::Staged(staged), path, placement, schema, options, Mode::Create, None))
    }

    fn new(
        target: Target,
        path: &Path,
        placement: Placement,
        schema: StoreSchema,
        options: WriterOptions,
        mode: Mode,
        committed: Option<(CommitRecord, usize)>,
    ) -> Self {
        let tables = placement.lanes.iter().map(|l| l.table.clone()).collect();
        let kept = placement.lanes.iter().map(|l| if mode == Mode::Append { l.slabs } else { 0 }).collect();
        let progress = Mutex::new(Progress { tables, ..Progress::default() });
        Self { target, path: path.into(), placement, schema, options, mode, committed, kept, progress }
    }

    fn open_existing(path: &Path, options: WriterOptions, mode: Mode) -> Result<Self> {
        let file = options.disk.open(path)?;
        file.try_lock(LockKind::Exclusive).map_err(|e| {
            e.in_file(path).hint("the store is open for reading or writing somewhere; close it first")
        })?;
        let len = file.len()?;
        let (placement, version, committed) =
            examine(&Opened(&*file, len), false).map_err(|e| e.in_file(path))?;
        let lanes = placement.lanes.iter().map(|l| l.spec.clone()).collect();
        let schema = StoreSchema { nslabs: placement.nslabs, lanes, app: placement.app.clone() };
        let options = WriterOptions { version, ..options };
        Ok(Self::new(Target::Open(file), path, placement, schema, options, mode, committed))
    }

    /// Re-opens a finished store to overwrite slabs in place, draw after draw.
    ///
    /// The seal is taken away, durably, before the first byte changes: until [`finish`](Self::finish) sets it
    /// again nobody can open the store, also after a crash.
    ///
    /// # Errors
    /// `Locked` while the store is open anywhere; as [`Store::open`](crate::Store::open) when it is damaged.
    pub fn overwrite(path: impl AsRef<Path>, options: WriterOptions) -> Result<Self> {
        let writer = Self::open_existing(path.as_ref(), options, Mode::Overwrite)?;
        let file = writer.target.file();
        match writer.committed {
            None => file.set_len(v1::seal::offset(writer.placement.data_end)?)?,
            Some((record, slot)) => {
                let next =
                    CommitRecord { state: State::Rewriting, generation: next_generation(record)?, ..record };
                file.write_at(SLOTS[1 - slot], &next.encode())?;
            }
        }
        file.sync()?;
        Ok(writer)
    }

    /// Re-opens a finished store of format 2 to append slabs and lanes.
    ///
    /// What is there stays as it is and valid until [`finish`](Self::finish) commits; a crash before leaves the
    /// old store.
    ///
    /// # Errors
    /// As [`overwrite`](Self::overwrite); `Unsupported` for format 1, which cannot grow.
    pub fn append(path: impl AsRef<Path>, options: WriterOptions) -> Result<Self> {
        let mut writer = Self::open_existing(path.as_ref(), options, Mode::Append)?;
        let Some((record, _)) = writer.committed else {
            return Err(Error::unsupported("a store of format 1 cannot grow")
                .in_file(path)
                .hint("convert it to format 2 with `tensilo lanes convert`"));
        };
        writer.placement.data_end = record.file_bytes;
        Ok(writer)
    }

    /// Replaces the application's JSON; it is committed with the rest.
    ///
    /// # Errors
    /// `InvalidArgument` on a store of format 1 that was re-opened: its header has a fixed place.
    pub fn set_app(&mut self, app: serde_json::Value) -> Result<()> {
        if self.options.version == FormatVersion::V1 || self.mode == Mode::Overwrite {
            return Err(Error::invalid("the header of this store is written already"));
        }
        self.placement.app.clone_from(&app);
        self.schema.app = app;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The schema this store is written after.
    pub fn schema(&self) -> &StoreSchema {
        &self.schema
    }

    /// Turns write-behind on or off.
    #[must_use]
    pub fn with_flush_behind(mut self, on: bool) -> Self {
        self.options.write_behind = on;
        self
    }

    /// Is write-behind on?
    pub fn flush_behind_enabled(&self) -> bool {
        self.options.write_behind
    }

    fn find<T: LaneElement>(&self, name: &str, slab: Option<u64>) -> Result<(usize, &LanePlace, u64)> {
        let lane = self.placement.lane(name)?;
        if !T::reads(lane.spec.dtype) {
            let (is, want) = (lane.spec.dtype.name(), T::TYPE.name());
            return Err(Error::invalid(format!("the lane holds {is}, not {want}")).in_object(name));
        }
        self.find_any(name, slab)
    }

    pub(crate) fn find_any(&self, name: &str, slab: Option<u64>) -> Result<(usize, &LanePlace, u64)> {
        let index = self.placement.index(name)?;
        let lane = &self.placement.lanes[index];
        let k = match (lane.spec.kind, slab) {
            (LaneKind::Slab { .. }, Some(k)) => k,
            (LaneKind::Flat { .. }, None) => 0,
            (LaneKind::Slab { .. }, None) => {
                return Err(Error::invalid("the lane is divided into slabs").in_object(name));
            }
            (LaneKind::Flat { .. }, Some(_)) => {
                return Err(Error::invalid("the lane is flat; it has no slabs").in_object(name));
            }
        };
        if k < self.kept.get(index).copied().unwrap_or(0) {
            return Err(Error::invalid(format!("slab {k} is committed; appending does not overwrite"))
                .in_object(name));
        }
        Ok((index, lane, k))
    }

    fn put<T: LaneElement>(&self, name: &str, slab: Option<u64>, data: &[T]) -> Result<()> {
        self.find::<T>(name, slab)?;
        self.put_values(name, slab, data)
    }

    fn put_values<T: LaneElement>(&self, name: &str, slab: Option<u64>, data: &[T]) -> Result<()> {
        let (index, lane, k) = self.find_any(name, slab)?;
        if data.len() as u64 != lane.spec.elems() {
            return Err(Error::invalid(format!(
                "{} values given, {} expected",
                data.len(),
                lane.spec.elems()
            ))
            .in_object(name));
        }
        if lane.spec.chunk.is_empty() {
            self.put_bytes(index, k, bytemuck::cast_slice(data))
        } else {
            self.put_bytes(index, k, bytemuck::cast_slice(&chunked::to_stored(&lane.spec, data)?))
        }
    }

    pub(crate) fn spec(&self, index: usize) -> &LaneSpec {
        &self.placement.lanes[index].spec
    }

    /// Keeps an error for `finish`.
    pub(crate) fn fail(&self, e: Error) {
        self.lock().failed.get_or_insert(e);
    }

    /// Has the format a checksum for every slab?
    pub(crate) fn has_checksums(&self) -> bool {
        self.options.version != FormatVersion::V1
    }

    pub(crate) fn put_bytes(&self, index: usize, k: u64, bytes: &[u8]) -> Result<()> {
        self.send(index, k, 0, bytes)?;
        self.mark(index, k, if self.has_checksums() { crc32c::crc32c(bytes) } else { 0 });
        Ok(())
    }

    /// Writes bytes at `at` inside slab `k`.
    pub(crate) fn send(&self, index: usize, k: u64, at: u64, bytes: &[u8]) -> Result<()> {
        let offset = self.placement.lanes[index].locate(k)?.0 + at;
        self.target.file().write_at(offset, bytes)?;
        if self.options.write_behind {
            let mut p = self.lock();
            p.written.push((offset, bytes.len() as u64));
            p.pending += bytes.len() as u64;
            if p.pending >= WRITE_BEHIND {
                self.turn(&mut p);
            }
        }
        Ok(())
    }

    /// Notes that slab `k` was written whole.
    pub(crate) fn mark(&self, index: usize, k: u64, crc: u32) {
        if let Some(state) = self.lock().tables[index].get_mut(k as usize) {
            *state = SlabState { crc, written: true };
        }
    }

    /// Starts writing what is dirty, and drops what was started before.
    fn turn(&self, p: &mut Progress) {
        let file = self.target.file();
        for (offset, len) in p.behind.iter().flatten().chain(&p.written) {
            file.drop_cached(*offset, *len);
        }
        // A slow disk may not have written the last ones yet: ask for them again.
        p.behind.push_back(std::mem::take(&mut p.written));
        if p.behind.len() > KEPT_BEHIND {
            p.behind.pop_front();
        }
        p.pending = 0;
    }

    /// Writes slab `k`: `elems` values in C order.
    ///
    /// # Errors
    /// `InvalidArgument` for another type, kind, length or range; `NotFound`; `Io`.
    pub fn write_slab<T: LaneElement>(&self, name: &str, k: u64, data: &[T]) -> Result<()> {
        self.put(name, Some(k), data)
    }

    /// Writes a flat lane.
    ///
    /// # Errors
    /// As [`write_slab`](Self::write_slab).
    pub fn write_flat<T: LaneElement>(&self, name: &str, data: &[T]) -> Result<()> {
        self.put(name, None, data)
    }

    /// Writes slab `k`, or a flat lane for `None`, from little-endian bytes in C order, whatever the lane's type.
    ///
    /// # Errors
    /// As [`write_slab`](Self::write_slab).
    pub fn write_bytes(&self, name: &str, slab: Option<u64>, bytes: &[u8]) -> Result<()> {
        let size = self.placement.lane(name)?.spec.dtype.size() as usize;
        if !bytes.len().is_multiple_of(size) {
            return Err(Error::invalid(format!("{} bytes are no whole number of values", bytes.len()))
                .in_object(name));
        }
        // The bytes move as they are: any element type of the right width serves.
        match size {
            1 => self.put_any::<u8>(name, slab, bytes),
            2 => self.put_any::<u16>(name, slab, bytes),
            4 => self.put_any::<u32>(name, slab, bytes),
            _ => self.put_any::<u64>(name, slab, bytes),
        }
    }

    fn put_any<T: LaneElement>(&self, name: &str, slab: Option<u64>, bytes: &[u8]) -> Result<()> {
        match bytemuck::try_cast_slice::<u8, T>(bytes) {
            Ok(values) => self.put_values(name, slab, values),
            Err(_) => self.put_values(name, slab, &bytemuck::pod_collect_to_vec::<u8, T>(bytes)),
        }
    }

    /// Lends a buffer with slab `k` as it is now; it is written when the guard is dropped.
    ///
    /// # Errors
    /// As [`write_slab`](Self::write_slab). An error while writing back is returned by [`finish`](Self::finish),
    /// or by [`SlabMut::write`].
    pub fn slab_mut<T: LaneElement>(&self, name: &str, k: u64) -> Result<SlabMut<'_, T>> {
        self.lend(name, Some(k))
    }

    /// Lends a buffer with a flat lane.
    ///
    /// # Errors
    /// As [`slab_mut`](Self::slab_mut).
    pub fn flat_mut<T: LaneElement>(&self, name: &str) -> Result<SlabMut<'_, T>> {
        self.lend(name, None)
    }

    fn lend<T: LaneElement>(&self, name: &str, slab: Option<u64>) -> Result<SlabMut<'_, T>> {
        let (index, lane, k) = self.find::<T>(name, slab)?;
        let (offset, _) = lane.locate(k)?;
        let stored =
            usize::try_from(lane.spec.stored_elems()?).map_err(|_| Error::limit("slab too large"))?;
        let mut values = vec![T::zeroed(); stored];
        self.target.file().read_at(offset, bytemuck::cast_slice_mut(&mut values))?;
        if !lane.spec.chunk.is_empty() {
            let whole: Vec<_> = lane.spec.shape.iter().map(|s| 0..*s).collect();
            let mut ordered = vec![T::zeroed(); lane.spec.elems() as usize];
            chunked::read_region(&lane.spec, &values, &whole, &mut ordered)?;
            values = ordered;
        }
        Ok(SlabMut::new(self, index, k, values))
    }

    /// Sends slab `k` of a lane to the disk now and drops it from the page cache.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` (also on a flat lane), `Io`.
    pub fn flush_behind_slab(&self, name: &str, k: u64) -> Result<()> {
        let lane = self.placement.lane(name)?;
        if matches!(lane.spec.kind, LaneKind::Flat { .. }) {
            return Err(Error::invalid("the lane is flat; it has no slabs").in_object(name));
        }
        let (offset, _) = lane.locate(k)?;
        self.target.file().sync()?;
        self.target.file().drop_cached(offset, lane.slab_bytes);
        Ok(())
    }

    /// Makes durable what was written so far; the store is still unfinished.
    ///
    /// # Errors
    /// `Io`.
    pub fn flush(&self) -> Result<()> {
        self.target.file().sync()
    }

    /// Finishes the store, as petektools names it.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finalize(self) -> Result<()> {
        self.finish()
    }

    /// Makes the data durable, then the seal, then the name.
    ///
    /// # Errors
    /// The first error of a dropped slab guard; `AlreadyExists` when the name was taken meanwhile; `Io`.
    pub fn finish(mut self) -> Result<()> {
        let mut p = std::mem::take(&mut *self.lock());
        if let Some(e) = p.failed.take() {
            return Err(e.in_file(&self.path));
        }
        for (lane, table) in self.placement.lanes.iter_mut().zip(std::mem::take(&mut p.tables)) {
            lane.table = table;
        }
        match self.options.version {
            FormatVersion::V1 => self.seal_v1()?,
            FormatVersion::V2 => self.commit_v2()?,
        }
        if self.options.write_behind {
            self.target.file().drop_cached(0, self.placement.data_end);
        }
        match self.target {
            Target::Staged(staged) if self.options.replace => staged.publish_replace().map(|_| ()),
            Target::Staged(staged) => staged.publish_no_replace().map(|_| ()),
            Target::Open(file) => file.unlock(),
        }
    }

    fn seal_v1(&self) -> Result<()> {
        let file = self.target.file();
        let at = v1::seal::offset(self.placement.data_end)?;
        file.set_len(at)?;
        file.sync()?;
        file.write_at(at, &v1::seal::encode(&self.placement))?;
        file.sync()
    }

    fn commit_v2(&self) -> Result<()> {
        let file = self.target.file();
        let table = header::encode_table(&self.placement);
        // A rewritten store has its table and header where they were: nobody can read it now anyway.
        let table_offset = match (self.mode, self.committed) {
            (Mode::Overwrite, Some((record, _))) => record
                .header_offset
                .checked_sub(table.len() as u64)
                .ok_or_else(|| Error::corrupt("the slab table does not fit before the header"))?,
            _ => self
                .placement
                .data_end
                .checked_next_multiple_of(ALIGN)
                .ok_or_else(|| Error::invalid("the store passes 2^64 bytes"))?,
        };
        let json = header::encode(&self.placement, table_offset, &table)?;
        let header_offset = table_offset + table.len() as u64;
        file.write_at(table_offset, &table)?;
        file.write_at(header_offset, &json)?;
        let file_bytes = header_offset + json.len() as u64;
        if self.mode != Mode::Append {
            file.set_len(file_bytes)?;
        }
        file.sync()?;
        let (generation, slot) = match self.committed {
            None => (1, 0),
            Some((record, slot)) if self.mode == Mode::Append => (next_generation(record)?, 1 - slot),
            // The other slot holds the record that says "being rewritten".
            Some((record, slot)) => (next_generation(record)?.saturating_add(1), slot),
        };
        let record = CommitRecord {
            state: State::Sealed,
            generation,
            header_offset,
            header_bytes: json.len() as u64,
            header_crc: crc32c::crc32c(&json),
            file_bytes,
        };
        file.write_at(SLOTS[slot], &record.encode())?;
        file.sync()
    }
}

fn next_generation(record: CommitRecord) -> Result<u64> {
    record
        .generation
        .checked_add(1)
        .ok_or_else(|| Error::corrupt("commit record: the generation cannot grow"))
}
