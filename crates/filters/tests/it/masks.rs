//! Filters that a chunk's mask skips, and filters that are missing.

use tensilo_core::ErrorKind;
use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline, Registry, Scratch, id};

#[test]
fn a_chunk_that_does_not_shrink_is_stored_with_the_filter_skipped() {
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..4096)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    let info = ChunkInfo { element_size: 4, chunk_dims: vec![1024] };
    let compressors: [(u16, &[u32]); 12] = [
        (id::DEFLATE, &[6]),
        (id::SZIP, &[32, 16, 32, 128]),
        (id::BZIP2, &[9]),
        (id::LZF, &[4, 261, 4096]),
        (id::BLOSC, &[2, 2, 4, 4096, 5, 1, 0]),
        (id::LZ4, &[4096]),
        (id::BITSHUFFLE, &[0, 4, 4, 0, 2]),
        (id::BITSHUFFLE, &[0, 4, 4, 0, 3]),
        (id::ZSTD, &[3]),
        (id::VBZ, &[0, 4, 1, 1]),
        (id::BLOSC2, &[1, 0, 4, 4096, 5, 1, 1]),
        (id::SCALE_OFFSET, &[2, 0, 1024, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let mut scratch = Scratch::default();
    let mut out = vec![0; noise.len()];
    for (id, values) in compressors {
        let specs =
            [FilterSpec::new(id, values.to_vec()).optional(), FilterSpec::new(id::FLETCHER32, vec![])];
        let pipeline = Pipeline::new(&specs, &Registry::default()).unwrap();
        let (stored, mask) = pipeline.encode(&mut scratch, &noise, &info).unwrap();
        assert_eq!(mask, 0b01, "filter {id}");
        assert_eq!(stored[..noise.len()], noise, "filter {id}");
        pipeline.decode(&mut scratch, &stored, mask, &mut out).unwrap();
        assert_eq!(out, noise, "filter {id}");
        // A mandatory filter runs all the same; LZF has no form for what does not shrink.
        let pipeline = Pipeline::new(&[FilterSpec::new(id, values.to_vec())], &Registry::default()).unwrap();
        if id == id::LZF {
            let e = pipeline.encode(&mut scratch, &noise, &info).unwrap_err();
            assert!(e.message().contains("not optional"), "{e}");
            continue;
        }
        let (stored, mask) = pipeline.encode(&mut scratch, &noise, &info).unwrap();
        assert_eq!(mask, 0, "filter {id}");
        pipeline.decode(&mut scratch, &stored, mask, &mut out).unwrap();
        assert_eq!(out, noise, "filter {id}");
    }
}

#[test]
fn compressors_that_are_not_built_in_are_named_with_their_provider() {
    for (id, name) in [(32017, "SZ"), (32018, "FCIDECOMP"), (32024, "SZ3"), (32028, "SPERR")] {
        let pipeline = Pipeline::new(&[FilterSpec::new(id, vec![])], &Registry::default()).unwrap();
        let e = pipeline.decode(&mut Scratch::default(), &[0; 8], 0, &mut [0; 8]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
        assert!(e.message().contains(&format!("{id} ({name})")) && e.message().contains("hdf5plugin"), "{e}");
    }
}

#[test]
fn a_filter_that_nobody_registered_is_named_as_the_file_names_it() {
    let mut spec = FilterSpec::new(999, vec![]);
    spec.name = Some("home-made".into());
    let pipeline = Pipeline::new(&[spec], &Registry::default()).unwrap();
    let e = pipeline.decode(&mut Scratch::default(), &[0; 8], 0, &mut [0; 8]).unwrap_err();
    assert!(e.message().contains("999 (home-made)"), "{e}");
}

#[test]
fn a_missing_filter_is_named_with_its_provider_unless_the_mask_skips_it() {
    let specs = [FilterSpec::new(32024, vec![1]), FilterSpec::new(id::DEFLATE, vec![4])];
    let pipeline = Pipeline::new(&specs, &Registry::default()).unwrap();
    let mut scratch = Scratch::default();
    let mut out = [0; 4];
    let e = pipeline.decode(&mut scratch, &[1, 2, 3, 4], 0, &mut out).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("32024 (SZ3)") && e.message().contains("hdf5plugin"), "{e}");
    pipeline.decode(&mut scratch, &[1, 2, 3, 4], 0b11, &mut out).unwrap();
    assert_eq!(out, [1, 2, 3, 4]);
    assert!(pipeline.decode(&mut scratch, &[1, 2, 3], 0b11, &mut out).is_err());
    let e = Pipeline::new(&[FilterSpec::new(999, vec![])], &Registry::default())
        .unwrap()
        .decode(&mut scratch, &[], 0, &mut [])
        .unwrap_err();
    assert!(e.message().contains("999"), "{e}");
}

#[test]
fn a_buffer_that_is_used_again_holds_the_same_as_a_new_one() {
    let registry = Registry::default();
    let info = ChunkInfo { element_size: 4, chunk_dims: vec![2048] };
    let raw: Vec<u8> = (0..2048_u32).flat_map(|i| (i / 3 + i * i % 5).to_le_bytes()).collect();
    let noise: Vec<u8> = (0..2048_u32).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    let pipelines: [&[(u16, &[u32])]; 5] = [
        &[(id::SHUFFLE, &[4]), (id::ZSTD, &[3])],
        &[(id::SHUFFLE, &[4]), (id::DEFLATE, &[4]), (id::FLETCHER32, &[])],
        &[(id::BITSHUFFLE, &[0, 4, 4, 0, 2])],
        &[(id::SHUFFLE, &[4])],
        &[],
    ];
    let (mut scratch, mut stored) = (Scratch::default(), vec![7; 100_000]);
    for filters in pipelines {
        let specs: Vec<FilterSpec> =
            filters.iter().map(|(id, v)| FilterSpec::new(*id, v.to_vec()).optional()).collect();
        let pipeline = Pipeline::new(&specs, &registry).unwrap();
        for raw in [&raw, &noise, &raw] {
            let expected = pipeline.encode(&mut Scratch::default(), raw, &info).unwrap();
            let mask = pipeline.encode_into(&mut scratch, raw, &info, &mut stored).unwrap();
            assert!((&stored, mask) == (&expected.0, expected.1), "{filters:?}");
            let mut out = vec![0; raw.len()];
            pipeline.decode(&mut scratch, &stored, mask, &mut out).unwrap();
            assert!(out == *raw, "{filters:?}");
        }
    }
}
