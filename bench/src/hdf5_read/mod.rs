//! Reading HDF5 files that h5py wrote, by us, by h5py and (with the feature `peers`) by other readers in Rust: the same
//! bytes in one run, from a file system in memory where there is one. Every call opens the file anew. Results are
//! compared before anything is timed; h5py's time is that of Python's own clock. Then extra memory, and how time grows with size, chunks, objects and points.

mod files;
mod hidefix;
mod memory;
mod ours;
mod peers;
mod rows;
mod scaling;

use crate::h5py::Python;
use crate::measure::Contestant;
use crate::report::{Goal, Report};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub use memory::child;

/// A result that can be compared: order matters, and so does every bit. Python's `digest` computes the same.
fn digest(bytes: &[u8]) -> u64 {
    let word = |(i, part): (usize, &[u8])| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word).wrapping_mul(i as u64 * 2 + 1)
    };
    bytes.chunks(8).enumerate().map(word).fold(0, u64::wrapping_add)
}

/// The first lines of the Python process.
const PYTHON: &str = "import os\n\
def digest(a):\n\
\x20   b = np.ascontiguousarray(a).tobytes()\n\
\x20   w = np.frombuffer(b + bytes(-len(b) % 8), '<u8')\n\
\x20   return int((w * (np.arange(len(w), dtype='u8') * np.uint64(2) + np.uint64(1))).sum(dtype='u8'))\n";

/// One reader: reads, and says the digest of the result when asked to.
struct Reader<'a> {
    name: &'static str,
    read: Box<dyn FnMut(bool) -> u64 + 'a>,
    /// Reads and says how many seconds it took, where that is not the time that passes here.
    clock: Option<Box<dyn FnMut() -> f64 + 'a>>,
}

impl<'a> Reader<'a> {
    fn new(name: &'static str, read: impl FnMut(bool) -> u64 + 'a) -> Self {
        Self { name, read: Box::new(read), clock: None }
    }
}

/// The digest of elements, if it is asked for.
fn found<T: bytemuck::NoUninit>(values: &[T], check: bool) -> u64 {
    if check { digest(bytemuck::cast_slice(values)) } else { std::hint::black_box(values).len() as u64 }
}

/// One row of the comparison.
struct Row<'a> {
    name: &'static str,
    bytes: u64,
    /// How often as fast as h5py we are to be; `None` where the best peer is to be beaten.
    goal: Option<f64>,
    readers: Vec<Reader<'a>>,
}

impl Row<'_> {
    /// Compares the results, then times. A reader that refuses or reads something else is named and left out.
    fn run(mut self, report: &mut Report) {
        let wanted = (self.readers[0].read)(true);
        // What a reader refuses becomes a note.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        self.readers.retain_mut(|reader| {
            let read = std::panic::AssertUnwindSafe(|| (reader.read)(true));
            match std::panic::catch_unwind(read) {
                Ok(found) if found == wanted => true,
                Ok(_) => {
                    report.note(format!("{}: {} reads other values", self.name, reader.name));
                    reader.name == "h5py" && panic!("{}: we do not read what h5py reads", self.name)
                }
                Err(reason) => {
                    let why = reason.downcast_ref::<String>().map(String::as_str).unwrap_or_default();
                    report.note(format!("{}: {} cannot: {why}", self.name, reader.name));
                    false
                }
            }
        });
        std::panic::set_hook(hook);
        let best = Goal { against: "rust-hdf5", times: 1.0 };
        let goal = Some(self.goal.map_or(best, |times| Goal { against: "h5py", times }));
        let contestants = self.readers.into_iter().map(contestant).collect();
        report.compare_with(self.name, self.bytes, contestants, goal);
    }
}

/// A reader that is timed.
fn contestant(reader: Reader<'_>) -> Contestant<'_> {
    let Reader { name, mut read, clock } = reader;
    match clock {
        Some(clock) => Contestant::clocked(name, clock),
        None => Contestant::new(name, move || {
            read(false);
        }),
    }
}

/// h5py, asked through its process; many readers share it.
#[derive(Clone)]
struct H5py(Rc<RefCell<Python>>);

impl H5py {
    fn run(&self, statements: &str) {
        self.0.borrow().run(statements);
    }

    /// A reader that runs statements which leave their result in `r`.
    fn reader(&self, statements: String) -> Reader<'static> {
        let (python, clock) = (self.clone(), self.clone());
        let asked = format!("{statements}; D = digest(r)");
        let mut reader = Reader::new("h5py", move |_| {
            python.run(&asked);
            python.0.borrow().ask("D").parse().expect("a number")
        });
        reader.clock = Some(Box::new(move || clock.0.borrow().seconds(&statements)));
        reader
    }
}

/// A folder on a file system in memory, where there is one.
fn temporary() -> Result<tempfile::TempDir, String> {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.map_err(|e| e.to_string())
}

/// Is something of this name wanted? `TENSILO_BENCH_ONLY` holds parts of names, separated by commas.
fn wanted(name: &str, only: &str) -> bool {
    only.is_empty() || only.split(',').any(|part| name.contains(part))
}

/// Needs the test environment, whose h5py also makes the files. `TENSILO_BENCH_FILES` names a folder where they are kept
/// for the next run.
pub fn run() -> Result<Report, String> {
    let python = Python::start().ok_or("needs h5py: run `cargo xtask env` first")?;
    let python = H5py(Rc::new(RefCell::new(python)));
    let only = std::env::var("TENSILO_BENCH_ONLY").unwrap_or_default();
    let mut report = Report::kept("hdf5-read", only.is_empty())?;
    let temporary = temporary()?;
    let kept = std::env::var_os("TENSILO_BENCH_FILES").filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = kept.unwrap_or_else(|| temporary.path().to_path_buf());
    files::prepare(&python, &folder, PYTHON)?;
    for row in rows::all(&python, &hidefix::Hidefix::start()?, &folder) {
        if wanted(row.name, &only) {
            row.run(&mut report);
        }
    }
    if wanted("memory", &only) {
        memory::run(&python, &folder, &mut report)?;
    }
    if wanted("scaling", &only) {
        scaling::run(temporary.path(), &mut report)?;
    }
    Ok(report)
}
