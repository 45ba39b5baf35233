//! The two checksums of HDF5 that no crate provides in HDF5's form: Jenkins' lookup3 over metadata and
//! Fletcher-32 over raw data.
//!
//! Sources: the HDF5 file format specification ("Checksum" fields name lookup3, `H5_checksum_metadata`) and Bob
//! Jenkins' public-domain description of `hashlittle`.

/// Jenkins' lookup3 (`hashlittle`) with initial value 0, as HDF5 stores it behind metadata.
///
/// ```
/// use tensilo_core::wire::lookup3;
/// assert_eq!(lookup3(b""), 0xdeadbeef);
/// assert_eq!(lookup3(b"Four score and seven years ago"), 0x17770551);
/// ```
pub fn lookup3(data: &[u8]) -> u32 {
    lookup3_from(0, data)
}

/// The same with another initial value, as HDF5 hashes messages: beginning with their type.
///
/// ```
/// use tensilo_core::wire::lookup3_from;
/// assert_eq!(lookup3_from(1, b"Four score and seven years ago"), 0xcd628161);
/// ```
pub fn lookup3_from(initial: u32, data: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(data.len() as u32).wrapping_add(initial);
    let (mut a, mut b, mut c) = (start, start, start);
    let word = |s: &[u8]| {
        let mut w = [0; 4];
        w[..s.len()].copy_from_slice(s);
        u32::from_le_bytes(w)
    };
    let mut rest = data;
    while rest.len() > 12 {
        a = a.wrapping_add(word(&rest[..4]));
        b = b.wrapping_add(word(&rest[4..8]));
        c = c.wrapping_add(word(&rest[8..12]));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(&rest[..rest.len().min(4)]));
    b = b.wrapping_add(word(&rest[rest.len().min(4)..rest.len().min(8)]));
    c = c.wrapping_add(word(&rest[rest.len().min(8)..]));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// Words that are summed side by side, each column on its own: what a compiler makes vectors of.
const COLUMNS: usize = 32;
/// Rows after which a column's second sum could overflow: 361 * 360 / 2 * 65535 < 2^32.
const ROWS: usize = 360;

/// Fletcher-32 over big-endian 16-bit words, an odd last byte being the high half of a word: what HDF5's
/// fletcher32 filter computes.
///
/// Both sums are taken modulo 65535, where the bytes of a word may be swapped afterwards, in the sum: words are added
/// as a little-endian machine loads them.
pub fn fletcher32_be_words(data: &[u8]) -> u32 {
    // Remainders from 1 to 65535, as carries that are added in at once leave them; 0 only for no ones at all.
    let fold = |s: u64| if s == 0 { 0 } else { (s - 1) % 0xffff + 1 };
    let (mut first, mut second) = (0_u64, 0_u64);
    let (rows, rest) = data.as_chunks::<{ 2 * COLUMNS }>();
    for part in rows.chunks(ROWS) {
        let (sums, weighted) = columns(part);
        // A word counts once for each word from itself to the end; its column has counted rows only, as if each word
        // were its row's first.
        second += (part.len() * COLUMNS) as u64 * first;
        for (column, (sum, weighted)) in sums.into_iter().zip(weighted).enumerate() {
            first += u64::from(sum);
            second += COLUMNS as u64 * u64::from(weighted) - column as u64 * u64::from(sum);
        }
        (first, second) = (fold(first), fold(second));
    }
    for pair in rest.chunks(2) {
        first += u64::from(pair[0]) | pair.get(1).map_or(0, |high| u64::from(*high) << 8);
        second += first;
    }
    let [first, second] = [first, second].map(|s| u32::from((fold(s) as u16).swap_bytes()));
    (second << 16) | first
}

/// The sum of each column, and the sum of its sums after each row; at most [`ROWS`] rows.
fn columns(rows: &[[u8; 2 * COLUMNS]]) -> ([u32; COLUMNS], [u32; COLUMNS]) {
    let (mut sums, mut weighted) = ([0; COLUMNS], [0; COLUMNS]);
    for row in rows {
        let words: [u32; COLUMNS] =
            std::array::from_fn(|c| u32::from(u16::from_le_bytes([row[2 * c], row[2 * c + 1]])));
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum += word;
        }
        for (weighted, sum) in weighted.iter_mut().zip(sums) {
            *weighted += sum;
        }
    }
    (sums, weighted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fletcher32_equals_its_definition_for_every_length() {
        // Word by word, carries added in at once.
        let slow = |data: &[u8]| {
            let fold = |s: u32| (s & 0xffff) + (s >> 16);
            let (mut s1, mut s2) = (0, 0);
            for pair in data.chunks(2) {
                let word = u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
                s1 = fold(s1 + word);
                s2 = fold(s2 + s1);
            }
            s2 << 16 | s1
        };
        let noise = |n: usize| -> Vec<u8> {
            (0..n as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 21) as u8).collect()
        };
        for n in (0..200).chain([11_519, 11_520, 11_521, 11_553, 60_000, 200_001]) {
            for data in [vec![0; n], vec![255; n], vec![1; n], noise(n)] {
                assert_eq!(fletcher32_be_words(&data), slow(&data), "{n} bytes");
            }
        }
    }

    #[test]
    fn fletcher32_equals_sums_of_words_modulo_65535() {
        let mut state = 7_u64;
        let mut next = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        // In exact numbers; 65535 stands for a remainder of zero unless there was nothing to add.
        let remainder = |s: u128| if s > 0 && s.is_multiple_of(65535) { 65535 } else { (s % 65535) as u32 };
        for _ in 0..2000 {
            let most = [2, 16, 256][next(3)];
            let unit: Vec<u8> = (0..next(700)).map(|_| (255 - next(most)) as u8).collect();
            let data = unit.repeat(1 + next(40));
            let (mut first, mut second) = (0_u128, 0_u128);
            for pair in data.chunks(2) {
                first += u128::from(pair[0]) * 256 + pair.get(1).map_or(0, |b| u128::from(*b));
                second += first;
            }
            let expected = remainder(second) << 16 | remainder(first);
            assert_eq!(fletcher32_be_words(&data), expected, "{} bytes", data.len());
        }
    }
}
