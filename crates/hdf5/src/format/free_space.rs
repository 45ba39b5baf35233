//! Free-space manager (specification III.H): which sections of the file, or of a fractal heap, are free.
//!
//! | bytes | header | bytes | section list |
//! |---|---|---|---|
//! | 4, 1, 1 | `FSHD`, version 0, client (0 heap, 1 file) | 4, 1 | `FSSE`, version 0 |
//! | L | bytes free | O | address of the header |
//! | L, L, L | sections: all, stored, not stored | n | sections of the size that follows |
//! | 2, 2, 2, 2 | classes, shrink and expand percent, log2 of the space | s | their size |
//! | L | largest section | a, 1, … | for each: offset, class, data of the class |
//! | O, L, L | section list: address, bytes used, bytes allocated | … | further sizes |
//! | 4 | checksum | 4 | checksum |
//!
//! n, s and a are as wide as the number of stored sections, the largest section and the space need.

use super::{Address, Sizes};
use tensilo_core::wire::{FieldReader, lookup3};
use tensilo_core::{Error, Result};

/// Header of a free-space manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpaceHeader {
    /// Does it manage a fractal heap (or the file)?
    pub of_heap: bool,
    /// Bytes free in all sections.
    pub free_bytes: u64,
    /// Sections, stored or not.
    pub sections: u64,
    /// Sections in the list.
    pub stored: u64,
    /// log2 of the size of the space that is managed.
    pub space_bits: u16,
    /// Size of the largest possible section.
    pub largest: u64,
    /// Where the section list is; `None` when there is none.
    pub list: Option<Address>,
    /// Bytes of the section list.
    pub list_len: u64,
    sizes: Sizes,
}

/// A section that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Where it begins: an address of the file, or a position in the heap.
    pub offset: u64,
    /// Its size in bytes.
    pub len: u64,
    /// Its class.
    pub class: u8,
}

impl FreeSpaceHeader {
    /// Bytes of a header.
    pub fn len(sizes: Sizes) -> u64 {
        u64::from(sizes.length).saturating_mul(7).saturating_add(u64::from(sizes.offset)).saturating_add(18)
    }

    /// Parses the header and verifies its checksum.
    ///
    /// # Errors
    /// `Corrupt` when it is none, or its numbers do not fit together.
    pub fn parse(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Self> {
        let mut r = FieldReader::new(bytes, at, "free-space manager");
        r.signature(b"FSHD")?;
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let client = r.u8()?;
        let free_bytes = sizes.length(&mut r)?;
        let sections = sizes.length(&mut r)?;
        let stored = sizes.length(&mut r)?;
        let ghosts = sizes.length(&mut r)?;
        r.skip(6)?;
        let space_bits = r.u16()?;
        let largest = sizes.length(&mut r)?;
        let list = sizes.address(&mut r)?;
        let list_len = sizes.length(&mut r)?;
        sizes.length(&mut r)?;
        let covered = bytes.get(..r.position()).unwrap_or(bytes);
        if lookup3(covered) != r.u32()? {
            return Err(Error::corrupt("free-space manager: checksum of the header does not match").at(at));
        }
        if client > 1 {
            return Err(r.corrupt(format_args!("client {client} is not known")));
        }
        if stored.checked_add(ghosts) != Some(sections) || space_bits > 64 {
            return Err(r.corrupt(format_args!(
                "{sections} sections, {stored} of them stored and {ghosts} not, in a space of 2^{space_bits} bytes"
            )));
        }
        Ok(Self {
            of_heap: client == 0,
            free_bytes,
            sections,
            stored,
            space_bits,
            largest,
            list,
            list_len,
            sizes,
        })
    }

    /// Parses the section list of the manager whose header is at `header`, and verifies its checksum. `heap_width` is
    /// the width of a position in the heap, where it is one that is managed.
    ///
    /// # Errors
    /// `Corrupt` when it is none, belongs to another manager, or its sections do not fit the header.
    pub fn sections(
        &self,
        bytes: &[u8],
        at: u64,
        header: Address,
        heap_width: usize,
    ) -> Result<Vec<Section>> {
        let short = || Error::corrupt("free-space sections: too short for a checksum").at(at);
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(short)?;
        if lookup3(body).to_le_bytes() != *sum {
            return Err(Error::corrupt("free-space sections: checksum does not match").at(at));
        }
        let mut r = FieldReader::new(body, at, "free-space sections");
        r.signature(b"FSSE")?;
        let version = r.u8()?;
        if version != 0 {
            return Err(r.corrupt(format_args!("version {version} is not known")));
        }
        let owner = self.sizes.address(&mut r)?;
        if owner != Some(header) {
            return Err(r.corrupt(format_args!("belongs to another manager, {owner:?}")));
        }
        // Old libraries wrote sizes with a byte less where the largest is a power of 256.
        let wide = bytes_of(self.largest);
        let narrow = bytes_of(self.largest.saturating_sub(1)).min(wide);
        let parsed = self.parse_sections(r.clone(), wide, heap_width);
        if parsed.is_ok() || narrow == wide { parsed } else { self.parse_sections(r, narrow, heap_width) }
    }

    fn parse_sections(
        &self,
        mut r: FieldReader<'_>,
        len_width: usize,
        heap_width: usize,
    ) -> Result<Vec<Section>> {
        let count_width = bytes_of(self.stored);
        let offset_width = usize::from(self.space_bits).div_ceil(8);
        let mut found = Vec::new();
        while r.remaining() > 0 && (found.len() as u64) < self.stored {
            let count = r.uint(count_width)?;
            let len = r.uint(len_width)?;
            if count == 0 || len == 0 {
                return Err(r.corrupt(format_args!("{count} sections of {len} bytes")));
            }
            for _ in 0..count {
                let offset = r.uint(offset_width)?;
                let class = r.u8()?;
                // Rows and tables of a heap's doubling table say where they are in it.
                if self.of_heap && class != 0 {
                    r.skip(heap_width.saturating_add(6))?;
                }
                found.push(Section { offset, len, class });
            }
        }
        if found.len() as u64 != self.stored || r.remaining() > 0 {
            return Err(r.corrupt(format_args!(
                "{} sections and {} bytes left over where {} are expected",
                found.len(),
                r.remaining(),
                self.stored
            )));
        }
        Ok(found)
    }
}

/// Bytes needed to write `n`.
fn bytes_of(n: u64) -> usize {
    usize::try_from(n.checked_ilog2().unwrap_or(0))
        .unwrap_or(63)
        .checked_div(8)
        .unwrap_or(0)
        .saturating_add(1)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic fails the test")]
mod tests {
    use super::*;
    use tensilo_core::wire::FieldWriter;

    /// A manager of 3 sections: two of 100 bytes, one of 300.
    fn example() -> (Vec<u8>, Vec<u8>) {
        let mut list = FieldWriter::new();
        list.bytes(b"FSSE").u8(0).u64(4096);
        list.u8(2).u16(100).uint(700, 8).u8(0).uint(900, 8).u8(0);
        list.u8(1).u16(300).uint(2000, 8).u8(0);
        let mut list = list.finish();
        list.extend(lookup3(&list).to_le_bytes());
        let mut head = FieldWriter::new();
        head.bytes(b"FSHD").u8(0).u8(1);
        head.u64(500).u64(3).u64(3).u64(0).u16(1).u16(80).u16(120).u16(64).u64(1000);
        head.u64(5000).u64(list.len() as u64).u64(200);
        let mut head = head.finish();
        head.extend(lookup3(&head).to_le_bytes());
        (head, list)
    }

    #[test]
    fn sections_are_listed_by_size() {
        let (head, list) = example();
        assert_eq!(head.len() as u64, FreeSpaceHeader::len(Sizes::EIGHT));
        let header = FreeSpaceHeader::parse(&head, 4096, Sizes::EIGHT).unwrap();
        assert_eq!((header.list, header.free_bytes, header.of_heap), (Some(Address(5000)), 500, false));
        let found = header.sections(&list, 5000, Address(4096), 0).unwrap();
        let found: Vec<_> = found.iter().map(|s| (s.offset, s.len)).collect();
        assert_eq!(found, [(700, 100), (900, 100), (2000, 300)]);
        assert!(header.sections(&list, 5000, Address(4097), 0).is_err());
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (head, list) = example();
        let header = FreeSpaceHeader::parse(&head, 0, Sizes::EIGHT).unwrap();
        for bit in 0..head.len() * 8 {
            let mut flipped = head.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(FreeSpaceHeader::parse(&flipped, 0, Sizes::EIGHT).is_err(), "bit {bit} of the header");
        }
        for bit in 0..list.len() * 8 {
            let mut flipped = list.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(header.sections(&flipped, 0, Address(4096), 0).is_err(), "bit {bit} of the list");
        }
    }
}
