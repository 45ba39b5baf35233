//! Replay: every disk that a crash could leave, from the log of what was done.

use super::image::{Image, Node, NodeId, Part};
use super::model_disk::ModelDisk;
use super::{DiskLog, Op};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo_core::io::MemorySource;

/// How thoroughly crash states are enumerated.
#[derive(Debug, Clone)]
pub struct Options {
    /// Random subsets of the pending operations, per point of the log.
    pub random_per_point: u64,
    /// Seed of the random subsets and of sampling.
    pub seed: u64,
    /// Most candidates that are built; of more, an even sample is drawn and the rest counted as skipped.
    pub most: u64,
    /// Are writes torn?
    pub torn: bool,
    /// Unit that the disk writes whole or not at all, in bytes.
    pub sector: u64,
}

impl Default for Options {
    /// 8 random subsets per point, torn writes at 512 bytes, at most 100 000 candidates.
    fn default() -> Self {
        Self { random_per_point: 8, seed: 0x7e57, most: 100_000, torn: true, sector: 512 }
    }
}

/// What an enumeration did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Points of the log at which the crash happened, the one before the first operation included.
    pub points: u64,
    /// Combinations of pending operations over all points.
    pub candidates: u64,
    /// Different states that were shown.
    pub states: u64,
    /// Candidates that equal a state shown before.
    pub duplicates: u64,
    /// Candidates left out by sampling.
    pub skipped: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} crash states from {} candidates at {} points ({} duplicates, {} skipped)",
            self.states, self.candidates, self.points, self.duplicates, self.skipped
        )
    }
}

/// A disk that a crash could have left.
#[derive(Debug, Clone)]
pub struct CrashState {
    /// How many operations had returned.
    pub point: usize,
    /// Which of those that were not durable reached the disk.
    pub choice: String,
    /// The disk.
    pub image: Image,
    marks: Arc<[String]>,
    root: Arc<PathBuf>,
}

impl CrashState {
    /// Had the program reached this [mark](super::RecordingDisk::mark) before the crash?
    pub fn passed(&self, mark: &str) -> bool {
        self.marks.iter().any(|m| m == mark)
    }

    /// The bytes of a file; the path is the one that the program used.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<&[u8]> {
        let path = path.as_ref();
        self.image.bytes(path.strip_prefix(self.root.as_path()).unwrap_or(path))
    }

    /// A file as a source for readers.
    pub fn source(&self, path: impl AsRef<Path>) -> Option<MemorySource> {
        self.bytes(path).map(|b| MemorySource::new(b.to_vec()))
    }

    /// The disk after the restart, for recovery to work on.
    pub fn disk(&self) -> ModelDisk {
        ModelDisk::from_image(self.image.clone())
    }
}

/// A real folder that shows one crash state after the other, for readers that open paths.
#[derive(Debug)]
pub struct Materialised {
    folder: PathBuf,
    shown: BTreeMap<PathBuf, Arc<Vec<u8>>>,
}

#[expect(clippy::disallowed_methods, reason = "test set-up")]
impl Materialised {
    /// Takes an empty folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), shown: BTreeMap::new() }
    }

    /// Makes the folder equal to the state, rewriting files that differ from the last one. Whoever looks must not
    /// change the folder; else use [`show_afresh`](Self::show_afresh).
    ///
    /// # Panics
    /// When the system refuses.
    pub fn show(&mut self, state: &CrashState) -> &Path {
        let below = |path: &Path| self.folder.join(path.strip_prefix("/").unwrap_or(path));
        let files: BTreeMap<_, _> = state.image.files().into_iter().collect();
        for gone in self.shown.keys().filter(|p| !files.contains_key(*p)) {
            std::fs::remove_file(below(gone)).expect("a file to remove");
        }
        for folder in state.image.folders() {
            std::fs::create_dir_all(below(&folder)).expect("a folder");
        }
        for (path, bytes) in &files {
            if self.shown.get(path).is_none_or(|b| !Arc::ptr_eq(b, bytes) && b != bytes) {
                std::fs::write(below(path), bytes.as_slice()).expect("a file written");
            }
        }
        self.shown = files;
        &self.folder
    }

    /// Empties the folder and makes it equal to the state; for recovery code that changes it.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn show_afresh(&mut self, state: &CrashState) -> &Path {
        std::fs::remove_dir_all(&self.folder).expect("a folder to empty");
        std::fs::create_dir(&self.folder).expect("a folder");
        self.shown.clear();
        self.show(state)
    }
}

/// A small generator, the same on every machine.
#[derive(Debug, Clone)]
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Which pending operations reached the disk; numbers are positions in the pending list.
#[derive(Debug, Clone, Copy)]
enum Choice {
    All,
    None,
    Missing(usize),
    Alone(usize),
    /// One write torn, the others all there or all absent.
    Torn(usize, Part, bool),
    /// The first so many of the name operations, and all or none of the data.
    Names(usize, bool),
    Random(u64),
}

/// The ways in which one operation can be torn.
fn parts(op: &Op, options: &Options) -> Vec<Part> {
    let Op::Write { offset, data, .. } = op else { return Vec::new() };
    if !options.torn || data.is_empty() {
        return Vec::new();
    }
    let (start, end) = (*offset, *offset + data.len() as u64);
    let mut parts = vec![Part::SizeOnly, Part::DataOnly];
    let first = (start / options.sector + 1) * options.sector;
    if first >= end {
        return parts; // one sector: whole or not at all
    }
    let last = (end - 1) / options.sector * options.sector;
    let middle = (first + last) / 2 / options.sector * options.sector;
    let mut cuts = vec![first, middle, last];
    cuts.retain(|c| *c > start && *c < end);
    cuts.dedup();
    parts.extend(cuts.iter().flat_map(|c| [Part::Below(*c), Part::From(*c)]));
    if first < last {
        parts.push(Part::Outside(first, last));
    }
    parts
}

/// What is durable, and what is not yet, at a point of the log.
#[derive(Debug, Clone)]
struct Progress {
    durable: Image,
    pending: Vec<usize>,
    /// Folders still to be synced, for pending name operations.
    waits: BTreeMap<usize, BTreeSet<NodeId>>,
}

impl Progress {
    fn new(log: &DiskLog) -> Self {
        let mut durable = log.initial.clone();
        // Files and folders are there before their names are: any subset of names may refer to them.
        for op in &log.ops {
            match op {
                Op::Create { node, .. } => durable.insert(*node, Node::File(Default::default())),
                Op::Mkdir { node, .. } => durable.insert(*node, Node::Dir(BTreeMap::new())),
                _ => {}
            }
        }
        Self { durable, pending: Vec::new(), waits: BTreeMap::new() }
    }

    /// Advances over one operation; true when it only added itself to what is pending.
    fn advance(&mut self, ops: &[Op], index: usize) -> bool {
        match &ops[index] {
            Op::Sync { node } => self.settle(ops, |_, op, _| op.data_node() == Some(*node)),
            Op::SyncDir { dir } => self.settle(ops, |i, _, waits| {
                waits.get_mut(&i).is_some_and(|w| {
                    w.remove(dir);
                    w.is_empty()
                })
            }),
            Op::Mark(_) => {}
            op => {
                let dirs = op.dirs();
                if !dirs.is_empty() {
                    self.waits.insert(index, dirs.into_iter().collect());
                }
                self.pending.push(index);
                return true;
            }
        }
        false
    }

    fn settle(
        &mut self,
        ops: &[Op],
        mut settles: impl FnMut(usize, &Op, &mut BTreeMap<usize, BTreeSet<NodeId>>) -> bool,
    ) {
        let (durable, waits) = (&mut self.durable, &mut self.waits);
        self.pending.retain(|&i| {
            let settled = settles(i, &ops[i], waits);
            if settled {
                durable.apply(&ops[i], Part::Whole);
                waits.remove(&i);
            }
            !settled
        });
    }
}

/// The candidates of one point.
#[derive(Debug, Default)]
struct Point {
    /// Did the last operation only add itself? Then what does not involve it was shown at the point before.
    added: bool,
    /// Number of ways to tear each pending operation.
    tears: Vec<usize>,
    /// Positions of name operations in the pending list.
    names: usize,
    random: u64,
}

impl Point {
    fn new(log: &DiskLog, progress: &Progress, added: bool, options: &Options) -> Self {
        let of = |i: &usize| &log.ops[*i];
        Self {
            added,
            tears: progress.pending.iter().map(|i| parts(of(i), options).len()).collect(),
            names: progress.pending.iter().filter(|i| of(i).data_node().is_none()).count(),
            random: if progress.pending.len() > 2 { options.random_per_point } else { 0 },
        }
    }

    /// Sizes of the sections in which candidates are numbered.
    fn sections(&self) -> [u64; 7] {
        let n = self.tears.len() as u64;
        let torn: u64 = self.tears.iter().map(|t| *t as u64).sum();
        let last = self.tears.last().map_or(0, |t| *t as u64);
        let names = 2 * (self.names as u64 + 1);
        if self.added {
            [1, 0, n - 1, 1, torn, last, names + self.random]
        } else if n == 0 {
            [1, 0, 0, 0, 0, 0, 0]
        } else {
            [1, 1, n, n, torn, torn, names + self.random]
        }
    }

    fn count(&self) -> u64 {
        self.sections().iter().sum()
    }

    fn choice(&self, index: u64, log: &DiskLog, progress: &Progress, options: &Options) -> Choice {
        let n = self.tears.len();
        let mut i = index;
        let mut section = 0;
        for (s, size) in self.sections().into_iter().enumerate() {
            section = s;
            if i < size {
                break;
            }
            i -= size;
        }
        let torn = |mut i: u64, from: usize, others: bool| {
            for (j, count) in self.tears.iter().enumerate().skip(from) {
                if i < *count as u64 {
                    let part = parts(&log.ops[progress.pending[j]], options)[i as usize];
                    return Choice::Torn(j, part, others);
                }
                i -= *count as u64;
            }
            Choice::All
        };
        match section {
            0 => Choice::All,
            1 => Choice::None,
            2 => Choice::Missing(i as usize),
            3 if self.added => Choice::Alone(n - 1),
            3 => Choice::Alone(i as usize),
            4 => torn(i, 0, true),
            5 => torn(i, if self.added { n - 1 } else { 0 }, false),
            _ if i < 2 * (self.names as u64 + 1) => Choice::Names((i / 2) as usize, i % 2 == 1),
            _ => Choice::Random(i),
        }
    }
}

/// The crash states of a log, one after the other; [`counts`](Self::counts) tells how many were left out.
#[derive(Debug)]
pub struct Enumeration<'a> {
    log: &'a DiskLog,
    options: Options,
    progress: Progress,
    /// Operations that had returned at the present point.
    at: usize,
    point: Point,
    chosen: std::vec::IntoIter<u64>,
    marks: Arc<[String]>,
    root: Arc<PathBuf>,
    seen: HashSet<(u64, usize)>,
    hashes: HashMap<usize, u64>,
    counts: Counts,
}

/// All states that a crash during, or after, the recorded run could have left.
pub fn enumerate<'a>(log: &'a DiskLog, options: &Options) -> Enumeration<'a> {
    let mut counts = Counts { points: log.ops.len() as u64 + 1, candidates: 1, ..Counts::default() };
    let mut progress = Progress::new(log);
    for at in 0..log.ops.len() {
        let added = progress.advance(&log.ops, at);
        counts.candidates += Point::new(log, &progress, added, options).count();
    }
    let mut all = Enumeration {
        log,
        options: options.clone(),
        progress: Progress::new(log),
        at: 0,
        point: Point::default(),
        chosen: Vec::new().into_iter(),
        marks: Arc::default(),
        root: Arc::new(log.root.clone()),
        seen: HashSet::new(),
        hashes: HashMap::new(),
        counts,
    };
    all.choose();
    all
}

impl Enumeration<'_> {
    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Draws the candidates of the present point.
    fn choose(&mut self) {
        let count = self.point.count();
        let mut chosen: Vec<u64> = (0..count).collect();
        if self.counts.candidates > self.options.most {
            let share = count as f64 * self.options.most as f64 / self.counts.candidates as f64;
            let wanted = (share as u64).clamp(count.min(2), count);
            let mut draw = Draw(self.options.seed ^ (self.at as u64) << 20);
            // All and none always; the rest by a shuffle of their numbers.
            for i in 2..wanted {
                let other = i + draw.next() % (count - i);
                chosen.swap(i as usize, other as usize);
            }
            chosen.truncate(wanted as usize);
            self.counts.skipped += count - wanted;
        }
        self.chosen = chosen.into_iter();
    }

    fn build(&self, choice: Choice) -> Image {
        let mut image = self.progress.durable.clone();
        let mut draw = match choice {
            Choice::Random(i) => Draw(self.options.seed ^ (self.at as u64) << 32 ^ i),
            _ => Draw(0),
        };
        let mut names_seen = 0;
        for (j, &index) in self.progress.pending.iter().enumerate() {
            let op = &self.log.ops[index];
            let is_name = op.data_node().is_none();
            names_seen += usize::from(is_name);
            let part = match choice {
                Choice::All => Some(Part::Whole),
                Choice::None => None,
                Choice::Missing(m) => (j != m).then_some(Part::Whole),
                Choice::Alone(m) => (j == m).then_some(Part::Whole),
                Choice::Torn(m, part, others) => {
                    if j == m {
                        Some(part)
                    } else {
                        others.then_some(Part::Whole)
                    }
                }
                Choice::Names(first, data) => {
                    (if is_name { names_seen <= first } else { data }).then_some(Part::Whole)
                }
                Choice::Random(_) => (draw.next() >> 63 == 1).then_some(Part::Whole),
            };
            if let Some(part) = part {
                image.apply(op, part);
            }
        }
        image
    }

    /// One number for what the image shows; bytes that are shared with the durable image are hashed once a point.
    fn hash(&mut self, image: &Image) -> u64 {
        let hashes = &mut self.hashes;
        image.visible_hash(&mut |bytes| {
            let fresh = || {
                let mut hasher = DefaultHasher::new();
                bytes.hash(&mut hasher);
                hasher.finish()
            };
            if Arc::strong_count(bytes) > 1 {
                *hashes.entry(Arc::as_ptr(bytes) as usize).or_insert_with(fresh)
            } else {
                fresh()
            }
        })
    }

    /// Goes to the next point; false at the end of the log.
    fn step(&mut self) -> bool {
        let Some(op) = self.log.ops.get(self.at) else { return false };
        if let Op::Mark(mark) = op {
            self.marks = self.marks.iter().chain([mark]).cloned().collect();
        }
        let added = self.progress.advance(&self.log.ops, self.at);
        self.at += 1;
        self.hashes.clear();
        self.point = Point::new(self.log, &self.progress, added, &self.options);
        self.choose();
        true
    }
}

impl Iterator for Enumeration<'_> {
    type Item = CrashState;

    fn next(&mut self) -> Option<CrashState> {
        loop {
            let Some(index) = self.chosen.next() else {
                if self.step() {
                    continue;
                }
                return None;
            };
            let choice = self.point.choice(index, self.log, &self.progress, &self.options);
            let image = self.build(choice);
            let hash = self.hash(&image);
            if !self.seen.insert((hash, self.marks.len())) {
                self.counts.duplicates += 1;
                continue;
            }
            self.counts.states += 1;
            return Some(CrashState {
                point: self.at,
                choice: format!("{choice:?} of {:?}", self.progress.pending),
                image,
                marks: self.marks.clone(),
                root: self.root.clone(),
            });
        }
    }
}

/// Checks every crash state of a log and says on standard error how many there were.
///
/// # Panics
/// With the point, the operations that reached the disk, its files and the log, when a check fails.
#[expect(clippy::print_stderr, reason = "the count is part of a crash test's answer")]
pub fn check_all(
    log: &DiskLog,
    options: &Options,
    mut check: impl FnMut(&CrashState) -> Result<(), String>,
) -> Counts {
    let mut states = enumerate(log, options);
    for state in states.by_ref() {
        if let Err(why) = check(&state) {
            let files: Vec<_> = state
                .image
                .files()
                .iter()
                .map(|(p, b)| format!("{} ({} bytes)", p.display(), b.len()))
                .collect();
            panic!(
                "{why}\ncrash after {} operations, reached the disk: {}\nfiles: {files:?}\n{}",
                state.point,
                state.choice,
                log.describe()
            );
        }
    }
    eprintln!("{}", states.counts());
    states.counts()
}
