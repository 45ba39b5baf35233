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
    missing: Vec<u32>,
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

/// Scans that are fetched into the cache before they are copied.
const AHEAD: usize = 2;

/// Fetches a row into the cache, if there is one.
#[inline(always)]
fn prefetch<T: Count>(counts: &[T], at: usize, columns: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..columns * T::BYTES).step_by(64) {
        if let Some(first) = counts.get(at + line / T::BYTES) {
            // SAFETY: fetching changes nothing, whatever the address; this one is inside the slice.
            unsafe { std::arch::x86_64::_mm_prefetch::<3>(std::ptr::from_ref(first).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (counts, at, columns);
}

/// Copies the counts to whole groups, scan by scan; false where one does not fit.
fn load<T: Count, W: Count>(values: &[T], layout: Layout, shape: BlockShape, to: &mut Vec<W>) -> bool {
    let stride = shape.pixels.next_multiple_of(GROUP);
    to.resize(stride * shape.scans, W::default());
    let columns = layout.columns.min(shape.pixels);
    for (scan, to) in to.chunks_exact_mut(stride).enumerate() {
        let (to, padding) = to.split_at_mut(shape.pixels);
        padding.fill(W::default());
        let from = &values[scan * layout.scan_stride..];
        for (row, to) in to.chunks_mut(columns).enumerate() {
            // Rows of a few scans later: too far apart for the processor to see where they are.
            prefetch(from, AHEAD * layout.scan_stride + row * layout.row_stride, columns);
            let from = &from[row * layout.row_stride..][..to.len()];
            if T::BYTES == W::BYTES {
                // In pieces of a size that is known: no call for each row.
                let from: &[W] = bytemuck::cast_slice(from);
                let ((pieces, rest), (to, to_rest)) = (from.as_chunks::<32>(), to.as_chunks_mut::<32>());
                to.iter_mut().zip(pieces).for_each(|(to, from)| *to = *from);
                to_rest.copy_from_slice(rest);
                continue;
            }
            let mut most = 0;
            for (to, v) in to.iter_mut().zip(from) {
                most = most.max(v.widen());
                *to = W::narrow(v.widen());
            }
            if most > W::MOST {
                return false;
            }
        }
    }
    true
}

fn dispatch<W: Count>(rows: &mut [W], shape: BlockShape, work: &mut Work, level: Level, out: &mut Vec<u8>) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 | Level::Avx512 => unsafe { with_avx2(rows, shape, work, level, out) },
        _ => with::<W, Plain>(rows, shape, work, level, out),
    }
}

/// # Safety
/// AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx2<W: Count>(rows: &mut [W], shape: BlockShape, work: &mut Work, level: Level, out: &mut Vec<u8>) {
    with::<W, super::level::Bmi2>(rows, shape, work, level, out);
}

#[inline(always)]
fn with<W: Count, B: Bits>(
    rows: &mut [W],
    shape: BlockShape,
    work: &mut Work,
    level: Level,
    out: &mut Vec<u8>,
) {
    let groups = shape.pixels.div_ceil(GROUP);
    let segment_bits = 8.min(shape.scans.next_power_of_two().ilog2());
    let segment = 1 << segment_bits;
    class::<W>(rows, shape, groups, segment, work);
    pad(rows, shape, groups, segment, work);
    work.placement.set(&work.kinds, &work.units, groups, shape.scans, segment);
    symbols::<W, B>(rows, groups * GROUP, work);
    let bytes = models(work);
    escapes(rows, groups * GROUP, work);
    write(work, segment_bits, bytes, level, out);
}

/// Classes and bases of all units.
#[inline(always)]
fn class<W: Count>(rows: &[W], shape: BlockShape, groups: usize, segment: usize, work: &mut Work) {
    let stride = groups * GROUP;
    work.wanted.clear();
    work.bases.clear();
    let mut before = None;
    for rows in rows.chunks(segment * stride) {
        choose::extents(rows, stride, shape.pixels, &mut work.extents);
        for (group, extent) in work.extents.iter().enumerate() {
            let (at, pixels) = (group * GROUP, GROUP.min(shape.pixels - group * GROUP));
            let (wanted, base) = choose::choose(extent, rows, stride, at, pixels, before);
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
    raw.resize(placement.raw_bytes, 0);
    for (s, segment) in placement.segments.iter().enumerate() {
        let bases = &bases[s * placement.groups..][..placement.groups];
        let rows = &rows[segment.first * stride..segment.end * stride];
        for run in placement.runs(segment) {
            let (n, per) = (run.groups, run.kind.tuple.symbols());
            let bases = &bases[run.group..][..n];
            for (within, row) in rows.chunks_exact(stride).enumerate() {
                let counts = &row[run.group * GROUP..][..n * GROUP];
                let to = &mut symbols[run.symbols + within * run.symbols_step..][..n * per];
                if run.kind.based {
                    let raw = &mut raw[run.raw + within * run.raw_step..][..n * run.kind.shift as usize];
                    dense::<W, B>(counts, bases, run, to, raw);
                } else {
                    sparse::<W, B>(counts, run.kind.tuple, to);
                }
            }
        }
    }
}

/// Counts of a line: four groups.
const LINE: usize = 4 * GROUP;

/// Symbols of groups of small counts, by fours of groups where that is possible.
#[inline(always)]
fn sparse<W: Count, B: Bits>(counts: &[W], tuple: Tuple, to: &mut [u8]) {
    if W::BYTES != 2 || tuple == Tuple::Eight {
        return sparse_groups::<W, B>(counts, tuple, to);
    }
    let alphabet = tuple.alphabet();
    let per = 4 * tuple.symbols();
    for (counts, to) in counts.chunks(LINE).zip(to.chunks_mut(per)) {
        let line: Option<&[u16; LINE]> = bytemuck::cast_slice(counts).try_into().ok();
        let Some((pairs, true)) = line.map(B::pairs) else {
            sparse_groups::<W, B>(counts, tuple, to);
            continue;
        };
        if tuple == Tuple::Two {
            to.copy_from_slice(&pairs);
            continue;
        }
        let mut symbols = 0_u64;
        for (i, key) in pairs.as_chunks::<2>().0.iter().enumerate() {
            symbols |= u64::from(alphabet.symbol_of_four(u16::from_le_bytes(*key))) << (8 * i);
        }
        to.copy_from_slice(&symbols.to_le_bytes());
    }
}

/// Symbols of single groups of small counts.
#[inline(always)]
fn sparse_groups<W: Count, B: Bits>(counts: &[W], tuple: Tuple, to: &mut [u8]) {
    let alphabet = tuple.alphabet();
    let groups = counts.chunks_exact(GROUP).map(|c| bytes::<W, B>(c.try_into().expect("a group")));
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
fn dense<W: Count, B: Bits>(counts: &[W], run_bases: &[u32], run: &Run, to: &mut [u8], raw: &mut [u8]) {
    let shift = run.kind.shift;
    let mut at = 0;
    if W::BYTES == 2 && shift <= 8 {
        let lines = counts.len() / LINE;
        let (counts, bases) = (bytemuck::cast_slice::<W, u16>(counts), run_bases.as_chunks::<4>().0);
        for (i, (counts, bases)) in counts.as_chunks::<LINE>().0.iter().zip(bases).enumerate() {
            let (pairs, small, low) = B::split_line(counts, &bases.map(|b| b as u16), shift);
            let to = &mut to[4 * GROUP / 2 * i..][..16];
            to.copy_from_slice(&pairs);
            if !small {
                for (g, to) in to.chunks_exact_mut(4).enumerate() {
                    let counts = counts[g * GROUP..].first_chunk().expect("a group");
                    let (high, _) = B::split(counts, bases[g] as u16, shift);
                    let symbols = B::squeeze(high & 0x0f0f_0f0f_0f0f_0f0f, 4) as u32;
                    to.copy_from_slice(&(symbols | too_large(high, Tuple::Two)).to_le_bytes());
                }
            }
            for low in low.iter().filter(|_| shift > 0) {
                put_low::<B>(*low, shift, &mut raw[at..]);
                at += shift as usize;
            }
        }
        let done = lines * 4;
        return dense_groups::<W, B>(
            bytemuck::cast_slice(&counts[lines * LINE..]),
            &run_bases[done..],
            shift,
            &mut to[4 * done..],
            &mut raw[at..],
        );
    }
    dense_groups::<W, B>(counts, run_bases, shift, to, raw);
}

/// Appends the low bits of a group at the beginning of `raw`; what is written too far is written again by the next group.
#[inline(always)]
fn put_low<B: Bits>(low: u64, shift: u32, raw: &mut [u8]) {
    let bits = B::squeeze(low, shift).to_le_bytes();
    match raw.first_chunk_mut() {
        Some(eight) => *eight = bits,
        None => raw[..shift as usize].copy_from_slice(&bits[..shift as usize]),
    }
}

/// Symbols and raw bits of single groups of large counts.
#[inline(always)]
fn dense_groups<W: Count, B: Bits>(counts: &[W], bases: &[u32], shift: u32, to: &mut [u8], raw: &mut [u8]) {
    let mut at = 0;
    for ((counts, base), to) in counts.chunks_exact(GROUP).zip(bases).zip(to.chunks_exact_mut(4)) {
        let counts: &[W; GROUP] = counts.try_into().expect("a group");
        let (high, low) = if W::BYTES == 2 && shift <= 8 {
            B::split(bytemuck::cast_ref(counts), *base as u16, shift)
        } else {
            split(counts, *base, shift)
        };
        let symbols = B::squeeze(high & 0x0f0f_0f0f_0f0f_0f0f, 4) as u32;
        to.copy_from_slice(&(symbols | too_large(high, Tuple::Two)).to_le_bytes());
        if shift > 8 {
            low_bits::<W, B>(counts, shift, &mut raw[at..at + shift as usize]);
        } else if shift > 0 {
            put_low::<B>(low, shift, &mut raw[at..]);
        }
        at += shift as usize;
    }
}

/// High parts of eight counts as bytes, and their low bits where those are at most eight each.
#[inline(always)]
fn split<W: Count>(counts: &[W; GROUP], base: u32, shift: u32) -> (u64, u64) {
    let (mut high, mut low) = ([0_u8; GROUP], [0_u8; GROUP]);
    for i in 0..GROUP {
        let v = counts[i].widen();
        high[i] = if v < base { 255 } else { ((v - base) >> shift).min(255) as u8 };
        low[i] = (v & ((1 << shift) - 1)) as u8;
    }
    (u64::from_le_bytes(high), u64::from_le_bytes(low))
}

/// Raw bits of eight counts: whole bytes of each, then the rest.
#[inline(always)]
fn low_bits<W: Count, B: Bits>(counts: &[W; GROUP], shift: u32, raw: &mut [u8]) {
    for (i, raw) in raw.chunks_mut(GROUP).enumerate() {
        let left = (shift - 8 * i as u32).min(8);
        let mut low = [0_u8; GROUP];
        for (low, v) in low.iter_mut().zip(counts) {
            *low = ((v.widen() >> (8 * i)) & ((1 << left) - 1)) as u8;
        }
        raw.copy_from_slice(&B::squeeze(u64::from_le_bytes(low), left).to_le_bytes()[..left as usize]);
    }
}

/// Eight counts as bytes, those above 255 as 255.
#[inline(always)]
fn bytes<W: Count, B: Bits>(counts: &[W; GROUP]) -> u64 {
    if W::BYTES == 2 {
        return B::clip(bytemuck::cast_ref(counts));
    }
    u64::from_le_bytes(counts.map(|v| v.widen().min(255) as u8))
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
    let Work { models, symbols: all, placement, missing, .. } = work;
    for (class, chosen) in models.iter_mut().enumerate() {
        let symbols = &mut all[placement.starts[class]..placement.starts[class + 1]];
        let Model::Fixed(index) = *chosen else { continue };
        let model = &fixed(index).frequencies;
        if let Some(estimate) = fixed_will_do(symbols, model) {
            escape_missing(symbols, model, missing);
            bits += estimate;
            continue;
        }
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
        let lacks = |s: usize| histogram[s] > 0 && model[s] == 0;
        let mut escaped = histogram;
        for s in (0..usize::from(ESCAPE)).filter(|s| lacks(*s)) {
            escaped[usize::from(ESCAPE)] += std::mem::take(&mut escaped[s]);
        }
        let lost = u64::from(escaped[usize::from(ESCAPE)] - histogram[usize::from(ESCAPE)]);
        let theirs = (model::price(&escaped, model) >> 16) + lost * 16;
        // A table takes 256 bits at least, and more than that in all but the plainest cases.
        let own = (theirs > 512).then(|| {
            let counted = model::counted(&histogram);
            let bits = (model::price(&histogram, &counted) >> 16) + model::written_bits(&counted);
            (bits, counted)
        });
        if let Some((own, counted)) = own
            && own < theirs
        {
            *chosen = Model::Counted(Box::new(counted));
            bits += own;
        } else {
            if lost > 0 {
                escape_missing(symbols, model, missing);
            }
            bits += theirs;
        }
    }
    bits / 8
}

/// Bytes of a sample, and how far samples are apart.
const SAMPLE: usize = 128;
const APART: usize = 512;

/// Bits of the symbols by a fixed model, roughly, where every fourth of many symbols shows that it fits well: then no
/// table of their own pays.
#[inline(always)]
fn fixed_will_do(symbols: &[u8], model: &Frequencies) -> Option<u64> {
    if symbols.len() < 4 * APART {
        return None;
    }
    let mut parts = [[0_u32; 256]; 4];
    let mut seen = 0;
    for sample in symbols.chunks(APART) {
        let sample = &sample[..SAMPLE.min(sample.len())];
        count(sample, &mut parts);
        seen += sample.len() as u64;
    }
    let mut histogram = total(&parts);
    // What the sample would take by itself, at best.
    let least = model::entropy(&histogram);
    let escape = usize::from(ESCAPE);
    let lost: u32 = (0..escape).filter(|s| model[*s] == 0).map(|s| std::mem::take(&mut histogram[s])).sum();
    histogram[escape] += lost;
    let theirs = (model::price(&histogram, model) >> 16) + u64::from(lost) * 16;
    // A table takes some 400 bits where so many symbols occur.
    let scaled = |bits: u64| bits * symbols.len() as u64 / seen;
    // One symbol may be all there is, which takes less than any model says.
    (least > 0 && scaled(theirs) < scaled(least) + 400).then(|| scaled(theirs))
}

/// Makes escapes of symbols that a model lacks: mostly the last ones, which are rare.
#[inline(always)]
fn escape_missing(symbols: &mut [u8], model: &Frequencies, missing: &mut Vec<u32>) {
    let first = model.iter().position(|f| *f == 0).unwrap_or(255) as u8;
    missing.clear();
    super::each_from(first, symbols, |at| missing.push(at as u32));
    for at in missing.iter() {
        let symbol = &mut symbols[*at as usize];
        if model[usize::from(*symbol)] == 0 {
            *symbol = ESCAPE;
        }
    }
}

/// How often each symbol occurs.
#[inline(always)]
fn histogram(symbols: &[u8]) -> [u32; 256] {
    let mut parts = [[0_u32; 256]; 4];
    count(symbols, &mut parts);
    total(&parts)
}

/// Counts symbols in four lists, so that runs of one symbol don't wait for each other.
#[inline(always)]
fn count(symbols: &[u8], parts: &mut [[u32; 256]; 4]) {
    let (words, rest) = symbols.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        for i in 0..8 {
            parts[i % 4][(word >> (8 * i)) as usize & 255] += 1;
        }
    }
    rest.iter().for_each(|s| parts[0][usize::from(*s)] += 1);
}

#[inline(always)]
fn total(parts: &[[u32; 256]; 4]) -> [u32; 256] {
    std::array::from_fn(|s| parts.iter().map(|p| p[s]).sum())
}

/// Lists the counts of all escapes, in the order of symbols.
fn escapes<W: Count>(rows: &[W], stride: usize, work: &mut Work) {
    let Work { placement, kinds, symbols, escapes, .. } = work;
    escapes.clear();
    for (class, kind) in kinds.iter().enumerate() {
        let (start, end) = (placement.starts[class], placement.starts[class + 1]);
        super::each_from(ESCAPE, &symbols[start..end], |at| {
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
fn write(work: &mut Work, segment_bits: u32, symbol_bytes: u64, level: Level, out: &mut Vec<u8>) {
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
    work.encoder.begin(states, work.placement.symbols(), level);
    for (class, model) in work.models.iter().enumerate().rev() {
        let symbols = &work.symbols[work.placement.starts[class]..work.placement.starts[class + 1]];
        match model {
            Model::Fixed(index) => work.encoder.run(symbols, &fixed(*index).steps),
            Model::Counted(f) => work.encoder.run(symbols, &model::Steps::new(f)),
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
