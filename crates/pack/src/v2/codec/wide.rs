//! Rounds of 32 symbols decoded in vectors (AVX2, AVX-512).

#![expect(unsafe_code, reason = "gathers from tables, and calling what was compiled for vector instructions")]

use super::level::Level;
use super::model::Slots;
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{MANY, SLACK, Slots};
    use std::arch::x86_64::*;

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
        let low = _mm512_set1_epi32(1 << 16);
        let twelve = _mm512_set1_epi32(0xfff);
        let table = slots.as_ptr().cast::<i32>();
        // SAFETY: the array has 32 states: two vectors.
        let (mut a, mut b) = unsafe {
            let p = states.as_ptr();
            (_mm512_loadu_si512(p.cast()), _mm512_loadu_si512(p.add(16).cast()))
        };
        let mut done = 0;
        let mut now = *at;
        for symbols in out.chunks_exact_mut(MANY) {
            // One round takes at most 64 bytes, which the slack makes good behind the last word.
            if now + SLACK > words.len() {
                break;
            }
            // SAFETY: indices are below 4096, the number of slots.
            let (ea, eb) = unsafe {
                (
                    _mm512_i32gather_epi32::<4>(_mm512_and_si512(a, twelve), table),
                    _mm512_i32gather_epi32::<4>(_mm512_and_si512(b, twelve), table),
                )
            };
            let next = |x: __m512i, e: __m512i| {
                let scaled = _mm512_mullo_epi32(_mm512_srli_epi32::<20>(e), _mm512_srli_epi32::<12>(x));
                _mm512_add_epi32(scaled, _mm512_and_si512(_mm512_srli_epi32::<8>(e), twelve))
            };
            (a, b) = (next(a, ea), next(b, eb));
            let ma = _mm512_cmplt_epu32_mask(a, low);
            let mb = _mm512_cmplt_epu32_mask(b, low);
            let behind = now + 2 * ma.count_ones() as usize;
            // SAFETY: 64 bytes are left from `now`; `behind` is at most 32 further, and 32 are read from each.
            let (wa, wb) = unsafe {
                let p = words.as_ptr();
                (_mm256_loadu_si256(p.add(now).cast()), _mm256_loadu_si256(p.add(behind).cast()))
            };
            let take = |x: __m512i, m: __mmask16, w: __m256i| {
                let words = _mm512_maskz_expand_epi32(m, _mm512_cvtepu16_epi32(w));
                _mm512_or_si512(_mm512_mask_slli_epi32::<16>(x, m, x), words)
            };
            (a, b) = (take(a, ma, wa), take(b, mb, wb));
            now = behind + 2 * mb.count_ones() as usize;
            // SAFETY: the chunk has 32 bytes.
            unsafe {
                let p = symbols.as_mut_ptr();
                _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(ea));
                _mm_storeu_si128(p.add(16).cast(), _mm512_cvtepi32_epi8(eb));
            }
            done += MANY;
        }
        *at = now;
        // SAFETY: as for loading.
        unsafe {
            let p = states.as_mut_ptr();
            _mm512_storeu_si512(p.cast(), a);
            _mm512_storeu_si512(p.add(16).cast(), b);
        }
        done
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
            // One round takes at most 64 bytes, which the slack makes good behind the last word.
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
