//! Tiles of uint8 values, 64 pixels at a time: the hot loops of packing and unpacking.
//!
//! A strip is 32 scans of up to 64 neighbouring pixels, as rows. Packing transposes it eight by eight, so that one
//! 64-bit word holds eight consecutive scans of one pixel, and squeezes the eight bytes to `w` bits each with three
//! rounds of masks and shifts; four such words make a tile. Unpacking is the reverse. No value-dependent branch but
//! the width. [`format::tile`](crate::format::tile) states the same rule plainly; tests compare the two.

/// Pixels of a strip.
pub(crate) const STRIP: usize = 64;
/// Scans of a tile.
pub(crate) const TILE: usize = 32;
/// Rows of a strip: 32 scans of 64 pixels.
pub(crate) type Rows = [[u8; STRIP]; TILE];

const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
const PAIRS: u64 = 0x0000_ffff_0000_ffff;

/// Eight bytes below 2^w, squeezed to `w` bits each; the lowest byte first.
#[inline]
fn squeeze(x: u64, w: u32) -> u64 {
    let x = (x & BYTES) | ((x & !BYTES) >> (8 - w));
    let x = (x & PAIRS) | ((x & !PAIRS) >> (16 - 2 * w));
    (x & 0xffff_ffff) | (x >> 32) << (4 * w)
}

/// Undoes [`squeeze`]; bits of `x` above 8w are ignored.
#[inline]
fn spread(x: u64, w: u32) -> u64 {
    let four = (1_u64 << (4 * w)) - 1;
    let x = (x & four) | (x >> (4 * w) & four) << 32;
    let two = ((1_u64 << (2 * w)) - 1) * 0x0000_0001_0000_0001;
    let x = (x & two) | (x & !two) << (16 - 2 * w);
    let one = ((1_u64 << w) - 1) * 0x0001_0001_0001_0001;
    (x & one) | (x & !one) << (8 - w)
}

/// Transposes eight rows of eight bytes.
#[inline]
fn transpose(mut r: [u64; 8]) -> [u64; 8] {
    let mut swap = |distance: usize, shift: u32, mask: u64| {
        for i in 0..8 {
            if i & distance == 0 {
                let (a, b) = (r[i], r[i + distance]);
                let moved = ((a >> shift) ^ b) & mask;
                r[i] = a ^ moved << shift;
                r[i + distance] = b ^ moved;
            }
        }
    };
    swap(4, 32, 0x0000_0000_ffff_ffff);
    swap(2, 16, PAIRS);
    swap(1, 8, BYTES);
    r
}

#[inline]
fn word(row: &[u8; STRIP], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&row[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Narrows a strip of raw frames of `pixels` values each; also returns the bits that any value of a pixel has.
/// Values above 255 lose their upper bits: look at the returned bits first.
#[inline]
pub(crate) fn narrow(raw: &[u16], pixels: usize, at: usize, n: usize) -> (Rows, [u16; STRIP]) {
    let mut rows = [[0; STRIP]; TILE];
    let mut bits = [0; STRIP];
    for (row, frame) in rows.iter_mut().zip(raw.chunks_exact(pixels)) {
        let values = &frame[at..at + n];
        if let Ok(values) = <&[u16; STRIP]>::try_from(values) {
            for ((to, all), v) in row.iter_mut().zip(&mut bits).zip(values) {
                *to = *v as u8;
                *all |= *v;
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

/// Packs the first `widths.len()` pixels of a strip into `out`, tile behind tile; returns the bytes written.
///
/// `out` has room for eight bytes more than that.
#[inline]
pub(crate) fn pack(rows: &Rows, widths: &[u8], out: &mut [u8]) -> usize {
    let mut to = 0;
    for (block, widths) in widths.chunks(8).enumerate() {
        if widths.iter().all(|w| *w == 0) {
            continue;
        }
        let mut columns = [[0; 8]; 4];
        for (group, column) in columns.iter_mut().enumerate() {
            let mut eight = [0; 8];
            for (e, row) in eight.iter_mut().zip(&rows[8 * group..8 * group + 8]) {
                *e = word(row, 8 * block);
            }
            *column = transpose(eight);
        }
        for (j, w) in widths.iter().enumerate() {
            let w = *w;
            if w == 0 {
                continue;
            }
            for column in &columns {
                out[to..to + 8].copy_from_slice(&squeeze(column[j], w.into()).to_le_bytes());
                to += usize::from(w);
            }
        }
    }
    to
}

/// Unpacks one pixel's tile of `w` words: four words of eight scans each.
#[inline]
fn unpack_tile(words: &[u32], w: u32) -> [u64; 4] {
    // Eight scans take w bytes; they begin at byte g * w, in the middle of a word perhaps.
    let word = |i: usize| u64::from(words.get(i).copied().unwrap_or(0));
    [0, 1, 2, 3].map(|g| {
        let (at, shift) = (g * w as usize / 4, 8 * (g as u32 * w % 4));
        let low = word(at) | word(at + 1) << 32;
        let high = word(at + 2);
        spread(low >> shift | (high << 1) << (63 - shift), w)
    })
}

/// Unpacks the tiles of up to 64 pixels into rows; `tile` gives a pixel's words and width (0 to 8).
#[inline]
pub(crate) fn unpack<'a>(n: usize, mut tile: impl FnMut(usize) -> (&'a [u32], u32)) -> Rows {
    let mut rows = [[0; STRIP]; TILE];
    for block in 0..n.div_ceil(8) {
        let mut columns = [[0; 8]; 4];
        let mut any = false;
        for j in 0..8.min(n - 8 * block) {
            let (words, w) = tile(8 * block + j);
            if w == 0 {
                continue;
            }
            any = true;
            for (column, eight) in columns.iter_mut().zip(unpack_tile(words, w)) {
                column[j] = eight;
            }
        }
        if !any {
            continue;
        }
        for (group, column) in columns.into_iter().enumerate() {
            for (row, eight) in rows[8 * group..8 * group + 8].iter_mut().zip(transpose(column)) {
                row[8 * block..8 * block + 8].copy_from_slice(&eight.to_le_bytes());
            }
        }
    }
    rows
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
                    starts.push(starts.last().unwrap() + *w as usize);
                }
                let back = unpack(n, |p| (&expected[starts[p]..starts[p + 1]], widths[p].into()));
                for s in 0..TILE {
                    assert_eq!(back[s][..n], rows[s][..n]);
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
                packed |= v << (u64::from(w) * i);
            }
            assert_eq!(squeeze(low, w), packed, "{w}");
            assert_eq!(spread(packed, w), low, "{w}");
            if w < 8 {
                assert_eq!(spread(packed | !0 << (8 * w), w), low, "{w}: bits above are ignored");
            }
        }
    }
}
