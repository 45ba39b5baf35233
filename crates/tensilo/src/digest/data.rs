//! The bytes of a dataset or attribute, streamed through a compiled element into SHA-256.

use super::element::{Element, Sink};
use super::paths::Pointers;
use super::text::Line;
use super::{DigestOptions, Trouble};
use crate::hdf5::{Dataset, Hyperslab, Selection};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use tensilo_core::{Error, Monitor, Progress, Result};
use tensilo_hdf5::format::message::dataspace::Dataspace;

/// Stored bytes that are read at a time, about.
const SLAB: u64 = 16 << 20;
/// Most stored bytes that are read at a time so that whole chunks are.
const LARGEST_SLAB: u64 = 64 << 20;

/// SHA-256 behind a small buffer, for elements come in a few bytes at a time.
pub(super) struct Hash {
    sha: Sha256,
    held: Vec<u8>,
    bytes: u64,
}

impl Hash {
    const HELD: usize = 1 << 16;

    pub(super) fn new() -> Self {
        Self { sha: Sha256::new(), held: Vec::with_capacity(Self::HELD), bytes: 0 }
    }

    /// Appends status, number of bytes and hash.
    pub(super) fn report(mut self, line: &mut Line) {
        self.sha.update(&self.held);
        let mut hex = String::with_capacity(64);
        for b in self.sha.finalize() {
            write!(hex, "{b:02x}").expect("writing to a String");
        }
        line.string("status", "ok").number("nbytes", self.bytes).string("sha256", &hex);
    }
}

impl Sink for Hash {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.held.len() + bytes.len() > Self::HELD {
            self.sha.update(&self.held);
            self.held.clear();
            if bytes.len() >= Self::HELD {
                return self.sha.update(bytes);
            }
        }
        self.held.extend_from_slice(bytes);
    }
}

/// Hashes a dataset.
pub(super) fn dataset(
    dataset: &Dataset,
    element: &Element,
    options: &DigestOptions,
    pointers: &Pointers<'_>,
    monitor: &dyn Monitor,
) -> Result<Hash, Trouble> {
    let mut hash = Hash::new();
    let elements = match dataset.dataspace() {
        Dataspace::Null => return Ok(hash),
        space => space.elements().ok_or_else(|| Error::corrupt("more than 2^64 elements"))?,
    };
    let bytes = u128::from(elements) * u128::from(element.memory);
    if bytes > u128::from(options.max_bytes) {
        return Err(Trouble::Scope(format!("{bytes} bytes")));
    }
    let shape = dataset.shape();
    if elements == 0 || shape.is_empty() {
        // Nothing to read is asked for too: it fails where the data could not be read.
        element.feed(&dataset.read_bytes(&Selection::All)?, pointers, &mut hash)?;
        return Ok(hash);
    }
    let total = elements.saturating_mul(element.stored as u64);
    let mut done = 0;
    let mut read = |start: &[u64], count: &[u64]| -> Result<(), Trouble> {
        monitor.poll(&Progress { stage: "hashing", done, total })?;
        let slab = Selection::Hyperslab(Hyperslab::new(start.to_vec(), count.to_vec()));
        let bytes = dataset.read_bytes(&slab)?;
        done += bytes.len() as u64;
        element.feed(&bytes, pointers, &mut hash)
    };
    let chunk = dataset.chunk_shape().map(<[u64]>::to_vec);
    slabs(shape, element.stored as u64, chunk.as_deref(), &mut Vec::new(), &mut read)?;
    Ok(hash)
}

/// Takes start and extents of a block.
type EachSlab<'a> = dyn FnMut(&[u64], &[u64]) -> Result<(), Trouble> + 'a;

/// Cuts a shape into blocks that follow each other in C order, whole rows of chunks where they are not too large.
fn slabs(
    shape: &[u64],
    unit: u64,
    chunk: Option<&[u64]>,
    above: &mut Vec<u64>,
    read: &mut EachSlab<'_>,
) -> Result<(), Trouble> {
    let (first, inner) = (shape[0], &shape[1..]);
    let row = inner.iter().fold(unit, |n, d| n.saturating_mul(*d)).max(1);
    if row > LARGEST_SLAB && !inner.is_empty() {
        for i in 0..first {
            above.push(i);
            slabs(inner, unit, chunk.map(|c| &c[1..]), above, read)?;
            above.pop();
        }
        return Ok(());
    }
    let mut step = (SLAB / row).max(1);
    if let Some(&[deep, ..]) = chunk {
        if step >= deep {
            step -= step % deep;
        } else if deep.saturating_mul(row) <= LARGEST_SLAB {
            step = deep;
        }
    }
    let mut start = above.clone();
    let mut count = vec![1; above.len()];
    start.resize(above.len() + shape.len(), 0);
    count.extend_from_slice(shape);
    let axis = above.len();
    let mut at = 0;
    while at < first {
        start[axis] = at;
        count[axis] = step.min(first - at);
        read(&start, &count)?;
        at += count[axis];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(shape: &[u64], unit: u64, chunk: Option<&[u64]>) -> Vec<(Vec<u64>, Vec<u64>)> {
        let mut out = Vec::new();
        slabs(shape, unit, chunk, &mut Vec::new(), &mut |s, c| {
            out.push((s.to_vec(), c.to_vec()));
            Ok(())
        })
        .unwrap();
        out
    }

    #[test]
    fn slabs_cover_a_shape_once_in_c_order_and_stay_small() {
        for (shape, unit, chunk) in [
            (vec![10, 3], 4, None),
            (vec![100, 1 << 20], 8, Some(vec![7, 1024])),
            (vec![3, 5, 1 << 24], 8, Some(vec![1, 2, 1 << 20])),
            (vec![1 << 26], 2, Some(vec![1000])),
        ] {
            let mut next = 0;
            let strides: Vec<u64> =
                (0..shape.len()).map(|i| shape[i + 1..].iter().product::<u64>()).collect();
            for (start, count) in blocks(&shape, unit, chunk.as_deref()) {
                let linear: u64 = start.iter().zip(&strides).map(|(s, k)| s * k).sum();
                assert_eq!(linear, next);
                let n: u64 = count.iter().product();
                assert!(n * unit <= LARGEST_SLAB, "{start:?} {count:?}");
                next += n;
            }
            assert_eq!(next, shape.iter().product::<u64>());
        }
    }

    #[test]
    fn slabs_hold_whole_rows_of_chunks_where_they_can() {
        for (start, count) in blocks(&[1000, 1 << 16], 2, Some(&[33, 512])) {
            assert_eq!(start[0] % 33, 0);
            assert!(count[0] % 33 == 0 || start[0] + count[0] == 1000);
        }
    }

    #[test]
    fn the_hash_of_nothing_is_that_of_the_empty_string() {
        let mut line = Line::new();
        Hash::new().report(&mut line);
        assert!(line.finish().contains("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    }
}
