//! One shard in memory, checked: its payload's SHA-256, its headers, its cover.

use super::unpack::{self, GROUP, SLACK};
use crate::digest::Sha256Sum;
use crate::format::header::{self, TileMap};
use crate::format::index::{Extent, PackIndex, ShardRecord};
use crate::format::lz4_blocks;
use crate::profile::Flavour;
use crate::sha_pair::{Sha256Stream, update_pair};
use crate::strip::{self, Rows, STRIP};
use std::ops::Range;
use tensilo_core::io::ByteSource;
use tensilo_core::limits::Charge;
use tensilo_core::{Budget, Error, Result};

/// A shard whose payload and headers passed every check; the values stay packed.
///
/// What is stored of an excluded pixel is nothing (0) in bit-packed flavours and the raw value in an LZ4 pack.
#[derive(Debug)]
pub struct Shard {
    map: TileMap,
    /// Packed values and [`SLACK`] bytes.
    payload: Vec<u8>,
    header_sha256: Sha256Sum,
    /// Are all tiles of 32 scans and at most 8 bits?
    narrow: bool,
    /// Scans of a tile.
    tile: usize,
    scans: usize,
    bytes: u64,
    _charges: [Charge; 2],
}

impl Shard {
    /// Reads a shard by position and checks it.
    ///
    /// # Errors
    /// `Corrupt` when the payload's SHA-256, an LZ4 block or a header is wrong, `Limit`, `Missing`, `Io`.
    pub fn load(source: &dyn ByteSource, index: &PackIndex, ordinal: usize, budget: &Budget) -> Result<Self> {
        let load = || Self::load_unnamed(source, index, ordinal, budget);
        load().map_err(|e| e.in_object(format!("/quantem_gpu/shards/{ordinal:03}")))
    }

    fn load_unnamed(
        source: &dyn ByteSource,
        index: &PackIndex,
        ordinal: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let record = index
            .shards
            .get(ordinal)
            .ok_or_else(|| Error::invalid(format!("no shard {ordinal}; there are {}", index.shards.len())))?;
        let lz4 = index.flavour == Flavour::Lz4;
        let (mut payload, payload_charge) =
            budget.buffer(record.decoded_bytes + SLACK as u64, "payload of a shard")?;
        let decoded = record.decoded_bytes as usize;
        // Widths and bases stay; the header itself goes.
        let map_bytes = header::map_bytes(index.geometry.pixels(), index.cut.tiles().into());
        let map_charge = budget.bytes(map_bytes, "headers of a shard")?;
        let (mut header_bytes, _header_charge) = budget.buffer(record.header.bytes, "headers of a shard")?;
        let header_sha256;
        let map = if lz4 {
            let (mut packed, _packed) = budget.buffer(record.payload.bytes, "LZ4 payload of a shard")?;
            let (mut lengths, _lengths) = budget.buffer(record.lengths.bytes, "LZ4 lengths of a shard")?;
            read(
                source,
                &mut [
                    (record.payload, &mut packed),
                    (record.lengths, &mut lengths),
                    (record.header, &mut header_bytes),
                ],
            )?;
            lz4_blocks::decode(&packed, &lengths, &mut payload[..decoded])
                .map_err(|e| e.at(record.payload.offset))?;
            header_sha256 = check_sums(&payload[..decoded], &header_bytes, record)?;
            let words = record.decoded_bytes / 4;
            TileMap::from_width_bytes(header_bytes, index.geometry.pixels(), &index.cut, words)
        } else {
            read(
                source,
                &mut [(record.payload, &mut payload[..decoded]), (record.header, &mut header_bytes)],
            )?;
            header_sha256 = check_sums(&payload[..decoded], &header_bytes, record)?;
            let _words_charge = budget.bytes(record.header.bytes, "headers of a shard")?;
            let words: Vec<u32> =
                header_bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
            TileMap::from_compact(
                &words,
                index.geometry.pixels(),
                &index.cut,
                index.flavour,
                &index.excluded,
                record.decoded_bytes / 4,
            )
        };
        let map = map.map_err(|e| e.at(record.header.offset))?;
        if map.covered_words() == 0 && payload.iter().any(|b| *b != 0) {
            return Err(Error::corrupt("a shard without values has a payload word that is not zero")
                .at(record.payload.offset));
        }
        Ok(Self {
            map,
            bytes: payload.len() as u64 + map_bytes,
            payload,
            header_sha256,
            narrow: index.flavour == Flavour::BitPacked8,
            tile: index.cut.tile as usize,
            scans: index.cut.scans_per_shard as usize,
            _charges: [payload_charge, map_charge],
        })
    }

    /// Scans of the shard.
    pub fn scans(&self) -> usize {
        self.scans
    }

    /// Bytes it takes in memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the tiles lie.
    pub fn tiles(&self) -> &TileMap {
        &self.map
    }

    /// SHA-256 of the compact headers, or of the width bytes.
    pub fn header_sha256(&self) -> Sha256Sum {
        self.header_sha256
    }

    /// The largest value that the widths of a pixel's tiles allow.
    pub fn most_of(&self, pixel: usize) -> u16 {
        ((1_u32 << self.map.widest_of(pixel)) - 1) as u16
    }

    fn packed(&self, word: u64) -> &[u8] {
        self.payload.get(word as usize * 4..).unwrap_or(&[])
    }

    /// The stored value of a pixel in the shard's scan `scan`.
    ///
    /// # Panics
    /// When the shard has no such pixel or scan.
    pub fn value(&self, pixel: usize, scan: usize) -> u16 {
        let (word, width) = self.map.tile(pixel, scan / self.tile);
        unpack::value(self.packed(word), width, scan % self.tile)
    }

    /// Unpacks the stored values of a pixel in all scans of the shard.
    ///
    /// # Panics
    /// When the shard has no such pixel or `out` is not one value for each scan.
    pub fn unpack_pixel(&self, pixel: usize, out: &mut [u16]) {
        assert_eq!(out.len(), self.scans, "one value for each scan of the shard");
        let mut rest = self.packed(self.map.base(pixel));
        for (tile, width) in out.chunks_exact_mut(self.tile).zip(self.map.widths(pixel)) {
            for group in tile.as_chunks_mut::<GROUP>().0 {
                unpack::group(rest, (*width).into(), group);
                rest = rest.get(4 * usize::from(*width)..).unwrap_or(&[]);
            }
        }
    }

    /// Unpacks the stored values of a pixel in the 32 scans from `32 * group` on.
    pub(crate) fn unpack_group(&self, pixel: usize, group: usize, out: &mut [u16; GROUP]) {
        let groups = self.tile / GROUP;
        let (word, width) = self.map.tile(pixel, group / groups);
        unpack::group(self.packed(word + (group % groups) as u64 * u64::from(width)), width, out);
    }

    /// Are all tiles of 32 scans and at most 8 bits, so that [`strip`](Self::strip) reads them?
    pub(crate) fn is_narrow(&self) -> bool {
        self.narrow
    }

    /// Unpacks the stored values of `n` pixels (at most 64) from `at` on, in the 32 scans from `32 * group` on, of a shard
    /// that is narrow.
    pub(crate) fn strip(&self, at: usize, n: usize, group: usize) -> Rows {
        let (mut starts, mut widths) = ([0; STRIP], [0; STRIP]);
        for (k, (start, width)) in starts.iter_mut().zip(&mut widths).take(n).enumerate() {
            let (word, w) = self.map.tile(at + k, group);
            (*start, *width) = (4 * word as usize, w as u8);
        }
        strip::unpack(&self.payload, &starts[..n.min(STRIP)], &widths[..n.min(STRIP)])
    }

    /// Gathers the stored frame of the shard's scan `scan`.
    ///
    /// # Panics
    /// When the shard has no such scan.
    pub fn frame_into(&self, scan: usize, out: &mut [u16]) {
        for (pixel, to) in out.iter_mut().enumerate() {
            *to = self.value(pixel, scan);
        }
    }
}

/// Checks the payload's hash, and returns that of the headers; the two take the time of one.
fn check_sums(payload: &[u8], header: &[u8], record: &ShardRecord) -> Result<Sha256Sum> {
    let (mut of_payload, mut of_header) = (Sha256Stream::new(), Sha256Stream::new());
    update_pair(&mut of_payload, payload, &mut of_header, header);
    let (found, stated) = (of_payload.finish(), record.payload_sha256);
    if found != stated {
        return Err(Error::corrupt(format!("the payload's SHA-256 is {found}, the index states {stated}"))
            .at(record.payload.offset));
    }
    Ok(of_header.finish())
}

fn read(source: &dyn ByteSource, parts: &mut [(Extent, &mut [u8])]) -> Result<()> {
    let mut ranges: Vec<(u64, &mut [u8])> = parts.iter_mut().map(|(e, b)| (e.offset, &mut **b)).collect();
    source.read_ranges(&mut ranges)
}

/// Shard and scan inside it.
pub(crate) fn place(scan: u64, scans_per_shard: u32) -> (usize, usize) {
    let s = u64::from(scans_per_shard);
    ((scan / s) as usize, (scan % s) as usize)
}

/// The scans of one 32-group after another that lie in a list of ascending scans: (shard, group, positions in the list).
pub(crate) fn groups(scans: &[u64], scans_per_shard: u32) -> Vec<(usize, usize, Range<usize>)> {
    let mut all: Vec<(usize, usize, Range<usize>)> = Vec::new();
    for (at, scan) in scans.iter().enumerate() {
        let (shard, local) = place(*scan, scans_per_shard);
        match all.last_mut() {
            Some((s, g, range)) if (*s, *g) == (shard, local / GROUP) => range.end = at + 1,
            _ => all.push((shard, local / GROUP, at..at + 1)),
        }
    }
    all
}
