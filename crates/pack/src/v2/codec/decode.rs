//! From bytes to the symbols of a block: header, units, tables, escapes.

use super::bits::{BitReader, NibbleReader};
use super::level::Level;
use super::model::{FIXED, SCALE, Slots, fill_slots, fixed, fixed_tuple, read_frequencies};
use super::placement::{GROUP, Kind, Placement};
use super::rans::{Decoder, FEW, MANY};
use super::tuples::{ESCAPE, Tuple};
use super::wide;
use super::{BASED, BlockShape, CONSTANT, COUNTED, MANY_STATES};
use tensilo_core::wire::FieldReader;
use tensilo_core::{Error, Result};

/// Memory that decoding re-uses.
#[derive(Debug, Default)]
pub struct DecodeScratch {
    kinds: Vec<Kind>,
    sources: Vec<Source>,
    tables: Vec<Box<Slots>>,
    units: Vec<u8>,
    bases: Vec<u32>,
    placement: Placement,
    /// Where the decoded symbols of each class end.
    ends: Vec<usize>,
    symbols: Vec<u8>,
    places: Vec<u32>,
    escapes: Vec<Escape>,
    escaped: Vec<u32>,
    /// Counts on their way to rows that are no whole groups, or to rows of several blocks.
    pub(super) rows: Vec<u32>,
    pub(super) beside: Vec<u32>,
    /// For the others of blocks that are decoded at once.
    pub(super) others: Vec<DecodeScratch>,
}

/// Where the symbols of a class come from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Fixed(usize),
    Counted(usize),
    Constant(u8),
}

/// A tuple whose counts are listed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Escape {
    pub class: usize,
    /// Symbol of the block, and the first of its counts.
    pub symbol: usize,
    pub counts: usize,
}

/// A block whose symbols are decoded, of all scans or the first ones, and whose counts are not yet put together.
#[derive(Debug)]
pub(super) struct Symbols<'a> {
    pub shape: BlockShape,
    pub kinds: &'a [Kind],
    /// For each unit, segment by segment.
    pub bases: &'a [u32],
    pub placement: &'a Placement,
    pub symbols: &'a [u8],
    /// Raw bits; bytes that belong to others may follow.
    pub raw: &'a [u8],
    pub escapes: &'a [Escape],
    pub escaped: &'a [u32],
}

/// Most classes of a block.
const MOST_CLASSES: usize = 128;

/// The parts of a modelled block behind its header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    escapes: &'a [u8],
    raw: &'a [u8],
    coded: &'a [u8],
    states: usize,
    /// Symbols are decoded to their end.
    all: bool,
}

/// Reads all of a modelled block but its symbols; its first byte is gone. Counts have at most `bits` bits. Scans from `until` on
/// are not wanted: what belongs to them is neither decoded nor looked at.
///
/// # Errors
/// `Corrupt` for bytes that no such block has.
pub(super) fn header<'a>(
    body: &'a [u8],
    shape: BlockShape,
    bits: u32,
    until: usize,
    s: &mut DecodeScratch,
) -> Result<Parts<'a>> {
    let mut r = FieldReader::new(body, 1, "block");
    let flags = r.u8()?;
    if flags & !(MANY_STATES | 15) != 0 {
        return Err(Error::corrupt(format!("a block has the flags {flags:#x}")));
    }
    let segment = 1_usize << (flags & 15);
    classes(&mut r, bits, s)?;
    let (string, escapes) = (varint(&mut r)?, varint(&mut r)?);
    let groups = shape.pixels.div_ceil(GROUP);
    let segments = shape.scans.div_ceil(segment);
    // Neither a class nor a segment is without counts of its own in what encoders write.
    if s.kinds.len() * segments > shape.counts() + MOST_CLASSES {
        return Err(Error::corrupt(format!("a block has {} classes in {segments} segments", s.kinds.len())));
    }
    let mut string = BitReader::new(r.bytes(string)?);
    units(&mut string, groups * segments, s)?;
    let mut tables = 0;
    for source in &mut s.sources {
        if let Source::Counted(table) = source {
            *table = tables;
            if s.tables.len() == tables {
                s.tables.push(Box::new([0; SCALE as usize]));
            }
            fill_slots(&read_frequencies(&mut string)?, &mut s.tables[tables]);
            tables += 1;
        }
    }
    string.finish()?;
    let escapes = r.bytes(escapes)?;
    s.placement.set(&s.kinds, &s.units, groups, shape.scans, segment);
    let raw = r.rest();
    let Some(coded) = raw.get(s.placement.raw_bytes..) else {
        return Err(Error::corrupt("a block ends within its raw bits"));
    };
    let states = if flags & MANY_STATES != 0 { MANY } else { FEW };
    s.placement.ends(&s.kinds, until, &mut s.ends);
    Ok(Parts { escapes, raw, coded, states, all: until >= shape.scans })
}

/// Lists escapes, once the symbols are decoded.
pub(super) fn finish<'a>(
    parts: Parts<'a>,
    shape: BlockShape,
    s: &'a mut DecodeScratch,
    level: Level,
) -> Result<Symbols<'a>> {
    list_escapes(parts, s, level)?;
    Ok(Symbols {
        shape,
        kinds: &s.kinds,
        bases: &s.bases,
        placement: &s.placement,
        symbols: &s.symbols,
        raw: parts.raw,
        escapes: &s.escapes,
        escaped: &s.escaped,
    })
}

/// Decodes the symbols of a modelled block, whose first byte is gone, for the scans before `until`.
///
/// # Errors
/// As [`header`].
pub(super) fn symbols<'a>(
    body: &'a [u8],
    shape: BlockShape,
    bits: u32,
    until: usize,
    scratch: &'a mut DecodeScratch,
    level: Level,
) -> Result<Symbols<'a>> {
    let parts = header(body, shape, bits, until, scratch)?;
    let mut course = Course::new(parts, scratch, level)?;
    course.end()?;
    finish(parts, shape, scratch, level)
}

/// Decodes the symbols of several blocks at once, which takes little longer than one where there are vectors.
///
/// # Errors
/// As [`header`], for any of the blocks.
pub(super) fn run_together<'a>(
    parts: &[Parts<'a>],
    scratch: &'a mut [DecodeScratch],
    level: Level,
) -> Result<()> {
    let courses = parts.iter().zip(scratch.iter_mut()).map(|(parts, s)| Course::new(*parts, s, level));
    let mut courses = courses.collect::<Result<Vec<_>>>()?;
    loop {
        let mut strands = Vec::with_capacity(courses.len());
        let mut rounds = usize::MAX;
        let mut running = Vec::with_capacity(courses.len());
        for (i, course) in courses.iter_mut().enumerate() {
            if let Some((n, slots)) = course.left()? {
                rounds = rounds.min(n);
                running.push(i);
                let out = &mut course.symbols[course.at..];
                strands.extend(course.decoder.as_mut().and_then(|d| d.strand(slots, out)));
            }
        }
        if strands.len() < 2 || strands.len() < running.len() {
            break;
        }
        for strand in &mut strands {
            let out = std::mem::take(&mut strand.out);
            strand.out = &mut out[..rounds];
        }
        let done = wide::rounds_of_several(level, &mut strands);
        if done == 0 {
            break;
        }
        running.iter().for_each(|i| courses[*i].at += done);
    }
    courses.iter_mut().try_for_each(Course::end)
}

/// A block's classes on the way through its symbols.
#[derive(Debug)]
struct Course<'a> {
    decoder: Option<Decoder<'a>>,
    sources: &'a [Source],
    tables: &'a [Box<Slots>],
    ends: &'a [usize],
    symbols: &'a mut [u8],
    class: usize,
    at: usize,
    all: bool,
}

impl<'a> Course<'a> {
    fn new(parts: Parts<'a>, s: &'a mut DecodeScratch, level: Level) -> Result<Self> {
        s.symbols.resize(s.placement.symbols(), 0);
        let constant = s.sources.iter().all(|source| matches!(source, Source::Constant(_)));
        if constant && !parts.coded.is_empty() {
            return Err(Error::corrupt("a block of constants goes on behind them"));
        }
        let decoder = match constant {
            true => None,
            false => Some(Decoder::new(parts.coded, parts.states, level)?),
        };
        let (sources, tables, ends, all) = (&s.sources, &s.tables, &s.ends, parts.all);
        Ok(Self { decoder, sources, tables, ends, symbols: &mut s.symbols, class: 0, at: 0, all })
    }

    /// Symbols of whole rounds that are left in a class, and its slots; ends classes that have none, and fills constant
    /// ones. Nothing is left behind the last class.
    fn left(&mut self) -> Result<Option<(usize, &'a Slots)>> {
        // Classes without an end are not wanted.
        while let (Some(source), Some(end)) = (self.sources.get(self.class), self.ends.get(self.class)) {
            let end = *end;
            let slots = match source {
                Source::Fixed(index) => &*fixed(*index).slots,
                Source::Counted(table) => &*self.tables[*table],
                Source::Constant(symbol) => {
                    self.symbols[self.at..end].fill(*symbol);
                    (self.class, self.at) = (self.class + 1, end);
                    continue;
                }
            };
            let rounds = (end - self.at) / MANY * MANY;
            if rounds > 0 {
                return Ok(Some((rounds, slots)));
            }
            self.decode(slots, end)?;
            self.class += 1;
        }
        Ok(None)
    }

    fn decode(&mut self, slots: &Slots, end: usize) -> Result<()> {
        if let Some(decoder) = &mut self.decoder {
            decoder.run(slots, &mut self.symbols[self.at..end])?;
        }
        self.at = end;
        Ok(())
    }

    /// Decodes all that is left, and checks that it ends as it should.
    fn end(&mut self) -> Result<()> {
        while let Some((rounds, slots)) = self.left()? {
            self.decode(slots, self.at + rounds)?;
        }
        self.decoder.take().filter(|_| self.all).map_or(Ok(()), Decoder::finish)
    }
}

/// Reads what the classes are.
fn classes(r: &mut FieldReader<'_>, bits: u32, s: &mut DecodeScratch) -> Result<()> {
    let n = usize::from(r.u8()?);
    if n == 0 || n > MOST_CLASSES {
        return Err(Error::corrupt(format!("a block has {n} classes, not 1 to {MOST_CLASSES}")));
    }
    s.kinds.clear();
    s.sources.clear();
    for _ in 0..n {
        let (model, shift) = (r.u8()?, r.u8()?);
        let tuple = match model & 63 {
            0 => Tuple::Eight,
            1 => Tuple::Four,
            _ => Tuple::Two,
        };
        let (tuple, source) = match model {
            _ if usize::from(model) < FIXED => {
                (fixed_tuple(usize::from(model)), Source::Fixed(usize::from(model)))
            }
            0x80..=0x82 => (tuple, Source::Counted(0)),
            0xc0..=0xc2 => (tuple, Source::Constant(r.u8()?)),
            _ => return Err(Error::corrupt(format!("a block has a model {model:#x}"))),
        };
        let based = shift & BASED != 0;
        let shift = u32::from(shift & !BASED);
        // A shift without a base is refused for want of a use; so are bases of other tuples than pairs.
        if (shift > 0 && !based) || (based && tuple != Tuple::Two) || shift >= bits {
            return Err(Error::corrupt(format!("a block of {bits}-bit counts has a class of shift {shift}")));
        }
        s.kinds.push(Kind { tuple, shift, based });
        s.sources.push(source);
    }
    const { assert!(COUNTED == 0x80 && CONSTANT == 0xc0) };
    Ok(())
}

/// Reads the class and the base of each unit.
fn units(string: &mut BitReader<'_>, n: usize, s: &mut DecodeScratch) -> Result<()> {
    s.units.clear();
    let classes = s.kinds.len() as i64;
    if classes == 1 {
        s.units.resize(n, 0);
    } else {
        // Each unit takes a bit at least.
        let mut unit = 0;
        for _ in 0..n {
            unit += string.signed()?;
            if unit < 0 || unit >= classes {
                return Err(Error::corrupt(format!("a block has no class {unit}")));
            }
            s.units.push(unit as u8);
        }
    }
    s.bases.clear();
    s.bases.resize(n, 0);
    if s.kinds.iter().all(|k| !k.based) {
        return Ok(());
    }
    let mut before = 0_i64;
    for (unit, base) in s.units.iter().zip(&mut s.bases) {
        let kind = s.kinds[usize::from(*unit)];
        if kind.based {
            let now = (before >> kind.shift) + string.signed()?;
            before = now << kind.shift;
            if now < 0 || before > i64::from(u32::MAX) {
                return Err(Error::corrupt(format!("a block has a base of {before}")));
            }
            *base = before as u32;
        }
    }
    Ok(())
}

/// Finds the escapes among the decoded symbols and reads their counts.
fn list_escapes(parts: Parts<'_>, s: &mut DecodeScratch, level: Level) -> Result<()> {
    s.escapes.clear();
    s.escaped.clear();
    let mut numbers = NibbleReader::new(parts.escapes);
    for (class, (kind, end)) in s.kinds.iter().zip(&s.ends).enumerate() {
        let (start, end) = (s.placement.starts[class], *end);
        match s.sources[class] {
            Source::Constant(ESCAPE) => {
                return Err(Error::corrupt("a class of a block has nothing but escapes"));
            }
            Source::Constant(_) => continue,
            _ => {}
        }
        s.places.clear();
        wide::find(level, ESCAPE, &s.symbols[start..end], &mut s.places);
        for at in &s.places {
            let counts = s.escaped.len();
            s.escapes.push(Escape { class, symbol: start + *at as usize, counts });
            if kind.tuple == Tuple::Eight {
                (0..2).try_for_each(|_| read_four(&mut numbers, &mut s.escaped))?;
                continue;
            }
            for _ in 0..kind.tuple.counts() {
                s.escaped.push(numbers.number()?);
            }
        }
    }
    if parts.all { numbers.finish() } else { Ok(()) }
}

/// Reads half of an escaped tuple of eight.
fn read_four(numbers: &mut NibbleReader<'_>, to: &mut Vec<u32>) -> Result<()> {
    match numbers.byte()? {
        ESCAPE => (0..4).try_for_each(|_| numbers.number().map(|n| to.push(n))),
        symbol => {
            to.extend(Tuple::Four.alphabet().wide[usize::from(symbol)].map(u32::from));
            Ok(())
        }
    }
}

/// A length of at most four bytes of seven bits.
fn varint(r: &mut FieldReader<'_>) -> Result<usize> {
    let mut n = 0;
    for i in 0..4 {
        let byte = r.u8()?;
        n |= usize::from(byte & 127) << (7 * i);
        if byte < 128 {
            return Ok(n);
        }
    }
    Err(Error::corrupt("a length in a block has more than four bytes"))
}
