//! A second thread for jobs of ten to a few hundred microseconds, which starting one would take longer than.
//!
//! Whoever has such a job does its units itself, from the first on. Where jobs come one right behind the other a
//! helper stands by: between two of them it looks for the next one without sleeping, and takes the last units. The owner
//! waits for nothing but units that the helper has taken. A helper that finds no job sleeps, and soon ends: a process
//! in which no jobs come has neither a busy thread nor, a moment later, one at all. See docs/decisions/0005.
//!
//! There is one helper in a process. A job of a thread that comes while it has another goes without, and so does the
//! first one in a forked child, whose helper is its own.

#![expect(unsafe_code, reason = "a job is borrowed by a thread that outlives it")]

use super::claims::{Claims, MOST};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a helper looks for the next job, and so how close jobs must follow each other.
const CLOSE: Duration = Duration::from_micros(60);
/// How long it sleeps before it ends.
const LINGERS: Duration = Duration::from_millis(20);
/// Looks for a job between two at the clock.
const LOOKS: usize = 16;
/// Jobs in close sequence before a helper is asked for.
const SEQUENCE: u32 = 4;
/// An owner that had to wait this long found the processors busy with something else ...
const PATIENCE: Duration = Duration::from_micros(200);
/// ... and does jobs alone for so many times as long: waiting costs a small part of the time at most.
const ALONE: u32 = 16;

/// States of a helper.
const ABSENT: u8 = 0;
const ASLEEP: u8 = 1;
const AWAKE: u8 = 2;

/// What a unit is done with.
type Work<'a> = dyn Fn(usize, usize) + Sync + 'a;

struct Job<'a> {
    work: &'a Work<'a>,
    panicked: AtomicBool,
}

/// The helper of one process.
#[derive(Debug)]
struct Helper {
    /// Process that it belongs to; 0 as long as it belongs to none.
    home: AtomicU32,
    /// A job is being done.
    busy: AtomicBool,
    claims: Claims,
    /// The job, as long as one is open or a unit of it is being done.
    job: AtomicPtr<Job<'static>>,
    state: AtomicU8,
    thread: Mutex<Option<Thread>>,
    /// When the last job ended, in nanoseconds since some moment.
    ended: AtomicU64,
    /// Jobs that followed each other closely, of those that count.
    sequence: AtomicU32,
    /// Until when jobs are done alone.
    alone: AtomicU64,
    /// Of a child of this process.
    next: OnceLock<&'static Helper>,
}

fn nanoseconds() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A job that begins, and ends when this is dropped: made by [`Threads::beside`](super::Threads::beside).
#[derive(Debug)]
pub struct Beside {
    /// The helper, if no other job has it.
    helper: Option<&'static Helper>,
    stands_by: bool,
}

impl Beside {
    /// A job that is done alone.
    pub const ALONE: Self = Self { helper: None, stands_by: false };

    pub(super) fn begin() -> Self {
        let helper = Helper::here();
        if helper.busy.swap(true, Ordering::Acquire) {
            return Self::ALONE;
        }
        Self { helper: Some(helper), stands_by: helper.stands_by() }
    }

    /// Is there another thread that will do a part? Else the job may be better done in another way.
    pub fn stands_by(&self) -> bool {
        self.stands_by
    }

    /// Calls `work` once for every index below `units`, from the first on, here (0 is its first argument), and from the
    /// last on the thread that stands by (where it is 1).
    ///
    /// Two units may be done at once; what they have to say they leave in `work`. Nothing is allocated.
    ///
    /// # Panics
    /// When a unit panics, on either thread.
    pub fn run(self, units: usize, work: &(dyn Fn(usize, usize) + Sync)) {
        match self.helper {
            Some(helper) if self.stands_by && units <= MOST => helper.share(units, work),
            _ => (0..units).for_each(|unit| work(0, unit)),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(helper) = self.helper {
            helper.ended.store(nanoseconds(), Ordering::Relaxed);
            helper.busy.store(false, Ordering::Release);
        }
    }
}

impl Helper {
    fn of(home: u32) -> Self {
        Self {
            home: AtomicU32::new(home),
            busy: AtomicBool::new(false),
            claims: Claims::new(),
            job: AtomicPtr::default(),
            state: AtomicU8::new(ABSENT),
            thread: Mutex::new(None),
            ended: AtomicU64::new(0),
            sequence: AtomicU32::new(0),
            alone: AtomicU64::new(0),
            next: OnceLock::new(),
        }
    }

    /// This process' helper. What a parent's threads left half done is never looked at again.
    fn here() -> &'static Self {
        static FIRST: OnceLock<Helper> = OnceLock::new();
        let process = std::process::id();
        let mut helper = FIRST.get_or_init(|| Self::of(process));
        while helper.home.load(Ordering::Relaxed) != process {
            helper = match helper.next.get() {
                Some(next) => next,
                None => {
                    // Made before it is kept; of two threads that come at once one makes it in vain.
                    let made: &'static Self = Box::leak(Box::new(Self::of(process)));
                    helper.next.get_or_init(|| made)
                }
            };
        }
        helper
    }

    /// Is it awake? Asks for it where jobs follow each other closely. For the owner.
    fn stands_by(&'static self) -> bool {
        let now = nanoseconds();
        if now < self.alone.load(Ordering::Relaxed) {
            return false;
        }
        let gap = now.saturating_sub(self.ended.load(Ordering::Relaxed));
        let close = u128::from(gap) < CLOSE.as_nanos();
        let sequence = if close { self.sequence.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.sequence.store(sequence, Ordering::Relaxed);
        if self.state.load(Ordering::Acquire) == AWAKE {
            return true;
        }
        if sequence < SEQUENCE {
            return false;
        }
        // It will come while this job is done.
        let woken = self.state.compare_exchange(ASLEEP, AWAKE, Ordering::AcqRel, Ordering::Relaxed);
        if woken.is_err() {
            return self.start();
        }
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
        true
    }

    /// Starts it; false when the system has no thread.
    fn start(&'static self) -> bool {
        self.state.store(AWAKE, Ordering::Release);
        let started = std::thread::Builder::new()
            .name("tensilo-beside".into())
            .stack_size(1 << 20)
            .spawn(move || self.serve());
        if let Ok(handle) = &started {
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.thread().clone());
        } else {
            self.state.store(ABSENT, Ordering::Release);
            self.alone_for(LINGERS);
        }
        started.is_ok()
    }

    fn alone_for(&self, time: Duration) {
        self.alone.store(nanoseconds().saturating_add(time.as_nanos() as u64), Ordering::Relaxed);
    }

    /// Does a job together with the helper. For the owner.
    fn share(&'static self, units: usize, work: &Work<'_>) {
        let job = Job { work, panicked: AtomicBool::new(false) };
        self.job.store((&raw const job).cast_mut().cast(), Ordering::Relaxed);
        self.claims.open(units);
        let own = Own { helper: self, units };
        while let Some(unit) = self.claims.first() {
            work(0, unit);
        }
        drop(own);
        if job.panicked.load(Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("a unit of the job panicked on another thread"));
        }
    }

    /// What the helper does until no jobs come.
    fn serve(&self) {
        let mut idle = Instant::now();
        loop {
            for _ in 0..LOOKS {
                while let Some(unit) = self.claims.last() {
                    self.unit(unit);
                    idle = Instant::now();
                }
                std::hint::spin_loop();
            }
            if idle.elapsed() > CLOSE {
                if !self.sleep() {
                    return;
                }
                idle = Instant::now();
            }
        }
    }

    /// Does a unit that the helper has just taken.
    fn unit(&self, unit: usize) {
        // SAFETY: the pointer is that of the job whose unit was taken: it was stored before the job was opened, and is
        // stored again only after the unit is finished. Until then the job lives, for its owner waits in `Own::drop`,
        // also when it unwinds.
        let job = unsafe { &*self.job.load(Ordering::Relaxed) };
        if catch_unwind(AssertUnwindSafe(|| (job.work)(1, unit))).is_err() {
            job.panicked.store(true, Ordering::Relaxed);
        }
        self.claims.finish();
    }

    /// Sleeps until it is asked for; false when it was not for a while, and has to end.
    fn sleep(&self) -> bool {
        self.state.store(ASLEEP, Ordering::Release);
        let begin = Instant::now();
        while let Some(left) = LINGERS.checked_sub(begin.elapsed()) {
            std::thread::park_timeout(left);
            if self.state.load(Ordering::Acquire) == AWAKE {
                return true;
            }
        }
        self.state.compare_exchange(ASLEEP, ABSENT, Ordering::AcqRel, Ordering::Relaxed).is_err()
    }
}

/// An open job of so many units. When it is dropped, also by a panic, the job is closed, and the helper is waited for.
struct Own {
    helper: &'static Helper,
    units: usize,
}

impl Drop for Own {
    fn drop(&mut self) {
        let helper = self.helper;
        let others = self.units - helper.claims.close();
        let mut begin = None;
        while !helper.claims.has_finished(others) {
            let begin = *begin.get_or_insert_with(Instant::now);
            if begin.elapsed() < PATIENCE { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        let waited = begin.map_or(Duration::ZERO, |begin: Instant| begin.elapsed());
        if waited >= PATIENCE {
            helper.alone_for(waited.saturating_mul(ALONE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Threads;
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Jobs one right behind the other, each of so many units; how many units another thread did.
    fn jobs(jobs: usize, units: usize) -> usize {
        let others = AtomicUsize::new(0);
        let own = std::thread::current().id();
        for job in 0..jobs {
            let done: Vec<AtomicUsize> = (0..units).map(|_| AtomicUsize::new(0)).collect();
            Threads::new(2).beside().run(units, &|thread, unit| {
                assert_eq!(thread == 0, std::thread::current().id() == own);
                others.fetch_add(thread, Ordering::Relaxed);
                done[unit].fetch_add(job + 1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == job + 1), "{job}");
        }
        others.into_inner()
    }

    #[test]
    fn every_unit_of_every_job_is_done_once_also_when_eight_threads_have_jobs() {
        std::thread::scope(|scope| {
            for units in [0, 1, 2, 5, 16, 100, MOST, MOST + 1] {
                scope.spawn(move || jobs(300, units));
            }
        });
    }

    #[test]
    fn a_helper_comes_when_jobs_follow_each_other_and_is_gone_a_while_after_the_last() {
        // Other tests have jobs too, and a machine that is busy may let no helper run for a time.
        let helped = (0..10_000).any(|_| jobs(100, 64) > 0);
        assert!(helped || Threads::default().get() == 1);
        let ended = (0..2000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            Helper::here().state.load(Ordering::Acquire) == ABSENT
        });
        assert!(ended, "the helper stays");
        jobs(100, 64);
    }

    #[test]
    fn a_job_within_a_job_is_done() {
        let inner = AtomicUsize::new(0);
        for _ in 0..100 {
            Threads::new(2).beside().run(4, &|_, _| {
                Threads::new(2).beside().run(3, &|_, unit| {
                    inner.fetch_add(unit, Ordering::Relaxed);
                });
            });
        }
        assert_eq!(inner.into_inner(), 100 * 4 * 3);
        assert!(!Threads::ONE.beside().stands_by());
    }

    #[test]
    fn a_panic_of_either_thread_arrives_and_the_next_job_is_done() {
        for wrong in (0..100).flat_map(|_| [0, 3, 31]) {
            jobs(3, 32);
            let result = catch_unwind(|| {
                Threads::new(2).beside().run(32, &|_, unit| {
                    if unit == wrong {
                        std::panic::resume_unwind(Box::new("as wanted"));
                    }
                });
            });
            assert!(result.is_err(), "{wrong}");
        }
    }
}
