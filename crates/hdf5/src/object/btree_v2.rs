//! Walks and searches version 2 B-trees, whatever their records are.

use crate::format::Address;
use crate::format::btree_v2::{BtreeV2Header, NodePointer};
use crate::space::{FileSpace, Visits};
use std::cmp::Ordering;
use tensilo_core::Result;
use tensilo_core::wire::FieldReader;

const WHAT: &str = "version 2 B-tree node";

fn open(space: &FileSpace, address: Address, kind: u8) -> Result<BtreeV2Header> {
    let bytes = space.read(address, BtreeV2Header::len(space.sizes()), "version 2 B-tree")?;
    let header = BtreeV2Header::parse(&bytes, bytes.offset(), space.sizes()).map_err(|e| space.locate(e))?;
    if header.kind != kind {
        return Err(space.corrupt(
            format!("version 2 B-tree: records of type {} where {kind} is expected", header.kind),
            bytes.offset(),
        ));
    }
    Ok(header)
}

/// Reads the header of a tree, only to see whether it is there.
pub(super) fn probe(space: &FileSpace, address: Address) -> Result<()> {
    space.read(address, BtreeV2Header::len(space.sizes()), "version 2 B-tree").map(drop)
}

/// The number of records of the tree whose header is at `address`.
pub(super) fn records(space: &FileSpace, address: Address, kind: u8) -> Result<u64> {
    open(space, address, kind).map(|header| header.records)
}

/// Visits every record of the tree whose header is at `address`, in order.
///
/// # Errors
/// `Corrupt` when the tree is damaged or of another type, `Limit`, or what `visit` answers.
pub fn walk(
    space: &FileSpace,
    address: Address,
    kind: u8,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    find(space, address, kind, &mut |_| Ok(Ordering::Equal), &mut |record, _| visit(record))
}

/// Visits, in order, the records for which `compare` says `Equal`. It must say `Less` for all records before those
/// and `Greater` for all behind. Reads only the nodes on the way to them. `visit` gets each record and its absolute
/// offset.
///
/// # Errors
/// `Corrupt` when the tree is damaged or of another type, `Limit`, or what `compare` or `visit` answer.
pub fn find(
    space: &FileSpace,
    address: Address,
    kind: u8,
    compare: &mut dyn FnMut(&[u8]) -> Result<Ordering>,
    visit: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let header = open(space, address, kind)?;
    let Some(root) = header.root else { return Ok(()) };
    let mut search = Search { space, header: &header, compare, visit, visits: space.visits() };
    search.node(root, header.depth)
}

struct Search<'a> {
    space: &'a FileSpace,
    header: &'a BtreeV2Header,
    compare: &'a mut dyn FnMut(&[u8]) -> Result<Ordering>,
    visit: &'a mut dyn FnMut(&[u8], u64) -> Result<()>,
    visits: Visits,
}

impl Search<'_> {
    fn node(&mut self, pointer: NodePointer, height: u16) -> Result<()> {
        let node_size = u64::from(self.header.node_size);
        let bytes = self.space.read(pointer.address, node_size, WHAT)?;
        self.visits.enter(bytes.offset(), node_size, WHAT).map_err(|e| self.space.locate(e))?;
        let node = self
            .header
            .node(&bytes, bytes.offset(), height, pointer.records)
            .map_err(|e| self.space.locate(e))?;
        let width = usize::from(self.header.record_size).max(1);
        let records: Vec<&[u8]> = node.records.chunks_exact(width).collect();
        let child = |i: usize| node.children.get(i).copied();
        // Binary search for the first record that is not before those wanted.
        let (mut low, mut high) = (0, records.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if (self.compare)(records[middle])? == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // The child before it may end with wanted records, all children between wanted ones do.
        for i in low..=records.len() {
            if let Some(c) = child(i) {
                self.node(c, height - 1)?;
            }
            let Some(record) = records.get(i) else { break };
            if (self.compare)(record)? != Ordering::Equal {
                break;
            }
            let at = node.at.saturating_add((i * width) as u64);
            (self.visit)(record, at)?;
        }
        Ok(())
    }
}

/// Reads the hash that orders a name index from a record: behind `skip` bytes.
pub(super) fn hash_of(record: &[u8], skip: usize) -> Result<u32> {
    let mut r = FieldReader::new(record, 0, "name index record");
    r.skip(skip)?;
    r.u32()
}
