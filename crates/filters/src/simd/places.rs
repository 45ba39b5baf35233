//! The places where a byte stands.
#![expect(unsafe_code, reason = "loads of vectors; measured 4 times the safe twin")]

use super::Level;

/// Appends the place of every `sought` in `src`, in order.
///
/// # Panics
/// When `src` has 4 GiB or more.
pub(crate) fn find(level: Level, src: &[u8], sought: u8, places: &mut Vec<u32>) {
    assert!(u32::try_from(src.len()).is_ok(), "places are numbers of 32 bits");
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx2 {
        // SAFETY: AVX2 was detected.
        unsafe { x86::find(src, sought, places) };
        return;
    }
    let _ = level;
    find_from(0, src, sought, places);
}

/// The safe twin; `first` is the place of the first byte.
fn find_from(first: usize, src: &[u8], sought: u8, places: &mut Vec<u32>) {
    for (block, bytes) in src.chunks(64).enumerate() {
        // Mostly there is none: a question that is answered for many bytes at once.
        if bytes.contains(&sought) {
            let here = first + 64 * block;
            let found = bytes.iter().enumerate().filter(|(_, b)| **b == sought);
            places.extend(found.map(|(i, _)| (here + i) as u32));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// # Safety
    /// AVX2 was detected.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn find(src: &[u8], sought: u8, places: &mut Vec<u32>) {
        let (blocks, rest) = src.as_chunks::<64>();
        let wanted = _mm256_set1_epi8(sought as i8);
        for (i, block) in blocks.iter().enumerate() {
            // SAFETY: a block has 64 bytes, of which each load reads half.
            let (low, high) = unsafe {
                let at = block.as_ptr().cast::<__m256i>();
                (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1)))
            };
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)) as u32;
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)) as u32;
            let mut mask = u64::from(low) | u64::from(high) << 32;
            while mask != 0 {
                places.push(64 * i as u32 + mask.trailing_zeros());
                mask &= mask - 1;
            }
        }
        super::find_from(64 * blocks.len(), rest, sought, places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::levels;

    #[test]
    fn every_level_finds_the_places_by_the_definition() {
        let src: Vec<u8> = (0..3000_u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 28) as u8).collect();
        for level in levels() {
            for (from, to) in [(0, 0), (0, 1), (1, 64), (0, 64), (3, 68), (5, 3000), (0, 3000)] {
                let src = &src[from..to];
                let mut found = vec![9];
                find(level, src, 5, &mut found);
                let want: Vec<u32> = (0..src.len() as u32).filter(|i| src[*i as usize] == 5).collect();
                assert_eq!(found[1..], want, "{level:?} {from}..{to}");
            }
        }
    }
}
