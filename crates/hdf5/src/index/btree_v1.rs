//! Walks a version 1 B-tree of chunks.

use super::{ChunkIndex, Gather, Stored, Visit};
use crate::format::Address;
use crate::format::index::chunk_node::{self, Head};
use crate::space::{Bytes, FileSpace, Visits};
use std::cmp::Ordering;
use tensilo_core::{Error, Result};

const WHAT: &str = "chunk B-tree node";

/// Children that a node has room for, unless the superblock says otherwise.
const DEFAULT_K: u16 = 32;

fn node(space: &FileSpace, at: Address, rank: usize, level: Option<u8>) -> Result<(Bytes<'_>, Head)> {
    let sizes = space.sizes();
    // A node takes the space of a full one; reading that at once saves a request.
    let k = space.superblock().chunk_internal_k.unwrap_or(DEFAULT_K);
    let full = chunk_node::len(sizes, rank, k.saturating_mul(2));
    let mut bytes = space.read_up_to(at, full, WHAT)?;
    let head = Head::parse(&bytes, bytes.offset())?;
    if let Some(expected) = level.filter(|l| *l != head.level) {
        let message = format!("{WHAT}: level {} where {expected} is expected", head.level);
        return Err(Error::corrupt(message).at(bytes.offset()));
    }
    let used = chunk_node::len(sizes, rank, head.entries);
    if used > bytes.len() as u64 {
        bytes = space.read(at, used, WHAT)?;
    }
    Ok((bytes, head))
}

/// Element offsets to chunk coordinates.
fn to_coords(index: &ChunkIndex, offsets: &[u64], coords: &mut [u64], at: u64) -> Result<()> {
    for ((c, o), n) in coords.iter_mut().zip(offsets).zip(&index.layout.dims) {
        if !o.is_multiple_of(*n) {
            return Err(
                Error::corrupt(format!("{WHAT}: offset {o} is no multiple of the chunk extent {n}")).at(at)
            );
        }
        *c = o / n;
    }
    Ok(())
}

pub(super) fn walk(
    index: &ChunkIndex,
    space: &FileSpace,
    root: Address,
    visits: &mut Visits,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let rank = index.layout.dims.len();
    let (mut offsets, mut coords) = (index.origin(), index.origin());
    // Nodes to visit, the next one last; as long as one path with all its siblings.
    let mut todo = vec![(root, None)];
    let mut gather = Gather::default();
    while let Some((at, level)) = todo.pop() {
        let Some((bytes, head)) = gather.tolerate(node(space, at, rank, level))? else { continue };
        visits.enter(bytes.offset(), chunk_node::len(space.sizes(), rank, head.entries), WHAT)?;
        let first = todo.len();
        chunk_node::entries(
            &bytes,
            bytes.offset(),
            space.sizes(),
            head,
            &mut offsets,
            &mut |key, stored| {
                if head.level > 0 {
                    todo.push((stored.address, Some(head.level - 1)));
                    return Ok(());
                }
                to_coords(index, key, &mut coords, bytes.offset())?;
                visit(&coords, index.plain_or(stored))
            },
        )?;
        todo[first..].reverse();
    }
    gather.finish()
}

pub(super) fn find(
    index: &ChunkIndex,
    space: &FileSpace,
    root: Address,
    coords: &[u64],
) -> Result<Option<Stored>> {
    let rank = index.layout.dims.len();
    let mut offsets = index.origin();
    let wanted: Vec<u64> = coords.iter().zip(&index.layout.dims).map(|(c, n)| c.saturating_mul(*n)).collect();
    let (mut at, mut level) = (root, None);
    loop {
        let (bytes, head) = node(space, at, rank, level)?;
        // The last child whose first chunk is not behind the wanted one.
        let mut best = None;
        chunk_node::entries(
            &bytes,
            bytes.offset(),
            space.sizes(),
            head,
            &mut offsets,
            &mut |key, stored| {
                let order = key.cmp(wanted.as_slice());
                if order == Ordering::Equal || (head.level > 0 && order == Ordering::Less) {
                    best = Some(stored);
                }
                Ok(())
            },
        )?;
        let Some(stored) = best else { return Ok(None) };
        if head.level == 0 {
            return Ok(Some(index.plain_or(stored)));
        }
        (at, level) = (stored.address, Some(head.level - 1));
    }
}

impl ChunkIndex {
    /// An unfiltered chunk takes its exact size, whatever the key says.
    fn plain_or(&self, stored: Stored) -> Stored {
        if self.filtered { stored } else { Stored { size: self.chunk_bytes, mask: 0, ..stored } }
    }
}
