//! Every seed, and fixed mutations of it, through its target under a limit on memory.

use std::alloc::System;
use std::path::{Path, PathBuf};
use tensilo_core::wire::lookup3;
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

/// Metadata that a checksum guards, and where that stands.
struct Sealed {
    start: usize,
    end: usize,
    sum_at: usize,
    sum: fn(&[u8]) -> u32,
}

impl Sealed {
    /// Finds what an HDF5 file seals: from a signature to the first place that holds the checksum of all before it.
    fn find(seed: &[u8]) -> Vec<Self> {
        const SIGNATURES: &[&[u8]] = &[
            b"\x89HDF\r\n\x1a\n\x02",
            b"\x89HDF\r\n\x1a\n\x03",
            b"OHDR",
            b"OCHK",
            b"FRHP",
            b"FHIB",
            b"BTHD",
            b"BTIN",
            b"BTLF",
            b"FAHD",
            b"FADB",
            b"EAHD",
            b"EAIB",
            b"EASB",
            b"EADB",
            b"SMTB",
            b"SMLI",
            b"FSHD",
            b"FSSE",
        ];
        let mut found = Vec::from_iter(Self::manifest(seed));
        found.extend(Self::records(seed));
        for start in 0..seed.len() {
            if SIGNATURES.iter().any(|s| seed[start..].starts_with(s)) {
                let holds = |end: &usize| seed[*end..*end + 4] == lookup3(&seed[start..*end]).to_le_bytes();
                let end = (start + 4..seed.len().saturating_sub(3)).take(4096).find(holds);
                found.extend(end.map(|end| Self { start, end, sum_at: end, sum: lookup3 }));
            }
        }
        found
    }

    /// The manifest of a pack, whose CRC-32 and length stand in the prelude before it.
    fn manifest(seed: &[u8]) -> Option<Self> {
        let length = seed.strip_prefix(b"QGPUH5\0\x01")?.first_chunk::<4>()?;
        Some(Self {
            start: 24,
            end: 24 + u32::from_le_bytes(*length) as usize,
            sum_at: 12,
            sum: crc32fast::hash,
        })
    }

    /// What a record store seals, from the inside out: cells, leaves, schema and metadata, the state block, and the
    /// commit records, of which the first has the state's checksum too.
    fn records(seed: &[u8]) -> Vec<Self> {
        let number = |at: usize, bytes: usize| -> usize {
            let field = seed.get(at..at + bytes).unwrap_or_default();
            field.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
        };
        if !seed.starts_with(b"\x89TREC\r\n\x1a") {
            return Vec::new();
        }
        let sealed = |start: usize, bytes: usize, sum_at: usize| Self {
            start,
            end: start + bytes,
            sum_at,
            sum: crc32c::crc32c,
        };
        // The newer commit record counts.
        let copy = if number(4096 + 16, 8) > number(16, 8) { 4096 } else { 0 };
        let (state, bytes) = (number(copy + 24, 8), number(copy + 32, 8));
        let (records, fields) = (number(state + 16, 8), number(state + 88, 4));
        let leaf = 128 * fields * 24;
        let pages = state + 96 + 20 * number(state + 92, 4);
        let leaves = pages..pages + 12 * (records / 128 % 128);
        let tail = leaves.end..leaves.end + records % 128 * fields * 24;
        let mut found: Vec<Self> = tail
            .step_by(24)
            .filter(|entry| number(entry + 18, 1) & 15 != 4)
            .map(|entry| sealed(number(entry, 8), number(entry + 8, 5), entry + 20))
            .collect();
        found.extend(leaves.step_by(12).map(|page| sealed(number(page, 8), leaf, page + 8)));
        for block in [state + 48, state + 68].into_iter().filter(|block| number(block + 8, 8) > 0) {
            found.push(sealed(number(block, 8), number(block + 8, 8), block + 16));
        }
        found.push(sealed(state, bytes - 4, state + bytes - 4));
        found.push(sealed(state, bytes - 4, copy + 40));
        found.push(sealed(copy, 60, copy + 60));
        found
    }

    /// Makes the checksum right again, so that a change reaches the parser behind it.
    fn seal(&self, bytes: &mut [u8]) {
        if let Some(sum) = bytes.get(self.start..self.end).map(self.sum)
            && let Some(place) = bytes.get_mut(self.sum_at..self.sum_at + 4)
        {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Changes one to four places: a bit, a byte of a telling value, a field of all ones, a cut, or a repeated piece. Three
/// times in four the checksums are made right again.
fn mutate(seed: &[u8], sealed: &[Sealed], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            bytes.push(random.next() as u8);
        }
        let at = place(bytes.len(), sealed, random);
        // Changes of length move what is behind them, so they are rare.
        match random.below(32) {
            0..8 => bytes[at] ^= 1 << random.below(8),
            8..16 => bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][random.below(6)],
            16..24 => bytes[at] = random.next() as u8,
            24..30 => {
                let end = (at + [2, 4, 8][random.below(3)]).min(bytes.len());
                bytes[at..end].fill(if random.below(2) == 0 { 0xff } else { 0 });
            }
            30 => bytes.truncate(at),
            _ => {
                let end = (at + random.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
    if random.below(4) != 0 {
        sealed.iter().for_each(|s| s.seal(&mut bytes));
    }
    bytes
}

/// Where to change something: in sealed metadata, in the first 512 bytes where headers are, or anywhere.
fn place(len: usize, sealed: &[Sealed], random: &mut Random) -> usize {
    match (random.below(3), sealed) {
        (0, [_, ..]) => {
            let s = &sealed[random.below(sealed.len())];
            (s.start + random.below(s.end - s.start)).min(len - 1)
        }
        (0 | 1, _) => random.below(len.min(512)),
        _ => random.below(len),
    }
}

/// Writes an input that makes its target panic to `artifacts/`, then lets the panic go on.
#[expect(
    clippy::disallowed_methods,
    reason = "an input that breaks a target is kept beside the fuzzer's own"
)]
fn keep_when_it_breaks(target: &str, input: &[u8], run: impl FnOnce() + std::panic::UnwindSafe) {
    if let Err(panic) = std::panic::catch_unwind(run) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts");
        let file = folder.join(format!("{target}-{:08x}", lookup3(input)));
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, input))
            .expect("the input is kept");
        println!("kept as {}", file.display());
        std::panic::resume_unwind(panic);
    }
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
            let sealed = Sealed::find(bytes);
            for _ in 0..each {
                let input = mutate(bytes, &sealed, &mut random);
                keep_when_it_breaks(target, &input, || run(&input));
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

#[test]
fn sealed_metadata_is_found_in_files_that_have_checksums() {
    for (path, bytes) in seeds("hdf5").into_iter().filter(|(p, _)| p.to_string_lossy().contains("latest")) {
        assert!(Sealed::find(&bytes).len() > 1, "{}", path.display());
    }
}

#[test]
fn what_record_stores_seal_is_found_and_sealing_it_again_changes_nothing() {
    for (path, bytes) in seeds("records") {
        let sealed = Sealed::find(&bytes);
        assert!(sealed.len() > 4, "{}", path.display());
        let mut again = bytes.clone();
        sealed.iter().for_each(|s| s.seal(&mut again));
        assert!(again == bytes, "{}", path.display());
    }
}
