//! No decoder allocates more than a small multiple of the chunk that it was asked for, whatever its bytes claim.

use std::alloc::System;
use std::path::Path;
use tensilo_fuzz::TARGETS;

#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// What codecs hold for themselves, whatever the chunk; states that C code allocates are not counted.
const CODEC: usize = 1 << 18;
/// Bytes per byte of the chunk: two destinations, and intermediate results.
const PER_BYTE: usize = 8;
const DECODERS: &[&str] = &[
    "deflate",
    "fletcher32",
    "szip",
    "nbit",
    "scaleoffset",
    "bzip2",
    "lzf",
    "blosc",
    "lz4",
    "bitshuffle",
    "zfp",
    "zstandard",
    "vbz",
    "blosc2",
];

/// The size of the chunk that an input asks for.
fn asked(input: &[u8]) -> usize {
    match input {
        [size, low, high, ..] => {
            (usize::from(size % 32) + 1) * usize::from(u16::from_le_bytes([*low, *high]))
        }
        _ => 0,
    }
}

// One test alone: other threads' allocations would count too. A decoder that asks for more aborts the run.
#[test]
fn decoders_allocate_no_more_than_their_chunk_allows() {
    let mut state = 7_u64;
    let mut below = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    let mut inputs = 0;
    for (target, run) in TARGETS.iter().filter(|(name, _)| DECODERS.contains(name)) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        let mut seeds: Vec<_> =
            std::fs::read_dir(folder).expect("seeds").map(|e| e.expect("a seed").path()).collect();
        seeds.sort();
        for seed in seeds {
            let seed = std::fs::read(seed).expect("a seed");
            for round in 0..400 {
                let mut input = seed.clone();
                for _ in 0..round % 4 {
                    // Sizes stand near the front; telling values make them large.
                    let near = if below(2) == 0 { 100 } else { usize::MAX };
                    let at = below(input.len().min(near));
                    input[at] = [0, 1, 0x7f, 0x80, 0xff, below(256) as u8][below(6)];
                }
                let limit = MEMORY.allocated() + CODEC + PER_BYTE * asked(&input);
                MEMORY.set_limit(limit).expect("less is allocated");
                run(&input);
                MEMORY.set_limit(usize::MAX).expect("no limit");
                inputs += 1;
            }
        }
    }
    assert!(inputs > 20_000, "only {inputs} inputs");
}
