//! A flipped bit in anything that has a checksum is reported by object and offset.
//!
//! Where the structures are is found without the code under test: by their signatures, and by looking for the place
//! that holds the checksum of all before it. Which object a header or chunk belongs to, h5py says.
//!
//! `TENSILO_EVERY_BIT=1 cargo test --release -p tensilo-hdf5 every_flipped_bit_under -- --nocapture` flips every bit;
//! without it a few bits of a few structures of each kind are flipped.

use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use tensilo_core::Quiet;
use tensilo_core::io::MemorySource;
use tensilo_core::threads::Threads;
use tensilo_core::wire::lookup3;
use tensilo_hdf5::check::{CheckOptions, Finding, Verdict, check};
use tensilo_hdf5::read::OpenOptions;
use tensilo_testkit::oracle;

const SIGNATURES: [&[u8]; 18] = [
    b"\x89HDF", b"OHDR", b"OCHK", b"FRHP", b"FHIB", b"BTHD", b"BTIN", b"BTLF", b"FAHD", b"FADB", b"EAHD",
    b"EAIB", b"EASB", b"EADB", b"SMTB", b"SMLI", b"FSHD", b"FSSE",
];

/// Longest structure that is looked for, in bytes.
const LONGEST: usize = 8300;

/// The first place behind `start` that holds the checksum of all from there on; the end of the checksum.
fn sealed(bytes: &[u8], start: usize) -> Option<usize> {
    let last = bytes.len().min(start + LONGEST).checked_sub(4)?;
    // lookup3 has no running form, so only ends that could be one are tried: all of them, from the shortest.
    (start + 4..=last)
        .find(|end| bytes[*end..*end + 4] == lookup3(&bytes[start..*end]).to_le_bytes())
        .map(|end| end + 4)
}

/// A direct block of a fractal heap: its size is a power of two, its checksum is inside and counted as zeros.
fn sealed_block(bytes: &[u8], start: usize) -> Option<usize> {
    (9..18).map(|bits| start + (1 << bits)).filter(|end| *end <= bytes.len()).find(|end| {
        (14..=21).any(|at| {
            let mut block = bytes[start..*end].to_vec();
            let stored: [u8; 4] = block[at..at + 4].try_into().expect("four bytes");
            block[at..at + 4].fill(0);
            lookup3(&block).to_le_bytes() == stored
        })
    })
}

/// All structures with a checksum, by their place in the file.
fn structures(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    while start + 4 <= bytes.len() {
        let rest = &bytes[start..];
        let end = match &rest[..4] {
            b"MDCI" => {
                let len = u64::from_le_bytes(rest[6..14].try_into().expect("eight bytes"));
                let end = start + len as usize;
                assert_eq!(bytes[end - 4..end], lookup3(&bytes[start..end - 4]).to_le_bytes());
                Some(end)
            }
            b"FHDB" => sealed_block(bytes, start),
            b"GCOL" => {
                found.extend(heap_objects(rest, start));
                None
            }
            _ if SIGNATURES.iter().any(|s| rest.starts_with(s)) => sealed(bytes, start),
            _ => None,
        };
        let Some(mut end) = end else {
            start += 1;
            continue;
        };
        found.push(start..end);
        // Pages of array indexes have no signature; they stand behind their block.
        while let (true, Some(page)) = (matches!(&rest[..4], b"FADB" | b"EADB"), sealed(bytes, end)) {
            found.push(end..page);
            end = page;
        }
        start = end;
    }
    found
}

/// Objects of a global heap collection that end with a checksum: the mappings of virtual datasets.
fn heap_objects(collection: &[u8], at: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut place = 16;
    while place + 16 <= collection.len() {
        let index = u16::from_le_bytes(collection[place..place + 2].try_into().expect("two bytes"));
        let len =
            u64::from_le_bytes(collection[place + 8..place + 16].try_into().expect("eight bytes")) as usize;
        if index == 0 {
            break;
        }
        let data = &collection[place + 16..place + 16 + len];
        if let Some((body, sum)) = data.split_last_chunk::<4>()
            && lookup3(body).to_le_bytes() == *sum
        {
            found.push(at + place + 16..at + place + 16 + len);
        }
        place += 16 + len.next_multiple_of(8);
    }
    found
}

fn findings(bytes: Vec<u8>) -> Vec<Finding> {
    let mut found = Vec::new();
    let open = OpenOptions { threads: Threads::ONE, ..OpenOptions::default() };
    let options = CheckOptions { open, ..CheckOptions::default() };
    check(Arc::new(MemorySource::new(bytes)), &options, &Quiet, &mut |f| {
        found.push(f.clone());
        Ok(())
    })
    .expect("a check of memory");
    found
}

/// What may be damaged, and the object that must be named where that is known.
struct Target {
    range: Range<usize>,
    object: Option<String>,
}

fn targets(bytes: &[u8], known: &Value) -> Vec<Target> {
    let rows = |key: &str| known[key].as_array().expect("a list").clone();
    let headers: Vec<(usize, String)> = rows("headers")
        .iter()
        .map(|row| {
            (row[0].as_u64().expect("an address") as usize, row[1].as_str().expect("a path").to_owned())
        })
        .collect();
    let mut out: Vec<Target> = structures(bytes)
        .into_iter()
        .map(|range| {
            let object = headers.iter().find(|(at, _)| *at == range.start).map(|(_, path)| path.clone());
            Target { range, object }
        })
        .collect();
    for row in rows("chunks") {
        let start = row[1].as_u64().expect("an offset") as usize;
        let len = row[2].as_u64().expect("a size") as usize;
        let object = row[0].as_str().map(str::to_owned);
        out.push(Target { range: start..start + len, object });
    }
    out
}

/// Does the check say where this is damaged?
fn named(found: &[Finding], target: &Target, paths: &BTreeSet<String>) -> bool {
    found.iter().any(|f| {
        let place =
            f.offset.is_some_and(|o| target.range.contains(&(o as usize)) || o as usize == target.range.end);
        let object = match &target.object {
            Some(path) => f.object == *path,
            None => f.object.starts_with('(') || paths.contains(&f.object),
        };
        f.verdict == Verdict::Damaged && place && object
    })
}

#[test]
fn check_names_object_and_offset_of_every_flipped_bit_under_a_checksum() {
    let Some(folder) = super::made() else { return oracle::skip("Python with h5py", 1) };
    let every = std::env::var_os("TENSILO_EVERY_BIT").is_some();
    let (mut files, mut flips, mut kinds) = (0, 0, BTreeSet::new());
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "h5") {
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).expect("a file");
        let text = std::fs::read_to_string(path.with_extension("json")).expect("what is known");
        let known: Value = serde_json::from_str(&text).expect("JSON");
        let before = findings(bytes.clone());
        assert!(before.is_empty(), "{}: {before:#?}", path.display());
        let paths: BTreeSet<String> = known["headers"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| row[1].as_str().expect("a path").to_owned())
            .collect();
        let targets = targets(&bytes, &known);
        assert!(targets.len() > 2, "{}: {} structures", path.display(), targets.len());
        let wanted = chosen(&bytes, &targets, every);
        kinds.extend(targets.iter().map(|t| bytes[t.range.start..t.range.start + 4].to_vec()));
        flips += wanted.len();
        #[expect(clippy::print_stdout, reason = "how much is tried is worth seeing")]
        {
            println!("{} bits of {} structures in {}", wanted.len(), targets.len(), path.display());
        }
        let result = Threads::default().for_each(
            wanted.len(),
            &Quiet,
            "flipping",
            0,
            || (),
            |(), i, _| {
                let (target, bit) = wanted[i];
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let found = findings(flipped);
                if named(&found, target, &paths) {
                    return Ok(());
                }
                let kind =
                    String::from_utf8_lossy(&bytes[target.range.start..target.range.start + 4]).into_owned();
                let (at, range) = (bit / 8, &target.range);
                let of = &target.object;
                Err(tensilo_core::Error::invalid(format!(
                    "byte {at} of {kind} at {range:?} of {of:?}: {found:#?}"
                )))
            },
        );
        result.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    assert!(files >= 10, "{files} files");
    for signature in SIGNATURES {
        assert!(
            kinds.iter().any(|k| signature.starts_with(&k[..4])),
            "no {:?}",
            String::from_utf8_lossy(signature)
        );
    }
    assert!(flips > 1_000, "{flips} flips");
    #[expect(clippy::print_stdout, reason = "how much was tried is worth seeing")]
    {
        println!("{flips} bits flipped in {files} files");
    }
}

/// The bits that are flipped: all, or some of the first few structures of each kind.
fn chosen<'t>(bytes: &[u8], targets: &'t [Target], every: bool) -> Vec<(&'t Target, usize)> {
    const OF_A_KIND: usize = 3;
    const BITS: usize = 13;
    let mut kinds: HashMap<&[u8], usize> = HashMap::new();
    let mut out = Vec::new();
    for target in targets {
        let seen = kinds.entry(&bytes[target.range.start..target.range.start + 4]).or_default();
        *seen += 1;
        let bits = target.range.start * 8..target.range.end * 8;
        if every {
            out.extend(bits.map(|b| (target, b)));
        } else if *seen <= OF_A_KIND {
            let stride = bits.len().div_ceil(BITS).max(1);
            out.extend(bits.step_by(stride).map(|b| (target, b)));
        }
    }
    out
}
