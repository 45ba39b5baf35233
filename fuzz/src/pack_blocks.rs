//! Blocks of pack format 2: any bytes, any shape, any kind of count.
//!
//! | bytes | field |
//! |---|---|
//! | 2 | pixels, 1 to 1024 after `% 1024 + 1` |
//! | 2 | scans likewise |
//! | 1 | bytes of a count: 1, 2 or 4 |
//! | rest | the block |

use tensilo_core::Result;
use tensilo_core::wire::FieldReader;
use tensilo_pack::v2::codec::{
    BlockShape, Count, DecodeScratch, Layout, add_masked_sums, add_pixel_sums, decode, decode_scans,
};

/// Decodes a block whole, in part, and as sums; all must agree on whether it can be, and on what it holds.
pub fn pack_blocks(data: &[u8]) {
    let Ok((shape, element, block)) = parse(data) else { return };
    match element % 3 {
        0 => every_way::<u8>(block, shape),
        1 => every_way::<u16>(block, shape),
        _ => every_way::<u32>(block, shape),
    }
}

fn parse(data: &[u8]) -> Result<(BlockShape, u8, &[u8])> {
    let mut r = FieldReader::new(data, 0, "case");
    let shape =
        BlockShape { pixels: usize::from(r.u16()? % 1024) + 1, scans: usize::from(r.u16()? % 1024) + 1 };
    Ok((shape, r.u8()?, r.rest()))
}

fn every_way<T: Count>(block: &[u8], shape: BlockShape) {
    let (mut scratch, layout) = (DecodeScratch::default(), Layout::flat(shape));
    let (mut once, mut twice) =
        (vec![T::default(); shape.counts()], vec![T::narrow(T::MOST); shape.counts()]);
    let first = decode(block, shape, &mut once, layout, &mut scratch).is_ok();
    let second = decode(block, shape, &mut twice, layout, &mut scratch).is_ok();
    assert_eq!(first, second, "a block is decoded or refused");
    let (mut pixels, mut scans) = (vec![0; shape.pixels], vec![0; shape.scans]);
    let mask = vec![1; shape.pixels];
    assert_eq!(add_pixel_sums::<T>(block, shape, &mut pixels, &mut scratch).is_ok(), first);
    assert_eq!(add_masked_sums::<T>(block, shape, &mask, &mut scans, &mut scratch).is_ok(), first);
    let last = shape.scans - 1;
    let part = decode_scans(block, shape, last..last + 1, &mut twice[..shape.pixels], layout, &mut scratch);
    assert_eq!(part.is_ok(), first);
    if first {
        assert!(twice[..shape.pixels] == once[last * shape.pixels..], "one scan is what the whole block has");
    }
}
