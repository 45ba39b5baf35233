//! Runs commands one after the other, streams what they print, counts tests and seconds.

use crate::Outcome;
use crate::counts::Counts;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A list of steps that were run.
#[derive(Debug, Default)]
pub struct Steps {
    counts: Counts,
    seconds: Vec<(String, f64)>,
    failed: Vec<String>,
}

impl Steps {
    /// Runs one command as a step; a failure is kept, and later steps may still run.
    pub fn run(&mut self, name: &str, command: Command) {
        self.measure(name, |counts| stream(command, counts));
    }

    /// Runs a closure as a step.
    pub fn measure(&mut self, name: &str, step: impl FnOnce(&mut Counts) -> Outcome) {
        println!("== {name}");
        let start = Instant::now();
        let mut counts = Counts::default();
        let outcome = step(&mut counts);
        let seconds = start.elapsed().as_secs_f64();
        if let Err(reason) = outcome {
            // A check without tests of its own still counts as one thing that failed.
            counts.failed = counts.failed.max(1);
            eprintln!("== {name}: {reason}");
        }
        if counts.failed > 0 {
            self.failed.push(name.to_owned());
        }
        println!("== {name}: {seconds:.1} s");
        self.counts += counts;
        self.seconds.push((name.to_owned(), seconds));
    }

    /// Prints seconds per step, the failed steps, and last the sum of all tests.
    pub fn finish(self) -> Outcome {
        println!("\nseconds  step");
        for (name, seconds) in &self.seconds {
            println!("{seconds:7.1}  {name}");
        }
        println!("{:7.1}  all", self.seconds.iter().map(|(_, s)| s).sum::<f64>());
        if !self.failed.is_empty() {
            println!("failed steps: {}", self.failed.join(", "));
        }
        println!("{} passed, {} failed", self.counts.passed, self.counts.failed);
        if self.failed.is_empty() { Ok(()) } else { Err("not everything passed".to_owned()) }
    }
}

/// Runs a command and lets it print.
pub fn call(mut command: Command) -> Outcome {
    let status = command.status().map_err(|e| format!("{}: {e}", words(&command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", words(&command))) }
}

/// The command as one would type it.
pub fn words(command: &Command) -> String {
    let mut all = vec![command.get_program().to_string_lossy().into_owned()];
    all.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    all.join(" ")
}

/// Runs a command, passes its standard output on line by line, and counts the tests in it.
fn stream(mut command: Command, counts: &mut Counts) -> Outcome {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", words(&command)))?;
    let pipe = child.stdout.take().ok_or("no pipe to read from")?;
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = reader.read_until(b'\n', &mut line).map_err(|e| format!("{}: {e}", words(&command)))?;
        if n == 0 {
            break;
        }
        counts.add_line(&String::from_utf8_lossy(&line));
        let mut out = std::io::stdout().lock();
        out.write_all(&line).and_then(|()| out.flush()).map_err(|e| format!("standard output: {e}"))?;
    }
    let status = child.wait().map_err(|e| format!("{}: {e}", words(&command)))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", words(&command))) }
}
