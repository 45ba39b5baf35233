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

/// Fletcher-32 over big-endian 16-bit words, an odd last byte being the high half of a word: what HDF5's
/// fletcher32 filter computes.
pub fn fletcher32_be_words(data: &[u8]) -> u32 {
    let (mut s1, mut s2) = (0_u32, 0_u32);
    let fold = |s: u32| (s & 0xffff) + (s >> 16);
    let mut chunks = data.chunks_exact(2);
    let mut pending = 0;
    for pair in &mut chunks {
        s1 += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
        s2 += s1;
        pending += 1;
        if pending == 360 {
            s1 = fold(s1);
            s2 = fold(s2);
            pending = 0;
        }
    }
    if let [last] = chunks.remainder() {
        s1 = fold(s1);
        s2 = fold(s2);
        s1 += u32::from(*last) << 8;
        s2 += s1;
    }
    let s1 = fold(fold(s1));
    let s2 = fold(fold(s2));
    (s2 << 16) | s1
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
            for data in [vec![0; n], vec![255; n], noise(n)] {
                assert_eq!(fletcher32_be_words(&data), slow(&data), "{n} bytes");
            }
        }
    }
}
