//! Wall and processor time of one piece of work, and what a process held at most.

use std::time::Instant;

/// Seconds of wall and of processor time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    pub wall: f64,
    pub cpu: f64,
}

/// Runs work that uses the calling thread only.
pub fn on_this_thread<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    timed(thread_seconds, work)
}

/// Runs work that may use other threads.
pub fn in_this_process<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    timed(process_seconds, work)
}

fn timed<T>(cpu: fn() -> f64, work: impl FnOnce() -> T) -> (T, Spent) {
    let (begun, before) = (Instant::now(), cpu());
    let out = work();
    (out, Spent { wall: begun.elapsed().as_secs_f64(), cpu: cpu() - before })
}

/// The kernel counts nanoseconds for a thread.
fn thread_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// And hundredths of seconds for a process, ended threads included.
pub fn process_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in parentheses; user and system time are fields 14 and 15.
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks: Option<f64> =
        after_name.split_whitespace().skip(11).take(2).map(|n| n.parse::<f64>().ok()).sum();
    ticks.unwrap_or(f64::NAN) / 100.0
}

/// Most bytes of memory that were resident.
pub fn peak_resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().strip_suffix("kB")).and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0)
        * 1024
}
