//! A pack's counts in memory, as few bits each as they need: sums over masks at the speed of memory.
//!
//! Each block has a width of 0, 1, 2, 4, 8, 16 or 32 bits, whichever takes least room with the counts that don't fit listed
//! beside it. A word of 64 bits holds neighbouring pixels of one scan, and the words of all scans stand together: a mask
//! touches only words with pixels of its own, and scans are summed side by side.

#![expect(unsafe_code, reason = "calling functions compiled for AVX2, after asking for it")]

use super::codec::{self, BlockShape, Level, level};
use super::counts::{Sample, with_sample};
use super::layout::{Layout, Rect};
use super::read::{BlockScratch, Pack};
use crate::products::Sum;
use std::sync::{Mutex, OnceLock, PoisonError};
use tensilo_core::limits::Charge;
use tensilo_core::threads::Threads;
use tensilo_core::{Error, Monitor, Result};

/// Widths that a block may have, in bits.
const WIDTHS: [u32; 7] = [0, 1, 2, 4, 8, 16, 32];
/// Bytes of a count that is listed.
const LISTED: u64 = size_of::<Listed>() as u64;

/// All counts of a pack as bit planes, held in memory; excluded pixels count as 0, as in all products.
///
/// ```no_run
/// use tensilo_core::Quiet;
/// let pack = tensilo_pack::v2::read::Pack::open("scan.h5")?;
/// let planes = pack.planes(&Quiet)?;
/// let mask = vec![1; pack.layout().pixels() as usize];
/// assert_eq!(planes.virtual_image(&mask, &Quiet)?, pack.virtual_image(&mask, &Quiet)?);
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Planes {
    layout: Layout,
    threads: Threads,
    /// Tile by tile, rectangle by rectangle.
    blocks: Vec<Block>,
    bytes: u64,
    _charges: Vec<Charge>,
}

/// A count that does not fit the width of its block.
#[derive(Debug, Clone, Copy)]
struct Listed {
    scan: u32,
    pixel: u32,
    /// The bits of the count.
    count: u32,
}

/// How a block's counts stand in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Fields {
    width: u32,
    /// What is added to a field makes the count: 0, or half the fields' range below it.
    base: i64,
}

impl Fields {
    /// The field of a count, if it fits.
    fn of(self, count: i64) -> Option<u64> {
        u64::try_from(count - self.base).ok().filter(|field| *field < 1 << self.width)
    }
}

#[derive(Debug, Default)]
struct Block {
    fields: Fields,
    signed: bool,
    /// Words of the first pixels in all scans, then of the next ones.
    words: Vec<u64>,
    listed: Vec<Listed>,
}

impl Pack {
    /// Loads all counts as planes, on all threads of the pack.
    ///
    /// # Errors
    /// `Limit` when memory is not allowed; errors of reading, the monitor's.
    pub fn planes(&self, monitor: &dyn Monitor) -> Result<Planes> {
        with_sample!(self.layout().counts(), T => loaded::<T>(self, monitor))
    }
}

fn loaded<T: Sample>(pack: &Pack, monitor: &dyn Monitor) -> Result<Planes> {
    let l = pack.layout();
    // A table that agrees with the file's length bounds the number of blocks.
    pack.table(0)?;
    let n = l.tiles().saturating_mul(l.rects());
    let list = n.saturating_mul(size_of::<(Block, OnceLock<()>)>() as u64 + 64);
    let mut charges = vec![pack.budget().bytes(list, "a list of planes")?];
    let made: Vec<OnceLock<(Block, Charge)>> = (0..n).map(|_| OnceLock::new()).collect();
    let scratch = || (BlockScratch::default(), Vec::<T>::new());
    pack.threads().for_each(made.len(), monitor, "loading", n, scratch, |(scratch, counts), i, done| {
        let (tile, number) = (i as u64 / l.rects(), i as u64 % l.rects());
        let shape = pack.block_shape(tile, &l.rect(number));
        let _charge = pack.budget().bytes((shape.counts() * T::BYTES) as u64, "a decoded block")?;
        counts.clear();
        counts.resize(shape.counts(), T::default());
        pack.with_block(tile, number, scratch, |bytes, codec| {
            codec::decode(bytes, shape, counts, codec::Layout::flat(shape), codec)
        })?;
        let signed = l.counts().is_signed();
        let (fields, bytes) = best_fields(counts, shape, signed);
        let charge = pack.budget().bytes(bytes, "planes")?;
        // Each number is asked for once.
        let _ = made[i].set((planes_of(counts, shape, fields, signed), charge));
        done.add(1);
        Ok(())
    })?;
    let (mut blocks, mut bytes) = (Vec::with_capacity(made.len()), 0);
    for (block, charge) in made.into_iter().filter_map(OnceLock::into_inner) {
        bytes += 8 * block.words.len() as u64 + LISTED * block.listed.len() as u64;
        blocks.push(block);
        charges.push(charge);
    }
    Ok(Planes { layout: l.clone(), threads: pack.threads(), blocks, bytes, _charges: charges })
}

/// Words of one scan.
fn words_of(pixels: usize, width: u32) -> usize {
    (pixels * width as usize).div_ceil(64)
}

/// The count that a block has this mapped value for.
#[inline(always)]
fn count_of<T: Sample>(mapped: T, signed: bool) -> i64 {
    if signed { mapped.unzigzag().signed() } else { mapped.widen().into() }
}

/// The fields that take least room, and that room in bytes.
fn best_fields<T: Sample>(counts: &[T], shape: BlockShape, signed: bool) -> (Fields, u64) {
    // How many counts have each number of bits: those from 0 on, and those below it, from -1 on.
    let mut bits = [[0_u64; 33]; 2];
    for v in counts {
        let (of, magnitude) = match signed {
            true => (usize::from(v.widen() & 1 == 1), v.widen() >> 1),
            false => (0, v.widen()),
        };
        bits[of][(32 - magnitude.leading_zeros()) as usize] += 1;
    }
    let above = |of: usize, width: u32| bits[of][width as usize + 1..].iter().sum::<u64>();
    let room = |f: Fields| {
        let listed = match f.base {
            0 => above(0, f.width) + bits[1].iter().sum::<u64>(),
            _ => above(0, f.width - 1) + above(1, f.width - 1),
        };
        8 * (words_of(shape.pixels, f.width) * shape.scans) as u64 + LISTED * listed
    };
    let widths = WIDTHS.into_iter().filter(|w| *w as usize <= 8 * T::BYTES);
    let bases = |width: u32| {
        let below = (signed && width > 0).then(|| Fields { width, base: -(1 << (width - 1)) });
        std::iter::once(Fields { width, base: 0 }).chain(below)
    };
    let all = widths.flat_map(bases).map(|f| (f, room(f)));
    all.min_by_key(|(_, room)| *room).unwrap_or((Fields { width: 32, base: 0 }, u64::MAX))
}

fn planes_of<T: Sample>(counts: &[T], shape: BlockShape, fields: Fields, signed: bool) -> Block {
    let BlockShape { pixels, scans } = shape;
    let words = vec![0; words_of(pixels, fields.width) * scans];
    let mut block = Block { fields, signed, words, listed: Vec::new() };
    let width = fields.width as usize;
    let field = |v: T| fields.of(count_of(v, signed));
    for (scan, row) in counts.chunks_exact(pixels).enumerate() {
        if let Some(each) = 64_usize.checked_div(width) {
            for (k, counts) in row.chunks(each).enumerate() {
                // What is listed has a field of 0.
                let fields = counts.iter().map(|v| field(*v).unwrap_or_default());
                block.words[k * scans + scan] =
                    fields.enumerate().fold(0, |word, (i, v)| word | v << (width * i));
            }
        }
        for (pixel, v) in row.iter().enumerate().filter(|(_, v)| field(**v).is_none()) {
            let count = count_of(*v, signed) as u32;
            block.listed.push(Listed { scan: scan as u32, pixel: pixel as u32, count });
        }
    }
    block
}

impl Planes {
    /// Bytes of memory that hold counts.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sums of every scan over the pixels whose byte in `mask` is not 0, on all threads of the pack.
    ///
    /// # Errors
    /// `InvalidArgument` for signed counts or a mask of another length; the monitor's.
    pub fn virtual_image(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<Vec<u64>> {
        self.image_as(mask, monitor)
    }

    /// The same for signed counts.
    ///
    /// # Errors
    /// `InvalidArgument` for unsigned counts or a mask of another length; the monitor's.
    pub fn signed_virtual_image(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<Vec<i64>> {
        self.image_as(mask, monitor)
    }

    fn image_as<S: Sum>(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<Vec<S>> {
        let l = &self.layout;
        if l.counts().is_signed() != S::SIGNED {
            let sums = if S::SIGNED { "signed" } else { "unsigned" };
            return Err(Error::invalid(format!("{sums} sums of counts of type {}", l.counts())));
        }
        if mask.len() as u64 != l.pixels() {
            return Err(Error::invalid(format!("a mask of {} bytes for {} pixels", mask.len(), l.pixels())));
        }
        let parts: Vec<(usize, Part)> = (0..l.rects())
            .map(|number| (number as usize, Part::new(mask, &l.rect(number), l.columns())))
            .filter(|(_, part)| part.chosen > 0)
            .collect();
        let mut image = vec![0; l.scans() as usize];
        let tiles: Vec<Mutex<&mut [u64]>> =
            image.chunks_mut(l.block().scans as usize).map(Mutex::new).collect();
        let rects = l.rects() as usize;
        let total = tiles.len() as u64;
        self.threads.for_each(tiles.len(), monitor, "summing", total, Vec::new, |part, tile, done| {
            let mut sums = tiles[tile].lock().unwrap_or_else(PoisonError::into_inner);
            for (number, of_rect) in &parts {
                let block = &self.blocks[tile * rects + number];
                add(block, of_rect, &mut sums, part);
            }
            done.add(1);
            Ok(())
        })?;
        drop(tiles);
        Ok(S::of_all_bits(image))
    }
}

/// The part of a mask in a rectangle.
#[derive(Debug)]
struct Part {
    pixels: Vec<bool>,
    /// How many pixels it has.
    chosen: u64,
    /// For each width: the words that have pixels of the mask, and those pixels' bits; made when first needed.
    words: [OnceLock<Vec<(usize, u64)>>; WIDTHS.len()],
}

impl Part {
    fn new(mask: &[u8], rect: &Rect, columns: u64) -> Self {
        let rows = rect.rows.clone().map(|row| (row * columns + rect.columns.start) as usize);
        let pixels: Vec<bool> =
            rows.flat_map(|at| mask[at..at + rect.width()].iter().map(|m| *m != 0)).collect();
        let chosen = pixels.iter().filter(|m| **m).count() as u64;
        Self { pixels, chosen, words: [const { OnceLock::new() }; WIDTHS.len()] }
    }

    fn words(&self, width: u32) -> &[(usize, u64)] {
        let Some(place) = WIDTHS.iter().position(|w| *w == width && width > 0) else { return &[] };
        self.words[place].get_or_init(|| {
            let ones = u64::MAX >> (64 - width);
            let words = self.pixels.chunks(64 / width as usize).map(|pixels| {
                let chosen = pixels.iter().enumerate().filter(|(_, m)| **m);
                chosen.fold(0, |word, (i, _)| word | ones << (width as usize * i))
            });
            words.enumerate().filter(|(_, word)| *word != 0).collect()
        })
    }
}

/// Adds a block's masked sums, as bits; `part` is memory that is used again.
fn add(block: &Block, mask: &Part, sums: &mut [u64], part: &mut Vec<u64>) {
    let (words, base) = (mask.words(block.fields.width), block.fields.base);
    if base != 0 {
        let of_all = (base as u64).wrapping_mul(mask.chosen);
        sums.iter_mut().for_each(|to| *to = to.wrapping_add(of_all));
    }
    match level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 | Level::Avx512 => unsafe { add_avx2(block, words, sums, part) },
        _ => add_words(block, words, sums, part),
    }
    for listed in block.listed.iter().filter(|v| mask.pixels[v.pixel as usize]) {
        let count = if block.signed { i64::from(listed.count as i32) } else { listed.count.into() };
        let to = &mut sums[listed.scan as usize];
        *to = to.wrapping_add((count - base) as u64);
    }
}

/// # Safety
/// AVX2 was detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_avx2(block: &Block, words: &[(usize, u64)], sums: &mut [u64], part: &mut Vec<u64>) {
    add_words(block, words, sums, part);
}

/// Every second field of 2^k bits.
const FIELDS: [u64; 6] = [
    0x5555_5555_5555_5555,
    0x3333_3333_3333_3333,
    0x0f0f_0f0f_0f0f_0f0f,
    0x00ff_00ff_00ff_00ff,
    0x0000_ffff_0000_ffff,
    0x0000_0000_ffff_ffff,
];

/// Adds neighbouring fields of 2^k bits; the sums have twice as many.
#[inline(always)]
fn pair<const K: usize>(x: u64) -> u64 {
    (x & FIELDS[K]) + (x >> (1 << K) & FIELDS[K])
}

/// Sum of eight bytes.
#[inline(always)]
fn of_bytes(x: u64) -> u64 {
    pair::<5>(pair::<4>(pair::<3>(x)))
}

#[inline(always)]
fn add_words(block: &Block, words: &[(usize, u64)], sums: &mut [u64], part: &mut Vec<u64>) {
    let b = block;
    // How many words the fields can add up; a word's sums in fields; one sum of the fields.
    match b.fields.width {
        1 => add_fields(b, words, sums, part, 31, |x| pair::<2>(pair::<1>(pair::<0>(x))), of_bytes),
        2 => add_fields(b, words, sums, part, 21, |x| pair::<2>(pair::<1>(x)), of_bytes),
        4 => add_fields(b, words, sums, part, 8, pair::<2>, of_bytes),
        8 => add_fields(b, words, sums, part, 128, pair::<3>, |x| pair::<5>(pair::<4>(x))),
        16 => add_fields(b, words, sums, part, 1 << 14, pair::<4>, pair::<5>),
        _ => add_fields(b, words, sums, part, 1 << 14, pair::<5>, |x| x),
    }
}

#[inline(always)]
fn add_fields(
    block: &Block,
    words: &[(usize, u64)],
    sums: &mut [u64],
    part: &mut Vec<u64>,
    most: usize,
    fields: impl Fn(u64) -> u64,
    sum: impl Fn(u64) -> u64,
) {
    let scans = sums.len();
    for words in words.chunks(most) {
        part.clear();
        part.resize(scans, 0);
        for (k, mask) in words {
            let plane = &block.words[k * scans..][..scans];
            part.iter_mut().zip(plane).for_each(|(to, word)| *to += fields(word & mask));
        }
        sums.iter_mut().zip(&*part).for_each(|(to, fields)| *to = to.wrapping_add(sum(*fields)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> impl FnMut() -> u32 {
        let mut x = 1_u64;
        move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as u32
        }
    }

    #[test]
    fn blocks_of_every_width_sum_up_to_what_their_counts_do() {
        let mut next = random();
        for (width, signed) in WIDTHS.into_iter().flat_map(|w| [(w, false), (w, true)]) {
            for (pixels, scans) in [(768, 33), (70, 256), (1, 1), (4096, 3)] {
                let shape = BlockShape { pixels, scans };
                // The ends of the width's range everywhere, and now and then another count.
                let ends = match (signed, width) {
                    (true, 1..) => [-(1_i64 << (width - 1)), (1 << (width - 1)) - 1],
                    _ => [(1_i64 << width) - 1; 2],
                };
                let counts: Vec<u32> = (0..shape.counts())
                    .map(|i| {
                        if next().is_multiple_of(97) {
                            return next();
                        }
                        let end = ends[i % 2];
                        if signed { (end as i32 as u32).zigzag() } else { end as u32 }
                    })
                    .collect();
                let (fields, _) = best_fields(&counts, shape, signed);
                if pixels > 1 {
                    assert_eq!(fields, Fields { width, base: ends[0].min(0) }, "{signed} {shape:?}");
                }
                let block = planes_of(&counts, shape, fields, signed);
                let mask: Vec<u8> = (0..pixels).map(|_| u8::from(!next().is_multiple_of(5))).collect();
                let rect = Rect { rows: 0..1, columns: 0..pixels as u64 };
                let part = Part::new(&mask, &rect, pixels as u64);
                let mut sums = vec![1; scans];
                add(&block, &part, &mut sums, &mut Vec::new());
                let mut plain = vec![1; scans];
                add_words(&block, part.words(fields.width), &mut plain, &mut Vec::new());
                for (scan, row) in counts.chunks_exact(pixels).enumerate() {
                    let chosen = row.iter().zip(&mask).filter(|(_, m)| **m != 0);
                    let chosen = chosen.map(|(v, _)| count_of(*v, signed));
                    let expected = 1 + chosen.clone().sum::<i64>();
                    assert_eq!(sums[scan] as i64, expected, "{width} bits, {shape:?}, scan {scan}");
                    let fitting = 1 + chosen.filter_map(|v| fields.of(v)).sum::<u64>();
                    assert_eq!(plain[scan], fitting);
                }
            }
        }
    }
}
