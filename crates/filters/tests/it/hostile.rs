//! Damaged chunks and client values end in an error or in wrong bytes, never in a panic, and never cost more
//! memory than the chunk's geometry allows.

use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline, Registry, Scratch, id};

/// The pipelines that are damaged, with the element size they were made for.
pub fn pipelines() -> Vec<(Vec<FilterSpec>, usize)> {
    let one = |id, values: &[u32], size| (vec![FilterSpec::new(id, values.to_vec()).optional()], size);
    vec![
        one(id::DEFLATE, &[4], 2),
        one(id::SHUFFLE, &[4], 4),
        one(id::FLETCHER32, &[], 1),
        one(id::LZF, &[4, 261, 4000], 2),
        one(id::LZ4, &[300], 2),
        one(id::BITSHUFFLE, &[0, 4, 2, 0, 2], 2),
        one(id::BITSHUFFLE, &[0, 4, 4, 64, 3, 1], 4),
        one(id::BITSHUFFLE, &[0, 4, 8, 0], 8),
        one(id::ZSTD, &[3], 2),
        one(id::BZIP2, &[1], 2),
        one(id::BLOSC, &[2, 2, 2, 0, 5, 1, 0], 2),
        one(id::BLOSC, &[2, 2, 4, 0, 5, 2, 1], 4),
        one(id::BLOSC, &[2, 2, 4, 0, 5, 1, 3], 4),
        one(id::BLOSC, &[2, 2, 4, 0, 5, 0, 4], 4),
        one(id::BLOSC2, &[1, 0, 4, 0, 5, 1, 1], 4),
        one(id::BLOSC2, &[1, 0, 2, 0, 5, 2, 5], 2),
        one(id::BLOSC2, &[1, 0, 8, 0, 5, 3, 0], 8),
        one(id::SZIP, &[DIFFERENCES, 8, 16, 20], 2),
        one(id::SZIP, &[0, 4, 8, 64], 1),
        one(id::SZIP, &[DIFFERENCES, 16, 32, 100], 4),
        one(id::VBZ, &[0, 2, 1, 1], 2),
        one(id::VBZ, &[1, 1, 1, 1], 1),
        one(id::VBZ, &[0, 4, 0, 0], 4),
        one(id::BITGROOM, &[], 4),
        (
            vec![
                FilterSpec::new(id::SHUFFLE, vec![2]),
                FilterSpec::new(id::DEFLATE, vec![1]),
                FilterSpec::new(id::FLETCHER32, vec![]),
            ],
            2,
        ),
    ]
}

/// Szip's option for coding differences.
const DIFFERENCES: u32 = 32;

pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

fn raw(rng: &mut Rng, size: usize) -> Vec<u8> {
    let n = 1 + rng.below(700);
    match rng.below(3) {
        0 => vec![rng.below(256) as u8; n * size],
        1 => (0..n * size).map(|i| if i % size == 0 { rng.below(5) as u8 } else { 0 }).collect(),
        _ => (0..n * size).map(|_| rng.below(256) as u8).collect(),
    }
}

fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    match rng.below(6) {
        0 => bytes.truncate(rng.below(bytes.len() + 1)),
        1 => bytes.extend((0..1 + rng.below(40)).map(|i| (i * 37) as u8)),
        2 => {
            for _ in 0..1 + rng.below(8) {
                let i = rng.below(bytes.len());
                if let Some(b) = bytes.get_mut(i) {
                    *b = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)];
                }
            }
        }
        3 => {
            let i = rng.below(bytes.len().min(40));
            if let Some(b) = bytes.get_mut(i) {
                *b = rng.below(256) as u8;
            }
        }
        _ => {
            for _ in 0..1 + rng.below(3) {
                let i = rng.below(bytes.len());
                if let Some(b) = bytes.get_mut(i) {
                    *b ^= 1 << rng.below(8);
                }
            }
        }
    }
}

#[test]
fn damaged_chunks_never_panic() {
    let mut rng = Rng(7);
    let mut scratch = Scratch::default();
    for (specs, size) in pipelines() {
        let pipeline = Pipeline::new(&specs, &Registry::default()).unwrap();
        for _ in 0..300 {
            let raw = raw(&mut rng, size);
            let info = ChunkInfo { element_size: size, chunk_dims: vec![(raw.len() / size) as u64] };
            let (stored, mask) = pipeline.encode(&mut scratch, &raw, &info).unwrap();
            let mut out = vec![0; raw.len()];
            pipeline.decode(&mut scratch, &stored, mask, &mut out).unwrap();
            assert!(out == raw, "{specs:?}");
            for _ in 0..8 {
                let mut hurt = stored.clone();
                damage(&mut rng, &mut hurt);
                let _ = pipeline.decode(&mut scratch, &hurt, mask, &mut out);
                let mut other = vec![0; rng.below(2 * raw.len() + 9)];
                let fits = pipeline.decode(&mut scratch, &stored, mask, &mut other).is_ok();
                assert!(!fits || other.len() == raw.len(), "{specs:?}: {} into {}", raw.len(), other.len());
            }
        }
    }
}

/// Filters whose client values state the number of elements.
pub fn counted(elements: u32) -> Vec<(Vec<FilterSpec>, usize)> {
    let scale = |method, scale, class, size, fill| {
        let mut values = vec![method, scale, elements, class, size, 1, 0, fill];
        values.resize(20, 0);
        (vec![FilterSpec::new(id::SCALE_OFFSET, values).optional()], size as usize)
    };
    let nbit = |datatype: &[u32], size| {
        let mut values = vec![3 + datatype.len() as u32, 0, elements];
        values.extend(datatype);
        (vec![FilterSpec::new(id::NBIT, values).optional()], size)
    };
    vec![
        scale(2, 0, 0, 2, 1),
        scale(2, 0, 0, 8, 0),
        scale(2, 16, 0, 2, 1),
        scale(2, 0, 0, 1, 1),
        nbit(&[1, 2, 0, 16, 0], 2),
        nbit(&[1, 4, 1, 32, 0], 4),
        nbit(&[3, 12, 2, 0, 1, 4, 0, 32, 0, 4, 2, 8, 1, 2, 1, 16, 0], 12),
        nbit(&[2, 6, 4, 2], 6),
    ]
}

#[test]
fn damaged_chunks_of_counted_elements_never_panic() {
    let mut rng = Rng(13);
    let mut scratch = Scratch::default();
    for kind in 0..counted(1).len() {
        for _ in 0..300 {
            let elements = 1 + rng.below(300);
            let (specs, size) = counted(elements as u32).swap_remove(kind);
            let raw: Vec<u8> = (0..elements * size).map(|_| rng.below(1 << (1 + kind)) as u8).collect();
            let info = ChunkInfo { element_size: size, chunk_dims: vec![elements as u64] };
            let pipeline = Pipeline::new(&specs, &Registry::default()).unwrap();
            let (stored, mask) = pipeline.encode(&mut scratch, &raw, &info).unwrap();
            let mut out = vec![0; raw.len()];
            pipeline.decode(&mut scratch, &stored, mask, &mut out).unwrap();
            assert!(out == raw, "{specs:?}");
            for _ in 0..8 {
                let mut hurt = stored.clone();
                damage(&mut rng, &mut hurt);
                let _ = pipeline.decode(&mut scratch, &hurt, 0, &mut out);
                let mut values = specs.clone();
                let at = rng.below(values[0].values.len());
                values[0].values[at] = [0, 1, 2, 3, 9, 0xffff, u32::MAX][rng.below(7)];
                let other = Pipeline::new(&values, &Registry::default()).unwrap();
                let _ = other.decode(&mut scratch, &stored, 0, &mut out);
                let _ = other.encode(&mut scratch, &raw, &info);
            }
        }
    }
}

#[cfg(feature = "zfp")]
#[test]
fn damaged_zfp_streams_and_headers_never_panic() {
    // 37 doubles, reversible; and 10 x 20 floats at 8 bits each: headers as the plugin of libhdf5 writes them.
    let headers: [(&[u32], usize); 2] = [
        (&[0x1010_5011, 91_252_346, 15_987, 2_281_701_376], 8000),
        (&[0x1010_5011, 91_252_346, 2_415_919_414, 133_169_152], 800),
    ];
    let mut rng = Rng(17);
    let mut scratch = Scratch::default();
    for (values, size) in headers {
        let specs = [FilterSpec::new(id::ZFP, values.to_vec())];
        let pipeline = Pipeline::new(&specs, &Registry::default()).unwrap();
        let raw: Vec<u8> = (0..size).map(|i| (i / 8) as u8).collect();
        let info = ChunkInfo { element_size: 4, chunk_dims: vec![size as u64 / 4] };
        let (stored, mask) = pipeline.encode(&mut scratch, &raw, &info).unwrap();
        let mut out = vec![0; size];
        pipeline.decode(&mut scratch, &stored, mask, &mut out).unwrap();
        for _ in 0..500 {
            let mut hurt = stored.clone();
            damage(&mut rng, &mut hurt);
            let _ = pipeline.decode(&mut scratch, &hurt, 0, &mut out);
            let mut specs = specs.to_vec();
            let at = rng.below(specs[0].values.len());
            specs[0].values[at] ^= 1 << rng.below(32);
            let other = Pipeline::new(&specs, &Registry::default()).unwrap();
            let _ = other.decode(&mut scratch, &stored, 0, &mut out);
            let _ = other.encode(&mut scratch, &raw, &info);
        }
    }
}

#[test]
fn damaged_client_values_never_panic() {
    let mut rng = Rng(11);
    let mut scratch = Scratch::default();
    for (specs, size) in pipelines() {
        let pipeline = Pipeline::new(&specs, &Registry::default()).unwrap();
        let raw = raw(&mut rng, size);
        let info = ChunkInfo { element_size: size, chunk_dims: vec![(raw.len() / size) as u64] };
        let (stored, mask) = pipeline.encode(&mut scratch, &raw, &info).unwrap();
        for _ in 0..300 {
            let mut hurt = specs.clone();
            for spec in &mut hurt {
                for v in &mut spec.values {
                    if rng.below(3) == 0 {
                        *v = [0, 1, 3, 7, 8, 9, 64, 0xffff, 0x8000_0000, u32::MAX][rng.below(10)];
                    }
                }
                if rng.below(3) == 0 {
                    spec.values.truncate(rng.below(spec.values.len() + 1));
                }
            }
            let pipeline = Pipeline::new(&hurt, &Registry::default()).unwrap();
            let mut out = vec![0; raw.len()];
            let _ = pipeline.decode(&mut scratch, &stored, mask, &mut out);
            let _ = pipeline.encode(&mut scratch, &raw, &info);
        }
    }
}

#[test]
fn a_bomb_is_refused_at_the_size_of_the_chunk() {
    let mut scratch = Scratch::default();
    let info = ChunkInfo { element_size: 1, chunk_dims: vec![50_000_000] };
    for specs in [vec![FilterSpec::new(id::DEFLATE, vec![1])], vec![FilterSpec::new(id::ZSTD, vec![1])]] {
        let pipeline = Pipeline::new(&specs, &Registry::default()).unwrap();
        let (bomb, mask) = pipeline.encode(&mut scratch, &vec![0; 50_000_000], &info).unwrap();
        let twice = [specs[0].clone(), specs[0].clone()];
        for specs in [&specs[..], &twice] {
            let mut fresh = Scratch::default();
            let pipeline = Pipeline::new(specs, &Registry::default()).unwrap();
            let e = pipeline.decode(&mut fresh, &bomb, mask, &mut [0; 1000]).unwrap_err();
            assert_eq!(e.kind(), tensilo_core::ErrorKind::Corrupt, "{e}");
            assert!(fresh.held_bytes() < 10_000, "{} bytes held", fresh.held_bytes());
        }
    }
}
