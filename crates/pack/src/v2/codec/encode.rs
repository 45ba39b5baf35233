//! From counts to bytes: units are classed, counts become symbols, symbols become bits.

#![expect(unsafe_code, reason = "calling functions compiled for AVX2, after asking for it")]

use super::bits::{BitWriter, NibbleWriter};
use super::choose::{self, Extent, MOST_CLASSES, Wanted};
use super::count::Count;
use super::level::{Bits, Level, Plain};
use super::model::{self, EVEN, Frequencies, fixed, fixed_tuple};
use super::placement::{GROUP, Kind, Placement, Run};
use super::rans::{Encoder, FEW, MANY};
use super::tuples::{ESCAPE, Tuple};
use super::{BASED, BlockShape, CONSTANT, COUNTED, Layout, MANY_STATES, MODELLED};

/// Memory that encoding re-uses.
#[derive(Debug, Default)]
pub struct EncodeScratch {
    narrow: Vec<u16>,
    wide: Vec<u32>,
    work: Work,
}

#[derive(Debug, Default)]
struct Work {
    extents: Vec<Extent>,
    wanted: Vec<Wanted>,
    bases: Vec<u32>,
    units: Vec<u8>,
    kinds: Vec<Kind>,
    models: Vec<Model>,
    placement: Placement,
    symbols: Vec<u8>,
    raw: Vec<u8>,
    escapes: NibbleWriter,
    encoder: Encoder,
}

/// How the symbols of a class are coded.
#[derive(Debug)]
enum Model {
    Fixed(usize),
    Counted(Box<Frequencies>),
    Constant(u8),
}

/// Symbols are worth [`MANY`] states from this many bytes on.
const LARGE: u64 = 1024;

/// Appends a modelled block. The caller stores the counts instead where this comes out larger.
pub(super) fn encode<T: Count>(
    values: &[T],
    layout: Layout,
    shape: BlockShape,
    scratch: &mut EncodeScratch,
    level: Level,
    out: &mut Vec<u8>,
) {
    let EncodeScratch { narrow, wide, work } = scratch;
    if T::BYTES > 2 && !load(values, layout, shape, narrow) {
        load(values, layout, shape, wide);
        dispatch(wide, shape, work, level, out);
    } else {
        load(values, layout, shape, narrow);
        dispatch(narrow, shape, work, level, out);
    }
}

/// Copies the counts to whole groups, scan by scan; false where one does not fit.
fn load<T: Count, W: Count>(values: &[T], layout: Layout, shape: BlockShape, to: &mut Vec<W>) -> bool {
    let stride = shape.pixels.next_multiple_of(GROUP);
    to.resize(stride * shape.scans, W::default());
    let mut fits = true;
    for (scan, to) in to.chunks_exact_mut(stride).enumerate() {
        for first in (0..shape.pixels).step_by(layout.columns) {
            let n = layout.columns.min(shape.pixels - first);
            let row = &values[layout.at(scan, first)..][..n];
            for (to, v) in to[first..first + n].iter_mut().zip(row) {
                fits &= v.widen() <= W::MOST;
                *to = W::narrow(v.widen());
            }
        }
        to[shape.pixels..].fill(W::default());
        if !fits {
            return false;
        }
    }
    true
}

fn dispatch<W: Count>(rows: &mut [W], shape: BlockShape, work: &mut Work, level: Level, out: &mut Vec<u8>) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 | Level::Avx512 => unsafe { with_avx2(rows, shape, work, out) },
        _ => with::<W, Plain>(rows, shape, work, out),
    }
}

/// # Safety
/// AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx2<W: Count>(rows: &mut [W], shape: BlockShape, work: &mut Work, out: &mut Vec<u8>) {
    with::<W, super::level::Bmi2>(rows, shape, work, out);
}

#[inline(always)]
fn with<W: Count, B: Bits>(rows: &mut [W], shape: BlockShape, work: &mut Work, out: &mut Vec<u8>) {
    let groups = shape.pixels.div_ceil(GROUP);
    let segment_bits = 8.min(shape.scans.next_power_of_two().ilog2());
    let segment = 1 << segment_bits;
    class::<W>(rows, shape, groups, segment, work);
    pad(rows, shape, groups, segment, work);
    work.placement.set(&work.kinds, &work.units, groups, shape.scans, segment);
    symbols::<W, B>(rows, groups * GROUP, work);
    let bytes = models(work);
    escapes(rows, groups * GROUP, work);
    write(work, segment_bits, bytes, out);
}

/// Classes and bases of all units.
#[inline(always)]
fn class<W: Count>(rows: &[W], shape: BlockShape, groups: usize, segment: usize, work: &mut Work) {
    let stride = groups * GROUP;
    work.extents.clear();
    work.wanted.clear();
    work.bases.clear();
    let mut before = None;
    for rows in rows.chunks(segment * stride) {
        for group in 0..groups {
            let (at, pixels) = (group * GROUP, GROUP.min(shape.pixels - group * GROUP));
            let extent = choose::extent(rows, stride, at, pixels);
            let (wanted, base) = choose::choose(&extent, rows, stride, at, pixels, before);
            work.wanted.push(wanted);
            work.bases.push(base);
            before = Some(wanted);
        }
    }
    let classes = choose::merge(&mut work.wanted, 3, MOST_CLASSES);
    work.units.clear();
    work.units.extend(work.wanted.iter().map(|w| classes.partition_point(|c| c < w) as u8));
    work.kinds.clear();
    work.kinds.extend(classes.iter().map(|w| match w {
        Wanted::Sparse(index) => Kind { tuple: fixed_tuple(usize::from(*index)), shift: 0, based: false },
        Wanted::Dense { shift, .. } => Kind { tuple: Tuple::Two, shift: u32::from(*shift), based: true },
    }));
    work.models.clear();
    work.models.extend(classes.iter().map(|w| match w {
        Wanted::Sparse(index) => Model::Fixed(usize::from(*index)),
        Wanted::Dense { .. } => Model::Fixed(EVEN),
    }));
}

/// Gives the places behind the last pixel counts that cost nothing: their unit's base.
fn pad<W: Count>(rows: &mut [W], shape: BlockShape, groups: usize, segment: usize, work: &Work) {
    let stride = groups * GROUP;
    if stride == shape.pixels {
        return;
    }
    for (rows, bases) in rows.chunks_mut(segment * stride).zip(work.bases.chunks_exact(groups)) {
        let base = W::narrow(bases[groups - 1]);
        rows.chunks_exact_mut(stride).for_each(|row| row[shape.pixels..].fill(base));
    }
}

/// Counts to symbols and raw bits.
#[inline(always)]
fn symbols<W: Count, B: Bits>(rows: &[W], stride: usize, work: &mut Work) {
    let Work { placement, symbols, raw, bases, .. } = work;
    symbols.resize(placement.symbols(), 0);
    raw.resize(placement.raw_bytes + 8, 0);
    for (s, segment) in placement.segments.iter().enumerate() {
        let bases = &bases[s * placement.groups..][..placement.groups];
        for scan in segment.first..segment.end {
            let row = &rows[scan * stride..][..stride];
            let within = scan - segment.first;
            for run in placement.runs(segment) {
                let counts = &row[run.group * GROUP..][..run.groups * GROUP];
                let per = run.kind.tuple.symbols();
                let to = &mut symbols[run.symbols + within * run.symbols_step..][..run.groups * per];
                if run.kind.based {
                    let raw = &mut raw[run.raw + within * run.raw_step..];
                    dense::<W, B>(counts, &bases[run.group..][..run.groups], run, to, raw);
                } else {
                    sparse::<W, B>(counts, run.kind.tuple, to);
                }
            }
        }
    }
}

/// Symbols of groups of small counts.
#[inline(always)]
fn sparse<W: Count, B: Bits>(counts: &[W], tuple: Tuple, to: &mut [u8]) {
    let alphabet = tuple.alphabet();
    let groups = counts.chunks_exact(GROUP).map(|c| bytes(c.try_into().expect("a group")));
    match tuple {
        Tuple::Eight => {
            for (to, bytes) in to.iter_mut().zip(groups) {
                let fits = bytes & 0xfcfc_fcfc_fcfc_fcfc == 0;
                *to = if fits { alphabet.symbols::<B>(tuple, bytes) as u8 } else { ESCAPE };
            }
        }
        Tuple::Four => {
            for (to, bytes) in to.chunks_exact_mut(2).zip(groups) {
                let symbols = alphabet.symbols::<B>(tuple, bytes & 0x0f0f_0f0f_0f0f_0f0f);
                to.copy_from_slice(&(symbols as u16 | too_large(bytes, tuple) as u16).to_le_bytes());
            }
        }
        Tuple::Two => {
            for (to, bytes) in to.chunks_exact_mut(4).zip(groups) {
                let symbols = alphabet.symbols::<B>(tuple, bytes & 0x0f0f_0f0f_0f0f_0f0f);
                to.copy_from_slice(&(symbols | too_large(bytes, tuple)).to_le_bytes());
            }
        }
    }
}

/// Symbols and raw bits of groups of large counts.
#[inline(always)]
fn dense<W: Count, B: Bits>(counts: &[W], bases: &[u32], run: &Run, to: &mut [u8], raw: &mut [u8]) {
    let shift = run.kind.shift;
    let mask = (1_u32 << shift) - 1;
    let mut at = 0;
    for ((counts, base), to) in counts.chunks_exact(GROUP).zip(bases).zip(to.chunks_exact_mut(4)) {
        let counts: &[W; GROUP] = counts.try_into().expect("a group");
        let mut high = [0_u8; GROUP];
        for i in 0..GROUP {
            // A count below the base becomes very large: it is escaped, as those too far above are.
            high[i] = (counts[i].widen().wrapping_sub(*base) >> shift).min(255) as u8;
        }
        let bytes = u64::from_le_bytes(high);
        let symbols = B::squeeze(bytes & 0x0f0f_0f0f_0f0f_0f0f, 4) as u32;
        to.copy_from_slice(&(symbols | too_large(bytes, Tuple::Two)).to_le_bytes());
        let mut left = shift;
        while left > 0 {
            let bits = left.min(8);
            let mut low = [0_u8; GROUP];
            for i in 0..GROUP {
                low[i] = ((counts[i].widen() & mask) >> (shift - left)) as u8;
            }
            let low = if bits < 8 {
                u64::from_le_bytes(low.map(|b| b & ((1 << bits) - 1)))
            } else {
                u64::from_le_bytes(low)
            };
            raw[at..at + 8].copy_from_slice(&B::squeeze(low, bits).to_le_bytes());
            at += bits as usize;
            left -= bits;
        }
    }
}

/// Eight counts as bytes, those above 255 as 255.
#[inline(always)]
fn bytes<W: Count>(counts: &[W; GROUP]) -> u64 {
    let mut out = [0; GROUP];
    for i in 0..GROUP {
        out[i] = counts[i].widen().min(255) as u8;
    }
    u64::from_le_bytes(out)
}

/// All ones in the byte of every tuple, of four or two, that has a count above 15.
#[inline(always)]
fn too_large(bytes: u64, tuple: Tuple) -> u32 {
    let large = bytes & 0xf0f0_f0f0_f0f0_f0f0;
    if large == 0 { 0 } else { too_large_slowly(large, tuple) }
}

#[cold]
fn too_large_slowly(large: u64, tuple: Tuple) -> u32 {
    let (n, bits) = (tuple.symbols(), 64 / tuple.symbols());
    let parts = (0..n).filter(|i| large >> (bits * i) & (u64::MAX >> (64 - bits)) != 0);
    parts.map(|i| 255 << (8 * i)).sum()
}

/// Decides each class's model, escapes what a model lacks, and estimates the bytes of all symbols.
#[inline(always)]
fn models(work: &mut Work) -> u64 {
    let mut bits = 0;
    let Work { models, symbols: all, placement, .. } = work;
    for (class, chosen) in models.iter_mut().enumerate() {
        let symbols = &mut all[placement.starts[class]..placement.starts[class + 1]];
        let Model::Fixed(index) = *chosen else { continue };
        let mut histogram = histogram(symbols);
        let mut distinct = histogram.iter().enumerate().filter(|(_, h)| **h > 0).map(|(s, _)| s as u8);
        match (distinct.next(), distinct.next()) {
            (Some(symbol), None) if symbol != ESCAPE => {
                *chosen = Model::Constant(symbol);
                continue;
            }
            (_, None) => histogram[0] += 1,
            _ => {}
        }
        let model = &fixed(index).frequencies;
        let counted = model::counted(&histogram);
        let own = (model::price(&histogram, &counted) >> 16) + model::written_bits(&counted);
        let missing = |s: usize| histogram[s] > 0 && model[s] == 0;
        let mut escaped = histogram;
        for s in (0..usize::from(ESCAPE)).filter(|s| missing(*s)) {
            escaped[usize::from(ESCAPE)] += std::mem::take(&mut escaped[s]);
        }
        let lost = u64::from(escaped[usize::from(ESCAPE)] - histogram[usize::from(ESCAPE)]);
        let theirs = (model::price(&escaped, model) >> 16) + lost * 16;
        if own < theirs {
            *chosen = Model::Counted(Box::new(counted));
            bits += own;
        } else {
            if lost > 0 {
                symbols.iter_mut().filter(|s| model[usize::from(**s)] == 0).for_each(|s| *s = ESCAPE);
            }
            bits += theirs;
        }
    }
    bits / 8
}

/// How often each symbol occurs.
#[inline(always)]
fn histogram(symbols: &[u8]) -> [u32; 256] {
    // Four of them, so that runs of one symbol don't wait for each other.
    let mut parts = [[0_u32; 256]; 4];
    let mut chunks = symbols.chunks_exact(4);
    for chunk in &mut chunks {
        for (part, symbol) in parts.iter_mut().zip(chunk) {
            part[usize::from(*symbol)] += 1;
        }
    }
    chunks.remainder().iter().for_each(|s| parts[0][usize::from(*s)] += 1);
    std::array::from_fn(|s| parts.iter().map(|p| p[s]).sum())
}

/// Lists the counts of all escapes, in the order of symbols.
fn escapes<W: Count>(rows: &[W], stride: usize, work: &mut Work) {
    let Work { placement, kinds, symbols, escapes, .. } = work;
    escapes.clear();
    for (class, kind) in kinds.iter().enumerate() {
        let (start, end) = (placement.starts[class], placement.starts[class + 1]);
        super::each_escape(&symbols[start..end], |at| {
            let place = placement.place(kinds, class, start + at);
            let first = place.scan * stride + place.group * GROUP + place.index * kind.tuple.counts();
            let counts = &rows[first..first + kind.tuple.counts()];
            if kind.tuple == Tuple::Eight {
                counts.chunks_exact(4).for_each(|four| escape_four(four, escapes));
            } else {
                counts.iter().for_each(|v| escapes.number(v.widen()));
            }
        });
    }
}

/// Lists half of a tuple of eight: its symbol as a tuple of four, and its counts where it has none.
fn escape_four<W: Count>(counts: &[W], escapes: &mut NibbleWriter) {
    let bytes = counts.iter().rev().fold(0, |b, v| b << 8 | u64::from(v.widen().min(16)));
    let fits = bytes & 0x1010_1010 == 0;
    let symbol =
        if fits { Tuple::Four.alphabet().symbols::<Plain>(Tuple::Four, bytes) as u8 } else { ESCAPE };
    escapes.byte(symbol);
    if symbol == ESCAPE {
        counts.iter().for_each(|v| escapes.number(v.widen()));
    }
}

/// Header, units, tables, escapes, raw bits and symbols.
fn write(work: &mut Work, segment_bits: u32, symbol_bytes: u64, out: &mut Vec<u8>) {
    let states = if symbol_bytes < LARGE { FEW } else { MANY };
    let flag = if states == MANY { MANY_STATES } else { 0 };
    out.extend([MODELLED, segment_bits as u8 | flag, work.kinds.len() as u8]);
    let mut bits = BitWriter::default();
    for (kind, model) in work.kinds.iter().zip(&work.models) {
        let shift = kind.shift as u8 | if kind.based { BASED } else { 0 };
        match model {
            Model::Fixed(index) => out.extend([*index as u8, shift]),
            Model::Counted(_) => out.extend([COUNTED | kind.tuple as u8, shift]),
            Model::Constant(symbol) => out.extend([CONSTANT | kind.tuple as u8, shift, *symbol]),
        }
    }
    if work.kinds.len() > 1 {
        let mut before = 0;
        for unit in &work.units {
            bits.signed(i64::from(*unit) - before);
            before = i64::from(*unit);
        }
    }
    let mut before = 0;
    for (unit, base) in work.units.iter().zip(&work.bases) {
        let kind = work.kinds[usize::from(*unit)];
        if kind.based {
            bits.signed(i64::from(base >> kind.shift) - (before >> kind.shift));
            before = i64::from(*base);
        }
    }
    for model in &work.models {
        if let Model::Counted(f) = model {
            model::write_frequencies(f, &mut bits);
        }
    }
    let mut string = Vec::new();
    bits.finish(&mut string);
    let escapes = work.escapes.finish();
    varint(string.len(), out);
    varint(escapes.len(), out);
    out.append(&mut string);
    out.extend_from_slice(escapes);
    out.extend_from_slice(&work.raw[..work.placement.raw_bytes]);
    if work.models.iter().all(|m| matches!(m, Model::Constant(_))) {
        return;
    }
    work.encoder.begin(states);
    for (class, model) in work.models.iter().enumerate().rev() {
        let symbols = &work.symbols[work.placement.starts[class]..work.placement.starts[class + 1]];
        match model {
            Model::Fixed(index) => work.encoder.run(symbols, &fixed(*index).steps),
            Model::Counted(f) => work.encoder.run(symbols, &model::steps(f)),
            Model::Constant(_) => {}
        }
    }
    work.encoder.finish(out);
}

/// Seven bits to a byte, the lowest first; the highest bit says that more follow.
fn varint(mut n: usize, out: &mut Vec<u8>) {
    while n > 127 {
        out.push(n as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
}
