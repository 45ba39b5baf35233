//! Every filter, both ways, over one chunk, against the C library that others use for it.
//!
//! libhdf5 and hdf5plugin run inside h5py: a chunk of a file in memory is read or written as a whole, and what the same
//! costs without a filter, measured in the same rounds, is taken off. With the feature `peers`, libdeflate and liblz4 are
//! called directly. All contestants decode the same bytes and must yield the same values before they are timed. The lines
//! below the table compare fastest rounds with the goals. `TENSILO_BENCH_CASES` chooses the cases whose names contain one
//! of its comma-separated words.

#![expect(clippy::disallowed_methods, reason = "the files of a comparison need no crash safety")]

use crate::data;
use crate::h5py::Python;
use crate::report::Report;
use std::path::Path;
use std::time::Instant;
use tensilo_filters::{ChunkInfo, FilterSpec, Pipeline, Registry, Scratch, id};

/// Least number of rounds in which contestants take turns, unless that takes longer than [`LONG`].
const ROUNDS: usize = 25;
/// Rounds go on up to this many while the middle half of some contestant's rounds is spread by more than [`SPREAD`].
const MOST_ROUNDS: usize = 100;
const SPREAD: f64 = 0.3;
/// Seconds after which [`FEWEST`] rounds are enough.
const LONG: f64 = 1.5;
const FEWEST: usize = 5;
/// A round calls often enough to take about this many seconds, 16 times at most.
const ROUND: f64 = 2e-3;

/// One pipeline: name, filters as h5py takes them, and how fast encoding and decoding are to be, as a multiple of the
/// peer's speed.
struct Entry {
    name: &'static str,
    filters: Vec<(u16, Vec<u32>)>,
    goals: [f64; 2],
}

/// Encodes and decodes 2 MiB of detector counts and of floats.
pub fn run() -> Result<Report, String> {
    let mut report = Report::default();
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).map_err(|e| e.to_string())?;
    let python = Python::start().ok_or("libhdf5 and hdf5plugin need Python with h5py and hdf5plugin")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/filters.py");
    python.run(&format!("exec(open({script:?}).read(), globals())"));
    for (what, size, raw) in
        [("u2", 2, data::detector_counts(1024, 1024)), ("f4", 4, data::float_field(1 << 19))]
    {
        write(&folder.path().join("raw.bin"), &raw)?;
        // Seconds per chunk of libhdf5's shuffle, both ways.
        let mut shuffle = None;
        for entry in entries(what) {
            let case = format!("{what} {}", entry.name);
            if !chosen(&case) {
                continue;
            }
            let chunk = Chunk::from_h5py(&python, folder.path(), what, size, raw.clone(), &entry)?;
            let theirs = chunk.against_h5py(&mut report, &python, &case, entry.goals);
            match (entry.name, &shuffle) {
                ("shuffle", _) => shuffle = Some(theirs),
                ("bitshuffle", Some(shuffle)) => chunk.against_shuffle(&mut report, &case, shuffle),
                _ => {}
            }
            peers::compare(&mut report, &case, &chunk)?;
        }
        let case = format!("{what} lz4 of 8 KiB bit-shuffled");
        if chosen(&case) {
            peers::lz4_blocks(&mut report, &case, &raw, size)?;
        }
    }
    vbz(&mut report);
    Ok(report)
}

/// Whether the environment wants this case.
fn chosen(case: &str) -> bool {
    let words = std::env::var("TENSILO_BENCH_CASES").unwrap_or_default();
    words.is_empty() || words.split(',').any(|word| case.contains(word))
}

/// VBZ, which neither libhdf5 nor hdf5plugin has: ours alone.
fn vbz(report: &mut Report) {
    let case = "i2 vbz 1";
    if !chosen(case) {
        return;
    }
    let raw = data::detector_counts(1024, 1024);
    let info = ChunkInfo { element_size: 2, chunk_dims: vec![1 << 20] };
    let specs = vec![FilterSpec::new(id::VBZ, vec![0, 2, 1, 1])];
    let mut chunk = Chunk { specs, info, raw, stored: vec![] };
    let (stored, mask) = chunk
        .pipeline()
        .encode(&mut Scratch::default(), &chunk.raw, &chunk.info)
        .expect("counts are integers");
    assert_eq!(mask, 0, "counts shrink");
    chunk.stored = stored;
    for way in ["encode", "decode"] {
        let times = in_rounds(chunk.calls(way), vec![chunk.ours(way)]).swap_remove(0);
        let (speed, ratio) = (chunk.speed(&times), chunk.ratio());
        let case = format!("{case} {way} ({ratio:.2}:1)");
        report.note(format!("{case:48} no peer,     tensilo {speed:7.2} GB/s"));
        report.record(&case, chunk.raw.len() as u64, vec![("tensilo".to_owned(), times)]);
    }
}

fn entries(what: &str) -> Vec<Entry> {
    let entry = |name, filters: &[(u16, &[u32])], goals| Entry {
        name,
        filters: filters.iter().map(|(id, options)| (*id, options.to_vec())).collect(),
        goals,
    };
    let mut all = vec![
        entry("shuffle", &[(id::SHUFFLE, &[])], [4.0, 4.0]),
        entry("fletcher32", &[(id::FLETCHER32, &[])], [0.8, 0.8]),
        entry("deflate 4", &[(id::DEFLATE, &[4])], [0.8, 0.95]),
        entry("shuffle + deflate 4", &[(id::SHUFFLE, &[]), (id::DEFLATE, &[4])], [0.8, 0.95]),
        entry("szip, differences", &[(id::SZIP, &[32, 16])], [1.0, 1.0]),
        entry("szip", &[(id::SZIP, &[4, 16])], [1.0, 1.0]),
        entry("lz4", &[(id::LZ4, &[])], [0.8, 1.0]),
        entry("bitshuffle", &[(id::BITSHUFFLE, &[0, 0])], [1.0, 1.0]),
        entry("bitshuffle + lz4", &[(id::BITSHUFFLE, &[0, 2])], [0.8, 2.5]),
        entry("bitshuffle + zstd 3", &[(id::BITSHUFFLE, &[0, 3, 3])], [0.8, 2.5]),
        entry("zstd 3", &[(id::ZSTD, &[3])], [0.9, 0.9]),
        // Planes of noise are stored, and tables are small: encoded faster than by libzstd alone, and as small.
        entry("shuffle + zstd 3", &[(id::SHUFFLE, &[]), (id::ZSTD, &[3])], [1.2, 0.9]),
        entry("bzip2 9", &[(id::BZIP2, &[9])], [0.8, 0.8]),
        entry("blosc blosclz, shuffle", &[(id::BLOSC, &[0, 0, 0, 0, 5, 1, 0])], [0.8, 0.8]),
        entry("blosc lz4, shuffle", &[(id::BLOSC, &[0, 0, 0, 0, 5, 1, 1])], [0.8, 0.8]),
        entry("blosc zstd, bitshuffle", &[(id::BLOSC, &[0, 0, 0, 0, 5, 2, 5])], [0.8, 0.8]),
        entry("blosc2 zstd, shuffle", &[(id::BLOSC2, &[0, 0, 0, 0, 5, 1, 5])], [0.8, 0.8]),
    ];
    if what == "u2" {
        // LZF gives up on the floats.
        all.push(entry("lzf", &[(id::LZF, &[])], [0.8, 0.8]));
        all.push(entry("scale-offset", &[(id::SCALE_OFFSET, &[2, 0])], [0.8, 0.8]));
        // Of numbers of 12 bits.
        all.push(entry("n-bit 12", &[(id::NBIT, &[])], [0.8, 0.8]));
    } else {
        let (low, high) = (1e-3_f64.to_bits() as u32, (1e-3_f64.to_bits() >> 32) as u32);
        all.push(entry("zfp, rate 16", &[(id::ZFP, &[1, 0, 0, 0x4030_0000])], [0.8, 0.8]));
        all.push(entry("zfp, accuracy 1e-3", &[(id::ZFP, &[3, 0, low, high])], [0.8, 0.8]));
        all.push(entry("zfp, reversible", &[(id::ZFP, &[5, 0, 0, 0, 0, 0])], [0.8, 0.8]));
        all.push(entry("scale-offset, 3 digits", &[(id::SCALE_OFFSET, &[0, 3])], [0.8, 0.8]));
    }
    all
}

/// The fastest round: what other programs on the machine disturbed least.
fn fastest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

type Work<'a> = Box<dyn FnMut(usize) + 'a>;

/// Has all contestants work `calls` times each, in turn, round after round; returns seconds per call.
fn in_rounds(calls: usize, mut contestants: Vec<Work<'_>>) -> Vec<Vec<f64>> {
    contestants.iter_mut().for_each(|work| work(1));
    let mut times = vec![Vec::new(); contestants.len()];
    let start = Instant::now();
    for round in 1..=MOST_ROUNDS {
        for (work, times) in contestants.iter_mut().zip(&mut times) {
            let begin = Instant::now();
            work(calls);
            times.push(begin.elapsed().as_secs_f64() / calls as f64);
        }
        let long = start.elapsed().as_secs_f64() > LONG;
        if round >= FEWEST && (long || round >= ROUNDS && times.iter().all(|t| spread(t) <= SPREAD)) {
            break;
        }
    }
    times
}

/// How far the middle half of the times is apart, as a part of the middle one.
fn spread(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let n = times.len();
    (times[n * 3 / 4] - times[n / 4]) / times[n / 2]
}

/// One chunk that h5py stored.
struct Chunk {
    specs: Vec<FilterSpec>,
    info: ChunkInfo,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

impl Chunk {
    /// Has h5py store the raw bytes, and checks that we decode them to what h5py does.
    fn from_h5py(
        python: &Python,
        folder: &Path,
        what: &str,
        size: usize,
        raw: Vec<u8>,
        entry: &Entry,
    ) -> Result<Self, String> {
        python.run(&format!("setup({folder:?}, {what:?}, {:?})", entry.filters));
        let bytes = std::fs::read(folder.join("chunk.bin")).map_err(|e| e.to_string())?;
        let mut rest = &bytes[..];
        let mut word = || {
            let (head, behind) = rest.split_first_chunk::<4>().expect("h5py wrote all of it");
            rest = behind;
            u32::from_le_bytes(*head)
        };
        let specs: Vec<FilterSpec> = (0..word())
            .map(|_| {
                let (id, values) = (word() as u16, word());
                FilterSpec::new(id, (0..values).map(|_| word()).collect())
            })
            .collect();
        let length = word() as usize;
        let (expected, stored) = rest.split_at(length);
        let info = ChunkInfo { element_size: size, chunk_dims: vec![(raw.len() / size) as u64] };
        let chunk = Self { specs, info, raw, stored: stored.to_vec() };
        let mut out = vec![0; expected.len()];
        chunk
            .pipeline()
            .decode(&mut Scratch::default(), &chunk.stored, 0, &mut out)
            .map_err(|e| e.to_string())?;
        if out != expected {
            return Err(format!("{}: other values than h5py's", entry.name));
        }
        Ok(chunk)
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::new(&self.specs, &Registry::default()).expect("a short pipeline")
    }

    /// Our work, encoding or decoding.
    fn ours(&self, way: &str) -> Work<'_> {
        let (pipeline, mut scratch, mut out) = (self.pipeline(), Scratch::default(), vec![0; self.raw.len()]);
        if way == "encode" {
            Box::new(move |times| {
                for _ in 0..times {
                    pipeline.encode(&mut scratch, &self.raw, &self.info).expect("h5py encoded it");
                }
            })
        } else {
            Box::new(move |times| {
                for _ in 0..times {
                    pipeline.decode(&mut scratch, &self.stored, 0, &mut out).expect("it was decoded before");
                }
            })
        }
    }

    /// Calls per round.
    fn calls(&self, way: &str) -> usize {
        let once = fastest(&in_rounds(1, vec![self.ours(way)])[0]);
        (ROUND / once).clamp(1.0, 16.0) as usize
    }

    /// Compares with h5py, and returns the seconds that it took both ways.
    fn against_h5py(
        &self,
        report: &mut Report,
        python: &Python,
        case: &str,
        goals: [f64; 2],
    ) -> [Vec<f64>; 2] {
        self.sizes(report, case);
        [("encode", goals[0]), ("decode", goals[1])].map(|(way, goal)| {
            let base: Work<'_> = Box::new(|times| python.run(&format!("{way}(plain, {times})")));
            let peer: Work<'_> = Box::new(|times| python.run(&format!("{way}(filtered, {times})")));
            let mut times = in_rounds(self.calls(way), vec![base, peer, self.ours(way)]);
            let base = fastest(&times.remove(0));
            times[0].iter_mut().for_each(|t| *t = (*t - base).max(1e-9));
            let theirs = times[0].clone();
            let case = format!("{case} {way} ({:.2}:1)", self.ratio());
            self.record(report, &case, "h5py, net", times, goal);
            theirs
        })
    }

    /// Compares with libhdf5's byte shuffle, which was timed before, both ways.
    fn against_shuffle(&self, report: &mut Report, case: &str, shuffle: &[Vec<f64>; 2]) {
        for (way, theirs) in ["encode", "decode"].into_iter().zip(shuffle) {
            let ours = in_rounds(self.calls(way), vec![self.ours(way)]).swap_remove(0);
            let case = format!("{case} {way}, to a shuffle");
            self.record(report, &case, "h5py, net", vec![theirs.clone(), ours], 4.0);
        }
    }

    /// Tells how many bytes h5py's chunk has and how many ours, which both hold the same values.
    fn sizes(&self, report: &mut Report, case: &str) {
        let encoded = self.pipeline().encode(&mut Scratch::default(), &self.raw, &self.info);
        let ours = encoded.expect("h5py encoded it").0.len();
        let theirs = self.stored.len();
        let ratio = ours as f64 / theirs as f64;
        report.note(format!("{case:48} h5py {theirs:9} bytes, tensilo {ours:9} bytes, {ratio:.4} times"));
    }

    /// Raw bytes per stored byte.
    fn ratio(&self) -> f64 {
        self.raw.len() as f64 / self.stored.len() as f64
    }

    /// GB/s of the fastest round.
    fn speed(&self, times: &[f64]) -> f64 {
        self.raw.len() as f64 / fastest(times) / 1e9
    }

    fn record(&self, report: &mut Report, case: &str, peer: &str, times: Vec<Vec<f64>>, goal: f64) {
        let [theirs, ours] = <[Vec<f64>; 2]>::try_from(times).expect("two contestants");
        let ratio = fastest(&theirs) / fastest(&ours);
        report.note(format!(
            "{case:48} {peer:12} {:7.2} GB/s, tensilo {:7.2} GB/s, {ratio:6.2} times, goal {goal} {}",
            self.speed(&theirs),
            self.speed(&ours),
            // As precise as it is printed.
            if ratio >= goal - 0.005 { "met" } else { "MISSED" }
        ));
        let both = vec![(peer.to_owned(), theirs), ("tensilo".to_owned(), ours)];
        report.record(case, self.raw.len() as u64, both);
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|e| e.to_string())
}

/// libdeflate and liblz4, for the pipelines of one filter that they know.
#[cfg(feature = "peers")]
mod peers {
    use super::*;
    use libdeflater::{CompressionLvl, Compressor, Decompressor};
    use tensilo_filters::{bitshuffle, shuffle};

    pub fn compare(report: &mut Report, case: &str, chunk: &Chunk) -> Result<(), String> {
        match &chunk.specs[..] {
            [one] if one.id == id::DEFLATE => {
                let peers = [deflate(&chunk.raw), inflate(chunk)?];
                streams(report, case, chunk, "libdeflate", peers, [0.8, 0.95]);
            }
            [first, second] if first.id == id::SHUFFLE && second.id == id::DEFLATE => {
                // The stream that h5py stored holds shuffled bytes.
                let mut raw = vec![0; chunk.raw.len()];
                shuffle::shuffle(&chunk.raw, &mut raw, chunk.info.element_size);
                let (info, stored) = (chunk.info.clone(), chunk.stored.clone());
                let inner = Chunk { specs: vec![second.clone()], info, raw, stored };
                let peers = [deflate(&inner.raw), inflate(&inner)?];
                streams(report, case, &inner, "libdeflate", peers, [0.8, 0.95]);
            }
            [one] if one.id == id::LZ4 => {
                let peers = [lz4_encode(&chunk.raw, &one.values), lz4_decode(chunk)?];
                streams(report, case, chunk, "liblz4", peers, [0.8, 1.0]);
            }
            _ => {}
        }
        Ok(())
    }

    fn streams(
        report: &mut Report,
        case: &str,
        chunk: &Chunk,
        name: &str,
        peers: [Work<'_>; 2],
        goals: [f64; 2],
    ) {
        for ((way, peer), goal) in ["encode", "decode"].into_iter().zip(peers).zip(goals) {
            let times = in_rounds(chunk.calls(way), vec![peer, chunk.ours(way)]);
            chunk.record(report, &format!("{case} {way}, one stream"), name, times, goal);
        }
    }

    /// The blocks that bitshuffle makes, encoded by liblz4 and decoded one by one.
    pub fn lz4_blocks(report: &mut Report, case: &str, raw: &[u8], size: usize) -> Result<(), String> {
        const BLOCK: usize = 8192;
        let mut shuffled = vec![0; raw.len()];
        bitshuffle::shuffle(raw, &mut shuffled, size, BLOCK / size).map_err(|e| e.to_string())?;
        let blocks: Result<Vec<Vec<u8>>, _> =
            shuffled.chunks(BLOCK).map(|block| lz4::block::compress(block, None, false)).collect();
        let blocks = blocks.map_err(|e| e.to_string())?;
        // Each destination is as its decoder likes it: ours may write up to 64 bytes behind the block.
        let (mut theirs, mut ours) = ([0; BLOCK], [0; BLOCK + 64]);
        for (block, expected) in blocks.iter().zip(shuffled.chunks(BLOCK)) {
            let n = tensilo_filters::lz4::decode_block(block, &mut ours).map_err(|e| e.to_string())?;
            let m = lz4::block::decompress_to_buffer(block, Some(BLOCK as i32), &mut theirs);
            if ours[..n] != *expected || theirs[..m.map_err(|e| e.to_string())?] != *expected {
                return Err(format!("{case}: other bytes than were encoded"));
            }
        }
        let their_work: Work<'_> = Box::new(|times| {
            for block in (0..times).flat_map(|_| &blocks) {
                lz4::block::decompress_to_buffer(block, Some(BLOCK as i32), &mut theirs)
                    .expect("it was decoded before");
            }
        });
        let our_work: Work<'_> = Box::new(|times| {
            for block in (0..times).flat_map(|_| &blocks) {
                tensilo_filters::lz4::decode_block(block, &mut ours).expect("it was decoded before");
            }
        });
        let times = in_rounds(4, vec![their_work, our_work]);
        let stored = blocks.concat();
        let info = ChunkInfo { element_size: size, chunk_dims: vec![(raw.len() / size) as u64] };
        let chunk = Chunk { specs: vec![], info, raw: shuffled, stored };
        chunk.record(report, &format!("{case} decode ({:.2}:1)", chunk.ratio()), "liblz4", times, 1.0);
        Ok(())
    }

    fn deflate(raw: &[u8]) -> Work<'_> {
        let mut c = Compressor::new(CompressionLvl::new(4).expect("a level"));
        let mut out = vec![0; c.zlib_compress_bound(raw.len())];
        Box::new(move |times| {
            for _ in 0..times {
                c.zlib_compress(raw, &mut out).expect("it fits its bound");
            }
        })
    }

    fn inflate(chunk: &Chunk) -> Result<Work<'_>, String> {
        let (mut d, mut out) = (Decompressor::new(), vec![0; chunk.raw.len()]);
        d.zlib_decompress(&chunk.stored, &mut out).map_err(|e| e.to_string())?;
        if out != chunk.raw {
            return Err("libdeflate yields other bytes".into());
        }
        Ok(Box::new(move |times| {
            for _ in 0..times {
                d.zlib_decompress(&chunk.stored, &mut out).expect("it was decoded before");
            }
        }))
    }

    fn lz4_encode<'a>(raw: &'a [u8], values: &[u32]) -> Work<'a> {
        let block = values.first().map_or(1 << 30, |n| *n as usize).min(raw.len());
        Box::new(move |times| {
            for block in (0..times).flat_map(|_| raw.chunks(block)) {
                lz4::block::compress(block, None, false).expect("it fits its bound");
            }
        })
    }

    /// The filter's frame: sizes of the whole and of a block, then blocks behind their lengths, all big-endian.
    fn lz4_decode(chunk: &Chunk) -> Result<Work<'_>, String> {
        let field =
            |at: usize| u32::from_be_bytes(chunk.stored[at..at + 4].try_into().expect("4 bytes")) as usize;
        let block = field(8);
        let (mut blocks, mut at) = (Vec::new(), 12);
        while at < chunk.stored.len() {
            blocks.push(&chunk.stored[at + 4..at + 4 + field(at)]);
            at += 4 + field(at);
        }
        let mut out = vec![0; chunk.raw.len()];
        let mut all = move || {
            for (to, from) in out.chunks_mut(block).zip(&blocks) {
                if to.len() == from.len() {
                    to.copy_from_slice(from);
                } else {
                    lz4::block::decompress_to_buffer(from, Some(to.len() as i32), to).expect("an LZ4 block");
                }
            }
            out.first().copied()
        };
        all();
        Ok(Box::new(move |times| (0..times).for_each(|_| assert!(all().is_some()))))
    }
}

#[cfg(not(feature = "peers"))]
mod peers {
    use super::*;

    pub fn compare(_report: &mut Report, _case: &str, _chunk: &Chunk) -> Result<(), String> {
        Ok(())
    }

    pub fn lz4_blocks(_report: &mut Report, _case: &str, _raw: &[u8], _size: usize) -> Result<(), String> {
        Ok(())
    }
}
