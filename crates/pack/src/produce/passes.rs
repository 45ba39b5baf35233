//! The two ways through the source: one decode pass that stages packed tiles, or two that do not.
//!
//! With one pass every frame is decoded once: tiles are packed at once and staged until their shard is complete, while
//! the next shard's tiles are already being decoded. With two, the first pass hashes and measures a shard, the second
//! decodes it again and puts each tile where it belongs; that needs no room for staging. The bytes are the same.

use super::decode::Reader;
use super::gather::{Described, StagedTile, gather_piece, payload_words, pixel_major};
use super::hashes::Hashes;
use super::kernel::{Kernel, TileBuffers};
use super::shards::{Pieces, Shards};
use crate::format::index::Extent;
use crate::geometry::Cut;
use crate::le;
use crate::ordered::{self, Chain, Help, Ordered, Schedule, lock};
use crate::profile::Profile;
use crate::sha_pair::{Sha256Stream, pairs_pay};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use tensilo_core::io::DiskFile;
use tensilo_core::limits::Charge;
use tensilo_core::{Budget, Error, Monitor, Progress, Result};

/// What both ways share.
pub(crate) struct Pass<'a> {
    pub kernel: &'a Kernel<'a>,
    pub cut: Cut,
    pub workers: usize,
    /// Decoded tiles that may be on their way at one time; at least the number of workers.
    pub ring: usize,
    /// Keeps count of what is held.
    pub account: &'a Budget,
    /// The chain of raw values, and all others.
    pub raw: Mutex<Sha256Stream>,
    pub hashes: Mutex<Hashes>,
    /// The file that shards are written to, and what of it is complete and not in `hashes` yet.
    pub file: &'a dyn DiskFile,
    pub written: Mutex<Vec<Extent>>,
}

impl Pass<'_> {
    fn tiles(&self) -> usize {
        self.cut.tiles() as usize
    }

    fn hash(&self, chain: Chain, buffers: &TileBuffers) -> Result<()> {
        let (raw, working) = (le::bytes_of_u16(&buffers.raw), &buffers.working);
        match chain {
            Chain::First => lock(&self.raw).update(&raw),
            Chain::Second => self.hashes_so_far().working_tile(working, self.file)?,
            Chain::Whole => self.hashes_so_far().tile(&mut lock(&self.raw), &raw, working, self.file)?,
        }
        Ok(())
    }

    /// The chains but that of raw values, with all parts of the file that are complete.
    fn hashes_so_far(&self) -> MutexGuard<'_, Hashes> {
        let mut hashes = lock(&self.hashes);
        hashes.add(std::mem::take(&mut *lock(&self.written)));
        hashes
    }

    /// Appends a shard, and notes what of it is to be hashed.
    fn append(&self, shards: &mut Shards<'_, '_>, words: u64, widest: u32, pieces: Pieces<'_>) -> Result<()> {
        let extents = shards.append(words, widest, pieces)?;
        lock(&self.written).extend(extents);
        Ok(())
    }

    /// A ring of tile buffers, and its charge.
    fn buffers(&self) -> Result<(Vec<TileBuffers>, Charge)> {
        let ring: Vec<TileBuffers> = (0..self.ring).map(|_| self.kernel.buffers()).collect();
        let bytes = ring.iter().map(|b| 2 * b.raw.len() as u64 + b.working.len() as u64).sum();
        Ok((ring, self.account.bytes(bytes, "tile buffers")?))
    }

    /// Progress counts decoded bytes; a second pass counts again.
    fn schedule(&self, groups: usize, first_item: usize, passes: u64, stage: &'static str) -> Schedule {
        let unit = 2 * (self.kernel.tile() * self.kernel.pixels) as u64;
        Schedule {
            groups,
            items_per_group: self.tiles(),
            groups_at_once: 2,
            workers: self.workers,
            split: self.workers > 1 && !pairs_pay(),
            stage,
            unit,
            done: unit * first_item as u64,
            total: unit * passes * u64::from(self.cut.shards) * self.tiles() as u64,
        }
    }

    fn reader(&self) -> (Reader, Option<Charge>) {
        let reader = self.kernel.frames.reader();
        (reader, self.account.bytes(self.kernel.frames.reader_bytes(), "a reader").ok())
    }
}

/// Decodes everything once and appends all shards.
///
/// # Errors
/// The first failure in tile order; `Cancelled`; errors of the disk.
pub(crate) fn one_pass(pass: &Pass<'_>, shards: &mut Shards<'_, '_>, monitor: &dyn Monitor) -> Result<()> {
    let staged = (0..2 * pass.tiles()).map(|_| Mutex::new(None)).collect();
    let (ring, _charge) = pass.buffers()?;
    let work = OnePass { pass, staged, shards: Mutex::new(shards) };
    ordered::run(&work, ring, pass.schedule(pass.cut.shards as usize, 0, 1, "packing"), monitor)
}

struct OnePass<'a, 's, 'w, 'f> {
    pass: &'a Pass<'a>,
    /// The tiles of two shards, by shard modulo 2.
    staged: Vec<Mutex<Option<(StagedTile, Charge)>>>,
    shards: Mutex<&'s mut Shards<'w, 'f>>,
}

impl Ordered for OnePass<'_, '_, '_, '_> {
    type Slot = TileBuffers;
    type Scratch = (Reader, Option<Charge>);

    fn scratch(&self) -> Self::Scratch {
        self.pass.reader()
    }

    fn prepare(&self, (reader, _): &mut Self::Scratch, item: usize, buffers: &mut TileBuffers) -> Result<()> {
        let kernel = self.pass.kernel;
        let mut tile = StagedTile::new(kernel.pixels, kernel.pieces());
        let (widths, pieces) = tile.parts();
        let mut push = |_: usize, bytes: &[u8]| StagedTile::push(pieces, bytes);
        match kernel.profile {
            Profile::ExactUint8BitPacked => {
                kernel.decode_and_narrow(reader, item, buffers, widths)?;
                kernel.pack(&buffers.working, widths, &mut push);
            }
            Profile::ExactUint16Lz4 => {
                kernel.decode(reader, item, &mut buffers.raw)?;
                kernel.process(item, &buffers.raw, Some(&mut buffers.working), widths, Some(&mut push))?;
            }
        }
        let charge = self.pass.account.bytes(tile.bytes(), "a packed tile")?;
        *lock(&self.staged[item % self.staged.len()]) = Some((tile, charge));
        Ok(())
    }

    fn consume(&self, _: usize, chain: Chain, buffers: &TileBuffers) -> Result<()> {
        self.pass.hash(chain, buffers)
    }

    fn end(&self, group: usize, help: &mut dyn Help) -> Result<()> {
        let (kernel, cut, count) = (self.pass.kernel, self.pass.cut, self.pass.tiles());
        let first = group % 2 * count;
        let mut charges = Vec::with_capacity(count);
        let mut tiles = Vec::with_capacity(count);
        for slot in &self.staged[first..first + count] {
            let (tile, charge) = lock(slot).take().ok_or_else(|| Error::invalid("a tile was not staged"))?;
            tiles.push(tile);
            charges.push(charge);
        }
        let words = payload_words(tiles.iter().map(|t| &*t.widths), kernel.unit());
        let widest = tiles.iter().flat_map(|t| &t.widths).copied().max().unwrap_or(0);
        let (mut widths, mut out) = (Vec::new(), Vec::new());
        let mut shards = lock(&self.shards);
        self.pass.append(&mut shards, words, widest.into(), &mut |described: &mut Described<'_>, write| {
            for piece in 0..kernel.pieces() {
                gather_piece(kernel, &cut, &tiles, piece, described, &mut widths, &mut out)?;
                write(&out)?;
                help.help()?;
            }
            Ok(())
        })
    }
}

/// Decodes every shard twice and appends it.
///
/// # Errors
/// As [`one_pass`].
pub(crate) fn two_passes(pass: &Pass<'_>, shards: &mut Shards<'_, '_>, monitor: &dyn Monitor) -> Result<()> {
    let (kernel, count) = (pass.kernel, pass.tiles());
    let (mut ring, _charge) = pass.buffers()?;
    for group in 0..pass.cut.shards as usize {
        let first = group * count;
        let _widths = pass.account.bytes((count * kernel.pixels) as u64, "widths")?;
        let widths: Vec<RwLock<Vec<u8>>> = (0..count).map(|_| RwLock::new(vec![0; kernel.pixels])).collect();
        let measure = Measure { pass, first, widths: &widths };
        ring = ordered::run_keeping(&measure, ring, pass.schedule(1, 2 * first, 2, "measuring"), monitor)?;
        let widths: Vec<Vec<u8>> =
            widths.into_iter().map(|w| w.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
        let words = payload_words(widths.iter().map(|w| &**w), kernel.unit());
        if words > crate::format::header::MOST_WORDS {
            // Refused by the writer, before the payload is allocated.
            return pass.append(shards, words, 16, &mut |_, _| Ok(()));
        }
        let _payload = pass.account.bytes(4 * words, "a shard's payload")?;
        // Nothing is hashed the second time, so that there is one chain.
        let place =
            Place { pass, first, widths: &widths, state: Mutex::new(Placing::new(pass, &widths, words)) };
        ring = ordered::run_keeping(
            &place,
            ring,
            Schedule { split: false, ..pass.schedule(1, 2 * first + count, 2, "packing") },
            monitor,
        )?;
        let payload = place.state.into_inner().unwrap_or_else(PoisonError::into_inner).payload;
        append_placed(pass, shards, &widths, &payload, words, monitor)?;
    }
    Ok(())
}

fn append_placed(
    pass: &Pass<'_>,
    shards: &mut Shards<'_, '_>,
    widths: &[Vec<u8>],
    payload: &[u8],
    words: u64,
    monitor: &dyn Monitor,
) -> Result<()> {
    let kernel = pass.kernel;
    let widest = widths.iter().flatten().copied().max().unwrap_or(0);
    let header = u64::from(pass.cut.header_words()) * 4 * kernel.pixels as u64;
    let _header = pass.account.bytes(header, "headers")?;
    let mut of_piece = Vec::new();
    pass.append(shards, words, widest.into(), &mut |described: &mut Described<'_>, write| {
        for first in (0..kernel.pixels).step_by(kernel.piece()) {
            let n = kernel.piece().min(kernel.pixels - first);
            pixel_major(widths.iter().map(|w| &w[first..first + n]), n, &mut of_piece);
            described.enter(first, &of_piece, &pass.cut)?;
        }
        for part in payload[..4 * words as usize].chunks(1 << 20) {
            monitor.poll(&Progress { stage: "writing shard", done: 0, total: 0 })?;
            write(part)?;
        }
        Ok(())
    })
}

/// The first pass over a shard: hashes, checks, widths.
struct Measure<'a> {
    pass: &'a Pass<'a>,
    first: usize,
    widths: &'a [RwLock<Vec<u8>>],
}

impl Ordered for Measure<'_> {
    type Slot = TileBuffers;
    type Scratch = (Reader, Option<Charge>);

    fn scratch(&self) -> Self::Scratch {
        self.pass.reader()
    }

    fn prepare(&self, (reader, _): &mut Self::Scratch, item: usize, buffers: &mut TileBuffers) -> Result<()> {
        let kernel = self.pass.kernel;
        let mut widths = self.widths[item].write().unwrap_or_else(PoisonError::into_inner);
        kernel.decode_and_narrow(reader, self.first + item, buffers, &mut widths)
    }

    fn consume(&self, _: usize, chain: Chain, buffers: &TileBuffers) -> Result<()> {
        self.pass.hash(chain, buffers)
    }
}

/// The second pass over a shard: each tile's words to where they belong.
struct Place<'a> {
    pass: &'a Pass<'a>,
    first: usize,
    widths: &'a [Vec<u8>],
    state: Mutex<Placing>,
}

struct Placing {
    payload: Vec<u8>,
    /// Where the next tile of each pixel begins, in words.
    cursors: Vec<u32>,
}

impl Placing {
    fn new(pass: &Pass<'_>, widths: &[Vec<u8>], words: u64) -> Self {
        let unit = pass.kernel.unit() as u32;
        let mut next = 0;
        let cursors = (0..pass.kernel.pixels)
            .map(|p| {
                let here = next;
                next += widths.iter().map(|w| u32::from(w[p])).sum::<u32>() * unit;
                here
            })
            .collect();
        Self { payload: vec![0; 4 * words as usize], cursors }
    }
}

impl Ordered for Place<'_> {
    type Slot = TileBuffers;
    type Scratch = (Reader, Option<Charge>, Vec<u8>);

    fn scratch(&self) -> Self::Scratch {
        let (reader, charge) = self.pass.reader();
        (reader, charge, vec![0; self.pass.kernel.pixels])
    }

    fn prepare(&self, scratch: &mut Self::Scratch, item: usize, buffers: &mut TileBuffers) -> Result<()> {
        let (reader, _, widths) = scratch;
        let kernel = self.pass.kernel;
        kernel.decode(reader, self.first + item, &mut buffers.raw)?;
        let (room, packed) = (kernel.piece_bytes(), &mut buffers.working);
        let mut keep =
            |piece: usize, bytes: &[u8]| packed[piece * room..][..bytes.len()].copy_from_slice(bytes);
        kernel.process(self.first + item, &buffers.raw, None, widths, Some(&mut keep))?;
        if *widths != self.widths[item] {
            return Err(Error::source_changed("frames decode differently a second time"));
        }
        Ok(())
    }

    fn consume(&self, item: usize, _: Chain, buffers: &TileBuffers) -> Result<()> {
        let kernel = self.pass.kernel;
        let mut state = lock(&self.state);
        let Placing { payload, cursors } = &mut *state;
        let pieces = self.widths[item].chunks(kernel.piece()).zip(cursors.chunks_mut(kernel.piece()));
        for ((widths, cursors), packed) in pieces.zip(buffers.working.chunks(kernel.piece_bytes())) {
            let mut from = 0;
            for (w, cursor) in widths.iter().zip(cursors) {
                let words = usize::from(*w) * kernel.unit();
                let to = 4 * *cursor as usize;
                payload[to..to + 4 * words].copy_from_slice(&packed[from..from + 4 * words]);
                from += 4 * words;
                *cursor += words as u32;
            }
        }
        Ok(())
    }
}
