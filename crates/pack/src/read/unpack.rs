//! Thirty-two packed values at a time, for every width from 0 to 16.
//!
//! Thirty-two values of `w` bits are exactly `w` words, so a tile of any length is a row of such groups. A 64-bit load
//! holds eight values of up to 8 bits, or four of up to 16, which three or two rounds of masks and shifts spread
//! into lanes. [`tile`](crate::format::tile) states the same rule plainly; the tests compare the two.

/// Values of one group.
pub(crate) const GROUP: usize = 32;
/// Bytes that must follow the last group, so that every load is whole.
pub(crate) const SLACK: usize = 8;

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<8>()) {
        Some(eight) => u64::from_le_bytes(*eight),
        None => 0,
    }
}

/// Eight values of `W` bits (1 to 8) in the low bits, spread into bytes.
#[inline(always)]
fn spread_bytes<const W: u32>(x: u64) -> [u8; 8] {
    let four = (1_u64 << (4 * W)) - 1;
    let x = (x & four) | (x >> (4 * W) & four) << 32;
    let two = ((1_u64 << (2 * W)) - 1) * 0x0000_0001_0000_0001;
    let x = (x & two) | (x & !two) << (16 - 2 * W);
    let one = ((1_u64 << W) - 1) * 0x0001_0001_0001_0001;
    ((x & one) | (x & !one) << (8 - W)).to_le_bytes()
}

#[inline(always)]
fn group8<const W: u32>(bytes: &[u8], out: &mut [u16; GROUP]) {
    for (g, to) in out.chunks_exact_mut(8).enumerate() {
        for (to, v) in to.iter_mut().zip(spread_bytes::<W>(load(bytes, g * W as usize))) {
            *to = v.into();
        }
    }
}

#[inline(always)]
fn group16<const W: u32>(bytes: &[u8], out: &mut [u16; GROUP]) {
    let one = ((1_u64 << W) - 1) * 0x0000_0001_0000_0001;
    let two = (1_u64 << (2 * W)) - 1;
    for (g, to) in out.chunks_exact_mut(4).enumerate() {
        let bit = 4 * g * W as usize;
        let x = load(bytes, bit / 8) >> (bit % 8);
        let x = (x & two) | (x >> (2 * W) & two) << 32;
        let x = (x & one) | (x & one << W) << (16 - W);
        for (k, to) in to.iter_mut().enumerate() {
            *to = (x >> (16 * k)) as u16;
        }
    }
}

/// Unpacks one group. `bytes` starts at the group and has [`SLACK`] bytes behind it; what is not there counts as 0.
#[inline]
pub(crate) fn group(bytes: &[u8], width: u32, out: &mut [u16; GROUP]) {
    match width {
        1 => group8::<1>(bytes, out),
        2 => group8::<2>(bytes, out),
        3 => group8::<3>(bytes, out),
        4 => group8::<4>(bytes, out),
        5 => group8::<5>(bytes, out),
        6 => group8::<6>(bytes, out),
        7 => group8::<7>(bytes, out),
        8 => group8::<8>(bytes, out),
        9 => group16::<9>(bytes, out),
        10 => group16::<10>(bytes, out),
        11 => group16::<11>(bytes, out),
        12 => group16::<12>(bytes, out),
        13 => group16::<13>(bytes, out),
        14 => group16::<14>(bytes, out),
        15 => group16::<15>(bytes, out),
        16 => group16::<16>(bytes, out),
        _ => out.fill(0),
    }
}

/// Value `i` of the values of `width` bits that start with `bytes`.
#[inline]
pub(crate) fn value(bytes: &[u8], width: u32, i: usize) -> u16 {
    let bit = i * width as usize;
    let mask = (1_u64 << width) - 1;
    (load(bytes, bit / 8) >> (bit % 8) & mask) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tile;

    #[test]
    fn groups_and_values_unpack_by_the_rule_of_tiles() {
        let mut x = 7_u64;
        for round in 0..200_u32 {
            let width = round % 17;
            let values: Vec<u16> = (0..GROUP)
                .map(|_| {
                    x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    ((x >> 40) as u32 & ((1 << width) - 1)) as u16
                })
                .collect();
            let mut words = Vec::new();
            tile::append(&values, width, &mut words);
            let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            // What stands behind a group must not shine through.
            bytes.extend_from_slice(&[0xff; SLACK]);
            let mut out = [1; GROUP];
            group(&bytes, width, &mut out);
            assert_eq!(out[..], values, "width {width}");
            for (i, v) in values.iter().enumerate() {
                assert_eq!(value(&bytes, width, i), *v, "width {width}, value {i}");
            }
        }
    }
}
