//! The sampler: batches of record ids in one global order, of which each rank takes its part.
//!
//! A step of all ranks together is `batch_size` records. Rank `r` of `w` gets the `r`-th of `w` nearly equal runs of
//! them, so joining the ranks' batches gives the same list whatever `w` is, and a state is the same on every rank.

use crate::mixture::{Mixture, MixtureOrder};
use crate::shuffle::{EpochOrder, Shuffle};
use crate::stream::Stream;
use std::ops::Range;
use tensilo_core::{Error, Result};

/// Which records come in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// As they are stored, without end; a batch may run over the end into the next round. The seed is not used.
    Sequential,
    /// Each record is drawn by itself, without end.
    Iid,
    /// Every record once in an epoch; batches end with the epoch.
    Epoch(Shuffle),
    /// Several sources by weight, without end.
    Mixture(Mixture),
}

impl Order {
    /// Its name in states.
    pub fn name(&self) -> String {
        match self {
            Self::Sequential => "sequential".into(),
            Self::Iid => "iid".into(),
            Self::Epoch(Shuffle::None) => "epoch".into(),
            Self::Epoch(Shuffle::Full) => "epoch, shuffled".into(),
            Self::Epoch(Shuffle::Blocks { block, window }) => format!("epoch, blocks of {block} by {window}"),
            Self::Mixture(mixture) => {
                let parts: Vec<_> = mixture.parts().iter().map(|(len, w)| format!("{len} by {w}")).collect();
                format!("mixture of {}", parts.join(", "))
            }
        }
    }
}

/// How records become batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplerOptions {
    /// Records of a step, of all ranks together.
    pub batch_size: usize,
    /// Which records in which order.
    pub order: Order,
    /// Chooses among random orders.
    pub seed: u64,
    /// This rank, below `world`.
    pub rank: u64,
    /// Number of ranks.
    pub world: u64,
    /// How many epochs there are; without end if not given. For [`Order::Epoch`] alone.
    pub epochs: Option<u64>,
    /// Leave out an epoch's last batch if it is short.
    pub drop_last: bool,
    /// This worker and the number of workers that share the steps of a rank in turn.
    pub worker: (u64, u64),
}

impl Default for SamplerOptions {
    /// 256 records a step, drawn with seed 42, one rank, one worker.
    fn default() -> Self {
        Self {
            batch_size: 256,
            order: Order::Iid,
            seed: 42,
            rank: 0,
            world: 1,
            epochs: None,
            drop_last: false,
            worker: (0, 1),
        }
    }
}

/// Where a sampler stands, the same on every rank: the next step, and what is needed to find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplerState {
    /// [`Order::name`] of the order it belongs to.
    pub order: String,
    /// Number of records it belongs to.
    pub len: u64,
    /// The seed it belongs to.
    pub seed: u64,
    /// The next step's number, counted from 0.
    pub step: u64,
    /// The next step's epoch.
    pub epoch: u64,
    /// Records of that epoch (or of the round, or of the mixture) that lie before it.
    pub offset: u64,
    /// State of the generator of [`Order::Iid`], else zeros.
    pub words: [u64; 4],
    /// Number of workers that took turns, and the step that the first of them began with.
    pub turns: (u64, u64),
}

/// One step as a sampler gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number, counted from 0.
    pub number: u64,
    /// Its epoch.
    pub epoch: u64,
    /// The state behind it.
    pub after: Position,
}

/// What moves while a sampler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The next step's number.
    pub step: u64,
    /// Its epoch.
    pub epoch: u64,
    /// Records before it.
    pub offset: u64,
    /// Generator state.
    pub words: [u64; 4],
}

/// Gives batches of record ids.
///
/// ```
/// use tensilo_loader::{Order, Sampler, SamplerOptions, Shuffle};
/// let order = Order::Epoch(Shuffle::Full);
/// let options = SamplerOptions { batch_size: 4, order, epochs: Some(1), ..SamplerOptions::default() };
/// let mut sampler = Sampler::new(10, options)?;
/// let mut seen = Vec::new();
/// while let Some((_, ids)) = sampler.next_batch() {
///     seen.extend(ids);
/// }
/// seen.sort_unstable();
/// assert_eq!(seen, (0..10).collect::<Vec<_>>());
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    len: u64,
    options: SamplerOptions,
    at: Position,
    /// The step that the first worker begins with.
    first_step: u64,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    Stream(Stream),
    Epoch(EpochOrder),
    Mixture(Box<MixtureOrder>),
}

/// The records of a step of `n` that a rank takes.
///
/// ```
/// use tensilo_loader::share;
/// assert_eq!([share(10, 0, 3), share(10, 1, 3), share(10, 2, 3)], [0..3, 3..6, 6..10]);
/// ```
pub fn share(n: u64, rank: u64, world: u64) -> Range<u64> {
    let cut = |r: u64| (u128::from(n) * u128::from(r) / u128::from(world.max(1))) as u64;
    cut(rank)..cut(rank + 1)
}

impl Sampler {
    /// Begins with the first step over `len` records.
    ///
    /// # Errors
    /// `InvalidArgument` for options that make no sense: no records, batches of none, a rank or worker that is not
    /// below their number, epochs of an endless order, a mixture of another length.
    pub fn new(len: u64, options: SamplerOptions) -> Result<Self> {
        let o = &options;
        let checks = [
            (len == 0, format!("there are no records, so there is no batch of {}", o.batch_size)),
            (o.batch_size == 0, "a batch needs at least one record".into()),
            (o.rank >= o.world, format!("rank {} of {} ranks", o.rank, o.world)),
            (o.worker.0 >= o.worker.1, format!("worker {} of {} workers", o.worker.0, o.worker.1)),
            (
                o.world > o.batch_size as u64,
                format!("{} ranks cannot share a batch of {}", o.world, o.batch_size),
            ),
            (
                o.epochs.is_some() && !matches!(o.order, Order::Epoch(_)),
                format!("the order {:?} has no epochs", o.order.name()),
            ),
        ];
        if let Some((_, why)) = checks.into_iter().find(|(wrong, _)| *wrong) {
            return Err(Error::invalid(why));
        }
        let source = match &o.order {
            Order::Sequential => Source::Stream(Stream::sequential(len)?),
            Order::Iid => Source::Stream(Stream::iid(len, o.seed)?),
            Order::Epoch(shuffle) => Source::Epoch(EpochOrder::new(len, o.seed, 0, *shuffle)),
            Order::Mixture(mixture) if mixture.len() == len => {
                Source::Mixture(Box::new(MixtureOrder::new(mixture.clone(), o.seed)))
            }
            Order::Mixture(mixture) => {
                return Err(Error::invalid(format!("a mixture of {} records over {len}", mixture.len())));
            }
        };
        if o.drop_last && matches!(o.order, Order::Epoch(_)) && len < o.batch_size as u64 {
            let why =
                format!("{len} records make no full batch of {}, and short ones are left out", o.batch_size);
            return Err(Error::invalid(why));
        }
        let words = if let Source::Stream(stream) = &source { stream.words() } else { [0; 4] };
        let at = Position { words, ..Position::default() };
        Ok(Self { len, options, at, first_step: 0, source })
    }

    /// The options.
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.len
    }

    /// Steps of a whole epoch; `None` for an order without epochs.
    pub fn steps_per_epoch(&self) -> Option<u64> {
        let batch = self.options.batch_size as u64;
        match self.options.order {
            Order::Epoch(_) if self.options.drop_last => Some(self.len / batch),
            Order::Epoch(_) => Some(self.len.div_ceil(batch)),
            _ => None,
        }
    }

    /// Steps of all epochs; `None` when there is no end.
    pub fn total_steps(&self) -> Option<u64> {
        Some(self.steps_per_epoch()?.saturating_mul(self.options.epochs?))
    }

    /// Most records of a batch of this rank.
    pub fn largest_share(&self) -> usize {
        let share = share(self.options.batch_size as u64, self.options.rank, self.options.world);
        (share.end - share.start + 1).min(self.options.batch_size as u64) as usize
    }

    /// Replaces the ids by those of this rank's next batch; `None` behind the last epoch.
    ///
    /// A short last batch may leave a rank without records: it then gets an empty one, so that all ranks take the
    /// same steps.
    pub fn next_into(&mut self, ids: &mut Vec<u64>) -> Option<Step> {
        loop {
            let turn = (self.at.step - self.first_step) % self.options.worker.1;
            let mine = turn == self.options.worker.0;
            if let Some(step) = self.take(mine.then_some(&mut *ids))
                && mine
            {
                return Some(step);
            } else if self.ended() {
                return None;
            }
        }
    }

    /// This rank's next batch; `None` behind the last epoch.
    pub fn next_batch(&mut self) -> Option<(Step, Vec<u64>)> {
        let mut ids = Vec::new();
        let step = self.next_into(&mut ids)?;
        Some((step, ids))
    }

    fn ended(&self) -> bool {
        self.options.epochs.is_some_and(|epochs| self.at.epoch >= epochs)
    }

    /// One step forward, whosever it is; its ids only if they are wanted. `None` at the end.
    fn take(&mut self, ids: Option<&mut Vec<u64>>) -> Option<Step> {
        if self.ended() {
            return None;
        }
        let (number, epoch) = (self.at.step, self.at.epoch);
        let batch = self.options.batch_size as u64;
        let n = match &self.source {
            Source::Epoch(_) => batch.min(self.len - self.at.offset),
            _ => batch,
        };
        let mine = share(n, self.options.rank, self.options.world);
        let offset = self.at.offset;
        match (&mut self.source, ids) {
            (Source::Stream(stream), None) => stream.skip(n),
            (Source::Stream(stream), Some(ids)) => {
                stream.keep(n, &mine, ids);
            }
            (_, None) => {}
            (Source::Epoch(order), Some(ids)) => {
                ids.clear();
                ids.extend(mine.map(|i| order.at(offset + i)));
            }
            (Source::Mixture(order), Some(ids)) => {
                ids.clear();
                ids.extend(mine.map(|i| order.at(offset.wrapping_add(i))));
            }
        }
        self.at.step += 1;
        match &mut self.source {
            Source::Stream(stream) => (self.at.offset, self.at.words) = (stream.cursor(), stream.words()),
            Source::Mixture(_) => self.at.offset = offset.wrapping_add(n),
            Source::Epoch(order) => {
                let next = offset + n;
                let left = self.len - next;
                if left == 0 || (self.options.drop_last && left < batch) {
                    (self.at.epoch, self.at.offset) = (epoch + 1, 0);
                    let Order::Epoch(shuffle) = self.options.order else { return None };
                    *order = EpochOrder::new(self.len, self.options.seed, self.at.epoch, shuffle);
                } else {
                    self.at.offset = next;
                }
            }
        }
        Some(Step { number, epoch, after: self.at })
    }

    /// Where it stands.
    pub fn position(&self) -> Position {
        self.at
    }

    /// Goes to a position of this very sampler.
    pub(crate) fn seek(&mut self, at: Position) {
        self.at = at;
        match (&mut self.source, &self.options.order) {
            (Source::Stream(stream), _) => stream.restore(at.offset, at.words),
            (Source::Epoch(order), Order::Epoch(shuffle)) => {
                *order = EpochOrder::new(self.len, self.options.seed, at.epoch, *shuffle);
            }
            _ => {}
        }
    }

    /// The state at a position that this sampler passed.
    pub fn state_at(&self, at: Position) -> SamplerState {
        SamplerState {
            order: self.options.order.name(),
            len: self.len,
            seed: self.options.seed,
            step: at.step,
            epoch: at.epoch,
            offset: at.offset,
            words: at.words,
            turns: (self.options.worker.1, self.first_step),
        }
    }

    /// The state now.
    pub fn state(&self) -> SamplerState {
        self.state_at(self.at)
    }

    /// Goes on from a state, of whatever world, rank or batch size. As many workers as there were go on taking turns;
    /// another number begins anew with the state's step.
    ///
    /// # Errors
    /// `InvalidArgument` when the state belongs to another order, seed or number of records.
    pub fn resume(&mut self, state: &SamplerState) -> Result<()> {
        let own = self.state();
        for (what, ours, theirs) in [
            ("order", own.order, state.order.clone()),
            ("number of records", own.len.to_string(), state.len.to_string()),
            ("seed", own.seed.to_string(), state.seed.to_string()),
        ] {
            if ours != theirs {
                return Err(Error::invalid(format!("the state is of another {what}: {theirs}, not {ours}")));
            }
        }
        if state.offset >= self.len && !matches!(self.source, Source::Mixture(_)) {
            return Err(Error::invalid(format!("record {} of an epoch of {}", state.offset, self.len)));
        }
        let at = Position { step: state.step, epoch: state.epoch, offset: state.offset, words: state.words };
        let (workers, first) = state.turns;
        self.first_step = if workers == self.options.worker.1 { first.min(at.step) } else { at.step };
        self.seek(at);
        let short = self.len.saturating_sub(at.offset) < self.options.batch_size as u64;
        if self.options.drop_last && short && matches!(self.source, Source::Epoch(_)) {
            // What is left of the epoch is no full batch, of this size.
            self.seek(Position { epoch: at.epoch + 1, offset: 0, ..at });
        }
        Ok(())
    }

    /// Goes to the beginning of an epoch; the steps before it count as taken.
    ///
    /// # Errors
    /// `InvalidArgument` for an order without epochs.
    pub fn start_epoch(&mut self, epoch: u64) -> Result<()> {
        let Some(steps) = self.steps_per_epoch() else {
            return Err(Error::invalid(format!("the order {:?} has no epochs", self.options.order.name())));
        };
        let mut state = self.state();
        (state.step, state.epoch, state.offset) = (steps.saturating_mul(epoch), epoch, 0);
        self.resume(&state)
    }
}
