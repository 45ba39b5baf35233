//! Damaged files: an error or an answer, but no panic, no hang, no flood of memory.

use super::oracle;
use proptest::prelude::*;
use std::sync::Arc;
use tensilo_core::array::Selection;
use tensilo_core::io::MemorySource;
use tensilo_core::{Limits, Result, threads::Threads};
use tensilo_hdf5::read::{File, Object, OpenOptions};
use tensilo_testkit::oracle::skip;

/// Reads everything that a file holds, as far as it goes; returns the number of datasets read.
fn read_all(bytes: Vec<u8>) -> Result<usize> {
    let options = OpenOptions {
        limits: Limits { items: 1 << 20, ..Limits::default().with_bytes(64 << 20) },
        threads: Threads::ONE,
        ..OpenOptions::default()
    };
    let file = File::from_source(Arc::new(MemorySource::new(bytes)), options)?;
    let root = file.root()?;
    let mut read = 0;
    for link in root.links()? {
        let Ok(Object::Dataset(data)) = root.open_link(&link) else { continue };
        let _ = data.attributes();
        let _ = data.chunks();
        let first = vec![0; data.shape().len()];
        let _ = data.chunk(&first);
        if data.elements() < 1 << 20 {
            read += usize::from(data.read_bytes(&Selection::All).is_ok());
            let _ = data.read::<f32>();
            let _ = data.read_strings();
        }
    }
    Ok(read)
}

fn seeds() -> Option<Vec<Vec<u8>>> {
    let names =
        ["seed-earliest.h5", "seed-v110.h5", "seed-v200.h5", "sizes-0.h5", "sizes-1.h5", "sizes-9.h5"];
    let folder = &oracle()?.folder;
    Some(names.iter().map(|n| std::fs::read(folder.join(n)).expect("the file")).collect())
}

#[test]
fn damaged_files_never_panic_nor_hang() {
    let Some(seeds) = seeds() else { return skip("Python with h5py", 1) };
    for seed in &seeds {
        assert!(read_all(seed.clone()).expect("a good file") > 0);
    }
    let rounds = std::env::var("TENSILO_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let config = ProptestConfig { cases: rounds, failure_persistence: None, ..ProptestConfig::default() };
    let change = (any::<proptest::sample::Index>(), any::<u8>(), 0..4_u8);
    let strategy = (
        0..seeds.len(),
        proptest::collection::vec(change, 1..24),
        any::<proptest::sample::Index>(),
        0..20_u8,
    );
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    runner
        .run(&strategy, |(seed, changes, cut, how)| {
            let mut bytes = seeds[seed].clone();
            for (at, value, kind) in changes {
                // Structures lie close to zero bytes and small numbers; change bytes that are used.
                let at = at.index(bytes.len());
                bytes[at] = match kind {
                    0 => value,
                    1 => 0xff,
                    2 => bytes[at].wrapping_add(1),
                    _ => bytes[at] ^ 1 << (value % 8),
                };
            }
            if how == 0 {
                bytes.truncate(cut.index(bytes.len()));
            }
            let _ = read_all(bytes);
            Ok(())
        })
        .unwrap();
}
