//! SFC64, the generator of the endless random order: 256 bits of state, one output per draw.

/// Outputs that are thrown away after seeding.
const WARM_UP: usize = 12;

/// Chris Doty-Humphrey's small fast counting generator, seeded with one number.
///
/// ```
/// use tensilo_loader::Sfc64;
/// let mut one = Sfc64::new(7);
/// let first = one.draw();
/// let mut other = Sfc64::from_words(one.words());
/// assert_eq!(one.draw(), other.draw());
/// assert_ne!(first, other.draw());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sfc64 {
    a: u64,
    b: u64,
    c: u64,
    counter: u64,
}

impl Sfc64 {
    /// Seeds the three words alike and discards twelve outputs.
    pub fn new(seed: u64) -> Self {
        let mut made = Self { a: seed, b: seed, c: seed, counter: 1 };
        for _ in 0..WARM_UP {
            made.draw();
        }
        made
    }

    /// The next 64 bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        let out = self.a.wrapping_add(self.b).wrapping_add(self.counter);
        self.counter = self.counter.wrapping_add(1);
        self.a = self.b ^ (self.b >> 11);
        self.b = self.c.wrapping_add(self.c << 3);
        self.c = self.c.rotate_left(24).wrapping_add(out);
        out
    }

    /// A number below `n` (0 for `n` = 0): the high half of a product, whose bias is below `n` / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(n)) >> 64) as u64
    }

    /// Appends numbers below `n`, each as [`below`](Self::below) gives it.
    pub(crate) fn append_below(&mut self, n: u64, count: usize, ids: &mut Vec<u64>) {
        let mut ahead = Ahead::of(self);
        let first = self.counter.wrapping_add(1);
        let behind = first.wrapping_add(count as u64);
        // Where the counter does not wrap around it also counts the draws.
        if behind >= first {
            ids.extend((first..behind).map(|next| ahead.below(n, next)));
        } else {
            ids.extend((0..count as u64).map(|i| ahead.below(n, first.wrapping_add(i))));
        }
        *self = ahead.back(behind.wrapping_sub(1));
    }

    /// Writes numbers below `n`, each as [`below`](Self::below) gives it.
    pub(crate) fn fill_below(&mut self, n: u64, ids: &mut [u64]) {
        let mut ahead = Ahead::of(self);
        let mut counter = self.counter;
        for id in ids {
            counter = counter.wrapping_add(1);
            *id = ahead.below(n, counter);
        }
        *self = ahead.back(counter);
    }

    /// The state, from which [`from_words`](Self::from_words) goes on.
    pub fn words(&self) -> [u64; 4] {
        [self.a, self.b, self.c, self.counter]
    }

    /// Goes on from a state.
    pub fn from_words([a, b, c, counter]: [u64; 4]) -> Self {
        Self { a, b, c, counter }
    }
}

/// The generator with its first word and its counter added up a draw ahead: from one draw to the next only a rotation
/// and an addition wait for each other.
struct Ahead {
    sum: u64,
    b: u64,
    c: u64,
}

impl Ahead {
    fn of(s: &Sfc64) -> Self {
        Self { sum: s.a.wrapping_add(s.counter), b: s.b, c: s.c }
    }

    /// The next number below `n`; the counter is the one of the draw behind it.
    #[inline(always)]
    fn below(&mut self, n: u64, next: u64) -> u64 {
        let out = self.sum.wrapping_add(self.b);
        self.sum = (self.b ^ (self.b >> 11)).wrapping_add(next);
        self.b = self.c.wrapping_add(self.c << 3);
        self.c = self.c.rotate_left(24).wrapping_add(out);
        ((u128::from(out) * u128::from(n)) >> 64) as u64
    }

    /// The generator whose next draw has this counter.
    fn back(self, counter: u64) -> Sfc64 {
        Sfc64 { a: self.sum.wrapping_sub(counter), b: self.b, c: self.c, counter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_draws_are_the_draws_one_by_one_and_leave_the_same_state() {
        for counter in [1, 77, u64::MAX - 3, u64::MAX, 0] {
            for n in [0, 1, 10, 1_000_000, u64::MAX] {
                for count in [0, 1, 2, 7, 100] {
                    let start = Sfc64 { counter, ..Sfc64::new(n ^ counter) };
                    let mut one = start;
                    let wanted: Vec<u64> = (0..count).map(|_| one.below(n)).collect();
                    let (mut appended, mut list) = (start, vec![5]);
                    appended.append_below(n, count, &mut list);
                    assert_eq!((&list[1..], appended), (&wanted[..], one), "{counter} {n} {count}");
                    let (mut filled, mut list) = (start, vec![0; count]);
                    filled.fill_below(n, &mut list);
                    assert_eq!((list, filled), (wanted, one), "{counter} {n} {count}");
                }
            }
        }
    }
}
