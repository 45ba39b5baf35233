//! Bits into bytes, lowest first.

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

    /// Makes room for so many bits more, and for the word that a flush writes.
    pub(super) fn reserve(&mut self, bits: u64) {
        self.dst.resize(self.at + (bits / 8) as usize + 16, 0);
    }

    /// Adds bits, of which fewer than 64 may be held at a time.
    #[inline(always)]
    pub(super) fn add(&mut self, bits: u64, n: u32) {
        debug_assert!(self.have + n < 64 && bits >> n == 0);
        self.held |= bits << (self.have & 63);
        self.have += n;
    }

    /// Writes whole bytes, after which 56 bits can be added.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        let Some(to) = self.dst.get_mut(self.at..).and_then(|d| d.first_chunk_mut::<8>()) else {
            return self.flush_slowly();
        };
        *to = self.held.to_le_bytes();
        self.at += (self.have >> 3) as usize;
        self.held >>= self.have & 56;
        self.have &= 7;
    }

    /// The same where no room was made.
    #[cold]
    fn flush_slowly(&mut self) {
        self.dst.resize(self.at + 64, 0);
        self.flush();
    }

    /// Adds a few bits, at most 32, where speed does not matter.
    pub(super) fn put(&mut self, bits: u32, n: u32) {
        self.add(u64::from(bits), n);
        self.flush();
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
        self.have = self.have.next_multiple_of(8);
        self.flush();
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
