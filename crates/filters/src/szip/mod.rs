//! Filter 4, szip: the extended Golomb-Rice coding of CCSDS 121.0-B, framed as HDF5 does.
//!
//! Client values: 0 options (16: most significant byte first, 32: differences to the neighbour are coded), 1
//! samples per block, 2 bits per sample, 3 samples per scanline. A chunk is its decoded size, 4 bytes
//! little-endian, and one coded stream. Samples of 32 or 64 bits are split into byte planes and coded as 8-bit
//! samples. Scanlines that are no whole number of blocks are padded; a reference sample, of which differences
//! are taken, starts each scanline.

mod decode;
mod encode;

use crate::bitstream::{BitReader, BitWriter};
use crate::filter::{Decoded, Encoded, Filter};
use crate::scratch::sized;
use crate::simd::{self, bytes};
use crate::{ChunkInfo, Codecs, cut, id};
use tensilo_core::{Error, Result};

/// The szip filter.
#[derive(Debug)]
pub struct Szip;

const MSB_FIRST: u32 = 16;
const DIFFERENCES: u32 = 32;
const MOST_BLOCKS: u32 = 128;

/// How one stream is coded.
#[derive(Debug, Clone, Copy)]
struct Coding {
    /// Bits per sample, 1 to 24.
    bits: u32,
    /// Samples per block, even.
    block: usize,
    /// Blocks per scanline.
    blocks: usize,
    /// Whether differences to the sample before are coded.
    differences: bool,
}

impl Coding {
    /// Bits of a block's option id.
    fn id_bits(&self) -> u32 {
        match self.bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        }
    }

    /// The id of a block stored as it is.
    fn raw_id(&self) -> u32 {
        (1 << self.id_bits()) - 1
    }

    fn most(&self) -> u32 {
        ((1_u64 << self.bits) - 1) as u32
    }
}

/// How samples lie in a chunk.
struct Setup {
    coding: Coding,
    /// Bytes per sample.
    sample: usize,
    big_endian: bool,
    /// Byte planes that samples are split into first, 1 for none.
    planes: usize,
    /// Samples per scanline.
    scanline: usize,
}

impl Setup {
    fn new(values: &[u32]) -> Result<Self> {
        let &[options, block, bits, scanline, ..] = values else {
            return Err(Error::corrupt(format!("szip has {} client values, not 4", values.len())));
        };
        if block == 0 || block > 64 || !block.is_multiple_of(2) {
            return Err(Error::corrupt(format!("szip states {block} samples per block")));
        }
        if scanline == 0 || scanline.div_ceil(block) > MOST_BLOCKS {
            return Err(Error::corrupt(format!(
                "szip states {scanline} samples per scanline of {block} per block"
            )));
        }
        let (coded, sample, planes) = match bits {
            32 | 64 => (8, 1, bits as usize / 8),
            1..=8 => (bits, 1, 1),
            9..=16 => (bits, 2, 1),
            17..=24 => (bits, 4, 1),
            _ => return Err(Error::unsupported(format!("szip of {bits}-bit samples"))),
        };
        let coding = Coding {
            bits: coded,
            block: block as usize,
            blocks: scanline.div_ceil(block) as usize,
            differences: options & DIFFERENCES != 0,
        };
        Ok(Self { coding, sample, big_endian: options & MSB_FIRST != 0, planes, scanline: scanline as usize })
    }

    /// Samples of a scanline with its padding.
    fn padded(&self) -> usize {
        self.coding.block * self.coding.blocks
    }

    /// Reads samples of a scanline, appending them to `line`.
    fn load(&self, part: &[u8], line: &mut Vec<u32>) {
        match (self.sample, self.big_endian) {
            (1, _) => line.extend(part.iter().map(|b| u32::from(*b))),
            (2, true) => line.extend(part.as_chunks().0.iter().map(|b| u32::from(u16::from_be_bytes(*b)))),
            (2, false) => line.extend(part.as_chunks().0.iter().map(|b| u32::from(u16::from_le_bytes(*b)))),
            (_, true) => line.extend(part.as_chunks().0.iter().map(|b| u32::from_be_bytes(*b))),
            (_, false) => line.extend(part.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b))),
        }
    }

    /// Writes samples of a scanline.
    fn store(&self, line: &[u32], part: &mut [u8]) {
        match (self.sample, self.big_endian) {
            (1, _) => part.iter_mut().zip(line).for_each(|(b, v)| *b = *v as u8),
            (2, true) => {
                part.as_chunks_mut().0.iter_mut().zip(line).for_each(|(b, v)| *b = (*v as u16).to_be_bytes());
            }
            (2, false) => {
                part.as_chunks_mut().0.iter_mut().zip(line).for_each(|(b, v)| *b = (*v as u16).to_le_bytes());
            }
            (_, true) => part.as_chunks_mut().0.iter_mut().zip(line).for_each(|(b, v)| *b = v.to_be_bytes()),
            (_, false) => part.as_chunks_mut().0.iter_mut().zip(line).for_each(|(b, v)| *b = v.to_le_bytes()),
        }
    }
}

impl Filter for Szip {
    fn id(&self) -> u16 {
        id::SZIP
    }

    fn name(&self) -> &str {
        "szip"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        // A padded scanline may code nearly twice the samples there are, and each block has an option id.
        raw.saturating_mul(3).saturating_add(4096)
    }

    fn decode(&self, values: &[u32], codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        let setup = Setup::new(values)?;
        let mut rest = src;
        let total = u32::from_le_bytes(cut::array(&mut rest, "the szip size")?) as usize;
        let room = dst.len();
        let Some(dst) = dst.get_mut(..total) else {
            return Err(Error::corrupt(format!(
                "szip states {total} decoded bytes, at most {room} are possible"
            )));
        };
        if !total.is_multiple_of(setup.sample * setup.planes) {
            return Err(Error::corrupt(format!("{total} szip bytes are no whole number of samples")));
        }
        if setup.planes == 1 {
            decode_samples(&setup, BitReader::new(rest), dst)?;
        } else {
            let count = total / setup.planes;
            let split = sized(&mut codecs.block, total);
            decode_samples(&setup, BitReader::new(rest), split)?;
            bytes::interleave(simd::level(), split, count, count, setup.planes, dst);
        }
        Ok(Decoded::Written(total))
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
            .map_err(|_| Error::invalid(format!("szip cannot hold {} bytes", src.len())))?;
        if !src.len().is_multiple_of(setup.sample * setup.planes) {
            return Err(Error::invalid(format!("{total} bytes are no whole number of samples for szip")));
        }
        dst.extend_from_slice(&total.to_le_bytes());
        if setup.planes == 1 {
            encode_samples(&setup, src, BitWriter::new(dst))?;
        } else {
            let count = src.len() / setup.planes;
            let split = sized(&mut codecs.block, src.len());
            bytes::deinterleave(simd::level(), src, count, setup.planes, split, count);
            encode_samples(&setup, split, BitWriter::new(dst))?;
        }
        Ok(Encoded::Written)
    }
}

/// Decodes scanline after scanline, dropping the padding of each.
fn decode_samples(setup: &Setup, mut bits: BitReader, dst: &mut [u8]) -> Result<()> {
    let mut line = vec![0; setup.padded()];
    for part in dst.chunks_mut(setup.scanline * setup.sample) {
        decode::scanline(&setup.coding, &mut bits, &mut line, part.len() / setup.sample)?;
        setup.store(&line, part);
    }
    Ok(())
}

/// Encodes scanline after scanline, padding each to whole blocks by repeating its last sample.
fn encode_samples(setup: &Setup, src: &[u8], mut bits: BitWriter) -> Result<()> {
    let most = setup.coding.most();
    let mut line = Vec::with_capacity(setup.padded());
    for part in src.chunks(setup.scanline * setup.sample) {
        line.clear();
        setup.load(part, &mut line);
        if let Some(large) = line.iter().find(|v| **v > most) {
            return Err(Error::invalid(format!(
                "sample {large} does not fit szip's {} bits",
                setup.coding.bits
            )));
        }
        let last = line.last().copied().unwrap_or(0);
        line.resize(setup.padded(), last);
        encode::scanline(&setup.coding, &line, &mut bits);
    }
    bits.finish();
    Ok(())
}
