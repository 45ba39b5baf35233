//! The loader: threads have the next batches ready, in order, and no more of them than asked for.
//!
//! A worker takes the next ids under a lock, so steps are handed out in order; it reads and transforms them, and puts
//! the result into the place that was reserved for the step. The consumer takes places from the front. A place is
//! reserved only while there are fewer than `prefetch` + `workers`, so a slow consumer stops the workers.
//!
//! The first step is read by as many threads as there are workers, before the second begins: it is waited for. Who made
//! it goes on when the waiting consumer has it, whom a busy processor would let wait for some milliseconds more.

use crate::batch::Batch;
use crate::fork::{Home, Reading};
use crate::memory::Pool;
use crate::sampler::{Position, Sampler, SamplerState, Step};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tensilo_core::gather::Gather;
use tensilo_core::progress::{CancelFlag, Progress, Quiet};
use tensilo_core::threads::Threads;
use tensilo_core::{Budget, Error, ErrorKind, Limits, Monitor, Result};

/// How long [`Loader::close`] waits for a transform that does not come back.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a worker lets the consumer go first.
const COURTESY: Duration = Duration::from_millis(2);
/// How often a waiting consumer asks its monitor.
const POLL: Duration = Duration::from_millis(50);

/// How batches are made ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderOptions {
    /// Threads that read and transform; 0 does it in the call that asks for the batch.
    pub workers: usize,
    /// Batches that are ready before they are asked for.
    pub prefetch: usize,
    /// Names of the fields to read; all when empty.
    pub fields: Vec<String>,
    /// What batches may take in memory together.
    pub limits: Limits,
}

impl Default for LoaderOptions {
    /// Four workers, four batches ahead, all fields.
    fn default() -> Self {
        Self { workers: 4, prefetch: 4, fields: Vec::new(), limits: Limits::default() }
    }
}

/// A step that could not be read or transformed.
#[derive(Debug)]
pub struct Failure {
    /// The step's number.
    pub step: u64,
    /// Its records.
    pub ids: Vec<u64>,
    /// What went wrong.
    pub error: Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        write!(f, "step {}, records {:?}", self.step, &self.ids[..self.ids.len().min(SHOWN)])?;
        if self.ids.len() > SHOWN {
            write!(f, " and {} more", self.ids.len() - SHOWN)?;
        }
        write!(f, ": {}", self.error)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let text = failure.to_string();
        let e = Self::new(failure.error.kind(), text);
        let e = if let Some(record) = failure.error.record() { e.in_record(record) } else { e };
        e.with_source(failure.error)
    }
}

type Transform<T> = dyn Fn(Batch) -> Result<T> + Send + Sync;

/// What all threads of a loader share.
struct Shared<T> {
    work: Work<T>,
    queue: Mutex<Queue<T>>,
    /// The step in front is done, or a thread has ended.
    ready: Condvar,
    /// A place became free, or the loader closes.
    room: Condvar,
    closing: CancelFlag,
    workers: Threads,
    home: Home,
}

/// How a step becomes a result.
struct Work<T> {
    store: Arc<dyn Gather>,
    fields: Vec<usize>,
    transform: Arc<Transform<T>>,
    pool: Arc<Pool>,
}

type Outcome<T> = std::result::Result<T, Failure>;

struct Queue<T> {
    sampler: Sampler,
    /// Steps that were handed out and not taken, the oldest in front.
    places: VecDeque<Option<(Outcome<T>, Position)>>,
    /// Steps that were taken.
    taken: u64,
    closed: bool,
    exhausted: bool,
    /// The first step is done, or is no longer waited for.
    begun: bool,
    /// The consumer waits.
    waiting: bool,
    running: usize,
}

impl<T> Queue<T> {
    /// May another step be handed out, if no more than so many are?
    fn has_room(&self, most: usize) -> bool {
        let begins = self.taken == 0 && self.places.is_empty();
        self.closed || self.exhausted || (self.places.len() < most && (self.begun || begins))
    }
}

impl<T> Shared<T> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(|p| p.into_inner())
    }
}

impl<T> Work<T> {
    /// Reads and transforms a step; says when it was read, or failed to be.
    fn run(
        &self,
        step: &Step,
        ids: &[u64],
        threads: Threads,
        monitor: &dyn Monitor,
        was_read: impl Fn(),
    ) -> Outcome<T> {
        let work = || {
            let batch = {
                let _reading = Reading::begin();
                let _said = OnDrop(&was_read);
                Batch::gather(&*self.store, &self.fields, step, ids, &self.pool, threads, monitor)?
            };
            (self.transform)(batch)
        };
        let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(Error::new(ErrorKind::InvalidArgument, format!("panicked: {text}")))
        });
        result.map_err(|error| Failure { step: step.number, ids: ids.to_vec(), error })
    }
}

/// Batches of a store, made ready by threads, in the sampler's order.
///
/// It is an iterator; after an error the next call gives the step behind it. Dropping or closing it ends its threads.
/// In a forked child it starts threads of its own and goes on with the step that the parent would have got.
///
/// ```
/// use std::sync::Arc;
/// use tensilo_core::gather::{Concat, Gather};
/// use tensilo_loader::{Loader, LoaderOptions, Order, Sampler, SamplerOptions, Shuffle};
/// # use tensilo_core::{dtype::DType, gather::{FieldSchema, Schema}};
/// # use tensilo_testkit::MemoryRecords;
/// # let schema = Schema::new(vec![FieldSchema::fixed("x", DType::U8, vec![])])?;
/// # let store = Arc::new(MemoryRecords::new(schema, (0..10).map(|i| vec![vec![i]]).collect()));
/// let order = Order::Epoch(Shuffle::Full);
/// let options = SamplerOptions { batch_size: 4, order, epochs: Some(1), ..SamplerOptions::default() };
/// let sampler = Sampler::new(store.len(), options)?;
/// let double = |mut batch: tensilo_loader::Batch| {
///     batch.fields[0].values_mut::<u8>()?.iter_mut().for_each(|x| *x *= 2);
///     Ok(batch)
/// };
/// let mut sum = 0;
/// for batch in Loader::with_transform(store, sampler, &LoaderOptions::default(), double)? {
///     sum += batch?.field("x")?.values::<u8>()?.iter().map(|x| u32::from(*x)).sum::<u32>();
/// }
/// assert_eq!(sum, 2 * (0..10).sum::<u32>());
/// # Ok::<(), tensilo_core::Error>(())
/// ```
pub struct Loader<T: Send + 'static = Batch> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
    options: LoaderOptions,
    /// The sampler as it was at the start; the threads have their own.
    sampler: Sampler,
    /// Behind the last step that was taken.
    taken: Position,
    ids: Vec<u64>,
}

impl<T: Send + 'static> fmt::Debug for Loader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("options", &self.options).field("taken", &self.taken).finish()
    }
}

impl Loader<Batch> {
    /// Begins to read a store in a sampler's order.
    ///
    /// # Errors
    /// `InvalidArgument` when the sampler is for another number of records; `NotFound` for a field that does not
    /// exist; `Io` when no thread can be started.
    pub fn new(store: Arc<dyn Gather>, sampler: Sampler, options: &LoaderOptions) -> Result<Self> {
        Self::with_transform(store, sampler, options, Ok)
    }
}

impl<T: Send + 'static> Loader<T> {
    /// Begins to read a store in a sampler's order; the workers hand each batch through a function.
    ///
    /// # Errors
    /// As [`new`](Loader::new).
    pub fn with_transform(
        store: Arc<dyn Gather>,
        sampler: Sampler,
        options: &LoaderOptions,
        transform: impl Fn(Batch) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Self> {
        if sampler.records() != store.len() {
            let (ours, theirs) = (sampler.records(), store.len());
            return Err(Error::invalid(format!("a sampler over {ours} records, a store of {theirs}")));
        }
        let schema = store.schema();
        let fields = match options.fields.is_empty() {
            true => (0..schema.fields().len()).collect(),
            false => options.fields.iter().map(|name| schema.position(name)).collect::<Result<Vec<_>>>()?,
        };
        Self::start(store, fields, Arc::new(transform), sampler, options.clone())
    }

    fn start(
        store: Arc<dyn Gather>,
        fields: Vec<usize>,
        transform: Arc<Transform<T>>,
        sampler: Sampler,
        options: LoaderOptions,
    ) -> Result<Self> {
        // What is ready, what is being made, and what the consumer holds and asks for.
        let kept = (options.prefetch + 2 * options.workers + 2) * fields.len().max(1);
        let pool = Pool::new(kept, Budget::new(options.limits.clone()));
        let taken = sampler.position();
        let queue = Queue {
            sampler: sampler.clone(),
            places: VecDeque::new(),
            taken: 0,
            closed: false,
            exhausted: false,
            begun: false,
            waiting: false,
            running: options.workers,
        };
        let shared = Arc::new(Shared {
            work: Work { store, fields, transform, pool },
            queue: Mutex::new(queue),
            ready: Condvar::new(),
            room: Condvar::new(),
            closing: CancelFlag::new(),
            workers: Threads::new(options.workers.max(1)),
            home: Home::here(),
        });
        let most = options.prefetch.max(1) + options.workers;
        let mut threads = Vec::with_capacity(options.workers);
        for i in 0..options.workers {
            let own = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("tensilo-load-{i}"));
            match thread.spawn(move || work(&own, most)) {
                Ok(handle) => threads.push(handle),
                Err(e) => {
                    shared.queue().running = threads.len();
                    drop(Self { shared, threads, options, sampler, taken, ids: Vec::new() });
                    return Err(Error::io("starting a thread of the loader", e));
                }
            }
        }
        Ok(Self { shared, threads, options, sampler, taken, ids: Vec::new() })
    }

    /// The next result; `None` behind the last one and after [`close`](Self::close). The monitor is asked while it
    /// waits.
    ///
    /// # Errors
    /// The failure of the step, with its records; the monitor's error, with none, after which the step is still there.
    pub fn next_with(&mut self, monitor: &dyn Monitor) -> Option<Outcome<T>> {
        if self.shared.home.left()
            && let Err(error) = self.restart()
        {
            return Some(Err(Failure { step: self.taken.step, ids: Vec::new(), error }));
        }
        if self.options.workers == 0 {
            return self.next_here(monitor);
        }
        let mut queue = self.shared.queue();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(Some(_)) = queue.places.front() {
                let (outcome, after) = queue.places.pop_front().flatten()?;
                queue.taken += 1;
                let first = queue.taken == 1;
                drop(queue);
                if first {
                    self.shared.room.notify_all();
                } else {
                    self.shared.room.notify_one();
                }
                self.taken = after;
                return Some(outcome);
            }
            if queue.exhausted && queue.places.is_empty() {
                return None;
            }
            queue.waiting = true;
            (queue, _) = self.shared.ready.wait_timeout(queue, POLL).unwrap_or_else(|p| p.into_inner());
            queue.waiting = false;
            if queue.places.front().is_some_and(Option::is_some) {
                continue;
            }
            drop(queue);
            if let Err(error) = monitor.poll(&Progress { stage: "waiting for a batch", done: 0, total: 0 }) {
                return Some(Err(Failure { step: self.taken.step, ids: Vec::new(), error }));
            }
            queue = self.shared.queue();
        }
    }

    /// The next result without threads.
    fn next_here(&mut self, monitor: &dyn Monitor) -> Option<Outcome<T>> {
        let mut queue = self.shared.queue();
        if queue.closed {
            return None;
        }
        let step = queue.sampler.next_into(&mut self.ids)?;
        drop(queue);
        self.taken = step.after;
        Some(self.shared.work.run(&step, &self.ids, Threads::default(), monitor, || ()))
    }

    /// In a forked child: threads and locks of its own. What the parent's threads share is never touched again.
    fn restart(&mut self) -> Result<()> {
        let old = &self.shared.work;
        let (store, fields) = (Arc::clone(&old.store), old.fields.clone());
        let transform = Arc::clone(&old.transform);
        let mut sampler = self.sampler.clone();
        sampler.seek(self.taken);
        let new = Self::start(store, fields, transform, sampler, self.options.clone())?;
        let taken = self.taken;
        std::mem::forget(std::mem::replace(self, new));
        self.taken = taken;
        Ok(())
    }

    /// The state behind the last step that was taken, whatever was read ahead.
    pub fn state(&self) -> SamplerState {
        self.sampler.state_at(self.taken)
    }

    /// Where the sampler stood behind the last step that was taken.
    pub fn position(&self) -> Position {
        self.taken
    }

    /// Batches that are ready or being made.
    pub fn ahead(&self) -> usize {
        if self.shared.home.left() { 0 } else { self.shared.queue().places.len() }
    }

    /// Ends the threads and drops what is ready. Waits for what is being read; a transform that does not come back
    /// is left to itself after two seconds. Up to 64 MiB of memory for large batches are kept for the process' next
    /// loader.
    pub fn close(&mut self) {
        if self.shared.home.left() {
            self.threads.drain(..).for_each(std::mem::forget);
            return;
        }
        self.shared.closing.cancel();
        let mut queue = self.shared.queue();
        queue.closed = true;
        let dropped = std::mem::take(&mut queue.places);
        self.shared.room.notify_all();
        self.shared.ready.notify_all();
        let until = Instant::now() + PATIENCE;
        while queue.running > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            (queue, _) = self.shared.ready.wait_timeout(queue, left).unwrap_or_else(|p| p.into_inner());
        }
        let all_ended = queue.running == 0;
        drop(queue);
        drop(dropped);
        for thread in self.threads.drain(..) {
            if all_ended || thread.is_finished() {
                let _ = thread.join();
            }
        }
        self.shared.work.pool.close();
    }
}

impl<T: Send + 'static> Iterator for Loader<T> {
    type Item = Outcome<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_with(&Quiet)
    }
}

impl<T: Send + 'static> Drop for Loader<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// What a thread does until the loader closes or the sampler ends; `most` places may be reserved.
fn work<T>(shared: &Shared<T>, most: usize) {
    let _leave = Leave(shared);
    let mut ids = Vec::new();
    loop {
        let mut queue = shared.queue();
        while !queue.has_room(most) {
            queue = shared.room.wait(queue).unwrap_or_else(|p| p.into_inner());
        }
        if queue.closed || queue.exhausted {
            return;
        }
        let Some(step) = queue.sampler.next_into(&mut ids) else {
            queue.exhausted = true;
            shared.room.notify_all();
            return;
        };
        let ticket = queue.taken + queue.places.len() as u64;
        queue.places.push_back(None);
        drop(queue);
        let threads = if ticket == 0 { shared.workers } else { Threads::ONE };
        let outcome = shared.work.run(&step, &ids, threads, &shared.closing, || {
            if ticket == 0 {
                shared.queue().begun = true;
                shared.room.notify_all();
            }
        });
        let mut queue = shared.queue();
        if queue.closed {
            drop(queue);
            return;
        }
        let place = ticket - queue.taken;
        if let Some(slot) = queue.places.get_mut(place as usize) {
            *slot = Some((outcome, step.after));
        }
        let courteous = ticket == 0 && queue.waiting;
        drop(queue);
        if place == 0 {
            shared.ready.notify_all();
        }
        if courteous {
            let not_taken = |queue: &mut Queue<T>| queue.taken == 0 && !queue.closed;
            drop(shared.room.wait_timeout_while(shared.queue(), COURTESY, not_taken));
        }
    }
}

/// Calls something when it is dropped, also by a panic.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Counts a thread out, also when it panics.
struct Leave<'a, T>(&'a Shared<T>);

impl<T> Drop for Leave<'_, T> {
    fn drop(&mut self) {
        self.0.queue().running -= 1;
        self.0.ready.notify_all();
    }
}
