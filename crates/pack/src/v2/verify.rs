//! Proving a pack of format 2.
//!
//! Every byte is covered: the preamble by its CRC32C, the payload by its shards' SHA-256, everything else by the preamble's
//! SHA-256 of the frame; blocks and tables have a CRC32C each on top, and the receipt has a SHA-256 of the whole file. One
//! shard can be proven without reading the others. Deep verification decodes everything and compares the SHA-256 of the
//! counts with the source's.
//!
//! Damage is the answer, not an error: it is listed as [`Finding`]s. An error means that nothing could be examined.

use super::format::index::PackIndex;
use super::format::preamble::PREAMBLE;
use super::format::shard_table::blocks_per_tile;
use super::produce::{INDEX, PAYLOAD};
use super::read::{Pack, ReadOptions};
use super::receipt::Receipt;
use super::source::inspect::{self, InspectOptions, SourceKind};
use crate::digest::Sha256Sum;
use crate::read::Values;
use crate::receipt_path;
use crate::sha_pair::Sha256Stream;
use crate::verify::Finding;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Limits, Monitor, Progress, Result};

/// Bytes that are read and hashed at a time.
const STEP: u64 = 1 << 20;

/// How a pack is verified.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// Is the receipt checked? Without it a pack is no published one, but its contents can still be proven.
    pub receipt: bool,
    /// Where the receipt is, if not beside the pack.
    pub receipt_path: Option<PathBuf>,
    /// Only this shard is read, beside preamble and index; nothing is said about the others.
    pub shard: Option<u64>,
    /// Is everything decoded and compared with the hash of the source's counts?
    pub deep: bool,
    /// The source to compare members and identity with.
    pub source: Option<PathBuf>,
    /// Which dataset of the source, where it has several.
    pub dataset: Option<String>,
    /// Most threads.
    pub threads: Threads,
    /// What the file may make us allocate.
    pub limits: Limits,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            receipt: true,
            receipt_path: None,
            shard: None,
            deep: false,
            source: None,
            dataset: None,
            threads: Threads::default(),
            limits: Limits::default(),
        }
    }
}

/// What verifying found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verification {
    /// What is wrong; nothing when all that was asked for is proven.
    pub findings: Vec<Finding>,
    /// Shape, if the pack says.
    pub shape: Option<Vec<u64>>,
    /// Shards that were proven or found damaged.
    pub shards_checked: u64,
    /// SHA-256 of the source's counts: recomputed by deep verification, else as stated.
    pub raw_sha256: Option<Sha256Sum>,
    /// SHA-256 of the whole file, recomputed when the receipt is checked.
    pub output_sha256: Option<Sha256Sum>,
    /// Was the receipt checked?
    pub receipt_checked: bool,
    /// Was everything decoded?
    pub deep: bool,
    /// Was the source hashed again?
    pub source_checked: bool,
}

impl Verification {
    /// Is everything that was asked for proven?
    pub fn is_proven(&self) -> bool {
        self.findings.is_empty()
    }

    fn find(&mut self, subject: &'static str, message: impl Into<String>) {
        self.findings.push(Finding { subject, message: message.into() });
    }

    /// The verification as JSON.
    pub fn to_json(&self) -> Value {
        let findings: Vec<Value> =
            self.findings.iter().map(|f| json!({ "subject": f.subject, "message": f.message })).collect();
        json!({
            "format": 2,
            "proven": self.is_proven(),
            "findings": findings,
            "sourceShape": self.shape,
            "shardsChecked": self.shards_checked,
            "sourceRawLogicalSHA256": self.raw_sha256,
            "outputSHA256": self.output_sha256,
            "receiptChecked": self.receipt_checked,
            "deep": self.deep,
            "sourceChecked": self.source_checked,
        })
    }
}

/// Verifies a pack, or one of its shards.
///
/// # Errors
/// `NotFound` or `Io` when pack or source cannot be examined, `InvalidArgument` for a shard that is not there, `Limit`, the
/// monitor's. Damage is no error.
pub fn verify(path: &Path, options: &VerifyOptions, monitor: &dyn Monitor) -> Result<Verification> {
    // A pack that is not there, or may not be read, cannot be examined.
    verify_source(Arc::new(FileSource::open(path)?), path, options, monitor)
}

/// As [`verify`], for a pack held by a source; the receipt is looked for beside `path`.
///
/// # Errors
/// As [`verify`].
pub fn verify_source(
    source: Arc<dyn ByteSource>,
    path: &Path,
    options: &VerifyOptions,
    monitor: &dyn Monitor,
) -> Result<Verification> {
    let mut v = Verification::default();
    let read = ReadOptions { limits: options.limits.clone(), threads: options.threads };
    let pack = match Pack::from_source(source, read) {
        Ok(pack) => pack,
        Err(e) => return damage("pack", e, v),
    };
    v.shape = Some(pack.shape());
    v.raw_sha256 = Some(pack.index().raw_sha256);
    let shards = pack.layout().shards();
    let wanted = match options.shard {
        Some(k) if k >= shards => {
            return Err(Error::invalid(format!("there is no shard {k}; the pack has {shards}")).in_file(path));
        }
        Some(k) => k..k + 1,
        None => 0..shards,
    };
    let whole = options.shard.is_none();
    let receipt = read_receipt(path, &pack, options, &mut v)?;
    let output = check_bytes(&pack, wanted, whole, whole && receipt.is_some(), monitor, &mut v)?;
    if let Some(receipt) = &receipt {
        v.receipt_checked = true;
        if let Some(sum) = output {
            v.output_sha256 = Some(sum);
            if receipt.output_sha256 != sum {
                v.find("receipt", format!("outputSHA256 is {}, the file has {sum}", receipt.output_sha256));
            }
        }
    }
    // What is known to be damaged says nothing about the container.
    if whole
        && v.is_proven()
        && let Err(e) = check_container(&pack)
    {
        if matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit) {
            return Err(e);
        }
        v.find("pack", e.message());
    }
    if options.deep && v.is_proven() {
        v.deep = true;
        if let Err(e) = pack.export(Values::Raw, monitor, &mut |_| Ok(())) {
            v = damage("values", e, v)?;
        }
    }
    if let Some(source) = &options.source {
        check_source(source, &pack, receipt.as_ref(), options, monitor, &mut v)?;
        v.source_checked = true;
    }
    Ok(v)
}

/// Damage is a finding; everything else stays an error.
fn damage(subject: &'static str, e: Error, mut v: Verification) -> Result<Verification> {
    match e.kind() {
        ErrorKind::Corrupt | ErrorKind::Unsupported => {
            let at = e.offset().map(|o| format!(" (at byte {o})")).unwrap_or_default();
            v.find(subject, format!("{}{at}", e.message()));
            Ok(v)
        }
        _ => Err(e),
    }
}

fn read_receipt(
    path: &Path,
    pack: &Pack,
    options: &VerifyOptions,
    v: &mut Verification,
) -> Result<Option<Receipt>> {
    if !options.receipt {
        return Ok(None);
    }
    let path = options.receipt_path.clone().unwrap_or_else(|| receipt_path(path));
    match Receipt::read(&path) {
        Ok(receipt) => {
            for difference in receipt.differences(pack.index(), pack.file_bytes()) {
                v.find("receipt", difference);
            }
            Ok(Some(receipt))
        }
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {
            let what = if e.kind() == ErrorKind::NotFound { "there is no receipt" } else { e.message() };
            v.find("receipt", format!("{}: {what}; the pack does not count as published", path.display()));
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// What a unit of checking is about.
#[derive(Clone, Copy)]
enum Unit {
    /// The whole file, for the receipt.
    File,
    /// Everything but preamble and payload.
    Frame,
    Shard(u64),
}

/// Checks shards, and the frame and the whole file where asked; returns the hash of the file.
fn check_bytes(
    pack: &Pack,
    shards: Range<u64>,
    frame: bool,
    file: bool,
    monitor: &dyn Monitor,
    v: &mut Verification,
) -> Result<Option<Sha256Sum>> {
    v.shards_checked = shards.end - shards.start;
    let units: Vec<Unit> = [file.then_some(Unit::File), frame.then_some(Unit::Frame)]
        .into_iter()
        .flatten()
        .chain(shards.map(Unit::Shard))
        .collect();
    let found: Mutex<Vec<(usize, String)>> = Mutex::default();
    let output = Mutex::new(None);
    let total = pack.file_bytes() * if file { 2 } else { 1 };
    let lock = |at: usize, message: String| {
        found.lock().unwrap_or_else(PoisonError::into_inner).push((at, message));
    };
    pack.threads().for_each(
        units.len(),
        monitor,
        "verifying",
        total,
        || vec![0; STEP as usize],
        |buffer, i, done| {
            let result = match units[i] {
                Unit::File => hash(pack, 0..pack.file_bytes(), 0..0, buffer, done).map(|sum| {
                    *output.lock().unwrap_or_else(PoisonError::into_inner) = Some(sum);
                    None
                }),
                Unit::Frame => check_frame(pack, buffer, done),
                Unit::Shard(k) => check_shard(pack, k, buffer, done),
            };
            match result {
                Ok(None) => Ok(()),
                Ok(Some(message)) => {
                    lock(i, message);
                    Ok(())
                }
                Err(e) if e.kind() == ErrorKind::Corrupt => {
                    lock(i, e.message().to_owned());
                    Ok(())
                }
                Err(e) => Err(e),
            }
        },
    )?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort();
    found.into_iter().for_each(|(_, message)| v.find("pack", message));
    Ok(output.into_inner().unwrap_or_else(PoisonError::into_inner))
}

type Done = tensilo_core::threads::Done;

/// Hashes one range of the file, then another.
fn hash(
    pack: &Pack,
    first: Range<u64>,
    then: Range<u64>,
    buffer: &mut [u8],
    done: &Done,
) -> Result<Sha256Sum> {
    let mut sha = Sha256Stream::new();
    for range in [first, then] {
        let mut at = range.start;
        while at < range.end {
            let n = (range.end - at).min(buffer.len() as u64) as usize;
            pack.source().read_at(at, &mut buffer[..n])?;
            sha.update(&buffer[..n]);
            done.add(n as u64);
            at += n as u64;
        }
    }
    Ok(sha.finish())
}

fn check_frame(pack: &Pack, buffer: &mut [u8], done: &Done) -> Result<Option<String>> {
    let (p, end) = (pack.preamble(), pack.file_bytes());
    let payload_end = p.payload.offset + p.payload.bytes;
    let sum = hash(pack, PREAMBLE..p.payload.offset, payload_end..end, buffer, done)?;
    Ok((sum != p.frame_sha256).then(|| {
        format!("what is around the payload has SHA-256 {sum}, the preamble states {}", p.frame_sha256)
    }))
}

/// Checks the SHA-256 of a shard, then each of its blocks.
fn check_shard(pack: &Pack, ordinal: u64, buffer: &mut [u8], done: &Done) -> Result<Option<String>> {
    let record = &pack.index().shards[ordinal as usize];
    let start = pack.preamble().payload.offset + record.offset;
    let sum = hash(pack, start..start + record.bytes(), 0..0, buffer, done)?;
    if sum != record.sha256 {
        return Ok(Some(format!("shard {ordinal} has SHA-256 {sum}, the index states {}", record.sha256)));
    }
    let mut scratch = super::read::BlockScratch::default();
    let per_tile = blocks_per_tile(pack.layout(), pack.excluded().len());
    let per_shard = pack.layout().shard_scans() / u64::from(pack.layout().block().scans);
    for tile in ordinal * per_shard..ordinal * per_shard + pack.layout().tiles_of(ordinal) {
        for slot in 0..per_tile {
            pack.with_block(tile, slot, &mut scratch, |_, _| Ok(()))?;
        }
    }
    Ok(None)
}

/// Is the HDF5 file around payload and index the one that the preamble describes?
fn check_container(pack: &Pack) -> Result<()> {
    let options = tensilo_hdf5::read::OpenOptions {
        limits: pack.budget().limits().clone(),
        ..tensilo_hdf5::read::OpenOptions::default()
    };
    let file = tensilo_hdf5::read::File::from_source(pack.source().clone(), options)?;
    let p = pack.preamble();
    for (name, expected) in [(PAYLOAD, p.payload), (INDEX, p.index)] {
        let dataset = file.dataset(name)?;
        let here = (dataset.contiguous_offset(), dataset.elements());
        if here != (Some(expected.offset), expected.bytes) || dataset.datatype().size != 1 {
            return Err(Error::corrupt(format!("{name} is not where the preamble states")));
        }
    }
    Ok(())
}

/// Hashes the source's files again and compares them with pack and receipt.
fn check_source(
    source: &Path,
    pack: &Pack,
    receipt: Option<&Receipt>,
    options: &VerifyOptions,
    monitor: &dyn Monitor,
    v: &mut Verification,
) -> Result<()> {
    let l = pack.layout();
    let inspect_options = InspectOptions {
        dataset: options.dataset.clone(),
        object: receipt.and_then(|r| r.source_object.clone()),
        scan_shape: Some(l.scan_shape().to_vec()),
        detector_axes: l.detector_shape().len(),
        threads: options.threads,
        limits: options.limits.clone(),
        ..InspectOptions::default()
    };
    let found = match inspect::inspect(source, &inspect_options, monitor) {
        Ok(found) => found,
        // What is no stack of this shape is not the source.
        Err(e) if matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported) => {
            v.find("source", e.message().to_owned());
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    compare_source(&found, pack.index(), receipt, v);
    monitor.poll(&Progress { stage: "verifying", ..Progress::default() })
}

fn compare_source(
    found: &inspect::Inspection,
    index: &PackIndex,
    receipt: Option<&Receipt>,
    v: &mut Verification,
) {
    if found.source_identity != index.source_identity {
        v.find(
            "source",
            format!("its identity is {}, the pack states {}", found.source_identity, index.source_identity),
        );
    }
    if (&found.shape(), found.counts) != (&index.layout.shape(), index.layout.counts()) {
        v.find("source", format!("it is {:?} {}, which is not the pack's", found.shape(), found.counts));
    }
    if found.mask_sha256 != index.mask_sha256 {
        v.find("source", "its mask is not the pack's");
    }
    let same_members = receipt.is_none_or(|r| {
        let theirs = r.source_members.iter().map(|m| (&*m.role, m.bytes, m.sha256));
        theirs.eq(found.members.iter().map(|m| (m.role.name(), m.bytes, m.sha256)))
    });
    if !same_members && found.kind != SourceKind::PackV1 {
        v.find("source", "its files are not those that the receipt lists");
    }
}
