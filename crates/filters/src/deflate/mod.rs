//! Filter 1, deflate: one zlib stream per chunk. Client value 0 is the level, 0 to 9.
//!
//! Bytes behind the end of the stream are ignored, as libhdf5 ignores them.

mod encode;
mod inflate;
mod pair;
mod tables;

use crate::filter::{Decoded, Encoded, Filter};
use crate::simd::adler::{self, adler32};
use crate::{ChunkInfo, Codecs, id, simd};
use tensilo_core::Result;

pub use encode::Deflater;

/// The deflate filter.
#[derive(Debug)]
pub struct Deflate;

/// A one-shot inflater: what it keeps between streams is worth keeping.
///
/// ```
/// use tensilo_filters::deflate::Inflate;
/// // RFC 1951, section 3.2.4: the last block, stored, 2 bytes.
/// let stream = [1, 2, 0, 0xfd, 0xff, b'h', b'i'];
/// let mut text = [0; 2];
/// assert_eq!(Inflate::default().raw(&stream, &mut text)?, 2);
/// assert_eq!(&text, b"hi");
/// # Ok::<(), tensilo_core::Error>(())
/// ```
#[derive(Default)]
pub struct Inflate {
    tables: Box<tables::Tables>,
    /// Those of the second of two streams.
    second: Option<Box<tables::Tables>>,
}

impl std::fmt::Debug for Inflate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflate").finish_non_exhaustive()
    }
}

impl Inflate {
    /// Streams of fewer bytes of data are decoded as fast alone as [two at a time](Self::raw_pair).
    pub const WORTH_TWO: u64 = 2 << 10;

    /// Decodes one raw deflate stream (RFC 1951, no wrapper) into the start of `dst` and says how many bytes it held.
    /// Bytes of `src` behind the stream are ignored, bytes of `dst` behind the data may be overwritten.
    ///
    /// # Errors
    /// `Corrupt` when the stream is damaged, does not end, or holds more than `dst`.
    pub fn raw(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize> {
        inflate::raw(&mut self.tables, src, dst)
    }

    /// Decodes two streams, each as [`raw`](Self::raw) does, in less time than one after the other: the processor goes on
    /// with one where it would wait for the other. What happens to one changes nothing of the other.
    ///
    /// ```
    /// use tensilo_filters::deflate::{Deflater, Inflate};
    /// let (mut sevens, mut eights) = (Vec::new(), Vec::new());
    /// Deflater::default().raw(1, &[7; 1000], &mut sevens)?;
    /// Deflater::default().raw(1, &[8; 1500], &mut eights)?;
    /// let (mut a, mut b) = ([0; 1000], [0; 1500]);
    /// let [of_a, of_b] = Inflate::default().raw_pair((&sevens, &mut a), (&eights, &mut b));
    /// assert_eq!((of_a?, of_b?), (1000, 1500));
    /// assert!(a == [7; 1000] && b == [8; 1500]);
    /// # Ok::<(), tensilo_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Each as those of [`raw`](Self::raw).
    pub fn raw_pair(&mut self, a: (&[u8], &mut [u8]), b: (&[u8], &mut [u8])) -> [Result<usize>; 2] {
        pair::raw([&mut self.tables, self.second.get_or_insert_default()], a, b)
    }
}

impl Filter for Deflate {
    fn id(&self) -> u16 {
        id::DEFLATE
    }

    fn name(&self) -> &str {
        "deflate"
    }

    fn most_encoded(&self, _values: &[u32], raw: usize) -> usize {
        // Other encoders' fastest levels write incompressible bytes as 9-bit codes.
        raw.saturating_add(raw / 8).saturating_add(64)
    }

    fn decode(&self, _values: &[u32], codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<Decoded> {
        inflate_zlib(codecs, src, dst).map(Decoded::Written)
    }

    fn encode(
        &self,
        values: &[u32],
        _info: &ChunkInfo,
        codecs: &mut Codecs,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let level = values.first().copied().unwrap_or(6);
        deflate_zlib(codecs, level, src, dst)?;
        Ok(Encoded::Written)
    }
}

/// Decodes one zlib stream into the start of `dst` and says how many bytes it held.
pub(crate) fn inflate_zlib(codecs: &mut Codecs, src: &[u8], dst: &mut [u8]) -> Result<usize> {
    inflate::zlib(&mut codecs.inflate.get_or_insert_default().tables, src, dst)
}

/// Encodes one zlib stream, appended to `dst`.
pub(crate) fn deflate_zlib(codecs: &mut Codecs, level: u32, src: &[u8], dst: &mut Vec<u8>) -> Result<()> {
    // RFC 1950, section 2.2: deflate with a window of 32 KiB, about how hard the encoder tried, and a check.
    let flags = match level {
        0 | 1 => 0x01,
        2..6 => 0x5e,
        6 => 0x9c,
        _ => 0xda,
    };
    dst.extend_from_slice(&[0x78, flags]);
    codecs.deflate.get_or_insert_default().raw(level, src, dst)?;
    dst.extend_from_slice(&adler32(simd::level(), adler::EMPTY, src).to_be_bytes());
    Ok(())
}
