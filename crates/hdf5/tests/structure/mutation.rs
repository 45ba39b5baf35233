//! Hostile files: generated files are changed where structures are, their checksums repaired so that the change
//! gets deep, and everything is read. Nothing may panic, hang, or take much memory.
//!
//! The reading is done by a child process whose address space is limited, so that a runaway allocation ends it.
//! `TENSILO_MUTATIONS` sets the number of mutations (20,000 without it); the full run is
//! `TENSILO_MUTATIONS=200000 cargo test --release -p tensilo-hdf5 mutated_files -- --nocapture`.

use super::generated;
use super::walker::describe_source;
use std::collections::HashSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tensilo_core::array::{Hyperslab, Selection};
use tensilo_core::io::{ByteSource, MemorySource};
use tensilo_core::threads::Threads;
use tensilo_core::wire::lookup3;
use tensilo_core::{Budget, Limits, Quiet};
use tensilo_hdf5::check::{CheckOptions, check};
use tensilo_hdf5::object::ObjectHeader;
use tensilo_hdf5::read::{ExternalLinks, File, Object, OpenOptions};
use tensilo_hdf5::space::FileSpace;
use tensilo_testkit::{CountingSource, oracle};

const WORKER: &str = "TENSILO_MUTATION_WORKER";
const NAME: &str = "structure::mutation::mutated_files_neither_panic_nor_hang_nor_take_memory";
/// Bytes that reading one file may be charged.
const LIMIT: u64 = 64 << 20;
/// Address space of a worker in KiB: the test binary, two seeds, and 256 MiB more.
const ADDRESS_SPACE: u64 = 640 << 10;

#[expect(clippy::print_stdout, reason = "the share of mutations that got deep is worth seeing")]
#[test]
fn mutated_files_neither_panic_nor_hang_nor_take_memory() {
    if let Some(work) = std::env::var_os(WORKER) {
        return worker(&work.to_string_lossy());
    }
    let Some(folder) = generated::folder() else {
        return oracle::skip("Python with h5py and h5digest.py", 1);
    };
    let Some(more) = crate::checking::made() else { return oracle::skip("Python with h5py", 1) };
    let total: u64 = std::env::var("TENSILO_MUTATIONS").map_or(20_000, |n| n.parse().expect("a number"));
    let program = std::env::current_exe().expect("this program");
    let workers: Vec<_> = (0..2_u64)
        .map(|w| {
            let limited = format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"");
            Command::new("sh")
                .args(["-c", &limited])
                .arg(&program)
                .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
                .env(WORKER, format!("{w} {} {}\n{}", total / 2, folder.display(), more.display()))
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .expect("a worker")
        })
        .collect();
    let (mut done, mut deep) = (0, 0);
    for worker in workers {
        let out = worker.wait_with_output().expect("a worker's end");
        let text = String::from_utf8_lossy(&out.stdout);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "a worker ended with {}:\n{text}\n{errors}", out.status);
        let line = text.lines().find_map(|l| l.split_once("mutations: ")).expect("the worker's result").1;
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().expect("a number")).collect();
        done += numbers[0];
        deep += numbers[1];
    }
    println!("{done} mutations, {deep} got past superblock and root group's header");
    assert!(done + 1 >= total, "{done} of {total} mutations were done");
    assert!(deep * 2 > done, "only {deep} of {done} got past superblock and root group");
}

/// Bytes with a checksum somewhere, and where.
struct Guarded {
    covered: Range<usize>,
    /// Where the checksum is: behind the covered bytes, or inside and then counted as zeros.
    checksum: usize,
}

struct Seed {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Everything that is read when the file is described.
    read: Vec<Range<usize>>,
    guarded: Vec<Guarded>,
}

impl Seed {
    fn load(path: PathBuf) -> Self {
        let bytes = std::fs::read(&path).expect("a seed");
        let source = Arc::new(CountingSource::new(MemorySource::new(bytes.clone())));
        describe_source(source.clone(), Budget::default(), true);
        look_at_everything(source.clone());
        let mut read: Vec<Range<usize>> =
            source.ranges().iter().map(|r| r.start as usize..r.end as usize).collect();
        read.sort_by_key(|r| (r.start, r.end));
        read.dedup();
        let mut guarded: Vec<Guarded> = Vec::new();
        for range in read.iter().rev() {
            if guarded.iter().all(|g| g.covered.start != range.start) {
                guarded.extend(find_checksum(&bytes, range));
            }
        }
        Self { path, bytes, read, guarded }
    }
}

fn checksum_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Finds the checksum of the structure that begins where this read began.
fn find_checksum(bytes: &[u8], range: &Range<usize>) -> Option<Guarded> {
    let all = bytes.get(range.clone())?;
    let signature = all.get(..4)?;
    if signature == b"FHDB" {
        // Offsets of 4 or 8 bytes, block offsets of up to 8; the checksum is inside.
        return (9..=21).find_map(|at| {
            let mut copy = all.to_vec();
            let stored = checksum_at(all, at)?;
            copy[at..at + 4].fill(0);
            (lookup3(&copy) == stored).then(|| Guarded { covered: range.clone(), checksum: range.start + at })
        });
    }
    let known: [&[u8]; 18] = [
        b"OHDR", b"OCHK", b"BTHD", b"BTIN", b"BTLF", b"FRHP", b"FHIB", b"SMTB", b"SMLI", b"MDCI", b"FAHD",
        b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"FSHD", b"FSSE",
    ];
    if !known.contains(&signature) && signature != [0x89, b'H', b'D', b'F'] {
        return None;
    }
    (4..all.len().saturating_sub(3)).rev().find_map(|len| {
        (checksum_at(all, len)? == lookup3(&all[..len]))
            .then(|| Guarded { covered: range.start..range.start + len, checksum: range.start + len })
    })
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn mutate(seed: &Seed, random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.bytes.clone();
    let mut changed = Vec::new();
    for _ in 0..=random.below(3) {
        let range = &seed.read[random.below(seed.read.len())];
        // Most structures have their interesting fields in front.
        let reach = if random.below(2) == 0 { range.len().min(48) } else { range.len() };
        let at = range.start + random.below(reach);
        let width = [1, 1, 1, 2, 4, 8][random.below(6)];
        let Some(target) = bytes.get_mut(at..at + width) else { continue };
        let start = seed.read[random.below(seed.read.len())].start as u64;
        let old = target.iter().rev().fold(0, |n: u64, b| n << 8 | u64::from(*b));
        let new = match random.below(10) {
            0 => old ^ (1 << random.below(8 * width)),
            1 => 0,
            2 => u64::MAX,
            3 => old.wrapping_add(1),
            4 => old.wrapping_sub(1),
            5 => start,
            6 => range.start as u64,
            7 => seed.bytes.len() as u64 - random.below(64) as u64,
            8 => 1 << random.below(8 * width),
            _ => random.next(),
        };
        target.copy_from_slice(&new.to_le_bytes()[..width]);
        changed.push(at..at + width);
    }
    if random.below(40) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    // Inner structures first: a cache image holds others.
    for g in &seed.guarded {
        let touched = changed.iter().any(|c| c.start < g.covered.end && g.covered.start < c.end);
        if !touched || random.below(20) == 0 {
            continue;
        }
        let inside = g.covered.contains(&g.checksum);
        if let Some(sum) = bytes.get_mut(g.checksum..g.checksum + 4).filter(|_| inside) {
            sum.fill(0);
        }
        let Some(sum) = bytes.get(g.covered.clone()).map(lookup3) else { continue };
        if let Some(stored) = bytes.get_mut(g.checksum..g.checksum + 4) {
            stored.copy_from_slice(&sum.to_le_bytes());
        }
    }
    bytes
}

/// Checks the file, which walks every structure and decodes every chunk, and reads datasets as a caller would.
fn look_at_everything(source: Arc<dyn ByteSource>) {
    const MOST_OBJECTS: usize = 64;
    const MOST_BYTES: u64 = 1 << 20;
    let limits = Limits { bytes: LIMIT, depth: 64, items: 1 << 20 };
    let open =
        OpenOptions { limits, threads: Threads::ONE, links: ExternalLinks::Refuse, ..OpenOptions::default() };
    let options = CheckOptions { open: open.clone(), ..CheckOptions::default() };
    let mut found = 0_u64;
    let checked = check(source.clone(), &options, &Quiet, &mut |_| {
        found += 1;
        Ok(())
    });
    assert!(checked.is_err() || checked.is_ok_and(|s| s.damaged + s.unchecked == found));
    let Ok(file) = File::from_source(source, open) else { return };
    let mut seen = HashSet::new();
    let mut todo = Vec::from_iter(file.root().map(Object::Group));
    while let Some(object) = todo.pop().filter(|_| seen.len() < MOST_OBJECTS) {
        if !seen.insert(object.address()) {
            continue;
        }
        match object {
            Object::Group(g) => {
                todo.extend(g.links().unwrap_or_default().iter().filter_map(|l| g.open_link(l).ok()));
            }
            Object::Dataset(d) => {
                let small =
                    d.elements().checked_mul(u64::from(d.datatype().size)).is_some_and(|n| n <= MOST_BYTES);
                let rank = d.shape().len();
                let selection = match small {
                    true => Selection::All,
                    false => Selection::from(Hyperslab::new(vec![0; rank], vec![1; rank])),
                };
                // Refused or not, only that they end matters.
                let _ = (d.read_bytes(&selection).is_ok(), d.read_selection::<f64>(&selection).is_ok());
                let _ = (d.read_string_bytes(&selection).is_ok(), d.plan(&selection).is_ok());
            }
            _ => {}
        }
    }
}

/// Reads everything; says whether superblock and root group's header were accepted.
fn read_all(bytes: Vec<u8>) -> bool {
    let source: Arc<dyn ByteSource> = Arc::new(MemorySource::new(bytes));
    let budget = || Budget::new(Limits { bytes: LIMIT, depth: 64, items: 1 << 20 });
    let Ok(space) = FileSpace::open(source.clone(), budget()) else { return false };
    let deep = ObjectHeader::load(&space, space.root()).is_ok_and(|h| h.kind().is_ok());
    if deep {
        describe_source(source.clone(), budget(), false);
        look_at_everything(source);
        if let Ok(root) = ObjectHeader::load(&space, space.root()) {
            // Refused or not, only that they end matters.
            let _ = (root.comment().is_ok(), root.modification_time().is_ok(), root.group_info().is_ok());
        }
    }
    deep
}

/// A count of mutations that must grow every ten seconds; a worker that is stopped for a while is not slow.
#[expect(clippy::print_stdout, reason = "the worker's answer to the test that started it")]
fn watched(index: u64) -> Arc<AtomicU64> {
    let progress = Arc::new(AtomicU64::new(0));
    let watched = progress.clone();
    std::thread::spawn(move || {
        let (mut last, mut seconds) = (u64::MAX, 0);
        while seconds < 10 {
            std::thread::sleep(Duration::from_secs(1));
            let now = watched.load(Ordering::Relaxed);
            seconds = if now == last { seconds + 1 } else { 0 };
            last = now;
        }
        println!("mutation {last} of worker {index} takes longer than 10 seconds");
        std::process::exit(9);
    });
    progress
}

#[expect(clippy::print_stdout, reason = "the worker's answer to the test that started it")]
fn worker(work: &str) {
    let mut parts = work.splitn(3, ' ');
    let mut number = || parts.next().and_then(|n| n.parse().ok()).expect("a number");
    let (index, count): (u64, u64) = (number(), number());
    let folders = parts.next().expect("the folders");
    let mut files: Vec<PathBuf> = folders.lines().flat_map(|f| generated::files(Path::new(f))).collect();
    files.retain(|p| std::fs::metadata(p).expect("a seed").len() < 150_000);
    assert!(files.len() >= 40, "only {} seeds", files.len());
    let progress = watched(index);
    let mut deep = 0_u64;
    let each = count.div_ceil(files.len() as u64);
    let mut done = 0;
    for (f, path) in files.into_iter().enumerate() {
        let seed = Seed::load(path);
        for i in 0..each.min(count - done) {
            let mut random = Random(index << 48 | (f as u64) << 32 | i);
            let bytes = mutate(&seed, &mut random);
            let found = catch_unwind(AssertUnwindSafe(|| read_all(bytes)));
            let reached = found.unwrap_or_else(|_| {
                panic!("mutation {i} of {} by worker {index} panicked", seed.path.display())
            });
            deep += u64::from(reached);
            done += 1;
            progress.fetch_add(1, Ordering::Relaxed);
        }
    }
    println!("mutations: {done} {deep}");
}
