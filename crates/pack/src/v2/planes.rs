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
    count: u32,
}

#[derive(Debug, Default)]
struct Block {
    width: u32,
    /// Words of the first pixels in all scans, then of the next ones.
    words: Vec<u64>,
    listed: Vec<Listed>,
}

impl Pack {
    /// Loads all counts as planes, on all threads of the pack.
    ///
    /// # Errors
    /// `Unsupported` for signed counts; `Limit` when memory is not allowed; errors of reading, the monitor's.
    pub fn planes(&self, monitor: &dyn Monitor) -> Result<Planes> {
        if self.layout().counts().is_signed() {
            return Err(self.in_file(Error::unsupported("products of signed counts")));
        }
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
        let (width, bytes) = best_width(counts, shape);
        let charge = pack.budget().bytes(bytes, "planes")?;
        // Each number is asked for once.
        let _ = made[i].set((planes_of(counts, shape, width), charge));
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

/// The width that takes least room, and that room in bytes.
fn best_width<T: Sample>(counts: &[T], shape: BlockShape) -> (u32, u64) {
    // How many counts have each number of bits.
    let mut bits = [0_u64; 33];
    for v in counts {
        bits[(32 - v.widen().leading_zeros()) as usize] += 1;
    }
    let room = |width: u32| {
        let listed: u64 = bits[width as usize + 1..].iter().sum();
        8 * (words_of(shape.pixels, width) * shape.scans) as u64 + LISTED * listed
    };
    let widths = WIDTHS.into_iter().filter(|w| *w as usize <= 8 * T::BYTES);
    widths.map(|w| (w, room(w))).min_by_key(|(_, room)| *room).unwrap_or((32, u64::MAX))
}

fn planes_of<T: Sample>(counts: &[T], shape: BlockShape, width: u32) -> Block {
    let BlockShape { pixels, scans } = shape;
    let mut block = Block { width, words: vec![0; words_of(pixels, width) * scans], listed: Vec::new() };
    let most = ((1_u64 << width) - 1) as u32;
    for (scan, row) in counts.chunks_exact(pixels).enumerate() {
        if width > 0 {
            for (k, counts) in row.chunks(64 / width as usize).enumerate() {
                let fitting = counts.iter().map(|v| if v.widen() <= most { u64::from(v.widen()) } else { 0 });
                block.words[k * scans + scan] =
                    fitting.enumerate().fold(0, |word, (i, v)| word | v << (width as usize * i));
            }
        }
        for (pixel, v) in row.iter().enumerate().filter(|(_, v)| v.widen() > most) {
            block.listed.push(Listed { scan: scan as u32, pixel: pixel as u32, count: v.widen() });
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
    /// `InvalidArgument` for a mask of another length; the monitor's.
    pub fn virtual_image(&self, mask: &[u8], monitor: &dyn Monitor) -> Result<Vec<u64>> {
        let l = &self.layout;
        if mask.len() as u64 != l.pixels() {
            return Err(Error::invalid(format!("a mask of {} bytes for {} pixels", mask.len(), l.pixels())));
        }
        let parts: Vec<(usize, Part)> = (0..l.rects())
            .map(|number| (number as usize, Part::new(mask, &l.rect(number), l.columns())))
            .filter(|(_, part)| part.pixels.iter().any(|m| *m))
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
                of_rect.words(block.width);
                add(block, of_rect, &mut sums, part);
            }
            done.add(1);
            Ok(())
        })?;
        drop(tiles);
        Ok(image)
    }
}

/// The part of a mask in a rectangle.
#[derive(Debug)]
struct Part {
    pixels: Vec<bool>,
    /// For each width: the words that have pixels of the mask, and those pixels' bits; made when first needed.
    words: [OnceLock<Vec<(usize, u64)>>; WIDTHS.len()],
}

impl Part {
    fn new(mask: &[u8], rect: &Rect, columns: u64) -> Self {
        let rows = rect.rows.clone().map(|row| (row * columns + rect.columns.start) as usize);
        let pixels = rows.flat_map(|at| mask[at..at + rect.width()].iter().map(|m| *m != 0)).collect();
        Self { pixels, words: [const { OnceLock::new() }; WIDTHS.len()] }
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

/// Adds a block's masked sums; `part` is memory that is used again.
fn add(block: &Block, mask: &Part, sums: &mut [u64], part: &mut Vec<u64>) {
    let words = mask.words(block.width);
    match level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 | Level::Avx512 => unsafe { add_avx2(block, words, sums, part) },
        _ => add_words(block, words, sums, part),
    }
    for listed in block.listed.iter().filter(|v| mask.pixels[v.pixel as usize]) {
        sums[listed.scan as usize] += u64::from(listed.count);
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
    match b.width {
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
        sums.iter_mut().zip(&*part).for_each(|(to, fields)| *to += sum(*fields));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_width_sum_up_to_what_their_counts_do() {
        let mut x = 1_u64;
        let mut next = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as u32
        };
        for width in WIDTHS {
            for (pixels, scans) in [(768, 33), (70, 256), (1, 1), (4096, 3)] {
                let shape = BlockShape { pixels, scans };
                let most = ((1_u64 << width) - 1) as u32;
                // The largest counts of the width everywhere, and now and then a larger one.
                let counts: Vec<u32> = (0..shape.counts())
                    .map(|_| if next().is_multiple_of(97) { next() } else { most })
                    .collect();
                let block = planes_of(&counts, shape, width);
                let mask: Vec<u8> = (0..pixels).map(|_| u8::from(!next().is_multiple_of(5))).collect();
                let rect = Rect { rows: 0..1, columns: 0..pixels as u64 };
                let part = Part::new(&mask, &rect, pixels as u64);
                let mut sums = vec![1; scans];
                add(&block, &part, &mut sums, &mut Vec::new());
                let mut plain = vec![1; scans];
                add_words(&block, part.words(width), &mut plain, &mut Vec::new());
                for (scan, row) in counts.chunks_exact(pixels).enumerate() {
                    let chosen = row.iter().zip(&mask).filter(|(_, m)| **m != 0).map(|(v, _)| v);
                    let expected = 1 + chosen.clone().map(|v| u64::from(*v)).sum::<u64>();
                    assert_eq!(sums[scan], expected, "{width} bits, {shape:?}, scan {scan}");
                    let fitting = 1 + chosen.filter(|v| **v <= most).map(|v| u64::from(*v)).sum::<u64>();
                    assert_eq!(plain[scan], fitting);
                }
                assert_eq!(best_width(&vec![most; shape.counts()], shape).0, width);
            }
        }
    }
}
