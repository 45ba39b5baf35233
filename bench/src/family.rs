//! A detector family of any size, made quickly: frames of a disk and a halo with Poisson counts, drawn from a seeded
//! pool, compressed once and written as they are.

use std::path::{Path, PathBuf};
use tensilo_core::io::SystemDisk;
use tensilo_filters::{bitshuffle, lz4};
use tensilo_hdf5::write::{FileWriter, Filters, Value, WriteOptions};

/// Detector rows and columns.
pub const SIDE: usize = 192;
/// Pixels of a frame.
pub const PIXELS: usize = SIDE * SIDE;
/// Frames of a member.
const MEMBER: u64 = 10_000;
/// Values of one bitshuffle block.
const BLOCK: usize = 4096;
/// Masked pixels; each holds the largest value in every frame.
const DEAD: [usize; 4] = [10 * SIDE + 20, 50 * SIDE + 60, 100 * SIDE + 100, 150 * SIDE + 30];

/// A generator whose numbers depend on its seed only (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A Poisson count: uniform numbers are multiplied until they fall below exp(-mean).
    fn poisson(&mut self, limit: f64) -> u16 {
        let (mut product, mut count) = (self.unit(), 0);
        while product > limit && count < 250 {
            product *= self.unit();
            count += 1;
        }
        count
    }
}

/// Frames as raw counts and as stored chunks.
pub struct Pool {
    pub raw: Vec<Vec<u16>>,
    pub stored: Vec<Vec<u8>>,
}

/// Draws a pool of frames.
pub fn pool(frames: usize) -> Pool {
    let mut random = Random::new(5);
    let mean: Vec<f64> = (0..PIXELS)
        .map(|p| {
            let (y, x) = ((p / SIDE) as f64 - 95.5, (p % SIDE) as f64 - 95.5);
            let r = y.hypot(x);
            if r < 30.0 { 6.0 } else { 0.15 * (-(r - 30.0) / 60.0).exp() }
        })
        .collect();
    let mut pool = Pool { raw: Vec::new(), stored: Vec::new() };
    let mut limits = vec![0.0; PIXELS];
    for _ in 0..frames {
        let bright = 0.75 + 0.5 * random.unit();
        limits.iter_mut().zip(&mean).for_each(|(l, m)| *l = (-bright * m).exp());
        let mut frame: Vec<u16> = limits.iter().map(|l| random.poisson(*l)).collect();
        DEAD.iter().for_each(|p| frame[*p] = u16::MAX);
        pool.stored.push(stored(&frame));
        pool.raw.push(frame);
    }
    pool
}

/// One frame as filter 32008 stores it.
pub fn stored(frame: &[u16]) -> Vec<u8> {
    let bytes: Vec<u8> = frame.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut out = (bytes.len() as u64).to_be_bytes().to_vec();
    out.extend_from_slice(&(2 * BLOCK as u32).to_be_bytes());
    let mut shuffled = vec![0; 2 * BLOCK];
    for block in bytes.chunks(2 * BLOCK) {
        bitshuffle::shuffle_block(block, &mut shuffled[..block.len()], 2);
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        let n = lz4::encode_block(&shuffled[..block.len()], &mut out) as u32;
        out[at..at + 4].copy_from_slice(&n.to_be_bytes());
    }
    out
}

/// Which pool frame a scan shows.
pub fn drawn(pool: &Pool, scans: u64) -> Vec<u32> {
    let mut random = Random::new(11);
    (0..scans).map(|_| (random.next() >> 33) as u32 % pool.raw.len() as u32).collect()
}

/// Writes the members and their master into a folder; returns the master.
pub fn write(folder: &Path, scan: [u64; 2], pool: &Pool) -> Result<PathBuf, String> {
    let order = drawn(pool, scan[0] * scan[1]);
    let mut mask = vec![0_u32; PIXELS];
    DEAD.iter().for_each(|p| mask[*p] = 1);
    let frames = order.iter().map(|k| pool.stored[*k as usize].as_slice());
    write_family(folder, scan, &mask, frames).map_err(|e| e.to_string())
}

/// Writes a stack of frames as such a family, without masked pixels.
pub fn write_stack(folder: &Path, scan: [u64; 2], counts: &[u16]) -> tensilo_core::Result<PathBuf> {
    write_family(folder, scan, &vec![0; PIXELS], counts.chunks_exact(PIXELS).map(stored))
}

fn write_family(
    folder: &Path,
    scan: [u64; 2],
    mask: &[u32],
    frames: impl Iterator<Item = impl AsRef<[u8]>>,
) -> tensilo_core::Result<PathBuf> {
    let (scans, side) = (scan[0] * scan[1], SIDE as u64);
    let begin =
        |name: &str| FileWriter::create(SystemDisk::shared(), folder.join(name), WriteOptions::default());
    let mut master = begin("bench_master.h5")?;
    let mut frames = frames;
    for (k, first) in (0..scans).step_by(MEMBER as usize).enumerate() {
        let n = MEMBER.min(scans - first);
        let name = format!("bench_data_{:06}.h5", k + 1);
        let mut member = begin(&name)?;
        let mut stack = member
            .dataset("/entry/data/data")
            .element::<u16>()
            .shape(&[n, side, side])
            .chunk(&[1, side, side])
            .filters(Filters::bitshuffle_lz4())
            .chunk_writer()?;
        for (i, frame) in (0..n).zip(&mut frames) {
            stack.write_encoded(&[i, 0, 0], frame.as_ref(), 0)?;
        }
        stack.finish()?;
        member.finish()?;
        master.external_link(format!("/entry/data/data_{:06}", k + 1), &name, "/entry/data/data")?;
    }
    master.attribute("/entry/data", "scan_shape", Value::array(&scan, &[2])?)?;
    let specific = "/entry/instrument/detector/detectorSpecific";
    master.dataset(format!("{specific}/pixel_mask")).shape(&[side, side]).write(mask)?;
    master.dataset(format!("{specific}/ntrigger")).write_value(Value::scalar(scans))?;
    master.dataset(format!("{specific}/nimages")).write_value(Value::scalar(1_u64))?;
    master.finish()?;
    Ok(folder.join("bench_master.h5"))
}
