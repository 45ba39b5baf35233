//! Finds copies: cuts the source into literals and copies from earlier in it.

use super::symbols::{FARTHEST, LONGEST, SHORTEST, Token};
use crate::lz77::in_common;
use crate::simd::hashes::{Hashing, Lookup, Places, SEVERAL};

/// How hard a level tries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Bytes of a hash, 4 to 8; more are hashed where shorter copies do not pay.
    pub(super) hashed: u32,
    /// Earlier places that are compared; 1 for the most recent one alone.
    pub(super) depth: u32,
    /// A copy so long is taken without looking for a better one.
    pub(super) enough: usize,
    /// A copy shorter than this is given up for a longer one that begins a byte later; 0 for never.
    pub(super) lazy: usize,
    /// The larger, the later steps grow where nothing is found.
    pub(super) patience: u32,
    /// Longest step.
    pub(super) stride: usize,
    /// Bits by which a copy must be shorter than the literals it stands for: what decoding it costs.
    pub(super) margin: f32,
    /// Bits that a block with codes of its own must save, for the time that reading those takes.
    pub(super) bias: u64,
}

/// What is searched for.
struct Search {
    /// The most recent place with the same hash.
    first: u32,
    /// Only longer copies are better.
    length: usize,
    depth: u32,
    enough: usize,
}

/// What is remembered of a source that is searched from front to back.
///
/// Places are counted on from source to source, so that those of earlier ones are too far away to be found: what is
/// found does not depend on what was searched before, and nothing needs to be cleared.
pub(super) struct Finder {
    /// The most recent place of each hash.
    heads: Box<[u32; HASHES]>,
    /// For each place, by its last bits, the one before with the same hash.
    before: Box<[u32; FARTHEST]>,
    hashing: Hashing,
    /// What places of this source are counted from.
    base: u32,
    /// Where the last source ends.
    pub(super) end: u32,
    /// Places without a copy since the last one.
    misses: usize,
    /// Shortest copy that pays, for each number of binary digits of its distance.
    least: [u8; 17],
}

impl Default for Finder {
    fn default() -> Self {
        Self {
            heads: zeros(),
            before: zeros(),
            hashing: Hashing::default(),
            base: 0,
            end: 0,
            misses: 0,
            least: [0; 17],
        }
    }
}

/// Zeros that never were on a stack, and cost no memory before they are used.
fn zeros<const N: usize>() -> Box<[u32; N]> {
    vec![0; N].into_boxed_slice().try_into().expect("a vector of that length was made")
}

/// Bits of a hash, for large sources.
const HASH_BITS: u32 = 15;
const HASHES: usize = 1 << HASH_BITS;
/// Places at the end of a long copy from near by that are remembered.
const FEW: usize = 32;
/// Copies are followed so far past the bytes that were asked for.
const MOST_AHEAD: usize = 1 << 16;

#[inline(always)]
fn word(src: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*src.get(at..)?.first_chunk()?))
}

#[inline(always)]
fn four(src: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*src.get(at..)?.first_chunk()?))
}

/// Length that two places have in common, where the words there differ by `differ`.
#[inline(always)]
fn common(src: &[u8], differ: u64, earlier: usize, later: usize, most: usize) -> usize {
    if differ != 0 {
        return (differ.trailing_zeros() / 8) as usize;
    }
    let (Some(a), Some(b)) = (src.get(earlier + 8..), src.get(later + 8..)) else { return 8 };
    8 + in_common(a, &b[..b.len().min(most.saturating_sub(8))])
}

/// How many bytes before a copy at `at`, back to `start`, belong to it, too.
#[inline(always)]
fn before(src: &[u8], start: usize, at: usize, distance: usize) -> usize {
    let most = (at - start).min(at - distance);
    let mut n = 0;
    while n < most && src[at - n - 1] == src[at - distance - n - 1] {
        n += 1;
    }
    n
}

/// Several places are looked at together once nothing was found in so many, and so many bytes.
const MISSES: usize = 48;
const BARREN: usize = 32;

/// Less than a stride, different from place to place.
#[inline(always)]
fn uneven(stride: usize, at: usize) -> usize {
    (stride * ((at as u32).wrapping_mul(0x9e37_79b1) >> 28) as usize) >> 4
}

/// Whether a copy pays, by the shortest ones that do.
#[inline(always)]
fn pays(least: &[u8; 17], length: usize, distance: usize) -> bool {
    length >= usize::from(least[(usize::BITS - distance.leading_zeros()).min(16) as usize])
}

/// How far to go on where nothing was found for so long. The hash makes steps irregular, so that what repeats at any
/// distance is met sooner or later.
#[inline(always)]
fn step(effort: &Effort, misses: usize, hash: usize) -> usize {
    let step = (misses >> (effort.patience & 63)).min(effort.stride);
    1 + step / 2 + ((step * (hash & 15)) >> 4)
}

impl Finder {
    /// Begins a source of so many bytes, fewer than 2^31.
    pub(super) fn begin(&mut self, len: usize, effort: &Effort) {
        let bits = len.next_power_of_two().ilog2().clamp(8, HASH_BITS);
        self.hashing.hash_shift = 64 - bits;
        let gap = FARTHEST as u32 + 1;
        match self.end.checked_add(gap).filter(|base| base.checked_add(len as u32).is_some()) {
            Some(base) => self.base = base,
            None => {
                self.heads.fill(0);
                self.before.fill(0);
                self.base = gap;
            }
        }
        self.end = self.base + len as u32;
        self.misses = 0;
        self.price(8.0, effort);
    }

    /// Sets about how many bits a literal takes.
    pub(super) fn price(&mut self, literal: f32, effort: &Effort) {
        let per_bit = 1.0 / literal.max(0.5);
        for (digits, least) in self.least.iter_mut().enumerate() {
            // Codes of a length and a distance take about 7 and 4 bits, the distance's extra bits besides.
            let copy = 11.0 + digits.saturating_sub(2) as f32 + effort.margin;
            *least = ((copy * per_bit) as u32 + 1).clamp(SHORTEST as u32, 255) as u8;
        }
        // What does not pay is best not found.
        let hashed = effort.hashed.max(self.least[1].into()).min(8);
        self.hashing.word_shift = 64 - 8 * hashed;
    }

    /// Cuts the source from `from` to about `to` and returns where that ends; the last copy may go beyond.
    #[inline(always)]
    pub(super) fn parse(
        &mut self,
        src: &[u8],
        (from, to): (usize, usize),
        effort: &Effort,
        lookup: &impl Lookup,
        tokens: &mut Vec<Token>,
    ) -> usize {
        if effort.depth > 1 {
            self.parse_chains(src, from, to, effort, tokens)
        } else {
            self.parse_fast(src, (from, to), effort, lookup, tokens)
        }
    }

    /// Looks at the most recent place with the same hash only.
    #[inline(always)]
    fn parse_fast(
        &mut self,
        src: &[u8],
        (from, to): (usize, usize),
        effort: &Effort,
        lookup: &impl Lookup,
        tokens: &mut Vec<Token>,
    ) -> usize {
        let (mut at, mut start) = (from, from);
        // The hash before decides how far to go on: this place's is not waited for.
        let mut last = 0;
        let most_end = src.len().min(to + MOST_AHEAD);
        // What stays the same meanwhile is kept out of what is written to.
        let (base, hashing, least) = (self.base, self.hashing, self.least);
        let heads = &mut *self.heads;
        let mut misses = self.misses;
        while at < to {
            let stride = (misses >> (effort.patience & 63)).min(effort.stride);
            let several = || Places::new(src, at, stride, FARTHEST);
            let (distance, differ) = if misses >= MISSES
                && at - start >= BARREN
                && let Some(places) = several()
            {
                let Some((nth, distance)) = lookup.several(&places, heads, hashing, base) else {
                    misses += SEVERAL;
                    at += (SEVERAL - 1) * stride + 1 + uneven(stride, at);
                    continue;
                };
                misses += nth;
                at += nth * stride;
                let (Some(here), Some(there)) = (word(src, at), word(src, at - distance)) else { break };
                (distance, here ^ there)
            } else {
                let Some(here) = word(src, at) else { break };
                let hash = hashing.of::<HASHES>(here);
                let place = base.wrapping_add(at as u32);
                let distance = place.wrapping_sub(std::mem::replace(&mut heads[hash], place)) as usize;
                // Without a branch: whether a place is near enough is hard to foretell. Too far ones, and places that
                // were looked at before, look at themselves.
                let far = u64::from(distance.wrapping_sub(1) >= FARTHEST.min(at));
                let Some(there) = word(src, at - if far == 0 { distance } else { 0 }) else { break };
                let differ = (there ^ here) | far;
                if differ as u32 != 0 {
                    misses += 1;
                    at += step(effort, misses, std::mem::replace(&mut last, hash));
                    continue;
                }
                (distance, differ)
            };
            let length = common(src, differ, at - distance, at, most_end - at);
            let earlier = if misses > 0 { before(src, start, at, distance) } else { 0 };
            if !pays(&least, length + earlier, distance) {
                misses += 1;
                at += step(effort, misses, std::mem::replace(&mut last, distance));
                continue;
            }
            // What is between copies may go on as it was.
            misses /= 2;
            at -= earlier;
            let end = push(tokens, at - start, length + earlier, distance) + at;
            if let Some(near) = word(src, end - 2) {
                heads[hashing.of::<HASHES>(near)] = base.wrapping_add(end as u32 - 2);
            }
            (at, start) = (end, end);
        }
        self.misses = misses;
        finish(tokens, start, to)
    }

    /// Puts a place into its chain and returns the one before.
    #[inline(always)]
    fn insert(&mut self, word: u64, at: usize) -> u32 {
        let hash = self.hashing.of::<HASHES>(word);
        let place = self.base.wrapping_add(at as u32);
        let before = std::mem::replace(&mut self.heads[hash], place);
        self.before[place as usize & (FARTHEST - 1)] = before;
        before
    }

    /// The best copy for the place `at`; 0 where there is none.
    #[inline(always)]
    fn search(
        &self,
        src: &[u8],
        at: usize,
        here: u64,
        Search { first, length, depth, enough }: Search,
    ) -> (usize, usize) {
        let place = self.base.wrapping_add(at as u32);
        let most = (src.len() - at).min(LONGEST);
        let (mut best, mut best_distance) = (length, 0);
        if best >= most {
            return (0, 0);
        }
        let mut candidate = first;
        let Some(mut wanted) = four(src, at + best - 3) else { return (0, 0) };
        for _ in 0..depth {
            let distance = place.wrapping_sub(candidate) as usize;
            // At the full distance the chain's slot is this place's own.
            if distance >= FARTHEST || distance > at {
                break;
            }
            let earlier = at - distance;
            candidate = self.before[candidate as usize & (FARTHEST - 1)];
            // The last four bytes of what would be better, before the first four.
            if four(src, earlier + best - 3) != Some(wanted) {
                continue;
            }
            let Some(there) = word(src, earlier) else { break };
            let differ = there ^ here;
            if differ as u32 != 0 {
                continue;
            }
            let found = common(src, differ, earlier, at, most).min(most);
            if found > best && pays(&self.least, found, distance) {
                (best, best_distance) = (found, distance);
                if found >= enough || found >= most {
                    break;
                }
                wanted = four(src, at + best - 3).unwrap_or(wanted);
            }
        }
        if best_distance == 0 { (0, 0) } else { (best, best_distance) }
    }

    /// Looks at several earlier places, and a byte further where a better copy may begin.
    #[inline(always)]
    fn parse_chains(
        &mut self,
        src: &[u8],
        from: usize,
        to: usize,
        effort: &Effort,
        tokens: &mut Vec<Token>,
    ) -> usize {
        // What does not even pay right before.
        let too_short = usize::from(self.least[1]).max(SHORTEST + 1) - 1;
        let (mut at, mut start) = (from, from);
        while at < to {
            let Some(here) = word(src, at) else { break };
            let first = self.insert(here, at);
            let (mut length, mut distance) = {
                let (depth, enough) = (effort.depth, effort.enough);
                self.search(src, at, here, Search { first, length: too_short, depth, enough })
            };
            if length == 0 {
                self.misses += 1;
                at += step(effort, self.misses, here as usize >> 3);
                continue;
            }
            let mut inserted = at;
            while length < effort.lazy
                && let Some(next) = word(src, at + 1)
            {
                let first = self.insert(next, at + 1);
                inserted = at + 1;
                let depth = if length >= effort.enough / 2 { effort.depth / 4 } else { effort.depth / 2 };
                let (longer, farther) =
                    self.search(src, at + 1, next, Search { first, length, depth, enough: effort.enough });
                if longer == 0 {
                    break;
                }
                at += 1;
                (length, distance) = (longer, farther);
            }
            if self.misses > 0 {
                let earlier = before(src, start, at, distance);
                at -= earlier;
                length += earlier;
            }
            self.misses = 0;
            if length >= LONGEST {
                let most = src.len().min(to + MOST_AHEAD) - at;
                if most > length {
                    length += in_common(&src[at - distance + length..], &src[at + length..at + most]);
                }
            }
            let end = push(tokens, at - start, length, distance) + at;
            // Of a long copy only its end; one from near by holds the same again and again.
            let least = if distance < 8 { FEW } else { LONGEST };
            let from = if end - at > 2 * least { end - least } else { inserted + 1 };
            for place in from..end {
                let Some(word) = word(src, place) else { break };
                self.insert(word, place);
            }
            (at, start) = (end, end);
        }
        finish(tokens, start, to)
    }
}

/// Adds literals and a copy, in pieces where it is longer than one may be, and returns the length that was taken.
#[inline(always)]
fn push(tokens: &mut Vec<Token>, literals: usize, length: usize, distance: usize) -> usize {
    let distance = (distance - 1) as u16;
    let mut left = length;
    let mut literals = literals as u32;
    while left > LONGEST {
        tokens.push(Token { literals, length: LONGEST as u16, distance });
        literals = 0;
        left -= LONGEST;
    }
    if left < SHORTEST {
        return length - left;
    }
    tokens.push(Token { literals, length: left as u16, distance });
    length
}

/// Adds what is left as literals.
fn finish(tokens: &mut Vec<Token>, start: usize, to: usize) -> usize {
    if start < to {
        tokens.push(Token { literals: (to - start) as u32, length: 0, distance: 0 });
    }
    start.max(to)
}
