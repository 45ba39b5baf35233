//! The state block: all that a commit says, and the open ends of the record table.
//!
//! The record table is a tree of pages. A leaf holds the entries of 128 records, a page of level 1 refers to 128
//! leaves, a page of level 2 to 128 pages of level 1, and so on; only full pages are written. What does not fill a
//! page yet is kept in the state block: the entries of the last `records mod 128` records, and for each level the
//! references to pages that no page above refers to. How many there are follows from the number of records.
//!
//! | type | field |
//! |---|---|
//! | 8 bytes | `TRECSTAT` |
//! | u64 | generation |
//! | u64 | records, at most 2^40 |
//! | u64 | bytes of live cells outside the table |
//! | u128 | digest of all entries |
//! | 20 bytes | schema: u64 offset, u64 bytes, u32 CRC-32C |
//! | 20 bytes | metadata, likewise; all zero when there is none |
//! | u32 | fields of a record |
//! | u32 | dictionaries, then 20 bytes for each |
//! | 12 bytes each | page references level by level: u64 offset, u32 CRC-32C |
//! | 24 bytes each | entries of the last records |
//! | u32 | CRC-32C of everything before |

use super::entry::ENTRY;
use super::layout::{Block, LARGEST_STATE};
use tensilo_core::wire::{FieldReader, FieldWriter};
use tensilo_core::{Error, Result};

/// Records whose entries make a leaf.
pub(crate) const LEAF: u64 = 128;
/// References of a page above the leaves.
pub(crate) const FAN: u64 = 128;
/// Bytes of a reference.
pub(crate) const REFERENCE: usize = 12;
/// Bytes of a page above the leaves.
pub(crate) const PAGE: usize = FAN as usize * REFERENCE;
/// Most records of a store.
pub const MOST_RECORDS: u64 = 1 << 40;
/// Most fields of a record.
pub const MOST_FIELDS: usize = 1024;
/// Most dictionaries of a store.
pub(crate) const MOST_DICTIONARIES: usize = 255;
/// First bytes of a state block.
pub(crate) const STATE_MAGIC: [u8; 8] = *b"TRECSTAT";

/// Where a page is; its length follows from its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRef {
    pub offset: u64,
    pub crc: u32,
}

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub generation: u64,
    pub len: u64,
    pub live_bytes: u64,
    pub digest: u128,
    pub schema: Block,
    pub metadata: Option<Block>,
    pub dictionaries: Vec<Block>,
    pub fields: usize,
    /// Per level, pages that no page above refers to.
    pub frontier: Vec<Vec<PageRef>>,
    /// Entries of the records behind the last full leaf.
    pub tail: Vec<u8>,
}

/// Full pages of a level, counted from the leaves.
pub(crate) fn full_pages(len: u64, level: u32) -> u64 {
    (len / LEAF).checked_div(FAN.saturating_pow(level)).unwrap_or(0)
}

impl State {
    /// A store without records.
    pub fn empty(schema: Block, fields: usize) -> Self {
        Self {
            generation: 0,
            len: 0,
            live_bytes: 0,
            digest: 0,
            schema,
            metadata: None,
            dictionaries: Vec::new(),
            fields,
            frontier: Vec::new(),
            tail: Vec::new(),
        }
    }

    /// Bytes of the entries of a record.
    pub fn record_bytes(&self) -> usize {
        self.fields * ENTRY
    }

    /// Bytes before the dictionaries.
    pub const FIXED: usize = 96;

    /// Length of the state block that begins with these bytes; `None` when none does. For finding lost ones.
    pub fn block_bytes(start: &[u8]) -> Option<u64> {
        let number = |at: usize| Some(u64::from_le_bytes(*start.get(at..)?.first_chunk()?));
        let small = |at: usize| Some(u64::from(u32::from_le_bytes(*start.get(at..)?.first_chunk()?)));
        let (len, fields, dictionaries) = (number(16)?, small(88)?, small(92)?);
        let sane = start.starts_with(&STATE_MAGIC)
            && len <= MOST_RECORDS
            && fields <= MOST_FIELDS as u64
            && dictionaries <= MOST_DICTIONARIES as u64;
        let open: u64 = (0..).map(|l| full_pages(len, l)).take_while(|n| *n > 0).map(|n| n % FAN).sum();
        let rest = dictionaries * 20 + open * REFERENCE as u64 + len % LEAF * fields * ENTRY as u64;
        sane.then_some(Self::FIXED as u64 + rest + 4)
    }

    /// Reads a state block that ends where its bytes end; `base` is its offset in the file.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub fn parse(bytes: &[u8], base: u64) -> Result<Self> {
        let body = bytes.len().checked_sub(4).and_then(|n| bytes.split_at_checked(n));
        let Some((body, crc)) = body else {
            return Err(Error::corrupt("the state block is too short").at(base));
        };
        if crc != crc32c::crc32c(body).to_le_bytes() {
            return Err(Error::corrupt("the state block does not match its checksum").at(base));
        }
        let mut r = FieldReader::new(body, base, "state block");
        r.signature(&STATE_MAGIC)?;
        let (generation, len, live_bytes) = (r.u64()?, r.u64()?, r.u64()?);
        let digest = u128::from(r.u64()?) | u128::from(r.u64()?) << 64;
        let schema = block(&mut r, base, "schema")?;
        let metadata = match block_raw(&mut r)? {
            Block { offset: 0, bytes: 0, crc: 0 } => None,
            some => some.check(base, "metadata").map(|()| Some(some))?,
        };
        let fields = r.u32()? as usize;
        if len > MOST_RECORDS || fields == 0 || fields > MOST_FIELDS {
            return Err(r.corrupt(format_args!("{len} records of {fields} fields")));
        }
        let count = r.u32()? as usize;
        if count > MOST_DICTIONARIES {
            return Err(r.corrupt(format_args!("{count} dictionaries")));
        }
        let dictionaries = (0..count).map(|_| block(&mut r, base, "dictionary")).collect::<Result<_>>()?;
        let mut frontier = Vec::new();
        for level in 0.. {
            let full = full_pages(len, level);
            if full == 0 {
                break;
            }
            let open = full % FAN;
            frontier.push((0..open).map(|_| reference(&mut r)).collect::<Result<_>>()?);
        }
        let tail = r.bytes((len % LEAF) as usize * fields * ENTRY)?.to_vec();
        if r.remaining() != 0 {
            return Err(r.corrupt(format_args!("{} bytes too many", r.remaining())));
        }
        Ok(Self {
            generation,
            len,
            live_bytes,
            digest,
            schema,
            metadata,
            dictionaries,
            fields,
            frontier,
            tail,
        })
    }

    /// The block's bytes.
    ///
    /// # Errors
    /// `Limit` when there is too much for a block.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut w = FieldWriter::new();
        w.bytes(&STATE_MAGIC).u64(self.generation).u64(self.len).u64(self.live_bytes);
        w.u64(self.digest as u64).u64((self.digest >> 64) as u64);
        let none = Block { offset: 0, bytes: 0, crc: 0 };
        for b in [self.schema, self.metadata.unwrap_or(none)] {
            w.u64(b.offset).u64(b.bytes).u32(b.crc);
        }
        w.u32(self.fields as u32).u32(self.dictionaries.len() as u32);
        for b in &self.dictionaries {
            w.u64(b.offset).u64(b.bytes).u32(b.crc);
        }
        for page in self.frontier.iter().flatten() {
            w.u64(page.offset).u32(page.crc);
        }
        w.bytes(&self.tail);
        let crc = crc32c::crc32c(w.as_slice());
        w.u32(crc);
        if w.len() as u64 > LARGEST_STATE {
            return Err(Error::limit(format!("a state block of {} bytes", w.len())));
        }
        Ok(w.finish())
    }
}

fn block_raw(r: &mut FieldReader<'_>) -> Result<Block> {
    Ok(Block { offset: r.u64()?, bytes: r.u64()?, crc: r.u32()? })
}

fn block(r: &mut FieldReader<'_>, end: u64, what: &str) -> Result<Block> {
    let block = block_raw(r)?;
    block.check(end, what)?;
    Ok(block)
}

pub(crate) fn reference(r: &mut FieldReader<'_>) -> Result<PageRef> {
    Ok(PageRef { offset: r.u64()?, crc: r.u32()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_ends_of_any_number_of_records_are_its_digits() {
        for (len, open) in [
            (0, vec![]),
            (127, vec![]),
            (128, vec![1]),
            (128 * 128 - 1, vec![127]),
            (128 * 128, vec![0, 1]),
            (128 * 128 * 128 * 5 + 128 * 3 + 1, vec![3, 0, 5]),
            (MOST_RECORDS, vec![0, 0, 0, 0, 32]),
        ] {
            let mut levels = Vec::new();
            for level in 0.. {
                match full_pages(len, level) {
                    0 => break,
                    full if full_pages(len, level + 1) == 0 => levels.push(full),
                    full => levels.push(full % FAN),
                }
            }
            assert_eq!(levels, open, "{len}");
        }
    }

    #[test]
    fn a_state_block_reads_back_and_no_flipped_bit_or_cut_passes() {
        let at = |offset| Block { offset, bytes: 10, crc: 3 };
        let page = |i: u64| PageRef { offset: 10_000 + i, crc: i as u32 };
        let state = State {
            generation: 9,
            len: 128 * 128 * 2 + 128 * 3 + 2,
            live_bytes: 77,
            digest: 1 << 100 | 5,
            metadata: Some(at(9000)),
            dictionaries: vec![at(9100), at(9200)],
            frontier: vec![(0..3).map(page).collect(), (0..2).map(page).collect()],
            tail: vec![5; 2 * 3 * ENTRY],
            ..State::empty(at(8192), 3)
        };
        let bytes = state.encode().unwrap();
        assert_eq!(State::parse(&bytes, 1 << 20).unwrap(), state);
        assert_eq!(State::block_bytes(&bytes[..State::FIXED]), Some(bytes.len() as u64));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(State::parse(&bad, 1 << 20).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(State::parse(&bytes[..cut], 1 << 20).is_err(), "cut {cut}");
        }
    }
}
