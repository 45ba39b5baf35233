//! Times contestants in turn, so that a slow moment of the machine hits all of them. Each round has another order: nobody
//! always finds the caches and the free memory that the same other one left, and nobody those of its own last call.

use crate::data::Random;

use std::time::{Duration, Instant};

/// Least number of rounds, and least time spent in all rounds together: the machine's speed changes within a second.
const ROUNDS: usize = 8;
const LEAST: Duration = Duration::from_secs(5);

/// One thing that is timed.
pub struct Contestant<'a> {
    pub name: String,
    /// Does it once and says how many seconds it took.
    pub work: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> Contestant<'a> {
    pub fn new(name: impl Into<String>, mut work: impl FnMut() + 'a) -> Self {
        Self::clocked(name, move || seconds(&mut work))
    }

    /// One that has a clock of its own, for what must be done before and is no part of the work.
    pub fn clocked(name: impl Into<String>, work: impl FnMut() -> f64 + 'a) -> Self {
        Self { name: name.into(), work: Box::new(work) }
    }
}

/// Seconds that something takes.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64()
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
    for contestant in contestants.iter_mut() {
        (contestant.work)();
    }
    let mut times = vec![Vec::new(); contestants.len()];
    let (mut order, mut random) = ((0..contestants.len()).collect::<Vec<_>>(), Random(17));
    let start = Instant::now();
    while times.first().is_some_and(|t| t.len() < ROUNDS) || start.elapsed() < LEAST {
        shuffle(&mut order, &mut random);
        for &i in &order {
            times[i].push((contestants[i].work)());
        }
    }
    times.into_iter().map(Seconds::of).collect()
}

/// Another order, which does not begin with what the one before ended with.
fn shuffle(order: &mut [usize], random: &mut Random) {
    let last = order.last().copied();
    for i in (1..order.len()).rev() {
        order.swap(i, (random.next() % (i as u64 + 1)) as usize);
    }
    if order.len() > 1 && order.first().copied() == last {
        order.swap(0, 1);
    }
}
