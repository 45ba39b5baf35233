//! A table for people and JSON lines for programs, from the same rows.

use crate::measure::{Contestant, Seconds, in_turn};
use std::fmt::Write;

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
    notes: Vec<String>,
}

impl Report {
    /// Times the contestants of one case, which each handle `bytes` uncompressed bytes per call.
    pub fn compare(&mut self, case: impl Into<String>, bytes: u64, mut contestants: Vec<Contestant<'_>>) {
        let case = case.into();
        let seconds = in_turn(&mut contestants);
        let Some(first) = seconds.first().copied() else { return };
        for (contestant, seconds) in contestants.into_iter().zip(seconds) {
            let ratio = first.median / seconds.median;
            self.rows.push(Row { case: case.clone(), name: contestant.name, bytes, seconds, ratio });
        }
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

    /// Adds a line below the table.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
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
        self.notes.iter().for_each(|note| writeln!(out, "{note}").expect("a string takes text"));
        out
    }

    /// One JSON object a line, schema `tensilo.bench/1`.
    pub fn json(&self) -> String {
        let mut out = String::new();
        for r in &self.rows {
            writeln!(
                out,
                "{{\"schema\":\"tensilo.bench/1\",\"case\":{:?},\"who\":{:?},\"bytes\":{},\"seconds\":{:e},\"fastest\":{:e},\"slowest\":{:e},\"ratio\":{:.4}}}",
                r.case, r.name, r.bytes, r.seconds.median, r.seconds.fastest, r.seconds.slowest, r.ratio
            )
            .expect("a string takes text");
        }
        out
    }
}
