//! One-shot LZ4 block decoding.
//!
//! The AVX2 and AVX-512 decoders copy in whole vectors past what is asked, while both ends are far enough away. The
//! last bytes of the block they read from a copy with room behind it; what they cannot finish, damage above all, is left
//! to the safe decoder, which starts again at the last whole sequence. Short offsets (bit planes are full of them) become
//! one shuffled pattern that is stored again and again.
#![expect(unsafe_code, reason = "wild copies; measured 8 to 15 times the safe twin on bitshuffled counts")]

use super::Level;
use crate::lz77::copy_back;
use tensilo_core::{Error, Result};

/// Decodes one LZ4 block into the start of `dst` and says how many bytes it held. Bytes of `dst` behind those
/// may be overwritten; room of 64 bytes or more behind the expected end makes decoding faster.
///
/// # Errors
/// `Corrupt` when the block is damaged or holds more than `dst.len()` bytes.
pub(crate) fn decode(level: Level, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    let (ip, op) = match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected, or is below a detected one.
        Level::Avx2 | Level::Avx512 => match unsafe { x86::decode(level, src, dst)? } {
            x86::Done::All(n) => return Ok(n),
            x86::Done::Until(ip, op) => (ip, op),
        },
        _ => (0, 0),
    };
    decode_safe(src, ip, dst, op)
}

#[cold]
fn damaged(what: &str, ip: usize) -> Error {
    Error::corrupt(format!("damaged LZ4 block: {what} at its byte {ip}"))
}

/// Decodes from a sequence start to the end of the block.
fn decode_safe(src: &[u8], mut ip: usize, dst: &mut [u8], mut op: usize) -> Result<usize> {
    let extended = |ip: &mut usize, length: &mut usize| -> Result<()> {
        loop {
            let byte = *src.get(*ip).ok_or_else(|| damaged("a length is cut off", *ip))?;
            *ip += 1;
            *length += usize::from(byte);
            if byte != 255 {
                return Ok(());
            }
        }
    };
    loop {
        let token = *src.get(ip).ok_or_else(|| damaged("no sequence", ip))?;
        ip += 1;
        let mut literals = usize::from(token >> 4);
        if literals == 15 {
            extended(&mut ip, &mut literals)?;
        }
        let from = src.get(ip..).and_then(|s| s.get(..literals));
        let from = from.ok_or_else(|| damaged("literals are cut off", ip))?;
        let to = dst.get_mut(op..).and_then(|d| d.get_mut(..literals));
        to.ok_or_else(|| damaged("more data than expected", ip))?.copy_from_slice(from);
        ip += literals;
        op += literals;
        if ip == src.len() {
            return Ok(op);
        }
        let Some(&[low, high]) = src.get(ip..ip + 2) else { return Err(damaged("no offset", ip)) };
        let offset = usize::from(u16::from_le_bytes([low, high]));
        ip += 2;
        let mut length = usize::from(token & 15);
        if length == 15 {
            extended(&mut ip, &mut length)?;
        }
        length += 4;
        if offset == 0 || offset > op {
            return Err(damaged("an offset outside the block", ip));
        }
        copy_back(dst, op, offset, length).ok_or_else(|| damaged("more data than expected", ip))?;
        op += length;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::damaged;
    use crate::simd::Level;
    use crate::simd::copies::x86::{copy16, copy32, repeat, repeat32};
    use tensilo_core::Result;

    /// How far a sequence may run past what it needs, on both sides.
    const SLACK: usize = 64;

    /// How far a decoder came.
    pub(super) enum Done {
        /// To the end, with so many bytes of output.
        All(usize),
        /// Up to a sequence that starts at the first number and whose output starts at the second.
        Until(usize, usize),
    }

    /// Decodes while the destination's end is far away.
    ///
    /// # Safety
    /// AVX2 must be present, and what `level` says.
    pub(super) unsafe fn decode(level: Level, src: &[u8], dst: &mut [u8]) -> Result<Done> {
        // SAFETY: the caller vouches for the instructions.
        unsafe { if level == Level::Avx512 { with_avx512(src, dst) } else { with_avx2(src, dst) } }
    }

    #[target_feature(enable = "avx2,bmi2")]
    unsafe fn with_avx2(src: &[u8], dst: &mut [u8]) -> Result<Done> {
        // SAFETY: this function has the instructions.
        unsafe { both_parts::<false>(src, dst) }
    }

    #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn with_avx512(src: &[u8], dst: &mut [u8]) -> Result<Done> {
        // SAFETY: this function has the instructions.
        unsafe { both_parts::<true>(src, dst) }
    }

    /// Decodes while the source's end is far away, then what is left, from a copy with room behind it.
    #[inline(always)]
    unsafe fn both_parts<const WIDE: bool>(src: &[u8], dst: &mut [u8]) -> Result<Done> {
        // SAFETY: the caller vouches for the instructions; all of `src` is readable.
        let (ip, op) = match unsafe { sequences::<WIDE, false>(src, src.len(), dst, 0)? } {
            Done::Until(ip, op) => (ip, op),
            done => return Ok(done),
        };
        let mut copy = [0; 3 * SLACK];
        let rest = &src[ip..];
        let Some(room) = copy[..2 * SLACK].get_mut(..rest.len()) else { return Ok(Done::Until(ip, op)) };
        room.copy_from_slice(rest);
        // SAFETY: the caller vouches for the instructions; SLACK bytes follow the rest.
        Ok(match unsafe { sequences::<WIDE, true>(&copy, rest.len(), dst, op)? } {
            Done::Until(further, op) => Done::Until(ip + further, op),
            done => done,
        })
    }

    /// Decodes whole sequences from the start of `src` to behind `op` in `dst`. The block ends after `src_len` bytes;
    /// `LAST` says that SLACK bytes follow it in `src`.
    ///
    /// # Safety
    /// AVX2 must be present, with `WIDE` AVX-512 VL and VBMI; `src_len`, with `LAST` SLACK bytes more, must be inside
    /// `src`.
    #[inline(always)]
    unsafe fn sequences<const WIDE: bool, const LAST: bool>(
        src: &[u8],
        src_len: usize,
        dst: &mut [u8],
        mut op: usize,
    ) -> Result<Done> {
        // What is readable.
        let src_end = if LAST { src_len + SLACK } else { src_len };
        let dst_len = dst.len();
        let (s, d) = (src.as_ptr(), dst.as_mut_ptr());
        let mut ip = 0;
        // Every pointer below is s or d plus an index, and every access is at most SLACK bytes past an index
        // that was checked against src_end - SLACK or dst_len - SLACK.
        loop {
            let (ip_start, op_start) = (ip, op);
            if ip + SLACK > src_end || op + SLACK > dst_len {
                return Ok(Done::Until(ip_start, op_start));
            }
            // SAFETY: ip + SLACK <= src_end.
            let token = usize::from(unsafe { *s.add(ip) });
            ip += 1;
            let mut literals = token >> 4;
            if literals < 15 {
                // SAFETY: ip + 16 <= src_end and op + 16 <= dst_len by the check above.
                unsafe { copy16(s.add(ip), d.add(op)) };
            } else {
                loop {
                    if ip + SLACK > src_end {
                        return Ok(Done::Until(ip_start, op_start));
                    }
                    // SAFETY: ip < src_end.
                    let byte = usize::from(unsafe { *s.add(ip) });
                    ip += 1;
                    literals += byte;
                    if byte != 255 {
                        break;
                    }
                }
                if ip + literals + SLACK > src_end || op + literals + SLACK > dst_len {
                    return Ok(Done::Until(ip_start, op_start));
                }
                let mut done = 0;
                while done < literals {
                    // SAFETY: done < literals, so the copy ends within SLACK of both checked ends.
                    unsafe { copy32(s.add(ip + done), d.add(op + done)) };
                    done += 32;
                }
            }
            ip += literals;
            op += literals;
            if LAST && ip >= src_len {
                return Ok(if ip == src_len { Done::All(op) } else { Done::Until(ip_start, op_start) });
            }
            // SAFETY: ip is at most 15 past the index checked at the top, or SLACK before the end.
            let offset = usize::from(unsafe { s.add(ip).cast::<u16>().read_unaligned() }.to_le());
            ip += 2;
            let mut length = (token & 15) + 4;
            if length == 19 {
                loop {
                    if ip >= src_len {
                        return Ok(Done::Until(ip_start, op_start));
                    }
                    // SAFETY: ip < src_len.
                    let byte = usize::from(unsafe { *s.add(ip) });
                    ip += 1;
                    length += byte;
                    if byte != 255 {
                        break;
                    }
                }
            }
            if offset == 0 || offset > op {
                if LAST {
                    return Ok(Done::Until(ip_start, op_start));
                }
                return Err(damaged("an offset outside the block", ip));
            }
            if op + length + SLACK > dst_len {
                return Ok(Done::Until(ip_start, op_start));
            }
            if LAST && ip > src_len {
                return Ok(Done::Until(ip_start, op_start));
            }
            // SAFETY: offset <= op, and op + length + SLACK <= dst_len; no store below starts at or after
            // op + length, and none is longer than 32 bytes.
            unsafe {
                let to = d.add(op);
                if WIDE && length <= 32 { repeat32(to, offset) } else { repeat(to, offset, length) }
            }
            op += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::levels;

    fn check(block: &[u8]) {
        for capacity in [block.len(), block.len() * 3, 1 << 16] {
            let mut results = vec![];
            for level in levels() {
                let mut dst = vec![0xEE; capacity];
                results.push(decode(level, block, &mut dst).ok().map(|n| dst[..n].to_vec()));
            }
            assert!(results.windows(2).all(|w| w[0] == w[1]));
            let flex = lz4_flex::block::decompress(block, capacity).ok();
            assert_eq!(results[0], flex, "capacity {capacity}, block {block:?}");
        }
    }

    #[test]
    fn every_level_decodes_what_lz4_flex_encodes() {
        let mut x = 1_u64;
        let mut next = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as usize
        };
        for _ in 0..400 {
            let mut raw = vec![];
            let target = next() % 20_000;
            while raw.len() < target {
                match next() % 3 {
                    0 => raw.extend((0..next() % 60).map(|_| next() as u8)),
                    1 => raw.resize(raw.len() + next() % 700, next() as u8),
                    _ => {
                        let period = 1 + next() % 40;
                        let unit: Vec<u8> = (0..period).map(|_| next() as u8).collect();
                        raw.extend(unit.iter().cycle().take(next() % 300));
                    }
                }
            }
            let block = lz4_flex::block::compress(&raw);
            for level in levels() {
                for slack in [0, 1, 31, 64, 100] {
                    let mut dst = vec![0xEE; raw.len() + slack];
                    assert_eq!(decode(level, &block, &mut dst).unwrap(), raw.len());
                    assert_eq!(dst[..raw.len()], raw);
                }
                if !raw.is_empty() {
                    assert!(decode(level, &block, &mut vec![0; raw.len() - 1]).is_err());
                }
            }
            let mut hurt = block.clone();
            for _ in 0..20 {
                let i = next() % hurt.len();
                hurt[i] ^= 1 << (next() % 8);
                check(&hurt);
            }
            check(&block[..next() % block.len()]);
        }
    }
}
