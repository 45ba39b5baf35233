//! A table for people and JSON lines for programs, from the same rows.
#![expect(clippy::disallowed_methods, reason = "drawings and rows need no crash safety")]

use crate::measure::{Contestant, Seconds, in_turn};
use crate::plot::Plot;
use std::fmt::Write;
use std::path::PathBuf;

/// How the name begins of a contestant that does a part of the work only, which nobody can spare.
pub const FLOOR: &str = "floor: ";

/// What the first contestant of a case is to reach.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// The contestant that it is held against.
    pub against: &'static str,
    /// How often as fast it is to be.
    pub times: f64,
}

/// One contestant in one case.
#[derive(Debug)]
struct Row {
    case: String,
    name: String,
    bytes: u64,
    seconds: Seconds,
    /// Time of the case's first contestant, divided by this one's: above 1 is faster.
    ratio: f64,
}

/// What one comparison found.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    /// A line for each case that has a goal.
    goals: Vec<String>,
    notes: Vec<String>,
    plots: Vec<Plot>,
    /// Is every case also told of on stderr as soon as it is known?
    live: bool,
    /// Where rows are added as they come.
    rows_file: Option<PathBuf>,
}

impl Report {
    /// A report that also tells of every case on stderr as soon as it is known.
    pub fn live() -> Self {
        Self { live: true, ..Self::default() }
    }

    /// A live report that also adds each row to the file `rows.jsonl` beside the build; `anew` empties it first.
    pub fn kept(name: &str, anew: bool) -> Result<Self, String> {
        let folder = folder(name)?;
        let path = folder.join("rows.jsonl");
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        if anew {
            std::fs::write(&path, "").map_err(failed)?;
        }
        eprintln!("rows are added to {}", path.display());
        Ok(Self { rows_file: Some(path), ..Self::live() })
    }

    /// Tells of the rows from number `before` on, or of something else.
    fn tell(&self, before: usize, line: &str) {
        let rows = &self.rows[before..];
        if self.live {
            let each = rows.iter().map(|r| format!("{} {:.3} ms", r.name, r.seconds.median * 1e3));
            let each = each.collect::<Vec<_>>().join(", ");
            eprintln!("{line}{}{each}", if each.is_empty() { "" } else { ": " });
        }
        let Some(path) = &self.rows_file else { return };
        let lines: String = rows.iter().map(Row::json).collect();
        let added = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let written = added.and_then(|mut file| std::io::Write::write_all(&mut file, lines.as_bytes()));
        if let Err(e) = written {
            eprintln!("{}: {e}", path.display());
        }
    }

    /// Times the contestants of one case, which each handle `bytes` uncompressed bytes per call.
    pub fn compare(&mut self, case: impl Into<String>, bytes: u64, contestants: Vec<Contestant<'_>>) {
        self.compare_with(case, bytes, contestants, None);
    }

    /// As [`compare`](Self::compare), and says whether the first contestant reaches a goal, and who else is faster.
    pub fn compare_with(
        &mut self,
        case: impl Into<String>,
        bytes: u64,
        mut contestants: Vec<Contestant<'_>>,
        goal: Option<Goal>,
    ) {
        let case = case.into();
        let before = self.rows.len();
        let seconds = in_turn(&mut contestants);
        let Some(first) = seconds.first().copied() else { return };
        for (contestant, seconds) in contestants.into_iter().zip(seconds) {
            let ratio = first.median / seconds.median;
            self.rows.push(Row { case: case.clone(), name: contestant.name, bytes, seconds, ratio });
        }
        let rows = &self.rows[before..];
        let peers = rows[1..].iter().filter(|r| !r.name.starts_with(FLOOR));
        let Some(best) = peers.min_by(|a, b| a.seconds.median.total_cmp(&b.seconds.median)) else {
            return;
        };
        let over = best.seconds.median / first.median;
        let than = format!("{over:.2} × the fastest other ({})", best.name);
        let mut line = format!("{case}: {than}");
        if let Some(goal) = goal
            && let Some(other) = rows.iter().find(|r| r.name == goal.against)
        {
            let reached = other.seconds.median / first.median;
            let verdict = if reached >= goal.times { "met" } else { "missed" };
            let other = if over >= 1.0 { "met" } else { "missed" };
            let wanted = format!("{reached:.2} × {} (goal {}: {verdict})", goal.against, goal.times);
            line = format!("{case}: {wanted}, {than} (goal 1: {other})");
        }
        for floor in rows.iter().filter(|r| r.name.starts_with(FLOOR)) {
            let part = floor.seconds.median / first.median;
            line.push_str(&format!(", {} takes {part:.2} of our time", floor.name));
        }
        self.tell(before, &line);
        self.goals.push(line);
    }

    /// Adds a line below the table.
    pub fn note(&mut self, text: String) {
        self.tell(self.rows.len(), &text);
        self.notes.push(text);
    }

    /// A drawing, written when all is done.
    pub fn plot(&mut self, plot: Plot) {
        self.plots.push(plot);
    }

    /// Writes the drawings beside the build and returns their paths.
    pub fn draw(&self, name: &str) -> Result<Vec<PathBuf>, String> {
        let folder = folder(name)?;
        let mut paths = Vec::new();
        for plot in &self.plots {
            let path = folder.join(format!("{}.png", plot.name));
            std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            std::fs::write(&path, plot.png()?).map_err(|e| format!("{}: {e}", path.display()))?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// Takes the times of contestants that were timed elsewhere, round after round.
    pub fn record(&mut self, case: &str, bytes: u64, times: Vec<(String, Vec<f64>)>) {
        let first = times.first().map(|(_, t)| Seconds::of(t.clone()).median);
        for (name, times) in times {
            let seconds = Seconds::of(times);
            let ratio = first.unwrap_or(seconds.median) / seconds.median;
            self.rows.push(Row { case: case.to_owned(), name, bytes, seconds, ratio });
        }
    }

    /// Median seconds of the fastest contestant whose name begins so, and of the fastest other one, in a case.
    pub fn fastest(&self, case: &str, ours: &str) -> (f64, f64) {
        let least = |own: bool| {
            let rows = self.rows.iter().filter(|r| r.case == case && r.name.starts_with(ours) == own);
            rows.map(|r| r.seconds.median).fold(f64::NAN, f64::min)
        };
        (least(true), least(false))
    }

    /// The rows, one a line; MB are 10^6 uncompressed bytes.
    pub fn table(&self) -> String {
        let wide = |f: fn(&Row) -> &str| self.rows.iter().map(|r| f(r).len()).max().unwrap_or(0).max(4);
        let (cases, names) = (wide(|r| &r.case), wide(|r| &r.name));
        let mut out = format!(
            "{:cases$}  {:names$}  {:>10}  {:>10}  {:>7}  {:>6}\n",
            "case", "who", "ms", "MB/s", "spread", "ratio"
        );
        for r in &self.rows {
            let spread = (r.seconds.slowest - r.seconds.fastest) / r.seconds.median * 100.0;
            writeln!(
                out,
                "{:cases$}  {:names$}  {:10.3}  {:10.1}  {spread:6.0}%  {:6.2}",
                r.case,
                r.name,
                r.seconds.median * 1e3,
                r.bytes as f64 / r.seconds.median / 1e6,
                r.ratio
            )
            .expect("a string takes text");
        }
        self.goals.iter().chain(&self.notes).for_each(|line| out.push_str(&format!("{line}\n")));
        out
    }

    /// One JSON object a line, schema `tensilo.bench/1`.
    pub fn json(&self) -> String {
        self.rows.iter().map(Row::json).collect()
    }
}

impl Row {
    fn json(&self) -> String {
        format!(
            "{{\"schema\":\"tensilo.bench/1\",\"case\":{:?},\"who\":{:?},\"bytes\":{},\"seconds\":{:e},\"fastest\":{:e},\"slowest\":{:e},\"ratio\":{:.4}}}\n",
            self.case,
            self.name,
            self.bytes,
            self.seconds.median,
            self.seconds.fastest,
            self.seconds.slowest,
            self.ratio
        )
    }
}

/// Where a comparison leaves files, beside the build.
fn folder(name: &str) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    Ok(this.ancestors().nth(2).ok_or("no folder for what is left")?.join("bench").join(name))
}
