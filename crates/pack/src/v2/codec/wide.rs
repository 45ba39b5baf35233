//! Rounds of 32 symbols decoded in vectors (AVX2, AVX-512), and encoded (AVX-512).

#![expect(unsafe_code, reason = "gathers from tables, and calling what was compiled for vector instructions")]

use super::level::Level;
use super::model::{Slots, Steps};
use super::rans::{MANY, SLACK};

/// Decodes as many whole rounds of 32 symbols as a kernel exists for and words are left for; returns the symbols done.
pub(super) fn rounds(
    level: Level,
    states: &mut [u32; MANY],
    slots: &Slots,
    words: &[u8],
    at: &mut usize,
    out: &mut [u8],
) -> usize {
    match level {
        Level::Safe => 0,
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx2 => unsafe { x86::rounds_avx2(states, slots, words, at, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx512 => unsafe { x86::rounds_avx512(states, slots, words, at, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => 0,
    }
}

/// One of several blocks that are decoded at once.
#[derive(Debug)]
pub(super) struct Strand<'a> {
    pub states: &'a mut [u32; MANY],
    pub slots: &'a Slots,
    pub words: &'a [u8],
    pub at: &'a mut usize,
    pub out: &'a mut [u8],
}

/// Most blocks that are decoded at once.
pub(super) const STRANDS: usize = 4;

/// As [`rounds`], for two to [`STRANDS`] blocks, whose rounds hide each other's latency; returns the symbols done of each.
pub(super) fn rounds_of_several(level: Level, strands: &mut [Strand<'_>]) -> usize {
    if level < Level::Avx512 {
        return 0;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the level was detected.
    unsafe {
        match strands {
            [a, b] => return x86::rounds_of_avx512([a, b]),
            [a, b, c] => return x86::rounds_of_avx512([a, b, c]),
            [a, b, c, d] => return x86::rounds_of_avx512([a, b, c, d]),
            _ => {}
        }
    }
    0
}

/// Lists the places of a symbol; it is rare.
pub(super) fn find(level: Level, symbol: u8, symbols: &[u8], to: &mut Vec<u32>) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected.
        Level::Avx512 => unsafe { x86::find_avx512(symbol, symbols, to) },
        _ => super::each_from(symbol, symbols, |at| {
            if symbols[at] == symbol {
                to.push(at as u32);
            }
        }),
    }
}

/// Encodes as many whole rounds as a kernel exists for, from the end; writes words before `at` and returns the symbols
/// done. There must be a word before `at` for each symbol.
pub(super) fn encode(
    level: Level,
    states: &mut [u32; MANY],
    steps: &Steps,
    symbols: &[u8],
    words: &mut [u16],
    at: &mut usize,
) -> usize {
    assert!(symbols.len() <= *at && *at <= words.len(), "a place for each word");
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected; there is a place for each word.
        Level::Avx512 => unsafe { x86::encode_avx512(states, steps, symbols, words, at) },
        _ => 0,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{MANY, SLACK, Slots, Steps, Strand};
    use std::arch::x86_64::*;

    /// Thirty-two states in two vectors, and what they decode from.
    #[derive(Clone, Copy)]
    struct Lanes<'a> {
        a: __m512i,
        b: __m512i,
        slots: &'a Slots,
        words: &'a [u8],
        at: usize,
    }

    impl<'a> Lanes<'a> {
        /// # Safety
        /// AVX-512 F was detected.
        #[target_feature(enable = "avx512f")]
        fn load(states: &[u32; MANY], slots: &'a Slots, words: &'a [u8], at: usize) -> Self {
            // SAFETY: the array has 32 states: two vectors.
            let (a, b) = unsafe {
                let p = states.as_ptr();
                (_mm512_loadu_si512(p.cast()), _mm512_loadu_si512(p.add(16).cast()))
            };
            Self { a, b, slots, words, at }
        }

        /// # Safety
        /// AVX-512 F was detected.
        #[target_feature(enable = "avx512f")]
        fn store(&self, states: &mut [u32; MANY]) {
            // SAFETY: as for loading.
            unsafe {
                let p = states.as_mut_ptr();
                _mm512_storeu_si512(p.cast(), self.a);
                _mm512_storeu_si512(p.add(16).cast(), self.b);
            }
        }

        /// One round takes at most 64 bytes; where fewer are left, others do what is to do.
        #[inline(always)]
        fn has_words(&self) -> bool {
            self.at + SLACK <= self.words.len()
        }

        /// Decodes a round; there must be words for it.
        ///
        /// # Safety
        /// AVX-512 F, BW, DQ and VL, and BMI2, were detected; 64 bytes of words are left.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
        #[inline]
        unsafe fn round(&mut self, symbols: &mut [u8; MANY]) {
            let low = _mm512_set1_epi32(1 << 16);
            let twelve = _mm512_set1_epi32(0xfff);
            let table = self.slots.as_ptr().cast::<i32>();
            // SAFETY: indices are below 4096, the number of slots.
            let (ea, eb) = unsafe {
                (
                    _mm512_i32gather_epi32::<4>(_mm512_and_si512(self.a, twelve), table),
                    _mm512_i32gather_epi32::<4>(_mm512_and_si512(self.b, twelve), table),
                )
            };
            let next = |x: __m512i, e: __m512i| {
                let scaled = _mm512_mullo_epi32(_mm512_srli_epi32::<20>(e), _mm512_srli_epi32::<12>(x));
                _mm512_add_epi32(scaled, _mm512_and_si512(_mm512_srli_epi32::<8>(e), twelve))
            };
            let (a, b) = (next(self.a, ea), next(self.b, eb));
            let ma = _mm512_cmplt_epu32_mask(a, low);
            let mb = _mm512_cmplt_epu32_mask(b, low);
            let behind = self.at + 2 * ma.count_ones() as usize;
            // SAFETY: 64 bytes are left from `at`; `behind` is at most 32 further, and 32 are read from each.
            let (wa, wb) = unsafe {
                let p = self.words.as_ptr();
                (_mm256_loadu_si256(p.add(self.at).cast()), _mm256_loadu_si256(p.add(behind).cast()))
            };
            let take = |x: __m512i, m: __mmask16, w: __m256i| {
                let words = _mm512_maskz_expand_epi32(m, _mm512_cvtepu16_epi32(w));
                _mm512_or_si512(_mm512_mask_slli_epi32::<16>(x, m, x), words)
            };
            (self.a, self.b) = (take(a, ma, wa), take(b, mb, wb));
            self.at = behind + 2 * mb.count_ones() as usize;
            // SAFETY: the array has 32 bytes.
            unsafe {
                let p = symbols.as_mut_ptr();
                _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(ea));
                _mm_storeu_si128(p.add(16).cast(), _mm512_cvtepi32_epi8(eb));
            }
        }
    }

    /// # Safety
    /// AVX-512 F, BW, DQ and VL, and BMI2, were detected.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    pub(super) fn rounds_of_avx512<const N: usize>(mut strands: [&mut Strand<'_>; N]) -> usize {
        let mut lanes: [Lanes<'_>; N] = std::array::from_fn(|i| {
            Lanes::load(strands[i].states, strands[i].slots, strands[i].words, *strands[i].at)
        });
        let rounds = strands.iter().map(|s| s.out.len() / MANY).min().unwrap_or(0);
        let mut done = 0;
        while done < rounds && lanes.iter().all(Lanes::has_words) {
            for i in 0..N {
                let symbols = &mut strands[i].out[done * MANY..];
                // SAFETY: there are words; the rest is promised by the caller.
                unsafe { lanes[i].round(symbols.first_chunk_mut().expect("a round")) };
            }
            done += 1;
        }
        for (strand, lanes) in strands.iter_mut().zip(lanes) {
            lanes.store(strand.states);
            *strand.at = lanes.at;
        }
        done * MANY
    }

    /// # Safety
    /// AVX-512 F, BW, DQ and VL, and BMI2, were detected.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    pub(super) fn rounds_avx512(
        states: &mut [u32; MANY],
        slots: &Slots,
        words: &[u8],
        at: &mut usize,
        out: &mut [u8],
    ) -> usize {
        let mut lanes = Lanes::load(states, slots, words, *at);
        let mut done = 0;
        for symbols in out.as_chunks_mut().0 {
            if !lanes.has_words() {
                break;
            }
            // SAFETY: there are words; the rest is promised by the caller.
            unsafe { lanes.round(symbols) };
            done += MANY;
        }
        lanes.store(states);
        *at = lanes.at;
        done
    }

    /// # Safety
    /// AVX-512 F, BW, DQ and VL, and BMI2, were detected; `words` has `symbols.len()` places before `at`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn encode_avx512(
        states: &mut [u32; MANY],
        steps: &Steps,
        symbols: &[u8],
        words: &mut [u16],
        at: &mut usize,
    ) -> usize {
        const DOWN: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
        let pairs = steps.pairs.as_ptr().cast();
        let (frequency_bits, scale) = (_mm512_set1_epi32(0xffff), _mm512_set1_epi32(4096));
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
        // SAFETY: the array has 32 states: two vectors.
        let mut x: [__m512i; 2] =
            std::array::from_fn(|i| unsafe { _mm512_loadu_si512(states.as_ptr().add(16 * i).cast()) });
        let mut now = *at;
        for round in symbols.rchunks_exact(MANY) {
            for half in [1, 0] {
                // SAFETY: a round has 32 symbols; indices are below 256, the length of the table.
                let (low, high) = unsafe {
                    let index = _mm512_cvtepu8_epi32(_mm_loadu_si128(round.as_ptr().add(16 * half).cast()));
                    (
                        _mm512_i32gather_epi64::<8>(_mm512_castsi512_si256(index), pairs),
                        _mm512_i32gather_epi64::<8>(_mm512_extracti64x4_epi64::<1>(index), pairs),
                    )
                };
                let range = _mm512_permutex2var_epi32(low, even, high);
                let inverse = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, odd, high));
                let frequency = _mm512_and_si512(range, frequency_bits);
                let start = _mm512_srli_epi32::<16>(range);
                let full = _mm512_cmpge_epu32_mask(_mm512_srli_epi32::<20>(x[half]), frequency);
                let n = full.count_ones();
                now -= n as usize;
                let given = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, x[half]));
                // SAFETY: of the places before `at` that the caller promises, one for each symbol.
                unsafe {
                    _mm256_mask_storeu_epi16(
                        words.as_mut_ptr().add(now).cast(),
                        ((1_u32 << n) - 1) as __mmask16,
                        given,
                    );
                }
                let kept = _mm512_mask_srli_epi32::<16>(x[half], full, x[half]);
                // Quotients are below 2^20, and three roundings towards zero take less than one away: what comes out is
                // the quotient or one less, and the remainder tells which.
                let scaled = _mm512_mul_round_ps::<DOWN>(_mm512_cvt_roundepu32_ps::<DOWN>(kept), inverse);
                let quotient = _mm512_cvttps_epi32(scaled);
                let rest = _mm512_sub_epi32(kept, _mm512_mullo_epi32(quotient, frequency));
                let short = _mm512_cmpge_epu32_mask(rest, frequency);
                let moved =
                    _mm512_add_epi32(_mm512_add_epi32(rest, start), _mm512_slli_epi32::<12>(quotient));
                x[half] = _mm512_mask_add_epi32(moved, short, moved, _mm512_sub_epi32(scale, frequency));
            }
        }
        *at = now;
        for (i, x) in x.into_iter().enumerate() {
            // SAFETY: as for loading.
            unsafe { _mm512_storeu_si512(states.as_mut_ptr().add(16 * i).cast(), x) };
        }
        symbols.len() / MANY * MANY
    }

    /// # Safety
    /// AVX-512 F and BW, and BMI1, were detected.
    #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn find_avx512(symbol: u8, symbols: &[u8], to: &mut Vec<u32>) {
        let wanted = _mm512_set1_epi8(symbol as i8);
        for (i, chunk) in symbols.chunks(64).enumerate() {
            let some = u64::MAX >> (64 - chunk.len());
            // SAFETY: only as many bytes are read as the chunk has.
            let v = unsafe { _mm512_maskz_loadu_epi8(some, chunk.as_ptr().cast()) };
            let mut found = _mm512_mask_cmpeq_epi8_mask(some, v, wanted);
            if found == 0 {
                continue;
            }
            let n = found.count_ones() as usize;
            // The first four in any case: cheaper than a branch for each, which nobody can predict.
            to.reserve(n.max(4));
            let (first, spare) = (64 * i as u32, to.spare_capacity_mut());
            for place in &mut spare[..4] {
                place.write(first + found.trailing_zeros());
                found &= found.wrapping_sub(1);
            }
            for place in &mut spare[4..n.max(4)] {
                place.write(first + found.trailing_zeros());
                found &= found.wrapping_sub(1);
            }
            let len = to.len() + n;
            // SAFETY: as many were written.
            unsafe { to.set_len(len) };
        }
    }

    /// For each set of lanes that take a word: which of the eight next words each lane takes.
    static TAKES: [[u32; 8]; 256] = takes();

    const fn takes() -> [[u32; 8]; 256] {
        let mut out = [[0; 8]; 256];
        let mut set = 0;
        while set < 256 {
            let (mut lane, mut n) = (0, 0);
            while lane < 8 {
                if set >> lane & 1 == 1 {
                    out[set][lane] = n;
                    n += 1;
                }
                lane += 1;
            }
            set += 1;
        }
        out
    }

    /// # Safety
    /// AVX2, BMI1 and BMI2 were detected.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn rounds_avx2(
        states: &mut [u32; MANY],
        slots: &Slots,
        words: &[u8],
        at: &mut usize,
        out: &mut [u8],
    ) -> usize {
        let twelve = _mm256_set1_epi32(0xfff);
        let table = slots.as_ptr().cast::<i32>();
        // SAFETY: the array has 32 states: four vectors.
        let mut x: [__m256i; 4] =
            std::array::from_fn(|i| unsafe { _mm256_loadu_si256(states.as_ptr().add(8 * i).cast()) });
        let mut done = 0;
        let mut now = *at;
        for symbols in out.chunks_exact_mut(MANY) {
            // One round takes at most 64 bytes; where fewer are left, others do what is to do.
            if now + SLACK > words.len() {
                break;
            }
            // SAFETY: indices are below 4096, the number of slots.
            let e: [__m256i; 4] = std::array::from_fn(|i| unsafe {
                _mm256_i32gather_epi32::<4>(table, _mm256_and_si256(x[i], twelve))
            });
            let mut taken = 0;
            for i in 0..4 {
                let scaled = _mm256_mullo_epi32(_mm256_srli_epi32::<20>(e[i]), _mm256_srli_epi32::<12>(x[i]));
                let y = _mm256_add_epi32(scaled, _mm256_and_si256(_mm256_srli_epi32::<8>(e[i]), twelve));
                // Below 2^16: nothing above the low 16 bits.
                let is_low = _mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(y), _mm256_setzero_si256());
                let set = _mm256_movemask_ps(_mm256_castsi256_ps(is_low)) as usize & 255;
                // SAFETY: 64 bytes are left from `now`, of which at most 48 are taken before the last 16 are read;
                // the table has a row for each of 256 sets.
                let (next, order) = unsafe {
                    (
                        _mm_loadu_si128(words.as_ptr().add(now + taken).cast()),
                        _mm256_loadu_si256(TAKES.as_ptr().add(set).cast()),
                    )
                };
                let words = _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(next), order);
                let grown = _mm256_or_si256(_mm256_slli_epi32::<16>(y), words);
                x[i] = _mm256_blendv_epi8(y, grown, is_low);
                taken += 2 * set.count_ones() as usize;
            }
            now += taken;
            let byte = _mm256_set1_epi32(0xff);
            let low = |v: __m256i| _mm256_and_si256(v, byte);
            let ab = _mm256_packus_epi32(low(e[0]), low(e[1]));
            let cd = _mm256_packus_epi32(low(e[2]), low(e[3]));
            // Fours of symbols, in the order that packing within halves leaves.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let packed = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(ab, cd), order);
            // SAFETY: the chunk has 32 bytes.
            unsafe { _mm256_storeu_si256(symbols.as_mut_ptr().cast(), packed) };
            done += MANY;
        }
        *at = now;
        for (i, x) in x.into_iter().enumerate() {
            // SAFETY: as for loading.
            unsafe { _mm256_storeu_si256(states.as_mut_ptr().add(8 * i).cast(), x) };
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v2::codec::level::levels;

    #[test]
    fn every_level_finds_a_symbol_at_all_its_places() {
        let mut x = 11_u64;
        for n in [0, 1, 31, 63, 64, 65, 200, 1000] {
            for often in [1, 3, 20, 300] {
                let symbols: Vec<u8> = (0..n)
                    .map(|_| {
                        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        if (x >> 40).is_multiple_of(often) { 255 } else { (x >> 33) as u8 & 127 }
                    })
                    .collect();
                let expected: Vec<u32> = (0..n as u32).filter(|i| symbols[*i as usize] == 255).collect();
                for level in levels() {
                    let mut found = vec![7];
                    find(level, 255, &symbols, &mut found);
                    assert_eq!((found[0], &found[1..]), (7, &expected[..]), "{level:?}");
                }
            }
        }
    }
}
