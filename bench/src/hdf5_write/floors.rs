//! What no writer can spare: the same bytes in one plain write into a new file, and the usual C library encoding chunks that
//! are shuffled already, on one thread and on two.

use super::rows::{Case, Coding};
use super::{Arrays, Writer};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensilo_core::io::{Disk, SystemDisk};

const WRITE: &str = "floor: one write";
const ONE: &str = "floor: encoder, 1 thread";
const TWO: &str = "floor: encoder, 2 threads";

pub fn of<'a>(arrays: &'a Arrays, case: Case) -> Vec<Writer<'a>> {
    let raw = case.array.raw(arrays);
    let size = raw.len() / case.array.shape().iter().product::<u64>() as usize;
    let chunk = case.chunk.iter().product::<u64>() as usize * size;
    match case.coding {
        Coding::None => vec![Writer::floor(WRITE, move |path| write(path, raw))],
        Coding::ShuffleZstd(level) => {
            let shuffled =
                in_chunks(raw, chunk, |from, to| tensilo_filters::shuffle::shuffle(from, to, size));
            let new = move || {
                let mut context = zstd::bulk::Compressor::new(level as i32).expect("a level");
                let mut room = vec![0; zstd::zstd_safe::compress_bound(chunk)];
                move |chunk: &[u8]| context.compress_to_buffer(chunk, &mut room[..]).map(drop).expect("room")
            };
            encoding(shuffled, chunk, new)
        }
        Coding::BitshuffleLz4 => lz4(raw, chunk, size),
        Coding::ShuffleDeflate(_) => Vec::new(),
    }
}

fn write(path: &Path, bytes: &[u8]) {
    let file = SystemDisk.create_new(path).expect("a new file");
    file.write_at(0, bytes).expect("room");
}

fn in_chunks(raw: &[u8], chunk: usize, shuffle: impl Fn(&[u8], &mut [u8])) -> Vec<u8> {
    let mut shuffled = vec![0; raw.len()];
    raw.chunks(chunk).zip(shuffled.chunks_mut(chunk)).for_each(|(from, to)| shuffle(from, to));
    shuffled
}

/// Liblz4 comes with the other peers.
#[cfg(not(feature = "peers"))]
fn lz4<'a>(_: &[u8], _: usize, _: usize) -> Vec<Writer<'a>> {
    Vec::new()
}

#[cfg(feature = "peers")]
fn lz4<'a>(raw: &[u8], chunk: usize, size: usize) -> Vec<Writer<'a>> {
    use tensilo_filters::bitshuffle::{default_block, shuffle};
    let shuffled = in_chunks(raw, chunk, |from, to| shuffle(from, to, size, 0).expect("whole elements"));
    let block = size * default_block(size);
    let new = move || {
        let mut room = vec![0; lz4::block::compress_bound(block).expect("a small block")];
        move |chunk: &[u8]| {
            for block in chunk.chunks(block) {
                lz4::block::compress_to_buffer(block, None, false, &mut room).expect("room");
            }
        }
    };
    encoding(shuffled, chunk, new)
}

fn encoding<'a, E: FnMut(&[u8])>(
    shuffled: Vec<u8>,
    chunk: usize,
    new: impl Fn() -> E + Sync + Clone + 'a,
) -> Vec<Writer<'a>> {
    let shuffled = std::sync::Arc::new(shuffled);
    [(ONE, 1), (TWO, 2)]
        .map(|(name, threads)| {
            let (shuffled, new) = (shuffled.clone(), new.clone());
            Writer::floor(name, move |_| {
                let next = AtomicUsize::new(0);
                let worker = || {
                    let mut encode = new();
                    while let Some(chunk) = shuffled.chunks(chunk).nth(next.fetch_add(1, Ordering::Relaxed)) {
                        encode(chunk);
                    }
                };
                std::thread::scope(|scope| {
                    (1..threads).for_each(|_| drop(scope.spawn(worker)));
                    worker();
                });
            })
        })
        .into()
}
