//! Tiles of uint8 values, 64 pixels at a time: the hot loops of packing and unpacking.
//!
//! A strip is 32 scans of up to 64 neighbouring pixels, as rows. Packing transposes it eight by eight, so that one
//! 64-bit word holds eight consecutive scans of one pixel, and squeezes the eight bytes to `w` bits each; four such words
//! make a tile. Unpacking is the reverse. No value-dependent branch. [`format::tile`](crate::format::tile) states the
//! same rule plainly; tests compare the two.
//!
//! For any processor everything works on eight words side by side, one of each eight pixels, in plain arrays, and squeezes
//! with three rounds of masks and shifts; with AVX2 and BMI2, registers are riffled and `pext` squeezes. Which of the two
//! runs is asked at run time.

#![expect(unsafe_code, reason = "calling functions compiled for AVX2, after asking for it")]

use crate::profile::Profile;

/// Pixels of a strip.
pub(crate) const STRIP: usize = 64;

/// Bytes behind each staged piece that a fixed-length copy may read.
pub(crate) const PAD: usize = 256;

/// Pixels that are packed and gathered together.
pub(crate) fn piece(profile: Profile) -> usize {
    match profile {
        Profile::ExactUint8BitPacked => 8 * STRIP,
        Profile::ExactUint16Lz4 => STRIP,
    }
}

/// Bytes behind the staged pieces of one tile in each of the two shards that a single pass stages.
pub(crate) fn padding(profile: Profile, pixels: u64) -> u64 {
    2 * PAD as u64 * pixels.div_ceil(piece(profile) as u64)
}
/// Scans of a tile.
pub(crate) const TILE: usize = 32;
/// Rows of a strip: 32 scans of 64 pixels.
pub(crate) type Rows = [[u8; STRIP]; TILE];
/// Bytes that packing may write, and unpacking may read, behind the last tile.
pub(crate) const SLACK: usize = 8;

/// A word of each of eight groups of eight pixels.
type Lanes = [u64; 8];

const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
const PAIRS: u64 = 0x0000_ffff_0000_ffff;
const FOURS: u64 = 0x0000_0000_ffff_ffff;

#[inline(always)]
fn map2(a: &Lanes, b: &Lanes, f: impl Fn(u64, u64) -> u64) -> Lanes {
    let mut out = [0; 8];
    for i in 0..8 {
        out[i] = f(a[i], b[i]);
    }
    out
}

/// Eight bytes below 2^w, squeezed to `w` bits each; the lowest byte first.
#[inline(always)]
fn squeeze_word(x: u64, w: u64) -> u64 {
    let x = (x & BYTES) | ((x & !BYTES) >> ((8 - w) & 63));
    let x = (x & PAIRS) | ((x & !PAIRS) >> ((16 - 2 * w) & 63));
    (x & FOURS) | (x >> 32) << ((4 * w) & 63)
}

/// Undoes [`squeeze_word`]; bits of `x` above 8w are ignored.
#[inline(always)]
fn spread_word(x: u64, w: u64) -> u64 {
    // The low bits of the word, of each half and of each quarter that are kept in each round.
    let low = |bits: u64| (1_u64 << (bits & 63)) - 1;
    let (four, two, one) = (low(4 * w), low(2 * w), low(w));
    let two = two | two << 32;
    let one = one | one << 16;
    let one = one | one << 32;
    let x = (x & four) | (x >> ((4 * w) & 63) & four) << 32;
    let x = (x & two) | (x & !two) << ((16 - 2 * w) & 63);
    (x & one) | (x & !one) << ((8 - w) & 63)
}

/// Widths of eight tiles of one pixel as nibbles, the first lowest.
#[inline]
pub(crate) fn nibbles(widths: [u8; 8]) -> u32 {
    squeeze_word(u64::from_le_bytes(widths), 4) as u32
}

/// Transposes eight rows of eight bytes, in all lanes.
#[inline(always)]
fn transpose_lanes(mut r: [Lanes; 8]) -> [Lanes; 8] {
    macro_rules! swap {
        ($distance:literal, $shift:literal, $mask:expr) => {
            for i in 0..8 {
                if i & $distance == 0 {
                    let moved = map2(&r[i], &r[i + $distance], |a, b| ((a >> $shift) ^ b) & $mask);
                    r[i] = map2(&r[i], &moved, |a, m| a ^ m << $shift);
                    r[i + $distance] = map2(&r[i + $distance], &moved, |b, m| b ^ m);
                }
            }
        };
    }
    swap!(4, 32, FOURS);
    swap!(2, 16, PAIRS);
    swap!(1, 8, BYTES);
    r
}

/// Transposes eight rows of eight bytes.
#[inline]
pub(crate) fn transpose(mut r: [u64; 8]) -> [u64; 8] {
    let mut swap = |distance: usize, shift: u32, mask: u64| {
        for i in 0..8 {
            if i & distance == 0 {
                let moved = ((r[i] >> shift) ^ r[i + distance]) & mask;
                r[i] ^= moved << shift;
                r[i + distance] ^= moved;
            }
        }
    };
    swap(4, 32, FOURS);
    swap(2, 16, PAIRS);
    swap(1, 8, BYTES);
    r
}

#[inline(always)]
fn lanes(row: &[u8; STRIP]) -> Lanes {
    let (words, _) = row.as_chunks::<8>();
    let mut out = [0; 8];
    for (to, bytes) in out.iter_mut().zip(words) {
        *to = u64::from_le_bytes(*bytes);
    }
    out
}

/// Narrows a strip of raw frames of `pixels` values each; also returns the bits that any value of a pixel has.
/// Values above 255 lose their upper bits: look at the returned bits first.
#[inline]
pub(crate) fn narrow(raw: &[u16], pixels: usize, at: usize, n: usize) -> (Rows, [u16; STRIP]) {
    #[cfg(target_arch = "x86_64")]
    if avx2() {
        // SAFETY: AVX2 was just detected.
        return unsafe { x86::narrow(raw, pixels, at, n) };
    }
    narrow_any(raw, pixels, at, n)
}

#[inline(always)]
fn narrow_any(raw: &[u16], pixels: usize, at: usize, n: usize) -> (Rows, [u16; STRIP]) {
    let mut rows = [[0; STRIP]; TILE];
    let mut bits = [0; STRIP];
    for (row, frame) in rows.iter_mut().zip(raw.chunks_exact(pixels)) {
        let values = &frame[at..at + n];
        if let Ok(values) = <&[u16; STRIP]>::try_from(values) {
            for i in 0..STRIP {
                row[i] = values[i] as u8;
                bits[i] |= values[i];
            }
        } else {
            for ((to, all), v) in row.iter_mut().zip(&mut bits).zip(values) {
                *to = *v as u8;
                *all |= *v;
            }
        }
    }
    (rows, bits)
}

/// Narrows a frame, adds the low bits of each value to its pixel's `bits`, and returns the bits that any value has.
/// Values above 255 lose their upper bits: look at what is returned.
#[inline]
pub(crate) fn narrow_frame(raw: &[u16], narrow: &mut [u8], bits: &mut [u8]) -> u16 {
    #[cfg(target_arch = "x86_64")]
    if avx2() {
        // SAFETY: AVX2 was just detected.
        return unsafe { x86::narrow_frame(raw, narrow, bits) };
    }
    narrow_frame_any(raw, narrow, bits)
}

#[inline(always)]
fn narrow_frame_any(raw: &[u16], narrow: &mut [u8], bits: &mut [u8]) -> u16 {
    let mut all = [0; STRIP];
    let (lines, rest) = raw.as_chunks::<STRIP>();
    let (to_lines, to_rest) = narrow.as_chunks_mut::<STRIP>();
    let (bit_lines, bit_rest) = bits.as_chunks_mut::<STRIP>();
    for ((values, to), bits) in lines.iter().zip(to_lines).zip(bit_lines) {
        for i in 0..STRIP {
            let low = values[i] as u8;
            to[i] = low;
            bits[i] |= low;
            all[i] |= values[i];
        }
    }
    let mut any = all.iter().fold(0, |any, v| any | v);
    for ((v, to), bits) in rest.iter().zip(to_rest).zip(bit_rest) {
        *to = *v as u8;
        *bits |= *to;
        any |= *v;
    }
    any
}

/// A strip of frames of `pixels` working values each; `n` is at most 64, and what is behind it counts as 0.
#[inline]
pub(crate) fn rows(frames: &[u8], pixels: usize, at: usize, n: usize) -> Rows {
    let mut rows = [[0; STRIP]; TILE];
    for (row, frame) in rows.iter_mut().zip(frames.chunks_exact(pixels)) {
        match <&[u8; STRIP]>::try_from(&frame[at..at + n]) {
            Ok(line) => *row = *line,
            Err(_) => row[..n].copy_from_slice(&frame[at..at + n]),
        }
    }
    rows
}

/// Asks for the line at `at` of `bytes`, if there is one, to be in the cache soon.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        // SAFETY: a hint about the address of a byte that exists; nothing is read by the program.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(byte).cast(),
            )
        };
    }
}

/// Copies a strip's rows to where they belong in frames of `pixels` values each.
#[inline]
pub(crate) fn place(rows: &Rows, pixels: usize, at: usize, n: usize, frames: &mut [u8]) {
    for (frame, row) in frames.chunks_exact_mut(pixels).zip(rows) {
        let to = &mut frame[at..at + n];
        match <&mut [u8; STRIP]>::try_from(&mut *to) {
            // A whole line, without a call.
            Ok(line) => *line = *row,
            Err(_) => to.copy_from_slice(&row[..n]),
        }
    }
}

/// Packs the first `widths.len()` pixels of a strip (at most 64, of 0 to 8 bits) into `out`, tile behind tile; returns
/// the bytes written.
///
/// # Panics
/// When `out` has not room for [`SLACK`] bytes more than that.
#[inline]
pub(crate) fn pack(rows: &Rows, widths: &[u8], out: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if avx2() {
        // SAFETY: AVX2 was just detected.
        return unsafe { x86::pack(rows, widths, out) };
    }
    pack_any(rows, widths, out)
}

#[inline(always)]
fn pack_any(rows: &Rows, widths: &[u8], out: &mut [u8]) -> usize {
    let mut of_pixel = [0_u8; STRIP];
    for (to, w) in of_pixel.iter_mut().zip(widths) {
        *to = (*w).min(8);
    }
    // Pixel 8b + j is lane b of word j.
    let of_lane = transpose_bytes(&of_pixel);
    let mut squeezed = [[[0; 8]; 8]; 4];
    for (group, words) in squeezed.iter_mut().enumerate() {
        let mut eight = [[0; 8]; 8];
        for (to, row) in eight.iter_mut().zip(&rows[8 * group..8 * group + 8]) {
            *to = lanes(row);
        }
        let columns = transpose_lanes(eight);
        for ((to, column), w) in words.iter_mut().zip(&columns).zip(&of_lane) {
            *to = map2(column, w, squeeze_word);
        }
    }
    let mut to = 0;
    for (p, w) in of_pixel[..widths.len().min(STRIP)].iter().enumerate() {
        let w = usize::from(*w);
        let tile = &mut out[to..to + 4 * w + SLACK];
        for (g, words) in squeezed.iter().enumerate() {
            tile[g * w..g * w + 8].copy_from_slice(&words[p % 8][p / 8].to_le_bytes());
        }
        to += 4 * w;
    }
    to
}

/// `out[j][b]` is byte `8b + j`.
#[inline(always)]
fn transpose_bytes(of_pixel: &[u8; STRIP]) -> [Lanes; 8] {
    let words = lanes(of_pixel);
    let mut out = [[0; 8]; 8];
    for (j, lane) in out.iter_mut().enumerate() {
        *lane = map2(&words, &words, |word, _| (word >> (8 * j)) & 0xff);
    }
    out
}

/// Unpacks the tiles of up to 64 pixels into rows. Tile `p` has width `widths[p]` (0 to 8) and begins at byte
/// `starts[p]` of `packed`; what lies behind the end of `packed` counts as 0.
#[inline]
pub(crate) fn unpack(packed: &[u8], starts: &[usize], widths: &[u8]) -> Rows {
    #[cfg(target_arch = "x86_64")]
    if avx2() {
        // SAFETY: AVX2 was just detected.
        return unsafe { x86::unpack(packed, starts, widths) };
    }
    unpack_any(packed, starts, widths)
}

#[inline(always)]
fn unpack_any(packed: &[u8], starts: &[usize], widths: &[u8]) -> Rows {
    let mut of_pixel = [0_u8; STRIP];
    for (to, w) in of_pixel.iter_mut().zip(widths) {
        *to = (*w).min(8);
    }
    let mut squeezed = [[[0_u64; 8]; 8]; 4];
    for (p, (start, w)) in starts.iter().zip(&of_pixel).enumerate() {
        let w = usize::from(*w);
        for (g, words) in squeezed.iter_mut().enumerate() {
            words[p % 8][p / 8] = load(packed, *start + g * w);
        }
    }
    let of_lane = transpose_bytes(&of_pixel);
    let mut rows = [[0; STRIP]; TILE];
    for (group, words) in squeezed.iter().enumerate() {
        let mut columns = [[0; 8]; 8];
        for ((to, words), w) in columns.iter_mut().zip(words).zip(&of_lane) {
            *to = map2(words, w, spread_word);
        }
        let eight = transpose_lanes(columns);
        for (row, words) in rows[8 * group..8 * group + 8].iter_mut().zip(&eight) {
            for (to, word) in row.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *to = word.to_le_bytes();
            }
        }
    }
    rows
}

/// Eight bytes; what is not there counts as 0.
#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<8>()) {
        Some(eight) => u64::from_le_bytes(*eight),
        None => {
            let mut eight = [0; 8];
            let rest = bytes.get(at..).unwrap_or_default();
            eight[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(eight)
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2")
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The same for AVX2 and BMI2: bytes are transposed by riffling registers, and `pext` squeezes a word at once. All of
    //! it is safe code but for the right to run it.

    use super::{Rows, SLACK, STRIP, TILE, load, narrow_any, narrow_frame_any};
    use std::arch::x86_64::*;

    /// Eight scans of a pixel in a word; the words of pixel `p` are at [`place`] of each of the four groups of scans.
    type Words = [[u64; STRIP]; TILE / 8];

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn narrow(raw: &[u16], pixels: usize, at: usize, n: usize) -> (Rows, [u16; STRIP]) {
        narrow_any(raw, pixels, at, n)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn narrow_frame(raw: &[u16], narrow: &mut [u8], bits: &mut [u8]) -> u16 {
        narrow_frame_any(raw, narrow, bits)
    }

    /// The low `w` bits of each byte.
    const fn low(w: usize) -> u64 {
        0x0101_0101_0101_0101 * ((1 << w) - 1)
    }

    const LOW: [u64; 9] = [low(0), low(1), low(2), low(3), low(4), low(5), low(6), low(7), !0];

    /// Where the riffled registers leave pixel `p`: half, register, half register, odd or even.
    #[inline(always)]
    fn place(p: usize) -> usize {
        p / 32 * 32 + p % 16 / 2 * 4 + p % 32 / 16 * 2 + p % 2
    }

    /// Deals two halves of eight registers together, byte by byte, within each half register. Of the seven bits that say
    /// where a byte is (register, byte), the highest becomes the lowest: three riffles transpose 8 rows of 16 bytes to 16
    /// words of 8, and four more undo that.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn riffle(r: [__m256i; 8]) -> [__m256i; 8] {
        let mut out = r;
        for i in 0..4 {
            out[2 * i] = _mm256_unpacklo_epi8(r[i], r[i + 4]);
            out[2 * i + 1] = _mm256_unpackhi_epi8(r[i], r[i + 4]);
        }
        out
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn pack(rows: &Rows, widths: &[u8], out: &mut [u8]) -> usize {
        let mut words: Words = [[0; STRIP]; TILE / 8];
        for (group, words) in rows.as_chunks::<8>().0.iter().zip(&mut words) {
            for (half, words) in words.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                let mut r = [_mm256_setzero_si256(); 8];
                for (to, row) in r.iter_mut().zip(group) {
                    *to = bytemuck::cast(row.as_chunks::<32>().0[half]);
                }
                *words = bytemuck::cast(riffle(riffle(riffle(r))));
            }
        }
        let mut to = 0;
        for (p, w) in widths.iter().take(STRIP).enumerate() {
            let w = usize::from(*w).min(8);
            let tile = &mut out[to..to + 4 * w + SLACK];
            for (g, words) in words.iter().enumerate() {
                tile[g * w..g * w + 8].copy_from_slice(&_pext_u64(words[place(p)], LOW[w]).to_le_bytes());
            }
            to += 4 * w;
        }
        to
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn unpack(packed: &[u8], starts: &[usize], widths: &[u8]) -> Rows {
        let mut words: Words = [[0; STRIP]; TILE / 8];
        for (p, (start, w)) in starts.iter().zip(widths).take(STRIP).enumerate() {
            let w = usize::from(*w).min(8);
            for (g, words) in words.iter_mut().enumerate() {
                words[place(p)] = _pdep_u64(load(packed, *start + g * w), LOW[w]);
            }
        }
        let mut rows = [[0; STRIP]; TILE];
        for (group, words) in rows.as_chunks_mut::<8>().0.iter_mut().zip(&words) {
            for (half, words) in words.as_chunks::<32>().0.iter().enumerate() {
                let r = riffle(riffle(riffle(riffle(bytemuck::cast(*words)))));
                for (row, register) in group.iter_mut().zip(r) {
                    row.as_chunks_mut::<32>().0[half] = bytemuck::cast(register);
                }
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tile;

    fn noise(n: usize, bits: u32, seed: u64) -> Vec<u16> {
        let mut x = seed;
        (0..n)
            .map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((x >> 40) as u32 & ((1 << bits) - 1)) as u16
            })
            .collect()
    }

    #[test]
    fn strips_pack_and_unpack_by_the_rule_of_tiles() {
        for (pixels, at, n) in [(64, 0, 64), (200, 64, 64), (200, 192, 8), (77, 64, 13), (5, 0, 5)] {
            for seed in 0..20_u64 {
                let mut raw = noise(TILE * pixels, (seed % 9) as u32, seed);
                // Some pixels are narrower than others.
                for (i, v) in raw.iter_mut().enumerate() {
                    *v >>= (i % pixels) % 9;
                }
                let (rows, bits) = narrow(&raw, pixels, at, n);
                let mut widths = Vec::new();
                let mut expected = Vec::new();
                for p in at..at + n {
                    let of_pixel: Vec<u16> = (0..TILE).map(|s| raw[s * pixels + p]).collect();
                    let w = tile::width_of(&of_pixel);
                    assert_eq!(16 - bits[p - at].leading_zeros(), w);
                    widths.push(w as u8);
                    tile::append(&of_pixel, w, &mut expected);
                }
                let expected_bytes: Vec<u8> = expected.iter().flat_map(|w| w.to_le_bytes()).collect();
                let mut out = vec![0xaa; 32 * n + 8];
                let written = pack(&rows, &widths, &mut out);
                assert_eq!(&out[..written], expected_bytes);
                let mut starts = vec![0];
                for w in &widths {
                    starts.push(starts.last().unwrap() + 4 * usize::from(*w));
                }
                let back = unpack(&expected_bytes, &starts[..n], &widths);
                for s in 0..TILE {
                    assert_eq!(back[s][..n], rows[s][..n]);
                }
                assert_eq!(super::rows(&working(&raw), pixels, at, n)[..], rows[..]);
                // The code for any processor does the same.
                assert_eq!(narrow_any(&raw, pixels, at, n), (rows, bits));
                let mut again = vec![0xaa; 32 * n + 8];
                assert_eq!(pack_any(&rows, &widths, &mut again), written);
                assert_eq!(again[..written], out[..written]);
                assert_eq!(unpack_any(&expected_bytes, &starts[..n], &widths), back);
            }
        }
    }

    fn working(raw: &[u16]) -> Vec<u8> {
        raw.iter().map(|v| *v as u8).collect()
    }

    #[test]
    fn frames_narrow_to_their_low_bytes_and_all_bits_are_seen() {
        for pixels in [1, 63, 64, 65, 200] {
            for frame in noise(3 * pixels, 9, pixels as u64).chunks(pixels) {
                let before: Vec<u8> = working(&noise(pixels, 8, 1));
                for narrow_frame in [super::narrow_frame, narrow_frame_any] {
                    let (mut narrow, mut bits) = (vec![0xaa; pixels], before.clone());
                    let any = narrow_frame(frame, &mut narrow, &mut bits);
                    assert_eq!(any, frame.iter().fold(0, |a, v| a | v));
                    assert_eq!(narrow, working(frame));
                    let both: Vec<u8> = before.iter().zip(&narrow).map(|(a, b)| a | b).collect();
                    assert_eq!(bits, both);
                }
            }
        }
    }

    #[test]
    fn squeezing_keeps_the_low_bits_of_each_byte() {
        for w in 1..=8 {
            let x = 0xf1e2_d3c4_b5a6_9788_u64;
            let mut low = 0;
            let mut packed = 0_u64;
            for i in 0..8 {
                let v = (x >> (8 * i)) & ((1 << w) - 1);
                low |= v << (8 * i);
                packed |= v << (w * i);
            }
            assert_eq!(squeeze_word(low, w), packed, "{w}");
            assert_eq!(spread_word(packed, w), low, "{w}");
            if w < 8 {
                let above = packed | !0 << (8 * w);
                assert_eq!(spread_word(above, w), low, "{w}: bits above are ignored");
            }
        }
        assert_eq!((squeeze_word(0, 0), spread_word(!0, 0)), (0, 0));
        assert_eq!(nibbles([1, 2, 3, 4, 5, 6, 7, 8]), 0x8765_4321);
    }

    #[test]
    fn bytes_transpose_to_where_row_and_column_say() {
        let rows: [u64; 8] =
            std::array::from_fn(|r| u64::from_le_bytes(std::array::from_fn(|c| (8 * r + c) as u8)));
        for (c, column) in transpose(rows).into_iter().enumerate() {
            assert_eq!(column.to_le_bytes(), std::array::from_fn(|r| (8 * r + c) as u8));
        }
    }
}
