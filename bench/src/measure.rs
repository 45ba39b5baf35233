//! Times contestants in turn, so that a slow moment of the machine hits all of them.

use std::time::{Duration, Instant};

/// Least number of rounds, and least time spent in all rounds together.
const ROUNDS: usize = 7;
const LEAST: Duration = Duration::from_millis(400);

/// One thing that is timed.
pub struct Contestant<'a> {
    pub name: String,
    pub work: Box<dyn FnMut() + 'a>,
}

impl<'a> Contestant<'a> {
    pub fn new(name: impl Into<String>, work: impl FnMut() + 'a) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// Seconds of one call: the median, the fastest and the slowest.
#[derive(Debug, Clone, Copy)]
pub struct Seconds {
    pub median: f64,
    pub fastest: f64,
    pub slowest: f64,
}

impl Seconds {
    /// Of the times of at least one call.
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self { median: times[times.len() / 2], fastest: times[0], slowest: times[times.len() - 1] }
    }
}

/// Runs every contestant once unmeasured, then all of them in turn, round after round.
pub fn in_turn(contestants: &mut [Contestant<'_>]) -> Vec<Seconds> {
    contestants.iter_mut().for_each(|c| (c.work)());
    let mut times = vec![Vec::new(); contestants.len()];
    let start = Instant::now();
    while times.first().is_some_and(|t| t.len() < ROUNDS) || start.elapsed() < LEAST {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let begin = Instant::now();
            (contestant.work)();
            times.push(begin.elapsed().as_secs_f64());
        }
    }
    times.into_iter().map(Seconds::of).collect()
}
