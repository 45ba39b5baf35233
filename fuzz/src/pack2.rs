//! Packs of format 2: preamble, index, shard tables, blocks, products.
//!
//! Checksums of preamble and index are made to agree first, so that changed fields reach what stands behind them.

use std::sync::Arc;
use tensilo_core::array::{Axis, Selection};
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_core::{Limits, Quiet};
use tensilo_pack::read::Values;
use tensilo_pack::v2::products::Request;
use tensilo_pack::v2::read::{Pack, ReadOptions};

/// Detectors larger than this are not read whole, to keep a run fast.
const MOST_PIXELS: u64 = 1 << 16;

/// Opens the bytes as a pack of format 2 and reads corners of it.
pub fn pack2(data: &[u8]) {
    let mut bytes = data.to_vec();
    agree(&mut bytes);
    let options =
        ReadOptions { limits: Limits::default().with_bytes(crate::MOST_BYTES / 4), threads: Threads::ONE };
    let Ok(pack) = Pack::from_source(Arc::new(MemorySource::new(bytes)), options) else { return };
    let shape = pack.shape();
    let one = |at: u64| Axis::Regular { start: at, stride: 1, count: 1, block: 1 };
    for last in [false, true] {
        let axes = shape.iter().map(|side| one(if last { side - 1 } else { 0 })).collect();
        let mut value = vec![0; pack.layout().counts().bytes()];
        let _ = pack.read_bytes_into(&Selection::Axes(axes), Values::Raw, &mut value, &Quiet);
    }
    let pixels = pack.layout().pixels();
    if pixels <= MOST_PIXELS {
        let mut frame = vec![0; pack.layout().frame_bytes() as usize];
        let _ = pack.frames_into(0..1, Values::Masked, &mut frame, &Quiet);
        if pack.layout().scans() <= 1 << 12 {
            let masks = vec![vec![1; pixels as usize]];
            let _ = pack.products(
                &Request { diffraction_max: true, moments: true, masks, ..Request::default() },
                &Quiet,
            );
        }
    }
    let _ = pack.mask_codes();
}

/// Makes the checksums of index and preamble, and the stated length of the file, agree with the bytes.
fn agree(bytes: &mut [u8]) {
    if bytes.len() < 512 {
        return;
    }
    let length = bytes.len() as u64;
    bytes[24..32].copy_from_slice(&length.to_le_bytes());
    let number = |at: usize| bytes[at..at + 8].iter().rev().fold(0_u64, |n, b| n << 8 | u64::from(*b));
    let (offset, len) = (number(32), number(40));
    if let Some(index) = offset.checked_add(len).and_then(|end| bytes.get(offset as usize..end as usize)) {
        let crc = crc32c::crc32c(index).to_le_bytes();
        bytes[48..52].copy_from_slice(&crc);
    }
    let crc = crc32c::crc32c(&bytes[..508]).to_le_bytes();
    bytes[508..512].copy_from_slice(&crc);
}
