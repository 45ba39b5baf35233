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
    ///
    /// The next output is summed up before the draw that yields it: from one draw to the next only a rotation and an
    /// addition wait for each other.
    pub(crate) fn append_below(&mut self, n: u64, count: usize, ids: &mut Vec<u64>) {
        let Self { a, mut b, mut c, mut counter } = *self;
        let mut out = a.wrapping_add(b).wrapping_add(counter);
        ids.extend((0..count).map(|_| {
            let id = ((u128::from(out) * u128::from(n)) >> 64) as u64;
            counter = counter.wrapping_add(1);
            let a = b ^ (b >> 11);
            b = c.wrapping_add(c << 3);
            c = c.rotate_left(24).wrapping_add(out);
            out = a.wrapping_add(counter).wrapping_add(b);
            id
        }));
        *self = Self { a: out.wrapping_sub(b).wrapping_sub(counter), b, c, counter };
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
