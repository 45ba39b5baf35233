//! A pack back to plain counts: every frame in order, proven on the way, and HDF5 files of the source's layout.
//!
//! Memory is bounded by one packed shard and a window of frames. What was streamed is hashed; when it is not what the
//! manifest states, the stream ends in an error, before any file that is made from it has its name.

use crate::digest::Sha256Sum;
use crate::identity::MaskOrigin;
use crate::le;
use crate::profile::Flavour;
use crate::read::{Pack, Values};
use crate::sha_pair::Sha256Stream;
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::Disk;
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::write::{FileWriter, Filters, Value, WriteOptions};

/// Bytes of frames that are unpacked together, at least 32 frames.
const WINDOW: u64 = 16 << 20;
/// Frames of one unpacked group.
const GROUP: u64 = 32;

/// Where the stack of frames is in a file of the source's layout.
pub const STACK: &str = "/entry/data/data";
/// Where the detector's mask is in it.
pub const MASK: &str = "/entry/instrument/detector/detectorSpecific/pixel_mask";

/// What was streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Number of frames.
    pub frames: u64,
    /// SHA-256 of the counts as the manifest hashes them: raw values in 16 bits, masked ones in the working type.
    pub sha256: Sha256Sum,
    /// Did the manifest state a hash to compare with? It was equal then.
    pub proven: bool,
}

impl Pack {
    /// Hands all frames, in order and some whole frames at a time, to `take`.
    ///
    /// ```no_run
    /// use tensilo_core::Quiet;
    /// use tensilo_pack::read::{Pack, Values};
    /// let pack = Pack::open("scan.h5")?;
    /// let mut total = 0_u64;
    /// pack.export(Values::Masked, &Quiet, &mut |frames| {
    ///     total += frames.iter().map(|v| u64::from(*v)).sum::<u64>();
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupt` at the end when the counts are not those that the manifest states; `Unsupported` when raw values cannot
    /// be restored; errors of reading, of `take` and of the monitor.
    pub fn export(
        &self,
        values: Values,
        monitor: &dyn Monitor,
        take: &mut dyn FnMut(&[u16]) -> Result<()>,
    ) -> Result<Exported> {
        let (scans, pixels) = (self.geometry().scans(), self.geometry().pixels());
        let per_shard = u64::from(self.index().cut.scans_per_shard);
        let window = (WINDOW / (2 * pixels)).next_multiple_of(GROUP).max(GROUP).min(per_shard);
        let _charge = self.budget().bytes(2 * window * pixels, "a window of frames")?;
        let mut frames = tensilo_core::buffer::zeroed_vec::<u16>((window * pixels) as usize)?;
        let mut hash = ExportHash::new(self.flavour(), values);
        let total = 2 * scans * pixels;
        for (ordinal, first) in (0..scans).step_by(per_shard as usize).enumerate() {
            // Held, so that it is read once however small the cache is.
            let _shard = self.shard(ordinal)?;
            let end = first + per_shard;
            for scan in (first..end).step_by(window as usize) {
                let within = Within { whole: monitor, before: 2 * scan * pixels, total };
                let n = window.min(end - scan);
                let part = &mut frames[..(n * pixels) as usize];
                self.frames_into(scan..scan + n, values, part, &within)?;
                hash.update(part);
                take(part)?;
            }
        }
        let sha256 = hash.finish();
        let stated = match values {
            Values::Raw => self.manifest().raw_sha256,
            Values::Masked => Some(self.manifest().working_sha256),
        };
        if let Some(stated) = stated.filter(|s| *s != sha256) {
            let e = Error::corrupt(format!("the counts have SHA-256 {sha256}, the manifest states {stated}"));
            return Err(self.in_file(e));
        }
        Ok(Exported { frames: scans, sha256, proven: stated.is_some() })
    }

    /// Writes an HDF5 file of the source's layout: one uint16 stack with a bitshuffle/LZ4 chunk for each frame, its
    /// `scan_shape`, and the pixel mask where the source had one.
    ///
    /// A pack keeps which pixels the mask excludes, not its codes: an excluded pixel has code 1. Calibration is not
    /// written.
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
        let [scan_rows, scan_columns, rows, columns] = self.shape();
        let (pixels, scans) = (self.geometry().pixels() as usize, self.geometry().scans());
        let (rows, columns) = (u64::from(rows), u64::from(columns));
        let mut writer = FileWriter::create(disk, path, WriteOptions::default().threads(self.threads()))?;
        let mut stack = writer
            .dataset(STACK)
            .element::<u16>()
            .shape(&[scans, rows, columns])
            .chunk(&[1, rows, columns])
            .filters(Filters::bitshuffle_lz4())
            .attribute("scan_shape", Value::array(&[i64::from(scan_rows), i64::from(scan_columns)], &[2])?)
            .chunk_writer()?;
        let mut next = 0;
        let exported = self.export(values, monitor, &mut |frames| {
            for frame in frames.chunks_exact(pixels) {
                stack.write_chunk(&[next, 0, 0], le::bytes_of_u16(frame).into_owned())?;
                next += 1;
            }
            Ok(())
        })?;
        stack.finish()?;
        let origin = self.manifest().get("detector_mask_identity_origin").and_then(|v| v.as_str());
        if origin != Some(MaskOrigin::Implicit.name()) {
            let mut mask = vec![0_u32; pixels];
            self.excluded().iter().for_each(|p| mask[*p as usize] = 1);
            writer.dataset(MASK).shape(&[rows, columns]).write(&mask)?;
        }
        if replace { writer.finish_replacing() } else { writer.finish() }?;
        Ok(exported)
    }
}

/// Progress of a window as progress of the whole.
struct Within<'m> {
    whole: &'m dyn Monitor,
    before: u64,
    total: u64,
}

impl Monitor for Within<'_> {
    fn poll(&self, progress: &Progress) -> Result<()> {
        self.whole.poll(&Progress {
            stage: "unpacking",
            done: self.before + progress.done,
            total: self.total,
        })
    }
}

/// Hashes frames in the element type that the manifest hashes.
struct ExportHash {
    stream: Sha256Stream,
    narrow: Option<Vec<u8>>,
}

impl ExportHash {
    fn new(flavour: Flavour, values: Values) -> Self {
        let narrow = values == Values::Masked && flavour == Flavour::BitPacked8;
        Self { stream: Sha256Stream::new(), narrow: narrow.then(Vec::new) }
    }

    fn update(&mut self, frames: &[u16]) {
        match &mut self.narrow {
            None => self.stream.update(&le::bytes_of_u16(frames)),
            Some(bytes) => {
                bytes.clear();
                bytes.extend(frames.iter().map(|v| *v as u8));
                self.stream.update(bytes);
            }
        }
    }

    fn finish(self) -> Sha256Sum {
        self.stream.finish()
    }
}
