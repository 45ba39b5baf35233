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
