//! A frame whose first and last bytes are stored as they are, around what libzstd made of those between (RFC 8878,
//! section 3.1.1).
//!
//! | bytes | field |
//! |---|---|
//! | 4 | magic number |
//! | 1 | descriptor: one segment, no checksum, no dictionary, and the size of the next field |
//! | 1, 2, 4 or 8 | content size |
//! | … | blocks: 3 bytes (bit 0 the last one, bits 1 and 2 the type, then the size), then their bytes |
//!
//! Stored blocks change nothing that later blocks refer to (tables and recent distances), and distances inside libzstd's
//! blocks do not reach in front of the first of them: so these blocks mean the same behind stored ones.

use tensilo_core::{Error, Result};

const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// Most bytes of a block.
const BLOCK: usize = 128 << 10;
/// The types of blocks.
const STORED: u32 = 0;
const REPEATED: u32 = 1;

/// Appends the header of a frame of so many bytes.
pub(crate) fn header(content: usize, dst: &mut Vec<u8>) {
    dst.extend_from_slice(&MAGIC);
    let content = content as u64;
    let bytes = content.to_le_bytes();
    match content {
        0..=0xff => dst.extend_from_slice(&[0x20, bytes[0]]),
        0x100..=0x100ff => {
            dst.push(0x60);
            dst.extend_from_slice(&(content - 0x100).to_le_bytes()[..2]);
        }
        0x10100..=0xffff_ffff => {
            dst.push(0xa0);
            dst.extend_from_slice(&bytes[..4]);
        }
        _ => {
            dst.push(0xe0);
            dst.extend_from_slice(&bytes);
        }
    }
}

/// Appends stored blocks; `last` says whether the last of them is the frame's.
pub(crate) fn stored(src: &[u8], last: bool, dst: &mut Vec<u8>) {
    let count = src.len().div_ceil(BLOCK);
    for (i, block) in src.chunks(BLOCK).enumerate() {
        let head = (block.len() as u32) << 3 | STORED << 1 | u32::from(last && i + 1 == count);
        dst.extend_from_slice(&head.to_le_bytes()[..3]);
        dst.extend_from_slice(block);
    }
}

/// Turns the frame that begins at `at`, and ends with `dst`, into its blocks; `last` says whether its last block is the
/// last one still.
pub(crate) fn into_blocks(dst: &mut Vec<u8>, at: usize, last: bool) -> Result<()> {
    let strange = || Error::invalid("libzstd made a frame of another form");
    let frame = dst.get(at..).ok_or_else(strange)?;
    let (magic, rest) = frame.split_first_chunk::<4>().ok_or_else(strange)?;
    let descriptor = *rest.first().filter(|d| *magic == MAGIC && **d & 0x1f == 0).ok_or_else(strange)?;
    let one_segment = descriptor & 0x20 != 0;
    let size = match descriptor >> 6 {
        0 => usize::from(one_segment),
        n => 1 << n,
    };
    let header = 5 + usize::from(!one_segment) + size;
    // The last block's place, in the frame.
    let mut block = header;
    loop {
        let [a, b, c] = *frame.get(block..).and_then(|f| f.first_chunk::<3>()).ok_or_else(strange)?;
        if a & 1 != 0 {
            break;
        }
        let head = u32::from_le_bytes([a, b, c, 0]);
        block += 3 + if head >> 1 & 3 == REPEATED { 1 } else { (head >> 3) as usize };
    }
    if !last {
        dst[at + block] &= !1;
    }
    dst.drain(at..at + header);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_every_size_say_what_libzstd_reads() {
        for n in [0, 1, 255, 256, 257, 65_791, 65_792, 65_793, 1 << 20, 0xffff_ffff, 0x1_0000_0000] {
            let mut frame = Vec::new();
            header(n, &mut frame);
            frame.extend_from_slice(&[0; 16]);
            let said = zstd::zstd_safe::get_frame_content_size(&frame).unwrap();
            assert_eq!(said, Some(n as u64), "{n}");
        }
    }

    #[test]
    fn stored_and_compressed_blocks_are_one_frame_to_libzstd() {
        let noise: Vec<u8> = (0..300_000_u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
        let middles: [Vec<u8>; 5] = [
            vec![],
            vec![7; 400_000],
            (0..400_000_u32).map(|i| (i / 100) as u8 ^ (i % 7) as u8).collect(),
            noise[..1000].to_vec(),
            vec![1, 2, 3],
        ];
        for middle in &middles {
            for front in [0, 1, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 300_000] {
                for back in [0, 1, BLOCK, 200_000] {
                    let all = [&noise[..front], middle, &noise[..back]].concat();
                    let mut frame = b"before".to_vec();
                    header(all.len(), &mut frame);
                    stored(&noise[..front], middle.is_empty() && back == 0, &mut frame);
                    if !middle.is_empty() {
                        let at = frame.len();
                        frame.extend_from_slice(&zstd::bulk::compress(middle, 3).unwrap());
                        into_blocks(&mut frame, at, back == 0).unwrap();
                    }
                    stored(&noise[..back], true, &mut frame);
                    if all.is_empty() {
                        continue;
                    }
                    let read = zstd::bulk::decompress(&frame[6..], all.len()).unwrap();
                    assert!(read == all, "{front} + {} + {back}", middle.len());
                }
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for frame in [&b""[..], b"1234", b"12345", &MAGIC, &[0x28, 0xb5, 0x2f, 0xfd, 0x24, 0, 1, 0, 0]] {
            let e = into_blocks(&mut frame.to_vec(), 0, true).unwrap_err();
            assert!(e.message().contains("another form"), "{e}");
        }
    }
}
