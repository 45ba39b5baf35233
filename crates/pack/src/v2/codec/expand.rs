//! From symbols to counts in a cube.

#![expect(
    unsafe_code,
    reason = "functions compiled for AVX2, after asking for it; symbols read without asking for each"
)]

use super::count::Count;
use super::decode::{Escape, Symbols};
use super::level::{Bits, Level, Plain};
use super::placement::{GROUP, Kind, Run};
use super::tuples::Tuple;
#[cfg(target_arch = "x86_64")]
use super::{groups, lines};
use std::ops::Range;

/// A block's symbols on their way to counts.
#[derive(Debug)]
pub(super) struct Expansion<'a> {
    symbols: &'a Symbols<'a>,
    /// Spots of all segments, and where those of each segment end.
    spots: Vec<Spot>,
    ends: Vec<usize>,
    /// Whole groups that are written in vectors, and where those of each segment end; places and bases of them.
    stretches: Vec<Stretch>,
    stretch_ends: Vec<usize>,
    starts: Vec<u32>,
    bases: Vec<[u16; GROUP]>,
    /// Listed counts, scan by scan, and where those of each scan begin.
    patches: Vec<Patch>,
    patch_starts: Vec<u32>,
}

/// Places of groups that are written in vectors are below this.
const FAR_APART: usize = 1 << 31;

/// Whether whole groups of a kind are written in stretches, given that their counts have 16 bits.
fn in_stretches(kind: Kind, level: Level) -> bool {
    match level {
        _ if cfg!(not(target_arch = "x86_64")) => false,
        Level::Avx512 => kind.shift <= 8,
        Level::Avx2 => kind.tuple != Tuple::Two,
        Level::Safe => false,
    }
}

/// Counts of a line: four groups of 16 bits.
const LINE: usize = 4 * GROUP;

/// A group in a segment, or four that follow each other directly and are of one kind.
#[derive(Debug, Clone, Copy)]
struct Spot {
    kind: Kind,
    /// Where its counts begin, counted from the beginning of a scan.
    start: usize,
    /// Pixels: those of a line, of a group, or fewer at the end.
    pixels: usize,
    /// First symbols of each group in the segment's first scan, and from one scan to the next.
    codes: [usize; 4],
    steps: [usize; 4],
    /// Raw bytes likewise.
    raw: usize,
    raw_step: usize,
    bases: [u32; 4],
}

/// Groups of one class in a segment whose symbols stand one behind the other.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    kind: Kind,
    /// First symbol in the segment's first scan, and from one scan to the next; raw bytes likewise.
    symbols: usize,
    symbols_step: usize,
    raw: usize,
    raw_step: usize,
    /// Where the groups' places and bases are listed.
    groups: (usize, usize),
}

/// Listed counts of a tuple.
#[derive(Debug, Clone, Copy, Default)]
struct Patch {
    scan: usize,
    start: usize,
    counts: usize,
    n: usize,
}

impl<'a> Expansion<'a> {
    /// Prepares what all scans have in common. Group `g` of a scan begins `starts[g]` counts behind the scan's
    /// beginning.
    pub fn new<T: Count>(symbols: &'a Symbols<'a>, starts: &[usize], level: Level) -> Self {
        let placement = symbols.placement;
        let groups = placement.groups * placement.segments.len();
        let mut out = Self {
            symbols,
            spots: Vec::new(),
            ends: Vec::with_capacity(placement.segments.len()),
            stretches: Vec::with_capacity(symbols.kinds.len()),
            stretch_ends: Vec::with_capacity(placement.segments.len()),
            starts: Vec::with_capacity(groups),
            bases: Vec::with_capacity(groups),
            patches: Vec::new(),
            patch_starts: Vec::new(),
        };
        let whole = symbols.shape.pixels / GROUP;
        // Places far apart are left to plain code.
        let near = starts.iter().all(|s| *s < FAR_APART);
        let level = if T::BYTES == 2 && near { level } else { Level::Safe };
        for (s, segment) in placement.segments.iter().enumerate() {
            let bases = &symbols.bases[s * placement.groups..][..placement.groups];
            let first = out.spots.len();
            for run in placement.runs(segment) {
                let groups = match in_stretches(run.kind, level) {
                    true => run.groups.min(whole.saturating_sub(run.group)),
                    false => 0,
                };
                // Raw bits stand group by group, whatever the class.
                if groups > 0 && run.kind.based {
                    let first = out.starts.len();
                    out.starts.extend(starts[run.group..][..groups].iter().map(|s| *s as u32));
                    out.bases.extend(bases[run.group..][..groups].iter().map(|b| [*b as u16; GROUP]));
                    out.stretches.push(Stretch {
                        kind: run.kind,
                        symbols: run.symbols,
                        symbols_step: run.symbols_step,
                        raw: run.raw,
                        raw_step: run.raw_step,
                        groups: (first, out.starts.len()),
                    });
                }
                for i in groups..run.groups {
                    let group = run.group + i;
                    out.spots.push(Spot {
                        kind: run.kind,
                        start: starts[group],
                        pixels: GROUP.min(symbols.shape.pixels - group * GROUP),
                        codes: [run.symbols + i * run.kind.tuple.symbols(); 4],
                        steps: [run.symbols_step; 4],
                        raw: run.raw + i * run.kind.shift as usize,
                        raw_step: run.raw_step,
                        bases: [bases[group]; 4],
                    });
                }
            }
            if T::BYTES == 2 {
                join_lines(&mut out.spots, first);
            }
            out.add_classes(s, starts, whole, level);
            out.ends.push(out.spots.len());
            out.stretch_ends.push(out.stretches.len());
        }
        out.add_patches(starts);
        out
    }

    /// Finds where listed counts belong.
    fn add_patches(&mut self, starts: &[usize]) {
        let (symbols, scans) = (self.symbols, self.symbols.shape.scans);
        let mut found = Vec::with_capacity(symbols.escapes.len());
        let mut ends = vec![0_u32; scans + 1];
        for escape in symbols.escapes {
            let (place, first, counts) = listed(symbols, escape);
            let real = symbols.shape.pixels.saturating_sub(place.group * GROUP + first);
            let (start, n) = (starts[place.group] + first, real.min(counts.len()));
            // A tuple behind the last pixel has no place.
            if n > 0 {
                ends[place.scan + 1] += 1;
                found.push(Patch { scan: place.scan, start, counts: escape.counts, n });
            }
        }
        for scan in 0..scans {
            ends[scan + 1] += ends[scan];
        }
        self.patch_starts.clone_from(&ends);
        self.patches = vec![Patch::default(); found.len()];
        for patch in found {
            let at = &mut ends[patch.scan];
            self.patches[*at as usize] = patch;
            *at += 1;
        }
    }

    /// Adds the classes without bases in a segment; groups that are whole come first.
    fn add_classes(&mut self, segment: usize, starts: &[usize], whole: usize, level: Level) {
        let kinds = self.symbols.kinds.iter().enumerate();
        for (class, kind) in kinds.filter(|(_, kind)| !kind.based && in_stretches(**kind, level)) {
            let (members, symbols) = self.symbols.placement.members(segment, class);
            let first = self.starts.len();
            let places = members.iter().map(|g| usize::from(*g)).take_while(|g| *g < whole);
            self.starts.extend(places.map(|g| starts[g] as u32));
            self.bases.resize(self.starts.len(), [0; GROUP]);
            if self.starts.len() > first {
                let groups = (first, self.starts.len());
                let symbols_step = members.len() * kind.tuple.symbols();
                self.stretches.push(Stretch {
                    kind: *kind,
                    symbols,
                    symbols_step,
                    raw: 0,
                    raw_step: 0,
                    groups,
                });
            }
        }
    }

    /// Writes the counts of some scans, the first of them at the beginning of `out`. Counts behind the last pixel of the
    /// last group are left out.
    pub fn write<T: Count>(&self, scans: Range<usize>, out: &mut [T], scan_stride: usize, level: Level) {
        match level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected.
            Level::Avx512 => unsafe {
                expand_stretches(self, scans.clone(), out, scan_stride);
                expand_avx2(self, scans.clone(), out, scan_stride);
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected.
            Level::Avx2 => unsafe {
                expand_tables(self, scans.clone(), out, scan_stride);
                expand_avx2(self, scans.clone(), out, scan_stride);
            },
            _ => self.with::<T, Plain>(scans.clone(), out, scan_stride),
        }
        // Listed counts, over what their symbols stood for.
        let patches = self.patch_starts[scans.start] as usize..self.patch_starts[scans.end] as usize;
        for patch in &self.patches[patches] {
            let to = &mut out[(patch.scan - scans.start) * scan_stride + patch.start..][..patch.n];
            let counts = &self.symbols.escaped[patch.counts..][..patch.n];
            to.iter_mut().zip(counts).for_each(|(to, v)| *to = T::narrow(*v));
        }
    }

    #[inline(always)]
    fn with<T: Count, B: Bits>(&self, scans: Range<usize>, out: &mut [T], scan_stride: usize) {
        let mut from = 0;
        for (segment, end) in self.symbols.placement.segments.iter().zip(&self.ends) {
            let spots = &self.spots[from..*end];
            from = *end;
            let range = segment.first.max(scans.start)..segment.end.min(scans.end);
            if range.is_empty() {
                continue;
            }
            let out = &mut out[(range.start - scans.start) * scan_stride..];
            let within = range.start - segment.first..range.end - segment.first;
            for spot in spots {
                let job = Job {
                    symbols: self.symbols.symbols,
                    raw: self.symbols.raw,
                    spot,
                    within: within.clone(),
                };
                let out = &mut out[spot.start..];
                match (spot.kind.tuple, spot.pixels == LINE) {
                    (_, true) if spot.kind.based => job.dense_lines::<T, B>(out, scan_stride),
                    (Tuple::Eight, true) => job.lines_of_eights::<T, B>(out, scan_stride),
                    (Tuple::Four, true) => job.lines_of_fours::<T, B>(out, scan_stride),
                    (Tuple::Two, true) => job.lines_of_pairs::<T, B>(out, scan_stride),
                    _ => job.groups::<T, B>(out, scan_stride),
                }
            }
        }
    }
}

/// Joins groups, from a first spot on, to lines.
fn join_lines(spots: &mut Vec<Spot>, first: usize) {
    let (mut from, mut to) = (first, first);
    while from < spots.len() {
        let mut spot = spots[from];
        let mut used = 1;
        if let Some(four) = spots.get(from..from + 4)
            && spot.kind.shift <= 8
            && four.iter().all(|s| s.kind == spot.kind && s.pixels == GROUP)
            && four.windows(2).all(|w| w[0].start + GROUP == w[1].start)
        {
            spot.pixels = LINE;
            spot.codes = std::array::from_fn(|i| four[i].codes[0]);
            spot.steps = std::array::from_fn(|i| four[i].steps[0]);
            spot.bases = std::array::from_fn(|i| four[i].bases[0]);
            used = 4;
        }
        spots[to] = spot;
        to += 1;
        from += used;
    }
    spots.truncate(to);
}

/// # Safety
/// AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn expand_avx2<T: Count>(e: &Expansion<'_>, scans: Range<usize>, out: &mut [T], scan_stride: usize) {
    e.with::<T, super::level::Bmi2>(scans, out, scan_stride);
}

/// Writes what is written in vectors.
///
/// # Safety
/// AVX-512 F, BW, DQ, VL and VBMI, AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn expand_stretches<T: Count>(e: &Expansion<'_>, scans: Range<usize>, out: &mut [T], scan_stride: usize) {
    e.stretches(
        scans,
        out,
        |kind, stretch, out| lines::write(kind.tuple, kind.based, stretch, out, scan_stride),
        scan_stride,
    );
}

/// Writes what is written from tables.
///
/// # Safety
/// AVX2, BMI1 and BMI2 were detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn expand_tables<T: Count>(e: &Expansion<'_>, scans: Range<usize>, out: &mut [T], scan_stride: usize) {
    e.stretches(
        scans,
        out,
        |kind, stretch, out| groups::write(kind.tuple, stretch, out, scan_stride),
        scan_stride,
    );
}

#[cfg(target_arch = "x86_64")]
impl Expansion<'_> {
    /// Writes all stretches in some scans.
    #[inline(always)]
    fn stretches<T: Count>(
        &self,
        scans: Range<usize>,
        out: &mut [T],
        write: impl Fn(Kind, &lines::Stretch<'_>, &mut [u16]),
        scan_stride: usize,
    ) {
        if T::BYTES != 2 {
            return;
        }
        let out: &mut [u16] = bytemuck::cast_slice_mut(out);
        let mut from = 0;
        for (segment, end) in self.symbols.placement.segments.iter().zip(&self.stretch_ends) {
            let stretches = &self.stretches[from..*end];
            from = *end;
            let range = segment.first.max(scans.start)..segment.end.min(scans.end);
            if range.is_empty() {
                continue;
            }
            let out = &mut out[(range.start - scans.start) * scan_stride..];
            let within = range.start - segment.first;
            for s in stretches {
                let groups = s.groups.0..s.groups.1;
                let stretch = lines::Stretch {
                    symbols: self.symbols.symbols,
                    first: s.symbols + within * s.symbols_step,
                    step: s.symbols_step,
                    raw: self.symbols.raw,
                    raw_first: s.raw + within * s.raw_step,
                    raw_step: s.raw_step,
                    shift: s.kind.shift,
                    starts: &self.starts[groups.clone()],
                    bases: &self.bases[groups],
                    scans: range.len(),
                };
                write(s.kind, &stretch, out);
            }
        }
    }
}

/// A spot in some scans of a segment.
struct Job<'a> {
    symbols: &'a [u8],
    raw: &'a [u8],
    spot: &'a Spot,
    within: Range<usize>,
}

impl Job<'_> {
    /// The symbols of a group.
    #[inline(always)]
    fn codes<const N: usize>(&self, group: usize, within: usize) -> &[u8; N] {
        let at = self.spot.codes[group] + within * self.spot.steps[group];
        self.symbols[at..].first_chunk().expect("symbols of every group in every scan")
    }

    /// Where each group's symbols begin in the first of the scans; panics unless there are `n` for every group in every
    /// one of them, which a placement promises.
    #[inline(always)]
    fn begin(&self, n: usize) -> [usize; 4] {
        for g in 0..4 {
            let last = self.spot.codes[g] + (self.within.end - 1) * self.spot.steps[g];
            assert!(last + n <= self.symbols.len(), "symbols of every group in every scan");
        }
        std::array::from_fn(|g| self.spot.codes[g] + self.within.start * self.spot.steps[g])
    }

    #[inline(always)]
    fn lines_of_eights<T: Count, B: Bits>(&self, out: &mut [T], scan_stride: usize) {
        let tuples = &Tuple::Eight.alphabet().tuples;
        let (mut at, steps) = (self.begin(1), self.spot.steps);
        for i in 0..self.within.len() {
            let (groups, _) = line(out, i * scan_stride).as_chunks_mut();
            for g in 0..4 {
                // SAFETY: `begin` looked at the last one; those before lie before it.
                let [code] = unsafe { B::read(self.symbols, at[g]) };
                groups[g] = B::widen(tuples[usize::from(code)]);
                at[g] += steps[g];
            }
        }
    }

    #[inline(always)]
    fn lines_of_fours<T: Count, B: Bits>(&self, out: &mut [T], scan_stride: usize) {
        let wide = &Tuple::Four.alphabet().wide;
        let (mut at, steps) = (self.begin(2), self.spot.steps);
        for i in 0..self.within.len() {
            let (groups, _) = line(out, i * scan_stride).as_chunks_mut();
            for g in 0..4 {
                // SAFETY: `begin` looked at the last one; those before lie before it.
                let [low, high] = unsafe { B::read(self.symbols, at[g]) };
                groups[g] = B::beside(&wide[usize::from(low)], &wide[usize::from(high)]);
                at[g] += steps[g];
            }
        }
    }

    #[inline(always)]
    fn lines_of_pairs<T: Count, B: Bits>(&self, out: &mut [T], scan_stride: usize) {
        let (mut at, steps) = (self.begin(4), self.spot.steps);
        for i in 0..self.within.len() {
            // SAFETY: `begin` looked at the last one; those before lie before it.
            let codes = unsafe { pairs_of_line::<B>(self.symbols, &mut at, &steps) };
            *line(out, i * scan_stride) = B::nibbles(&codes);
        }
    }

    #[inline(always)]
    fn dense_lines<T: Count, B: Bits>(&self, out: &mut [T], scan_stride: usize) {
        let bases: [u16; LINE] = std::array::from_fn(|i| self.spot.bases[i / GROUP] as u16);
        let (mut at, steps) = (self.begin(4), self.spot.steps);
        for (i, within) in self.within.clone().enumerate() {
            let raw = self.raw.get(self.spot.raw + within * self.spot.raw_step..).unwrap_or_default();
            // SAFETY: `begin` looked at the last one; those before lie before it.
            let codes = unsafe { pairs_of_line::<B>(self.symbols, &mut at, &steps) };
            dense_line::<B>(line(out, i * scan_stride), &codes, &bases, self.spot.kind.shift, raw);
        }
    }

    /// Single groups of any kind.
    #[inline(always)]
    fn groups<T: Count, B: Bits>(&self, out: &mut [T], scan_stride: usize) {
        let (kind, alphabet) = (self.spot.kind, self.spot.kind.tuple.alphabet());
        for (i, within) in self.within.clone().enumerate() {
            let counts = match kind.tuple {
                _ if kind.based => {
                    let mut raw =
                        self.raw.get(self.spot.raw + within * self.spot.raw_step..).unwrap_or_default();
                    dense::<T, B>(
                        pairs::<B>(self.codes::<4>(0, within)),
                        kind.shift,
                        &mut raw,
                        self.spot.bases[0],
                    )
                }
                Tuple::Eight => spread::<T, B>(alphabet.tuples[usize::from(self.codes::<1>(0, within)[0])]),
                Tuple::Four => spread::<T, B>(fours(&alphabet.tuples, self.codes::<2>(0, within))),
                Tuple::Two => spread::<T, B>(pairs::<B>(self.codes::<4>(0, within))),
            };
            let to = &mut out[i * scan_stride..];
            match to.first_chunk_mut().filter(|_| self.spot.pixels == GROUP) {
                Some(eight) => *eight = counts,
                None => to[..self.spot.pixels].copy_from_slice(&counts[..self.spot.pixels]),
            }
        }
    }
}

/// Sixteen symbols of a line of pairs; goes on to the next scan.
///
/// # Safety
/// There are four symbols from each place on.
#[inline(always)]
unsafe fn pairs_of_line<B: Bits>(symbols: &[u8], at: &mut [usize; 4], steps: &[usize; 4]) -> [u8; 16] {
    let mut words = [0; 4];
    for g in 0..4 {
        // SAFETY: the caller's promise.
        words[g] = u32::from_ne_bytes(unsafe { B::read(symbols, at[g]) });
        at[g] += steps[g];
    }
    bytemuck::cast(words)
}

/// Four groups of 16-bit counts.
#[inline(always)]
fn line<T: Count>(out: &mut [T], start: usize) -> &mut [u16; LINE] {
    let counts: &mut [u16] = bytemuck::cast_slice_mut(&mut out[start..][..LINE]);
    counts.try_into().expect("four groups")
}

/// The symbols of a run in one scan, and its raw bits with whatever follows.
#[inline(always)]
pub(super) fn codes<'a>(symbols: &Symbols<'a>, run: &Run, within: usize) -> (&'a [u8], &'a [u8]) {
    let first = run.symbols + within * run.symbols_step;
    let raw = if run.kind.shift > 0 { &symbols.raw[run.raw + within * run.raw_step..] } else { &[] };
    (&symbols.symbols[first..][..run.groups * run.kind.tuple.symbols()], raw)
}

/// Four groups of large counts; the shift is at most 8. What overflows wraps around.
#[inline(always)]
fn dense_line<B: Bits>(
    line: &mut [u16; LINE],
    codes: &[u8; 16],
    bases: &[u16; LINE],
    shift: u32,
    raw: &[u8],
) {
    let (mut low, step) = ([0_u64; 4], shift.min(8) as usize);
    match raw.first_chunk::<LINE>() {
        _ if shift == 0 => {}
        Some(raw) => {
            for (i, low) in low.iter_mut().enumerate() {
                *low = B::spread(eight(&raw[i * step..][..8]), shift);
            }
        }
        None => {
            for (i, low) in low.iter_mut().enumerate() {
                *low = B::spread(eight(raw.get(i * step..).unwrap_or_default()), shift);
            }
        }
    }
    *line = B::join_line(codes, &low, bases, shift);
}

/// Eight counts from bytes.
#[inline(always)]
fn spread<T: Count, B: Bits>(bytes: u64) -> [T; GROUP] {
    if T::BYTES == 2 {
        return bytemuck::cast(B::widen(bytes));
    }
    bytes.to_le_bytes().map(|b| T::narrow(u32::from(b)))
}

/// Eight counts as bytes, of two symbols.
#[inline(always)]
pub(super) fn fours(tuples: &[u64; 256], codes: &[u8]) -> u64 {
    tuples[usize::from(codes[0])] | tuples[usize::from(codes[1])] << 32
}

/// Eight counts as bytes, of four symbols.
#[inline(always)]
pub(super) fn pairs<B: Bits>(codes: &[u8]) -> u64 {
    B::spread(u64::from(u32::from_le_bytes([codes[0], codes[1], codes[2], codes[3]])), 4)
}

/// Eight bytes from the front; zeros behind the end.
#[inline(always)]
fn eight(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(b) => u64::from_le_bytes(*b),
        None => bytes.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b)),
    }
}

/// Eight counts from their high bits as bytes, their raw bits, and the base. What overflows wraps around.
#[inline(always)]
pub(super) fn dense<T: Count, B: Bits>(high: u64, shift: u32, raw: &mut &[u8], base: u32) -> [T; GROUP] {
    if T::BYTES == 2 && shift <= 8 {
        let low = if shift > 0 { B::spread(eight(raw), shift) } else { 0 };
        *raw = raw.get(shift as usize..).unwrap_or_default();
        return bytemuck::cast(B::join(high, low, base as u16, shift));
    }
    let high = high.to_le_bytes();
    let mut counts: [u32; GROUP] = std::array::from_fn(|i| base.wrapping_add(u32::from(high[i]) << shift));
    let mut left = shift;
    while left > 0 {
        let bits = left.min(8);
        let low = B::spread(eight(raw), bits).to_le_bytes();
        for i in 0..GROUP {
            counts[i] = counts[i].wrapping_add(u32::from(low[i]) << (shift - left));
        }
        *raw = raw.get(bits as usize..).unwrap_or_default();
        left -= bits;
    }
    counts.map(T::narrow)
}

/// Where a tuple that is listed begins in its group, and its counts.
#[inline(always)]
pub(super) fn listed<'a>(
    symbols: &Symbols<'a>,
    escape: &Escape,
) -> (super::placement::Place, usize, &'a [u32]) {
    let place = symbols.placement.place(symbols.kinds, escape.class, escape.symbol);
    let n = symbols.kinds[escape.class].tuple.counts();
    (place, place.index * n, &symbols.escaped[escape.counts..][..n])
}
