//! One-shot deflate encoding.
//!
//! The source is taken in sections. Each is cut into literals and copies ([`finder`]), its symbols are counted
//! ([`symbols`]), and it joins the block before where one code for both is cheaper than two. A block is written in the
//! cheapest of the three ways ([`block`]), with Huffman codes ([`codes`]) no longer than our inflater looks up at once.
//!
//! Levels 7 to 9 are zlib-rs': who asks for them wants small streams, and its are up to 5 % smaller than ours were.

mod bits;
mod block;
mod codes;
mod finder;
mod symbols;
#[cfg(test)]
mod tests;

use crate::simd::hashes::{Lookup, Work, with_lookup};
use crate::simd::literals::Join;
use crate::simd::{self, Level};
use bits::Bits;
use block::{Kind, Plan};
use finder::{Effort, Finder};
use flate2::{Compress, Compression, FlushCompress, Status};
use symbols::{END, Histogram, Token};
use tensilo_core::{Error, Result};

/// Bytes that are cut and counted at a time, twice as many where it is to be fast.
const SECTION: usize = 8 << 10;
/// Bytes of the source in a block, about.
const BLOCK: usize = 256 << 10;
/// Bytes of the source between which nothing is copied: what a finder takes.
const PIECE: usize = 1 << 30;

/// Efforts of the levels from 1 to 6.
const EFFORTS: [Effort; 6] = [
    Effort { hashed: 6, depth: 1, enough: 16, lazy: 0, patience: 4, stride: 32, margin: 6.0, bias: 1000 },
    Effort { hashed: 5, depth: 4, enough: 16, lazy: 0, patience: 5, stride: 32, margin: 4.0, bias: 500 },
    Effort { hashed: 4, depth: 8, enough: 24, lazy: 0, patience: 5, stride: 24, margin: 2.0, bias: 0 },
    Effort { hashed: 4, depth: 12, enough: 32, lazy: 0, patience: 6, stride: 24, margin: 0.0, bias: 0 },
    Effort { hashed: 4, depth: 24, enough: 32, lazy: 24, patience: 6, stride: 16, margin: 0.0, bias: 0 },
    Effort { hashed: 4, depth: 64, enough: 64, lazy: 32, patience: 7, stride: 8, margin: 0.0, bias: 0 },
];

/// A one-shot deflater: what it keeps between streams is worth keeping. A stream depends on its level and source only.
///
/// ```
/// use tensilo_filters::deflate::{Deflater, Inflate};
/// let mut stream = Vec::new();
/// Deflater::default().raw(4, &[7; 1000], &mut stream)?;
/// let mut text = [0; 1000];
/// assert_eq!(Inflate::default().raw(&stream, &mut text)?, 1000);
/// assert!(text == [7; 1000] && stream.len() < 20);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Default)]
pub struct Deflater {
    finder: Finder,
    tokens: Vec<Token>,
    block: Histogram,
    section: Histogram,
    plan: Plan,
    /// The level and state of zlib-rs.
    slow: Option<(u32, Compress)>,
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deflater").finish_non_exhaustive()
    }
}

/// Most bytes of a raw deflate stream of so many bytes.
fn most(raw: usize) -> usize {
    raw.saturating_add(raw.div_ceil(0xffff).max(1).saturating_mul(5))
}

impl Deflater {
    /// Appends one raw deflate stream (RFC 1951, no wrapper) of `src` to `dst`. Level 0 stores, 9 tries hardest. The
    /// stream is at most 5 bytes longer than `src`, and 5 more for each 65,535 bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such level.
    pub fn raw(&mut self, level: u32, src: &[u8], dst: &mut Vec<u8>) -> Result<()> {
        self.pieces(simd::level(), level, src, dst, PIECE)
    }

    fn pieces(&mut self, simd: Level, level: u32, src: &[u8], dst: &mut Vec<u8>, piece: usize) -> Result<()> {
        dst.reserve(most(src.len()) + 16);
        let effort = match level {
            _ if src.is_empty() => None,
            0 => None,
            1..7 => Some(&EFFORTS[level as usize - 1]),
            7..10 if self.slowly(level, src, dst)? => return Ok(()),
            7..10 => None,
            _ => return Err(Error::invalid(format!("deflate level {level} is not between 0 and 9"))),
        };
        let mut out = Bits::new(dst);
        let Some(effort) = effort else {
            block::store(src, true, &mut out);
            out.finish();
            return Ok(());
        };
        let mut rest = src;
        while !rest.is_empty() {
            let (now, then) = rest.split_at(rest.len().min(piece));
            rest = then;
            let (whole, last) = (now.len() == src.len(), rest.is_empty());
            with_lookup(simd, Piece { deflater: self, effort, src: now, whole, last, out: &mut out });
        }
        out.finish();
        Ok(())
    }

    /// Encodes with zlib-rs, and says whether that did not take more than is promised.
    fn slowly(&mut self, level: u32, src: &[u8], dst: &mut Vec<u8>) -> Result<bool> {
        if self.slow.as_ref().is_none_or(|(l, _)| *l != level) {
            self.slow = Some((level, Compress::new(Compression::new(level), false)));
        }
        let Some((_, state)) = &mut self.slow else { return Ok(false) };
        state.reset();
        let start = dst.len();
        dst.resize(start + most(src.len()), 0);
        let status = state
            .compress(src, &mut dst[start..], FlushCompress::Finish)
            .map_err(|e| Error::invalid(format!("deflate: {e}")).with_source(e))?;
        let ended = status == Status::StreamEnd;
        dst.truncate(start + if ended { state.total_out() as usize } else { 0 });
        Ok(ended)
    }

    /// One piece, the whole source or a part, the last one or not.
    #[inline(always)]
    fn piece(
        &mut self,
        effort: &Effort,
        src: &[u8],
        (whole, last): (bool, bool),
        kernels: &(impl Lookup + Join),
        out: &mut Bits,
    ) {
        self.finder.begin(src.len(), effort);
        self.finder.price(first_price(src), effort);
        self.tokens.clear();
        self.block = Histogram::default();
        let section = if effort.depth > 1 { SECTION } else { 2 * SECTION };
        let plan = &mut self.plan;
        plan.best = effort.depth > 1;
        let mut blocks = Blocks { src, plan, bias: effort.bias, stored: 0, start: 0, whole, last };
        let mut at = 0;
        // Those of the block.
        let mut entropies = [0.0; 2];
        while at < src.len() {
            let first = self.tokens.len();
            let to = src.len().min(at + section);
            let end = self.finder.parse(src, (at, to), effort, kernels, &mut self.tokens);
            self.section = Histogram::default();
            self.section.count(&self.tokens[first..], src, at);
            if end < src.len() {
                self.finder.price(self.section.literal_bits(), effort);
            }
            let parted = if first == 0 {
                entropies = self.section.entropies();
                false
            } else if end - blocks.start > BLOCK {
                entropies = self.section.entropies();
                true
            } else {
                parts(&self.block, &self.section, &mut entropies)
            };
            if parted {
                blocks.write(&mut self.block, &self.tokens[..first], at, (kernels, out));
                self.tokens.drain(..first);
                std::mem::swap(&mut self.block, &mut self.section);
            } else {
                self.block.add(&self.section);
            }
            at = end;
        }
        blocks.write(&mut self.block, &self.tokens, at, (kernels, out));
        blocks.finish(out);
    }
}

/// A piece that is encoded with the widest instructions there are; the stream is the same with any.
struct Piece<'l, 'd> {
    deflater: &'l mut Deflater,
    effort: &'static Effort,
    src: &'l [u8],
    whole: bool,
    last: bool,
    out: &'l mut Bits<'d>,
}

impl Work for Piece<'_, '_> {
    #[inline(always)]
    fn run(self, kernels: impl Lookup + Join) {
        let Self { deflater, effort, src, whole, last, out } = self;
        deflater.piece(effort, src, (whole, last), &kernels, out);
    }
}

/// Whether a section is better off in a block of its own: whether the symbols of both together need more bits than each
/// for itself, by more than it costs to state a code. `entropies` are those of the block, and become those of the block
/// that the section is in.
#[inline(always)]
fn parts(block: &Histogram, section: &Histogram, entropies: &mut [f32; 2]) -> bool {
    let (of_section, both) = (section.entropies(), block.entropies_with(section));
    let excess = |i: usize| both[i] - entropies[i] - of_section[i];
    let parts = excess(0) + excess(1) > 120.0 + 3.0 * section.kinds() as f32;
    *entropies = if parts { of_section } else { both };
    parts
}

/// About how many bits a literal takes in a source of which nothing is known: as many as tell those bytes apart that
/// differ from the one before.
fn first_price(src: &[u8]) -> f32 {
    const SAMPLE: usize = 16;
    const SAMPLES: usize = 16;
    let mut seen = [false; 256];
    for sample in src.chunks(SAMPLE).step_by((src.len() / (SAMPLES * SAMPLE)).max(1)) {
        for pair in sample.windows(2) {
            if pair[0] != pair[1] {
                seen[usize::from(pair[1])] = true;
            }
        }
    }
    (seen.iter().filter(|s| **s).count().max(4) as f32).log2()
}

/// The blocks of a piece. Those that are better stored wait, and are written in one.
struct Blocks<'a> {
    src: &'a [u8],
    plan: &'a mut Plan,
    bias: u64,
    /// Where what waits begins; it ends at `start`.
    stored: usize,
    /// Where the block begins.
    start: usize,
    /// Whether the piece is the whole source, and whether it is the last.
    whole: bool,
    last: bool,
}

impl Blocks<'_> {
    /// Writes a block that ends at `end`, or lets it wait.
    #[inline(always)]
    fn write(
        &mut self,
        histogram: &mut Histogram,
        tokens: &[Token],
        end: usize,
        (join, out): (&impl Join, &mut Bits),
    ) {
        let src = &self.src[self.start..end];
        histogram.litlens[END] += 1;
        // A stored block more costs less than 6 bytes. What saves next to nothing is read faster as it is.
        let last = end == self.src.len();
        let alone = self.whole && last && self.start == 0;
        let least = if alone { -40 } else { 48 + src.len() as i64 / 16 };
        let chosen = self.plan.choose(histogram, src.len(), least, self.bias);
        if chosen.0 != Kind::Stored {
            self.finish_stored(false, out);
            self.plan.write(chosen, last && self.last, tokens, src, (join, out));
            self.stored = end;
        }
        self.start = end;
    }

    fn finish_stored(&mut self, last: bool, out: &mut Bits) {
        if self.stored < self.start {
            block::store(&self.src[self.stored..self.start], last, out);
        }
    }

    /// Writes what still waits.
    fn finish(&mut self, out: &mut Bits) {
        self.finish_stored(self.last, out);
    }
}
