//! One block: what each of its three kinds would cost, and the cheapest written.

use super::bits::Bits;
use super::codes::{Code, codes, lengths};
use super::symbols::{DISTANCES, END, Histogram, LITLENS, Token, distance_symbol, length_symbol};
use crate::simd::literals::{Join, Literals, MANY};
use std::sync::LazyLock;

/// Longest codes: as many bits as our inflater's tables have index bits, so that it needs no second look-up.
const LITLEN_BITS: usize = crate::simd::literals::LONGEST as usize;
const DISTANCE_BITS: usize = 8;
/// Blocks of at most so many symbols have still shorter codes.
const SMALL: u32 = 1024;
/// Longest code of a code length.
const STATED_BITS: usize = 7;
/// In which order the lengths of those codes are stated.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The codes of a block.
struct Codes {
    litlens: [Code; LITLENS + 2],
    distances: [Code; DISTANCES + 2],
}

/// How a block is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Stored,
    Fixed,
    Dynamic,
}

/// Code lengths, and how they are stated.
struct Stated {
    litlens: [u8; LITLENS + 2],
    distances: [u8; DISTANCES + 2],
    /// Symbols of code lengths, each with its extra bits above 8 bits.
    runs: [u16; LITLENS + DISTANCES],
    n_runs: usize,
    /// Codes of those symbols.
    codes: [Code; 19],
    n_litlens: usize,
    n_distances: usize,
    n_codes: usize,
    /// Bits that all of this takes.
    bits: u64,
}

/// Lengths of the fixed codes: RFC 1951, section 3.2.6.
const FIXED_LITLENS: [u8; LITLENS + 2] = {
    let mut lengths = [8; LITLENS + 2];
    let mut i = 144;
    while i < 280 {
        lengths[i] = if i < 256 { 9 } else { 7 };
        i += 1;
    }
    lengths
};
const FIXED_DISTANCES: [u8; DISTANCES + 2] = [5; DISTANCES + 2];

/// Bits of all symbols and their extra bits.
#[inline(always)]
fn body_bits(histogram: &Histogram, litlens: &[u8], distances: &[u8]) -> u64 {
    let sum = |counts: &[u32], lengths: &[u8]| -> u64 {
        counts.iter().zip(lengths).map(|(n, l)| u64::from(*n) * u64::from(*l)).sum()
    };
    sum(&histogram.litlens, litlens) + sum(&histogram.distances, distances) + histogram.extra
}

/// Room for plans.
#[derive(Default)]
pub(super) struct Plan {
    stated: Stated,
    /// Whether codes are the best ones.
    pub(super) best: bool,
}

impl Plan {
    /// Chooses how a block of `raw` bytes is written, whose histogram counts its end, and says how many bits it takes, its
    /// first three counted. What is not stored must save `least` bits, and stating codes `bias` bits besides: it takes
    /// time to read them.
    #[inline(always)]
    pub(super) fn choose(&mut self, histogram: &Histogram, raw: usize, least: i64, bias: u64) -> (Kind, u64) {
        let stored = (8 * raw as u64).saturating_add_signed(-least);
        let fixed = 3 + body_bits(histogram, &FIXED_LITLENS, &FIXED_DISTANCES);
        let cheaper = fixed.min(stored);
        let mut best = if fixed <= stored { (Kind::Fixed, fixed) } else { (Kind::Stored, 0) };
        // First the least that it can take, which is found faster than codes are.
        let stated = 60 + bias;
        if stated < cheaper && stated + 3 * histogram.kinds() as u64 + histogram.bits() as u64 <= cheaper {
            let stated = &mut self.stated;
            stated.set(histogram, self.best);
            let bits = 3 + stated.bits + body_bits(histogram, &stated.litlens, &stated.distances);
            if bits + bias < cheaper {
                best = (Kind::Dynamic, bits);
            }
        }
        best
    }
}

impl Default for Stated {
    fn default() -> Self {
        Self {
            litlens: [0; LITLENS + 2],
            distances: [0; DISTANCES + 2],
            runs: [0; LITLENS + DISTANCES],
            n_runs: 0,
            codes: [0; 19],
            n_litlens: 257,
            n_distances: 1,
            n_codes: 4,
            bits: 0,
        }
    }
}

impl Stated {
    fn set(&mut self, histogram: &Histogram, best: bool) {
        let s = self;
        s.n_runs = 0;
        // A small table is built faster.
        let total: u32 = histogram.litlens.iter().sum();
        let most = match histogram.litlens.iter().filter(|n| **n > 0).count() {
            _ if total > SMALL => LITLEN_BITS,
            ..129 => 9,
            _ => 10,
        };
        lengths(&histogram.litlens[..LITLENS], most, best, &mut s.litlens[..LITLENS]);
        lengths(&histogram.distances[..DISTANCES], DISTANCE_BITS, best, &mut s.distances[..DISTANCES]);
        let used = |all: &[u8]| all.iter().rposition(|l| *l > 0).map_or(0, |last| last + 1);
        s.n_litlens = used(&s.litlens).max(257);
        s.n_distances = used(&s.distances).max(1);
        let mut all = [0_u8; LITLENS + DISTANCES];
        let total = s.n_litlens + s.n_distances;
        all[..s.n_litlens].copy_from_slice(&s.litlens[..s.n_litlens]);
        all[s.n_litlens..total].copy_from_slice(&s.distances[..s.n_distances]);
        s.find_runs(&all[..total]);
        let mut counts = [0_u32; 19];
        for run in &s.runs[..s.n_runs] {
            counts[usize::from(run & 31)] += 1;
        }
        let mut stated = [0; 19];
        lengths(&counts, STATED_BITS, true, &mut stated);
        codes(&stated, &mut s.codes);
        s.n_codes = ORDER.iter().rposition(|symbol| stated[*symbol] > 0).map_or(4, |last| last + 1).max(4);
        s.bits = 14 + 3 * s.n_codes as u64;
        for (symbol, (n, length)) in counts.iter().zip(stated).enumerate() {
            s.bits += u64::from(*n) * u64::from(u32::from(length) + extra_bits(symbol));
        }
    }

    /// Puts code lengths as symbols: 16 repeats the one before 3 to 6 times, 17 and 18 are 3 to 10 and 11 to 138 zeros.
    fn find_runs(&mut self, all: &[u8]) {
        let mut rest = all;
        while let [value, ..] = *rest {
            let mut run = rest.iter().take_while(|l| **l == value).count();
            rest = &rest[run..];
            if value > 0 {
                self.run(value.into(), 0);
                run -= 1;
            }
            while run > 0 {
                let (symbol, least, most) = match (value, run) {
                    (0, 11..) => (18, 11, 138),
                    (0, 3..) => (17, 3, 10),
                    (1.., 3..) => (16, 3, 6),
                    _ => (u16::from(value), 1, 1),
                };
                let n = run.min(most);
                self.run(symbol, n - least);
                run -= n;
            }
        }
    }

    fn run(&mut self, symbol: u16, extra: usize) {
        if let Some(run) = self.runs.get_mut(self.n_runs) {
            *run = symbol | (extra as u16) << 8;
            self.n_runs += 1;
        }
    }

    fn write(&self, out: &mut Bits) {
        out.put(self.n_litlens as u32 - 257, 5);
        out.put(self.n_distances as u32 - 1, 5);
        out.put(self.n_codes as u32 - 4, 4);
        for symbol in &ORDER[..self.n_codes] {
            out.put(self.codes[*symbol] & 0xff, 3);
        }
        for run in &self.runs[..self.n_runs] {
            let symbol = usize::from(run & 31);
            let code = self.codes[symbol];
            out.put(code >> 8, code & 0xff);
            out.put(u32::from(run >> 8), extra_bits(symbol));
        }
    }
}

fn extra_bits(symbol: usize) -> u32 {
    match symbol {
        16 => 2,
        17 => 3,
        18 => 7,
        _ => 0,
    }
}

impl Plan {
    /// Writes a block of tokens that stand for `src` from its start, in the way that was chosen.
    #[inline(always)]
    pub(super) fn write(
        &self,
        (kind, bits): (Kind, u64),
        last: bool,
        tokens: &[Token],
        src: &[u8],
        (join, out): (&impl Join, &mut Bits),
    ) {
        out.reserve(bits);
        let before = out.total();
        if kind == Kind::Fixed {
            static FIXED: LazyLock<Codes> = LazyLock::new(|| Codes::new(&FIXED_LITLENS, &FIXED_DISTANCES));
            out.put(u32::from(last) | 1 << 1, 3);
            FIXED.write(tokens, src, (join, out));
        } else {
            out.put(u32::from(last) | 2 << 1, 3);
            self.stated.write(out);
            Codes::new(&self.stated.litlens, &self.stated.distances).write(tokens, src, (join, out));
        }
        debug_assert_eq!(out.total() - before, bits);
    }
}

#[inline(always)]
fn bits_of(code: Code) -> u64 {
    u64::from(code >> 8)
}

impl Codes {
    fn new(litlens: &[u8; LITLENS + 2], distances: &[u8; DISTANCES + 2]) -> Self {
        let (mut of_litlens, mut of_distances) = ([0; LITLENS + 2], [0; DISTANCES + 2]);
        codes(litlens, &mut of_litlens);
        codes(distances, &mut of_distances);
        Self { litlens: of_litlens, distances: of_distances }
    }

    /// Those of literals, to be joined.
    #[cold]
    fn literals(&self) -> Literals {
        Literals::new(|literal| (self.litlens[literal] >> 8, self.litlens[literal] & 0xff))
    }

    /// Writes all tokens and the end. Codes of literals have at most 11 bits, so that five go between flushes.
    #[inline(always)]
    fn write(&self, tokens: &[Token], src: &[u8], (join, bits): (&impl Join, &mut Bits)) {
        let mut out = bits.words();
        let mut of_literals = None;
        let mut rest = src;
        for token in tokens {
            let (literals, behind) = rest.split_at_checked(token.literals as usize).unwrap_or((rest, &[]));
            let (many, literals) = literals.as_chunks::<MANY>();
            for many in many {
                let (words, lengths) = join.join(many, of_literals.get_or_insert_with(|| self.literals()));
                out.add_words(&words, &lengths);
            }
            let (fives, few) = literals.as_chunks::<5>();
            for five in fives {
                let [a, b, c, d, e] = five.map(|byte| self.litlens[usize::from(byte)]);
                // The lowest byte of a sum of codes is the sum of their lengths, which is less than 64.
                let (ab, cd) = (bits_of(a) | bits_of(b) << (a & 63), bits_of(c) | bits_of(d) << (c & 63));
                let cde = cd | bits_of(e) << (c.wrapping_add(d) & 63);
                let n = a.wrapping_add(b);
                let all = n.wrapping_add(c).wrapping_add(d).wrapping_add(e);
                out.add(ab | cde << (n & 63), all & 63);
                out.flush();
            }
            for byte in few {
                let code = self.litlens[usize::from(*byte)];
                out.add(bits_of(code), code & 63);
            }
            out.flush();
            if token.length > 0 {
                let (symbol, extra_bits, extra) = length_symbol(token.length);
                let code = self.litlens[symbol];
                let mut bits = bits_of(code) | u64::from(extra) << (code & 63);
                let mut n = (code & 0xff) + extra_bits;
                let (symbol, extra_bits, extra) = distance_symbol(token.distance);
                let code = self.distances[symbol & 31];
                bits |= bits_of(code) << (n & 63);
                n += code & 0xff;
                bits |= u64::from(extra) << (n & 63);
                out.add(bits, n + extra_bits);
                out.flush();
            }
            rest = behind.get(usize::from(token.length)..).unwrap_or_default();
        }
        let end = self.litlens[END];
        out.add(bits_of(end), end & 63);
        out.flush();
        let end = out.end();
        bits.go_on(end);
    }
}

/// Writes bytes as they are, in as many blocks as they need.
pub(super) fn store(src: &[u8], last: bool, out: &mut Bits) {
    let mut rest = src;
    loop {
        let (now, then) = rest.split_at(rest.len().min(0xffff));
        rest = then;
        out.put(u32::from(last && rest.is_empty()), 3);
        let length = now.len() as u16;
        out.bytes(&length.to_le_bytes());
        out.bytes(&(!length).to_le_bytes());
        out.bytes(now);
        if rest.is_empty() {
            return;
        }
    }
}
