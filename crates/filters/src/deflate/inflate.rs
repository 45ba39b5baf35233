//! One-shot zlib and raw deflate decoding into a destination of known size.
//!
//! 64 bits of the stream are held, refilled with one load, and serve up to three literals or one whole copy; the
//! fast loop runs while there is room for the longest copy, the ends of both sides are left to a careful one.
//! Bounds are checked everywhere; only the copies, shared with the other LZ77 decoders, and the checksum are vector
//! code.

use super::tables::{DISTANCE_BITS, END, EXCEPTION, LINK, LITERAL, SYMBOL_BITS, Stated, Tables};
use crate::simd::adler::{self, adler32};
use crate::simd::copies::{self, Copy, Decode, with_copy};
use crate::simd::{Level, level};
use tensilo_core::{Error, Result};

/// Decodes one zlib stream into the start of `dst` and says how many bytes it held; bytes behind the stream are
/// ignored, bytes of `dst` behind the data may be overwritten.
pub(super) fn zlib(tables: &mut Tables, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    zlib_at(level(), tables, src, dst)
}

fn zlib_at(level: Level, tables: &mut Tables, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    let &[method, flags, ref body @ ..] = src else {
        return Err(Error::corrupt(format!("{} bytes hold no zlib stream", src.len())));
    };
    let header = u32::from(method) << 8 | u32::from(flags);
    if method & 15 != 8 || method >> 4 > 7 || !header.is_multiple_of(31) {
        return Err(Error::corrupt(format!("no zlib stream: it begins with {header:#06x}")));
    }
    if flags & 32 != 0 {
        return Err(Error::unsupported("zlib streams with a preset dictionary"));
    }
    with_copy(level, Stream { tables, level, zlib: true }, body, dst)
}

/// Decodes one deflate stream without a wrapper, otherwise as [`zlib`] does.
pub(super) fn raw(tables: &mut Tables, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    let level = level();
    with_copy(level, Stream { tables, level, zlib: false }, src, dst)
}

#[cold]
fn damaged(what: &str) -> Error {
    Error::corrupt(format!("damaged deflate stream: {what}"))
}

#[cold]
fn too_much(room: usize) -> Error {
    Error::corrupt(format!("the deflate stream holds more than the {room} bytes expected"))
}

#[cold]
fn bad_copy(room: usize, op: usize, length: usize) -> Error {
    if length > room.saturating_sub(op) { too_much(room) } else { damaged("a copy from before the start") }
}

struct Stream<'a> {
    tables: &'a mut Tables,
    level: Level,
    /// Whether a checksum follows the data.
    zlib: bool,
}

impl Decode for Stream<'_> {
    #[inline(always)]
    fn decode(self, src: &[u8], dst: &mut [u8], copy: impl Copy) -> Result<usize> {
        let mut bits = Bits::new(src);
        let (mut op, mut found) = (0, adler::EMPTY);
        loop {
            let start = op;
            let (last, stored) = begin(self.tables, &mut bits, dst, op)?;
            op = match stored {
                Some(end) => end,
                None => block(self.level, self.tables.meant(), &mut bits, dst, op, &copy)?,
            };
            if self.zlib {
                // Block by block, while its data are in the cache.
                found = adler32(self.level, found, &dst[start..op]);
            }
            if last {
                break;
            }
        }
        if !self.zlib {
            return Ok(op);
        }
        bits.align();
        let check = [bits.take(8)?, bits.take(8)?, bits.take(8)?, bits.take(8)?];
        let check = check.into_iter().fold(0, |c, byte| c << 8 | byte);
        if check != found {
            return Err(Error::corrupt(format!(
                "zlib checksum is {check:#010x}, the data's is {found:#010x}"
            )));
        }
        Ok(op)
    }
}

/// Begins a block: says whether it is the last, and where its data end if they are stored; otherwise its tables are set
/// up.
#[inline(always)]
pub(super) fn begin(
    tables: &mut Tables,
    bits: &mut Bits,
    dst: &mut [u8],
    op: usize,
) -> Result<(bool, Option<usize>)> {
    let kind = bits.take(3)?;
    let mut end = None;
    match kind >> 1 {
        0 => end = Some(stored(bits, dst, op)?),
        1 => tables.set_fixed(),
        2 => tables.read(bits)?,
        _ => return Err(damaged("an unknown kind of block")),
    }
    Ok((kind & 1 != 0, end))
}

/// The bits of the stream, lowest first.
pub(super) struct Bits<'a> {
    src: &'a [u8],
    at: usize,
    held: u64,
    have: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(src: &'a [u8]) -> Self {
        Self { src, at: 0, held: 0, have: 0 }
    }

    /// Makes at least 56 bits available with one load; the caller knows that 8 bytes are left.
    #[inline(always)]
    fn refill(&mut self, word: [u8; 8]) {
        self.held |= u64::from_le_bytes(word) << self.have;
        self.at += ((63 - self.have) >> 3) as usize;
        self.have |= 56;
    }

    /// Adds whole bytes while there are any.
    #[inline(always)]
    fn refill_slowly(&mut self) {
        if let Some(word) = self.src.get(self.at..).and_then(|s| s.first_chunk::<8>()) {
            return self.refill(*word);
        }
        // After a fast refill bits above `have` may be set already; they equal what is added here.
        while self.have < 56 {
            let Some(&byte) = self.src.get(self.at) else { return };
            self.held |= u64::from(byte) << self.have;
            self.at += 1;
            self.have += 8;
        }
    }

    #[inline(always)]
    fn drop(&mut self, n: u32) {
        self.held >>= n;
        self.have -= n;
    }

    /// Takes up to 32 bits.
    #[inline]
    fn take(&mut self, n: u32) -> Result<u32> {
        if self.have < n {
            self.refill_slowly();
            if self.have < n {
                return Err(damaged("it ends early"));
            }
        }
        let value = (self.held & ((1 << n) - 1)) as u32;
        self.drop(n);
        Ok(value)
    }

    /// Drops the rest of a byte, and gives back whole bytes that were held.
    fn align(&mut self) {
        self.drop(self.have % 8);
        self.at -= (self.have / 8) as usize;
        (self.held, self.have) = (0, 0);
    }
}

impl Stated for Bits<'_> {
    #[inline(always)]
    fn take(&mut self, n: u32) -> Result<u32> {
        Bits::take(self, n)
    }

    #[inline(always)]
    fn peek(&mut self) -> usize {
        if self.have < 16 {
            self.refill_slowly();
        }
        self.held as usize
    }
}

fn stored(bits: &mut Bits, dst: &mut [u8], op: usize) -> Result<usize> {
    bits.align();
    let (length, complement) = (bits.take(16)?, bits.take(16)?);
    if length != complement ^ 0xffff {
        return Err(damaged("the length of a stored block"));
    }
    bits.align();
    let length = length as usize;
    let from = bits.src.get(bits.at..bits.at + length).ok_or_else(|| damaged("a stored block is cut off"))?;
    let room = dst.len();
    dst.get_mut(op..op + length).ok_or_else(|| too_much(room))?.copy_from_slice(from);
    bits.at += length;
    Ok(op + length)
}

/// Output that a round of the fast loop may write: three literals, the longest copy, and what copies write past their end.
pub(super) const ROOM: usize = 3 + 258 + copies::ROOM;
/// Output that a round near the end of the destination may write without looking at the room: three literals.
const LITTLE_ROOM: usize = 3;
/// Bytes of the source that must be left for a round: three refills, each of up to 7 bytes that loads 8.
pub(super) const AHEAD: usize = 24;

/// Bits of a distance in the table, of its extra bits, and of the symbol behind it, which is looked up at once.
const LEAST: u32 = DISTANCE_BITS + 13 + SYMBOL_BITS;

/// Decodes one compressed block; returns where its output ends.
#[inline(always)]
pub(super) fn block(
    level: Level,
    tables: &Tables,
    bits: &mut Bits,
    dst: &mut [u8],
    op: usize,
    copy: &impl Copy,
) -> Result<usize> {
    let mut fast = Fast::new(tables, bits, op)?;
    let mut ended = false;
    if let Some(last_op) = dst.len().checked_sub(ROOM) {
        ended = fast.run::<true>(tables, dst, last_op, copy)?;
    }
    if let (false, Some(last_op)) = (ended, dst.len().checked_sub(LITTLE_ROOM)) {
        ended = fast.run::<false>(tables, dst, last_op, copy)?;
    }
    let op = fast.leave(bits);
    if ended { Ok(op) } else { careful(level, tables, bits, dst, op) }
}

/// What the fast loop keeps in registers.
pub(super) struct Fast<'a> {
    /// What follows the bits that are held.
    pub(super) rest: &'a [u8],
    held: u64,
    /// Counted in the lowest six bits; the others hold what entries carry besides, which is cheaper than masking it.
    have: u32,
    pub(super) op: usize,
    /// The next symbol's. It is looked up before the copy of the one before, which hides the time that it takes.
    pub(super) entry: u32,
    /// Masks of the two tables' indices.
    symbols: u64,
    distances: u64,
}

impl<'a> Fast<'a> {
    #[inline(always)]
    pub(super) fn new(tables: &Tables, bits: &Bits<'a>, op: usize) -> Result<Self> {
        Ok(Self {
            rest: bits.src.get(bits.at..).ok_or_else(|| damaged("it ends early"))?,
            held: bits.held,
            have: bits.have,
            op,
            entry: 0,
            symbols: (1 << tables.symbol_bits) - 1,
            distances: (1 << tables.distance_bits) - 1,
        })
    }

    /// Gives the bits back, and says where the output ends.
    #[inline(always)]
    pub(super) fn leave(&self, bits: &mut Bits<'a>) -> usize {
        bits.at = bits.src.len() - self.rest.len();
        (bits.held, bits.have) = (self.held, self.have & 63);
        self.op
    }

    /// Makes at least 56 bits available with one load, which the caller left room for.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        let Some(word) = self.rest.first_chunk() else { return };
        self.held |= u64::from_le_bytes(*word) << (self.have & 63);
        self.rest = &self.rest[7 - (self.have >> 3 & 7) as usize..];
        self.have |= 56;
    }

    /// Takes the bits of an entry.
    #[inline(always)]
    pub(super) fn take(&mut self, entry: u32) {
        self.held >>= entry & 63;
        self.have = self.have.wrapping_sub(entry);
    }

    #[inline(always)]
    pub(super) fn symbol(&self, tables: &Tables) -> u32 {
        tables.symbols[(self.held & self.symbols) as usize & 4095]
    }

    /// Whether there is room on both sides.
    #[inline(always)]
    pub(super) fn goes_on(&self, last_op: usize) -> bool {
        self.rest.len() >= AHEAD && self.op <= last_op
    }

    /// Makes ready for rounds, where there is room.
    #[inline(always)]
    pub(super) fn start(&mut self, tables: &Tables) {
        self.refill();
        self.entry = self.symbol(tables);
    }

    /// Decodes symbols while there is room on both sides; returns whether the block ended. With `ROOMY` there is room
    /// for any copy up to `last_op`; without, copies look for themselves.
    #[inline(always)]
    fn run<const ROOMY: bool>(
        &mut self,
        tables: &Tables,
        dst: &mut [u8],
        last_op: usize,
        copy: &impl Copy,
    ) -> Result<bool> {
        if self.goes_on(last_op) {
            self.start(tables);
        }
        while self.goes_on(last_op) {
            if self.round::<ROOMY>(tables, dst, copy)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Decodes up to three literals, or fewer and a copy; returns whether the block ended.
    #[inline(always)]
    pub(super) fn round<const ROOMY: bool>(
        &mut self,
        tables: &Tables,
        dst: &mut [u8],
        copy: &impl Copy,
    ) -> Result<bool> {
        let mut entry = self.entry;
        let mut before = self.held;
        self.take(entry);
        if entry & LITERAL != 0 {
            let room = dst.len();
            let Some(out) = dst.get_mut(self.op..).and_then(|d| d.first_chunk_mut::<3>()) else {
                return Err(too_much(room));
            };
            out[0] = (entry >> 16) as u8;
            self.op += 1;
            entry = self.symbol(tables);
            before = self.held;
            self.take(entry);
            if entry & LITERAL != 0 {
                out[1] = (entry >> 16) as u8;
                self.op += 1;
                entry = self.symbol(tables);
                before = self.held;
                self.take(entry);
                if entry & LITERAL != 0 {
                    out[2] = (entry >> 16) as u8;
                    self.op += 1;
                    self.entry = self.symbol(tables);
                    self.refill();
                    return Ok(false);
                }
            }
        }
        // At least 56 - 3 * 11 bits are held, and none of a code that goes on in a subtable.
        if entry & EXCEPTION != 0 {
            if entry & LINK != 0 {
                entry = tables.symbols[subtable(entry, self.held) & 4095];
                before = self.held;
                self.take(entry);
            }
            if entry & LITERAL != 0 {
                dst[self.op] = (entry >> 16) as u8;
                self.op += 1;
                self.refill();
                self.entry = self.symbol(tables);
                return Ok(false);
            }
            if entry & END != 0 {
                return Ok(true);
            }
            if entry & EXCEPTION != 0 {
                return Err(damaged("a symbol that has no code"));
            }
        }
        let length = base_and_extra(entry, before);
        // At least 56 - 2 * 11 - 15 - 5 bits are held, as many as the index has.
        let mut entry = tables.distances[(self.held & self.distances) as usize & 511];
        if self.have & 63 < LEAST {
            self.refill();
        }
        before = self.held;
        self.take(entry);
        if entry & EXCEPTION != 0 {
            if entry & LINK != 0 {
                self.refill();
                entry = tables.distances[subtable(entry, self.held) & 511];
                before = self.held;
                self.take(entry);
            }
            if entry & EXCEPTION != 0 {
                return Err(damaged("a distance that has no code"));
            }
        }
        let distance = base_and_extra(entry, before);
        self.entry = self.symbol(tables);
        self.refill();
        let copied = if ROOMY {
            copy.back_with_room(dst, self.op, distance, length)
        } else {
            copy.back(dst, self.op, distance, length)
        };
        if copied.is_none() {
            return Err(bad_copy(dst.len(), self.op, length));
        }
        self.op += length;
        Ok(false)
    }
}

/// Where in the table a link leads to.
#[inline(always)]
fn subtable(link: u32, held: u64) -> usize {
    (link >> 16) as usize + (held as usize & ((1 << (link >> 8 & 31)) - 1))
}

/// The base of an entry plus its extra bits, which stand behind its code in `bits`.
#[inline(always)]
fn base_and_extra(entry: u32, bits: u64) -> usize {
    // It is no literal and no exception: the bits above those that are meant are zero.
    let extra = (bits & ((1 << (entry & 63)) - 1)) >> (entry >> 8 & 63);
    (entry >> 16) as usize + extra as usize
}

/// Takes the code and extra bits of an entry and adds them to its base.
#[inline(always)]
fn value(bits: &mut Bits, entry: u32) -> usize {
    let value = base_and_extra(entry, bits.held);
    bits.drop(entry & 0xff);
    value
}

/// The same, symbol by symbol, to the end of the block. It is a function of its own, which leaves the fast loop its
/// registers.
#[inline(never)]
fn careful(level: Level, tables: &Tables, bits: &mut Bits, dst: &mut [u8], op: usize) -> Result<usize> {
    with_copy(level, Careful { tables, bits, op }, &[], dst)
}

/// What is left of a block. The last bytes of a stream may hold a hundred copies of one value: these are worth vectors.
struct Careful<'l, 'a> {
    tables: &'l Tables,
    bits: &'l mut Bits<'a>,
    op: usize,
}

impl Decode for Careful<'_, '_> {
    #[inline(always)]
    fn decode(self, _src: &[u8], dst: &mut [u8], copy: impl Copy) -> Result<usize> {
        let Self { tables, bits, mut op } = self;
        loop {
            bits.refill_slowly();
            let entry = look_up(bits, &tables.symbols, tables.symbol_bits)?;
            if entry & LITERAL != 0 {
                bits.drop(entry & 0xff);
                let room = dst.len();
                *dst.get_mut(op).ok_or_else(|| too_much(room))? = (entry >> 16) as u8;
                op += 1;
                continue;
            }
            if entry & END != 0 {
                bits.drop(entry & 0xff);
                return Ok(op);
            }
            let length = value(bits, entry);
            bits.refill_slowly();
            let entry = look_up(bits, &tables.distances, tables.distance_bits)?;
            let distance = value(bits, entry);
            if copy.back(dst, op, distance, length).is_none() {
                return Err(bad_copy(dst.len(), op, length));
            }
            op += length;
        }
    }
}

/// The entry of the next code, for which there are enough bits.
#[inline(always)]
fn look_up(bits: &mut Bits, table: &[u32], index_bits: u32) -> Result<u32> {
    let mut entry = table[bits.held as usize & ((1 << index_bits) - 1)];
    if entry & LINK != 0 && entry & EXCEPTION != 0 {
        if bits.have < index_bits {
            return Err(damaged("it ends early"));
        }
        bits.drop(index_bits);
        entry = table[subtable(entry, bits.held)];
    }
    // A literal's byte may look like the other flags do not: only entries that are none have them.
    if entry & LITERAL == 0 && entry & EXCEPTION != 0 && entry & END == 0 {
        return Err(damaged("bits that are no code"));
    }
    if entry & 0xff > bits.have {
        return Err(damaged("it ends early"));
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Rng;
    use crate::simd::levels;
    use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

    fn raw(rng: &mut Rng) -> Vec<u8> {
        let target = rng.below(60_000);
        let mut raw = vec![];
        while raw.len() < target {
            match rng.below(4) {
                0 => raw.extend((0..rng.below(3000)).map(|_| rng.below(256) as u8)),
                1 => raw.resize(raw.len() + rng.below(3000), rng.below(4) as u8),
                2 => raw.extend((0..rng.below(5000)).map(|_| (rng.below(16) * rng.below(16)) as u8)),
                _ => {
                    let unit: Vec<u8> = (0..1 + rng.below(300)).map(|_| rng.below(256) as u8).collect();
                    raw.extend(unit.iter().cycle().take(rng.below(4000)));
                }
            }
        }
        raw
    }

    fn deflate(raw: &[u8], level: u32) -> Vec<u8> {
        let mut out = vec![0; raw.len() + raw.len() / 4 + 1000];
        let mut state = Compress::new(Compression::new(level), true);
        assert_eq!(state.compress(raw, &mut out, FlushCompress::Finish).unwrap(), Status::StreamEnd);
        out.truncate(state.total_out() as usize);
        out
    }

    fn twin(src: &[u8], room: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; room];
        let mut state = Decompress::new(true);
        match state.decompress(src, &mut out, FlushDecompress::Finish) {
            Ok(Status::StreamEnd) => {
                out.truncate(state.total_out() as usize);
                Some(out)
            }
            _ => None,
        }
    }

    fn ours(level: Level, tables: &mut Tables, src: &[u8], room: usize) -> Option<Vec<u8>> {
        let mut out = vec![0xEE; room];
        let n = zlib_at(level, tables, src, &mut out).ok()?;
        out.truncate(n);
        Some(out)
    }

    #[test]
    fn every_level_inflates_and_refuses_what_zlib_rs_does() {
        let mut rng = Rng(3);
        let mut tables = Tables::default();
        for round in 0..250 {
            let raw = raw(&mut rng);
            let stream = deflate(&raw, round % 10);
            for level in levels() {
                for slack in [0, 1, 400] {
                    assert!(ours(level, &mut tables, &stream, raw.len() + slack).as_ref() == Some(&raw));
                }
                assert!(raw.is_empty() || ours(level, &mut tables, &stream, raw.len() - 1).is_none());
            }
            for _ in 0..12 {
                let mut hurt = stream.clone();
                if rng.below(4) == 0 {
                    hurt.truncate(rng.below(hurt.len()));
                } else {
                    for _ in 0..1 + rng.below(2) {
                        // Damage near the front meets headers and code lengths.
                        let near = if rng.below(2) == 0 { hurt.len().min(120) } else { hurt.len() };
                        let i = rng.below(near);
                        hurt[i] ^= 1 << rng.below(8);
                    }
                }
                let want = twin(&hurt, raw.len() + 100);
                for level in levels() {
                    assert!(ours(level, &mut tables, &hurt, raw.len() + 100) == want, "round {round}");
                }
            }
        }
    }

    #[test]
    fn streams_made_of_random_bits_end_as_in_zlib_rs() {
        const ROOM: usize = 4000;
        let mut rng = Rng(9);
        let mut tables = Tables::default();
        let mut whole = 0;
        for round in 0..20_000 {
            // A last block of each kind; most bytes of the second kind are literals.
            let mut body = vec![(rng.below(256) as u8 & !7) | 1 | (rng.below(3) as u8) << 1];
            body.extend((0..rng.below(200)).map(|_| (rng.below(256) >> (round % 5)) as u8));
            let (mut out, mut state) = (vec![0; ROOM], Decompress::new(false));
            let end = state.decompress(&body, &mut out, FlushDecompress::Finish);
            let want = matches!(end, Ok(Status::StreamEnd)).then(|| {
                out.truncate(state.total_out() as usize);
                body.truncate(state.total_in() as usize);
                body.extend(adler32(Level::Safe, adler::EMPTY, &out).to_be_bytes());
                out
            });
            whole += u32::from(want.is_some());
            let stream = [&[0x78, 0x9c], &body[..]].concat();
            for level in levels() {
                assert!(ours(level, &mut tables, &stream, ROOM) == want, "{stream:?}");
            }
        }
        assert!(whole > 200, "only {whole} streams end");
    }
}
