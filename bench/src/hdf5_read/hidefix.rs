//! hidefix, in a process of its own: it is under the LGPL and needs libhdf5. `cargo xtask bench hdf5-read --peers` compiles
//! that program (`bench/hidefix/`) where CMake and a C compiler are, and says where it is.

use super::{Reader, rows};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

const NAME: &str = "hidefix";

/// The program, waiting for tasks; none where it was not compiled.
#[derive(Clone, Default)]
pub struct Hidefix(Option<Rc<RefCell<Process>>>);

struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Hidefix {
    /// Starts the program that the environment variable `TENSILO_BENCH_HIDEFIX` names.
    pub fn start() -> Result<Self, String> {
        let named = std::env::var_os("TENSILO_BENCH_HIDEFIX").filter(|v| !v.is_empty()).map(PathBuf::from);
        let Some(path) = named else { return Ok(Self::default()) };
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut child =
            Command::new(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{}: no pipes", path.display()));
        };
        let from = BufReader::new(from);
        Ok(Self(Some(Rc::new(RefCell::new(Process { child, to, from })))))
    }

    /// A whole dataset.
    pub fn whole(&self, path: &Path, dataset: &str) -> Vec<Reader<'static>> {
        self.reader("whole", path, dataset, "")
    }

    /// The rows that are wanted.
    pub fn some_rows(&self, path: &Path) -> Vec<Reader<'static>> {
        let numbers: String = rows::wanted_rows().iter().map(|n| format!("\t{n}")).collect();
        self.reader("rows", path, "tiles", &numbers)
    }

    /// All datasets of the file of many.
    pub fn walk(&self, path: &Path) -> Vec<Reader<'static>> {
        self.reader("walk", path, "-", "")
    }

    fn reader(&self, task: &str, path: &Path, dataset: &str, numbers: &str) -> Vec<Reader<'static>> {
        let Some(process) = self.0.clone() else { return Vec::new() };
        let path = path.display();
        let [timed, asked] = ["-", "+"].map(|check| format!("{task}\t{check}\t{path}\t{dataset}{numbers}\n"));
        vec![Reader::new(NAME, move |check| {
            let answer = process.borrow_mut().ask(if check { &asked } else { &timed });
            answer.trim().parse().unwrap_or_else(|_| panic!("{}", answer.trim()))
        })]
    }
}

impl Process {
    fn ask(&mut self, task: &str) -> String {
        let mut answer = String::new();
        self.to.write_all(task.as_bytes()).expect("the process listens");
        self.from.read_line(&mut answer).expect("the process answers");
        answer
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
