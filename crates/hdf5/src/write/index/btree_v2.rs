//! Version 2 B-trees built from sorted records: over chunks, names and creation orders.

use crate::format::Address;
use crate::format::encode::btree_v2::{HEADER_SIZE, Level, Shape};
use crate::write::layout::Blocks;
use tensilo_core::{Error, Result};

/// Builds a tree over `records`, which lie sorted one behind the other; returns the address of its header.
pub(crate) fn build(shape: Shape, records: &[u8], blocks: &mut Blocks, object: &str) -> Result<Address> {
    let header = blocks.allocate(HEADER_SIZE)?;
    let count = (records.len() / shape.record_size) as u64;
    let levels = shape.levels(count);
    let (root, root_records) = match count {
        0 => (None, 0),
        _ => {
            let (address, own) = node(shape, &levels, records, blocks, object)?;
            (Some(address), own)
        }
    };
    let own =
        u16::try_from(root_records).map_err(|_| Error::unsupported("B-tree nodes of over 65535 records"))?;
    let depth = (levels.len() - 1) as u16;
    blocks.place(header, "B-tree v2 header", object, shape.header(depth, root, own, count));
    Ok(header)
}

/// Builds the subtree of `records` on the topmost of `levels`; returns its address and its own records.
fn node(
    shape: Shape,
    levels: &[Level],
    records: &[u8],
    blocks: &mut Blocks,
    object: &str,
) -> Result<(Address, u64)> {
    let size = shape.record_size;
    let count = (records.len() / size) as u64;
    let [leaf, .., below, _] = levels else {
        // One or two levels: a leaf, or an inner node over leaves.
        return match levels {
            [_, _] => inner(shape, levels, levels[0], levels[0], records, blocks, object),
            _ => Ok((blocks.append("B-tree v2 leaf", object, shape.leaf(records))?, count)),
        };
    };
    inner(shape, levels, *leaf, *below, records, blocks, object)
}

fn inner(
    shape: Shape,
    levels: &[Level],
    leaf: Level,
    below: Level,
    records: &[u8],
    blocks: &mut Blocks,
    object: &str,
) -> Result<(Address, u64)> {
    let size = shape.record_size;
    let count = (records.len() / size) as u64;
    // The fewest children that can hold all records, with one record between neighbours; filled evenly.
    let children = (count + 1).div_ceil(below.most_below + 1).max(2);
    let in_children = count - (children - 1);
    let mut own = Vec::with_capacity((children - 1) as usize * size);
    let mut pointers = Vec::with_capacity(children as usize);
    let mut rest = records;
    let mut given = 0;
    for i in 0..children {
        let upto = in_children * (i + 1) / children;
        let here = upto - given;
        given = upto;
        let (part, behind) = rest.split_at(here as usize * size);
        let (address, of_child) = node(shape, &levels[..levels.len() - 1], part, blocks, object)?;
        pointers.push((address, of_child, here));
        rest = behind;
        if i + 1 < children {
            let (record, behind) = rest.split_at(size);
            own.extend_from_slice(record);
            rest = behind;
        }
    }
    let bytes = shape.inner(&own, &pointers, leaf, below);
    Ok((blocks.append("B-tree v2 inner node", object, bytes)?, children - 1))
}
