//! A pack back to plain counts: every frame in order, proven on the way, and HDF5 files of the source's layout.

use super::Pack;
use crate::digest::Sha256Sum;
use crate::export::{MASK, STACK};
use crate::identity::MaskOrigin;
use crate::read::Values;
use crate::sha_pair::Sha256Stream;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::Disk;
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::format::datatype::Datatype;
use tensilo_hdf5::write::{FileWriter, Filters, Value, WriteOptions};

/// Bytes of frames that are unpacked together, unless a tile takes more.
const WINDOW: u64 = 32 << 20;

/// What was streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Number of frames.
    pub frames: u64,
    /// SHA-256 of the little-endian counts that were streamed.
    pub sha256: Sha256Sum,
    /// Was it compared with the hash of the source's counts? It was equal then.
    pub proven: bool,
}

impl Pack {
    /// Hands all frames, in order and some whole frames at a time, to `take`, as little-endian bytes.
    ///
    /// # Errors
    /// `Corrupt` at the end when raw counts are not those of the source; errors of reading, of `take` and of the monitor.
    pub fn export(
        &self,
        values: Values,
        monitor: &dyn Monitor,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Exported> {
        let l = self.layout();
        let (frame, tile) = (l.frame_bytes(), u64::from(l.block().scans));
        let window = ((WINDOW / frame).max(1).next_multiple_of(tile)).min(l.scans());
        let (mut bytes, _charge) = self.budget().buffer(window * frame, "a window of frames")?;
        let mut sha = Sha256Stream::new();
        for first in (0..l.scans()).step_by(window as usize) {
            let end = (first + window).min(l.scans());
            let part = &mut bytes[..((end - first) * frame) as usize];
            let within = Within { whole: monitor, done: first * frame, total: l.logical_bytes() };
            self.frames_into(first..end, values, part, &within)?;
            if cfg!(target_endian = "big") {
                part.chunks_exact_mut(l.counts().bytes()).for_each(<[u8]>::reverse);
            }
            sha.update(part);
            take(part)?;
        }
        let sha256 = sha.finish();
        let raw = values == Values::Raw || self.excluded().is_empty();
        if raw && sha256 != self.index().raw_sha256 {
            let stated = self.index().raw_sha256;
            let e = Error::corrupt(format!("the counts have SHA-256 {sha256}, the index states {stated}"));
            return Err(self.in_file(e));
        }
        Ok(Exported { frames: l.scans(), sha256, proven: raw })
    }

    /// Writes an HDF5 file of a detector's layout: one stack with a bitshuffle/LZ4 chunk for each frame, its `scan_shape`,
    /// and the pixel mask where the source had one: its codes, or 1 for an excluded pixel where only those are known.
    /// Calibration is not written.
    ///
    /// # Errors
    /// As [`export`](Self::export), `AlreadyExists` unless `replace`, errors of the disk. After an error there is no file.
    pub fn export_hdf5(
        &self,
        disk: Arc<dyn Disk>,
        path: &Path,
        values: Values,
        replace: bool,
        monitor: &dyn Monitor,
    ) -> Result<Exported> {
        let l = self.layout();
        let shape = [&[l.scans()], l.detector_shape()].concat();
        let chunk = [&[1], l.detector_shape()].concat();
        let scan: Vec<i64> = l.scan_shape().iter().map(|n| *n as i64).collect();
        let mut writer = FileWriter::create(disk, path, WriteOptions::default().threads(self.threads()))?;
        let counts = l.counts();
        let mut stack = writer
            .dataset(STACK)
            .datatype(Datatype::native_integer(counts.bytes() as u8, counts.is_signed()))
            .shape(&shape)
            .chunk(&chunk)
            .filters(Filters::bitshuffle_lz4())
            .attribute("scan_shape", Value::array(&scan, &[scan.len() as u64])?)
            .chunk_writer()?;
        let mut coords = vec![0; shape.len()];
        let exported = self.export(values, monitor, &mut |frames| {
            for frame in frames.chunks_exact(l.frame_bytes() as usize) {
                stack.write_chunk(&coords, frame.to_vec())?;
                coords[0] += 1;
            }
            Ok(())
        })?;
        stack.finish()?;
        if self.index().mask_origin == MaskOrigin::Source {
            let codes = match self.mask_codes()? {
                Some(codes) => codes,
                None => {
                    let mut codes = tensilo_core::buffer::zeroed_vec::<u32>(l.pixels() as usize)?;
                    self.excluded().iter().for_each(|p| codes[*p as usize] = 1);
                    codes
                }
            };
            writer.dataset(MASK).shape(l.detector_shape()).write(&codes)?;
        }
        if replace { writer.finish_replacing() } else { writer.finish() }?;
        Ok(exported)
    }
}

/// Progress of a window as progress of the whole.
struct Within<'m> {
    whole: &'m dyn Monitor,
    done: u64,
    total: u64,
}

impl Monitor for Within<'_> {
    fn poll(&self, _: &Progress) -> Result<()> {
        self.whole.poll(&Progress { stage: "unpacking", done: self.done, total: self.total })
    }
}
