//! Tiles: consecutive scans of one detector pixel in as few bits as their largest value needs (contract, 2.5).
//!
//! Values lie end to end, least significant bit first, value `i` at bit `i * w` of consecutive little-endian
//! 32-bit words. A tile holds a multiple of 32 values, so it takes whole words.

/// Bits that the largest of some values needs; 0 when all are 0.
pub fn width_of(values: &[u16]) -> u32 {
    16 - values.iter().fold(0, |all, v| all | v).leading_zeros()
}

/// The width that is stored for a needed one: the experimental uint16 header has no 15 (contract, 2.7).
pub fn stored_width(needed: u32, most_bits: u32) -> u32 {
    if most_bits == 16 && needed == 15 { 16 } else { needed }
}

/// Appends the words of a tile: `values.len() / 32 * width` of them.
///
/// The number of values is a multiple of 32 and each fits `width` bits.
pub fn append(values: &[u16], width: u32, words: &mut Vec<u32>) {
    debug_assert!(values.len().is_multiple_of(32) && width_of(values) <= width && width <= 16);
    let (mut held, mut bits) = (0_u64, 0);
    for v in values {
        held |= u64::from(*v) << bits;
        bits += width;
        if bits >= 32 {
            words.push(held as u32);
            held >>= 32;
            bits -= 32;
        }
    }
}

/// Value `i` of a tile; 0 where the words end too early.
pub fn value(words: &[u32], width: u32, i: u32) -> u16 {
    if width == 0 {
        return 0;
    }
    let bit = u64::from(i) * u64::from(width);
    let (word, shift) = ((bit / 32) as usize, (bit % 32) as u32);
    let at = |k: usize| u64::from(words.get(k).copied().unwrap_or(0));
    let both = at(word) | at(word + 1) << 32;
    (both >> shift) as u16 & mask(width)
}

/// Unpacks all values of a tile; `words` holds exactly `values.len() / 32 * width` words.
pub fn unpack(words: &[u32], width: u32, values: &mut [u16]) {
    if width == 0 {
        return values.fill(0);
    }
    let mask = mask(width);
    let (mut held, mut bits, mut words) = (0_u64, 0, words.iter());
    for v in values {
        if bits < width {
            held |= u64::from(words.next().copied().unwrap_or(0)) << bits;
            bits += 32;
        }
        *v = held as u16 & mask;
        held >>= width;
        bits -= width;
    }
}

fn mask(width: u32) -> u16 {
    ((1_u32 << width) - 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_lie_least_significant_first() {
        // The rule of the contract, bit by bit.
        for width in 1..=16 {
            let values: Vec<u16> =
                (0..32).map(|i: u32| (i.wrapping_mul(40503) >> 3) as u16 & mask(width)).collect();
            let mut words = Vec::new();
            append(&values, width, &mut words);
            assert_eq!(words.len(), width as usize);
            for (i, v) in values.iter().enumerate() {
                for b in 0..width as usize {
                    let bit = i * width as usize + b;
                    assert_eq!(words[bit / 32] >> (bit % 32) & 1, u32::from(*v >> b & 1));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_tile_survives_the_round_trip(seed: u64, bits in 0_u32..=16, tiles in 1_usize..=4) {
            let mut x = seed;
            let values: Vec<u16> = (0..32 * tiles).map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (x >> 40) as u16 & mask(bits)
            }).collect();
            let width = width_of(&values);
            prop_assert!(width <= bits);
            let mut words = Vec::new();
            append(&values, width, &mut words);
            prop_assert_eq!(words.len(), tiles * width as usize);
            let mut back = vec![0; values.len()];
            unpack(&words, width, &mut back);
            prop_assert_eq!(&back, &values);
            for (i, v) in values.iter().enumerate() {
                prop_assert_eq!(value(&words, width, i as u32), *v);
            }
        }
    }

    #[test]
    fn only_fifteen_bits_are_stored_in_sixteen() {
        for w in 0..=16 {
            assert_eq!(stored_width(w, 8), w);
            assert_eq!(stored_width(w, 16), if w == 15 { 16 } else { w });
        }
    }
}
