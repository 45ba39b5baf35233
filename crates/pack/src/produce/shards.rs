//! Shards into the HDF5 body: payload first, then what describes it (contract, 2.4 and 3).

use super::gather::Described;
use crate::digest::Sha256Sum;
use crate::format::header::{HeaderBuilder, MOST_WORDS};
use crate::format::index::{Extent, ShardRecord};
use crate::format::lz4_blocks;
use crate::geometry::Cut;
use crate::le;
use crate::profile::Profile;
use crate::sha_pair::Sha256Stream;
use crate::writer::shard_group;
use tensilo_core::{Error, Result};
use tensilo_hdf5::write::FileWriter;

/// What the manifest and the receipt state of a shard beyond its index record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShardFacts {
    pub header_sha256: Sha256Sum,
    /// Of the payload as stored.
    pub stored_sha256: Sha256Sum,
    pub widest: u32,
}

/// Hands the pieces of a shard's payload, in order, to the closure it is given, and enters the widths.
pub(crate) type Pieces<'p> =
    &'p mut dyn FnMut(&mut Described<'_>, &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

/// Writes shard after shard.
pub(crate) struct Shards<'w, 'f> {
    pub writer: &'w mut FileWriter<'f>,
    pub profile: Profile,
    pub pixels: usize,
    pub cut: Cut,
    pub records: Vec<ShardRecord>,
    pub facts: Vec<ShardFacts>,
}

impl Shards<'_, '_> {
    /// Writes the next shard of `words` payload words; returns what of the file is still to be hashed, for
    /// [`enter_sums`](Self::enter_sums).
    ///
    /// # Errors
    /// `Limit` for more than 2^27 words; errors of the disk and of `pieces`.
    pub fn append(&mut self, words: u64, widest: u32, pieces: Pieces<'_>) -> Result<Vec<Extent>> {
        if words > MOST_WORDS {
            return Err(Error::limit(format!(
                "shard {} needs {words} payload words, readers take 2^27",
                self.records.len()
            )));
        }
        match self.profile {
            Profile::ExactUint8BitPacked => self.bit_packed(words, widest, pieces),
            Profile::ExactUint16Lz4 => self.lz4(words, widest, pieces),
        }
    }

    fn bit_packed(&mut self, words: u64, widest: u32, pieces: Pieces<'_>) -> Result<Vec<Extent>> {
        let group = shard_group(self.records.len());
        let mut header = vec![0_u32; self.pixels * self.cut.header_words() as usize];
        let mut described = Described::Compact(&mut header, HeaderBuilder::new(&self.cut));
        // HDF5 and readers need a payload that is not empty: a shard without values has one zero word.
        let stored_words = words.max(1);
        let mut payload = self
            .writer
            .dataset(format!("{group}/payload_u32"))
            .element::<u32>()
            .shape(&[stored_words])
            .contiguous_writer()?;
        let offset = payload.offset().unwrap_or(0);
        pieces(&mut described, &mut |bytes| payload.write(bytes))?;
        if words == 0 {
            payload.write(&[0; 4])?;
        }
        payload.finish()?;
        let bytes = le::bytes_of_u32(&header);
        let mut headers = self
            .writer
            .dataset(format!("{group}/compact_headers_u32"))
            .element::<u32>()
            .shape(&[header.len() as u64])
            .contiguous_writer()?;
        let header_offset = headers.offset().unwrap_or(0);
        headers.write(&bytes)?;
        headers.finish()?;
        self.writer.flush()?;
        let payload = Extent { offset, bytes: 4 * stored_words };
        let in_header = Extent { offset: header_offset, bytes: bytes.len() as u64 };
        // The hashes come later.
        let unknown = Sha256Sum([0; 32]);
        self.records.push(ShardRecord {
            payload,
            lengths: Extent::default(),
            header: in_header,
            decoded_bytes: 4 * stored_words,
            header_items: header.len() as u32,
            chunks: 0,
            payload_sha256: unknown,
        });
        self.facts.push(ShardFacts { header_sha256: unknown, stored_sha256: unknown, widest });
        Ok(vec![payload, in_header])
    }

    /// Enters the hashes of what the appends returned, in order.
    pub fn enter_sums(&mut self, sums: &[Sha256Sum]) {
        for ((record, facts), pair) in self.records.iter_mut().zip(&mut self.facts).zip(sums.chunks_exact(2))
        {
            record.payload_sha256 = pair[0];
            (facts.stored_sha256, facts.header_sha256) = (pair[0], pair[1]);
        }
    }

    fn lz4(&mut self, words: u64, widest: u32, pieces: Pieces<'_>) -> Result<Vec<Extent>> {
        let group = shard_group(self.records.len());
        let mut widths = vec![0; self.pixels * self.cut.tiles() as usize];
        let mut described = Described::Widths(&mut widths);
        let (mut sum, mut blocks) = (Sha256Stream::new(), Blocks::default());
        pieces(&mut described, &mut |bytes| {
            sum.update(bytes);
            blocks.push(bytes)
        })?;
        if words == 0 {
            sum.update(&[0; 4]);
            blocks.push(&[0; 4])?;
        }
        blocks.end()?;
        let mut place = |name: &str, bytes: &[u8]| -> Result<Extent> {
            let dataset = self.writer.dataset(format!("{group}/{name}")).element::<u8>();
            let mut written = dataset.shape(&[bytes.len() as u64]).contiguous_writer()?;
            let offset = written.offset().unwrap_or(0);
            written.write(bytes)?;
            written.finish()?;
            Ok(Extent { offset, bytes: bytes.len() as u64 })
        };
        let payload = place("payload_lz4", &blocks.compressed)?;
        let lengths = place("payload_lengths_minus_one", &blocks.lengths)?;
        let header = place("descriptor_widths_u8", &widths)?;
        self.records.push(ShardRecord {
            payload,
            lengths,
            header,
            decoded_bytes: 4 * words.max(1),
            header_items: widths.len() as u32,
            chunks: blocks.lengths.len() as u32,
            payload_sha256: sum.finish(),
        });
        self.facts.push(ShardFacts {
            header_sha256: Sha256Sum::of(&widths),
            stored_sha256: Sha256Sum::of(&blocks.compressed),
            widest,
        });
        Ok(Vec::new())
    }
}

/// Compresses payload bytes in blocks of 128.
#[derive(Default)]
struct Blocks {
    rest: Vec<u8>,
    compressed: Vec<u8>,
    lengths: Vec<u8>,
}

impl Blocks {
    fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        if !self.rest.is_empty() {
            let take = bytes.len().min(128 - self.rest.len());
            self.rest.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if self.rest.len() < 128 {
                return Ok(());
            }
            lz4_blocks::encode(&self.rest, &mut self.compressed, &mut self.lengths)?;
            self.rest.clear();
        }
        let whole = bytes.len() / 128 * 128;
        lz4_blocks::encode(&bytes[..whole], &mut self.compressed, &mut self.lengths)?;
        self.rest.extend_from_slice(&bytes[whole..]);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        lz4_blocks::encode(&self.rest, &mut self.compressed, &mut self.lengths)?;
        self.rest.clear();
        Ok(())
    }
}
