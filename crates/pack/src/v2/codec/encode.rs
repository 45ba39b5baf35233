//! From counts to bytes: units are classed, counts become symbols, symbols become bits.

#![expect(unsafe_code, reason = "calling functions compiled for AVX2, after asking for it")]

use super::ahead::{Ahead, Loader, Room, SATURATED};
use super::bits::{BitWriter, NibbleWriter};
use super::choose::{self, Extent, MOST_CLASSES, Wanted};
use super::count::Count;
use super::fit::{self, Model};
use super::level::{Bits, Level, Plain};
use super::model::{self, EVEN, fixed, fixed_tuple};
use super::placement::{GROUP, Kind, Placement, Run};
use super::rans::{Encoder, FEW, MANY};
#[cfg(target_arch = "x86_64")]
use super::rows;
use super::tuples::{ESCAPE, Tuple};
use super::{BASED, BlockShape, CONSTANT, COUNTED, Layout, MANY_STATES, MODELLED};

/// Memory that encoding re-uses.
#[derive(Debug, Default)]
pub struct EncodeScratch {
    narrow: Vec<u16>,
    wide: Vec<u32>,
    /// For blocks that are copied line by line: one that is coded, and the next.
    rooms: Vec<Room>,
    work: Work,
}

#[derive(Debug, Default)]
struct Work {
    extents: Vec<Extent>,
    #[cfg(target_arch = "x86_64")]
    pieces: rows::Pieces,
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

/// Symbols are worth [`MANY`] states from this many bytes on.
const LARGE: u64 = 1024;

impl EncodeScratch {
    /// Begins to copy a block whose layout was checked, where that is done line by line.
    pub(super) fn loader<'a, T: Count>(
        &mut self,
        values: &'a [T],
        layout: Layout,
        shape: BlockShape,
        level: Level,
    ) -> Option<Loader<'a, T>> {
        let room = self.rooms.pop().unwrap_or_default();
        let loader = Loader::new(values, layout, shape, room, level);
        loader.map_err(|room| self.rooms.push(room)).ok()
    }
}

/// Appends a modelled block, which may be on its way already; goes on with the next one meanwhile. The caller stores the
/// counts instead where this comes out larger.
#[expect(clippy::too_many_arguments, reason = "a block, the next one, and where this one goes")]
pub(super) fn encode<T: Count>(
    values: &[T],
    layout: Layout,
    shape: BlockShape,
    loader: Option<Loader<'_, T>>,
    next: &mut dyn Ahead,
    scratch: &mut EncodeScratch,
    level: Level,
    out: &mut Vec<u8>,
) {
    let EncodeScratch { narrow, wide, rooms, work } = scratch;
    let whole = |scan: usize, pixel: usize| values[layout.at(scan, pixel)].widen();
    let around = &mut Around { next, whole: &whole };
    if let Some(loader) = loader {
        let mut room = loader.finish(&mut work.extents);
        let done = dispatch(&mut room.rows, shape, around, work, level, out);
        rooms.push(room);
        if done {
            return;
        }
    }
    if load(values, layout, shape, narrow) {
        dispatch(narrow, shape, around, work, level, out);
    } else {
        load(values, layout, shape, wide);
        dispatch(wide, shape, around, work, level, out);
    }
}

/// What encoding a block has to do with others, and where its counts come from.
struct Around<'a> {
    next: &'a mut dyn Ahead,
    /// The count of a scan and pixel.
    whole: &'a dyn Fn(usize, usize) -> u32,
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

fn dispatch<W: Count>(
    rows: &mut [W],
    shape: BlockShape,
    around: &mut Around<'_>,
    work: &mut Work,
    level: Level,
    out: &mut Vec<u8>,
) -> bool {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 | Level::Avx512 => unsafe { with_avx2(rows, shape, around, work, level, out) },
        _ => with::<W, Plain>(rows, shape, around, work, level, out),
    }
}

/// # Safety
/// AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx2<W: Count>(
    rows: &mut [W],
    shape: BlockShape,
    around: &mut Around<'_>,
    work: &mut Work,
    level: Level,
    out: &mut Vec<u8>,
) -> bool {
    with::<W, super::level::Bmi2>(rows, shape, around, work, level, out)
}

#[inline(always)]
fn with<W: Count, B: Bits>(
    rows: &mut [W],
    shape: BlockShape,
    around: &mut Around<'_>,
    work: &mut Work,
    level: Level,
    out: &mut Vec<u8>,
) -> bool {
    let groups = shape.pixels.div_ceil(GROUP);
    let segment_bits = 8.min(shape.scans.next_power_of_two().ilog2());
    let segment = 1 << segment_bits;
    if !class::<W>(rows, shape, groups, segment, work) {
        return false;
    }
    pad(rows, shape, groups, segment, work);
    work.placement.set(&work.kinds, &work.units, groups, shape.scans, segment);
    symbols::<W, B>(rows, groups * GROUP, around, work, level);
    let Work { models, symbols, placement, missing, .. } = &mut *work;
    let bytes = fit::models(models, symbols, &placement.starts, missing, level);
    escapes(rows, groups * GROUP, around.whole, work);
    write(work, around.next, segment_bits, bytes, level, out);
    true
}

/// Classes and bases of all units; false where bytes are too narrow for one. Extents of bytes are there already.
#[inline(always)]
fn class<W: Count>(rows: &[W], shape: BlockShape, groups: usize, segment: usize, work: &mut Work) -> bool {
    let stride = groups * GROUP;
    work.wanted.clear();
    work.bases.clear();
    let mut before = None;
    for rows in rows.chunks(segment * stride) {
        if W::BYTES > 1 {
            choose::extents(rows, stride, shape.pixels, &mut work.extents);
        }
        for (group, extent) in work.extents.iter().enumerate() {
            let (at, pixels) = (group * GROUP, GROUP.min(shape.pixels - group * GROUP));
            let (wanted, base) = choose::choose(extent, rows, stride, at, pixels, before);
            let narrow = W::BYTES == 1 && extent.most.iter().any(|v| *v >= SATURATED.into());
            if narrow && matches!(wanted, Wanted::Dense { .. }) {
                return false;
            }
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
    true
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
fn symbols<W: Count, B: Bits>(
    rows: &[W],
    stride: usize,
    around: &mut Around<'_>,
    work: &mut Work,
    level: Level,
) {
    let vectors = W::BYTES == 1 && level >= Level::Avx512 && cfg!(target_arch = "x86_64");
    #[rustfmt::skip]
    let Work { placement, symbols, raw, bases, kinds, #[cfg(target_arch = "x86_64")] pieces, .. } = work;
    symbols.resize(placement.symbols(), 0);
    raw.resize(placement.raw_bytes, 0);
    for (s, segment) in placement.segments.iter().enumerate() {
        let bases = &bases[s * placement.groups..][..placement.groups];
        let rows = &rows[segment.first * stride..segment.end * stride];
        #[cfg(target_arch = "x86_64")]
        if vectors {
            let rows = bytemuck::cast_slice(rows);
            let coding = rows::Coding { placement, kinds, pieces, symbols, raw };
            // SAFETY: the level was detected.
            unsafe { rows::symbols(rows, stride, (s, segment), bases, coding, around.next) };
            continue;
        }
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
    if W::BYTES <= 2 && shift <= 8 {
        let lines = counts.len() / LINE;
        let bases = run_bases.as_chunks::<4>().0;
        for (i, (counts, bases)) in counts.as_chunks::<LINE>().0.iter().zip(bases).enumerate() {
            let counts = &wide::<W, LINE>(counts);
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
            &counts[lines * LINE..],
            &run_bases[done..],
            shift,
            &mut to[4 * done..],
            &mut raw[at..],
        );
    }
    dense_groups::<W, B>(counts, run_bases, shift, to, raw);
}

/// Counts of at most 16 bits in 16 bits.
#[inline(always)]
fn wide<W: Count, const N: usize>(counts: &[W; N]) -> [u16; N] {
    let mut out = [0; N];
    for i in 0..N {
        out[i] = counts[i].widen() as u16;
    }
    out
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
        let (high, low) = if W::BYTES <= 2 && shift <= 8 {
            B::split(&wide(counts), *base as u16, shift)
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
    match W::BYTES {
        1 => return u64::from_le_bytes(bytemuck::cast(*counts)),
        2 => return B::clip(bytemuck::cast_ref(counts)),
        _ => {}
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

/// Lists the counts of all escapes, in the order of symbols.
fn escapes<W: Count>(rows: &[W], stride: usize, whole: &dyn Fn(usize, usize) -> u32, work: &mut Work) {
    let Work { placement, kinds, symbols, escapes, .. } = work;
    escapes.clear();
    for (class, kind) in kinds.iter().enumerate() {
        let (start, end) = (placement.starts[class], placement.starts[class + 1]);
        super::each_from(ESCAPE, &symbols[start..end], |at| {
            let place = placement.place(kinds, class, start + at);
            let first = place.group * GROUP + place.index * kind.tuple.counts();
            let row = &rows[place.scan * stride..];
            let count = |pixel: usize| match row[pixel].widen() {
                v if W::BYTES == 1 && v == u32::from(SATURATED) => whole(place.scan, pixel),
                v => v,
            };
            if kind.tuple == Tuple::Eight {
                for at in [first, first + 4] {
                    escape_four(std::array::from_fn(|i| count(at + i)), escapes);
                }
            } else {
                (0..kind.tuple.counts()).for_each(|i| escapes.number(count(first + i)));
            }
        });
    }
}

/// Lists half of a tuple of eight: its symbol as a tuple of four, and its counts where it has none.
fn escape_four(counts: [u32; 4], escapes: &mut NibbleWriter) {
    let bytes = counts.iter().rev().fold(0, |b, v| b << 8 | u64::from((*v).min(16)));
    let fits = bytes & 0x1010_1010 == 0;
    let symbol =
        if fits { Tuple::Four.alphabet().symbols::<Plain>(Tuple::Four, bytes) as u8 } else { ESCAPE };
    escapes.byte(symbol);
    if symbol == ESCAPE {
        counts.iter().for_each(|v| escapes.number(*v));
    }
}

/// Symbols that are coded before more of the next block is copied: whole rounds of all states.
const PART: usize = 16 * MANY;

/// Header, units, tables, escapes, raw bits and symbols.
fn write(
    work: &mut Work,
    next: &mut dyn Ahead,
    segment_bits: u32,
    symbol_bytes: u64,
    level: Level,
    out: &mut Vec<u8>,
) {
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
    let all = work.placement.symbols();
    work.encoder.begin(states, all, level);
    let per_part = (next.left() * PART).div_ceil(all.max(1));
    for (class, model) in work.models.iter().enumerate().rev() {
        let symbols = &work.symbols[work.placement.starts[class]..work.placement.starts[class + 1]];
        let counted;
        let steps = match model {
            Model::Fixed(index) => &*fixed(*index).steps,
            Model::Counted(f) => {
                counted = model::Steps::new(f);
                &counted
            }
            Model::Constant(_) => continue,
        };
        // Parts of whole rounds, from the end, and what is left at the end first.
        let (whole, rest) = symbols.split_at(symbols.len() / PART * PART);
        work.encoder.run(rest, steps);
        for part in whole.rchunks_exact(PART) {
            next.copy(per_part);
            work.encoder.run(part, steps);
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
