//! The payload of an `exact-uint16-lz4` shard: words cut into blocks of 128 bytes, each raw LZ4 (contract, 3).
//!
//! The stored length byte is the block's compressed length less 1. The last block may be shorter.

use super::index::LZ4_BLOCK;
use tensilo_core::{Error, Result};

/// Decodes all blocks of a shard into `out`, whose length is the decoded payload's.
///
/// # Errors
/// `Corrupt`, naming the block.
pub fn decode(compressed: &[u8], lengths: &[u8], out: &mut [u8]) -> Result<()> {
    let mut rest = compressed;
    let mut blocks = lengths.iter().enumerate();
    let mut slack = [0; LZ4_BLOCK as usize + 64];
    for (to, (i, length)) in out.chunks_mut(LZ4_BLOCK as usize).zip(&mut blocks) {
        let length = usize::from(*length) + 1;
        let (block, after) = rest.split_at_checked(length).ok_or_else(|| {
            Error::corrupt(format!("LZ4 block {i} of {length} bytes reaches past the payload"))
        })?;
        let n = tensilo_filters::lz4::decode_block(block, &mut slack)
            .map_err(|e| e.context(format_args!("LZ4 block {i}")))?;
        if n != to.len() {
            return Err(Error::corrupt(format!("LZ4 block {i} decodes to {n} bytes, not {}", to.len())));
        }
        to.copy_from_slice(&slack[..n]);
        rest = after;
    }
    if !rest.is_empty() || blocks.next().is_some() {
        return Err(Error::corrupt(format!("{} bytes are left behind the last LZ4 block", rest.len())));
    }
    Ok(())
}

/// Compresses the words of a shard, appending to `compressed` and `lengths`.
///
/// # Errors
/// `Limit` if a block does not fit 256 bytes, which LZ4 rules out for 128 bytes.
pub fn encode(payload: &[u8], compressed: &mut Vec<u8>, lengths: &mut Vec<u8>) -> Result<()> {
    for block in payload.chunks(LZ4_BLOCK as usize) {
        let length = tensilo_filters::lz4::encode_block(block, compressed);
        lengths.push(
            u8::try_from(length.wrapping_sub(1))
                .map_err(|_| Error::limit(format!("an LZ4 block of {length} bytes")))?,
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_survive_the_round_trip() {
        for n in [4_usize, 124, 128, 132, 4096, 100_000] {
            let payload: Vec<u8> = (0..n as u32)
                .map(|i| if i % 512 < 256 { 0 } else { (i.wrapping_mul(2654435761) >> 13) as u8 })
                .collect();
            let (mut compressed, mut lengths) = (Vec::new(), Vec::new());
            encode(&payload, &mut compressed, &mut lengths).unwrap();
            assert_eq!(lengths.len(), n.div_ceil(128));
            let mut back = vec![1; n];
            decode(&compressed, &lengths, &mut back).unwrap();
            assert_eq!(back, payload);
            assert!(decode(&compressed[..compressed.len() - 1], &lengths, &mut back).is_err());
            compressed.push(0);
            assert!(decode(&compressed, &lengths, &mut back).is_err());
        }
    }
}
