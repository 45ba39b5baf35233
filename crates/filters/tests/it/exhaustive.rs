//! Every truncation, every flipped bit and every extra byte of small chunks, filter by filter.

use crate::hostile::{Rng, counted, pipelines};
use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline, Registry, Scratch};

/// One chunk that its pipeline encoded.
struct Chunk {
    specs: Vec<FilterSpec>,
    pipeline: Pipeline,
    raw: Vec<u8>,
    stored: Vec<u8>,
    mask: u32,
}

/// A chunk of counts for every pipeline; its filters are mandatory, so that all of them run.
fn chunks() -> Vec<Chunk> {
    const ELEMENTS: usize = 150;
    let mut rng = Rng(23);
    let mut scratch = Scratch::default();
    let all = pipelines().into_iter().chain(counted(ELEMENTS as u32));
    all.map(|(specs, size)| {
        let specs: Vec<_> = specs.into_iter().map(|s| FilterSpec { flags: 0, ..s }).collect();
        let pipeline = Pipeline::new(&specs, &Registry::default()).unwrap();
        let raw: Vec<u8> =
            (0..ELEMENTS * size).map(|i| if i % size == 0 { rng.below(4) as u8 } else { 0 }).collect();
        let info = ChunkInfo { element_size: size, chunk_dims: vec![ELEMENTS as u64] };
        let (stored, mask) = pipeline.encode(&mut scratch, &raw, &info).unwrap();
        assert_eq!(mask, 0, "{specs:?}");
        Chunk { specs, pipeline, raw, stored, mask }
    })
    .collect()
}

#[test]
fn a_chunk_cut_off_anywhere_is_refused_or_loses_nothing() {
    let mut scratch = Scratch::default();
    for Chunk { specs, pipeline, raw, stored, mask } in chunks() {
        let mut out = vec![0; raw.len()];
        let mut refused = 0;
        for n in 0..stored.len() {
            out.fill(0xA5);
            match pipeline.decode(&mut scratch, &stored[..n], mask, &mut out) {
                Ok(()) => assert!(out == raw, "{specs:?} cut to {n} of {} bytes", stored.len()),
                Err(_) => refused += 1,
            }
        }
        // Nobody misses padding, or the trailer of a Blosc 2 frame.
        assert!(refused + 40 >= stored.len(), "{specs:?}: {refused} of {} cuts refused", stored.len());
    }
}

#[test]
fn every_flipped_bit_is_survived() {
    let mut scratch = Scratch::default();
    for Chunk { pipeline, raw, mut stored, mask, .. } in chunks() {
        let mut out = vec![0; raw.len()];
        for bit in 0..8 * stored.len() {
            stored[bit / 8] ^= 1 << (bit % 8);
            let _ = pipeline.decode(&mut scratch, &stored, mask, &mut out);
            stored[bit / 8] ^= 1 << (bit % 8);
        }
        // What damaged chunks left behind does no harm to the next one.
        pipeline.decode(&mut scratch, &stored, mask, &mut out).unwrap();
        assert!(out == raw);
    }
}

#[test]
fn bytes_behind_a_chunk_change_nothing_or_are_refused() {
    let mut scratch = Scratch::default();
    for Chunk { specs, pipeline, raw, stored, mask } in chunks() {
        let mut out = vec![0; raw.len()];
        for (n, byte) in (1..40).flat_map(|n| [(n, 0), (n, 0xff), (n, 0x28)]) {
            let mut longer = stored.clone();
            longer.resize(stored.len() + n, byte);
            out.fill(0xA5);
            if pipeline.decode(&mut scratch, &longer, mask, &mut out).is_ok() {
                assert!(out == raw, "{specs:?} with {n} bytes {byte:#04x} behind it");
            }
        }
    }
}

#[test]
fn a_chunk_of_another_shape_is_refused() {
    let mut scratch = Scratch::default();
    for Chunk { specs, pipeline, raw, stored, mask } in chunks() {
        for other in (0..2 * raw.len()).step_by(7).chain([raw.len() - 1, raw.len() + 1]) {
            if other != raw.len() {
                let mut out = vec![0; other];
                let result = pipeline.decode(&mut scratch, &stored, mask, &mut out);
                assert!(result.is_err(), "{specs:?}: {} bytes decode into {other}", raw.len());
            }
        }
    }
}
