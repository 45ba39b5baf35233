//! The protocol of `claims.rs` on loom's atomics: every interleaving of its two threads with up to three preemptions, and
//! every value that the memory model lets a load see. `LOOM_MAX_PREEMPTIONS=9` asks for more of them, and takes a minute.

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

/// What the file counts with here.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[path = "claims.rs"]
#[allow(clippy::duplicate_mod, reason = "the same protocol on other atomics")]
mod claims;

use claims::{Claims, MOST};
use sync::Ordering;

const UNITS: usize = 2;

/// What owner and helper share beside the claims; all of it is read and written without an order of its own.
#[derive(Default)]
struct Shared {
    /// Number of the job that lives; 0 when none does.
    job: AtomicUsize,
    /// The job that did each unit last, and how often it was done.
    by: [AtomicUsize; UNITS],
    times: [AtomicUsize; UNITS],
}

impl Shared {
    fn unit(&self, unit: usize) {
        let job = self.job.load(Ordering::Relaxed);
        assert_ne!(job, 0, "the job is over");
        self.by[unit].store(job, Ordering::Relaxed);
        self.times[unit].fetch_add(1, Ordering::Relaxed);
        assert_eq!(self.job.load(Ordering::Relaxed), job, "another job began");
    }
}

/// Two jobs, of which the owner does as many units as it gets until it closes them; a helper that looks so many times.
fn two_jobs(looks: usize, owner_takes: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(move || {
        let both = Arc::new((Claims::new(), Shared::default()));
        let helpers = Arc::clone(&both);
        let helper = thread::spawn(move || {
            let (claims, shared) = &*helpers;
            for _ in 0..looks {
                if let Some(unit) = claims.last() {
                    shared.unit(unit);
                    claims.finish();
                }
            }
        });
        let (claims, shared) = &*both;
        for job in 1..=2 {
            shared.job.store(job, Ordering::Relaxed);
            claims.open(UNITS);
            let mut own = 0;
            while own < owner_takes
                && let Some(unit) = claims.first()
            {
                shared.unit(unit);
                own += 1;
            }
            let end = claims.close();
            assert!(claims.first().is_none() && end >= own);
            while !claims.has_finished(UNITS - end) {
                thread::yield_now();
            }
            for unit in 0..UNITS {
                let done = shared.by[unit].load(Ordering::Relaxed) == job;
                assert_eq!(done, unit < own || unit >= end, "unit {unit} of job {job}");
                let times = shared.times[unit].swap(0, Ordering::Relaxed);
                assert_eq!(times, usize::from(done), "unit {unit} of job {job}");
            }
            shared.job.store(0, Ordering::Relaxed);
        }
        helper.join().unwrap();
    });
}

#[test]
fn every_unit_is_done_once_and_none_when_its_job_is_over_however_threads_interleave() {
    two_jobs(2, UNITS);
}

#[test]
fn a_job_that_is_closed_early_is_left_by_the_helper_however_threads_interleave() {
    two_jobs(2, 1);
    two_jobs(1, 0);
}

#[test]
fn as_many_units_as_a_job_may_have_are_taken_from_both_ends() {
    loom::model(|| {
        let claims = Claims::new();
        assert_eq!((claims.first(), claims.last()), (None, None));
        claims.open(MOST);
        assert_eq!([claims.first(), claims.last(), claims.first()], [Some(0), Some(MOST - 1), Some(1)]);
        assert_eq!((claims.close(), claims.first(), claims.last()), (MOST - 1, None, None));
        claims.open(1);
        assert_eq!((claims.last(), claims.close(), claims.has_finished(1)), (Some(0), 0, false));
        claims.finish();
        assert!(claims.has_finished(1));
    });
}
