//! Version 1 B-trees built from the leaves up, over chunks or over the symbol table nodes of a group.

use super::Chunks;
use crate::format::Address;
use crate::format::encode::btree_v1::{Kind, Node, chunk_key};
use crate::write::layout::Blocks;
use tensilo_core::{Error, Result};

/// Builds a tree of full nodes; `children` are in order, each with the key on its left.
pub(crate) fn tree(
    kind: Kind,
    mut children: Vec<(Vec<u8>, Address)>,
    last_key: &[u8],
    blocks: &mut Blocks,
    object: &str,
) -> Result<Address> {
    for level in 0..=u8::MAX {
        let nodes = children.len().div_ceil(kind.most_children()).max(1);
        let size = kind.node_size();
        let addresses = (0..nodes).map(|_| blocks.allocate(size)).collect::<Result<Vec<_>>>()?;
        let address = |i: usize| addresses[i];
        let mut above = Vec::with_capacity(nodes);
        for i in 0..nodes {
            let from = i * kind.most_children();
            let to = (from + kind.most_children()).min(children.len());
            let node = Node {
                kind,
                level,
                left: (i > 0).then(|| address(i - 1)),
                right: (i + 1 < nodes).then(|| address(i + 1)),
                children: &children[from..to],
                last_key: children.get(to).map_or(last_key, |(key, _)| key),
            };
            blocks.place(address(i), "B-tree v1 node", object, node.encode());
            above.push((children.get(from).map(|(key, _)| key.clone()).unwrap_or_default(), address(i)));
        }
        if nodes == 1 {
            return Ok(addresses[0]);
        }
        children = above;
    }
    Err(Error::unsupported("a B-tree of more than 256 levels"))
}

/// Builds the index of a dataset's chunks.
pub(crate) fn build(chunks: &Chunks, blocks: &mut Blocks, object: &str) -> Result<Address> {
    let mut children = Vec::with_capacity(chunks.records.len());
    let mut last_key = Vec::new();
    for (number, record) in &chunks.records {
        let coords = chunks.coords(*number);
        let size = u32::try_from(record.size)
            .map_err(|_| Error::unsupported(format!("a chunk of {} stored bytes", record.size)))?;
        let offsets = coords.iter().zip(&chunks.dims).map(|(c, d)| c * d);
        children.push((chunk_key(size, record.mask, offsets, 0), record.address));
        // The key behind the last chunk is one chunk further along every dimension.
        let beyond = coords.iter().zip(&chunks.dims).map(|(c, d)| (c + 1) * d);
        last_key = chunk_key(0, 0, beyond, chunks.element_size);
    }
    tree(Kind::Chunk { rank: chunks.dims.len() }, children, &last_key, blocks, object)
}
