//! The files of a folder as records.

use crate::BLOCK;
use std::path::{Path, PathBuf};
use tensilo_core::dtype::DType;
use tensilo_core::gather::{
    FieldBuffer, FieldSchema, Gather, Schema, StoreFingerprint, check_buffers, check_lengths,
};
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Progress, Result};

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
        let mut block = vec![0; BLOCK as usize];
        for (name, path, _) in &self.files {
            let source = FileSource::open(path)?;
            let (mut sum, mut at) = (0, 0);
            while at < source.len() {
                let part = block.len().min((source.len() - at) as usize);
                source.read_at(at, &mut block[..part])?;
                sum = crc32c::crc32c_append(sum, &block[..part]);
                at += part as u64;
            }
            print = print.with(name.as_bytes()).with_number(u64::from(sum));
        }
        Ok(print)
    }

    fn lengths(&self, field: usize, ids: &[u64], steps: &mut [u64]) -> Result<()> {
        check_lengths(self, field, ids, steps)?;
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
