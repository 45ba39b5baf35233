//! Tiles through several workers, results in order: the schedule that producing and verifying share.
//!
//! Items (tiles) belong to groups (shards). Every worker, the caller among them, takes the most urgent step there is:
//!
//! 1. *consume* the next item, strictly in order and one at a time: the hashes are chains, one or two of them, and
//!    where there are two, each takes the items in order by itself;
//! 2. *begin* the group that the next item needs;
//! 3. *prepare* the next item into a free slot of a ring, any number at a time;
//! 4. *end* a group whose items are all prepared, one group at a time;
//! 5. *begin* a further group ahead of time.
//!
//! `end` is long; it calls [`Help::help`] between its pieces, which does the urgent steps 1 to 3 meanwhile, so that
//! the chain of hashes hardly ever waits. All threads are joined before [`run`] returns.
//!
//! The error that is reported is the first in item order, whatever the number of workers: after a failure everything
//! before it is still prepared, nothing behind it is begun.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tensilo_core::{Error, Monitor, Progress, Result};

/// Work on items that are grouped.
pub(crate) trait Ordered: Sync {
    /// What an item is prepared into.
    type Slot: Send + Sync;
    /// What one worker keeps for itself.
    type Scratch;

    /// Makes a worker's scratch.
    fn scratch(&self) -> Self::Scratch;

    /// Called before any item of a group is prepared; groups come in order.
    fn begin(&self, _scratch: &mut Self::Scratch, _group: usize) -> Result<()> {
        Ok(())
    }

    /// Fills a slot; items come in any order, several at a time.
    fn prepare(&self, scratch: &mut Self::Scratch, item: usize, slot: &mut Self::Slot) -> Result<()>;

    /// Takes items in order, one at a time in each chain.
    fn consume(&self, item: usize, chain: Chain, slot: &Self::Slot) -> Result<()>;

    /// Called when all items of a group are prepared; groups come in order.
    fn end(&self, _group: usize, _help: &mut dyn Help) -> Result<()> {
        Ok(())
    }
}

/// What of an item is consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chain {
    /// Everything, in one step.
    Whole,
    /// The longer part.
    First,
    /// The rest.
    Second,
}

/// The chains of a run: one step for each item, or two that need not wait for each other.
const WHOLE: &[Chain] = &[Chain::Whole];
const SPLIT: &[Chain] = &[Chain::First, Chain::Second];

/// Lets a long step make way for urgent ones.
pub(crate) trait Help {
    /// Does what is urgent, then returns.
    ///
    /// # Errors
    /// `Cancelled` when the whole work is being stopped.
    fn help(&mut self) -> Result<()>;
}

/// How items are grouped, and how progress is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub groups: usize,
    pub items_per_group: usize,
    /// Groups that may have begun and not ended.
    pub groups_at_once: usize,
    pub workers: usize,
    /// Are items consumed in two chains instead of one?
    pub split: bool,
    pub stage: &'static str,
    /// Progress of one item, before the first, and in all.
    pub unit: u64,
    pub done: u64,
    pub total: u64,
}

#[derive(Clone, Copy)]
enum Step {
    /// An item, and which chain takes it.
    Consume(usize, usize),
    Begin(usize),
    Prepare(usize),
    End(usize),
}

struct State {
    begun: usize,
    beginning: bool,
    next: usize,
    /// Are the items from `consumed` on prepared?
    prepared: VecDeque<bool>,
    /// Items that every chain has consumed.
    consumed: usize,
    chains: Vec<Consuming>,
    /// Prepared items of each group from `ended` on.
    of_group: VecDeque<usize>,
    ended: usize,
    ending: bool,
    busy: usize,
    /// Position of the first failure, and its error. Positions: group begin 2·first item, item 2·item + 1,
    /// group end 2·(last item + 1).
    failed: Option<(usize, Error)>,
    /// The monitor's error.
    stopped: Option<Error>,
    panicked: bool,
}

/// One chain: the items it has consumed, and whether it is at work.
#[derive(Clone, Copy, Default)]
struct Consuming {
    next: usize,
    busy: bool,
}

struct Engine<'a, W: Ordered> {
    work: &'a W,
    slots: Vec<RwLock<W::Slot>>,
    schedule: Schedule,
    state: Mutex<State>,
    changed: Condvar,
}

/// Runs all items of all groups; `slots` is the ring.
///
/// # Errors
/// The first failure in item order, or the monitor's error.
pub(crate) fn run<W: Ordered>(
    work: &W,
    slots: Vec<W::Slot>,
    schedule: Schedule,
    monitor: &dyn Monitor,
) -> Result<()> {
    run_keeping(work, slots, schedule, monitor).map(|_| ())
}

/// As [`run`]; gives the ring back for another run.
pub(crate) fn run_keeping<W: Ordered>(
    work: &W,
    slots: Vec<W::Slot>,
    schedule: Schedule,
    monitor: &dyn Monitor,
) -> Result<Vec<W::Slot>> {
    let engine = Engine {
        work,
        slots: slots.into_iter().map(RwLock::new).collect(),
        schedule,
        state: Mutex::new(State {
            begun: 0,
            beginning: false,
            next: 0,
            prepared: VecDeque::new(),
            consumed: 0,
            chains: vec![Consuming::default(); if schedule.split { SPLIT } else { WHOLE }.len()],
            of_group: VecDeque::new(),
            ended: 0,
            ending: false,
            busy: 0,
            failed: None,
            stopped: None,
            panicked: false,
        }),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..schedule.workers {
            scope.spawn(|| engine.worker(None));
        }
        engine.worker(Some(monitor));
    });
    let state = engine.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (state.stopped, state.failed) {
        (Some(e), _) | (None, Some((_, e))) => Err(e),
        (None, None) => Ok(engine
            .slots
            .into_iter()
            .map(|s| s.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()),
    }
}

/// Locks what workers share; a panic of another is told by [`Alarm`], not by the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the others when a worker panics, so that they do not wait for it.
struct Alarm<'a, 'b, W: Ordered>(&'b Engine<'a, W>);

impl<W: Ordered> Drop for Alarm<'_, '_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().panicked = true;
            self.0.changed.notify_all();
        }
    }
}

struct Helper<'e, 'a, 'm, W: Ordered> {
    engine: &'e Engine<'a, W>,
    scratch: &'e mut W::Scratch,
    monitor: Option<&'m dyn Monitor>,
}

impl<W: Ordered> Help for Helper<'_, '_, '_, W> {
    fn help(&mut self) -> Result<()> {
        loop {
            self.engine.poll(self.monitor);
            let mut state = self.engine.lock();
            if state.stopped.is_some() || state.panicked {
                return Err(Error::cancelled());
            }
            let Some(step) = self.engine.urgent(&mut state) else { return Ok(()) };
            drop(state);
            self.engine.perform(step, self.scratch, self.monitor);
        }
    }
}

impl<W: Ordered> Engine<'_, W> {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn chains(&self) -> &'static [Chain] {
        if self.schedule.split { SPLIT } else { WHOLE }
    }

    fn items(&self) -> usize {
        self.schedule.groups * self.schedule.items_per_group
    }

    fn worker(&self, monitor: Option<&dyn Monitor>) {
        let _alarm = Alarm(self);
        let mut scratch = self.work.scratch();
        loop {
            self.poll(monitor);
            let mut state = self.lock();
            let step = loop {
                if let Some(step) = self.any(&mut state) {
                    break Some(step);
                }
                if state.panicked || state.busy == 0 {
                    break None;
                }
                if monitor.is_none() {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                let waited = self.changed.wait_timeout(state, Duration::from_millis(50));
                drop(waited.unwrap_or_else(PoisonError::into_inner));
                self.poll(monitor);
                state = self.lock();
            };
            drop(state);
            match step {
                Some(step) => self.perform(step, &mut scratch, monitor),
                None => {
                    // Whoever still waits sees that nothing is left.
                    self.changed.notify_all();
                    return;
                }
            }
        }
    }

    /// Asks the monitor, on the calling thread only.
    fn poll(&self, monitor: Option<&dyn Monitor>) {
        let Some(monitor) = monitor else { return };
        let s = &self.schedule;
        let state = self.lock();
        if state.stopped.is_some() {
            return;
        }
        let done = s.done + s.unit * state.consumed as u64;
        drop(state);
        if let Err(e) = monitor.poll(&Progress { stage: s.stage, done, total: s.total }) {
            self.lock().stopped = Some(e);
            self.changed.notify_all();
        }
    }

    fn any(&self, state: &mut State) -> Option<Step> {
        self.urgent(state).or_else(|| self.background(state))
    }

    /// May a step at this position still matter?
    fn matters(&self, state: &State, position: usize) -> bool {
        state.stopped.is_none()
            && !state.panicked
            && state.failed.as_ref().is_none_or(|(failed, _)| position < *failed)
    }

    fn urgent(&self, state: &mut State) -> Option<Step> {
        let per_group = self.schedule.items_per_group;
        for chain in 0..state.chains.len() {
            let Consuming { next, busy } = state.chains[chain];
            if !busy
                && state.prepared.get(next - state.consumed) == Some(&true)
                && self.matters(state, 2 * next + 1)
            {
                state.chains[chain].busy = true;
                state.busy += 1;
                return Some(Step::Consume(next, chain));
            }
        }
        let item = state.next;
        if item == self.items() || !self.matters(state, 2 * item) {
            return None;
        }
        if item / per_group >= state.begun {
            return self.may_begin(state);
        }
        if item < state.consumed + self.slots.len() {
            state.next += 1;
            state.prepared.push_back(false);
            state.busy += 1;
            return Some(Step::Prepare(item));
        }
        None
    }

    fn background(&self, state: &mut State) -> Option<Step> {
        let per_group = self.schedule.items_per_group;
        if !state.ending
            && state.of_group.front() == Some(&per_group)
            && self.matters(state, 2 * (state.ended + 1) * per_group)
        {
            state.ending = true;
            state.busy += 1;
            return Some(Step::End(state.ended));
        }
        self.may_begin(state)
    }

    fn may_begin(&self, state: &mut State) -> Option<Step> {
        let (group, s) = (state.begun, &self.schedule);
        let room = group < s.groups && group < state.ended + s.groups_at_once;
        if state.beginning || !room || !self.matters(state, 2 * group * s.items_per_group) {
            return None;
        }
        state.beginning = true;
        state.busy += 1;
        Some(Step::Begin(group))
    }

    fn slot(&self, item: usize) -> &RwLock<W::Slot> {
        // Nobody waits for a slot: it is free once every chain has consumed the item one ring before.
        &self.slots[item % self.slots.len()]
    }

    fn perform(&self, step: Step, scratch: &mut W::Scratch, monitor: Option<&dyn Monitor>) {
        let per_group = self.schedule.items_per_group;
        let (position, result) = match step {
            Step::Consume(item, chain) => {
                let slot = self.slot(item).read().unwrap_or_else(PoisonError::into_inner);
                (2 * item + 1, self.work.consume(item, self.chains()[chain], &slot))
            }
            Step::Begin(group) => (2 * group * per_group, self.work.begin(scratch, group)),
            Step::Prepare(item) => {
                let mut slot = self.slot(item).write().unwrap_or_else(PoisonError::into_inner);
                (2 * item + 1, self.work.prepare(scratch, item, &mut slot))
            }
            Step::End(group) => {
                let mut helper = Helper { engine: self, scratch, monitor };
                (2 * (group + 1) * per_group, self.work.end(group, &mut helper))
            }
        };
        let mut state = self.lock();
        state.busy -= 1;
        // A failed step counts as done, so that what lies before it can go on; nothing behind it will.
        if let Err(e) = result
            && state.failed.as_ref().is_none_or(|(failed, _)| position < *failed)
        {
            state.failed = Some((position, e));
        }
        match step {
            Step::Consume(item, chain) => {
                state.chains[chain].busy = false;
                state.chains[chain].next = item + 1;
                let consumed = state.chains.iter().map(|c| c.next).min().unwrap_or(0);
                for _ in state.consumed..consumed {
                    state.prepared.pop_front();
                }
                state.consumed = consumed;
            }
            Step::Begin(_) => {
                state.beginning = false;
                state.begun += 1;
                state.of_group.push_back(0);
            }
            Step::Prepare(item) => {
                let at = item - state.consumed;
                state.prepared[at] = true;
                let group = item / per_group - state.ended;
                state.of_group[group] += 1;
            }
            Step::End(_) => {
                state.ending = false;
                state.ended += 1;
                state.of_group.pop_front();
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tensilo_core::{CancelFlag, Quiet};

    /// Records the order of steps and fails where told.
    #[derive(Default)]
    struct Recorder {
        fail_at: Vec<usize>,
        fail_end: Option<usize>,
        per_group: usize,
        begun: AtomicUsize,
        ended: AtomicUsize,
        consumed: [Mutex<Vec<usize>>; 2],
    }

    impl Ordered for Recorder {
        type Slot = usize;
        type Scratch = ();

        fn scratch(&self) {}

        fn begin(&self, _: &mut (), group: usize) -> Result<()> {
            assert_eq!(self.begun.fetch_add(1, Ordering::SeqCst), group);
            assert!(group < self.ended.load(Ordering::SeqCst) + 2);
            Ok(())
        }

        fn prepare(&self, _: &mut (), item: usize, slot: &mut usize) -> Result<()> {
            assert!(item / self.per_group < self.begun.load(Ordering::SeqCst));
            *slot = item;
            if self.fail_at.contains(&item) { Err(Error::invalid(item.to_string())) } else { Ok(()) }
        }

        fn consume(&self, item: usize, chain: Chain, slot: &usize) -> Result<()> {
            assert_eq!(item, *slot);
            for (of_chain, other) in self.consumed.iter().zip([Chain::Second, Chain::First]) {
                if chain != other {
                    of_chain.lock().unwrap().push(item);
                }
            }
            Ok(())
        }

        fn end(&self, group: usize, help: &mut dyn Help) -> Result<()> {
            assert_eq!(self.ended.load(Ordering::SeqCst), group);
            for _ in 0..3 {
                help.help()?;
            }
            self.ended.fetch_add(1, Ordering::SeqCst);
            if self.fail_end == Some(group) { Err(Error::invalid(format!("end {group}"))) } else { Ok(()) }
        }
    }

    fn schedule(workers: usize, split: bool) -> Schedule {
        Schedule {
            groups: 5,
            items_per_group: 7,
            groups_at_once: 2,
            workers,
            split,
            stage: "test",
            unit: 1,
            done: 0,
            total: 35,
        }
    }

    #[test]
    fn items_are_consumed_in_order_and_groups_ended_whatever_the_workers_and_slots() {
        for workers in 1..6 {
            for (slots, split) in (1..5).flat_map(|slots| [(slots, false), (slots, true)]) {
                let work = Recorder { per_group: 7, ..Recorder::default() };
                run(&work, vec![0; slots], schedule(workers, split), &Quiet).unwrap();
                for chain in &work.consumed {
                    assert_eq!(*chain.lock().unwrap(), (0..35).collect::<Vec<_>>());
                }
                assert_eq!(work.ended.load(Ordering::SeqCst), 5);
            }
        }
    }

    #[test]
    fn the_first_failure_in_order_is_reported() {
        for workers in 1..5 {
            for split in (0..100).map(|i| i % 2 == 0) {
                let work = Recorder { per_group: 7, fail_at: vec![9, 10, 11, 12, 30], ..Recorder::default() };
                let e = run(&work, vec![0; 4], schedule(workers, split), &Quiet).unwrap_err();
                assert_eq!(e.message(), "9");
                let work =
                    Recorder { per_group: 7, fail_end: Some(1), fail_at: vec![34], ..Recorder::default() };
                let e = run(&work, vec![0; 3], schedule(workers, split), &Quiet).unwrap_err();
                assert_eq!(e.message(), "end 1");
            }
        }
    }

    #[test]
    fn the_monitor_stops_the_work() {
        for workers in 1..4 {
            let (work, flag) = (Recorder { per_group: 7, ..Recorder::default() }, CancelFlag::new());
            flag.cancel();
            let e = run(&work, vec![0; 2], schedule(workers, workers == 2), &flag).unwrap_err();
            assert_eq!(e.kind(), tensilo_core::ErrorKind::Cancelled);
        }
    }
}
