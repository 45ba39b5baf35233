//! loaderx's two endless orders, bit for bit.

use crate::sfc64::Sfc64;
use tensilo_core::{Error, Result};

/// Record ids without end.
///
/// ```
/// use tensilo_loader::Stream;
/// let mut ids = [0; 5];
/// Stream::sequential(3)?.fill(&mut ids);
/// assert_eq!(ids, [0, 1, 2, 0, 1]);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    len: u64,
    next: Next,
}

#[derive(Debug, Clone)]
enum Next {
    Cursor(u64),
    Draw(Sfc64),
}

fn not_empty(len: u64) -> Result<u64> {
    if len == 0 { Err(Error::invalid("there are no records to draw from")) } else { Ok(len) }
}

impl Stream {
    /// 0, 1, … and from the beginning again.
    ///
    /// # Errors
    /// `InvalidArgument` without records.
    pub fn sequential(len: u64) -> Result<Self> {
        Ok(Self { len: not_empty(len)?, next: Next::Cursor(0) })
    }

    /// Each id is drawn by itself.
    ///
    /// # Errors
    /// `InvalidArgument` without records.
    pub fn iid(len: u64, seed: u64) -> Result<Self> {
        Ok(Self { len: not_empty(len)?, next: Next::Draw(Sfc64::new(seed)) })
    }

    /// Writes the next ids.
    pub fn fill(&mut self, ids: &mut [u64]) {
        match &mut self.next {
            Next::Cursor(cursor) => {
                for id in ids {
                    *id = *cursor;
                    *cursor = if *cursor + 1 == self.len { 0 } else { *cursor + 1 };
                }
            }
            Next::Draw(generator) => generator.fill_below(self.len, ids),
        }
    }

    /// Takes `n` ids and keeps a run of them.
    pub(crate) fn keep(&mut self, n: u64, keep: &std::ops::Range<u64>, ids: &mut Vec<u64>) {
        ids.clear();
        self.skip(keep.start);
        let count = (keep.end - keep.start) as usize;
        match &mut self.next {
            Next::Draw(generator) => generator.append_below(self.len, count, ids),
            Next::Cursor(cursor) => {
                let (mut local, len) = (*cursor, self.len);
                ids.extend((0..count).map(|_| {
                    let id = local;
                    local = if local + 1 == len { 0 } else { local + 1 };
                    id
                }));
                *cursor = local;
            }
        }
        self.skip(n - keep.end);
    }

    /// Leaves out so many ids.
    pub fn skip(&mut self, n: u64) {
        match &mut self.next {
            Next::Cursor(cursor) => {
                *cursor = ((u128::from(*cursor) + u128::from(n)) % u128::from(self.len)) as u64;
            }
            Next::Draw(generator) => {
                for _ in 0..n {
                    generator.draw();
                }
            }
        }
    }

    /// Where it stands: the cursor of a sequential one.
    pub fn cursor(&self) -> u64 {
        match self.next {
            Next::Cursor(cursor) => cursor,
            Next::Draw(_) => 0,
        }
    }

    /// Where it stands: the generator's state of a random one, else zeros.
    pub fn words(&self) -> [u64; 4] {
        match self.next {
            Next::Cursor(_) => [0; 4],
            Next::Draw(generator) => generator.words(),
        }
    }

    /// Goes on from a cursor or a generator's state, whichever it has.
    pub fn restore(&mut self, cursor: u64, words: [u64; 4]) {
        match &mut self.next {
            Next::Cursor(own) => *own = cursor % self.len,
            Next::Draw(own) => *own = Sfc64::from_words(words),
        }
    }
}
