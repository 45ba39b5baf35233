//! An encoder of raw LZ4 blocks of up to 8 KiB, as bitshuffle makes them.
//!
//! The block lies in a window of fixed size, in which places are masked: so no access needs a check, and no code is
//! unsafe. The search steps on faster than usual where it finds nothing, and takes no copies of four bytes, which save one:
//! planes of bits are either noise or long runs.

/// Bytes of a window, a power of two.
pub(crate) const WINDOW: usize = 8 << 10;
/// Behind the window, so that a load that begins inside it ends inside the buffer.
const BEHIND: usize = 32;
/// A block that cannot be made shorter, and what copies of whole vectors write behind it.
const LONGEST: usize = WINDOW + WINDOW / 255 + 16 + BEHIND;
/// Places that are remembered, as a power of two.
const REMEMBERED: u32 = 12;
/// Bytes of a copy at the least.
const LEAST: u32 = 5;
/// After so many places without a copy, as a power of two, the search steps one byte further.
const PATIENCE: u32 = 4;
/// The format's rules: the last copy begins as far from the end at the least, and ends so far.
const LAST_BEGIN: usize = 12;
const LAST_END: usize = 5;
/// Shortest copy of the format.
const SHORTEST: usize = 4;
/// Lengths from here on take more bytes.
const LONG: usize = 15;

type Buffer = [u8; WINDOW + BEHIND];

/// The encoder and its window.
pub(crate) struct Encoder {
    window: Box<Buffer>,
    /// The last place of each hash; 0 is always in front, so it also stands for none.
    places: Box<[u16; 1 << REMEMBERED]>,
    out: Box<[u8; LONGEST]>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            window: Box::new([0; WINDOW + BEHIND]),
            places: Box::new([0; 1 << REMEMBERED]),
            out: Box::new([0; LONGEST]),
        }
    }
}

fn load(window: &Buffer, at: usize) -> u64 {
    let at = at & (WINDOW - 1);
    u64::from_le_bytes(window[at..at + 8].try_into().expect("eight bytes"))
}

/// The first [`LEAST`] bytes, moved up.
fn first(word: u64) -> u64 {
    word << (64 - 8 * LEAST)
}

fn hash(word: u64) -> usize {
    (first(word).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - REMEMBERED)) as usize
}

fn vector(window: &Buffer, at: usize) -> &[u8; BEHIND] {
    let at = at & (WINDOW - 1);
    window[at..at + BEHIND].try_into().expect("as many bytes as a vector")
}

/// How many bytes from `later` on, up to `end`, are those from `earlier` on.
fn common(window: &Buffer, earlier: usize, later: usize, end: usize) -> usize {
    let mut n = 0;
    while later + n + 8 <= end {
        let differ = load(window, earlier + n) ^ load(window, later + n);
        if differ != 0 {
            return n + (differ.trailing_zeros() / 8) as usize;
        }
        n += 8;
        // Runs of zeros are as long as planes.
        while n >= 32 && later + n + BEHIND <= end && vector(window, earlier + n) == vector(window, later + n)
        {
            n += BEHIND;
        }
    }
    while later + n < end && window[(earlier + n) & (WINDOW - 1)] == window[(later + n) & (WINDOW - 1)] {
        n += 1;
    }
    n
}

impl Encoder {
    /// Where a block of `len` bytes is put before it is encoded.
    pub(crate) fn window(&mut self, len: usize) -> &mut [u8] {
        &mut self.window[..len]
    }

    /// Appends the block made of the window's first `len` bytes, which are at most [`WINDOW`], and returns its length.
    pub(crate) fn encode(&mut self, len: usize, dst: &mut Vec<u8>) -> usize {
        let n = self.encode_here(len);
        dst.extend_from_slice(&self.out[..n]);
        n
    }

    fn encode_here(&mut self, len: usize) -> usize {
        assert!(len <= WINDOW, "a block fits in the window");
        let Self { window, places, out } = self;
        let mut out = Out { bytes: out, len: 0 };
        let mut literals = 0;
        if len > LAST_BEGIN {
            places.fill(0);
            let (last, end) = (len - LAST_BEGIN, len - LAST_END);
            let mut at = 1;
            while let Some((mut earlier, mut here)) = search(window, places, at, last) {
                while here > literals && earlier > 0 && window[here - 1] == window[earlier - 1] {
                    (here, earlier) = (here - 1, earlier - 1);
                }
                let n = SHORTEST + common(window, earlier + SHORTEST, here + SHORTEST, end);
                out.sequence(window, literals..here, here - earlier, n);
                at = here + n;
                literals = at;
                if at <= last {
                    places[hash(load(window, at - 2))] = (at - 2) as u16;
                }
            }
        }
        out.last(&window[literals..len]);
        out.len
    }
}

/// The next place from `at` to `last` whose bytes stood earlier, and that earlier place in front.
fn search(
    window: &Buffer,
    places: &mut [u16; 1 << REMEMBERED],
    mut at: usize,
    last: usize,
) -> Option<(usize, usize)> {
    let mut tried = 1 << PATIENCE;
    while at <= last {
        let word = load(window, at);
        let place = &mut places[hash(word)];
        let earlier = usize::from(*place);
        *place = at as u16;
        if first(load(window, earlier) ^ word) == 0 {
            return Some((earlier, at));
        }
        at += tried >> PATIENCE;
        tried += 1;
    }
    None
}

/// The encoded block.
struct Out<'a> {
    bytes: &'a mut [u8; LONGEST],
    len: usize,
}

impl Out<'_> {
    fn put(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// What of a length does not fit in its half of a token.
    fn more(&mut self, length: usize) {
        if let Some(mut rest) = length.checked_sub(LONG) {
            while rest >= 255 {
                self.put(255);
                rest -= 255;
            }
            self.put(rest as u8);
        }
    }

    fn sequence(&mut self, window: &Buffer, literals: std::ops::Range<usize>, distance: usize, copy: usize) {
        let (count, copy) = (literals.len(), copy - SHORTEST);
        self.put((count.min(LONG) << 4 | copy.min(LONG)) as u8);
        self.more(count);
        if count <= BEHIND {
            // A whole vector is faster than so many bytes; what is too much is overwritten.
            self.bytes[self.len..self.len + BEHIND].copy_from_slice(vector(window, literals.start));
        } else {
            self.bytes[self.len..self.len + count].copy_from_slice(&window[literals]);
        }
        self.len += count;
        self.bytes[self.len..self.len + 2].copy_from_slice(&(distance as u16).to_le_bytes());
        self.len += 2;
        self.more(copy);
    }

    fn last(&mut self, literals: &[u8]) {
        self.put((literals.len().min(LONG) << 4) as u8);
        self.more(literals.len());
        self.bytes[self.len..self.len + literals.len()].copy_from_slice(literals);
        self.len += literals.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % n as u64) as usize
        }
    }

    fn check(encoder: &mut Encoder, src: &[u8], what: &str) -> usize {
        encoder.window(src.len()).copy_from_slice(src);
        let mut block = vec![9];
        let n = encoder.encode(src.len(), &mut block);
        assert_eq!(n + 1, block.len(), "{what}");
        // lz4_flex is the oracle; it refuses what breaks the format's rules.
        let read = lz4_flex::block::decompress(&block[1..], src.len());
        assert!(read.is_ok_and(|r| r == src), "{what}: {} bytes", src.len());
        n
    }

    #[test]
    fn blocks_of_every_family_and_length_come_back() {
        let (mut encoder, mut random) = (Encoder::default(), Random(5));
        for round in 0..3000 {
            let len = match round % 3 {
                0 => random.below(40),
                1 => random.below(WINDOW + 1),
                _ => WINDOW,
            };
            let values = [1, 2, 4, 30, 256][random.below(5)];
            let longest = [1, 3, 20, 600, 9000][random.below(5)];
            let mut src: Vec<u8> = Vec::with_capacity(len + longest);
            while src.len() < len {
                let run = 1 + random.below(longest);
                match random.below(3) {
                    0 => src.extend((0..run).map(|_| random.below(values) as u8)),
                    1 => src.resize(src.len() + run, random.below(values) as u8),
                    _ => {
                        let from = random.below(src.len().max(1));
                        let again: Vec<u8> = src[from..].iter().copied().cycle().take(run).collect();
                        src.extend(again);
                    }
                }
            }
            check(&mut encoder, &src[..len], &format!("round {round}"));
        }
    }

    #[test]
    fn noise_takes_a_hundredth_more_and_a_run_next_to_nothing() {
        let (mut encoder, mut random) = (Encoder::default(), Random(6));
        let noise: Vec<u8> = (0..WINDOW).map(|_| random.below(256) as u8).collect();
        assert!(check(&mut encoder, &noise, "noise") <= WINDOW + WINDOW / 255 + 16);
        assert!(check(&mut encoder, &[0; WINDOW], "zeros") < 60);
        assert!(
            check(&mut encoder, &[noise.as_slice(), &noise].concat()[WINDOW / 2..][..WINDOW], "again") > 0
        );
    }

    #[test]
    fn what_was_encoded_before_changes_nothing() {
        let (mut used, mut random) = (Encoder::default(), Random(7));
        for _ in 0..200 {
            let len = random.below(WINDOW + 1);
            let src: Vec<u8> = (0..len).map(|_| (random.below(4) * random.below(2)) as u8).collect();
            let (mut one, mut other) = (Vec::new(), Vec::new());
            used.window(len).copy_from_slice(&src);
            used.encode(len, &mut one);
            let mut fresh = Encoder::default();
            fresh.window(len).copy_from_slice(&src);
            fresh.encode(len, &mut other);
            assert!(one == other, "{len} bytes");
        }
    }
}
