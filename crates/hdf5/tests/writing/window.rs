//! Writing costs the window, not the dataset.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tensilo_core::Result;
use tensilo_core::io::{DiskFile, Fingerprint, LockKind};
use tensilo_core::threads::Threads;
use tensilo_filters::{ChunkInfo, Codecs, Decoded, Encoded, Filter, FilterSpec, Registry};
use tensilo_hdf5::write::{DatasetBuilder, FileWriter, Filters, WriteOptions};
use tensilo_testkit::allocations::most_held;

const CHUNK: usize = 256 << 10;
const CHUNKS: u64 = 200;

/// Bytes that were encoded and not yet written, now and at most.
#[derive(Debug, Default)]
struct Held {
    now: AtomicI64,
    most: AtomicI64,
}

/// Copies, and counts what it made.
struct Counting(Arc<Held>);

impl Filter for Counting {
    fn id(&self) -> u16 {
        401
    }

    fn name(&self) -> &str {
        "counting"
    }

    fn decode(&self, _: &[u32], _: &mut Codecs, src: &[u8], _: &mut [u8]) -> Result<Decoded> {
        Ok(Decoded::Prefix(src.len()))
    }

    fn encode(
        &self,
        _: &[u32],
        _: &ChunkInfo,
        _: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        dst.extend_from_slice(src);
        let now = self.0.now.fetch_add(src.len() as i64, Ordering::SeqCst) + src.len() as i64;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        Ok(Encoded::Written)
    }
}

/// A file that keeps nothing, and counts what was written.
#[derive(Debug)]
struct Nowhere(Arc<Held>);

impl DiskFile for Nowhere {
    fn write_at(&self, _: u64, data: &[u8]) -> Result<()> {
        if data.len() >= CHUNK {
            self.0.now.fetch_sub(data.len() as i64, Ordering::SeqCst);
        }
        Ok(())
    }

    fn read_at(&self, _: u64, buf: &mut [u8]) -> Result<()> {
        buf.fill(0);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(0)
    }

    fn set_len(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn punch(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn try_lock(&self, _: LockKind) -> Result<()> {
        Ok(())
    }

    fn unlock(&self) -> Result<()> {
        Ok(())
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        Fingerprint::of_path(Path::new("/"))
    }
}

#[test]
fn no_more_encoded_chunks_are_held_than_the_window_allows() {
    for threads in [1, 2, 6] {
        for whole in [false, true] {
            let held = Arc::new(Held::default());
            let mut registry = Registry::default();
            registry.register(Arc::new(Counting(held.clone())));
            let options = WriteOptions {
                registry: Arc::new(registry),
                window: 8 * CHUNK as u64,
                ..WriteOptions::default().threads(Threads::new(threads))
            };
            let file = Nowhere(held.clone());
            let mut w = FileWriter::over(&file, options).expect("options");
            let d = w
                .dataset("a")
                .element::<u8>()
                .shape(&[CHUNKS, CHUNK as u64])
                .chunk(&[1, CHUNK as u64])
                .filters(Filters::new().then(FilterSpec::new(401, vec![])));
            if whole {
                d.write_bytes(&vec![3; CHUNKS as usize * CHUNK]).expect("dataset");
            } else {
                let mut chunks = d.chunk_writer().expect("dataset");
                for i in 0..CHUNKS {
                    chunks.write_chunk(&[i, 0], vec![3; CHUNK]).expect("chunk");
                }
                chunks.finish().expect("dataset");
            }
            w.finish().expect("finished");
            let most = held.most.load(Ordering::SeqCst);
            assert!(most <= ((8 + threads) * CHUNK) as i64, "{most} bytes held with {threads} threads");
            assert_eq!(held.now.load(Ordering::SeqCst), 0, "every encoded byte was written");
        }
    }
}

type Describe = for<'w, 'f> fn(DatasetBuilder<'w, 'f>) -> DatasetBuilder<'w, 'f>;

/// Bytes held while an array of 256 MiB is written, beyond the array.
fn held_beyond(array: &[u8], describe: Describe) -> u64 {
    let file = Nowhere(Arc::new(Held::default()));
    let options = WriteOptions { window: 512 << 10, ..WriteOptions::default().threads(Threads::ONE) };
    let mut w = FileWriter::over(&file, options).expect("options");
    let rows = array.len() as u64 >> 16;
    most_held(|| {
        let d = w.dataset("a").element::<u8>().shape(&[rows, 1 << 16]);
        describe(d).write_bytes(array).expect("dataset");
        w.finish().expect("finished");
    })
}

#[test]
fn an_array_of_256_mib_is_written_without_a_clone() {
    let array = vec![0_u8; 256 << 20];
    let contiguous = held_beyond(&array, |d| d);
    let chunked = held_beyond(&array, |d| d.chunk(&[4, 1 << 16]));
    let cut = held_beyond(&array, |d| d.chunk(&[64, 1 << 12]));
    let filtered = held_beyond(&array, |d| d.chunk(&[4, 1 << 16]).filters(Filters::new().shuffle().lz4()));
    let clone = most_held(|| drop(std::hint::black_box(array.clone())));
    assert!(filtered < 4 << 20, "{filtered} bytes were held beyond the array and the window of 512 KiB");
    assert!(clone >= 256 << 20, "the allocator counts: {clone}");
    for (name, held) in [("contiguous", contiguous), ("chunked", chunked), ("cut", cut)] {
        assert!(held < 1 << 20, "{name}: {held} bytes were held beyond the array");
    }
}
