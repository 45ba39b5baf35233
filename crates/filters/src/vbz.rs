//! Filter 32020, VBZ (Oxford Nanopore): differences in as few bytes as each needs, then Zstandard.
//!
//! Client values: 0 the version (0 or 1), 1 the integer size (1, 2 or 4), 2 whether differences
//! are taken and folded to numbers without a sign, 3 the Zstandard level (0 for none, 1 when absent).
//!
//! | bytes | field |
//! |---|---|
//! | 4 | decoded size, little-endian |
//! | … | Zstandard frame of: two bits per integer, lowest first, that say how long it is, then the integers |
//!
//! Lengths are 1 to 4 bytes; version 1 writes 1-byte integers in 0, 4, 8 or 16 bits instead, the lower half of a byte
//! first.

use crate::filter::{Decoded, Encoded, Filter};
use crate::scratch::sized;
use crate::{ChunkInfo, Codecs, cut, id, zstandard};
use tensilo_core::{Error, Result};

/// The VBZ filter.
#[derive(Debug)]
pub struct Vbz;

struct Setup {
    /// Bytes per integer.
    size: usize,
    /// Whether integers are written in halves of bytes.
    halves: bool,
    differences: bool,
    level: u32,
}

impl Setup {
    fn new(values: &[u32]) -> Result<Self> {
        let &[version, size, differences, ref more @ ..] = values else {
            return Err(Error::corrupt(format!("VBZ has {} client values, not 3 or more", values.len())));
        };
        if version > 1 {
            return Err(Error::unsupported(format!("VBZ version {version}")));
        }
        if !matches!(size, 1 | 2 | 4) {
            return Err(Error::corrupt(format!("VBZ states integers of {size} bytes")));
        }
        Ok(Self {
            size: size as usize,
            halves: version == 1 && size == 1,
            differences: differences != 0,
            level: more.first().copied().unwrap_or(1),
        })
    }

    /// The most bytes that integers take before they are compressed.
    fn most_packed(&self, raw: usize) -> usize {
        let count = raw / self.size;
        count.div_ceil(4).saturating_add(count.saturating_mul(if self.halves { 2 } else { 4 }))
    }
}

impl Filter for Vbz {
    fn id(&self) -> u16 {
        id::VBZ
    }

    fn name(&self) -> &str {
        "VBZ"
    }

    fn most_encoded(&self, values: &[u32], raw: usize) -> usize {
        let packed = Setup::new(values).map_or(raw, |s| s.most_packed(raw));
        packed.saturating_add(packed / 128).saturating_add(1024)
    }

    fn decode(&self, values: &[u32], codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let setup = Setup::new(values)?;
        let mut rest = src;
        let total = u32::from_le_bytes(cut::array(&mut rest, "the VBZ size")?) as usize;
        let room = dst.len();
        let Some(dst) = dst.get_mut(..total) else {
            return Err(Error::corrupt(format!(
                "VBZ states {total} decoded bytes, at most {room} are possible"
            )));
        };
        if !total.is_multiple_of(setup.size) {
            return Err(Error::corrupt(format!("{total} VBZ bytes are no whole number of integers")));
        }
        if setup.level == 0 {
            unpack(&setup, rest, dst)?;
            return Ok(Decoded::Written(total));
        }
        let mut spare = std::mem::take(&mut codecs.block);
        let packed = sized(&mut spare, setup.most_packed(total));
        let result =
            zstandard::decompress(codecs, rest, packed).and_then(|n| unpack(&setup, &packed[..n], dst));
        codecs.block = spare;
        result.map(|()| Decoded::Written(total))
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let setup = Setup::new(values).map_err(|e| Error::invalid(e.message()))?;
        let total = u32::try_from(src.len())
            .map_err(|_| Error::invalid(format!("VBZ cannot hold {} bytes", src.len())))?;
        if !src.len().is_multiple_of(setup.size) {
            return Err(Error::invalid(format!("{total} bytes are no whole number of integers for VBZ")));
        }
        dst.extend_from_slice(&total.to_le_bytes());
        if setup.level == 0 {
            pack(&setup, src, dst);
            return Ok(Encoded::Written);
        }
        let mut packed = std::mem::take(&mut codecs.block);
        packed.clear();
        pack(&setup, src, &mut packed);
        let result = zstandard::compress(codecs, setup.level as i32, &packed, dst);
        codecs.block = packed;
        result.map(|_| Encoded::Written)
    }
}

/// Integers, sign-extended.
fn integers(size: usize, src: &[u8]) -> impl Iterator<Item = i32> + '_ {
    src.chunks_exact(size).map(move |bytes| match *bytes {
        [a] => i32::from(a as i8),
        [a, b] => i32::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]),
        _ => 0,
    })
}

fn pack(setup: &Setup, src: &[u8], dst: &mut Vec<u8>) {
    let keys = dst.len();
    dst.resize(keys + (src.len() / setup.size).div_ceil(4), 0);
    let mut before = 0_i32;
    // The half byte that waits for its other half.
    let mut half: Option<u8> = None;
    for (i, value) in integers(setup.size, src).enumerate() {
        let word = if setup.differences {
            // Differences wrap around at the integers' own size.
            let shift = 32 - 8 * setup.size as u32;
            let difference = value.wrapping_sub(std::mem::replace(&mut before, value)) << shift >> shift;
            (difference << 1 ^ difference >> 31) as u32
        } else {
            value as u32
        };
        let code = if setup.halves { half_code(word) } else { byte_code(word) };
        dst[keys + i / 4] |= code << (i % 4 * 2);
        if !setup.halves {
            dst.extend_from_slice(&word.to_le_bytes()[..usize::from(code) + 1]);
            continue;
        }
        for nibble in 0..HALVES[usize::from(code)] {
            let bits = (word >> (4 * nibble) & 15) as u8;
            match half.take() {
                None => half = Some(bits),
                Some(low) => dst.push(bits << 4 | low),
            }
        }
    }
    dst.extend(half);
}

/// Half bytes per code in version 1.
const HALVES: [u32; 4] = [0, 1, 2, 4];

fn byte_code(word: u32) -> u8 {
    match word {
        0..0x100 => 0,
        0x100..0x1_0000 => 1,
        0x1_0000..0x100_0000 => 2,
        _ => 3,
    }
}

fn half_code(word: u32) -> u8 {
    match word {
        0 => 0,
        1..0x10 => 1,
        0x10..0x100 => 2,
        _ => 3,
    }
}

fn unpack(setup: &Setup, packed: &[u8], dst: &mut [u8]) -> Result<()> {
    let mut rest = packed;
    let count = dst.len() / setup.size;
    let keys = cut::bytes(&mut rest, count.div_ceil(4), "the lengths of VBZ integers")?;
    let mut before = 0_i32;
    let mut upper: Option<u8> = None;
    for (i, element) in dst.chunks_exact_mut(setup.size).enumerate() {
        let code = usize::from(keys[i / 4] >> (i % 4 * 2) & 3);
        let mut word = 0_u32;
        if setup.halves {
            for nibble in 0..HALVES[code] {
                let bits = match upper.take() {
                    Some(bits) => bits,
                    None => {
                        let [byte] = cut::array(&mut rest, "a VBZ integer")?;
                        upper = Some(byte >> 4);
                        byte & 15
                    }
                };
                word |= u32::from(bits) << (4 * nibble);
            }
        } else {
            for (shift, byte) in cut::bytes(&mut rest, code + 1, "a VBZ integer")?.iter().enumerate() {
                word |= u32::from(*byte) << (8 * shift);
            }
        }
        let value = if setup.differences {
            before = before.wrapping_add((word >> 1) as i32 ^ -((word & 1) as i32));
            before
        } else {
            word as i32
        };
        element.copy_from_slice(&value.to_le_bytes()[..setup.size]);
    }
    if !rest.is_empty() {
        return Err(Error::corrupt(format!("{} bytes are left behind the last VBZ integer", rest.len())));
    }
    Ok(())
}
