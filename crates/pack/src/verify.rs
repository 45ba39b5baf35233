//! Proving a pack: not compared with a copy, but decoded whole and hashed.
//!
//! Checked are prelude, CRC, index and manifest against each other; of every shard the payload hash, every base,
//! checkpoint and width; then all values are decoded, and raw and working SHA-256 recomputed, which proves the stated
//! constants of excluded pixels too. With the receipt, every field of it but timing, time and destination, the header
//! hashes and the hash of the whole file; with the source, its members and identity.
//!
//! Damage is the answer, not an error: it is listed as [`Finding`]s. An error means that nothing could be examined.

use crate::digest::Sha256Sum;
use crate::le;
use crate::ordered::{self, Chain, Ordered, Schedule, lock};
use crate::profile::Flavour;
use crate::read::{Pack, ReadOptions, Shard};
use crate::receipt::{Proven, Receipt};
use crate::receipt_path;
use crate::sha_pair::{Sha256Stream, pairs_pay, update_pair};
use crate::source::inspect::Role;
use crate::source::{authentication, catalog, family};
use crate::unpack::{self, Excluded, UNIT};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tensilo_core::io::FileSource;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, ErrorKind, Limits, Monitor, Progress, Result};

/// How a pack is verified.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// Is the receipt checked? Without it a pack is no published one, but its contents can still be proven.
    pub receipt: bool,
    /// Where the receipt is, if not beside the pack.
    pub receipt_path: Option<PathBuf>,
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
            source: None,
            dataset: None,
            threads: Threads::default(),
            limits: Limits::default(),
        }
    }
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: `pack`, `values`, `receipt`, `source`.
    pub subject: &'static str,
    /// What is wrong.
    pub message: String,
}

/// What verifying found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verification {
    /// What is wrong; nothing when the pack is proven.
    pub findings: Vec<Finding>,
    /// Shape of the acquisition, if the pack says.
    pub shape: Option<[u32; 4]>,
    /// Flavour of the pack.
    pub flavour: Option<Flavour>,
    /// SHA-256 of all raw values, recomputed.
    pub raw_sha256: Option<Sha256Sum>,
    /// SHA-256 of all working values, recomputed.
    pub working_sha256: Option<Sha256Sum>,
    /// SHA-256 of the whole file, recomputed when the receipt is checked.
    pub output_sha256: Option<Sha256Sum>,
    /// Was the receipt checked?
    pub receipt_checked: bool,
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
            "proven": self.is_proven(),
            "findings": findings,
            "sourceShape": self.shape,
            "sourceRawLogicalSHA256": self.raw_sha256,
            "workingLogicalSHA256": self.working_sha256,
            "outputSHA256": self.output_sha256,
            "receiptChecked": self.receipt_checked,
            "sourceChecked": self.source_checked,
        })
    }
}

/// Verifies a pack.
///
/// # Errors
/// `NotFound` or `Io` when pack or source cannot be examined, `Limit`, the monitor's. Damage is no error.
pub fn verify(path: &Path, options: &VerifyOptions, monitor: &dyn Monitor) -> Result<Verification> {
    let mut v = Verification::default();
    // A pack that is not there, or may not be read, cannot be examined.
    let source = Arc::new(FileSource::open(path)?);
    let read = ReadOptions {
        limits: options.limits.clone(),
        threads: options.threads,
        // Every shard is read once.
        cached_bytes: 0,
    };
    let pack = match Pack::from_source(source, read) {
        Ok(pack) => pack,
        Err(e) => return damage("pack", e, v),
    };
    v.shape = Some(pack.index().geometry.shape());
    v.flavour = Some(pack.index().flavour);
    let receipt = read_receipt(path, &pack, options, &mut v)?;
    let proven = match decode_all(&pack, receipt.is_some(), options.threads, monitor) {
        Ok(proven) => proven,
        Err(e) => return damage("values", e, v),
    };
    v.raw_sha256 = proven.raw_sha256;
    v.working_sha256 = Some(proven.working_sha256);
    compare_values(&pack, &proven, &mut v);
    if let Some(receipt) = &receipt {
        v.output_sha256 = Some(proven.output_sha256);
        v.receipt_checked = true;
        for difference in receipt.differences_from(&proven) {
            v.find("receipt", difference);
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
            for difference in receipt.differences(pack) {
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

fn compare_values(pack: &Pack, proven: &Proven, v: &mut Verification) {
    let manifest = pack.manifest();
    if proven.working_sha256 != manifest.working_sha256 {
        v.find(
            "values",
            format!(
                "the working values hash to {}, the manifest states {}",
                proven.working_sha256, manifest.working_sha256
            ),
        );
    }
    match (manifest.raw_sha256, proven.raw_sha256) {
        (Some(stated), Some(found)) if stated != found => {
            v.find("values", format!("the raw values hash to {found}, the manifest states {stated}"));
        }
        (Some(_), None) => {
            v.find(
                "values",
                "the values of excluded pixels are not stated, so the raw hash cannot be proven",
            );
        }
        _ => {}
    }
}

/// Hashes the source's files again and compares members and identity.
fn check_source(
    source: &Path,
    pack: &Pack,
    receipt: Option<&Receipt>,
    options: &VerifyOptions,
    monitor: &dyn Monitor,
    v: &mut Verification,
) -> Result<()> {
    let dataset = catalog::choose(source, options.dataset.as_deref())?;
    let files = family::files(&dataset, &options.limits)?;
    let members = authentication::hash_members(&files, options.threads, monitor, "hashing source")?;
    let sums = |role| members.iter().filter(move |(m, _)| m.role == role).map(|(m, _)| m.sha256);
    let data: Vec<Sha256Sum> = sums(Role::Data).collect();
    let identity = crate::identity::source_identity(sums(Role::Master).next().as_ref(), &data);
    if identity != pack.index().source_identity {
        v.find("source", format!("its identity is {identity}, the pack's {}", pack.index().source_identity));
    }
    let Some(receipt) = receipt else { return Ok(()) };
    if receipt.source_members.len() != members.len() {
        v.find(
            "source",
            format!("{} members, the receipt lists {}", members.len(), receipt.source_members.len()),
        );
    }
    for (i, ((found, _), stated)) in members.iter().zip(&receipt.source_members).enumerate() {
        // A source may have moved; its files keep their names.
        let same_name = Path::new(&stated.path).file_name() == found.path.file_name();
        let same =
            found.role.name() == stated.role && found.bytes == stated.bytes && found.sha256 == stated.sha256;
        if !(same && same_name) {
            v.find(
                "source",
                format!(
                    "sourceMembers[{i}] is {} {} of {} bytes, the source has {} {} of {} bytes",
                    stated.role,
                    stated.path,
                    stated.bytes,
                    found.role.name(),
                    found.path.display(),
                    found.bytes
                ),
            );
        }
    }
    Ok(())
}

/// Decodes every value, in order, on several threads.
pub(crate) fn decode_all(
    pack: &Pack,
    hash_file: bool,
    threads: Threads,
    monitor: &dyn Monitor,
) -> Result<Proven> {
    let index = pack.index();
    let pixels = index.geometry.pixels();
    let items_per_group = index.cut.scans_per_shard as usize / UNIT;
    let excluded = unpack::raw_values(pack).ok();
    let source_is_u8 = pack.manifest().get("source_dtype") == Some(&"uint8".into());
    let work = Decode {
        pack,
        excluded,
        source_is_u8,
        loaded: [RwLock::new(None), RwLock::new(None)],
        shards: Mutex::default(),
        raw: Mutex::default(),
        hashes: Mutex::new(Hashes {
            working: Sha256Stream::new(),
            file: Sha256Stream::new(),
            at: 0,
            end: if hash_file { pack.file_bytes() } else { 0 },
            quota: pack.file_bytes().div_ceil((items_per_group * index.shards.len()) as u64),
            buffer: vec![0; 64 << 10],
        }),
    };
    let workers = threads.get();
    let unit_bytes = 2 * UNIT as u64 * pixels;
    let narrow = index.flavour == Flavour::BitPacked8;
    let slot_bytes = unit_bytes + if narrow { unit_bytes / 2 } else { unit_bytes };
    let slots = workers + 1;
    let _charge = pack.budget().bytes(slots as u64 * slot_bytes, "frames being decoded")?;
    let count = UNIT * pixels as usize;
    let slots = (0..slots)
        .map(|_| Frames {
            raw: vec![0; count],
            working8: vec![0; if narrow { count } else { 0 }],
            working16: vec![0; if narrow { 0 } else { count }],
        })
        .collect();
    let schedule = Schedule {
        groups: index.shards.len(),
        items_per_group,
        groups_at_once: 2,
        workers,
        split: workers > 1 && !pairs_pay(),
        stage: "verifying",
        unit: unit_bytes,
        done: 0,
        total: unit_bytes * (items_per_group * index.shards.len()) as u64,
    };
    ordered::run(&work, slots, schedule, monitor)?;
    let raw = work.raw.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut hashes = work.hashes.into_inner().unwrap_or_else(PoisonError::into_inner);
    while hashes.at < hashes.end {
        let step = hashes.end - hashes.at;
        hashes.hash_file(pack, step.min(4 << 20), &mut Sha256Stream::new(), &[])?;
        monitor.poll(&Progress { stage: "hashing pack", done: hashes.at, total: hashes.end })?;
    }
    Ok(Proven {
        raw_sha256: work.excluded.is_some().then(|| raw.finish()),
        working_sha256: hashes.working.finish(),
        shards: work.shards.into_inner().unwrap_or_else(PoisonError::into_inner),
        output_sha256: hashes.file.finish(),
    })
}

struct Frames {
    raw: Vec<u16>,
    working8: Vec<u8>,
    working16: Vec<u16>,
}

struct Hashes {
    working: Sha256Stream,
    /// The whole file, hashed beside the raw values where they keep a core half idle.
    file: Sha256Stream,
    at: u64,
    end: u64,
    /// Bytes of the file per unit.
    quota: u64,
    buffer: Vec<u8>,
}

impl Hashes {
    /// Hashes the next bytes of the file, together with raw bytes into their chain.
    fn hash_file(&mut self, pack: &Pack, bytes: u64, chain: &mut Sha256Stream, mut raw: &[u8]) -> Result<()> {
        let end = self.end.min(self.at + bytes);
        while self.at < end {
            let n = (end - self.at).min(self.buffer.len() as u64) as usize;
            pack.source().read_at(self.at, &mut self.buffer[..n])?;
            let (now, later) = raw.split_at(raw.len().min(n));
            update_pair(&mut self.file, &self.buffer[..n], chain, now);
            raw = later;
            self.at += n as u64;
        }
        chain.update(raw);
        Ok(())
    }
}

struct Decode<'a> {
    pack: &'a Pack,
    /// How raw values are restored, if they can be.
    excluded: Option<Excluded<'a>>,
    source_is_u8: bool,
    /// The shards in memory, by ordinal modulo 2.
    loaded: [RwLock<Option<Arc<Shard>>>; 2],
    shards: Mutex<Vec<(Sha256Sum, u32)>>,
    /// The chain of raw values, and all others.
    raw: Mutex<Sha256Stream>,
    hashes: Mutex<Hashes>,
}

impl Decode<'_> {
    fn per_group(&self) -> usize {
        self.pack.index().cut.scans_per_shard as usize / UNIT
    }

    fn shard(&self, group: usize) -> Result<Arc<Shard>> {
        let loaded = self.loaded[group % 2].read().unwrap_or_else(PoisonError::into_inner);
        loaded.clone().ok_or_else(|| Error::invalid("a shard is read before it is loaded"))
    }

    /// The raw values as the source stores them.
    fn raw_bytes<'f>(&self, frames: &'f Frames) -> Cow<'f, [u8]> {
        if self.source_is_u8 {
            return frames.raw.iter().map(|v| *v as u8).collect::<Vec<u8>>().into();
        }
        le::bytes_of_u16(&frames.raw)
    }
}

impl Ordered for Decode<'_> {
    type Slot = Frames;
    type Scratch = ();

    fn scratch(&self) {}

    fn begin(&self, _: &mut (), group: usize) -> Result<()> {
        let shard = self.pack.passing_shard(group)?;
        let mut shards = lock(&self.shards);
        shards.push((shard.header_sha256(), shard.tiles().widest()));
        *self.loaded[group % 2].write().unwrap_or_else(PoisonError::into_inner) = Some(shard);
        Ok(())
    }

    fn prepare(&self, _: &mut (), item: usize, frames: &mut Frames) -> Result<()> {
        let index = self.pack.index();
        let pixels = index.geometry.pixels() as usize;
        let (shard, unit) = (self.shard(item / self.per_group())?, item % self.per_group());
        if index.flavour == Flavour::BitPacked8 {
            let excluded = match self.excluded {
                Some(Excluded::Raw(values)) => Some((&index.excluded[..], values)),
                _ => None,
            };
            let (working, raw) = (&mut frames.working8, &mut frames.raw);
            unpack::frames_u8(&shard, unit, pixels, excluded, working, raw);
            return Ok(());
        }
        let raw = self.excluded.unwrap_or(Excluded::Zero);
        unpack::frames_u16(self.pack, &shard, unit, raw, &mut frames.raw);
        frames.working16.copy_from_slice(&frames.raw);
        for frame in frames.working16.chunks_exact_mut(pixels) {
            index.excluded.iter().for_each(|p| frame[*p as usize] = 0);
        }
        Ok(())
    }

    fn consume(&self, _: usize, chain: Chain, frames: &Frames) -> Result<()> {
        if chain == Chain::First {
            lock(&self.raw).update(&self.raw_bytes(frames));
            return Ok(());
        }
        let mut hashes = lock(&self.hashes);
        let h = &mut *hashes;
        let working16;
        let working: &[u8] = if frames.working8.is_empty() {
            working16 = le::bytes_of_u16(&frames.working16);
            &working16
        } else {
            &frames.working8
        };
        let quota = h.quota;
        if chain == Chain::Second {
            h.working.update(working);
            return h.hash_file(self.pack, quota, &mut Sha256Stream::new(), &[]);
        }
        let raw = self.raw_bytes(frames);
        let mut raw_chain = lock(&self.raw);
        let (now, later) = raw.split_at(working.len().min(raw.len()));
        update_pair(&mut raw_chain, now, &mut h.working, working);
        h.hash_file(self.pack, quota, &mut raw_chain, later)
    }

    fn end(&self, group: usize, _: &mut dyn ordered::Help) -> Result<()> {
        *self.loaded[group % 2].write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }
}
