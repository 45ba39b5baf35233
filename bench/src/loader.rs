//! The loader beside PyTorch's, Grain's and loaderx's, each case in one Python process that holds them all; and the sampler
//! beside NumPy's `randint`. What the contestants do is in `python/loader.py`.
//!
//! Every case has a process of its own, as threads of loaderx cannot be ended, and a turn begins when what the one before
//! has still been fetching ahead is there.

use crate::report::Report;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const ROUNDS: usize = 5;
const BATCH: u64 = 256;
/// Name, bytes of a record and its label, batches of a turn: as in `python/loader.py`.
const SIZES: [(&str, u64, u64); 4] = [
    ("784 B", 784 + 8, 400),
    ("150,528 B", 150_528 + 8, 24),
    ("784 B of noise", 784 + 8, 400),
    ("150,528 B of noise", 150_528 + 8, 24),
];

/// A Python process that answers expressions.
pub struct Session {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Session {
    /// Starts the contestants of a comparison.
    pub fn start(folder: &Path, script: &str) -> Result<Self, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut child = Command::new(interpreter())
            .arg(here.join("python").join(script))
            .arg(folder)
            .env("PYTHONPATH", here.join("../python"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("Python does not start: {e}"))?;
        let to = child.stdin.take().ok_or("no pipe to Python")?;
        let from = BufReader::new(child.stdout.take().ok_or("no pipe from Python")?);
        Ok(Self { child, to, from })
    }

    /// The value of an expression, as JSON.
    pub fn ask(&mut self, expression: &str) -> Result<String, String> {
        let failed = |e: std::io::Error| format!("Python, at {expression}: {e}");
        writeln!(self.to, "{expression}").map_err(failed)?;
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(failed)?;
        if line.is_empty() {
            return Err(format!(
                "Python ended at {expression}; is the package built (maturin develop --release)?"
            ));
        }
        Ok(line.trim().to_owned())
    }

    fn number(&mut self, expression: &str) -> Result<f64, String> {
        let text = self.ask(expression)?;
        text.parse().map_err(|e| format!("{expression}: {text}: {e}"))
    }

    /// A list of names, none of which has a quote.
    pub fn names(&mut self, expression: &str) -> Result<Vec<String>, String> {
        let text = self.ask(expression)?;
        Ok(text.split('"').skip(1).step_by(2).map(str::to_owned).collect())
    }

    /// Seconds of all contestants of a case, round after round. Their medians are shown at once, so that a run that
    /// is stopped has said something.
    pub fn rounds(
        &mut self,
        case: &str,
        names: &[String],
        expression: impl Fn(&str) -> String,
    ) -> Result<Vec<(String, Vec<f64>)>, String> {
        let mut times: Vec<(String, Vec<f64>)> = names.iter().map(|n| (n.clone(), Vec::new())).collect();
        for _ in 0..ROUNDS {
            for (name, seconds) in &mut times {
                seconds.push(self.number(&expression(name))?);
            }
        }
        eprintln!("{case}");
        let first = times.first().map_or(f64::NAN, |(_, t)| median(t));
        for (name, t) in &times {
            let seconds = median(t);
            eprintln!("  {name:28} {:10.3} ms  {:6.2}", seconds * 1e3, first / seconds);
        }
        Ok(times)
    }
}

/// Whether a goal was reached, in a word.
pub fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// What to say of the anonymous and all resident bytes before and after 10,000 batches: flat is what grew by less than
/// a hundredth and 1 MiB.
pub fn memory_note(growth: &str) -> String {
    let numbers: Vec<f64> =
        growth.trim_matches(['[', ']']).split(',').filter_map(|n| n.trim().parse().ok()).collect();
    let flat = matches!(numbers[..], [anonymous, all, anonymous_after, all_after]
        if anonymous_after <= anonymous * 1.01 + 1048576.0 && all_after <= all * 1.01 + 1048576.0);
    let verdict = verdict(flat);
    format!(
        "goal: resident memory flat over 10,000 batches; anonymous and all bytes before and after: {growth}: {verdict}"
    )
}

/// The median of some seconds.
pub fn median(seconds: &[f64]) -> f64 {
    let mut seconds = seconds.to_vec();
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is a case to be run? `TENSILO_BENCH_ONLY` lists parts of the names of those that are, with semicolons between; all
/// when it is not set.
pub fn wanted(case: &str) -> bool {
    match std::env::var("TENSILO_BENCH_ONLY") {
        Ok(rows) if !rows.is_empty() => rows.split(';').any(|part| case.contains(part.trim())),
        _ => true,
    }
}

/// The environment that has PyTorch, else that of the tests.
fn interpreter() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match std::env::var_os("TENSILO_TORCH_PYTHON").filter(|v| !v.is_empty()) {
        Some(python) => python.into(),
        None if root.join(".venv-torch/bin/python").is_file() => root.join(".venv-torch/bin/python"),
        None => root.join(".venv/bin/python"),
    }
}

/// Runs all comparisons in a folder on the disk that holds the build.
pub fn run() -> Result<Report, String> {
    let mut report = Report::default();
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).map_err(|e| e.to_string())?;
    let session = || Session::start(folder.path(), "loader.py");
    for (kind, goal) in [("raw", 1.3), ("flate", 4.0)] {
        for (size, bytes, batches) in SIZES {
            let case = format!("{kind}, {size}, {batches} batches");
            // What the bytes are is all the same to copies.
            if !wanted(&case) || (kind == "raw" && size.contains("noise")) {
                continue;
            }
            let mut python = session()?;
            let names = python.names(&format!("names({kind:?}, {size:?})"))?;
            let times = python.rounds(&case, &names, |name| format!("turn({kind:?}, {size:?}, {name:?})"))?;
            python.ask(&format!("end({kind:?}, {size:?})"))?;
            report.record(&case, bytes * BATCH * batches, times);
            let (ours, peers) = report.fastest(&case, "tensilo");
            let ratio = peers / ours;
            let verdict = verdict(ratio >= goal);
            report.note(format!(
                "goal: {case}: at least {goal} times the best peer; it is {ratio:.2}: {verdict}"
            ));
        }
    }
    for (size, ..) in SIZES.into_iter().take(2) {
        if wanted(&format!("first batch, {size}")) {
            let seconds = session()?.number(&format!("first_batch({size:?})"))?;
            let verdict = verdict(seconds <= 0.02);
            report.note(format!(
                "goal: first batch of {size} within 20 ms; it is {:.1} ms: {verdict}",
                seconds * 1e3
            ));
        }
    }
    if wanted("memory") {
        let growth = session()?.ask("growth()")?;
        report.note(memory_note(&growth));
    }
    if wanted("record numbers") {
        samplers(&mut session()?, &mut report, 256)?;
        samplers(&mut session()?, &mut report, 8192)?;
    }
    Ok(report)
}

fn samplers(python: &mut Session, report: &mut Report, n: u64) -> Result<(), String> {
    let names = python.names(&format!("samplers({n})"))?;
    let case = format!("record numbers, 1,000 times {n}");
    let times = python.rounds(&case, &names, |name| format!("sample({name:?})"))?;
    let of = |name: &str| times.iter().find(|(n, _)| n == name).map_or(f64::NAN, |(_, t)| median(t));
    for name in ["tensilo, iid", "tensilo, sequential"] {
        let ratio = of("numpy randint") / of(name);
        let verdict = verdict(ratio >= 3.66);
        report.note(format!(
            "goal: {name}, {n} a time: at least 3.66 times NumPy's randint; it is {ratio:.2}: {verdict}"
        ));
    }
    report.record(&case, n * 8 * 1000, times);
    Ok(())
}
