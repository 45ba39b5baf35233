//! What a stream is made of before it is coded: literals and copies, their symbols, and how often those occur.

/// Symbols of literals, the end, and lengths.
pub(super) const LITLENS: usize = 286;
/// Symbols of distances.
pub(super) const DISTANCES: usize = 30;
/// The symbol that ends a block.
pub(super) const END: usize = 256;
/// Shortest and longest copy.
pub(super) const SHORTEST: usize = 3;
pub(super) const FARTHEST: usize = 32_768;
pub(super) const LONGEST: usize = 258;

/// Literals, and the copy behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) literals: u32,
    /// 0 where no copy follows.
    pub(super) length: u16,
    /// Less one.
    pub(super) distance: u16,
}

/// Of each length less 3: its symbol, in 9 bits, and above them how many extra bits it has and which.
static LENGTHS: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = if i == 255 {
            285
        } else if i < 8 {
            257 + i as u32
        } else {
            let extra = i.ilog2() - 2;
            let symbol = 257 + 4 * (extra + 1) + (i as u32 >> extra & 3);
            symbol | extra << 9 | (i as u32 & ((1 << extra) - 1)) << 16
        };
        i += 1;
    }
    table
};

/// The symbol of a length, how many extra bits follow, and which.
#[inline(always)]
pub(super) fn length_symbol(length: u16) -> (usize, u32, u32) {
    let entry = LENGTHS[usize::from(length.wrapping_sub(SHORTEST as u16)) & 255];
    ((entry & 511) as usize, entry >> 9 & 127, entry >> 16)
}

/// The symbol of a distance less one, how many extra bits follow, and which.
#[inline(always)]
pub(super) fn distance_symbol(distance: u16) -> (usize, u32, u32) {
    let distance = u32::from(distance);
    if distance < 4 {
        return (distance as usize, 0, 0);
    }
    let extra = distance.ilog2() - 1;
    ((2 * extra + (distance >> extra)) as usize, extra, distance & ((1 << extra) - 1))
}

/// How often each symbol occurs.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    pub(super) litlens: [u32; LITLENS + 2],
    pub(super) distances: [u32; DISTANCES + 2],
    /// Extra bits of all lengths and distances.
    pub(super) extra: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { litlens: [0; LITLENS + 2], distances: [0; DISTANCES + 2], extra: 0 }
    }
}

/// Runs of literals that are counted at once in four tables, so that equal bytes do not wait for each other.
const MANY: usize = 64;

impl Histogram {
    /// Counts what some tokens hold, whose literals and copies begin at `at`.
    #[inline(always)]
    pub(super) fn count(&mut self, tokens: &[Token], src: &[u8], mut at: usize) {
        let mut four = [[0_u32; 256]; 4];
        let mut used = false;
        for token in tokens {
            let end = at + token.literals as usize;
            let literals = src.get(at..end).unwrap_or_default();
            if literals.len() < MANY {
                for byte in literals {
                    self.litlens[usize::from(*byte)] += 1;
                }
            } else {
                used = true;
                let (eights, rest) = literals.as_chunks::<8>();
                for eight in eights {
                    for (i, byte) in eight.iter().enumerate() {
                        four[i % 4][usize::from(*byte)] += 1;
                    }
                }
                for byte in rest {
                    four[0][usize::from(*byte)] += 1;
                }
            }
            at = end + usize::from(token.length);
            if token.length > 0 {
                let (symbol, bits, _) = length_symbol(token.length);
                self.litlens[symbol] += 1;
                let (symbol, more, _) = distance_symbol(token.distance);
                self.distances[symbol & 31] += 1;
                self.extra += u64::from(bits + more);
            }
        }
        if used {
            for table in &four {
                for (count, more) in self.litlens.iter_mut().zip(table) {
                    *count += more;
                }
            }
        }
    }

    /// Adds what another one counted.
    #[inline(always)]
    pub(super) fn add(&mut self, other: &Self) {
        for (a, b) in self.litlens.iter_mut().zip(&other.litlens) {
            *a += b;
        }
        for (a, b) in self.distances.iter_mut().zip(&other.distances) {
            *a += b;
        }
        self.extra += other.extra;
    }

    /// Bits that the symbols take at least, about: those of literals and lengths, and those of distances.
    #[inline(always)]
    pub(super) fn entropies(&self) -> [f32; 2] {
        [entropy(&self.litlens), entropy(&self.distances)]
    }

    /// The same of the symbols of both.
    #[inline(always)]
    pub(super) fn entropies_with(&self, other: &Self) -> [f32; 2] {
        [entropy(&sum(&self.litlens, &other.litlens)), entropy(&sum(&self.distances, &other.distances))]
    }

    /// Bits that all symbols take at least, about, and their extra bits.
    #[inline(always)]
    pub(super) fn bits(&self) -> f32 {
        entropy(&self.litlens) + entropy(&self.distances) + self.extra as f32
    }

    /// About how many bits a literal takes.
    #[inline(always)]
    pub(super) fn literal_bits(&self) -> f32 {
        let literals: u32 = self.litlens[..256].iter().sum();
        let all: u32 = self.litlens.iter().sum();
        if literals == 0 {
            return 8.0;
        }
        let (literals, all) = (literals as f32, all as f32);
        let bits: [u32; 256] = self.litlens[..256].try_into().unwrap_or([0; 256]);
        all.log2() - plogp(&bits) / literals
    }

    /// How many different literals, lengths and distances occur.
    #[inline(always)]
    pub(super) fn kinds(&self) -> usize {
        self.litlens.iter().chain(&self.distances).filter(|n| **n > 0).count()
    }
}

/// The sum of n log2 n.
#[inline(always)]
fn plogp<const N: usize>(counts: &[u32; N]) -> f32 {
    let mut sums = [0.0; 8];
    for eight in counts.as_chunks::<8>().0 {
        for (sum, n) in sums.iter_mut().zip(eight) {
            *sum += *n as f32 * log2(*n);
        }
    }
    sums.iter().sum()
}

/// The logarithm of a count, right to a thousandth; any number for 0.
#[inline(always)]
fn log2(n: u32) -> f32 {
    let bits = (n as i32 as f32).to_bits();
    let exponent = (bits >> 23) as i32 as f32 - 127.0;
    let m = f32::from_bits(bits & 0x7f_ffff | 0x3f80_0000);
    exponent + (((0.155_445_9 * m - 1.039_258_2) * m + 3.029_478_2) * m - 2.144_940_6)
}

/// Bits that symbols take, at least.
#[inline(always)]
fn entropy<const N: usize>(counts: &[u32; N]) -> f32 {
    let n: u32 = counts.iter().sum();
    n as f32 * (n.max(1) as f32).log2() - plogp(counts)
}

#[inline(always)]
fn sum<const N: usize>(a: &[u32; N], b: &[u32; N]) -> [u32; N] {
    let mut both = [0; N];
    for (sum, (x, y)) in both.iter_mut().zip(a.iter().zip(b)) {
        *sum = x + y;
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1951, section 3.2.5.
    const LENGTH_BASES: [u16; 29] = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163,
        195, 227, 258,
    ];
    const DISTANCE_BASES: [u16; 30] = [
        1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049,
        3073, 4097, 6145, 8193, 12289, 16385, 24577,
    ];

    #[test]
    fn lengths_and_distances_have_the_symbols_of_the_specification() {
        for length in 3..=258_u16 {
            let (symbol, bits, extra) = length_symbol(length);
            assert!(u32::from(LENGTH_BASES[symbol - 257]) + extra == length.into() && extra < 1 << bits);
        }
        for distance in 1..=32_768_u32 {
            let (symbol, bits, extra) = distance_symbol((distance - 1) as u16);
            assert!(u32::from(DISTANCE_BASES[symbol]) + extra == distance && extra < 1 << bits);
        }
    }

    #[test]
    fn logarithms_are_right_to_a_thousandth() {
        for n in (1..70_000).chain([1 << 23, (1 << 23) - 1]) {
            assert!((log2(n) - (n as f32).log2()).abs() < 1e-3, "{n}");
        }
    }
}
