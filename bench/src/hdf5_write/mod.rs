//! Writing HDF5 files, by us, by h5py and (with the feature `peers`) by other writers in Rust: the same arrays in one
//! run, onto a file system in memory where there is one, synced by nobody. h5py reads every writer's file and compares
//! it with the array before anything is timed. Then the memory of a filtered write larger than the input held.
#![expect(clippy::disallowed_methods, reason = "files that live as long as a measurement")]

mod floors;
mod memory;
mod peers;
mod rows;

use crate::data::Random;
use crate::h5py::Python;
use crate::measure::{Contestant, seconds};
use crate::report::{Goal, Report};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tensilo_core::buffer::zeroed_vec;
use tensilo_core::io::{Disk, SystemDisk};
use tensilo_hdf5::write::{FileWriter, WriteOptions};

pub use memory::child;

/// Is the largest case written at its full size?
static FULL: AtomicBool = AtomicBool::new(false);

/// Asks for 10 GB in the memory row instead of 1 GB.
pub fn at_full_size() {
    FULL.store(true, Ordering::Relaxed);
}

/// Elements of the arrays of 64 frames.
const ELEMENTS: usize = 64 << 18;

/// Datasets, or attributes, of the two rows with many of them.
const MANY: usize = 2000;

/// The arrays, as all sides have them: on huge pages where the system gives them on request, as NumPy's are.
struct Arrays {
    counts: Vec<u16>,
    floats: Vec<f32>,
    small: Vec<f32>,
}

impl Arrays {
    fn make() -> Self {
        let mut random = Random(3);
        let mut counts = zeroed_vec(ELEMENTS).expect("memory");
        counts.fill_with(|| random.count(0.4));
        let mut floats = zeroed_vec(ELEMENTS).expect("memory");
        for (i, f) in floats.iter_mut().enumerate() {
            let noise = (random.next() >> 40) as f32 / (1 << 24) as f32;
            *f = (i as f32 / 311.0).sin() + noise * 1e-3;
        }
        Self { counts, floats, small: (0..10_u8).map(f32::from).collect() }
    }

    /// Gives Python the same arrays.
    fn give(&self, python: &Python, folder: &Path) -> Result<(), String> {
        let given: [(&str, &[u8], &str); 2] = [
            ("counts", bytemuck::cast_slice(&self.counts), "u2"),
            ("floats", bytemuck::cast_slice(&self.floats), "f4"),
        ];
        for (name, bytes, kind) in given {
            let path = folder.join(name);
            std::fs::write(&path, bytes).map_err(|e| e.to_string())?;
            python.run(&format!("{name} = np.fromfile({:?}, {kind:?}).reshape(64, 512, 512)", shown(&path)));
            std::fs::remove_file(&path).map_err(|e| e.to_string())?;
        }
        python.run("image = floats[0]; small = np.arange(10, dtype='f4'); many = range(2000)");
        Ok(())
    }
}

/// One writer, which makes a new file at each call.
struct Writer<'a> {
    name: &'static str,
    /// Says how many seconds it took.
    write: Box<dyn FnMut(&Path) -> f64 + 'a>,
    /// Is it no writer but the least that any has to do?
    floor: bool,
}

impl<'a> Writer<'a> {
    fn new(name: &'static str, mut write: impl FnMut(&Path) + 'a) -> Self {
        Self::clocked(name, move |path| seconds(|| write(path)))
    }

    /// One that has a clock of its own.
    fn clocked(name: &'static str, write: impl FnMut(&Path) -> f64 + 'a) -> Self {
        Self { name, write: Box::new(write), floor: false }
    }

    /// Something whose file, if there is one, is no HDF5 file. The name begins with [`FLOOR`](crate::report::FLOOR).
    fn floor(name: &'static str, work: impl FnMut(&Path) + 'a) -> Self {
        Self { floor: true, ..Self::new(name, work) }
    }
}

/// One row of the comparison.
struct Row<'a> {
    name: &'static str,
    bytes: u64,
    /// How often as fast as h5py we are to be.
    goal: f64,
    /// What h5py must find true of an open file `f`.
    check: &'static str,
    writers: Vec<Writer<'a>>,
}

impl Row<'_> {
    /// Compares the files, then times. A writer that refuses, or whose file h5py reads otherwise, is named and left out.
    fn run(mut self, python: &Python, folder: &Path, report: &mut Report) {
        let mut sizes = Vec::new();
        self.writers.retain_mut(|writer| {
            if writer.floor {
                return true;
            }
            let path = at(folder, writer.name);
            let write = std::panic::AssertUnwindSafe(|| (writer.write)(&path));
            let said = match std::panic::catch_unwind(write) {
                Ok(_) => python.ask(&format!("judge({:?}, {:?})", shown(&path), self.check)),
                Err(_) => "cannot write this".to_owned(),
            };
            let bytes = std::fs::metadata(&path).map(|m| m.len()).unwrap_or(0);
            // One that was refused may have left none.
            let _ = std::fs::remove_file(&path);
            if said == "same" {
                sizes.push(format!("{} {:.3}", writer.name, bytes as f64 / 1e6));
                return true;
            }
            let ours = matches!(writer.name, "tensilo" | "h5py");
            assert!(!ours, "{}: {}: {said}", self.name, writer.name);
            report.note(format!("{}: {}: {said}", self.name, writer.name));
            false
        });
        report.note(format!("{}, MB of file: {}", self.name, sizes.join(", ")));
        let contestants = self.writers.into_iter().map(|Writer { name, mut write, .. }| {
            let path = at(folder, name);
            Contestant::clocked(name, move || {
                let seconds = write(&path);
                // So that all find the same memory free. Floors that only encode have no file.
                let _ = std::fs::remove_file(&path);
                seconds
            })
        });
        let contestants = contestants.collect();
        let goal = Some(Goal { against: "h5py", times: self.goal });
        report.compare_with(self.name, self.bytes, contestants, goal);
    }
}

/// Opens a file with h5py and says whether the check holds, on one line.
const JUDGE: &str = "def judge(path, check):\n\
\x20   try:\n\
\x20       with h5py.File(path) as f:\n\
\x20           return 'same' if eval(check, dict(globals(), f=f)) else 'h5py reads other values'\n\
\x20   except Exception as e:\n\
\x20       return 'h5py refuses it: ' + ' '.join(str(e).split())[:160]\n";

fn at(folder: &Path, writer: &str) -> PathBuf {
    folder.join(format!("{writer}.h5"))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Writes a new file, without a sync.
fn fresh(path: &Path, options: WriteOptions, fill: impl FnOnce(&mut FileWriter<'_>)) {
    let file = SystemDisk.create_new(path).expect("a new file");
    let mut w = FileWriter::over(&*file, options).expect("options");
    fill(&mut w);
    w.finish().expect("a finished file");
}

/// Needs the test environment.
pub fn run() -> Result<Report, String> {
    let python = Python::start().ok_or("needs h5py: run `cargo xtask env` first")?;
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.map_err(|e| e.to_string())?;
    let script = folder.path().join("definitions.py");
    std::fs::write(&script, JUDGE).map_err(|e| e.to_string())?;
    python.run(&format!("exec(open({:?}).read(), globals())", shown(&script)));
    let mut report = Report::live();
    let only = std::env::var("TENSILO_BENCH_ONLY").unwrap_or_default();
    if only != "memory" {
        let arrays = Arrays::make();
        arrays.give(&python, folder.path())?;
        for row in rows::all(&python, &arrays) {
            if row.name.contains(&only) {
                row.run(&python, folder.path(), &mut report);
            }
        }
    }
    if only.is_empty() || only == "memory" {
        memory::run(&mut report, FULL.load(Ordering::Relaxed))?;
    }
    Ok(report)
}
