//! Hashing the members of a family, two at a time on each core, and proving that they held still meanwhile.

use crate::digest::Sha256Sum;
use crate::sha_pair::{Sha256Stream, update_pair};
use crate::source::inspect::{Role, SourceMember};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use tensilo_core::io::{ByteSource, FileSource, Fingerprint};
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Result};

/// Bytes that are read at a time from each file.
const READ: usize = 64 << 10;
/// Bytes of one file between two polls; a few milliseconds.
const STEP: u64 = 4 << 20;

/// What a path is now: a regular file, not a symbolic link.
///
/// # Errors
/// `NotFound`, `Io`, `InvalidArgument` for anything but a regular file.
pub fn examine(path: &Path) -> Result<Fingerprint> {
    if path.to_str().is_none() {
        return Err(Error::unsupported("a path that is no UTF-8").in_file(path));
    }
    let meta = std::fs::symlink_metadata(path).map_err(|e| Error::io("cannot examine", e).in_file(path))?;
    if !meta.is_file() {
        let what = if meta.is_symlink() { "a symbolic link" } else { "not a regular file" };
        return Err(Error::invalid(format!("a member is {what}")).in_file(path));
    }
    Fingerprint::of_path(path)
}

/// Hashes whole files; the order is kept. Each is examined before and after.
///
/// # Errors
/// `SourceChanged` when a file changed meanwhile; `NotFound`, `Io`, or the monitor's.
pub fn hash_members(
    files: &[(Role, PathBuf)],
    threads: Threads,
    monitor: &dyn Monitor,
    stage: &'static str,
) -> Result<Vec<(SourceMember, Fingerprint)>> {
    let lanes = Lanes::new(files)?;
    threads.for_each(
        lanes.steps,
        monitor,
        stage,
        lanes.total,
        || [vec![0; READ], vec![0; READ]],
        |buffers, _, done| {
            let Some(mut lane) = lanes.take() else { return Ok(()) };
            let result = lane.step(buffers);
            let more = result.is_ok() && lane.steps > 0;
            lanes.give(more.then_some(lane));
            result.map(|n| done.add(n))
        },
    )?;
    let hashed = lanes.finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut members = Vec::with_capacity(files.len());
    for (i, (role, path)) in files.iter().enumerate() {
        let (_, sha256, before) = hashed
            .iter()
            .find(|(index, ..)| *index == i)
            .ok_or_else(|| Error::source_changed("a member was not hashed").in_file(path))?;
        if examine(path)? != *before {
            return Err(Error::source_changed("the file changed while it was hashed").in_file(path));
        }
        members.push((
            SourceMember { role: *role, path: path.clone(), bytes: before.bytes, sha256: *sha256 },
            *before,
        ));
    }
    Ok(members)
}

/// One file on its way.
struct Hashing {
    index: usize,
    path: PathBuf,
    before: Fingerprint,
    source: Option<FileSource>,
    at: u64,
    stream: Sha256Stream,
}

/// Up to two files, hashed interleaved by whoever holds the lane.
struct Lane<'a> {
    files: Vec<Hashing>,
    steps: usize,
    finished: &'a Mutex<Vec<(usize, Sha256Sum, Fingerprint)>>,
}

/// The lanes that nobody holds, each with the steps it has left.
struct Idle {
    lanes: Vec<(Vec<Hashing>, usize)>,
    /// How many are held.
    held: usize,
}

struct Lanes {
    idle: Mutex<Idle>,
    returned: Condvar,
    finished: Mutex<Vec<(usize, Sha256Sum, Fingerprint)>>,
    steps: usize,
    total: u64,
}

impl Lanes {
    fn new(files: &[(Role, PathBuf)]) -> Result<Self> {
        let mut all = Vec::with_capacity(files.len());
        for (index, (_, path)) in files.iter().enumerate() {
            let before = examine(path)?;
            let stream = Sha256Stream::new();
            all.push(Hashing { index, path: path.clone(), before, source: None, at: 0, stream });
        }
        let total = all.iter().map(|f| f.before.bytes).sum();
        // Files of like length share a lane, so that both streams run to the end.
        all.sort_by_key(|f| (f.before.bytes, f.index));
        let (mut lanes, mut steps) = (Vec::new(), 0);
        while let Some(longest) = all.pop() {
            let of_lane = longest.before.bytes.div_ceil(STEP).max(1) as usize;
            let mut lane = vec![longest];
            lane.extend(all.pop());
            steps += of_lane;
            lanes.push((lane, of_lane));
        }
        lanes.reverse();
        Ok(Self {
            idle: Mutex::new(Idle { lanes, held: 0 }),
            returned: Condvar::new(),
            finished: Mutex::default(),
            steps,
            total,
        })
    }

    /// A lane with work left; waits while others hold the last ones.
    fn take(&self) -> Option<Lane<'_>> {
        let mut state = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some((files, steps)) = state.lanes.pop() {
                state.held += 1;
                return Some(Lane { files, steps, finished: &self.finished });
            }
            if state.held == 0 {
                return None;
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give(&self, lane: Option<Lane<'_>>) {
        let mut state = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        state.held -= 1;
        if let Some(lane) = lane {
            state.lanes.push((lane.files, lane.steps));
        }
        self.returned.notify_all();
    }
}

impl Lane<'_> {
    /// Hashes up to [`STEP`] bytes of each file.
    fn step(&mut self, buffers: &mut [Vec<u8>; 2]) -> Result<u64> {
        self.steps -= 1;
        let [a, b] = buffers;
        let mut hashed = 0;
        for _ in 0..STEP / READ as u64 {
            match &mut self.files[..] {
                [one, two] => {
                    let (m, n) = (one.read(a)?, two.read(b)?);
                    update_pair(&mut one.stream, &a[..m], &mut two.stream, &b[..n]);
                    hashed += (m + n) as u64;
                }
                [one] => {
                    let m = one.read(a)?;
                    one.stream.update(&a[..m]);
                    hashed += m as u64;
                }
                _ => break,
            }
        }
        for file in self.files.extract_if(.., |f| f.at == f.before.bytes) {
            let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
            finished.push((file.index, file.stream.finish(), file.before));
        }
        Ok(hashed)
    }
}

impl Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let source = match &self.source {
            Some(open) => open,
            None => {
                let open = FileSource::open(&self.path)?;
                if open.fingerprint()? != self.before {
                    return Err(
                        Error::source_changed("the file changed while it was hashed").in_file(&self.path)
                    );
                }
                self.source.insert(open)
            }
        };
        let n = (self.before.bytes - self.at).min(buffer.len() as u64) as usize;
        source.read_at(self.at, &mut buffer[..n])?;
        self.at += n as u64;
        Ok(n)
    }
}

/// Compares files with what they were.
///
/// # Errors
/// `SourceChanged`, naming the first that differs.
pub fn check_unchanged(members: &[(SourceMember, Fingerprint)]) -> Result<()> {
    for (member, before) in members {
        let now = examine(&member.path)
            .map_err(|e| Error::source_changed(format!("the file went away: {e}")).in_file(&member.path))?;
        if now != *before {
            return Err(Error::source_changed("the file changed while it was packed").in_file(&member.path));
        }
    }
    Ok(())
}
