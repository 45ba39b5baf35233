//! The order of one epoch: which record is at which place.

use crate::permutation::{Key, Permutation};

/// Purposes of keys, so that the permutations of one seed and epoch differ.
const RECORDS: u64 = 1;
const BLOCKS: u64 = 2;
const WINDOW: u64 = 3;

/// How an epoch is shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shuffle {
    /// Not at all: the records as they are stored.
    None,
    /// All records among each other.
    #[default]
    Full,
    /// Blocks of records that are cheap together are put into another order; then the records of so many blocks that
    /// follow each other are shuffled. No more than two windows' blocks are needed at any time.
    Blocks {
        /// Records of a block; blocks start at multiples.
        block: u64,
        /// Blocks that are shuffled together.
        window: u64,
    },
}

/// The order of one epoch.
///
/// ```
/// use tensilo_loader::{EpochOrder, Shuffle};
/// let mut order = EpochOrder::new(1000, 42, 0, Shuffle::Blocks { block: 64, window: 4 });
/// let mut all: Vec<u64> = (0..1000).map(|place| order.at(place)).collect();
/// all.sort_unstable();
/// assert_eq!(all, (0..1000).collect::<Vec<_>>());
/// ```
#[derive(Debug, Clone)]
pub struct EpochOrder {
    len: u64,
    seed: u64,
    epoch: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    None,
    Full(Box<Permutation>),
    Blocks(Box<Blocks>),
}

#[derive(Debug, Clone)]
struct Blocks {
    block: u64,
    /// Records of a window.
    span: u64,
    order: Permutation,
    /// Records of the last block, and its place among the blocks.
    rest: u64,
    rest_place: u64,
    /// The window that was asked last.
    window: (u64, Permutation),
}

impl EpochOrder {
    /// The order of `len` records in an epoch of a seed. A block or window of 0 counts as 1.
    pub fn new(len: u64, seed: u64, epoch: u64, shuffle: Shuffle) -> Self {
        let last = len.saturating_sub(1);
        let kind = match shuffle {
            Shuffle::None => Kind::None,
            Shuffle::Full => Kind::Full(Box::new(Permutation::new(last, Key::new(seed, RECORDS, epoch, 0)))),
            Shuffle::Blocks { block, window } => {
                let block = block.clamp(1, len.max(1));
                let last_block = last / block;
                let order = Permutation::new(last_block, Key::new(seed, BLOCKS, epoch, 0));
                let span = block.saturating_mul(window.max(1));
                let window = Self::window(len, seed, epoch, span, 0);
                Kind::Blocks(Box::new(Blocks {
                    block,
                    span,
                    rest: len - last_block * block,
                    rest_place: order.place_of(last_block),
                    order,
                    window: (0, window),
                }))
            }
        };
        Self { len, seed, epoch, kind }
    }

    fn window(len: u64, seed: u64, epoch: u64, span: u64, index: u64) -> Permutation {
        let records = span.min(len - index * span);
        Permutation::new(records.saturating_sub(1), Key::new(seed, WINDOW, epoch, index))
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The record at a place below the number of records.
    pub fn at(&mut self, place: u64) -> u64 {
        match &mut self.kind {
            Kind::None => place,
            Kind::Full(permutation) => permutation.at(place),
            Kind::Blocks(_) if place >= self.len => place,
            Kind::Blocks(blocks) => {
                let index = place / blocks.span;
                if blocks.window.0 != index {
                    let window = Self::window(self.len, self.seed, self.epoch, blocks.span, index);
                    blocks.window = (index, window);
                }
                let start = index * blocks.span;
                blocks.record(start + blocks.window.1.at(place - start))
            }
        }
    }
}

impl Blocks {
    /// The record at a place when blocks alone are shuffled. The last block may be short, so places behind it shift.
    fn record(&self, place: u64) -> u64 {
        let short = self.rest_place * self.block;
        if place >= short && place - short < self.rest {
            return self.order.at(self.rest_place) * self.block + (place - short);
        }
        let shift = if place < short { 0 } else { self.block - self.rest };
        // In two steps: a place plus a shift may pass 2^64.
        let (block, within) = if shift == 0 {
            (place / self.block, place % self.block)
        } else {
            let behind = place - short - self.rest;
            (self.rest_place + 1 + behind / self.block, behind % self.block)
        };
        self.order.at(block) * self.block + within
    }
}
