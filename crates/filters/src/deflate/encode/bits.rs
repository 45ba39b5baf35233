//! Bits into bytes, lowest first.

/// Room for what is written at once: sixteen times 44 bits, the word behind them, and what was held before.
const WINDOW: usize = 128;

/// Appends bits to a vector; whole blocks are written into room that was made before.
pub(super) struct Bits<'a> {
    dst: &'a mut Vec<u8>,
    /// Bytes that are written; the vector may be longer meanwhile.
    at: usize,
    /// The lowest `have` bits, fewer than 8 after a flush, are still to be written; those above are zero.
    held: u64,
    have: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(dst: &'a mut Vec<u8>) -> Self {
        Self { at: dst.len(), dst, held: 0, have: 0 }
    }

    /// Makes room for so many bits more, and for what is written past them.
    pub(super) fn reserve(&mut self, bits: u64) {
        self.dst.resize(self.at + (bits / 8) as usize + 16 + WINDOW, 0);
    }

    /// Writes into the room that was made with [`reserve`](Self::reserve).
    pub(super) fn words(&mut self) -> Words<'_> {
        Words { at: self.at, held: self.held, have: self.have, room: self.dst }
    }

    /// Goes on behind what was written into the room.
    pub(super) fn go_on(&mut self, (at, held, have): (usize, u64, u32)) {
        (self.at, self.held, self.have) = (at, held, have);
    }

    /// Adds a few bits, at most 32, where speed does not matter.
    pub(super) fn put(&mut self, bits: u32, n: u32) {
        if self.dst.len() < self.at + 8 {
            self.dst.resize(self.at + 64, 0);
        }
        let mut words = self.words();
        words.add(u64::from(bits), n);
        words.flush();
        let end = words.end();
        self.go_on(end);
    }

    /// Adds bytes behind the current one.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.align();
        self.dst.truncate(self.at);
        self.dst.extend_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Fills the current byte with zero bits.
    fn align(&mut self) {
        self.put(0, self.have.next_multiple_of(8) - self.have);
    }

    /// Writes the last byte and drops what room is left.
    pub(super) fn finish(mut self) {
        self.align();
        self.dst.truncate(self.at);
    }

    /// Bits written and held.
    pub(super) fn total(&self) -> u64 {
        8 * self.at as u64 + u64::from(self.have)
    }
}

/// The same within room that was made before, for loops that hold all of it in registers.
pub(super) struct Words<'a> {
    room: &'a mut [u8],
    at: usize,
    held: u64,
    have: u32,
}

impl Words<'_> {
    /// Adds bits, of which fewer than 64 may be held at a time.
    #[inline(always)]
    pub(super) fn add(&mut self, bits: u64, n: u32) {
        debug_assert!(self.have + n < 64 && bits >> n == 0);
        self.held |= bits << (self.have & 63);
        self.have += n;
    }

    /// Writes whole bytes, after which 56 bits can be added. Nothing is written past the room.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        if let Some(to) = self.room.get_mut(self.at..).and_then(|d| d.first_chunk_mut::<8>()) {
            *to = self.held.to_le_bytes();
        }
        self.at += (self.have >> 3) as usize;
        self.held >>= self.have & 56;
        self.have &= 7;
    }

    /// Adds each of these words' lowest bits, at most 44, and writes whole bytes.
    #[inline(always)]
    pub(super) fn add_words(&mut self, words: &[u64; 16], lengths: &[u64; 16]) {
        let Some(window) = self.room.get_mut(self.at..).and_then(|d| d.first_chunk_mut::<WINDOW>()) else {
            return debug_assert!(false, "no room was made");
        };
        let mut at = 0;
        for (bits, n) in words.iter().zip(lengths) {
            self.held |= bits << (self.have & 63);
            self.have += *n as u32;
            if let Some(to) = window.get_mut(at..at + 8) {
                to.copy_from_slice(&self.held.to_le_bytes());
            }
            at += (self.have >> 3) as usize;
            self.held >>= self.have & 56;
            self.have &= 7;
        }
        self.at += at;
    }

    /// Where that ends: for [`Bits::go_on`].
    pub(super) fn end(self) -> (usize, u64, u32) {
        (self.at, self.held, self.have)
    }
}
