//! An open pack: prelude, manifest and index checked, shards read by position.

use crate::digest::Sha256Sum;
use crate::format::header::TileMap;
use crate::format::index::{Extent, PackIndex};
use crate::format::lz4_blocks;
use crate::format::manifest::Manifest;
use crate::format::prelude::{PRELUDE_BYTES, Prelude};
use crate::profile::Flavour;
use crate::sha_pair::{Sha256Stream, update_pair};
use std::path::Path;
use std::sync::Arc;
use tensilo_core::io::{ByteSource, FileSource};
use tensilo_core::limits::Charge;
use tensilo_core::{Budget, Error, Limits, Result};

/// A pack's file, with everything but its shards read and checked.
#[derive(Debug, Clone)]
pub struct Container(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Arc<dyn ByteSource>,
    budget: Budget,
    prelude: Prelude,
    manifest_sha256: Sha256Sum,
    manifest: Manifest,
    index: PackIndex,
}

/// One shard in memory, checked: payload words and where each tile lies in them.
#[derive(Debug)]
pub struct Shard {
    words: Vec<u32>,
    map: TileMap,
    sums: ShardSums,
    _charge: Charge,
}

/// Hashes of what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardSums {
    /// Of the (decoded) payload words.
    pub payload: Sha256Sum,
    /// Of the compact headers, or the width bytes.
    pub header: Sha256Sum,
    /// Of the payload as stored; differs from `payload` only where it is compressed.
    pub stored: Sha256Sum,
}

impl Container {
    /// Opens a pack file.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `Corrupt` or `Unsupported` when it is not a pack that agrees with itself.
    pub fn open(path: &Path, limits: Limits) -> Result<Self> {
        Self::from_source(Arc::new(FileSource::open(path)?), limits).map_err(|e| e.in_file(path))
    }

    /// Opens a pack of any byte source.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(source: Arc<dyn ByteSource>, limits: Limits) -> Result<Self> {
        let budget = Budget::new(limits);
        let file_bytes = source.len();
        let mut head = [0; PRELUDE_BYTES as usize];
        let n = file_bytes.min(PRELUDE_BYTES) as usize;
        source.read_at(0, &mut head[..n])?;
        let prelude = Prelude::parse(&head[..n], file_bytes)?;
        // Both lie in the file, so nothing larger than it is allocated.
        let (mut text, _text) = budget.buffer(prelude.manifest_bytes.into(), "the manifest")?;
        source.read_at(PRELUDE_BYTES, &mut text)?;
        let crc = crc32fast::hash(&text);
        if crc != prelude.manifest_crc {
            return Err(Error::corrupt(format!(
                "the manifest's CRC-32 is {crc:08x}, {:08x} is expected",
                prelude.manifest_crc
            ))
            .at(PRELUDE_BYTES));
        }
        let (mut bytes, _bytes) = budget.buffer(prelude.index_bytes.into(), "the index")?;
        source.read_at(prelude.index_offset.into(), &mut bytes)?;
        let index = PackIndex::parse(&bytes, prelude.index_offset.into(), file_bytes)?;
        let manifest = Manifest::parse(&text, &index)?;
        let manifest_sha256 = Sha256Sum::of(&text);
        Ok(Self(Arc::new(Inner { source, budget, prelude, manifest_sha256, manifest, index })))
    }

    /// The index.
    pub fn index(&self) -> &PackIndex {
        &self.0.index
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// Hash of the manifest's text.
    pub fn manifest_sha256(&self) -> Sha256Sum {
        self.0.manifest_sha256
    }

    /// The prelude.
    pub fn prelude(&self) -> &Prelude {
        &self.0.prelude
    }

    /// The bytes.
    pub fn source(&self) -> &Arc<dyn ByteSource> {
        &self.0.source
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.0.source.len()
    }

    /// The path, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.source.path()
    }

    /// Memory that shards are charged to.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Reads a shard and checks it: payload hash, headers, exact cover.
    ///
    /// # Errors
    /// `Corrupt`, naming the shard; `Limit`, `Io`.
    pub fn shard(&self, ordinal: usize) -> Result<Shard> {
        self.load(ordinal).map_err(|e| {
            let e = e.context(format_args!("shard {ordinal}"));
            match self.path() {
                Some(path) => e.in_file(path),
                None => e,
            }
        })
    }

    fn load(&self, ordinal: usize) -> Result<Shard> {
        let index = self.index();
        let record = index.shards.get(ordinal).ok_or_else(|| Error::invalid("there is no such shard"))?;
        let map_bytes = index.geometry.pixels() * (u64::from(index.cut.tiles()) + 4);
        let charge = self.0.budget.bytes(record.decoded_bytes + map_bytes, "a shard's payload")?;
        let mut words = zeroed_words(record.decoded_bytes / 4)?;
        let (header, _header) = self.read(record.header, "a shard's header")?;
        let bytes = bytemuck::cast_slice_mut::<u32, u8>(&mut words);
        let (mut payload_sum, mut header_sum) = (Sha256Stream::new(), Sha256Stream::new());
        let mut stored_sum = None;
        if index.flavour == Flavour::Lz4 {
            let (stored, _stored) = self.read(record.payload, "a shard's compressed payload")?;
            let (lengths, _lengths) = self.read(record.lengths, "a shard's block lengths")?;
            lz4_blocks::decode(&stored, &lengths, bytes).map_err(|e| e.at(record.payload.offset))?;
            let mut sum = Sha256Stream::new();
            update_pair(&mut payload_sum, bytes, &mut sum, &stored);
            stored_sum = Some(sum.finish());
            header_sum.update(&header);
        } else {
            self.0.source.read_at(record.payload.offset, bytes)?;
            update_pair(&mut payload_sum, bytes, &mut header_sum, &header);
        }
        let (payload, header_sum) = (payload_sum.finish(), header_sum.finish());
        if payload != record.payload_sha256 {
            return Err(Error::corrupt(format!(
                "the payload's SHA-256 is {payload}, {} is expected",
                record.payload_sha256
            ))
            .at(record.payload.offset));
        }
        if cfg!(target_endian = "big") {
            words.iter_mut().for_each(|w| *w = u32::from_le(*w));
        }
        let (pixels, count) = (index.geometry.pixels(), words.len() as u64);
        let map = if index.flavour == Flavour::Lz4 {
            TileMap::from_width_bytes(header, pixels, &index.cut, count)
        } else {
            let header: Vec<u32> =
                header.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
            TileMap::from_compact(&header, pixels, &index.cut, index.flavour, &index.excluded, count)
        };
        let map = map.map_err(|e| e.at(record.header.offset))?;
        if map.covered_words() == 0 && words.iter().any(|w| *w != 0) {
            return Err(Error::corrupt("a shard without values has a payload word that is not zero")
                .at(record.payload.offset));
        }
        let sums = ShardSums { payload, header: header_sum, stored: stored_sum.unwrap_or(payload) };
        Ok(Shard { words, map, sums, _charge: charge })
    }

    fn read(&self, extent: Extent, what: &str) -> Result<(Vec<u8>, Charge)> {
        let (mut bytes, charge) = self.0.budget.buffer(extent.bytes, what)?;
        self.0.source.read_at(extent.offset, &mut bytes)?;
        Ok((bytes, charge))
    }
}

fn zeroed_words(n: u64) -> Result<Vec<u32>> {
    let n = usize::try_from(n).map_err(|_| Error::limit("a shard does not fit in memory"))?;
    let mut words = Vec::new();
    words.try_reserve_exact(n).map_err(|_| Error::limit(format!("no memory for a shard of {n} words")))?;
    words.resize(n, 0);
    Ok(words)
}

impl Shard {
    /// The payload words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Where each tile lies.
    pub fn map(&self) -> &TileMap {
        &self.map
    }

    /// Hashes of what is stored.
    pub fn sums(&self) -> ShardSums {
        self.sums
    }

    /// The words of one tile, and its width.
    pub fn tile(&self, pixel: usize, tile: usize) -> (&[u32], u32) {
        let (start, width) = self.map.tile(pixel, tile);
        let start = start as usize;
        (&self.words[start..start + self.map.words_of(width) as usize], width)
    }
}
