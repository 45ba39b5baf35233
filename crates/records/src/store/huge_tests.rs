//! Stores of 2^40 records and hostile ones, made by hand: pages may refer to one page many times.

use super::codec::Encoding;
use super::entry::{ENTRY, Entry, LARGEST_CELL, Stored};
use super::layout::{Block, COPIES, CommitRecord, FRONT};
use super::schema_block;
use super::snapshot::{OpenOptions, Store};
use super::state::{FAN, LEAF, MOST_RECORDS, PageRef, State};
use std::sync::Arc;
use tensilo_core::dtype::DType;
use tensilo_core::gather::{FieldBuffer, FieldSchema, Gather, Places, Schema};
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_core::{ErrorKind, Limits, Quiet, Result};

/// A file in the making.
struct Made(Vec<u8>);

impl Made {
    fn new() -> Self {
        Self(vec![0; FRONT as usize])
    }

    fn put(&mut self, bytes: &[u8]) -> Block {
        let offset = self.0.len() as u64;
        self.0.extend_from_slice(bytes);
        Block { offset, bytes: bytes.len() as u64, crc: crc32c::crc32c(bytes) }
    }

    fn page(&mut self, bytes: &[u8]) -> PageRef {
        let block = self.put(bytes);
        PageRef { offset: block.offset, crc: block.crc }
    }

    fn schema(&mut self, fields: Vec<FieldSchema>) -> Block {
        let encodings = vec![Encoding::RAW; fields.len()];
        self.put(&schema_block::encode(&Schema::new(fields).unwrap(), &encodings).unwrap())
    }

    /// A leaf of one entry again and again, and pages above it; one reference for each level.
    fn tree(&mut self, entry: &Entry, levels: usize) -> Vec<PageRef> {
        let mut pages = vec![self.page(&entry.encode().repeat(LEAF as usize))];
        for _ in 1..levels {
            let below = pages[pages.len() - 1];
            let page = super::appender::encode_references(&vec![below; FAN as usize]);
            pages.push(self.page(&page));
        }
        pages
    }

    fn finish(mut self, mut state: State) -> Vec<u8> {
        state.generation = 1;
        let bytes = state.encode().unwrap();
        let mut block = self.put(&bytes);
        block.crc = crc32c::crc32c(&bytes[..bytes.len() - 4]);
        let record = CommitRecord { generation: 1, state: block }.encode();
        for at in COPIES {
            self.0[at as usize..at as usize + record.len()].copy_from_slice(&record);
        }
        self.0
    }
}

fn open(bytes: Vec<u8>, limit: u64) -> Result<Store> {
    let options = OpenOptions { limits: Limits::default().with_bytes(limit), map: false };
    Store::from_source(Arc::new(MemorySource::new(bytes)), &options)
}

#[test]
fn of_2_to_the_40_records_every_one_is_found() {
    let mut file = Made::new();
    let schema = file.schema(vec![FieldSchema::fixed("x", DType::U32, [])]);
    let pages = file.tree(&Entry::of_inline(&7_u32.to_le_bytes()), 5);
    let mut state = State::empty(schema, 1);
    state.len = MOST_RECORDS;
    // 2^40 = 128 × 128^4 × 32.
    state.frontier = vec![vec![], vec![], vec![], vec![], vec![pages[4]; 32]];
    let store = open(file.finish(state), 1 << 20).unwrap();
    assert_eq!(store.len(), 1 << 40);
    let ids = [0, 1 << 39, (1 << 40) - 1, 123_456_789_012];
    let mut bytes = [0; 16];
    let mut into = [FieldBuffer { field: 0, bytes: &mut bytes, places: Places::Stride(4) }];
    store.gather_into(&ids, &mut into, Threads::ONE, &Quiet).unwrap();
    assert_eq!(bytes, [7, 0, 0, 0].repeat(4)[..]);
    assert_eq!(store.get(1 << 40, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    // The table's pages are kept as far as the budget goes, and no further.
    let touched: Result<Vec<_>> = (0..2000_u64).map(|i| store.get(i * 549_755_813, 0)).collect();
    assert_eq!(touched.unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn hostile_entries_and_references_are_typed_errors_and_take_no_memory() {
    let ragged = || vec![FieldSchema::ragged("x", DType::U8, [])];
    let lie = Entry {
        offset: FRONT,
        stored: 9,
        raw: LARGEST_CELL,
        codec: Stored::Zstd,
        ahead: super::entry::Ahead::None,
        dictionary: 0,
        crc: 1,
    };
    let raw = Entry { stored: LARGEST_CELL, codec: Stored::Raw, ..lie };
    for (entry, kind) in [
        (lie, ErrorKind::Limit),
        (raw, ErrorKind::Limit),
        (Entry { raw: 20, offset: u64::MAX - 3, ..lie }, ErrorKind::Corrupt),
        (Entry { raw: 20, offset: 1 << 40, ..lie }, ErrorKind::Corrupt),
        (Entry { raw: 20, offset: 0, ..lie }, ErrorKind::Corrupt),
        (Entry { raw: 20, dictionary: 9, ..lie }, ErrorKind::Corrupt),
    ] {
        let mut file = Made::new();
        let schema = file.schema(ragged());
        let mut state = State::empty(schema, 1);
        state.len = 1;
        state.tail = entry.encode().to_vec();
        let store = open(file.finish(state), 1 << 20).unwrap();
        assert_eq!(store.get(0, 0).unwrap_err().kind(), kind, "{entry:?}");
        let verified = store.verify(Threads::ONE, &Quiet).unwrap();
        assert_eq!((verified.bad_records, verified.is_good()), (1, false), "{entry:?}");
    }
    for at in [
        PageRef { offset: 1 << 60, crc: 0 },
        PageRef { offset: u64::MAX, crc: 0 },
        PageRef { offset: 0, crc: 0 },
    ] {
        let mut file = Made::new();
        let schema = file.schema(ragged());
        let mut state = State::empty(schema, 1);
        state.len = LEAF * 2;
        state.frontier = vec![vec![at; 2]];
        let store = open(file.finish(state), 1 << 20).unwrap();
        assert_eq!(store.get(5, 0).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(store.verify(Threads::ONE, &Quiet).unwrap().bad_records, 256);
    }
    // A schema of another number of fields than the table's entries.
    let mut file = Made::new();
    let schema = file.schema(ragged());
    let mut state = State::empty(schema, 2);
    state.len = 1;
    state.tail = vec![0; 2 * ENTRY];
    assert_eq!(open(file.finish(state), 1 << 20).unwrap_err().kind(), ErrorKind::Corrupt);
}
