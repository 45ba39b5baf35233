//! Decoding tables for deflate's Huffman codes.
//!
//! A table is looked up with the next bits of the stream. An entry says how many bits to take, and what they
//! mean; codes longer than the table's index go through a subtable behind it.
//!
//! | bits of an entry | meaning |
//! |---|---|
//! | 0..8 | bits to take: of the code, and extra bits behind it |
//! | 8..13 | bits of the code; in a link, bits of the subtable's index |
//! | 13 | end of block |
//! | 14 | link to a subtable |
//! | 15 | something other than a literal, length or distance: one of the two above, or no code at all |
//! | 16..31 | literal, base of a length or distance, or where the subtable starts |
//! | 31 | literal |

use std::sync::LazyLock;
use tensilo_core::{Error, Result};

pub(super) const LITERAL: u32 = 1 << 31;
pub(super) const EXCEPTION: u32 = 1 << 15;
pub(super) const LINK: u32 = 1 << 14;
pub(super) const END: u32 = 1 << 13;

/// Most index bits of the three tables; the first two have no more than their longest code needs, which short streams
/// are thankful for.
pub(super) const SYMBOL_BITS: u32 = 11;
pub(super) const DISTANCE_BITS: u32 = 8;
pub(super) const LENGTHS_BITS: u32 = 7;
/// Longest code.
const MOST_BITS: usize = 15;

/// Most of 32,768 symbols that are no literals where literals stand in long rows.
const FEW: u32 = (1 << MOST_BITS) / 8;

/// All tables of a block, and room to build them. The sizes are the known maxima of entries for these index bits,
/// rounded up to powers of two.
pub(super) struct Tables {
    pub(super) symbols: [u32; 4096],
    pub(super) distances: [u32; 512],
    lengths: [u32; 128],
    /// Index bits of the symbols and of the distances.
    pub(super) symbol_bits: u32,
    pub(super) distance_bits: u32,
    /// Whether the fixed codes are meant.
    fixed: bool,
    /// How often a symbol is a length or the end of the block, of 32,768 times, if the codes fit their block.
    others: u32,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            symbols: [0; 4096],
            distances: [0; 512],
            lengths: [0; 128],
            symbol_bits: SYMBOL_BITS,
            distance_bits: DISTANCE_BITS,
            fixed: false,
            others: 0,
        }
    }
}

const LENGTH_BASE: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
const LENGTH_EXTRA: [u8; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// The entry of a literal, length or end, without its code's bits.
fn symbol_entry(symbol: usize) -> u32 {
    match symbol {
        0..256 => LITERAL | (symbol as u32) << 16,
        256 => EXCEPTION | END,
        257..286 => u32::from(LENGTH_BASE[symbol - 257]) << 16 | u32::from(LENGTH_EXTRA[symbol - 257]),
        _ => EXCEPTION,
    }
}

/// The entry of a distance, without its code's bits.
fn distance_entry(symbol: usize) -> u32 {
    match symbol {
        0..4 => (symbol as u32 + 1) << 16,
        4..30 => {
            let extra = symbol as u32 / 2 - 1;
            ((2 + (symbol as u32 & 1)) << extra).wrapping_add(1) << 16 | extra
        }
        _ => EXCEPTION,
    }
}

/// The entry of a code length, without its code's bits.
fn length_entry(symbol: usize) -> u32 {
    (symbol as u32) << 16
}

#[cold]
fn damaged(what: &str) -> Error {
    Error::corrupt(format!("damaged deflate stream: {what}"))
}

impl Tables {
    /// From now on the fixed codes are meant.
    pub(super) fn set_fixed(&mut self) {
        self.fixed = true;
    }

    /// The tables that a block's codes are looked up in: these, or those of the fixed codes.
    #[inline(always)]
    pub(super) fn meant(&self) -> &Self {
        static FIXED: LazyLock<Box<Tables>> = LazyLock::new(|| {
            let mut tables = Box::<Tables>::default();
            let mut lengths = [8; 288];
            lengths[144..256].fill(9);
            lengths[256..280].fill(7);
            let built = build(&mut tables.symbols, SYMBOL_BITS, &lengths, false, symbol_entry)
                .and_then(|symbol_bits| {
                    tables.symbol_bits = symbol_bits;
                    build(&mut tables.distances, DISTANCE_BITS, &[5; 32], false, distance_entry)
                })
                .map(|distance_bits| tables.distance_bits = distance_bits);
            debug_assert!(built.is_ok(), "the fixed codes are complete");
            tables
        });
        if self.fixed { &FIXED } else { self }
    }

    /// Whether literals stand in long rows, as far as the codes tell.
    pub(super) fn mostly_literals(&self) -> bool {
        !self.fixed && self.others < FEW
    }

    /// Reads the codes that a block states.
    #[inline(always)]
    pub(super) fn read(&mut self, bits: &mut impl Stated) -> Result<()> {
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let counts = bits.take(14)?;
        let symbols = 257 + (counts & 31) as usize;
        let distances = 1 + (counts >> 5 & 31) as usize;
        if symbols > 286 || distances > 30 {
            return Err(damaged("more codes than there are symbols"));
        }
        let mut lengths = [0_u8; 19];
        for place in &ORDER[..4 + (counts >> 10) as usize] {
            lengths[*place] = bits.take(3)? as u8;
        }
        self.fixed = false;
        let index_bits = build(&mut self.lengths, LENGTHS_BITS, &lengths, true, length_entry)?;
        let mut codes = [0_u8; 286 + 30 + 138];
        let total = symbols + distances;
        let mut at = 0;
        while at < total {
            let entry = self.lengths[bits.peek() & ((1 << index_bits) - 1)];
            if entry & EXCEPTION != 0 {
                return Err(damaged("a code length that has no code"));
            }
            bits.take(entry & 0xff)?;
            let (value, count) = match entry >> 16 {
                16 if at == 0 => return Err(damaged("a code length repeats nothing")),
                16 => (codes[at - 1], 3 + bits.take(2)?),
                17 => (0, 3 + bits.take(3)?),
                18 => (0, 11 + bits.take(7)?),
                value => {
                    codes[at] = value as u8;
                    at += 1;
                    continue;
                }
            };
            codes[at..at + count as usize].fill(value);
            at += count as usize;
        }
        if at != total {
            return Err(damaged("code lengths run past their end"));
        }
        if codes[256] == 0 {
            return Err(damaged("no code ends the block"));
        }
        self.others =
            codes[256..symbols].iter().map(|l| (1 << MOST_BITS >> l) & ((1 << MOST_BITS) - 1)).sum();
        self.symbol_bits = build(&mut self.symbols, SYMBOL_BITS, &codes[..symbols], false, symbol_entry)?;
        self.distance_bits =
            build(&mut self.distances, DISTANCE_BITS, &codes[symbols..total], false, distance_entry)?;
        Ok(())
    }
}

/// The bits in which a block states its codes.
pub(super) trait Stated {
    /// Takes some bits, at most 14.
    fn take(&mut self, n: u32) -> Result<u32>;

    /// The next bits, of which at least 14 are right where the stream has so many.
    fn peek(&mut self) -> usize;
}

/// Goes through the symbols that have a code; most of an alphabet's may have none.
#[inline(always)]
fn each_used(lengths: &[u8], mut f: impl FnMut(usize, usize)) {
    for (i, eight) in lengths.chunks(8).enumerate() {
        if eight == [0; 8] {
            continue;
        }
        for (j, length) in eight.iter().enumerate().filter(|(_, l)| **l > 0) {
            f(8 * i + j, usize::from(*length & 15));
        }
    }
}

/// Builds a table from the lengths of a canonical code, as strictly as zlib: a code must be complete, except that a
/// lone code of one bit is allowed where `strict` is not set. The table is indexed by as many bits as the longest code
/// has, but no more than `most_bits`; that number is returned.
fn build(
    table: &mut [u32],
    most_bits: u32,
    lengths: &[u8],
    strict: bool,
    entry: impl Fn(usize) -> u32,
) -> Result<u32> {
    let mut counts = [0_u16; MOST_BITS + 1];
    each_used(lengths, |_, length| counts[length] += 1);
    let longest = counts.iter().rposition(|n| *n > 0).unwrap_or(0);
    let mut left = 1_i32;
    for n in &counts[1..] {
        left = 2 * left - i32::from(*n);
        if left < 0 {
            return Err(damaged("more codes than their lengths allow"));
        }
    }
    let index_bits = (longest as u32).clamp(1, most_bits);
    let index = 1_usize << index_bits;
    if left > 0 {
        if strict || longest > 1 {
            return Err(damaged("fewer codes than their lengths need"));
        }
        table[..index].fill(EXCEPTION);
    }
    // Symbols in the order of their codes.
    let mut starts = [0_u16; MOST_BITS + 2];
    for length in 1..=MOST_BITS {
        starts[length + 1] = starts[length] + counts[length];
    }
    let mut sorted = [0_u16; 288];
    each_used(lengths, |symbol, length| {
        let at = &mut starts[length];
        sorted[usize::from(*at)] = symbol as u16;
        *at += 1;
    });
    fill(table, index_bits, &mut counts, &sorted, entry);
    Ok(index_bits)
}

/// Writes the entries of all codes; codes are counted up with their bits reversed, as the stream has them. The table
/// doubles with each bit that codes become longer.
fn fill(
    table: &mut [u32],
    index_bits: u32,
    counts: &mut [u16; MOST_BITS + 1],
    sorted: &[u16],
    entry: impl Fn(usize) -> u32,
) {
    let index = 1_usize << index_bits;
    let (mut code, mut next, mut free) = (0_usize, 0, index);
    let (mut prefix, mut start) = (usize::MAX, 0);
    for length in 1..=MOST_BITS as u32 {
        if next > 0 && length <= index_bits {
            let (written, twice) = table[..1 << length].split_at_mut(1 << (length - 1));
            twice.copy_from_slice(written);
        }
        while counts[length as usize] > 0 {
            let found = entry(usize::from(sorted[next]));
            next += 1;
            if length <= index_bits {
                table[code] = found + (length << 8) + length;
            } else {
                if code & (index - 1) != prefix {
                    prefix = code & (index - 1);
                    start = free;
                    // As many bits as the codes with this prefix need.
                    let mut sub_bits = length - index_bits;
                    let mut space = i32::from(counts[length as usize]);
                    while space < 1 << sub_bits && ((sub_bits + index_bits) as usize) < MOST_BITS {
                        sub_bits += 1;
                        space = 2 * space + i32::from(counts[(sub_bits + index_bits) as usize]);
                    }
                    free = start + (1 << sub_bits);
                    table[prefix] = (start as u32) << 16 | EXCEPTION | LINK | sub_bits << 8 | index_bits;
                }
                let rest = length - index_bits;
                let value = found + (rest << 8) + rest;
                let sub = &mut table[start..free];
                for slot in sub.iter_mut().skip(code >> index_bits).step_by(1 << rest) {
                    *slot = value;
                }
            }
            counts[length as usize] -= 1;
            // Add one to the code, its first bit being the highest.
            let mut bit = 1_usize << (length - 1);
            while code & bit != 0 {
                bit >>= 1;
            }
            code = if bit == 0 { 0 } else { code & (bit - 1) | bit };
        }
    }
}
