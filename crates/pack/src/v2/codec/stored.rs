//! Counts as they are: scan by scan, little-endian.

use super::{BlockShape, Count, Layout, STORED};
use std::ops::Range;
use tensilo_core::{Error, Result};

/// Appends a stored block.
pub(super) fn encode<T: Count>(values: &[T], layout: Layout, shape: BlockShape, out: &mut Vec<u8>) {
    out.reserve(shape.most_bytes::<T>());
    out.push(STORED);
    for scan in 0..shape.scans {
        for first in (0..shape.pixels).step_by(layout.columns) {
            let n = layout.columns.min(shape.pixels - first);
            let row = &values[layout.at(scan, first)..][..n];
            if cfg!(target_endian = "little") {
                out.extend_from_slice(bytemuck::cast_slice(row));
            } else {
                row.iter().for_each(|v| out.extend_from_slice(&v.widen().to_le_bytes()[..T::BYTES]));
            }
        }
    }
}

/// Copies some scans.
pub(super) fn decode<T: Count>(
    body: &[u8],
    shape: BlockShape,
    scans: Range<usize>,
    out: &mut [T],
    layout: Layout,
) -> Result<()> {
    if body.len() != shape.counts() * T::BYTES {
        return Err(Error::corrupt(format!(
            "a stored block of {} bytes for {} counts of {} bytes",
            body.len(),
            shape.counts(),
            T::BYTES
        )));
    }
    let rows = body.chunks_exact(shape.pixels * T::BYTES).skip(scans.start).take(scans.len());
    for (scan, bytes) in rows.enumerate() {
        for first in (0..shape.pixels).step_by(layout.columns) {
            let n = layout.columns.min(shape.pixels - first);
            let row = &mut out[layout.at(scan, first)..][..n];
            let bytes = &bytes[first * T::BYTES..][..n * T::BYTES];
            if cfg!(target_endian = "little") {
                bytemuck::cast_slice_mut(row).copy_from_slice(bytes);
            } else {
                for (v, b) in row.iter_mut().zip(bytes.chunks_exact(T::BYTES)) {
                    let mut word = [0; 4];
                    word[..T::BYTES].copy_from_slice(b);
                    *v = T::narrow(u32::from_le_bytes(word));
                }
            }
        }
    }
    Ok(())
}
