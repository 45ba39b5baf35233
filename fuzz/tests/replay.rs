//! Every seed, and fixed mutations of it, through its target under a limit on memory.

use std::alloc::System;
use std::path::{Path, PathBuf};
use tensilo_fuzz::{MOST_BYTES, TARGETS};

/// Aborts the run when a target allocates more than twice what its budget allows.
#[global_allocator]
static MEMORY: cap::Cap<System> = cap::Cap::new(System, 2 * MOST_BYTES as usize);

/// Mutations per target, shared out between its seeds.
const MUTATIONS: usize = 10_000;

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("a folder of seeds").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|p| (p.clone(), std::fs::read(p).expect("a seed"))).collect()
}

/// SplitMix64: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Changes one to four places: a bit, a byte of a telling value, a field of all ones, a cut, or a repeated piece.
fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            bytes.push(random.next() as u8);
        }
        // Half of all changes hit the first 512 bytes, where headers are.
        let reach = if random.below(2) == 0 { bytes.len().min(512) } else { bytes.len() };
        let at = random.below(reach);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][random.below(6)],
            2 => bytes[at] = random.next() as u8,
            3 => {
                let end = (at + [2, 4, 8][random.below(3)]).min(bytes.len());
                bytes[at..end].fill(if random.below(2) == 0 { 0xff } else { 0 });
            }
            4 => bytes.truncate(at),
            _ => {
                let end = (at + random.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes
}

#[test]
fn every_seed_passes_its_target() {
    for (target, run) in TARGETS {
        let seeds = seeds(target);
        assert!(!seeds.is_empty(), "{target} has no seeds");
        for (path, bytes) in seeds {
            println!("{}", path.display());
            run(&bytes);
        }
    }
}

#[test]
fn mutated_seeds_neither_panic_nor_allocate_without_bound() {
    for (target, run) in TARGETS {
        let seeds = seeds(target);
        let each = MUTATIONS / seeds.len().max(1) + 1;
        for (number, (path, bytes)) in seeds.iter().enumerate() {
            println!("{}", path.display());
            let mut random = Random(number as u64);
            for _ in 0..each {
                run(&mutate(bytes, &mut random));
            }
        }
    }
}

#[test]
fn no_input_is_too_short() {
    for (_, run) in TARGETS {
        for n in 0..64 {
            run(&[0; 64][..n]);
            run(&[0xff; 64][..n]);
        }
    }
}
