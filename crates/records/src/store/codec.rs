//! Cells to stored bytes and back: raw, deflate (a raw deflate stream), Zstandard frames and LZ4 blocks, with shuffle or
//! bitshuffle ahead.

use super::entry::{Ahead, Entry, INLINE, Stored};
use std::sync::{Arc, Mutex};
use tensilo_core::{Error, Result};
use tensilo_filters::deflate::{Deflater, Inflate};
use tensilo_filters::{bitshuffle, lz4, shuffle};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::compress_bound;

/// How cells are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Codec {
    /// Not at all.
    #[default]
    Raw,
    /// Deflate at a level from 0 to 9. Level 1 is for speed: it looks for long copies only, and stores what has none.
    Deflate(u32),
    /// Zstandard at a level from -7 to 22.
    Zstd(i32),
    /// LZ4.
    Lz4,
}

/// How the cells of a field are stored. A cell that would not become smaller is stored raw, one of at most 8 bytes in
/// the record table.
///
/// ```
/// use tensilo_records::store::{Ahead, Codec, Encoding};
/// assert_eq!("bitshuffle+zstd:5".parse(), Ok(Encoding::new(Codec::Zstd(5), Ahead::Bitshuffle)));
/// assert_eq!("lz4".parse::<Encoding>().map(|e| e.to_string()), Ok("lz4".to_owned()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Encoding {
    /// The compressor.
    pub codec: Codec,
    /// What is done to the elements before.
    pub ahead: Ahead,
    /// The dictionary for Zstandard, counted from 1; 0 for none.
    pub dictionary: u8,
}

/// A text that names no encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEncoding(String);

impl std::fmt::Display for UnknownEncoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?} is no codec; known are raw, deflate[:0-9], zstd[:-7 to 22] and lz4, each with shuffle+ or bitshuffle+ ahead",
            self.0
        )
    }
}

impl std::error::Error for UnknownEncoding {}

impl From<UnknownEncoding> for Error {
    fn from(e: UnknownEncoding) -> Self {
        Self::invalid(e.to_string())
    }
}

impl Encoding {
    /// Without a dictionary.
    pub fn new(codec: Codec, ahead: Ahead) -> Self {
        Self { codec, ahead, dictionary: 0 }
    }

    /// Stored as they are.
    pub const RAW: Self = Self { codec: Codec::Raw, ahead: Ahead::None, dictionary: 0 };

    /// Checks levels.
    pub(crate) fn check(&self) -> Result<()> {
        match self.codec {
            Codec::Deflate(level) if level > 9 => {
                Err(Error::invalid(format!("deflate level {level} is not between 0 and 9")))
            }
            Codec::Zstd(level) if !(-7..=22).contains(&level) => {
                Err(Error::invalid(format!("Zstandard level {level} is not between -7 and 22")))
            }
            Codec::Raw if self.ahead != Ahead::None => {
                Err(Error::invalid("shuffling without a compressor makes nothing smaller"))
            }
            codec if self.dictionary != 0 && !matches!(codec, Codec::Zstd(_)) => {
                Err(Error::invalid("a dictionary goes with Zstandard only"))
            }
            _ => Ok(()),
        }
    }
}

impl std::str::FromStr for Encoding {
    type Err = UnknownEncoding;

    /// Reads `raw`, `deflate`, `zstd`, `lz4`, with `:level` behind and `shuffle+` or `bitshuffle+` ahead.
    fn from_str(text: &str) -> Result<Self, UnknownEncoding> {
        let unknown = || UnknownEncoding(text.to_owned());
        let (ahead, rest) = match text.split_once('+') {
            None => (Ahead::None, text),
            Some(("shuffle", rest)) => (Ahead::Shuffle, rest),
            Some(("bitshuffle", rest)) => (Ahead::Bitshuffle, rest),
            Some(_) => return Err(unknown()),
        };
        let (name, level) = rest.split_once(':').map_or((rest, None), |(n, l)| (n, Some(l)));
        let codec = match (name, level) {
            ("raw", None) => Codec::Raw,
            ("lz4", None) => Codec::Lz4,
            ("deflate", level) => Codec::Deflate(level.unwrap_or("1").parse().map_err(|_| unknown())?),
            ("zstd", level) => Codec::Zstd(level.unwrap_or("1").parse().map_err(|_| unknown())?),
            _ => return Err(unknown()),
        };
        let encoding = Self::new(codec, ahead);
        encoding.check().map_err(|_| unknown())?;
        Ok(encoding)
    }
}

impl std::fmt::Display for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.ahead {
            Ahead::None => "",
            Ahead::Shuffle => "shuffle+",
            Ahead::Bitshuffle => "bitshuffle+",
        })?;
        match self.codec {
            Codec::Raw => f.write_str("raw"),
            Codec::Deflate(level) => write!(f, "deflate:{level}"),
            Codec::Zstd(level) => write!(f, "zstd:{level}"),
            Codec::Lz4 => f.write_str("lz4"),
        }
    }
}

/// Codec states and buffers of one thread.
#[derive(Default)]
pub(crate) struct Codecs {
    inflate: Inflate,
    deflate: Option<Deflater>,
    unzstd: Vec<Option<Decompressor<'static>>>,
    zstd: Option<(i32, u8, Compressor<'static>)>,
    /// Elements shuffled, before they are compressed or after they were decompressed.
    shuffled: Vec<u8>,
    /// Stored bytes that no map lends.
    pub stored: Vec<u8>,
}

impl std::fmt::Debug for Codecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Codecs").finish_non_exhaustive()
    }
}

/// The first `len` bytes of a buffer that only grows.
pub(crate) fn sized(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// The dictionaries of a store.
pub(crate) type Dictionaries = [Arc<[u8]>];

fn dictionary(dictionaries: &Dictionaries, number: u8) -> Result<&[u8]> {
    match number.checked_sub(1) {
        None => Ok(&[]),
        Some(i) => dictionaries
            .get(usize::from(i))
            .map(|d| &**d)
            .ok_or_else(|| Error::corrupt(format!("there is no dictionary {number}"))),
    }
}

fn filled(n: usize, len: usize) -> Result<()> {
    if n == len { Ok(()) } else { Err(Error::corrupt(format!("the cell decodes to {n} bytes, not {len}"))) }
}

impl Codecs {
    /// Decodes a cell that is not inline into its place, which has the cell's length.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn decode(
        &mut self,
        entry: &Entry,
        stored: &[u8],
        element: usize,
        dictionaries: &Dictionaries,
        out: &mut [u8],
    ) -> Result<()> {
        if entry.codec == Stored::Raw {
            out.copy_from_slice(stored);
            return Ok(());
        }
        if entry.ahead == Ahead::None {
            return self.decompress(entry, stored, dictionaries, out);
        }
        if element == 0 || !out.len().is_multiple_of(element) {
            return Err(Error::corrupt(format!("{} bytes are no elements of {element}", out.len())));
        }
        let mut shuffled = std::mem::take(&mut self.shuffled);
        let bytes = sized(&mut shuffled, out.len());
        let done = self.decompress(entry, stored, dictionaries, bytes).and_then(|()| match entry.ahead {
            Ahead::Bitshuffle => bitshuffle::unshuffle(bytes, out, element, 0),
            _ => {
                shuffle::unshuffle(bytes, out, element);
                Ok(())
            }
        });
        self.shuffled = shuffled;
        done
    }

    fn decompress(
        &mut self,
        entry: &Entry,
        src: &[u8],
        dictionaries: &Dictionaries,
        out: &mut [u8],
    ) -> Result<()> {
        let n = match entry.codec {
            Stored::Deflate => self.inflate.raw(src, out)?,
            Stored::Lz4 => lz4::decode_block(src, out)?,
            Stored::Zstd => {
                let number = usize::from(entry.dictionary);
                if self.unzstd.len() <= number {
                    self.unzstd.resize_with(number + 1, || None);
                }
                let slot = &mut self.unzstd[number];
                let context = match slot {
                    Some(context) => context,
                    None => {
                        let dictionary = dictionary(dictionaries, entry.dictionary)?;
                        let made = Decompressor::with_dictionary(dictionary);
                        slot.insert(made.map_err(|e| Error::io("a Zstandard context", e))?)
                    }
                };
                context
                    .decompress_to_buffer(src, out)
                    .map_err(|e| Error::corrupt(format!("damaged Zstandard frame: {e}")).with_source(e))?
            }
            Stored::Raw | Stored::Inline => return Err(Error::invalid("nothing to decompress")),
        };
        filled(n, out.len())
    }

    /// Decodes two deflated cells, with nothing ahead, in less time than one after the other; otherwise as
    /// [`decode`](Self::decode) does.
    pub fn inflate_two(&mut self, a: (&[u8], &mut [u8]), b: (&[u8], &mut [u8])) -> [Result<()>; 2] {
        let (room_a, room_b) = (a.1.len(), b.1.len());
        let [of_a, of_b] = self.inflate.raw_pair(a, b);
        [of_a.and_then(|n| filled(n, room_a)), of_b.and_then(|n| filled(n, room_b))]
    }

    /// Encodes a cell, appending its stored bytes to `out`; the entry's offset is where they begin in `out`.
    ///
    /// # Errors
    /// `InvalidArgument` for levels that do not exist.
    pub fn encode(
        &mut self,
        encoding: &Encoding,
        src: &[u8],
        element: usize,
        dictionaries: &Dictionaries,
        out: &mut Vec<u8>,
    ) -> Result<Entry> {
        let start = out.len();
        if src.len() <= INLINE {
            return Ok(Entry::of_inline(src));
        }
        let mut entry = Entry {
            offset: start as u64,
            stored: src.len() as u64,
            raw: src.len() as u64,
            codec: Stored::Raw,
            ahead: Ahead::None,
            dictionary: 0,
            crc: 0,
        };
        if encoding.codec != Codec::Raw {
            let mut shuffled = std::mem::take(&mut self.shuffled);
            let bytes = match encoding.ahead {
                Ahead::None => src,
                ahead => {
                    let bytes = sized(&mut shuffled, src.len());
                    match ahead {
                        Ahead::Bitshuffle => bitshuffle::shuffle(src, bytes, element, 0)?,
                        _ => shuffle::shuffle(src, bytes, element),
                    }
                    bytes
                }
            };
            let done = self.compress(encoding, bytes, dictionaries, out);
            self.shuffled = shuffled;
            done?;
            if out.len() - start < src.len() {
                entry.stored = (out.len() - start) as u64;
                entry.ahead = encoding.ahead;
                entry.codec = match encoding.codec {
                    Codec::Deflate(_) => Stored::Deflate,
                    Codec::Zstd(_) => Stored::Zstd,
                    _ => Stored::Lz4,
                };
                entry.dictionary = if entry.codec == Stored::Zstd { encoding.dictionary } else { 0 };
                entry.crc = crc32c::crc32c(&out[start..]);
                return Ok(entry);
            }
            out.truncate(start);
        }
        out.extend_from_slice(src);
        entry.crc = crc32c::crc32c(src);
        Ok(entry)
    }

    fn compress(
        &mut self,
        encoding: &Encoding,
        src: &[u8],
        dictionaries: &Dictionaries,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        match encoding.codec {
            Codec::Raw => out.extend_from_slice(src),
            // The block format knows lengths of 32 bits; longer cells are stored raw.
            Codec::Lz4 if src.len() > 0x7e00_0000 => out.extend_from_slice(src),
            Codec::Lz4 => {
                lz4::encode_block(src, out);
            }
            Codec::Deflate(level) => self.deflate.get_or_insert_default().raw(level, src, out)?,
            Codec::Zstd(level) => {
                let failed = |e| Error::invalid(format!("Zstandard level {level}: {e}")).with_source(e);
                let number = encoding.dictionary;
                if self.zstd.as_ref().is_none_or(|(l, d, _)| (*l, *d) != (level, number)) {
                    let dictionary = dictionary(dictionaries, number)?;
                    let context = Compressor::with_dictionary(level, dictionary).map_err(failed)?;
                    self.zstd = Some((level, number, context));
                }
                let Some((_, _, context)) = &mut self.zstd else { return Err(Error::invalid("no context")) };
                out.resize(start + compress_bound(src.len()), 0);
                let n = context.compress_to_buffer(src, &mut out[start..]).map_err(failed)?;
                out.truncate(start + n);
            }
        }
        Ok(())
    }
}

/// Codec states that wait for their next use. Nobody waits for them: who finds the pool in use makes new ones.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Codecs>>);

impl Pool {
    pub fn take(&self) -> Codecs {
        self.0.try_lock().ok().and_then(|mut pool| pool.pop()).unwrap_or_default()
    }

    pub fn give(&self, codecs: Codecs) {
        if let Ok(mut pool) = self.0.try_lock()
            && pool.len() < 64
        {
            pool.push(codecs);
        }
    }
}

/// Makes a Zstandard dictionary of at most so many bytes from samples of the records to come.
///
/// # Errors
/// `InvalidArgument` when there are too few samples (some thousand are good, of a hundred times the size in all).
pub fn train_dictionary(samples: &[impl AsRef<[u8]>], most: usize) -> Result<Vec<u8>> {
    zstd::dict::from_samples(samples, most).map_err(|e| {
        Error::invalid(format!("no dictionary can be made from {} samples: {e}", samples.len()))
            .with_source(e)
    })
}
